//! What the oracle keeps of one instance.

use super::*;

impl Account {
    /// This is wanted from now on.
    pub(super) fn desire(&mut self, desired: &Desired) {
        if self.deleted && self.desired.as_ref().is_some_and(|old| old.release == desired.release) {
            self.desired = Some(desired.clone());
            return; // it comes back with a release
        }
        if self.deleted {
            self.grants.values_mut().for_each(|grant| grant.spent = true);
        }
        self.deleted = false;
        let old = self.desired.replace(desired.clone());
        let changed = old.as_ref().map(|old| (old.release, old.compiled))
            != Some((desired.release, desired.compiled));
        if old.is_none_or(|old| old.release != desired.release) {
            self.acknowledged.clear();
            self.lifted = None;
            self.grants.values_mut().for_each(|grant| grant.spent = true);
            self.arrived = false;
            self.cancelled = false;
        }
        if changed {
            (self.fresh, self.is_quiet) = (None, false);
            self.spend();
            self.arrived = false;
            self.unseen = true;
            // What was said was said about other commands.
            self.grants
                .values_mut()
                .filter(|grant| !grant.votes.is_empty())
                .for_each(|grant| grant.spent |= !grant.rejected);
        }
    }

    /// What it is asked for now.
    pub(super) fn ask(&mut self, after: &State) {
        for approval in after.approvals() {
            let grant = self.grants.entry(approval.id).or_insert_with(|| Grant {
                kind: approval.kind,
                fingerprint: approval.fingerprint,
                votes: BTreeMap::new(),
                rejected: false,
                spent: false,
                expires_at: None,
            });
            grant.expires_at = approval.expires_at;
        }
    }

    pub(super) fn goes_back(&mut self, from: ReleaseId) {
        assert!(!self.rolled_back.contains(&from), "a release goes back once");
        assert!(
            !self.observer && !self.observed && !self.paused && !self.cancelled,
            "nothing goes back that waits for a person"
        );
        self.rolled_back.push(from);
    }

    pub(super) fn spend(&mut self) {
        self.grants
            .values_mut()
            .filter(|grant| grant.kind == ApprovalKind::Apply)
            .for_each(|grant| grant.spent = true);
    }

    /// Somebody leaves drift as it is, or wants it repaired again.
    pub(super) fn leave_drift(&mut self, event: &Event, applying: bool) {
        match event {
            Event::Acknowledge { fingerprint, by } => {
                let is_there = self.fresh == Some(Some(*fingerprint));
                if self.arrived && !self.deleted && is_there {
                    self.acknowledged.insert(*fingerprint, by.until);
                }
            }
            Event::EndAcknowledged { .. } => self.acknowledged.clear(),
            Event::Retry { .. } if !applying => self.acknowledged.clear(),
            _ => {}
        }
    }

    pub(super) fn bound(&self, fingerprint: Option<BlobId>) -> bool {
        let counts = |grant: &Grant| {
            !grant.spent
                && !grant.rejected
                && grant.kind == ApprovalKind::Apply
                && grant.fingerprint == fingerprint
        };
        self.grants.values().any(counts)
    }

    pub(super) fn looked(&mut self, flight: &Flight, outcome: Option<&Outcome>) {
        let Some(desired) = &self.desired else { return };
        if flight.unwanted
            || (flight.start.release, flight.start.compiled) != (desired.release, desired.compiled)
        {
            return;
        }
        let Some(Outcome::Exited { code, seen, .. }) = outcome else { return };
        self.answered(answer(desired, *code, seen), Some(flight.start.job));
    }

    /// What was seen, by a fetch or by a watch.
    pub(super) fn answered(&mut self, answer: Answer, job: Option<JobId>) {
        match answer {
            Answer::None => self.is_quiet = false,
            Answer::Clean => {
                self.is_quiet = true;
                self.unseen = false;
                self.fresh = None;
                self.work = None;
                self.cancelled = false;
                self.spend();
            }
            Answer::Work(fingerprint, plan) => {
                self.is_quiet = true;
                self.fresh = Some(fingerprint);
                let of_others = |grant: &&mut Grant| {
                    grant.kind == ApprovalKind::Apply
                        && !grant.rejected
                        && grant.fingerprint != fingerprint
                };
                self.grants.values_mut().filter(of_others).for_each(|grant| grant.spent = true);
                let keeps = self.bound(fingerprint)
                    && self
                        .work
                        .as_ref()
                        .is_some_and(|work| work.fingerprint == fingerprint && !work.stale);
                if !keeps {
                    self.work = Some(Work { fingerprint, plan, job, stale: false });
                }
            }
        }
    }

    pub(super) fn applied(&mut self, flight: &Flight, outcome: Option<&Outcome>) {
        let misfired = flight.stopped_ms.is_none()
            && matches!(outcome, Some(Outcome::NotStarted { surroundings: true, .. }));
        let retryable = flight.stopped_ms.is_none()
            && matches!(outcome, Some(Outcome::Exited { code: 75, .. }));
        let lost = matches!(outcome, Some(Outcome::InputLost { .. }));
        let never_ran = misfired || (lost && flight.stopped_ms.is_none());
        let of_this =
            self.desired.as_ref().is_some_and(|desired| desired.release == flight.start.release);
        self.cancelled |= flight.cancelled && of_this;
        if !misfired {
            (self.fresh, self.is_quiet) = (None, false);
        }
        if retryable || lost {
            self.work.iter_mut().for_each(|work| work.stale = true);
        }
        if !retryable && !never_ran && of_this {
            self.spend();
        }
    }

    /// P2, P7 and P8: everything that has to be so before an apply starts.
    pub(super) fn may_apply(&self, start: &StartJob, desired: &Desired, now: Timestamp) {
        let job = start.job;
        assert!(!self.observer && !self.observed, "what only looks never applies");
        assert!(!self.cancelled, "P7: no further attempt after a cancel");
        if desired.apply.window.is_some() {
            let is_inside = now.as_millis().rem_euclid(3_600_000) < WINDOW_MS;
            assert!(
                is_inside || self.lifted.is_some_and(|until| now < until),
                "P2: {job} at {now} is outside its window, which nobody has lifted for it"
            );
        }
        let mut fingerprint = None;
        if desired.observe.looks() {
            let work = self.work.as_ref().unwrap_or_else(|| panic!("{job} without work"));
            fingerprint = work.fingerprint;
            assert_eq!(
                self.fresh,
                Some(fingerprint),
                "{job}: what was seen since the last apply is this work"
            );
            let known = fingerprint.and_then(|known_by| self.acknowledged.get(&known_by));
            assert!(
                known.is_none_or(|until| *until <= now),
                "{job} because of drift that somebody leaves as it is until {known:?}"
            );
            assert_eq!(
                (start.fetch_job, start.plan),
                (work.job, work.plan),
                "P2: the plan that was shown is the one that runs"
            );
        }
        let is_no =
            |grant: &Grant| grant.rejected && !grant.spent && grant.kind != ApprovalKind::Apply;
        assert!(
            !self.grants.values().any(is_no),
            "P2: {job} although somebody said no to the release, and nobody has asked anew"
        );
        for gate in &desired.gates {
            match gate {
                Gate::ChannelsStable { .. } => {
                    assert!(self.heard.contains(&desired.version), "P8: upstream was stable")
                }
                Gate::ManualApproval { every_action: true, min_approvers, .. } => {
                    self.given(ApprovalKind::Apply, Some(fingerprint), *min_approvers, now);
                }
                Gate::ManualApproval { min_approvers, .. } if !self.arrived => {
                    self.given(ApprovalKind::Manual, None, *min_approvers, now)
                }
                Gate::SharedApproval { min_approvers, .. } if !self.arrived => {
                    self.given(ApprovalKind::Shared, None, *min_approvers, now)
                }
                Gate::ManualApproval { .. } | Gate::SharedApproval { .. } => {}
            }
        }
        let may_destroy = !destroys_nothing(fingerprint);
        if desired.require_approval_before_apply
            || desired.require_approval_for_destroy && may_destroy
        {
            self.given(ApprovalKind::Apply, Some(fingerprint), 1, now);
        }
    }

    pub(super) fn given(
        &self,
        kind: ApprovalKind,
        fingerprint: Option<Option<BlobId>>,
        needed: u32,
        now: Timestamp,
    ) {
        let fits = |grant: &Grant| {
            let about = fingerprint.is_none_or(|fingerprint| grant.fingerprint == fingerprint);
            let valid = grant.expires_at.is_none_or(|at| at > now);
            grant.kind == kind
                && about
                && valid
                && !grant.spent
                && !grant.rejected
                && grant.yes() >= needed as usize
        };
        assert!(self.grants.values().any(fits), "P2: approved by {needed} people ({kind})");
    }
}

/// What a fetch says, read a second time and more simply: the world's targets have one object and
/// one active version.
fn answer(desired: &Desired, code: i32, seen: &FetchResult) -> Answer {
    match desired.observe.poll().map(|poll| poll.mode) {
        Some(FetchAnswer::ExitCode) if code == 0 => Answer::Clean,
        Some(FetchAnswer::ExitCode) if code == 2 => Answer::Work(seen.fingerprint(), seen.plan),
        Some(FetchAnswer::StructuredOutput) if code == 0 => match &seen.objects {
            Some(Ok(objects))
                if !objects.is_empty()
                    && objects.iter().all(|object| {
                        object.versions.iter().any(|at| at.version == desired.version)
                    }) =>
            {
                Answer::Clean
            }
            Some(Ok(_)) => Answer::Work(seen.fingerprint(), seen.plan),
            _ => Answer::None,
        },
        _ => Answer::None,
    }
}
