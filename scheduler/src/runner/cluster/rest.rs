//! What is left in the cluster of a job whose end is stored: a Pod whose other containers have not
//! ended, and a Job that could make a second Pod as long as it is not over. Called by `cluster`.
//!
//! What always holds: a Job that is seen suspended, scaled to nothing or with a second Pod in that
//! time is deleted, so that nobody resumes it, and what it began anew is ended.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch};
use kube::{Api, ResourceExt};
use schema::id::JobId;
use serde_json::json;
use tokio::time::Instant;

use super::ClusterInner;
use super::ask::{RequestRefusal, ask};
use super::begin::its_job;
use super::changed::is_paused;
use super::clusters::Cluster;
use super::follow::{AWAY_WITHIN, as_ours};
use super::job::JOB_LABEL;
use super::record::Record;
use super::sight::{self, is_pod_over};
use super::stop::END_NOW_S;

/// How long what belongs to a job whose end is stored may take to end by itself: a wrapper that has
/// heard that its report is accepted, and the node's word on that.
const REST_WITHIN: Duration = Duration::from_secs(15);

/// How often its Job is looked at meanwhile. Most are over before the first look, which is then the
/// only request.
const REST_LOOK: Duration = Duration::from_secs(2);

/// What is found of it.
enum JobRemainder {
    /// Nothing of it is left, or nothing that could begin again.
    Over,
    Runs,
    /// It could run the command again, or does: in which words.
    Again(&'static str),
}

impl ClusterInner {
    /// Ends what is left of a job whose end is stored. Returns whether that is done.
    pub(super) async fn end_rest(&self, job: JobId, record: &Record) -> bool {
        let until = Instant::now() + REST_WITHIN;
        loop {
            tokio::time::sleep(REST_LOOK).await;
            if self.finished.lock().expect("nobody panics with the lock").remove(&job) {
                return true;
            }
            let Ok(cluster) = self.clusters.get(&record.place).await else { return false };
            let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &record.place.namespace);
            match look(&cluster, &jobs, job, record).await {
                Ok(JobRemainder::Over) => return true,
                Ok(JobRemainder::Runs) if Instant::now() < until => {}
                Ok(JobRemainder::Runs) => return end(&cluster, &jobs, job, record).await,
                Ok(JobRemainder::Again(how)) => {
                    return delete(&cluster, &jobs, job, record, how).await;
                }
                Err(_) => return false,
            }
        }
    }
}

async fn look(
    cluster: &Cluster,
    jobs: &Api<Job>,
    job: JobId,
    record: &Record,
) -> Result<JobRemainder, RequestRefusal> {
    let until = Instant::now() + AWAY_WITHIN;
    let Some(found) = its_job(cluster, jobs, record, until).await? else {
        return Ok(JobRemainder::Over);
    };
    if sight::is_over(&found) || found.metadata.deletion_timestamp.is_some() {
        return Ok(JobRemainder::Over);
    }
    if is_paused(&found) {
        return Ok(JobRemainder::Again("was suspended or scaled to nothing, and could be resumed"));
    }
    if record.tries_again || record.pod.is_none() {
        return Ok(JobRemainder::Runs);
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &record.place.namespace);
    let params = ListParams::default().labels(&format!("{JOB_LABEL}={job}"));
    let there = ask(cluster, false, until, "looking for its Pods", || pods.list(&params)).await?;
    let is_other = |pod: &Pod| {
        pod.uid() != record.pod
            && pod.owner_references().iter().any(|owner| Some(&owner.uid) == record.uid.as_ref())
    };
    Ok(match there.items.iter().any(|pod| is_other(pod) && !is_pod_over(pod)) {
        true => JobRemainder::Again("made a second Pod, so its command may have run twice"),
        false => JobRemainder::Runs,
    })
}

async fn end(cluster: &Cluster, jobs: &Api<Job>, job: JobId, record: &Record) -> bool {
    tracing::info!(
        %job, name = record.name,
        "the command of a Job has ended and the Job is not over; it is ended"
    );
    let patch = Patch::Merge(
        json!({"metadata": {"uid": record.uid}, "spec": {"activeDeadlineSeconds": END_NOW_S}}),
    );
    let params = as_ours();
    let until = Instant::now() + AWAY_WITHIN;
    let ended =
        ask(cluster, false, until, "ending its Job", || jobs.patch(&record.name, &params, &patch))
            .await;
    // Until it is over it is remembered, or the next apply of its instance would take it for a
    // stranger.
    matches!(ended, Err(RequestRefusal::NotFound(_)))
}

async fn delete(
    cluster: &Cluster,
    jobs: &Api<Job>,
    job: JobId,
    record: &Record,
    how: &str,
) -> bool {
    tracing::warn!(
        %job, name = record.name,
        "the Job of a job whose end is stored {how}; it is deleted with its Pods"
    );
    // It is there until its Pods are gone, and so keeps the next apply of its instance waiting.
    let params = DeleteParams::foreground();
    let until = Instant::now() + AWAY_WITHIN;
    let deleted =
        ask(cluster, false, until, "deleting its Job", || jobs.delete(&record.name, &params)).await;
    matches!(deleted, Err(RequestRefusal::NotFound(_)))
}
