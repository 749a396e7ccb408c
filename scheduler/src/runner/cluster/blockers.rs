//! What keeps a job from starting: what would end it, what the events of its Job or Pod say where
//! the status says nothing, and how often it is told. Called by the job's task; the words of the
//! status itself are read in [`super::sight`].
//!
//! Events are asked for, not watched: only a job that waits without saying why needs them, and a
//! namespace has many.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::ListParams;
use schema::id::JobId;
use schema::shown::beginning;
use schema::time::Timestamp;
use tokio::time::Instant;

use super::ask::RequestRefusal;
use super::faults::WatchRefusal;
use super::follow::{JobFollower, UNSEEN_WITHIN};
use super::hidden::SecretFinder;
use super::lost_watch::LostWatch;
use super::rights;
use super::sight::event_words;
use crate::compile::ClusterPlace;
use crate::runner::{self, News, RunnerEvent};

/// Shortest time between two words about one job: the cluster puts the same thing in turns
/// (ErrImagePull, ImagePullBackOff), and each telling is a commit.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Most bytes of the cluster's words that are told. A scheduler of hundreds of nodes has long ones.
const WORDS_LIMIT_BYTES: usize = 1000;

/// Most events of one object that are looked at.
const EVENTS_LIMIT: u32 = 50;

/// What follows where nobody could look at a job of an earlier life of the daemon.
const NOBODY_KNOWS: &str =
    "nobody knows what became of its Pod; what its wrapper reports is kept until then";

/// What follows where a job was seen, and is not any more.
const NOBODY_SEES: &str = "nobody sees what becomes of it, but for what its wrapper reports";

/// What else ends a wait for a cluster that does not let us look. Also in the words of [`way_out`].
const OR_CANCELLED: &str = ", or when somebody cancels the job";

/// What a job waits for that has not started, in the cluster's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartBlocker {
    /// For people.
    pub(super) why: String,
    /// What would end it, as the end of "it ends when …".
    pub(super) ends_when: &'static str,
    /// Whether it is so of a job that runs, too.
    pub(super) is_unseen: bool,
    /// Whether another try may find it otherwise: room on a node, say, but not the name of an
    /// image.
    pub(super) surroundings: bool,
}

impl StartBlocker {
    /// The wait that a status or an event of this reason means.
    pub(super) fn new(reason: &str, why: String) -> Self {
        let (ends_when, surroundings) = way_out(reason, &why);
        Self { why: beginning(&why, WORDS_LIMIT_BYTES), ends_when, surroundings, is_unseen: false }
    }

    /// What became of a job of an earlier life of the daemon cannot be looked at.
    pub(super) fn unseen(why: &str) -> Self {
        Self::lost("Unseen", why, NOBODY_KNOWS, "")
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
                Self::lost("Unseen", &format!("its cluster cannot be asked: {}", lost.why), so, "")
            }
            Some(WatchRefusal::Unauthorized(why)) => Self::lost("Unauthorized", why, so, ""),
            Some(WatchRefusal::Forbidden { verb, resource, said }) => {
                let (why, remedy) = rights::forbidden(place, verb, resource, said);
                Self::lost("Unpermitted", &why, so, &format!("; {remedy}"))
            }
        }
    }

    fn lost(reason: &str, why: &str, so: &str, remedy: &str) -> Self {
        // A page of somebody who answers in the cluster's place may be long, and what to do comes
        // after it.
        let why = beginning(why, WORDS_LIMIT_BYTES / 2);
        Self { is_unseen: true, ..Self::new(reason, format!("{why}, so {so}{remedy}")) }
    }

    /// It runs, and the cluster has not answered yet to its stop.
    pub(super) fn unanswered_stop() -> Self {
        let why = format!(
            "it was not asked to end yet: its cluster has not answered for {} s",
            UNSEEN_WITHIN.as_secs()
        );
        Self { is_unseen: true, ..Self::new("Unstopped", why) }
    }

    /// It runs, and the cluster did not take its stop, which is made again every
    /// [`super::stop::STOP_AGAIN_EVERY`].
    pub(super) fn unstopped(refused: &RequestRefusal) -> Self {
        Self {
            is_unseen: true,
            ..Self::new("Unstopped", format!("it was not asked to end: {}", refused.why()))
        }
    }

    /// A gate of what has not begun has shut, and the cluster did not take its deletion, which is
    /// made again every [`super::withdraw::LEAVE_EVERY`].
    pub(super) fn unwithdrawn(gate: &str, refused: &RequestRefusal) -> Self {
        let why = format!("it may not begin any more ({gate}), and is not deleted yet: ");
        Self::new("Unwithdrawn", format!("{why}{}", refused.why()))
    }

    /// The same of one that was asked to stop: that is made again by itself, and nobody has to
    /// cancel it once more.
    fn of_a_stopped(self) -> Self {
        match self.ends_when.strip_suffix(OR_CANCELLED) {
            Some(ends_when) => {
                let why = format!("it is not known to have been asked to end: {}", self.why);
                Self { why, ends_when, ..self }
            }
            None => self,
        }
    }

    /// The cluster refuses or does not answer, and is asked again.
    pub(super) fn refused(why: &str) -> Self {
        let reason = if why.contains("exceeded quota") { "FailedCreate" } else { "Refused" };
        Self { surroundings: true, ..Self::new(reason, why.to_owned()) }
    }
}

/// What would end a wait, and whether another try makes sense when it did not end in time.
fn way_out(reason: &str, why: &str) -> (&'static str, bool) {
    match reason {
        "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" | "ImageInspectError" => {
            ("the image can be pulled: look at its name, the registry and the pull secret", false)
        }
        "ErrImageNeverPull" => {
            ("the image is on the node, from which alone it may be taken", false)
        }
        "InvalidImageName" => ("a release with a legal image name takes its place", false),
        "CreateContainerConfigError"
            if why.contains("runAsNonRoot")
                || why.contains("non-root")
                || why.contains("run as root") =>
        {
            (
                "its image has a user by number, or `runAsUser` in its `securityContext` says one",
                false,
            )
        }
        "CreateContainerConfigError" => {
            ("the Secret or ConfigMap that it names is there, with that key", false)
        }
        "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => {
            ("the volume can be mounted: make what it names", false)
        }
        "Unschedulable" => ("a node has room for it", true),
        "SchedulingGated" => ("its scheduling gates are removed", true),
        "Suspended" => ("somebody resumes its Job", true),
        // Of how many there may be, be they over or not.
        "FailedCreate"
            if why.contains("exceeded quota")
                && ["count/", "secrets="].iter().any(|counted| why.contains(counted)) =>
        {
            ("older Jobs are removed, which their Secrets go with, or the quota is raised", true)
        }
        "FailedCreate" if why.contains("exceeded quota") => {
            ("other Pods end or the quota is raised", true)
        }
        "FailedCreate" if why.contains("not found") => ("what it names is made", false),
        "FailedCreate" if why.contains("forbidden") || why.contains("denied") => {
            ("the namespace's policy admits its Pod", false)
        }
        "FailedCreate" => ("its Pod can be made", true),
        "Refused" => ("the cluster answers and takes it", true),
        "Unpermitted" => {
            ("the scheduler's account has this right, or when somebody cancels the job", true)
        }
        "Unauthorized" => (
            "the kubeconfig gives credentials that the cluster accepts, or when somebody cancels \
             the job",
            true,
        ),
        "Unseen" => ("the cluster answers, or when somebody cancels the job", true),
        "Unstopped" => (
            "the cluster takes the stop, which is tried again every 5 s, or it ends by itself",
            true,
        ),
        "Unwithdrawn" => (
            "the cluster takes the deletion of its Job, which is tried again every 3 s, or its \
             gates are open again",
            true,
        ),
        "InitRunning" => ("it has ended", false),
        "CrashLoopBackOff" => ("its next try starts", false),
        "FailedCreatePodSandBox" | "FailedKillPod" | "NetworkNotReady" => {
            ("its node can start Pods again", true)
        }
        _ => ("its node can start its container", false),
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
            ends_when: wait.ends_when.to_owned(),
            until: self.until,
            surroundings: wait.surroundings,
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

impl JobFollower {
    /// Why nothing goes on with an object, in the words of whoever cannot go on: the newest warning
    /// about it.
    pub(super) async fn warning(&self, name: &str, pod: Option<&Pod>) -> Option<StartBlocker> {
        let events: Api<Event> =
            Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace);
        let params = ListParams::default()
            .fields(&format!("involvedObject.name={name},type=Warning"))
            .limit(EVENTS_LIMIT);
        self.cluster.throttle.pass(self.record.is_apply).await;
        // Events are for people; without them nobody is worse off than before.
        let found = events.list(&params).await.ok()?;
        // A Pod that waits for a node says so in its status; one that has its node does so no more.
        let told = found
            .items
            .into_iter()
            .filter(|event| event.reason.as_deref() != Some("FailedScheduling"));
        let event = told.max_by_key(|event| {
            event
                .last_timestamp
                .as_ref()
                .map(|at| at.0)
                .or(event.event_time.as_ref().map(|at| at.0))
        })?;
        let (reason, message) =
            (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
        let said = event_words(pod, event.involved_object.field_path.as_deref(), &reason, &message);
        Some(StartBlocker::new(&reason, said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_a_character() {
        let wait = StartBlocker::new("Unschedulable", "é".repeat(WORDS_LIMIT_BYTES));
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
        let wait = |why: &str| StartBlocker::new("ErrImagePull", why.to_owned());
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
