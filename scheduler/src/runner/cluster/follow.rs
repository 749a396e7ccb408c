//! One job on a cluster, from its Job to its end.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use schema::id::JobId;
use schema::time::Timestamp;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ask::{Refused, ask, ask_telling};
use super::clusters::Cluster;
use super::job::JOB_LABEL;
use super::record::Record;
use super::sight::{Seen, Sight, Subject, look};
use super::waits::{Teller, Wait};
use super::watch::View;
use super::{Inner, told};
use crate::runner::Told;
use crate::runner::learned::{Learned, Never};

/// Who we are among those that change objects.
pub(super) const FIELD_MANAGER: &str = "pvn-scheduler";

/// How long a Job has no Pod, and a Pod no word of its node, before somebody asks why; and how often that is asked.
const POD_WITHIN: Duration = Duration::from_secs(3);
const NODE_WORD_WITHIN: Duration = Duration::from_secs(5);
const ASK_WHY_EVERY: Duration = Duration::from_secs(15);

/// How often the log of a job that runs and was never heard of is looked at for what its wrapper left there. Its wrapper writes
/// it after 10 s without an answer.
const LISTEN_EVERY: Duration = Duration::from_secs(12);

/// Longest wait for the end of a Job that was deleted because it did not start.
pub(super) const DELETED_WITHIN: Duration = Duration::from_secs(60);

/// How long the cluster may be away while a job is stopped or looked for, before that is told as unknown. With the wait for what
/// was deleted no more than the 120 s after which the engine calls a stopped job unknown.
pub(super) const AWAY_WITHIN: Duration = Duration::from_secs(60);

/// How long after its grace a Pod that was deleted may still be said to run, before its node counts as lost. A node needs some
/// seconds to write down what ended.
const NODE_WITHIN: Duration = Duration::from_secs(20);

/// Seconds that a Pod has after the second stop. Not 0: then it would be gone from the books before it is gone from its node.
const KILL_GRACE_S: u32 = 1;

/// A job that has been let go, or may have been.
pub(super) struct Follower {
    pub(super) inner: Arc<Inner>,
    pub(super) job: JobId,
    pub(super) record: Record,
    pub(super) cluster: Cluster,
    pub(super) teller: Teller,
    /// Whether it was stopped before it was followed.
    pub(super) is_stopped: bool,
    view: View,
    /// What is known already, so that there is nothing to follow.
    pub(super) known: Option<(Learned, bool)>,
}

/// How far it is.
struct Course {
    /// When it must have started, or be gone after it was deleted.
    deadline: Instant,
    /// When somebody is asked why nothing goes on.
    why_at: Instant,
    listen_at: Instant,
    /// When its node counts as lost.
    lost_at: Option<Instant>,
    /// What it waited for last.
    waits_for: Option<Wait>,
    /// What events said, and of which object.
    said: Option<(String, Wait)>,
    /// Whether its status does not say why it waits.
    is_silent: bool,
    had_pod: bool,
    started: bool,
    /// Whether it did not start in time.
    gave_up: bool,
    /// Whether its Job was deleted by us before it started.
    deleted: bool,
    /// Stops so far.
    asked: u32,
}

impl Course {
    fn new(deadline: Instant) -> Self {
        let now = Instant::now();
        Self {
            deadline,
            why_at: now + POD_WITHIN,
            listen_at: now + LISTEN_EVERY,
            lost_at: None,
            waits_for: None,
            said: None,
            is_silent: true,
            had_pod: false,
            started: false,
            gave_up: false,
            deleted: false,
            asked: 0,
        }
    }
}

impl Follower {
    pub(super) fn new(inner: Arc<Inner>, job: JobId, record: Record, cluster: Cluster, view: View, teller: Teller) -> Self {
        Self { inner, job, record, cluster, teller, is_stopped: false, view, known: None }
    }

    pub(super) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace)
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace)
    }

    pub(super) async fn ask<T, F: Future<Output = kube::Result<T>>>(
        &self,
        within: Duration,
        what: &str,
        request: impl FnMut() -> F,
    ) -> Result<T, Refused> {
        ask(&self.cluster, self.record.is_apply, Instant::now() + within, what, request).await
    }

    /// The same up to a deadline of the job's own beginning; what keeps it from there is told.
    pub(super) async fn ask_until<T, F: Future<Output = kube::Result<T>>>(
        &self,
        deadline: Instant,
        what: &str,
        request: impl FnMut() -> F,
    ) -> Result<T, Refused> {
        let tell = |why: &str| self.teller.tell(Some(&Wait::refused(why)));
        ask_telling(&self.cluster, self.record.is_apply, deadline, what, tell, request).await
    }

    /// Lets the Job's Pod be made. May be done twice. When the cluster does not answer nobody knows; then the watch will tell.
    pub(super) async fn let_go(&mut self, deadline: Instant) {
        if self.record.held {
            return;
        }
        let jobs = self.jobs();
        let patch = Patch::Merge(json!({"metadata": {"uid": self.record.uid}, "spec": {"suspend": false}}));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match self.ask_until(deadline, "starting its Job", || jobs.patch(&self.record.name, &params, &patch)).await {
            Ok(_) => {}
            Err(Refused::Now(why)) => tracing::warn!(job = %self.job, why, "nobody knows whether a Job was let go"),
            Err(refused) => {
                self.known = Some((Learned { never: Some(told(refused)), ..Learned::default() }, true));
                self.delete().await;
            }
        }
    }

    /// Deletes the Job, and with it everything that it owns.
    pub(super) async fn delete(&self) {
        let jobs = self.jobs();
        let params = DeleteParams::background();
        match self.ask(AWAY_WITHIN, "deleting its Job", || jobs.delete(&self.record.name, &params)).await {
            Ok(_) | Err(Refused::NotFound(_)) => {}
            Err(refused) => {
                tracing::warn!(job = %self.job, why = refused.why(), "a Job could not be deleted; it stays suspended or ends by its deadline")
            }
        }
    }

    pub(super) async fn has_no_pods(&self) -> bool {
        let pods = self.pods();
        let params = ListParams::default().labels(&format!("{JOB_LABEL}={}", self.job));
        self.ask(AWAY_WITHIN, "looking for its Pods", || pods.list(&params)).await.is_ok_and(|found| found.items.is_empty())
    }

    /// Follows the job to its end: what is known of it, and whether nothing of it is left.
    pub(super) async fn until_over(mut self, stops: &mut mpsc::Receiver<()>) -> (Learned, bool) {
        if let Some(known) = self.known.take() {
            return known;
        }
        let left_ms = self.record.start_by.since_ms(self.inner.clock.now()).max(0).unsigned_abs();
        let mut course = Course::new(Instant::now() + Duration::from_millis(left_ms));
        if self.is_stopped {
            self.stop(&mut course).await;
        }
        loop {
            let sight = self.view.sight.borrow_and_update().clone();
            match look(&sight, self.subject(course.deleted)) {
                Seen::Over { learned, gone } => {
                    // That its Job is gone and no Pod was seen says nothing of a Pod that is not seen yet.
                    let is_seen = !course.deleted || learned.never.is_none() || sight.pod.is_some();
                    if is_seen || self.has_no_pods().await {
                        return self.over(*learned, gone, course.waits_for.filter(|_| course.gave_up), &sight).await;
                    }
                }
                Seen::Running { since } => self.running(&mut course, &sight, since).await,
                Seen::Waiting(wait) => self.waiting(&mut course, &sight, wait),
            }
            let asks_why = course.is_silent && !course.started && !course.deleted;
            let untold = self.teller.due();
            let lost_at = course.lost_at;
            tokio::select! {
                changed = self.view.sight.changed() => if changed.is_err() {
                    return (lost("its cluster is not watched any more"), false);
                },
                Some(()) = stops.recv() => self.stop(&mut course).await,
                () = tokio::time::sleep_until(course.deadline), if !course.started || course.gave_up => {
                    if course.deleted {
                        return self.over(never_learned(&course), false, None, &sight).await;
                    }
                    (course.gave_up, course.deleted) = (true, true);
                    course.deadline = Instant::now() + DELETED_WITHIN;
                    self.delete().await;
                }
                () = tokio::time::sleep_until(lost_at.unwrap_or_else(Instant::now)), if lost_at.is_some() => {
                    let why = "its Pod was to end and did not: its node does not answer, and the command may still run there";
                    return self.over(lost(why), false, None, &sight).await;
                }
                () = tokio::time::sleep_until(course.listen_at), if course.started && !self.was_heard() => {
                    course.listen_at = Instant::now() + LISTEN_EVERY;
                    if let Some(pod) = &sight.pod
                        && let Some(report) = self.marked_line(pod).await
                    {
                        return (Learned { line: Some(report), ..Learned::default() }, true);
                    }
                }
                () = tokio::time::sleep_until(course.why_at), if asks_why => {
                    course.why_at = Instant::now() + ASK_WHY_EVERY;
                    course.said = self.why(&sight).await.map(|wait| (about(&sight).to_owned(), wait));
                }
                // It is told in the next round.
                () = tokio::time::sleep_until(untold.unwrap_or_else(Instant::now)), if untold.is_some() => {}
            }
        }
    }

    async fn running(&self, course: &mut Course, sight: &Sight, since: Option<Timestamp>) {
        if !std::mem::replace(&mut course.started, true) {
            let at = since.unwrap_or_else(|| self.inner.clock.now());
            let _nobody_listens_any_more = self.inner.news.send(Told::Started { job: self.job, at }).await;
        }
        let metadata = sight.pod.as_ref().map(|pod| &pod.metadata);
        if let Some(pod) = metadata.filter(|pod| pod.deletion_timestamp.is_some() && course.lost_at.is_none()) {
            let grace = pod.deletion_grace_period_seconds.unwrap_or_default().max(0).unsigned_abs();
            course.lost_at = Some(Instant::now() + Duration::from_secs(grace) + NODE_WITHIN);
        }
    }

    /// What it waits for, from its status or else from what its events said of the same object.
    fn waiting(&self, course: &mut Course, sight: &Sight, wait: Option<Wait>) {
        if !course.had_pod && sight.pod.is_some() {
            // A node that gets to work needs a moment.
            (course.had_pod, course.why_at) = (true, Instant::now() + NODE_WORD_WITHIN);
        }
        course.is_silent = wait.is_none();
        let said = course.said.as_ref().filter(|(name, _)| name == about(sight) && !name.is_empty()).map(|(_, wait)| wait.clone());
        let wait = wait.or(said);
        let was_seen = sight.job.is_some() || sight.pod.is_some();
        if was_seen && !course.started && !course.deleted {
            self.teller.tell(wait.as_ref());
        }
        course.waits_for = wait.or(course.waits_for.take());
    }

    /// Why nothing goes on although the status says nothing.
    async fn why(&self, sight: &Sight) -> Option<Wait> {
        let is_suspended = |job: &Job| job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
        if sight.pod.is_none() && sight.job.as_ref().is_some_and(is_suspended) {
            let by = if self.record.held { "by its own file" } else { "by somebody in the cluster" };
            return Some(Wait::new("Suspended", format!("Suspended: its Job is suspended {by}")));
        }
        match about(sight) {
            "" => None,
            name => self.warning(name).await,
        }
    }

    /// Whether its wrapper ever reached us.
    fn was_heard(&self) -> bool {
        self.inner.delivery.signs(self.job).is_some_and(|signs| signs.heard)
    }

    fn subject(&self, deleted: bool) -> Subject<'_> {
        Subject { container: &self.record.container, tries_again: self.record.tries_again, deleted }
    }

    /// The first time the Pod gets TERM, and KILL after its grace; the second time at once. A Job that has not started is deleted.
    async fn stop(&self, course: &mut Course) {
        course.asked += 1;
        if !course.started {
            if !std::mem::replace(&mut course.deleted, true) {
                course.deadline = Instant::now() + DELETED_WITHIN;
            }
            return self.delete().await;
        }
        let name = &self.record.name;
        let stopped = if course.asked == 1 {
            // The Job ends its Pods itself and makes no others, whatever its own file says; and it stays for people to look at.
            let jobs = self.jobs();
            let patch = Patch::Merge(json!({"metadata": {"uid": self.record.uid}, "spec": {"activeDeadlineSeconds": 1}}));
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            self.ask(AWAY_WITHIN, "stopping its Job", || jobs.patch(name, &params, &patch)).await.map(drop)
        } else {
            let pods = self.pods();
            let delete = DeleteParams::default().grace_period(KILL_GRACE_S);
            let params = ListParams::default().labels(&format!("{JOB_LABEL}={}", self.job));
            self.ask(AWAY_WITHIN, "killing its Pods", || pods.delete_collection(&delete, &params)).await.map(drop)
        };
        if let Err(refused) = stopped {
            tracing::warn!(job = %self.job, why = refused.why(), "a job on a cluster could not be stopped");
        }
    }

    /// The last word: what it waited for if it was given up, and the log where nothing was delivered.
    async fn over(&self, mut learned: Learned, gone: bool, waited_for: Option<Wait>, sight: &Sight) -> (Learned, bool) {
        if let (Some(never), Some(wait)) = (&mut learned.never, waited_for) {
            *never = Never { why: format!("it did not start in time: {}", wait.why), surroundings: wait.surroundings };
        }
        if let Some(why) = learned.lost.take() {
            learned.lost = Some(self.with_namespace(why).await);
        }
        let was_taken = |pod: &Pod| sight.pod_gone || pod.metadata.deletion_timestamp.is_some();
        if sight.pod.as_ref().is_some_and(was_taken) {
            self.end_suspended().await;
        }
        if let Some(pod) = sight.pod.as_ref().filter(|_| learned.exit.is_some() && !self.was_heard()) {
            learned = self.read_log(pod, learned).await;
        }
        (learned, gone)
    }

    /// A Job that was suspended while it ran lost its Pod. Whoever resumed it would run it a second time, unseen: it is deleted.
    async fn end_suspended(&self) {
        let jobs = self.jobs();
        self.cluster.throttle.pass(self.record.is_apply).await;
        let Ok(Some(job)) = jobs.get_opt(&self.record.name).await else { return };
        if job.uid() == self.record.uid && job.spec.is_some_and(|spec| spec.suspend == Some(true)) {
            self.delete().await;
        }
    }

    /// A Job that is gone with its namespace says so.
    async fn with_namespace(&self, why: String) -> String {
        let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        self.cluster.throttle.pass(self.record.is_apply).await;
        let name = &self.record.place.namespace;
        match namespaces.get_opt(name).await {
            Ok(None) => format!("{why}, with its namespace `{name}`"),
            Ok(Some(namespace)) if namespace.metadata.deletion_timestamp.is_some() => format!("{why}, with its namespace `{name}`"),
            _ => why,
        }
    }
}

/// What its events are about at present: its Pod, or else its Job.
fn about(sight: &Sight) -> &str {
    let name = sight.pod.as_ref().map(|pod| &pod.metadata).or(sight.job.as_ref().map(|job| &job.metadata));
    name.and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
}

pub(super) fn lost(why: &str) -> Learned {
    Learned { lost: Some(why.to_owned()), ..Learned::default() }
}

/// Its Job was deleted and something of it is still there: whether it ran in the last moment nobody knows.
fn never_learned(course: &Course) -> Learned {
    if !course.gave_up {
        return lost("it was stopped before it had started, and its Job or its Pod could not be deleted");
    }
    let why = course.waits_for.as_ref().map_or("nobody says why", |wait| wait.why.as_str());
    lost(&format!("it did not start in time ({why}), and its Job or its Pod could not be deleted"))
}
