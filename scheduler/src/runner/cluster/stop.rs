//! How a job on a cluster is ended, and what is looked at to know that nothing of it is left.
//! Called by the job's task.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::ask::RequestRefusal;
use super::blockers::StartBlocker;
use super::changed;
use super::course::Course;
use super::follow::{AWAY_WITHIN, JobFollower, UNSEEN_WITHIN, as_ours};
use super::job::JOB_LABEL;
use super::own::is_of_nobody;
use super::sight::{Sight, is_over, is_pod_over, is_suspended_again};
use crate::runner::evidence::{OutcomeEvidence, Taken};

/// Least seconds that a Pod has to end, as after the second stop. Not 0: then it would be gone from
/// the books before it is gone from its node, and nobody could tell that its command has ended.
pub(super) const LEAST_GRACE_S: u32 = 1;

/// How often a stop is made again that the cluster did not take. Its words are in
/// [`StartBlocker::unstopped`].
pub(super) const STOP_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// What a Job is given for its `activeDeadlineSeconds` that is to end now.
pub(super) const END_NOW_S: u32 = 1;

/// The Pods that have a job's label.
pub(super) struct There {
    pub(super) own: Vec<Pod>,
    /// Name of one that runs, or will, and of which nothing says whose it is: its own without
    /// owner, or a copy.
    stray: Option<String>,
}

/// What is left of a job's Pods.
pub(super) enum RemainingPods {
    Nothing,
    /// Only one of this name that may be its own. It is nobody's to delete.
    Stray(String),
    Own,
    /// The cluster does not say.
    Unanswered,
}

impl There {
    pub(super) fn left(&self) -> RemainingPods {
        match &self.stray {
            _ if !self.own.is_empty() => RemainingPods::Own,
            Some(stray) => RemainingPods::Stray(stray.clone()),
            None => RemainingPods::Nothing,
        }
    }
}

/// What is known of a job of which such a Pod is left: not that it never started.
pub(super) fn with_stray(learned: OutcomeEvidence, pod: &str) -> OutcomeEvidence {
    let with = |why: String| {
        format!(
            "{why}; the Pod {pod} has its label and no owner and runs: it may be its own; look \
             before you retry"
        )
    };
    let lost = learned.never.map(|never| never.why).or(learned.lost).map(with);
    let taken = learned.taken.map(|taken| Taken { why: with(taken.why), ..taken });
    OutcomeEvidence { never: None, lost, taken, ..learned }
}

impl JobFollower {
    /// The first time the Pod gets TERM, and KILL after its grace; the second time at once. A Job
    /// that has not started is deleted, when that is known.
    pub(super) async fn stop(&self, course: &mut Course, is_listed: bool) {
        course.asked += 1;
        self.teller.note_stop();
        // Whoever asks, and however it answers: it was ended after its time.
        if course.over_time.is_none()
            && self.record.end_by.is_some_and(|by| self.inner.clock.now() >= by)
        {
            self.time_is_over(course);
        }
        self.make_stop(course, is_listed).await;
        if let Some(unstopped) = &course.unstopped {
            tracing::warn!(
                job = %self.job, why = unstopped.why,
                "a job on a cluster is not stopped yet; it is tried again"
            );
        }
    }

    /// Makes the last stop, for the first time or again, and sees to it that it is made again when
    /// the cluster does not take it.
    pub(super) async fn make_stop(&self, course: &mut Course, is_listed: bool) {
        let done = if is_listed && !course.started {
            self.delete_what_has_not_begun(course, None).await
        } else {
            self.end_what_runs(course).await
        };
        course.unstopped = done.err().map(|refused| StartBlocker::unstopped(&refused));
        course.stop_at = course.unstopped.as_ref().map(|_| Instant::now() + STOP_AGAIN_EVERY);
    }

    async fn end_what_runs(&self, course: &Course) -> Result<(), RequestRefusal> {
        let mut stop = std::pin::pin!(async {
            match course.asked {
                0 | 1 => self.try_to_end_pods().await,
                _ => {
                    self.delete_its_pods(&DeleteParams::default().grace_period(LEAST_GRACE_S)).await
                }
            }
        });
        tokio::select! {
            done = &mut stop => done,
            () = tokio::time::sleep(UNSEEN_WITHIN) => {
                self.teller.tell(Some(&StartBlocker::unanswered_stop()));
                stop.await
            }
        }
    }

    pub(super) async fn delete_its_pods(
        &self,
        delete: &DeleteParams,
    ) -> Result<(), RequestRefusal> {
        let pods = self.pods();
        let mut done = Ok(());
        for pod in self.its_pods().await? {
            // By its name, with the right that is needed anyway.
            let params = self.of_its_label().fields(&format!("metadata.name={}", pod.name_any()));
            let killed = self
                .ask(AWAY_WITHIN, "deleting its Pods", || pods.delete_collection(delete, &params))
                .await;
            done = done.and(killed.map(drop));
        }
        done
    }

    /// Has the Job end its Pods, with their grace, and make no others, whatever its own file says;
    /// it stays for people to look at. Where the Job is gone its Pods may run on without it:
    /// they are deleted.
    pub(super) async fn end_pods(&self) {
        self.note_refusal(self.try_to_end_pods().await);
    }

    async fn try_to_end_pods(&self) -> Result<(), RequestRefusal> {
        let jobs = self.jobs();
        let (metadata, spec) =
            (json!({"uid": self.record.uid}), json!({"activeDeadlineSeconds": END_NOW_S}));
        let patch = Patch::Merge(json!({"metadata": metadata, "spec": spec}));
        let params = as_ours();
        let ended = self
            .ask(AWAY_WITHIN, "stopping its Job", || jobs.patch(&self.record.name, &params, &patch))
            .await;
        match ended {
            Err(RequestRefusal::NotFound(_)) => {
                self.delete_its_pods(&DeleteParams::default()).await
            }
            ended => ended.map(drop),
        }
    }

    pub(super) fn note_refusal(&self, done: Result<(), RequestRefusal>) {
        if let Err(refused) = done {
            tracing::warn!(
                job = %self.job, why = refused.why(),
                "a job on a cluster could not be stopped"
            );
        }
    }

    /// Deletes the Job, and with it everything that it owns, or owned. Returns whether it is not
    /// there any more.
    pub(super) async fn delete(&self) -> bool {
        let done = self.try_to_delete(AWAY_WITHIN, None).await;
        if let Err(refused) = &done {
            tracing::warn!(job = %self.job, why = refused.why(), "a Job could not be deleted");
        }
        done.is_ok()
    }

    /// The same, tried again for so long; only while it is of the version `as_seen`.
    ///
    /// # Errors
    /// [`RequestRefusal::Now`] where it is of another one.
    pub(super) async fn try_to_delete(
        &self,
        within: Duration,
        as_seen: Option<String>,
    ) -> Result<(), RequestRefusal> {
        let jobs = self.jobs();
        // Not another one that has its name by now.
        let uid = self.own.uid().map(str::to_owned);
        let params = DeleteParams::background()
            .preconditions(Preconditions { uid, resource_version: as_seen });
        match self.ask(within, "deleting its Job", || jobs.delete(&self.record.name, &params)).await
        {
            // Of a Job that was never made nothing can be left.
            Err(RequestRefusal::NotFound(why)) if self.own.uid().is_some() => {
                self.note_refusal(self.delete_its_pods(&DeleteParams::default()).await);
                if self.is_shown() {
                    let why = format!("{why}; but the cluster shows it");
                    return Err(RequestRefusal::Doubtful(why));
                }
                Ok(())
            }
            Err(RequestRefusal::NotFound(_)) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Whether its watch shows its Job: who else says that it is not there is a gateway, or a
    /// moment ahead.
    fn is_shown(&self) -> bool {
        let sight = self.view.sight.borrow();
        sight.job.is_some() && !sight.job_gone && sight.jobs_lost.is_none()
    }

    fn of_its_label(&self) -> ListParams {
        ListParams::default().labels(&format!("{JOB_LABEL}={}", self.job))
    }

    pub(super) async fn its_pods(&self) -> Result<Vec<Pod>, RequestRefusal> {
        Ok(self.pods_there(AWAY_WITHIN).await?.own)
    }

    /// The Pods with its label, asked for so long.
    pub(super) async fn pods_there(&self, within: Duration) -> Result<There, RequestRefusal> {
        let (pods, params) = (self.pods(), self.of_its_label());
        let found = self.ask(within, "looking for its Pods", || pods.list(&params)).await?;
        let (own, others): (Vec<Pod>, Vec<Pod>) =
            found.items.into_iter().partition(|pod| self.own.has_pod(pod));
        let stray = others
            .iter()
            .find(|pod| is_of_nobody(pod) && !is_pod_over(pod))
            .map(ResourceExt::name_any);
        Ok(There { own, stray })
    }

    /// What is known to be left of its Pods.
    pub(super) async fn left(&self) -> RemainingPods {
        self.pods_there(AWAY_WITHIN).await.map_or(RemainingPods::Unanswered, |there| there.left())
    }

    /// Whether it is known that none of its Pods runs or will, and that the last of them is as it
    /// was seen.
    pub(super) async fn pods_are_over(&self, seen: &Sight) -> bool {
        let Ok(There { own: found, .. }) = self.pods_there(AWAY_WITHIN).await else { return false };
        let made_at = |pod: &Pod| pod.creation_timestamp().map(|at| at.0);
        let last = found.iter().max_by_key(|pod| made_at(pod));
        let version = |pod: &Pod| (pod.uid(), pod.resource_version());
        let is_last_seen = last.is_none_or(|last| {
            let is_older = |pod: &Pod| {
                seen.pod_gone && pod.uid() != last.uid() && made_at(pod) >= made_at(last)
            };
            seen.pod.as_ref().is_some_and(|pod| version(pod) == version(last) || is_older(pod))
        });
        is_last_seen && found.iter().all(is_pod_over)
    }

    /// Nothing runs the command again once its end is told. A Job that was suspended while it ran,
    /// or scaled to nothing, lost its Pod, and whoever resumed it would run it a second time,
    /// unseen: it is deleted. One that lost its Pod otherwise, or was given more tries,
    /// is ended.
    pub(super) async fn end_other_tries(&self, sight: &Sight) {
        let was_taken = |pod: &Pod| sight.pod_gone || pod.metadata.deletion_timestamp.is_some();
        let runs_more = |job: &Job| changed::runs_more(job, self.record.tries_again).is_some();
        let is_changed = |job: &Job| is_suspended_again(job, sight.pod.as_ref()) || runs_more(job);
        if !sight.pod.as_ref().is_some_and(was_taken) && !sight.job.as_ref().is_some_and(is_changed)
        {
            return;
        }
        let jobs = self.jobs();
        self.cluster.throttle.pass(self.record.is_apply).await;
        let Ok(Some(job)) = jobs.get_opt(&self.record.name).await else { return };
        if job.uid() != self.record.uid {
            return;
        }
        if changed::is_paused(&job) {
            self.delete().await;
        } else if !is_over(&job) {
            self.end_pods().await;
        }
    }

    /// A Job that is gone with its namespace says so.
    pub(super) async fn with_namespace(&self, why: String) -> String {
        let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        self.cluster.throttle.pass(self.record.is_apply).await;
        let name = &self.record.place.namespace;
        match namespaces.get_opt(name).await {
            Ok(None) => format!("{why}, with its namespace `{name}`"),
            Ok(Some(namespace)) if namespace.metadata.deletion_timestamp.is_some() => {
                format!("{why}, with its namespace `{name}`")
            }
            _ => why,
        }
    }
}
