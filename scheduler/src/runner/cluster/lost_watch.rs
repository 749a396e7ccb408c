//! A watch that is broken: since when, and what is said of it. Made by `faults` and `watch`, kept
//! with what a job sees.

use std::time::Duration;

use tokio::time::Instant;

use super::faults::WatchRefusal;
use super::follow::UNSEEN_WITHIN;

/// Shortest time between two reasons for which nothing is seen: each is told of every job, and
/// telling is a commit.
const OTHER_WORDS_EVERY: Duration = Duration::from_secs(60);

/// A watch that is broken and was not mended by a list yet.
#[derive(Debug, Clone)]
pub(super) struct LostWatch {
    /// When it broke.
    pub(super) since: Instant,
    /// Whether a list that was to mend it came to nothing, or takes long: until then most of them
    /// are mended unseen.
    pub(super) is_unlisted: bool,
    /// What happened last, for people; of a cluster that fails in ever other words those of a
    /// while ago.
    pub(super) why: String,
    /// Since when that is said.
    pub(super) said_at: Instant,
    /// What the cluster refused, if that is why.
    pub(super) refusal: Option<WatchRefusal>,
}

impl LostWatch {
    /// A list that was begun then and takes long.
    pub(super) fn slow(since: Instant) -> Self {
        let why = format!("it has not answered for {} s", UNSEEN_WITHIN.as_secs());
        Self { since, said_at: Instant::now(), is_unlisted: true, why, refusal: None }
    }

    /// When people are told of it, if it lasts so long.
    pub(super) fn told_at(&self) -> Instant {
        self.since + UNSEEN_WITHIN
    }

    /// What is known of it after another loss.
    pub(super) fn after(self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let keeps_words = match (before.is_unlisted, self.is_unlisted) {
            // Why nothing is seen is what the list says; what broke the watch it would have mended.
            (false, true) => false,
            (true, false) => true,
            // A page with a number of its own each time would be told each time, of every job.
            _ => {
                self.said_at < before.said_at + OTHER_WORDS_EVERY
                    && self.refusal.is_some() == before.refusal.is_some()
            }
        };
        let is_unlisted = self.is_unlisted || before.is_unlisted;
        let said = if keeps_words || self.why == before.why { before.clone() } else { self };
        Self { since: before.since, is_unlisted, ..said }
    }
}
