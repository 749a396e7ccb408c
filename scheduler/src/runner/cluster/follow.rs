//! One job on a cluster, from its Job to its end.
//!
//! What always holds: nothing is done about a job because of a deadline before everything that the cluster has of it was listed
//! once; a job that is known to have started is never told as one that did not.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use schema::id::JobId;
use schema::time::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ClusterInner;
use super::ask::{Asking, RequestRefusal, ask};
use super::blockers::{StartBlocker, Teller};
use super::clusters::Cluster;
use super::course::Course;
use super::faults::WatchRefusal;
use super::hidden::SecretFinder;
use super::leave::May;
use super::one_pod::grace;
use super::over::{lost, never_learned, taken_unseen};
use super::own::OwnObjects;
use super::record::Record;
use super::sight::tries::{PodAttempts, tried};
use super::sight::{Sight, SightOutcome, SightSubject, asked_to_end, by_another_clock, look, taken};
use super::stop::RemainingPods;
use super::watch::JobView;
use crate::delivery::Holds;
use crate::runner::RunnerEvent;
use crate::runner::evidence::{OutcomeEvidence, Taken};

/// Who we are among those that change objects.
pub(super) const FIELD_MANAGER: &str = "pvn-scheduler";

/// How long a Job has no Pod, and a Pod no word of its node, before somebody asks why; and how often that is asked.
pub(super) const POD_WITHIN: Duration = Duration::from_secs(3);
const NODE_WORD_WITHIN: Duration = Duration::from_secs(5);
const ASK_WHY_EVERY: Duration = Duration::from_secs(15);

/// How often the log of a job that runs and was never heard of is looked at for what its wrapper left there. Its wrapper writes
/// it after 10 s without an answer.
pub(super) const LISTEN_EVERY: Duration = Duration::from_secs(12);

/// The same where a wrapper is at most in the image: most images have none, and their jobs are never heard of.
const LISTEN_TO_IMAGES_EVERY: Duration = Duration::from_secs(60);

/// How often it is tried to find out whether a Job was let go.
const RESUME_EVERY: Duration = Duration::from_secs(5);

/// Longest wait for the end of a Job that was deleted because it did not start.
pub(super) const DELETED_WITHIN: Duration = Duration::from_secs(60);

/// How long the cluster may be away while a job is stopped or looked for, before that is told as unknown. With the wait for what
/// was deleted no more than the 120 s after which the engine calls a stopped job unknown.
pub(super) const AWAY_WITHIN: Duration = Duration::from_secs(60);

/// How long after its grace a Pod that was deleted may still be said to run, before its node counts as lost. A node needs some
/// seconds to write down what ended.
pub(super) const NODE_WITHIN: Duration = Duration::from_secs(20);

/// How long the watch of the Pods may be behind that of the Jobs and behind a list: what is to be told as never started, or as
/// gone, must not be seen to run for so long.
pub(super) const BEHIND_WITHIN: Duration = Duration::from_secs(2);

/// How long the cluster may leave it open what became of a job of an earlier life of the daemon, before people are told.
pub(super) const UNSEEN_WITHIN: Duration = Duration::from_secs(5);

/// How long a job of an earlier life of the daemon is listened to before its time ends it. Source: docs/convergence.md, rule 13. The
/// engine's own deadline for it is no later than this long after ours.
pub(super) const HEARD_OUT_FOR: Duration = Duration::from_secs(60);

/// What is said of a job whose Pod nobody saw end.
const WENT_UNSEEN: &str = "its Pod went while nobody watched";

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
    /// Whether its Job was deleted while nobody watched, or is since it was found suspended, and Pods of it were still there.
    pub(super) is_orphaned: bool,
    /// Its Job as it was found, suspended by somebody since it was let go.
    pub(super) paused: Option<Job>,
    /// Of a job of an earlier life of the daemon: before this its time does not end it. Its end may have been written down long ago, and
    /// its wrapper needs a while to get through again.
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

    /// The same up to a deadline of the job's own beginning; what keeps it from there is told. With a refusal comes whether it may
    /// have been done all the same.
    pub(super) async fn ask_until<T, F: Future<Output = kube::Result<T>>>(
        &self,
        deadline: Instant,
        may: May<'_>,
        what: &str,
        request: impl FnMut() -> F,
    ) -> Result<T, (RequestRefusal, bool)> {
        let tell = |refused: &RequestRefusal| self.teller.tell(Some(&StartBlocker::refused(refused.why())));
        let (cluster, is_apply) = (&self.cluster, self.record.is_apply);
        Asking { cluster, is_apply, deadline, what, may, tell: &tell, gives_up_unreached: true }.until_answered(request).await
    }

    /// Follows the job to its end: what is known of it, and whether nothing of it is left.
    pub(super) async fn until_over(mut self, stops: &mut mpsc::Receiver<()>) -> (OutcomeEvidence, bool) {
        if let Some(known) = self.known.take() {
            return known;
        }
        let now = self.inner.clock.now();
        let at = |by: Timestamp| Instant::now() + Duration::from_millis(by.since_ms(now).max(0).unsigned_abs());
        let started = self.record.started || self.inner.delivery.was_heard(self.job);
        let times_out_at = self.record.end_by.map(|by| self.hears_out_until.map_or_else(|| at(by), |until| at(by).max(until)));
        let mut course = Course::new(at(self.record.start_by), times_out_at, started);
        if let Some(line) = self.record.line.clone() {
            // Whether that was done an earlier life of the daemon did not note.
            course.line = Some(line);
            self.make_stop(&mut course, false).await;
        }
        if self.is_stopped {
            // Of one that nobody knows to be suspended nobody knows that it has not started.
            self.stop(&mut course, !self.is_unsure).await;
        } else if self.inner.delivery.is_cancelled(self.job) {
            course.stop_soon();
        }
        // Until it was looked at once nobody knows whether its Pod was deleted.
        self.inner.delivery.hold(self.job, Holds::All);
        loop {
            let mut sight = self.view.sight.borrow_and_update().clone();
            sight.job_gone |= self.is_orphaned;
            sight.job = sight.job.or_else(|| self.paused.clone());
            let is_listed = sight.is_listed();
            course.started = course.started || self.inner.delivery.was_heard(self.job);
            let finds_out = self.is_unsure && is_listed && !course.started && !course.deleted;
            if finds_out && Instant::now() >= self.resume_at {
                self.resume_at = Instant::now() + RESUME_EVERY;
                tokio::select! {
                    () = self.resume() => {}
                    Some(()) = stops.recv() => {
                        self.is_unsure = true;
                        self.stop(&mut course, false).await;
                    }
                }
                if let Some(known) = self.known.take() {
                    return known;
                }
                continue;
            }
            if is_listed {
                if self.has_second_pod(&sight).await {
                    return self.end_both(&mut course, stops).await;
                }
                self.try_ran(&mut course, &sight).await;
                let refusal = sight.unauthorized();
                course.unauthorized_at = refusal.map(|_| course.unauthorized_at.unwrap_or_else(|| Instant::now() + UNSEEN_WITHIN));
                if course.started {
                    let is_due = course.unauthorized_at.is_some_and(|at| Instant::now() >= at);
                    let unseen = refusal.filter(|_| is_due).map(|refusal| StartBlocker::unseen_for(refusal, &self.record.place));
                    // Also to whoever was told that it waits for its cluster.
                    self.teller.tell(course.unstopped.as_ref().or(unseen.as_ref()));
                }
            }
            // Before everything was listed nobody knows what is there, nor what ran before a Pod that was counted is seen.
            let is_seen = is_listed && (course.started || course.counted_at.is_none());
            let seen = if is_seen { look(&sight, self.subject(&course, &sight)) } else { SightOutcome::Waiting(None) };
            let lost_at = course.lost_at.take();
            if is_listed {
                self.hold(&mut course, &sight);
            }
            match seen {
                SightOutcome::Over { learned, gone } => {
                    if self.is_over(&mut course, &sight, &learned).await {
                        let learned = course.with_what_is_known(*learned);
                        return self.over(learned, gone, &course, &sight).await;
                    }
                }
                SightOutcome::Running { since } => self.running(&mut course, &sight, since, lost_at).await,
                SightOutcome::Waiting(wait) if is_seen => self.waiting(&mut course, &sight, wait),
                SightOutcome::Waiting(_) => {}
            }
            if is_listed && sight.lacks_its_pod() {
                if course.is_absent {
                    let (went, gone) = match course.ended_for_its_line() {
                        true => (lost(WENT_UNSEEN), true),
                        false => (taken_unseen(WENT_UNSEEN), self.is_gone_without_pod(&sight)),
                    };
                    let learned = course.with_what_is_known(went);
                    return self.over(learned, gone, &course, &sight).await;
                }
                course.absent_at.get_or_insert_with(|| Instant::now() + BEHIND_WITHIN);
            }
            if is_listed {
                self.close(&mut course, &sight).await;
            }
            let asks_why = is_seen && course.is_silent && !course.started && !course.deleted;
            let untold = self.teller.due();
            let unauthorized_at = course.unauthorized_at.filter(|at| is_listed && Instant::now() < *at);
            let lost_at = course.lost_at.as_ref().map(|(_, at)| *at);
            let is_ending = course.over_time.is_some() || course.line.is_some();
            let listens = course.started && !is_ending && !self.record.tries_again && !self.inner.delivery.hears(self.job);
            let times_out_at = course.times_out_at.filter(|_| is_listed && course.started && !is_ending);
            let counted_at = course.counted_at.filter(|_| is_listed && !is_seen);
            let stop_at = course.stop_at;
            let is_overdue = is_seen && (!course.started || course.deleted) && !sight.lacks_its_pod();
            tokio::select! {
                changed = self.view.sight.changed() => if changed.is_err() {
                    return (lost("its cluster is not watched any more"), false);
                },
                Some(()) = stops.recv() => if !course.is_spared() {
                    self.stop(&mut course, is_listed).await;
                },
                () = tokio::time::sleep_until(course.deadline), if is_overdue => {
                    if course.deleted {
                        let learned = course.with_what_is_known(never_learned(&course));
                        return self.over(learned, false, &course, &sight).await;
                    }
                    course.gave_up = true;
                    if course.times_out_at.is_some() {
                        // It may have started: its status is behind what happens on its node.
                        self.time_is_over(&mut course);
                    }
                    self.delete_unstarted(&mut course).await;
                }
                () = tokio::time::sleep_until(times_out_at.unwrap_or_else(Instant::now)), if times_out_at.is_some() => {
                    self.time_is_over(&mut course);
                    course.spares_until = self.hears_out_until.filter(|until| times_out_at == Some(*until)).map(|until| until + HEARD_OUT_FOR);
                    self.stop(&mut course, true).await;
                }
                () = tokio::time::sleep_until(stop_at.unwrap_or_else(Instant::now)), if stop_at.is_some() => {
                    self.make_stop(&mut course, is_listed).await;
                }
                () = tokio::time::sleep_until(lost_at.unwrap_or_else(Instant::now)), if lost_at.is_some() => {
                    let why = "its Pod was to end and did not: its node does not answer, and the command may still run there";
                    let taken = sight.pod.as_ref().and_then(|pod| taken(pod, &sight, self.subject(&course, &sight)));
                    let taken = taken.map(|taken| Taken { why: why.to_owned(), ..taken });
                    let learned = course.with_what_is_known(OutcomeEvidence { taken, ..lost(why) });
                    return self.over(learned, false, &course, &sight).await;
                }
                () = tokio::time::sleep_until(course.absent_at.unwrap_or_else(Instant::now)), if course.absent_at.is_some() => {
                    (course.absent_at, course.stray) = (None, None);
                    match self.left().await {
                        RemainingPods::Nothing => course.is_absent = true,
                        RemainingPods::Stray(pod) => (course.is_absent, course.stray) = (true, Some(pod)),
                        RemainingPods::Own | RemainingPods::Unanswered => course.absent_at = Some(Instant::now() + BEHIND_WITHIN),
                    }
                }
                () = tokio::time::sleep_until(course.listen_at), if listens => {
                    // What its image brings may run more after a wrapper that is not all of the container.
                    let is_ours = self.record.place.wrapper_image.is_some();
                    course.listen_at = Instant::now() + if is_ours { LISTEN_EVERY } else { LISTEN_TO_IMAGES_EVERY };
                    if let Some(pod) = &sight.pod
                        && let Some(report) = self.marked_line(pod).await.filter(|report| is_ours || report.first_process)
                    {
                        // Its command has ended; what is left is a wrapper that goes on trying.
                        self.keep_log_early(pod, &report).await;
                        course.line = Some(report);
                        self.note_line(&course).await;
                        self.make_stop(&mut course, true).await;
                    }
                }
                () = tokio::time::sleep_until(course.why_at), if asks_why => {
                    course.why_at = Instant::now() + ASK_WHY_EVERY;
                    course.said = self.why(&sight).await.map(|wait| (about(&sight).to_owned(), wait));
                }
                () = tokio::time::sleep_until(course.unseen_at), if !is_listed => {
                    course.unseen_at += UNSEEN_WITHIN;
                    // After an outage an API server forbids what it will permit once it has read its roles.
                    let is_passing = |refusal: &WatchRefusal| {
                        matches!(refusal, WatchRefusal::Forbidden { .. }) && self.cluster.was_away_lately()
                    };
                    let refusal = sight.refusal().filter(|refusal| !is_passing(refusal));
                    let wait = refusal.map(|refusal| StartBlocker::unseen_for(refusal, &self.record.place));
                    self.teller.tell(Some(&wait.unwrap_or_else(|| StartBlocker::unseen("its cluster does not answer"))));
                }
                // It is looked at, tried, or told, in the next round.
                () = tokio::time::sleep_until(counted_at.unwrap_or_else(Instant::now)), if counted_at.is_some() => {}
                () = tokio::time::sleep_until(self.resume_at), if finds_out => {}
                () = tokio::time::sleep_until(unauthorized_at.unwrap_or_else(Instant::now)), if unauthorized_at.is_some() => {}
                () = tokio::time::sleep_until(untold.unwrap_or_else(Instant::now)), if untold.is_some() => {}
            }
        }
    }

    /// However its command ends from now on, it is because of its timeout. What had ended before, by the clock of its node or of its
    /// wrapper, is what it was, unless somebody else had asked it to end.
    pub(super) fn time_is_over(&self, course: &mut Course) {
        let since = if course.was_taken { Timestamp::MIN } else { by_another_clock(self.inner.clock.now()) };
        course.over_time = Some(since);
        self.inner.delivery.time_is_over(self.job, since);
    }

    /// Of several tries one may have run and be over before its container was seen to run.
    async fn try_ran(&mut self, course: &mut Course, sight: &Sight) {
        if !self.record.tries_again || (course.started && course.told) {
            return;
        }
        match tried(sight, &self.record.container) {
            PodAttempts::Ran { since } => self.runs(course, since).await,
            PodAttempts::Counted if Instant::now() >= *course.counted_at.get_or_insert_with(|| Instant::now() + BEHIND_WITHIN) => {
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
            let _nobody_listens_any_more = self.inner.news.send(RunnerEvent::Started { job: self.job, at }).await;
        }
    }

    async fn running(&mut self, course: &mut Course, sight: &Sight, since: Option<Timestamp>, lost_at: Option<(String, Instant)>) {
        self.runs(course, since).await;
        let metadata = sight.pod.as_ref().map(|pod| &pod.metadata);
        if let Some(pod) = metadata.filter(|pod| pod.deletion_timestamp.is_some()) {
            let uid = pod.uid.clone().unwrap_or_default();
            let grace = grace(pod.deletion_grace_period_seconds.unwrap_or_default());
            let known = lost_at.filter(|(of, _)| *of == uid);
            course.lost_at = known.or_else(|| Some((uid, Instant::now() + grace + NODE_WITHIN)));
        }
    }

    /// Notes what its wrapper left in the log before its Pod is ended for that: the log goes with the Pod.
    async fn note_line(&mut self, course: &Course) {
        self.record.line = course.line.clone().filter(|_| course.ended_for_its_line());
        self.note_record("what a wrapper left in its log").await;
    }

    /// Notes that it has started, so that the next life of the daemon does not take it for one that does not start.
    async fn note_started(&mut self) {
        if self.record.started || !self.inner.records.has(self.job) {
            return;
        }
        self.record.started = true;
        self.note_record("that a job has started").await;
    }

    /// What it waits for, from its status or else from what its events said of the same object.
    fn waiting(&self, course: &mut Course, sight: &Sight, wait: Option<StartBlocker>) {
        if !course.had_pod && sight.pod.is_some() {
            // A node that gets to work needs a moment.
            (course.had_pod, course.why_at) = (true, Instant::now() + NODE_WORD_WITHIN);
        }
        course.is_silent = wait.is_none();
        let said = course.said.as_ref().filter(|(name, _)| name == about(sight) && !name.is_empty()).map(|(_, wait)| wait.clone());
        let wait = self.unsure_why.clone().or(wait).or(said);
        let was_seen = sight.job.is_some() || sight.pod.is_some();
        if was_seen && !course.started && !course.deleted {
            self.teller.tell(wait.as_ref());
        }
        course.waits_for = wait.or(course.waits_for.take());
    }

    /// Why nothing goes on although the status says nothing.
    async fn why(&self, sight: &Sight) -> Option<StartBlocker> {
        let is_suspended = |job: &Job| job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
        if sight.pod.is_none() && sight.job.as_ref().is_some_and(is_suspended) {
            let by = if self.record.held { "by its own file" } else { "by somebody in the cluster" };
            return Some(StartBlocker::new("Suspended", format!("Suspended: its Job is suspended {by}")));
        }
        match about(sight) {
            "" => None,
            name => self.warning(name).await,
        }
    }

    pub(super) fn subject(&self, course: &Course, sight: &Sight) -> SightSubject<'_> {
        let Course { deleted, started, .. } = *course;
        // Only a scheduler that was away lets the cluster end it at its deadline.
        let asked_at = sight.pod.as_ref().and_then(asked_to_end);
        let is_late = asked_at.zip(self.record.end_by).is_some_and(|(asked, by)| by_another_clock(asked) >= by);
        // What its wrapper left in the log has us end its Pod, unless somebody else did before.
        let ended_by_us = course.asked > 0 || course.over_time.is_some() || is_late || course.ended_for_its_line();
        let Record { container, tries_again, place, token, .. } = &self.record;
        let needs_signature = place.wrapper_image.is_some() && !tries_again;
        let signer = token.as_deref().map(|token| (self.job, token));
        SightSubject { container, tries_again: *tries_again, deleted, started, ended_by_us, signer, needs_signature }
    }

    /// Deletes the Job of what has not started.
    pub(super) async fn delete_unstarted(&self, course: &mut Course) {
        if !std::mem::replace(&mut course.deleted, true) {
            course.deadline = Instant::now() + DELETED_WITHIN;
            course.broken_before = self.view.sight.borrow().pods_broken;
            (course.absent_at, course.is_absent) = (None, false);
        }
        self.delete().await;
    }
}

/// What its events are about at present: its Pod, or else its Job.
fn about(sight: &Sight) -> &str {
    let name = sight.pod.as_ref().map(|pod| &pod.metadata).or(sight.job.as_ref().map(|job| &job.metadata));
    name.and_then(|metadata| metadata.name.as_deref()).unwrap_or_default()
}
