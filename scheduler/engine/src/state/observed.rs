//! What is known of the world: what was seen last and what it means, and when it is looked at
//! again. How fresh that is, and what a look that brought nothing leaves, is decided here.

use schema::id::JobId;
use schema::output::RuntimeObject;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BrokenInvariant, Finding, Matched, Work, is_false, is_zero};
use crate::observation::Blame;

mod watch;

pub(crate) use watch::WatchState;

/// What is known of the world, and when it is looked at again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ObservedState {
    /// When the next fetch is due. What is told by a watch is due at no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered_at: Option<Timestamp>,
    /// Looks in a row that brought no answer, whoever is to blame.
    #[serde(default, skip_serializing_if = "is_zero")]
    misses: u32,
    /// When the first of those ended, or since when nothing was heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missed_since: Option<Timestamp>,
    /// Of those, failures of the command in a row: what the retry policy counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    failures: u32,
    /// Of those, in a row not even started through no fault of the command.
    #[serde(default, skip_serializing_if = "is_zero")]
    misfires: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objects: Vec<RuntimeObject>,
    finding: Finding,
    /// Since when every answer was of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// Why to doubt it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
    /// Whether the finding is younger than the last apply (and than a resume, a retry, a change of
    /// the commands). Only fresh work is applied.
    #[serde(default, skip_serializing_if = "is_false")]
    fresh: bool,
    /// A fetch that was under way when somebody wanted to know how it is now: its answer is of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of_before: Option<JobId>,
    /// That fetch began since somebody had wanted to know before: it is young enough to apply what
    /// it finds, or who asks more often than a fetch lasts would keep every apply away.
    #[serde(default, skip_serializing_if = "is_false")]
    of_before_is_fresh: bool,
    /// Whether somebody wanted to know how it is now, and no fetch since then has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    asked: bool,
    /// Whether the commands have changed since a fetch last answered.
    #[serde(default, skip_serializing_if = "is_false")]
    other_commands: bool,
    /// The newest fetch that found what is desired, of whatever release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matched: Option<Matched>,
    /// The watch that is wanted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watch: Option<WatchState>,
    /// Since when nothing was heard of a watch, while that is what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    silent_since: Option<Timestamp>,
}

// ---- what is known ----

impl ObservedState {
    /// When the next fetch is due; `None` while one runs, and where a watch tells.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// When the world was last seen.
    pub(crate) fn answered_at(&self) -> Option<Timestamp> {
        self.answered_at
    }

    /// Looks in a row that brought no answer, whoever is to blame.
    pub(crate) fn misses(&self) -> u32 {
        self.misses
    }

    /// When the first of those ended, or since when nothing was heard.
    pub(crate) fn missed_since(&self) -> Option<Timestamp> {
        self.missed_since
    }

    /// Of those, failures of the command in a row: what the retry policy counts.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Of those, in a row not even started through no fault of the command.
    pub(crate) fn misfires(&self) -> u32 {
        self.misfires
    }

    /// Why nothing was seen last; `None` once something was.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The objects that were last seen.
    pub(crate) fn objects(&self) -> &[RuntimeObject] {
        &self.objects
    }

    pub(crate) fn finding(&self) -> &Finding {
        &self.finding
    }

    /// The work that was found, if there is some.
    pub(crate) fn work(&self) -> Option<&Work> {
        match &self.finding {
            Finding::Work(work) => Some(work),
            Finding::Nothing | Finding::Clean | Finding::Pending(_) | Finding::Broken(_) => None,
        }
    }

    /// Since when every answer was of the kind of the finding.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Why a person should doubt the finding.
    pub(crate) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// Whether the finding is younger than all that could have changed it: only fresh work is
    /// applied.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Whether somebody wanted to know how it is now, and no fetch since then has ended.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked
    }

    /// Whether the commands have changed since the last answer.
    pub(crate) fn is_of_other_commands(&self) -> bool {
        self.other_commands
    }

    /// Whether what it stands by was seen before something that could have changed it. Work that
    /// was is looked at again before anything happens anyway.
    pub(crate) fn is_outdated(&self) -> bool {
        let is_stood_by = match self.finding {
            Finding::Clean | Finding::Pending(_) | Finding::Broken(_) => true,
            Finding::Nothing | Finding::Work(_) => false,
        };
        !self.fresh && (self.other_commands || is_stood_by)
    }

    /// After which instant an answer must have been asked for to be one for a fetch that starts
    /// now: half-way since the last one, so that each tells something new. `None` where it is asked
    /// because something happened: a release, an apply, a failure, a person's question.
    pub(crate) fn fresh_after(&self, now: Timestamp) -> Option<Timestamp> {
        let is_routine = self.fresh && !self.asked && self.error.is_none();
        self.answered_at.filter(|_| is_routine).map(|last| half_way(last, now))
    }

    /// Whether this fetch, which is under way, began since somebody wanted to know how it is, or
    /// counts as if it had.
    pub(crate) fn answers_whoever_asked(&self, fetch: JobId) -> bool {
        self.asked && (self.of_before != Some(fetch) || self.of_before_is_fresh)
    }

    /// `is_watched`: whether a watch is wanted.
    pub(crate) fn check(&self, is_watched: bool) -> Result<(), BrokenInvariant> {
        match is_watched == self.watch.is_some() {
            true => Ok(()),
            false => Err(BrokenInvariant::WatchUnwanted),
        }
    }
}

// ---- when it is looked at again ----

impl ObservedState {
    /// It is fetched then, whatever was planned.
    pub(crate) fn due_at(&mut self, at: Timestamp) {
        self.due = Some(at);
    }

    /// It is fetched then, unless it is due anyway.
    pub(crate) fn due_by(&mut self, at: Option<Timestamp>) {
        self.due = self.due.or(at);
    }

    /// No fetch is due: one runs, an apply does, or a watch tells.
    pub(crate) fn cancel_due(&mut self) {
        self.due = None;
    }

    /// The plan itself, for a clock that jumps.
    pub(crate) fn due_mut(&mut self) -> &mut Option<Timestamp> {
        &mut self.due
    }

    /// What is known may not be so any more.
    pub(crate) fn outdate(&mut self) {
        self.fresh = false;
    }

    /// A fetch is due now, and the one that is under way is of before.
    pub(crate) fn fetch_now(&mut self, under_way: Option<JobId>, now: Timestamp) {
        self.due = Some(now);
        (self.of_before, self.of_before_is_fresh) = (under_way, false);
    }

    /// Whether the fetch that is of before counts all the same for what is applied.
    pub(crate) fn count_what_is_of_before(&mut self, counts: bool) {
        self.of_before_is_fresh = counts;
    }

    /// Somebody wants to know how it is now, where anybody looks.
    pub(crate) fn ask(&mut self, is_looked_at: bool) {
        self.asked = is_looked_at;
    }

    /// The commands are others from now on.
    pub(crate) fn commands_changed(&mut self) {
        self.fresh = false;
        self.other_commands = self.finding != Finding::Nothing;
        // That those of before failed says nothing about these.
        self.failures = 0;
    }

    /// A person tries again: what was in the way so far is not counted.
    pub(crate) fn forget_failures(&mut self) {
        (self.failures, self.misfires) = (0, 0);
    }

    /// Nothing is known of what is desired now.
    pub(crate) fn anew(&mut self) {
        *self = Self { matched: self.matched.take(), ..Self::default() };
    }

    /// The same for another release in the same place: what is there is still there.
    pub(crate) fn take_up(&mut self) {
        let (objects, answered_at) = (std::mem::take(&mut self.objects), self.answered_at);
        self.anew();
        (self.objects, self.answered_at) = (objects, answered_at);
    }
}

// ---- what is seen ----

impl ObservedState {
    /// Something was seen then, whatever it means: nothing is in the way of seeing any more.
    fn answered(&mut self, at: Timestamp) {
        self.answered_at = Some(at);
        (self.misses, self.failures, self.misfires) = (0, 0, 0);
        (self.missed_since, self.silent_since, self.error) = (None, None, None);
    }

    /// Something was seen while an apply runs: it is on its way, and decides nothing. `objects`:
    /// where it was objects.
    pub(crate) fn glimpse(&mut self, objects: Option<Vec<RuntimeObject>>, at: Timestamp) {
        self.answered(at);
        if let Some(objects) = objects {
            self.objects = objects;
        }
    }

    /// Something was seen, by this fetch or by a watch; [`Self::conclude`] says what it means.
    pub(crate) fn see(
        &mut self,
        fetch: Option<JobId>,
        objects: Vec<RuntimeObject>,
        doubt: Option<String>,
        at: Timestamp,
    ) {
        self.answered(at);
        let is_of_before = fetch.is_some() && self.of_before == fetch;
        self.fresh = !is_of_before || self.of_before_is_fresh;
        self.other_commands = false;
        (self.objects, self.doubt) = (objects, doubt);
    }

    pub(crate) fn conclude(&mut self, finding: Finding, at: Timestamp) {
        let was = std::mem::replace(&mut self.finding, finding);
        if !was.is_as(&self.finding) || self.since.is_none() {
            self.since = Some(at);
        }
    }

    /// Nothing was seen: nothing that was known changes. Gives whether that was the first time in
    /// a row. `error`: a whole sentence.
    pub(crate) fn miss(&mut self, error: String, blame: Blame, at: Timestamp) -> bool {
        self.misses = self.misses.saturating_add(u32::from(blame != Blame::Person));
        let is_first = self.misses == 1;
        if is_first {
            self.missed_since.get_or_insert(at);
        }
        self.error = Some(error);
        match blame {
            Blame::Command => self.failures = self.failures.saturating_add(1),
            Blame::Surroundings => self.misfires = self.misfires.saturating_add(1),
            Blame::Person => {}
        }
        is_first
    }

    /// A fetch has ended, or a watch has told: whoever asked has the answer, unless that fetch is
    /// of before the question.
    pub(crate) fn told(&mut self, fetch: Option<JobId>) {
        self.asked &= match fetch {
            Some(fetch) => self.of_before.take() == Some(fetch),
            None => false,
        };
    }

    /// A fetch found what is desired.
    pub(crate) fn matched_by(&mut self, matched: Matched) {
        self.matched = Some(matched);
    }

    /// The next fetch's plan takes the place of this one, also where its fingerprint is the same
    /// and people have said yes to it.
    pub(crate) fn take_next_plan(&mut self) {
        if let Finding::Work(work) = &mut self.finding {
            work.stale_plan = true;
        }
    }
}

/// The instant in the middle; `from` where that is later, as after a clock was set back.
pub(super) fn half_way(from: Timestamp, to: Timestamp) -> Timestamp {
    from.plus(to.since(from) / 2)
}

#[cfg(test)]
mod tests;
