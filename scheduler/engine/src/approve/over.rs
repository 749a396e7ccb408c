//! How approvals go out of force: expired, withdrawn because the work, the commands or the gates
//! are others, used up, or history. What is said, and how many people the config wants, holds for
//! all that starts from then on; an apply that runs goes on. Called by the step.

use schema::id::ApprovalId;
use schema::log_kind::LogKind;
use schema::status::{ApprovalKind, ApprovalStatus, Decision};
use schema::time::Timestamp;

use super::{Asker, about, expiry, live, name_of, question};
use crate::action::Action;
use crate::desired::{Desired, Question};
use crate::state::{APPROVALS_KEPT, Approval, Finding, State};

impl State {
    /// Takes approvals out of force that were asked or given too long ago; a fetch then looks again
    /// before anybody is asked again.
    pub(crate) fn expire(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let mut expired = false;
        for approval in self.approvals.iter_mut().filter(|approval| live(approval)) {
            if approval.expires_at.is_some_and(|at| at <= now) {
                approval.status = ApprovalStatus::Expired;
                approval.over = true;
                expired = true;
                out.push(about(
                    LogKind::ApprovalExpired,
                    None,
                    format!("{} has expired", name_of(approval)),
                    approval,
                ));
            }
        }
        if expired {
            self.look_in_time(now);
        }
    }

    /// Other work was found than the one that was asked about: approvals bound to that are
    /// withdrawn, and those of the release that are still asked show the new work.
    pub(crate) fn rebind(&mut self, out: &mut Vec<Action>) {
        let (binds_manual, who_looks) = (self.binds_manual(), self.who_looks());
        let Finding::Work(work) = &self.look.finding else { return };
        for approval in self.approvals.iter_mut().filter(|approval| live(approval)) {
            if approval.fingerprint == work.fingerprint {
                continue;
            }
            // The bytes of a plan without words differ each time.
            let has_words = work.explanation.is_some() || approval.explanation.is_some();
            let was_said = approval.kind == ApprovalKind::Manual
                && binds_manual
                && has_words
                && !approval.votes.is_empty();
            if approval.kind == ApprovalKind::Apply || was_said {
                withdraw(approval);
                if !approval.votes.is_empty() {
                    let what = format!(
                        "{} is withdrawn: {who_looks} has found other work than what was said yes \
                         to",
                        name_of(approval)
                    );
                    out.push(about(LogKind::ApprovalWithdrawn, None, what, approval));
                }
            } else if approval.status == ApprovalStatus::Pending {
                approval.fingerprint = work.fingerprint;
                approval.explanation = work.explanation.clone();
            }
        }
    }

    /// There is nothing to approve now: what is asked is withdrawn, and what was granted for an
    /// apply that never came. Votes on a shared one stay until the channel has arrived, because
    /// in the other channels they count on under the same id.
    pub(crate) fn withdraw_for_nothing_to_do(&mut self, is_clean: bool) {
        for approval in self.approvals.iter_mut().filter(|approval| live(approval)) {
            if approval.kind == ApprovalKind::Shared && !is_clean {
                continue;
            }
            if approval.status == ApprovalStatus::Pending || approval.kind == ApprovalKind::Apply {
                withdraw(approval);
            }
        }
    }

    /// The commands changed: what was approved is not what would run, and what was shown to whoever
    /// is about to answer is not what is asked about. A yes that an apply has used stays as it
    /// was.
    pub(crate) fn withdraw_for_commands(&mut self, out: &mut Vec<Action>) {
        self.withdraw_kinds(
            &[ApprovalKind::Apply, ApprovalKind::Manual, ApprovalKind::Shared],
            out,
        );
    }

    /// The commands of another channel changed, which shares approvals with this one.
    pub(crate) fn withdraw_for_others(&mut self, out: &mut Vec<Action>) {
        if !self.has_arrived() {
            self.withdraw_kinds(&[ApprovalKind::Shared], out);
        }
    }

    fn withdraw_kinds(&mut self, kinds: &[ApprovalKind], out: &mut Vec<Action>) {
        let was_used = self.pursuit.arrived || self.pursuit.chain.is_some();
        for approval in self
            .approvals
            .iter_mut()
            .filter(|approval| live(approval) && kinds.contains(&approval.kind))
        {
            match approval.kind {
                ApprovalKind::Manual | ApprovalKind::Shared if was_used => retire(approval),
                ApprovalKind::Apply | ApprovalKind::Manual | ApprovalKind::Shared => {
                    withdraw(approval);
                    approval.other_commands = true;
                    if !approval.votes.is_empty() {
                        let what = format!(
                            "{} is withdrawn: the config has other commands than what was said \
                             yes to",
                            name_of(approval)
                        );
                        out.push(about(LogKind::ApprovalWithdrawn, None, what, approval));
                    }
                }
            }
        }
    }

    /// The same release under other gates: what no gate asks for any more is history, and what is
    /// asked for needs as many people as the config now says, for all that starts from now on.
    /// A decision that the release has passed stands, and one for a single apply while that
    /// runs.
    pub(crate) fn regate(&mut self, now: Timestamp) {
        let settled = self.settled_approvals();
        let Some(desired) = self.desired.as_deref() else { return };
        let askers = (0..desired.gates.len())
            .map(Asker::Gate)
            .chain(desired.require_approval_before_apply.then_some(Asker::Apply));
        let questions: Vec<_> = askers.filter_map(|asker| question(desired, asker)).collect();
        for approval in self.approvals.iter_mut().filter(|approval| !approval.over) {
            // One without a name is known by its words, for its place may be another's now.
            let is_same = |question: &&Question<'_>| {
                let is_known = question.name.is_some()
                    || question.description == approval.description.as_deref()
                    || approval.status == ApprovalStatus::Rejected;
                question.is_of(approval) && is_known
            };
            let Some(question) = questions.iter().find(is_same) else {
                // A no is about the release, however the config asks from now on.
                if approval.status != ApprovalStatus::Rejected {
                    retire(approval);
                }
                continue;
            };
            approval.description = question.description.map(str::to_owned);
            if settled.contains(&approval.id) || approval.needed == question.needed {
                continue;
            }
            approval.needed = question.needed;
            count(approval, Some(desired), now);
        }
        self.trim_approvals();
    }

    /// The token of this person was revoked: a yes of theirs opens nothing that is still shut. A no
    /// stands, as it is on the safe side.
    pub(crate) fn disown(&mut self, who: &str, now: Timestamp, out: &mut Vec<Action>) {
        let settled = self.settled_approvals();
        let desired = self.desired.as_deref();
        for approval in self
            .approvals
            .iter_mut()
            .filter(|approval| live(approval) && !settled.contains(&approval.id))
        {
            let before = approval.votes.len();
            approval.votes.retain(|vote| vote.who != who || vote.decision == Decision::Reject);
            if approval.votes.len() == before {
                continue;
            }
            count(approval, desired, now);
            let (yes, needed) = (approval.yes().count(), approval.needed);
            let what = format!(
                "the yes of {who} to {} counts no more, as the token was revoked: {yes} of \
                 {needed} people",
                name_of(approval)
            );
            out.push(about(LogKind::ApprovalWithdrawn, None, what, approval));
        }
    }

    /// Those that nothing changes any more: decided, and the release has passed them, or the single
    /// apply that they are for runs.
    fn settled_approvals(&self) -> Vec<ApprovalId> {
        let running = self
            .main
            .as_deref()
            .filter(|job| job.started_at.is_some())
            .map_or(&[][..], |job| &job.uses);
        let is_settled = |approval: &&Approval| match approval.status {
            ApprovalStatus::Pending => false,
            ApprovalStatus::Approved if approval.kind == ApprovalKind::Apply => {
                running.contains(&approval.id)
            }
            ApprovalStatus::Approved => self.has_arrived(),
            ApprovalStatus::Rejected | ApprovalStatus::Expired => true,
        };
        self.approvals.iter().filter(is_settled).map(|approval| approval.id).collect()
    }

    /// Another release, or none: everything asked for this one is history.
    pub(crate) fn withdraw_all(&mut self) {
        self.approvals.iter_mut().for_each(retire);
        self.trim_approvals();
    }

    /// An apply is over that was let through by these: what was said for a single apply is history,
    /// but for a no.
    pub(crate) fn use_up(&mut self, used: &[ApprovalId]) {
        let is_used = |approval: &Approval| {
            approval.status == ApprovalStatus::Approved || used.contains(&approval.id)
        };
        for approval in
            self.approvals.iter_mut().filter(|approval| approval.kind == ApprovalKind::Apply)
        {
            if is_used(approval) && live(approval) {
                retire(approval);
            }
        }
        self.trim_approvals();
    }

    /// A person wants another try: rejections no longer stand, so that people are asked anew.
    pub(crate) fn forget_rejections(&mut self) {
        for approval in &mut self.approvals {
            approval.over |= approval.status == ApprovalStatus::Rejected;
        }
    }

    /// Bounds the history: first what is over goes, then the oldest rejections; what is asked or
    /// granted stays. Only what counts, and the newest, keeps its text.
    pub(super) fn trim_approvals(&mut self) {
        while self.approvals.len() > APPROVALS_KEPT {
            let over = self.approvals.iter().position(|approval| approval.over);
            let Some(at) = over.or_else(|| {
                self.approvals
                    .iter()
                    .position(|approval| approval.status == ApprovalStatus::Rejected)
            }) else {
                break;
            };
            self.approvals.remove(at);
        }
        let newest = self.approvals.len().saturating_sub(1);
        for approval in self.approvals[..newest].iter_mut().filter(|approval| approval.over) {
            approval.explanation = None;
        }
    }
}

/// Whether it is given, now that other votes or another number of people count.
fn count(approval: &mut Approval, desired: Option<&Desired>, now: Timestamp) {
    let given = approval.yes().count() >= approval.needed as usize;
    let status = if given { ApprovalStatus::Approved } else { ApprovalStatus::Pending };
    if std::mem::replace(&mut approval.status, status) != status {
        approval.expires_at = expiry(desired, now);
    }
}

fn withdraw(approval: &mut Approval) {
    approval.status = ApprovalStatus::Expired;
    approval.over = true;
}

/// To history: what was decided stays as it was, what is still asked for is withdrawn.
fn retire(approval: &mut Approval) {
    if approval.status == ApprovalStatus::Pending {
        withdraw(approval);
    }
    approval.over = true;
}
