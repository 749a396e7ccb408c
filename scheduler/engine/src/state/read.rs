//! What others may know of a [`State`].

use schema::id::{InstanceId, JobId, RuntimeName};
use schema::output::{Info, RuntimeObject};
use schema::status::{JobKind, Status};
use schema::time::Timestamp;

use super::{
    AppliesHeld, ApplyAttempts, Approval, Converged, Job, ObserveWish, RolledBack, State,
    StatusSummary,
};
use crate::desired::Desired;

impl State {
    /// Which instance this is.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// The latest instant that a step was told.
    pub fn seen_at(&self) -> Timestamp {
        self.seen_at
    }

    /// What it should be; `None` before the first release.
    pub fn desired(&self) -> Option<&Desired> {
        self.desired.as_deref()
    }

    /// How it stands.
    pub fn standing(&self) -> &StatusSummary {
        &self.standing
    }

    /// Since when it waits for a place in the lane of this kind; `None` when it does not.
    pub fn wants(&self, kind: JobKind) -> Option<Timestamp> {
        match kind {
            JobKind::Fetch => self.wants.fetch,
            JobKind::Apply => self.wants.apply,
            JobKind::GetInfo => self.wants.info,
        }
    }

    /// The jobs in flight: at most one fetch or apply, and at most one getInfo.
    pub fn jobs_in_flight(&self) -> impl Iterator<Item = &Job> {
        self.main.as_deref().into_iter().chain(self.side.as_deref())
    }

    /// The job in flight with this id.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs_in_flight().find(|job| job.id == id)
    }

    /// An apply that was given up and of which nobody has said that it is gone.
    pub fn unsettled(&self) -> Option<JobId> {
        self.unsettled
    }

    /// Jobs that were given up and of which nobody has said that they are gone: what their runner
    /// still tells of them counts.
    pub fn given_up(&self) -> impl Iterator<Item = JobId> {
        self.unsettled.into_iter().chain(self.lingering.iter().copied())
    }

    /// The apply that was given up and may still run, and the runtime in which it ran.
    pub(crate) fn unsettled_apply(&self) -> Option<(JobId, &RuntimeName)> {
        let job = self.unsettled.filter(|job| self.given_up_kind(*job) == JobKind::Apply)?;
        Some((job, self.unsettled_in()?))
    }

    /// The runtime in which the apply that was given up ran, as far as is known: if not, that of
    /// now.
    pub fn unsettled_in(&self) -> Option<&RuntimeName> {
        self.unsettled?;
        self.unsettled_in.as_ref().or(self.desired.as_deref().map(|desired| &desired.runtime))
    }

    /// Which command a job that was given up ran.
    pub(crate) fn given_up_kind(&self, job: JobId) -> JobKind {
        if self.lingering.contains(&job) { JobKind::Fetch } else { JobKind::Apply }
    }

    /// Approvals asked for, oldest first.
    pub fn approvals(&self) -> &[Approval] {
        self.approvals.all()
    }

    /// The approvals that people can decide on now, the one asked first leading. Mostly one: gates
    /// ask in order. A second one is there when an earlier gate has to ask again, or when
    /// people voted on a shared one early.
    pub fn pending_approvals(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.pending()
    }

    /// Those that are given and that may let something through: whoever gave one can take it back.
    pub fn given_approvals(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.given().filter(|approval| !self.is_past(approval.kind))
    }

    /// Whether a yes of this person is of those that may let something through.
    pub fn counts_on(&self, who: &str) -> bool {
        self.pending_approvals()
            .chain(self.given_approvals())
            .any(|approval| approval.yes().any(|vote| vote.who == who))
    }

    /// The newest release that was seen converged.
    pub fn converged(&self) -> Option<&Converged> {
        self.converged.as_ref()
    }

    /// The version at which it is CONVERGED now, if it is: what `Event::Upstream` tells the other
    /// channels.
    pub fn converged_version(&self) -> Option<&str> {
        if self.standing.status == Status::Converged {
            self.desired().map(|desired| desired.version.as_str())
        } else {
            None
        }
    }

    /// The version that it had, for whoever brings it back: what it last converged at, or was taken
    /// back to since, if anything of that began; and what it pursues where nothing has ever
    /// converged.
    pub fn had(&self) -> Option<&str> {
        let desired = self.desired()?;
        let is_back = desired.is_rollback && self.has_begun();
        let converged =
            self.converged().filter(|_| !is_back).map(|converged| converged.version.as_str());
        Some(converged.unwrap_or(&desired.version))
    }

    /// Whether anything of the release was ever there: it arrived, or a command of an apply of it
    /// ran, or may have.
    fn has_begun(&self) -> bool {
        let runs = self.main.as_deref().is_some_and(|job| {
            let is_of_release =
                self.desired().is_some_and(|desired| desired.release == job.release);
            job.kind == JobKind::Apply && job.started_at.is_some() && is_of_release
        });
        let ran = self.rollout.attempts().is_some_and(ApplyAttempts::may_have_run);
        runs || ran || self.rollout.has_arrived()
    }

    /// What was taken back here by itself, while what it went back to is desired.
    pub fn rolled_back(&self) -> Option<&RolledBack> {
        self.rolled_back
            .as_deref()
            .filter(|back| self.desired().is_some_and(|desired| back.is_back(desired)))
    }

    /// Whether a person paused it.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// That the applies of its runtime are held, as it was told last.
    pub fn applies_held(&self) -> Option<&AppliesHeld> {
        self.held.as_deref()
    }

    /// Who paused it, as far as is known.
    pub fn paused_by(&self) -> Option<&str> {
        self.paused_by.as_deref()
    }

    /// What for, in their words.
    pub fn pause_reason(&self) -> Option<&str> {
        self.pause_reason.as_deref()
    }

    /// Whether somebody rejected what it pursues before anything of it began, and nobody has asked
    /// anew.
    pub fn is_refused(&self) -> bool {
        !self.has_begun() && self.approvals.first_no().is_some()
    }

    /// Whether this run of the daemon only looks.
    pub fn is_observer(&self) -> bool {
        self.observer
    }

    /// That a person wants it to be observed only.
    pub fn observe_wish(&self) -> Option<&ObserveWish> {
        self.observe_wish.as_deref()
    }

    /// Whether it is looked at and nothing is applied, whoever wants that.
    pub fn only_looks(&self) -> bool {
        self.observer || self.observe_wish.is_some()
    }

    /// Why it only looks, as the end of the sentence "it was withdrawn before it started: …".
    pub(crate) fn why_it_only_looks(&self) -> &'static str {
        match self.observer {
            true => "observer mode was turned on",
            false => "a person wants it to be observed only",
        }
    }

    /// Whether it is no longer wanted. Forget it once no job is in flight either.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// When the world was last seen.
    pub fn last_fetch_at(&self) -> Option<Timestamp> {
        self.observed.answered_at()
    }

    /// Whether anybody tells how the world is, paused or not.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.desired().is_some_and(|desired| desired.observe.looks())
    }

    /// Whether it stands as was seen before its commands changed, or before somebody asked to look
    /// again: it is looked at again.
    pub fn is_outdated(&self) -> bool {
        let is_asked = self.observed.is_asked() && self.looks();
        self.is_looked_at() && (self.observed.is_outdated() || is_asked)
    }

    /// The objects that were last seen.
    pub fn objects(&self) -> &[RuntimeObject] {
        self.observed.objects()
    }

    /// What the last getInfo told.
    pub fn info(&self) -> &[Info] {
        self.info.info()
    }
}
