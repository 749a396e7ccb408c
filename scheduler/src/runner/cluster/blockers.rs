//! What keeps a job from starting: what would end it, and how often it is told. Called by the job's
//! task; the words of the status are read in [`super::sight`], those of events in
//! [`super::events`].

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schema::id::JobId;
use schema::shown::beginning;
use schema::time::Timestamp;
use tokio::time::Instant;

use super::ask::RequestRefusal;
use super::faults::WatchRefusal;
use super::follow::UNSEEN_WITHIN;
use super::hidden::SecretFinder;
use super::lost_watch::LostWatch;
use super::rights;
use crate::compile::ClusterPlace;
use crate::runner::{self, News, RunnerEvent};

mod way_out;

pub(super) use way_out::WaitEnd;

/// Shortest time between two words about one job: the cluster puts the same thing in turns
/// (ErrImagePull, ImagePullBackOff), and each telling is a commit.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Most bytes of the cluster's words that are told. A scheduler of hundreds of nodes has long ones.
const WORDS_LIMIT_BYTES: usize = 1000;

/// What follows where nobody could look at a job of an earlier life of the daemon.
const NOBODY_KNOWS: &str =
    "nobody knows what became of its Pod; what its wrapper reports is kept until then";

/// What follows where a job was seen, and is not any more.
const NOBODY_SEES: &str = "nobody sees what becomes of it, but for what its wrapper reports";

/// What a job waits for that has not started, in the cluster's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartBlocker {
    /// For people.
    pub(super) why: String,
    /// What would end it.
    end: WaitEnd,
    /// Whether somebody may still cancel the job.
    may_cancel: bool,
    /// Whether it is so of a job that runs, too.
    pub(super) is_unseen: bool,
}

impl StartBlocker {
    /// The wait that a status or an event of this reason means, in the cluster's words.
    pub(super) fn said(reason: &str, why: String) -> Self {
        Self::new(WaitEnd::of(reason, &why), why)
    }

    /// A wait that this would end.
    pub(super) fn new(end: WaitEnd, why: String) -> Self {
        let why = beginning(&why, WORDS_LIMIT_BYTES);
        Self { why, end, may_cancel: true, is_unseen: false }
    }

    /// What would end it, as the end of "it ends when …".
    pub(super) fn ends_when(&self) -> String {
        self.end.words(self.may_cancel)
    }

    /// Whether another try makes sense when it did not end in time.
    pub(super) fn surroundings(&self) -> bool {
        self.end.is_of_the_surroundings()
    }

    /// What became of a job of an earlier life of the daemon cannot be looked at.
    pub(super) fn unseen(why: &str) -> Self {
        Self::lost(WaitEnd::ClusterAnswers, why, NOBODY_KNOWS, "")
    }

    /// The same, because of what the cluster says to whoever looks.
    pub(super) fn unlisted(lost: &LostWatch, place: &ClusterPlace) -> Self {
        Self::lost_for(lost, place, NOBODY_KNOWS)
    }

    /// What happens to a job cannot be seen any more.
    pub(super) fn unwatched(lost: &LostWatch, place: &ClusterPlace) -> Self {
        Self::lost_for(lost, place, NOBODY_SEES)
    }

    fn lost_for(lost: &LostWatch, place: &ClusterPlace, so: &str) -> Self {
        match &lost.refusal {
            None => {
                let why = format!("its cluster cannot be asked: {}", lost.why);
                Self::lost(WaitEnd::ClusterAnswers, &why, so, "")
            }
            Some(WatchRefusal::Unauthorized(why)) => {
                Self::lost(WaitEnd::CredentialsAccepted, why, so, "")
            }
            Some(WatchRefusal::Forbidden { verb, resource, said }) => {
                let (why, remedy) = rights::forbidden(place, verb, resource, said);
                Self::lost(WaitEnd::RightGiven, &why, so, &format!("; {remedy}"))
            }
        }
    }

    fn lost(end: WaitEnd, why: &str, so: &str, remedy: &str) -> Self {
        // A page of somebody who answers in the cluster's place may be long, and what to do comes
        // after it.
        let why = beginning(why, WORDS_LIMIT_BYTES / 2);
        Self { is_unseen: true, ..Self::new(end, format!("{why}, so {so}{remedy}")) }
    }

    /// It runs, and the cluster has not answered yet to its stop.
    pub(super) fn unanswered_stop() -> Self {
        let why = format!(
            "it was not asked to end yet: its cluster has not answered for {} s",
            UNSEEN_WITHIN.as_secs()
        );
        Self { is_unseen: true, ..Self::new(WaitEnd::StopTaken, why) }
    }

    /// It runs, and the cluster did not take its stop, which is made again every
    /// [`super::stop::STOP_AGAIN_EVERY`].
    pub(super) fn unstopped(refused: &RequestRefusal) -> Self {
        Self {
            is_unseen: true,
            ..Self::new(WaitEnd::StopTaken, format!("it was not asked to end: {}", refused.why()))
        }
    }

    /// A gate of what has not begun has shut, and the cluster did not take its deletion, which is
    /// made again every [`super::withdraw::LEAVE_EVERY`].
    pub(super) fn unwithdrawn(gate: &str, refused: &RequestRefusal) -> Self {
        let why = format!("it may not begin any more ({gate}), and is not deleted yet: ");
        Self::new(WaitEnd::DeletionTaken, format!("{why}{}", refused.why()))
    }

    /// The same of one that was asked to stop: that is made again by itself, and nobody has to
    /// cancel it once more.
    fn of_a_stopped(self) -> Self {
        if !self.end.or_by_cancelling() {
            return self;
        }
        let why = format!("it is not known to have been asked to end: {}", self.why);
        Self { why, may_cancel: false, ..self }
    }

    /// The cluster refuses or does not answer, and is asked again.
    pub(super) fn refused(why: &str) -> Self {
        Self::new(WaitEnd::quota(why).unwrap_or(WaitEnd::ClusterTakesIt), why.to_owned())
    }
}

/// Tells what a job waits for: at once, and then not too often.
#[derive(Debug)]
pub(super) struct Teller {
    news: News,
    job: JobId,
    /// When the job is given up.
    until: Timestamp,
    /// The secrets that nobody is told.
    pub(super) hidden: SecretFinder,
    said: Mutex<ToldWait>,
    is_stopped: AtomicBool,
}

#[derive(Debug)]
struct ToldWait {
    /// What was told last; `None` = that of an earlier life, which nobody here knows.
    told: Option<Option<StartBlocker>>,
    /// What is so.
    now: Option<StartBlocker>,
    next_at: Instant,
}

impl Teller {
    /// Of a job that is given up then. `is_new`: nothing was ever told of it.
    pub(super) fn new(
        news: News,
        job: JobId,
        until: Timestamp,
        is_new: bool,
        hidden: SecretFinder,
    ) -> Self {
        let said = ToldWait { told: is_new.then_some(None), now: None, next_at: Instant::now() };
        let is_stopped = AtomicBool::new(false);
        Self { news, job, until, hidden, said: Mutex::new(said), is_stopped }
    }

    /// Somebody asked it to stop.
    pub(super) fn note_stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// This is so now.
    pub(super) fn tell(&self, wait: Option<&StartBlocker>) {
        self.tell_at(wait, Instant::now());
    }

    fn tell_at(&self, wait: Option<&StartBlocker>, now: Instant) {
        let mut said = self.said.lock().expect("nobody panics with the lock");
        let is_stopped = self.is_stopped.load(Ordering::Relaxed);
        said.now = wait.cloned().map(|wait| if is_stopped { wait.of_a_stopped() } else { wait });
        if said.told.as_ref() == Some(&said.now) || now < said.next_at {
            return;
        }
        let wait = said.now.clone().map(|wait| runner::JobWait {
            why: self.hidden.hide(&wait.why),
            ends_when: wait.ends_when(),
            until: self.until,
            surroundings: wait.surroundings(),
            is_unseen: wait.is_unseen,
        });
        // A queue that is full has more important news; these words can wait.
        if self.news.try_send(RunnerEvent::Waits { job: self.job, wait }).is_ok() {
            said.told = Some(said.now.clone());
        }
        said.next_at = now + TELL_EVERY;
    }

    /// When something that was not told may be.
    pub(super) fn due(&self) -> Option<Instant> {
        let said = self.said.lock().expect("nobody panics with the lock");
        said.told.as_ref().is_some_and(|told| *told != said.now).then_some(said.next_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_a_character() {
        let wait = StartBlocker::new(WaitEnd::NodeHasRoom, "é".repeat(WORDS_LIMIT_BYTES));
        assert!(
            wait.why.len() <= WORDS_LIMIT_BYTES + '…'.len_utf8() && wait.why.ends_with("é…"),
            "{}",
            wait.why.len()
        );
    }

    #[test]
    fn words_are_told_at_once_and_then_not_too_often() {
        let (news, mut told) = tokio::sync::mpsc::channel(4);
        let teller = Teller::new(
            news,
            JobId::derive(&[b"x"]),
            Timestamp::from_millis(9),
            true,
            SecretFinder::default(),
        );
        let mut words = || {
            told.try_recv()
                .ok()
                .map(|told| matches!(told, RunnerEvent::Waits { wait: Some(_), .. }))
        };
        let wait = |why: &str| StartBlocker::new(WaitEnd::ImageCanBePulled, why.to_owned());
        let start = Instant::now() + TELL_EVERY;
        teller.tell_at(None, start);
        assert_eq!((words(), teller.due()), (None, None), "nothing was told, and nothing is");
        teller.tell_at(Some(&wait("a")), start);
        assert_eq!((words(), teller.due()), (Some(true), None));
        for why in ["b", "a", "b"] {
            teller.tell_at(Some(&wait(why)), start);
        }
        assert_eq!(words(), None);
        let due = teller.due().expect("b is not told yet");
        assert_eq!(due, start + TELL_EVERY);
        teller.tell_at(Some(&wait("b")), due);
        assert_eq!((words(), teller.due()), (Some(true), None));
        teller.tell_at(None, due + TELL_EVERY);
        assert_eq!(words(), Some(false));
    }
}
