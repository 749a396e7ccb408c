//! What always holds of a [`State`], each by name. Checked after every step of the simulation, and
//! by the driver when it reads a state from the database.

use schema::status::{ApprovalStatus, JobKind, Status};

use crate::converge::Situation;
use crate::desired::Cadence;
use crate::state::{APPROVALS_KEPT, State};
use crate::step::next_wake;

/// An invariant that does not hold: a bug of ours or a damaged database, never the user's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenInvariant {
    /// The main slot holds fetch or apply, the side slot getInfo.
    #[error("a job is in the slot of another kind")]
    JobInTheWrongSlot,
    /// Attempts count from 1.
    #[error("a job in flight has attempt 0")]
    AttemptZero,
    /// Every job in flight has a deadline, but for an apply without timeout that runs and was not
    /// stopped.
    #[error(
        "a job in flight has no deadline although it has a timeout, has not started or was stopped"
    )]
    NoDeadline,
    /// One fetch or apply at a time.
    #[error("a place for fetch or apply is wanted while one is in flight")]
    WantsBesideMain,
    /// One getInfo at a time.
    #[error("a place for getInfo is wanted while one is in flight")]
    WantsBesideSide,
    /// Nothing starts for an instance that is deleted or has no release.
    #[error("a place is wanted although nothing is desired")]
    WantsForNothing,
    /// A fetch is for what is polled.
    #[error("a place for fetch is wanted although the instance is not polled")]
    FetchesUnpolled,
    /// A paused instance starts neither fetch nor apply.
    #[error("a place for fetch or apply is wanted although the instance is paused")]
    WantsWhilePaused,
    /// An observer never applies.
    #[error("a place for apply is wanted although the instance only looks")]
    AppliesWhileObserving,
    /// A watch is wanted wherever one tells, but while the instance is paused or deleted.
    #[error("a watch counts although none is wanted, or none does although one is")]
    WatchUnwanted,
    /// No apply beside a job that may still run.
    #[error("a place for apply is wanted although an earlier job is not known to be gone")]
    AppliesBesideUnsettled,
    /// An apply waits for a pending or rejected approval.
    #[error("a place for apply is wanted although an approval is not given")]
    AppliesUnapproved,
    /// A place for apply is wanted since every gate is open.
    #[error("a place for apply is wanted although it is not ready")]
    WantsUnready,
    /// A bounded history.
    #[error("more approvals are remembered than may be")]
    TooManyApprovals,
    /// A granted approval has the yes of as many people as it needs.
    #[error("an approval counts as given without enough people")]
    GrantedWithoutVotes,
    /// CONVERGED is said only of what was seen so.
    #[error("the status is CONVERGED although this release was not seen converged")]
    ConvergedUnseen,
    /// Whatever waits has something that will end it.
    #[error("nothing will ever move the instance although it is on its way")]
    NoWayOut,
}

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
        let watched = self.desired().is_some_and(|desired| desired.observe.watch().is_some())
            && !self.paused
            && !self.deleted;
        wrong(watched != self.look.watch.is_some(), B::WatchUnwanted)?;
        wrong(
            self.wants.fetch.is_some()
                && self.desired().is_some_and(|desired| desired.observe.poll().is_none()),
            B::FetchesUnpolled,
        )?;
        if self.wants.apply.is_some() {
            wrong(self.observer, B::AppliesWhileObserving)?;
            wrong(self.given_up().next().is_some(), B::AppliesBesideUnsettled)?;
            wrong(self.pursuit.ready_since.is_none(), B::WantsUnready)?;
            wrong(self.pending_approvals().next().is_some(), B::AppliesUnapproved)?;
        }
        wrong(
            self.approvals.len()
                > APPROVALS_KEPT + self.desired().map_or(0, |desired| desired.gates.len()),
            B::TooManyApprovals,
        )?;
        let unearned = self.approvals.iter().any(|approval| {
            approval.status == ApprovalStatus::Approved
                && !approval.over
                && approval.votes.len() < approval.needed as usize
        });
        wrong(unearned, B::GrantedWithoutVotes)?;
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
            Situation::Converged => {
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
