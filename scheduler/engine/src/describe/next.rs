//! What an instance does next by itself, and when.

use std::borrow::Cow;

use schema::api::NextAction;
use schema::time::Timestamp;

use crate::converge::ShutGate;
use crate::state::{State, WatchState};

impl State {
    /// What happens by itself, soonest first. `again_at`: when the next apply comes, if time is all
    /// that it waits for.
    pub(super) fn next_actions(&self, again_at: Option<Timestamp>) -> Vec<NextAction> {
        let mut next = Vec::new();
        // Most have no time, and this is done at each step: words are made for those that have.
        let mut add = |action: Cow<'static, str>, at: Option<Timestamp>| {
            next.extend(at.map(|at| NextAction { action: action.into_owned(), at }))
        };
        let idle = self.main.is_none();
        add("fetch".into(), self.observed.due().filter(|_| idle && self.looks()));
        let has_work = !self.deleted
            && !self.paused
            && !self.only_looks()
            && self.rollout.attempts().is_some_and(|attempts| attempts.end().is_some());
        add(
            "apply".into(),
            again_at.and_then(|at| self.again_by_itself(at)).filter(|_| idle && has_work),
        );
        add("apply".into(), self.wants.apply);
        let shut = self.rollout.window_at().filter(|_| self.rollout.ready_since().is_none());
        add("apply".into(), shut.filter(|opens_at| self.lapses_before(*opens_at).is_none()));
        add("getInfo".into(), self.info.due().filter(|_| self.side.is_none() && !self.deleted));
        if let Some(job) = self.main.as_deref() {
            let what = match (&job.stop, job.started_at) {
                (Some(_), _) => "the end of a stopped",
                (None, Some(_)) => "the end of",
                (None, None) => "the start of",
            };
            let waits = job.stop.is_none() && job.started_at.is_none();
            if let Some(at) = if waits { job.starts_by() } else { job.deadline } {
                add(format!("deadline: {what} {}", job.kind).into(), Some(at));
            }
        }
        for approval in self.approvals.live() {
            add("deadline: approval".into(), approval.expires_at);
        }
        add("deadline: watch".into(), self.observed.watch().map(WatchState::stale_at));
        add(
            "deadline: progress".into(),
            self.rollout.stuck_at().filter(|_| !self.cannot_look(self.seen_at)),
        );
        next.sort_by_key(|next| next.at);
        next
    }

    /// The same unless the gates have something against it then, as far as is known now.
    fn again_by_itself(&self, at: Timestamp) -> Option<Timestamp> {
        match self.shut_gates(at).next() {
            None => Some(at).filter(|at| self.lapses_before(*at).is_none()),
            Some(ShutGate::Window(opens_at)) => {
                opens_at.filter(|opens_at| self.lapses_before(*opens_at).is_none())
            }
            Some(
                ShutGate::Unmet(_)
                | ShutGate::Ask(_)
                | ShutGate::Approval(_)
                | ShutGate::Rejected(_),
            ) => None,
        }
    }
}
