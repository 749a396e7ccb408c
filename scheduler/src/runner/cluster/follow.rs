//! One job on a cluster, from its Job to its end: what its task has, and what it notes and tells.
//! Its rounds are in [`super::rounds`].
//!
//! What always holds: nothing is done about a job because of a deadline before everything that the
//! cluster has of it was listed once; a job that is known to have started is never told as one that
//! did not.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PatchParams;
use schema::id::JobId;
use schema::time::Timestamp;
use tokio::time::Instant;

use super::ClusterInner;
use super::ask::{Asking, RequestRefusal, ask};
use super::blockers::{StartBlocker, Teller, WaitEnd};
use super::clusters::Cluster;
use super::course::Course;
use super::events::{began, warning};
use super::hidden::SecretFinder;
use super::leave::May;
use super::let_go::is_suspended;
use super::one_pod::grace;
use super::own::OwnObjects;
use super::record::Record;
use super::sight::tries::{PodAttempts, tried};
use super::sight::{Sight, SightSubject, asked_to_end, by_another_clock};
use super::watch::JobView;
use crate::runner::RunnerEvent;
use crate::runner::evidence::OutcomeEvidence;

/// Who we are among those that change objects.
pub(super) const FIELD_MANAGER: &str = "pvn-scheduler";

/// What goes with a change of an object that is there.
pub(super) fn as_ours() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// How long a Job has no Pod, and a Pod no word of its node, before somebody asks why.
pub(super) const POD_WITHIN: Duration = Duration::from_secs(3);
const NODE_WORD_WITHIN: Duration = Duration::from_secs(5);

/// How often the log of a job that runs and is not heard of, or not any more, is looked at for what
/// its wrapper left there. Its wrapper writes it after 10 s without an answer.
pub(super) const LISTEN_EVERY: Duration = Duration::from_secs(12);

/// Longest wait for the end of a Job that was deleted because it did not start.
pub(super) const DELETED_WITHIN: Duration = Duration::from_secs(60);

/// How long the cluster may be away while a job is stopped or looked for, before that is told as
/// unknown. With the wait for what was deleted no more than the 120 s after which the engine calls
/// a stopped job unknown.
pub(super) const AWAY_WITHIN: Duration = Duration::from_secs(60);

/// How long after its grace a Pod that was deleted may still be said to run, before its node counts
/// as lost. A node needs some seconds to write down what ended.
pub(super) const NODE_WITHIN: Duration = Duration::from_secs(20);

/// How long the watch of the Pods may be behind that of the Jobs and behind a list: what is to be
/// told as never started, or as gone, must not be seen to run for so long.
pub(super) const BEHIND_WITHIN: Duration = Duration::from_secs(2);

/// How long the cluster may leave it open what became of a job of an earlier life of the daemon,
/// before people are told.
pub(super) const UNSEEN_WITHIN: Duration = Duration::from_secs(5);

/// How long a job of an earlier life of the daemon is listened to before its time ends it. Source:
/// docs/convergence.md, rule 13. The engine's own deadline for it is no later than this long after
/// ours.
pub(super) const HEARD_OUT_FOR: Duration = Duration::from_secs(60);

/// A job that has been let go, or may have been.
pub(super) struct JobFollower {
    pub(super) inner: Arc<ClusterInner>,
    pub(super) job: JobId,
    pub(super) record: Record,
    pub(super) cluster: Cluster,
    pub(super) teller: Teller,
    /// Whether it was stopped before it was followed.
    pub(super) is_stopped: bool,
    /// Whether nobody knows that its Job was let go, so that this is to be found out.
    pub(super) is_unsure: bool,
    /// With `is_unsure`: why that cannot be found out.
    pub(super) unsure_why: Option<StartBlocker>,
    /// Whether its Job was deleted while nobody watched, or is since it was found suspended, and
    /// Pods of it were still there.
    pub(super) is_orphaned: bool,
    /// Its Job as it was found, suspended by somebody since it was let go.
    pub(super) paused: Option<Job>,
    /// Of a job of an earlier life of the daemon: before this its time does not end it. Its end
    /// may have been written down long ago, and its wrapper needs a while to get through
    /// again.
    pub(super) hears_out_until: Option<Instant>,
    /// When that it was let go is to be found out next.
    pub(super) resume_at: Instant,
    /// Whether a request that lets it go may be done late.
    pub(super) is_doubtful: bool,
    /// Whether nothing was made of it, and nothing will be by what was asked.
    pub(super) is_unmade: bool,
    /// The secrets that it was given.
    pub(super) hidden: SecretFinder,
    /// What is its own.
    pub(super) own: OwnObjects,
    pub(super) view: JobView,
    /// What is known already, so that there is nothing to follow.
    pub(super) known: Option<(OutcomeEvidence, bool)>,
}

impl JobFollower {
    pub(super) fn new(
        inner: Arc<ClusterInner>,
        job: JobId,
        record: Record,
        cluster: Cluster,
        own: OwnObjects,
        view: JobView,
        teller: Teller,
    ) -> Self {
        let hidden = teller.hidden.clone();
        let [is_stopped, is_unsure, is_orphaned, is_doubtful, is_unmade] = [false; 5];
        let resume_at = Instant::now();
        Self {
            inner,
            job,
            record,
            cluster,
            teller,
            is_stopped,
            is_unsure,
            unsure_why: None,
            is_orphaned,
            paused: None,
            hears_out_until: None,
            resume_at,
            is_doubtful,
            is_unmade,
            hidden,
            own,
            view,
            known: None,
        }
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
    ) -> Result<T, RequestRefusal> {
        ask(&self.cluster, self.record.is_apply, Instant::now() + within, what, request).await
    }

    /// The same up to a deadline of the job's own beginning; what keeps it from there is told. With
    /// a refusal comes whether it may have been done all the same.
    pub(super) async fn ask_until<T, F: Future<Output = kube::Result<T>>>(
        &self,
        deadline: Instant,
        may: May<'_>,
        what: &str,
        request: impl FnMut() -> F,
    ) -> Result<T, (RequestRefusal, bool)> {
        let tell = |refused: &RequestRefusal| {
            self.teller.tell(Some(&StartBlocker::refused(refused.why())))
        };
        let (cluster, is_apply) = (&self.cluster, self.record.is_apply);
        Asking { cluster, is_apply, deadline, what, may, tell: &tell, gives_up_unreached: true }
            .until_answered(request)
            .await
    }

    /// However its command ends from now on, it is because of its timeout. What had ended before,
    /// by the clock of its node or of its wrapper, is what it was, unless somebody else had
    /// asked it to end.
    pub(super) fn time_is_over(&self, course: &mut Course) {
        let since = if course.was_taken {
            Timestamp::MIN
        } else {
            by_another_clock(self.inner.clock.now())
        };
        course.over_time = Some(since);
        self.inner.delivery.time_is_over(self.job, since);
    }

    /// Of several tries one may have run and be over before its container was seen to run.
    pub(super) async fn try_ran(&mut self, course: &mut Course, sight: &Sight) {
        if !self.record.tries_again || (course.started && course.told) {
            return;
        }
        match tried(sight, &self.record.container) {
            PodAttempts::Ran { since } => self.runs(course, since).await,
            PodAttempts::Counted
                if Instant::now()
                    >= *course.counted_at.get_or_insert_with(|| Instant::now() + BEHIND_WITHIN) =>
            {
                self.runs(course, None).await;
            }
            PodAttempts::Counted => {}
            PodAttempts::Never => course.counted_at = None,
        }
    }

    async fn runs(&mut self, course: &mut Course, since: Option<Timestamp>) {
        course.started = true;
        if !std::mem::replace(&mut course.told, true) {
            self.note_started().await;
            let at = since.unwrap_or_else(|| self.inner.clock.now());
            let _nobody_listens_any_more =
                self.inner.news.send(RunnerEvent::Started { job: self.job, at }).await;
        }
    }

    pub(super) async fn running(
        &mut self,
        course: &mut Course,
        sight: &Sight,
        since: Option<Timestamp>,
        lost_at: Option<(String, Instant)>,
    ) {
        self.runs(course, since).await;
        let metadata = sight.pod.as_ref().map(|pod| &pod.metadata);
        if let Some(pod) = metadata.filter(|pod| pod.deletion_timestamp.is_some()) {
            let uid = pod.uid.clone().unwrap_or_default();
            let grace = grace(pod.deletion_grace_period_seconds.unwrap_or_default());
            let known = lost_at.filter(|(of, _)| *of == uid);
            course.lost_at = known.or_else(|| Some((uid, Instant::now() + grace + NODE_WITHIN)));
        }
    }

    /// Notes what its wrapper left in the log before its Pod is ended for that: the log goes with
    /// the Pod.
    pub(super) async fn note_line(&mut self, course: &Course) {
        self.record.line = course.line.clone().filter(|_| course.ended_for_its_line());
        self.note_record("what a wrapper left in its log").await;
    }

    /// Notes that it has started, so that the next life of the daemon does not take it for one that
    /// does not start.
    async fn note_started(&mut self) {
        if self.record.started || !self.inner.records.has(self.job) {
            return;
        }
        self.record.started = true;
        self.note_record("that a job has started").await;
    }

    /// What it waits for, from its status or else from what its events said of the same object.
    pub(super) fn waiting(&self, course: &mut Course, sight: &Sight, wait: Option<StartBlocker>) {
        if !course.had_pod && sight.pod.is_some() {
            // A node that gets to work needs a moment.
            (course.had_pod, course.why_at) = (true, Instant::now() + NODE_WORD_WITHIN);
        }
        course.is_silent = wait.is_none();
        let said = course
            .said
            .as_ref()
            .filter(|(name, _)| name == about(sight) && !name.is_empty())
            .map(|(_, wait)| wait.clone());
        let wait = self.unsure_why.clone().or(wait).or(said);
        let was_seen = sight.job.is_some() || sight.pod.is_some();
        if was_seen && !course.started && !course.deleted {
            self.teller.tell(course.keeps_from_starting(wait.as_ref()));
        }
        course.waits_for = wait.or(course.waits_for.take());
    }

    /// Asks why nothing goes on although the status says nothing, or whether it does.
    pub(super) async fn ask_why(&mut self, course: &mut Course, sight: &Sight) {
        let name = about(sight);
        let said = if sight.pod.is_none() && sight.job.as_ref().is_some_and(is_suspended) {
            let by =
                if self.record.held { "by its own file" } else { "by somebody in the cluster" };
            let why = format!("Suspended: its Job is suspended {by}");
            Some(StartBlocker::new(WaitEnd::Resumed, why))
        } else if name.is_empty() {
            None
        } else {
            // Events are for people; without them nobody is worse off than before.
            let events = self.events_of(name).await.unwrap_or_default();
            let pod = sight.pod.as_ref();
            if let Some(at) = pod.and_then(|pod| began(&events, pod, &self.record.container)) {
                return self.runs(course, Some(at)).await;
            }
            warning(&events, pod)
        };
        course.said = said.map(|wait| (name.to_owned(), wait));
    }

    pub(super) fn subject(&self, course: &Course, sight: &Sight) -> SightSubject<'_> {
        let Course { deleted, started, .. } = *course;
        // Only a scheduler that was away lets the cluster end it at its deadline.
        let asked_at = sight.pod.as_ref().and_then(asked_to_end);
        let is_late = asked_at
            .zip(self.time_over_there(sight))
            .is_some_and(|(asked, by)| by_another_clock(asked) >= by);
        // What its wrapper left in the log has us end its Pod, unless somebody else did before.
        let ended_by_us = course.asked > 0
            || course.over_time.is_some()
            || is_late
            || course.ended_for_its_line();
        let Record { container, tries_again, place, token, .. } = &self.record;
        let needs_signature = place.wrapper_image.is_some() && !tries_again;
        let signer = token.as_deref().map(|token| (self.job, token));
        SightSubject {
            container,
            tries_again: *tries_again,
            deleted,
            started,
            ended_by_us,
            signer,
            needs_signature,
        }
    }

    /// The Job of what has not started is deleted, or is about to be.
    pub(super) fn note_deletion(&self, course: &mut Course) {
        if !std::mem::replace(&mut course.deleted, true) {
            course.deadline = Instant::now() + DELETED_WITHIN;
            course.broken_before = self.view.sight.borrow().pods_broken;
            (course.absent_at, course.is_absent) = (None, false);
        }
    }
}

/// What its events are about at present: its Pod, or else its Job.
pub(super) fn about(sight: &Sight) -> &str {
    let name =
        sight.pod.as_ref().map(|pod| &pod.metadata).or(sight.job.as_ref().map(|job| &job.metadata));
    name.and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
}
