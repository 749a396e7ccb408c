//! What is said of an instance whose situation is what was seen of the world, or that nothing was.

use schema::status::{Reason, Status};
use schema::time::Timestamp;

use super::{Because, Description, WayOut};
use crate::limits::FAILURES_UNTIL_FAILED;
use crate::state::{DriftAcknowledgement, Finding, State};

impl State {
    /// What an apply left behind no look may see, so that is told beside.
    pub(super) fn describe_converged(&self) -> Description<'static> {
        let doubt = self.observed.doubt().filter(|_| self.is_looked_at());
        let doubt = doubt.map(|_| Because::Doubted(self.observed.answered_at()));
        let left = self.left_behind.as_ref().map(|_| Because::LeftBehind);
        let (reason, message) = self.converged_in_words();
        Description::new(Status::Converged, reason, message, WayOut::Converged)
            .besides(doubt)
            .besides(left)
    }

    /// Whoever acknowledged it has said that this will do.
    pub(super) fn describe_acknowledged(
        &self,
        until: Timestamp,
        now: Timestamp,
    ) -> Description<'static> {
        let (version, what) = (self.version_in_words(), self.what());
        let by = self.acknowledged(now).map_or_else(String::new, DriftAcknowledgement::in_words);
        let message = format!("{version} is as desired but for drift that {by}; {what}");
        let way_out = WayOut::Unacknowledged(until);
        Description::new(Status::Converged, self.work_reason(), message, way_out)
    }

    fn converged_in_words(&self) -> (Option<Reason>, String) {
        let version = self.version_in_words();
        if let Some(error) = self.observed.error().filter(|_| self.observed.misses() > 0) {
            return (Some(Reason::FetchFailed), format!("{version} as last seen; {error}"));
        }
        if self.is_outdated() {
            return (None, format!("{version} {}", self.outdated_in_words()));
        }
        let left = self.left_behind.as_ref().filter(|_| !self.is_looked_at());
        let left = left.map_or_else(String::new, |left| format!("; {left}"));
        let doubt =
            self.observed.doubt().map_or_else(String::new, |doubt| format!(", but {doubt}"));
        let unsettled = self.unsettled_apply().map_or_else(String::new, |(job, _)| {
            format!("; apply {job} was given up and may still run: see `pvnctl services explain`")
        });
        (None, format!("{version} is as desired{left}{doubt}{unsettled}"))
    }

    pub(super) fn describe_unseen(&self) -> Description<'static> {
        let version = self.version_in_words();
        let seen =
            self.observed.answered_at().map_or_else(String::new, |at| format!(" since {at}"));
        let error = self
            .observed
            .error()
            .map_or_else(|| format!("{} does not answer", self.who_looks()), str::to_owned);
        waits_for_a_look(
            Some(Reason::FetchFailed),
            format!("{version} was converged and has not been seen{seen}: {error}"),
        )
    }

    pub(super) fn describe_unlooked(&self) -> Description<'static> {
        let version = self.version_in_words();
        match self.observed.error() {
            Some(error) => self.waits_for_answer(
                Some(Reason::FetchFailed),
                format!("nothing is known of {version} yet: {error}"),
            ),
            None => self.waits_for_answer(
                Some(Reason::NoCurrentState),
                format!("waits for the first answer of {} for {version}", self.who_looks()),
            ),
        }
    }

    pub(super) fn describe_looking(&self) -> Description<'static> {
        let is_missed = self.observed.misses() > 0;
        let reason = if is_missed { Some(Reason::FetchFailed) } else { self.work_reason() };
        let error = self.observed.error().map_or_else(String::new, |error| format!(": {error}"));
        let (after, who) = (self.after(), self.who_looks());
        self.waits_for_answer(
            reason,
            format!("{after}waits for {who} to tell how things are now{error}"),
        )
        .because(self.chain_end().map(|_| Because::ApplyEnded))
    }

    pub(super) fn describe_pending(&self) -> Description<'static> {
        let reason = (self.observed.misses() > 0).then_some(Reason::FetchFailed);
        self.waits_for_answer(reason, self.objects_in_words())
    }

    pub(super) fn describe_broken(&self) -> Description<'static> {
        let reason = Some(Reason::RuntimeObjectFailed);
        Description::new(Status::Failed, reason, self.objects_in_words(), WayOut::Look)
    }

    /// Nothing goes on before something was seen; and where looking fails again and again that is
    /// no progress, and somebody has to mend it. It goes on all the same, and an answer ends it.
    fn waits_for_answer(&self, reason: Option<Reason>, message: String) -> Description<'static> {
        let failures = self.observed.failures();
        if failures < FAILURES_UNTIL_FAILED {
            return waits_for_a_look(reason, message);
        }
        let who = self.who_looks();
        let message = format!(
            "{who} failed {failures} times in a row; {message}; {who} goes on by itself, and an \
             answer ends this"
        );
        let reason = Some(Reason::FetchFailed);
        Description { status: Status::Failed, ..waits_for_a_look(reason, message) }
    }

    fn objects_in_words(&self) -> String {
        let what = match self.observed.finding() {
            Finding::Pending(what) | Finding::Broken(what) => what.as_str(),
            Finding::Nothing | Finding::Clean | Finding::Work(_) => "",
        };
        format!("every object runs {}, but {what}", self.version_in_words())
    }

    /// What is said of a version that was seen as desired, and is looked at again.
    pub(crate) fn outdated_in_words(&self) -> &'static str {
        match (self.observed.is_of_other_commands(), self.observed.watch().is_some()) {
            (true, false) => {
                "was as desired before its commands changed; fetch looks again with the new ones"
            }
            (true, true) => "was as desired before its commands changed; the watch looks anew",
            (false, false) => "was as desired when fetch last looked; it looks again",
            (false, true) => {
                "was as desired when the watch last told; it looks anew, and no fetch is run"
            }
        }
    }

    /// Who tells how the world is, in the middle of a sentence.
    pub(crate) fn who_looks(&self) -> &'static str {
        self.desired().map_or("fetch", |desired| desired.observe.who_looks())
    }
}

/// Nothing goes on before something was seen.
fn waits_for_a_look(reason: Option<Reason>, message: String) -> Description<'static> {
    Description::new(Status::Converging, reason, message, WayOut::Look)
}
