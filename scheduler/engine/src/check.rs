//! What always holds of a [`State`], each by name. Checked after every step of the simulation, and
//! by the driver when it reads a state from the database.

use schema::status::{JobKind, Status};

use crate::converge::Situation;
use crate::desired::Cadence;
use crate::state::{BrokenInvariant, State};
use crate::step::next_wake;

impl State {
    /// Whether everything holds that always must.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        use BrokenInvariant as B;
        let wrong = |broken: bool, which: BrokenInvariant| if broken { Err(which) } else { Ok(()) };
        let wants_main = self.wants.fetch.is_some() || self.wants.apply.is_some();
        wrong(
            self.main.as_ref().is_some_and(|job| job.kind == JobKind::GetInfo),
            B::JobInTheWrongSlot,
        )?;
        wrong(
            self.side.as_ref().is_some_and(|job| job.kind != JobKind::GetInfo),
            B::JobInTheWrongSlot,
        )?;
        for job in self.jobs_in_flight() {
            wrong(job.attempt == 0, B::AttemptZero)?;
            let endless = job.kind == JobKind::Apply
                && job.timeout.is_none()
                && job.started_at.is_some()
                && job.stop.is_none();
            wrong(job.deadline.is_none() && !endless, B::NoDeadline)?;
        }
        wrong(wants_main && self.main.is_some(), B::WantsBesideMain)?;
        wrong(self.wants.info.is_some() && self.side.is_some(), B::WantsBesideSide)?;
        wrong(
            (wants_main || self.wants.info.is_some()) && (self.deleted || self.desired.is_none()),
            B::WantsForNothing,
        )?;
        wrong(wants_main && self.paused, B::WantsWhilePaused)?;
        wrong(self.paused && self.observe_wish.is_some(), B::PausedAndObserved)?;
        let watched = self.desired().is_some_and(|desired| desired.observe.watch().is_some())
            && !self.paused
            && !self.deleted;
        self.observed.check(watched)?;
        wrong(
            self.wants.fetch.is_some()
                && self.desired().is_some_and(|desired| desired.observe.poll().is_none()),
            B::FetchesUnpolled,
        )?;
        self.rollout.check(self.wants.apply.is_some())?;
        if self.wants.apply.is_some() {
            wrong(self.only_looks(), B::AppliesWhileObserving)?;
            wrong(self.given_up().next().is_some(), B::AppliesBesideUnsettled)?;
            wrong(self.pending_approvals().next().is_some(), B::AppliesUnapproved)?;
        }
        self.approvals.check(self.desired().map_or(0, |desired| desired.gates.len()))?;
        if self.standing.status == Status::Converged {
            let release = self.desired().map(|desired| desired.release);
            wrong(
                self.converged.as_ref().map(|converged| converged.release) != release,
                B::ConvergedUnseen,
            )?;
        }
        wrong(!self.moves_by_itself() && !self.waits_for_others(), B::NoWayOut)
    }

    /// A timer, a place that the lanes will grant, or a job whose end is awaited.
    fn moves_by_itself(&self) -> bool {
        let wants =
            self.wants.fetch.is_some() || self.wants.apply.is_some() || self.wants.info.is_some();
        wants || next_wake(self).is_some() || self.jobs_in_flight().next().is_some()
    }

    /// At rest, or in the hands of people or of another channel. A cron schedule may have no
    /// instant left.
    fn waits_for_others(&self) -> bool {
        let fetch = self.desired().and_then(|desired| desired.observe.poll());
        // As many fetches linger as may: the runner ends it, or a person.
        let held_up = self.fetches_linger();
        let scheduled = fetch.is_some_and(|fetch| matches!(fetch.cadence, Cadence::Cron(_)));
        match self.situate(self.seen_at) {
            Situation::Deleted
            | Situation::NoRelease
            | Situation::Paused
            | Situation::Observing => true,
            Situation::Converged | Situation::Acknowledged(_) => {
                scheduled
                    || held_up
                    || self.desired().is_none_or(|desired| !desired.observe.looks())
            }
            Situation::Cancelled
            | Situation::Unsettled(_)
            | Situation::ApplyFailed(None)
            | Situation::ApplyUnknown(None) => true,
            Situation::Unmet(_)
            | Situation::Approval(_)
            | Situation::Rejected(_)
            | Situation::WindowShut(None) => true,
            // A schedule that has run out: `explain` says NO_FETCH_DUE, and a person looks now.
            Situation::Unlooked
            | Situation::Unseen
            | Situation::Looking
            | Situation::Pending
            | Situation::Broken => scheduled || held_up,
            Situation::ApplyFailed(Some(_)) | Situation::ApplyUnknown(Some(_)) => {
                scheduled || held_up
            }
            Situation::Applying
            | Situation::Retrying(_)
            | Situation::Misfired(_)
            | Situation::Grace(_)
            | Situation::Ask(_)
            | Situation::WindowShut(Some(_))
            | Situation::Ready(_) => false,
        }
    }
}
