//! The watch that tells how the world is: which generation is wanted, and whether it is heard of.

use std::time::Duration;

use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ObservedState, is_false};

/// What is known of the watch itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchState {
    heard_at: Timestamp,
    stale_at: Timestamp,
    /// Whether this generation has told anything that counted.
    #[serde(default, skip_serializing_if = "is_false")]
    is_answered: bool,
}

impl WatchState {
    /// When it was last heard of, or began.
    pub(crate) fn heard_at(&self) -> Timestamp {
        self.heard_at
    }

    /// When it has been silent for too long.
    pub(crate) fn stale_at(&self) -> Timestamp {
        self.stale_at
    }
}

impl ObservedState {
    /// The watch that is wanted now.
    pub(crate) fn watch(&self) -> Option<&WatchState> {
        self.watch.as_ref()
    }

    /// Since when nothing was heard of it, while that is what is wrong.
    pub(crate) fn silent_since(&self) -> Option<Timestamp> {
        self.silent_since
    }

    /// Another generation begins, which may be silent for so long; none where none is wanted.
    pub(crate) fn begin_watch(&mut self, fresh_for: Option<Duration>, now: Timestamp) {
        self.watch = fresh_for.map(|fresh_for| WatchState {
            heard_at: now,
            stale_at: now.plus(fresh_for),
            is_answered: false,
        });
    }

    /// Whether nothing was heard of this generation yet, and that not for too long.
    pub(crate) fn watch_is_young(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| !watch.is_answered) && self.silent_since.is_none()
    }

    /// The watch was heard of.
    pub(crate) fn heard(&mut self, fresh_for: Option<Duration>, is_answer: bool, now: Timestamp) {
        if let (Some(watch), Some(fresh_for)) = (&mut self.watch, fresh_for) {
            (watch.heard_at, watch.stale_at) = (now, now.plus(fresh_for));
            watch.is_answered |= is_answer;
        }
        self.silent_since = None;
    }

    /// Where nothing was heard for as long as what was told counts: what is known is out of date,
    /// and whoever asked is not told. Gives since when.
    pub(crate) fn fall_silent(&mut self, fresh_for: Duration, now: Timestamp) -> Option<Timestamp> {
        let watch = self.watch.as_mut().filter(|watch| watch.stale_at <= now)?;
        watch.stale_at = now.plus(fresh_for);
        let heard_at = watch.heard_at;
        self.silent_since.get_or_insert(heard_at);
        (self.fresh, self.asked) = (false, false);
        Some(heard_at)
    }

    /// When the watch has been silent for too long, for a clock that jumps.
    pub(crate) fn stale_at_mut(&mut self) -> Option<&mut Timestamp> {
        self.watch.as_mut().map(|watch| &mut watch.stale_at)
    }

    /// No watch is wanted any more.
    pub(crate) fn end_watch(&mut self) {
        self.watch = None;
    }

    /// Nor is it missed that one was silent.
    pub(crate) fn forget_watch(&mut self) {
        (self.watch, self.silent_since) = (None, None);
    }
}
