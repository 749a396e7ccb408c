//! How far a job on a cluster is that is followed: what its task knows beside what the cluster
//! shows. Held by [`super::follow`].

use schema::report::Report;
use schema::time::Timestamp;
use tokio::time::Instant;

use super::blockers::StartBlocker;
use super::follow::{BEHIND_WITHIN, LISTEN_EVERY, POD_WITHIN, UNSEEN_WITHIN};
use super::withdraw::{LEAVE_EVERY, Withdrawal};
use crate::runner::evidence::OutcomeEvidence;

/// How far it is.
pub(super) struct Course {
    /// When it must have started, or be gone after it was deleted.
    pub(super) deadline: Instant,
    /// When its time is over, whether it started or not.
    pub(super) times_out_at: Option<Instant>,
    /// When somebody is asked why nothing goes on.
    pub(super) why_at: Instant,
    pub(super) listen_at: Instant,
    /// When it is asked whether it may still begin.
    pub(super) leave_at: Instant,
    /// When the node of the Pod of this uid counts as lost.
    pub(super) lost_at: Option<(String, Instant)>,
    /// When it is asked whether there is really no Pod; and whether there is none.
    pub(super) absent_at: Option<Instant>,
    pub(super) is_absent: bool,
    /// How long a Pod that is not the last one may still be said to run when its Job is over.
    pub(super) others_until: Option<Instant>,
    pub(super) others_run: bool,
    /// What it waited for last.
    pub(super) waits_for: Option<StartBlocker>,
    /// What events said, and of which object.
    pub(super) said: Option<(String, StartBlocker)>,
    /// Whether its status does not say why it waits.
    pub(super) is_silent: bool,
    pub(super) had_pod: bool,
    /// Whether it is known to have started, in whatever life of the daemon.
    pub(super) started: bool,
    /// Whether that was told.
    pub(super) told: bool,
    /// Whether it did not start in time.
    pub(super) gave_up: bool,
    pub(super) withdrawal: Withdrawal,
    /// From when on what ends counts as ended because its time was over, once it was ended for
    /// that.
    pub(super) over_time: Option<Timestamp>,
    /// How long a stop is taken for the engine's, whose own deadline comes shortly after ours
    /// where ours was put off after a restart.
    pub(super) spares_until: Option<Instant>,
    /// Whether its Job was deleted by us before it started, and how often the Pods' watch had been
    /// lost by then.
    pub(super) deleted: bool,
    pub(super) broken_before: u32,
    /// Whether its Job was deleted because somebody suspended it, or ended because its Pod was
    /// asked to end.
    pub(super) is_removed: bool,
    pub(super) is_closed: bool,
    /// Name of a Pod without owner that may be its own, and runs.
    pub(super) stray: Option<String>,
    /// What its wrapper wrote into the log because it reaches nobody. It counts when the container
    /// has ended.
    pub(super) line: Option<Box<Report>>,
    /// Whether the cluster, or somebody in it, was seen to end its Pod before we did.
    pub(super) was_taken: bool,
    /// Stops so far.
    pub(super) asked: u32,
    /// That the last one came to nothing, and why.
    pub(super) unstopped: Option<StartBlocker>,
    /// When it is made again.
    pub(super) stop_at: Option<Instant>,
    /// When people are told that the cluster does not say what is there.
    pub(super) unseen_at: Instant,
    /// What they are told of one that was seen, and that the cluster does not show any more.
    pub(super) unwatched: Option<StartBlocker>,
    /// When what its Job counts is no Pod any more that is only seen late.
    pub(super) counted_at: Option<Instant>,
}

impl Course {
    /// What counts of all that can be told of one that has not started: that nobody sees it any
    /// more, since what it waited for when it was last seen may be over; that the cluster took
    /// neither its stop nor its deletion, which it waits for then; and else what it says itself.
    pub(super) fn keeps_from_starting<'a>(
        &'a self,
        said: Option<&'a StartBlocker>,
    ) -> Option<&'a StartBlocker> {
        let ours = [&self.unwatched, &self.unstopped].into_iter().find_map(Option::as_ref);
        ours.or_else(|| self.withdrawal.blocker()).or(said)
    }

    pub(super) fn new(deadline: Instant, times_out_at: Option<Instant>, started: bool) -> Self {
        let now = Instant::now();
        Self {
            deadline,
            times_out_at,
            why_at: now + POD_WITHIN,
            listen_at: now + LISTEN_EVERY,
            leave_at: now + LEAVE_EVERY,
            lost_at: None,
            absent_at: None,
            is_absent: false,
            others_until: None,
            others_run: false,
            waits_for: None,
            said: None,
            is_silent: true,
            had_pod: false,
            started,
            told: false,
            gave_up: false,
            withdrawal: Withdrawal::default(),
            over_time: None,
            spares_until: None,
            deleted: false,
            broken_before: 0,
            is_removed: false,
            is_closed: false,
            stray: None,
            line: None,
            was_taken: false,
            asked: 0,
            unstopped: None,
            stop_at: None,
            unseen_at: now + UNSEEN_WITHIN,
            unwatched: None,
            counted_at: None,
        }
    }

    /// An earlier life of the daemon was to stop it, and did not note whether the cluster took
    /// that.
    pub(super) fn stop_soon(&mut self) {
        self.asked = self.asked.max(1);
        self.stop_at = Some(Instant::now() + BEHIND_WITHIN);
    }

    /// Whether a stop that came now is the engine's for the deadline for which it was asked to end
    /// already: that it was asked twice must not cost it its grace. One is.
    pub(super) fn is_spared(&mut self) -> bool {
        self.spares_until.take().is_some_and(|until| Instant::now() < until)
    }

    /// Whether we had its Pod ended for what its wrapper left in the log, so that the end of that
    /// says nothing against it.
    pub(super) fn ended_for_its_line(&self) -> bool {
        self.line.is_some() && !self.was_taken
    }

    /// It is over: what its wrapper left in the log, and whether its time was over, is a part of
    /// what is known.
    pub(super) fn with_what_is_known(&mut self, learned: OutcomeEvidence) -> OutcomeEvidence {
        let line = self.line.take();
        learned.merge(OutcomeEvidence {
            line,
            over_time: self.over_time,
            ..OutcomeEvidence::default()
        })
    }
}
