//! What getInfo told, and when it is asked again. Nothing but people ever depends on it.

use schema::output::Info;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::is_zero;
use super::observed::half_way;

/// What getInfo told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct InfoState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told_at: Option<Timestamp>,
    /// Since when something else may have to be told: a release, an apply, a person's question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_zero")]
    failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    info: Vec<Info>,
}

impl InfoState {
    /// When it runs next; `None` while it does.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// It runs then, whatever was planned.
    pub(crate) fn due_at(&mut self, at: Timestamp) {
        self.due = Some(at);
    }

    /// It runs then, unless it is due anyway.
    pub(crate) fn due_by(&mut self, at: Option<Timestamp>) {
        self.due = self.due.or(at);
    }

    /// It runs now, for something else may have to be told.
    pub(crate) fn tell_anew(&mut self, now: Timestamp) {
        (self.due, self.other_since) = (Some(now), Some(now));
    }

    /// After which instant an answer must have been asked for to be one for a getInfo that starts
    /// now.
    pub(crate) fn fresh_after(&self, now: Timestamp) -> Option<Timestamp> {
        let half_way = self.told_at.map(|last| half_way(last, now));
        self.other_since.max(half_way)
    }

    /// The plan itself, for a clock that jumps.
    pub(crate) fn due_mut(&mut self) -> &mut Option<Timestamp> {
        &mut self.due
    }

    /// It runs now.
    pub(crate) fn started(&mut self) {
        self.due = None;
    }

    pub(crate) fn told(&mut self, info: Vec<Info>, at: Timestamp) {
        (self.info, self.told_at) = (info, Some(at));
        (self.failures, self.error, self.failed_at) = (0, None, None);
    }

    /// Nothing was told; gives how many times in a row.
    pub(crate) fn failed(&mut self, error: String, at: Timestamp) -> u32 {
        self.failures = self.failures.saturating_add(1);
        (self.error, self.failed_at) = (Some(error), Some(at));
        self.failures
    }

    /// What is wrong, and since when.
    pub(crate) fn error(&self) -> Option<(&str, Option<Timestamp>)> {
        self.error.as_deref().map(|error| (error, self.failed_at))
    }

    /// What was told last.
    pub(crate) fn info(&self) -> &[Info] {
        &self.info
    }
}
