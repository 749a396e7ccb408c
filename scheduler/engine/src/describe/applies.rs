//! What is said of an instance whose situation is its applies: one that runs, and how the last one
//! ended.

use schema::id::JobId;
use schema::status::{JobKind, Reason, Status};
use schema::time::Timestamp;

use super::{Because, Description, WayOut, stops_once_more};
use crate::approve::name_of;
use crate::state::{ApplyAttempts, ApplyEnd, State};

impl State {
    pub(super) fn describe_applying(&self) -> Description<'static> {
        let message = self.applying_in_words();
        Description::new(Status::Converging, self.work_reason(), message, WayOut::EndOfApply)
    }

    fn applying_in_words(&self) -> String {
        let Some(job) = self.main.as_deref() else { return String::new() };
        let version = self.version_in_words();
        let attempt =
            if job.attempt > 1 { format!(" (attempt {})", job.attempt) } else { String::new() };
        let does = match (&job.stop, job.started_at) {
            (Some(_), _) => "is being stopped",
            (None, Some(_)) => "runs",
            (None, None) => "is starting",
        };
        let no = self.approvals.first_no();
        if let Some(no) = no.filter(|_| job.version == version) {
            let (id, name) = (job.id, name_of(no));
            let who = no.votes.last().map_or("someone", |vote| vote.who.as_str());
            format!(
                "apply {id} of {version}{attempt} {does}, and no other follows: {who} rejected \
                 {name}; `pvnctl jobs cancel {id}` stops it"
            )
        } else if job.version == version {
            format!("apply {} of {version}{attempt} {does}", job.id)
        } else {
            format!("apply {} of {} {does}; {version} comes after its end", job.id, job.version)
        }
    }

    pub(super) fn describe_cancelled(&self) -> Description<'static> {
        let ended = self.apply_ended();
        let (message, way_out) = match self.unsettled {
            Some(job) => (
                format!(
                    "{ended}, but is not known to be gone and may still run; no apply starts \
                     until it is ({}), or until `pvnctl services retry` says that one may",
                    stops_once_more(job)
                ),
                WayOut::Gone(job),
            ),
            None => (
                format!("{ended}; a new release or `pvnctl services retry` tries again"),
                WayOut::PersonAgrees,
            ),
        };
        Description::new(Status::Failed, Some(Reason::Cancelled), message, way_out)
            .because([Because::ApplyEnded])
            .because(self.given_up().next().map(Because::Lingers))
    }

    pub(super) fn describe_unsettled(&self, job: JobId) -> Description<'static> {
        let kind = self.given_up_kind(job);
        let ended = match self.chain_end() {
            Some((ended, ..)) if ended == job => self.apply_ended(),
            Some(_) | None => format!("{kind} {job} was given up"),
        };
        let message = format!(
            "{ended}; it may still run, and no apply starts until it is known to be gone ({}), or \
             until `pvnctl services retry` says that one may",
            stops_once_more(job)
        );
        let reason = if kind == JobKind::Apply { Reason::ApplyFailed } else { Reason::FetchFailed };
        let is_newest = self.rollout.attempts().is_some_and(|attempts| attempts.job() == job);
        Description::new(Status::Failed, Some(reason), message, WayOut::Gone(job))
            .because(is_newest.then_some(Because::ApplyEnded))
            .because([Because::Lingers(job)])
    }

    /// Tried again then, or by a person alone.
    pub(super) fn describe_failed(&self, at: Option<Timestamp>) -> Description<'static> {
        let message = format!("{}; {}", self.apply_ended(), self.again_in_words(at));
        let way_out = at.map_or(WayOut::TriedAgain, WayOut::StillWork);
        Description::new(Status::Failed, Some(Reason::ApplyFailed), message, way_out)
            .because([Because::ApplyEnded])
    }

    /// Where nobody looks, an apply that may have failed is one that has.
    pub(super) fn describe_unknown(&self, at: Option<Timestamp>) -> Description<'static> {
        let Some(at) = at else { return self.describe_failed(None) };
        let message = format!(
            "{}; {} decides what is next; {}",
            self.apply_ended(),
            self.who_looks(),
            self.again_in_words(Some(at))
        );
        let reason = Some(Reason::ApplyFailed);
        Description::new(Status::Converging, reason, message, WayOut::Decided(at))
            .because([Because::ApplyEnded])
    }

    pub(super) fn describe_retrying(&self, at: Timestamp) -> Description<'static> {
        let message = format!("{}; next attempt after {at}", self.apply_ended());
        self.goes_on(message, WayOut::NextAttempt(at))
    }

    pub(super) fn describe_misfired(&self, at: Timestamp) -> Description<'static> {
        let message = format!("{}; next try after {at}", self.apply_ended());
        self.goes_on(message, WayOut::NextTry(at))
    }

    pub(super) fn describe_grace(&self, until: Timestamp) -> Description<'static> {
        let left = match self.chain_end() {
            Some((_, _, ApplyEnd::SucceededLeaving(left))) => format!("its apply {left}; "),
            Some(_) | None => String::new(),
        };
        if let Some(times) = self.without_effect() {
            let described = self.goes_on(
                format!("{}; {left}next apply after {until}", self.without_effect_in_words(times)),
                WayOut::EffectShows(until),
            );
            return described;
        }
        let message = format!(
            "{} is applied, and its effect has until {until} to show{}; {left}{}",
            self.version_in_words(),
            self.in_a_row(),
            self.what()
        );
        let described = self.goes_on(message, WayOut::EffectShows(until));
        match described.reason {
            // What was applied could not be taken into use: whoever waits for it need not.
            Some(Reason::RuntimeObjectFailed) => {
                Description { status: Status::Failed, ..described }
            }
            _ => described,
        }
    }

    /// After the end of an apply, by itself.
    fn goes_on(&self, message: String, way_out: WayOut<'static>) -> Description<'static> {
        Description::new(Status::Converging, self.work_reason(), message, way_out)
            .because([Because::ApplyEnded])
    }

    /// Job, attempt and end of the apply that ended last.
    pub(super) fn chain_end(&self) -> Option<(JobId, u32, &ApplyEnd)> {
        let attempts = self.rollout.attempts()?;
        Some((attempts.job(), attempts.attempt(), attempts.end()?))
    }

    /// Whether the last apply of what is desired went as nobody wished.
    pub(super) fn ended_badly(&self) -> bool {
        matches!(
            self.chain_end(),
            Some((_, _, ApplyEnd::Failed(_) | ApplyEnd::Unknown(_) | ApplyEnd::Cancelled(_)))
        )
    }

    /// How many applies in a row succeeded although there still is work, if that is no accident.
    pub(crate) fn without_effect(&self) -> Option<u32> {
        let is_seen = self.observed.is_fresh() && self.work().is_some();
        self.rollout.attempts().filter(|_| is_seen)?.without_effect()
    }

    /// That so many had none.
    pub(crate) fn without_effect_in_words(&self, times: u32) -> String {
        let (version, who, what) = (self.version_in_words(), self.who_looks(), self.what());
        format!(
            "{version} was applied {times} times in a row, each apply succeeded, and {who} still \
             sees work: what apply does and what {who} looks for are not the same; {what}"
        )
    }

    /// How many applies there were in a row, as a part of a sentence about the last.
    fn in_a_row(&self) -> String {
        self.rollout.attempts().map_or_else(String::new, ApplyAttempts::in_a_row_in_words)
    }

    pub(super) fn apply_ended(&self) -> String {
        let version = self.version_in_words();
        let others = self.rollout.attempts().map_or("", ApplyAttempts::other_commands_in_words);
        let in_a_row = self.in_a_row();
        match self.chain_end() {
            Some((job, attempt, end)) => {
                let attempt =
                    if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
                format!("apply {job} of {version}{others} {}{attempt}{in_a_row}", end.in_words())
            }
            None => format!("apply of {version} ended"),
        }
    }

    /// The same before what follows, where one ended.
    pub(super) fn after(&self) -> String {
        self.chain_end().map_or_else(String::new, |_| format!("{}; ", self.apply_ended()))
    }

    fn again_in_words(&self, at: Option<Timestamp>) -> String {
        let Some(at) = at else {
            return "a new release or `pvnctl services retry` tries again".to_owned();
        };
        let again = format!("tried again after {at} if {} still sees work", self.who_looks());
        match self.conditions(at) {
            Some(conditions) => format!("{again}, once {conditions}"),
            None => format!("{again}, or at once with `pvnctl services retry`"),
        }
    }
}
