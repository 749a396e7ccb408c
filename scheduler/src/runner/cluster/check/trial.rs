//! A job of our own on a cluster: it puts the wrapper into a Pod as for any job, and the wrapper
//! reports to us. It goes the way of all jobs, beside them: what becomes of it is told to the check
//! alone.
//!
//! What always holds, however it ends: its Job is deleted; one that this daemon's death leaves
//! suspended is deleted by the next start, and one that was let go ends and is gone by itself.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt};
use schema::id::JobId;
use schema::report::line;
use schema::status::JobKind;
use schema::wire::{JOB_VARIABLE, URL_VARIABLE};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::clusters::Clusters;
use super::super::job::JOB_LABEL;
use super::super::strangers::Strangers;
use super::super::watch::Watches;
use super::super::{ClusterInner, ClusterRunner};
use crate::clock;
use crate::compile::{ClusterPlace, Command};
use crate::runner::job_tasks::JobTasks;
use crate::runner::{ClusterJob, End, JobSpec, JobWait, RunnerEvent};

/// When the cluster ends the Job by itself, and how long it keeps it then, seconds: longer than any
/// check.
const ENDED_AFTER_S: u32 = 60;

/// Longest time for removing what was made. With the check's own limit less than `pvnctl` waits.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

/// How long its wrapper tries to reach us. A Pod that has not in this time meets a firewall, not a
/// busy network.
const DELIVERS_FOR: (&str, &str) = ("PVN_DELIVERY_TIMEOUT", "5s");

/// News of one job that may wait to be read: it starts, waits and ends.
const NEWS_LIMIT: usize = 8;

/// Lines at the end of its log that may say why it reaches nobody, and the longest wait for them.
const LOG_LINES: i64 = 10;
const LOG_WITHIN: Duration = Duration::from_secs(2);

/// Name of its container, and of what stands for service and channel in its labels.
const NAME: &str = "check";

/// What became of it.
#[derive(Debug)]
pub(super) enum TrialOutcome {
    /// Its wrapper reached us at this address.
    Heard { url: String },
    /// It ran and did not; what it said.
    Silent { url: String, said: String },
    /// It did not run: why, and what would end that.
    NotStarted { why: String, ends_when: Option<String> },
    /// It was not made: nothing can be stored here.
    NoRoom { why: String },
    /// It was cut short, because the daemon stops.
    Stopping,
}

impl ClusterInner {
    /// Runs it, and removes it.
    pub(super) async fn trial(
        self: &Arc<Self>,
        clusters: Clusters,
        place: &ClusterPlace,
        image: &str,
        until: Instant,
    ) -> TrialOutcome {
        let spec = spec(place, image, until);
        let job = spec.job;
        let (news, told) = mpsc::channel(NEWS_LIMIT);
        let reach = match self.delivery.expect(&spec, &news).await {
            Ok(reach) => reach,
            Err(error) => return TrialOutcome::NoRoom { why: error.to_string() },
        };
        let url = reach
            .into_iter()
            .find(|(key, _)| key == URL_VARIABLE)
            .map(|(_, url)| url)
            .unwrap_or_default();
        let followed = JobTasks::default();
        let beside = ClusterRunner {
            inner: Arc::new(Self {
                records: self.records.clone(),
                delivery: self.delivery.clone(),
                owner: self.owner.clone(),
                authorities: self.authorities.clone(),
                clock: self.clock.clone(),
                sealer: self.sealer.clone(),
                news,
                clusters,
                watches: Watches::new(followed.tasks.clone()),
                followed,
                warned: AtomicBool::new(true),
                finished: Mutex::default(),
                strangers: Strangers::default(),
                checks: self.checks.clone(),
            }),
        };
        beside.start(spec);
        let outcome = tokio::select! {
            outcome = outcome(&beside, (job, place), url, told, until) => outcome,
            () = self.followed.detach.cancelled() => TrialOutcome::Stopping,
        };
        beside.detach().await;
        self.remove_trial(&beside, job).await;
        outcome
    }

    async fn remove_trial(self: &Arc<Self>, beside: &ClusterRunner, job: JobId) {
        let is_removed = match self.records.get(job) {
            Ok(Some(record)) => {
                tokio::time::timeout(REMOVED_WITHIN, beside.inner.clear(&record)).await == Ok(true)
            }
            // It was not begun.
            Ok(None) => true,
            Err(error) => {
                tracing::warn!(%job, %error, "what is known of the Job of a check cannot be read");
                false
            }
        };
        if is_removed {
            self.delivery.forget(job).await;
            self.remove(job);
        } else {
            tracing::warn!(%job, "the Job of a check is not removed yet; it ends by itself");
            ClusterRunner { inner: self.clone() }.forget(job).await;
        }
    }
}

/// What becomes of it, as far as it matters here.
async fn outcome(
    beside: &ClusterRunner,
    trial: (JobId, &ClusterPlace),
    url: String,
    mut told: mpsc::Receiver<RunnerEvent>,
    until: Instant,
) -> TrialOutcome {
    let (job, _) = trial;
    let (mut is_running, mut waits_for) = (false, None);
    loop {
        let news = tokio::time::timeout_at(until, told.recv()).await;
        if beside.inner.delivery.signs(job).is_some_and(|signs| signs.heard) {
            return TrialOutcome::Heard { url };
        }
        match news {
            Ok(Some(RunnerEvent::Started { .. })) => is_running = true,
            // Nobody decided it but the check.
            Ok(Some(RunnerEvent::Asks { leave, .. })) => leave.give(Ok(())),
            // What does not pass by itself is not waited for.
            Ok(Some(RunnerEvent::Waits { wait: Some(wait), .. })) if !wait.surroundings => {
                return waited(wait);
            }
            Ok(Some(RunnerEvent::Waits { wait, .. })) => waits_for = wait,
            Ok(Some(RunnerEvent::Ended { end, .. })) => {
                return ended(beside, trial, url, end, waits_for).await;
            }
            Ok(None) | Err(_) if is_running => {
                return TrialOutcome::Silent { url, said: last_words(beside, trial).await };
            }
            Ok(None) | Err(_) => {
                return waits_for
                    .map_or_else(|| not_started("it did not run in time".to_owned()), waited);
            }
        }
    }
}

async fn ended(
    beside: &ClusterRunner,
    trial: (JobId, &ClusterPlace),
    url: String,
    end: End,
    waited_for: Option<JobWait>,
) -> TrialOutcome {
    match end {
        End::Reported(report) if report.exit_code == Some(0) => {
            TrialOutcome::Silent { url, said: last_words(beside, trial).await }
        }
        End::Reported(report) => {
            let code =
                report.exit_code.map_or_else(|| "no exit code".to_owned(), |code| code.to_string());
            not_started(format!(
                "its command ended with {code}: {}",
                last_words(beside, trial).await
            ))
        }
        End::NotStarted { why, .. } | End::TakenBack { why } | End::InputLost { why } => {
            TrialOutcome::NotStarted { why, ends_when: waited_for.map(|wait| wait.ends_when) }
        }
        End::Unknown { why, .. } => not_started(why),
    }
}

fn waited(wait: JobWait) -> TrialOutcome {
    TrialOutcome::NotStarted { why: wait.why, ends_when: Some(wait.ends_when) }
}

fn not_started(why: String) -> TrialOutcome {
    TrialOutcome::NotStarted { why, ends_when: None }
}

/// The last line of its log that is not the wrapper's report.
async fn last_words(beside: &ClusterRunner, (job, place): (JobId, &ClusterPlace)) -> String {
    let read = async {
        let cluster = beside.inner.clusters.get(place).await.ok()?;
        let pods: Api<Pod> = Api::namespaced(cluster.client, &place.namespace);
        let pod = pods
            .list(&ListParams::default().labels(&format!("{JOB_LABEL}={job}")))
            .await
            .ok()?
            .items
            .pop()?;
        let params = LogParams {
            container: Some(NAME.to_owned()),
            tail_lines: Some(LOG_LINES),
            ..LogParams::default()
        };
        pods.logs(&pod.name_any(), &params).await.ok()
    };
    let log = tokio::time::timeout(LOG_WITHIN, read).await.ok().flatten().unwrap_or_default();
    let line = log.lines().rev().find(|text| !line::is_marked(text) && !text.trim().is_empty());
    line.unwrap_or("it says nothing").to_owned()
}

/// The wrapper, put into a Pod as for any job, runs itself. It asks for nothing that the strictest
/// namespace refuses.
fn spec(place: &ClusterPlace, image: &str, until: Instant) -> JobSpec {
    let id = JobId::from_bytes(clock::random());
    let pod = json!({
        "enableServiceLinks": false, "automountServiceAccountToken": false,
        "containers": [{
            "name": NAME, "image": image, "command": ["/pvn-wrapper", "--version"],
            "resources": {
                "requests": {"cpu": "10m", "memory": "16Mi"},
                "limits": {"cpu": "500m", "memory": "64Mi"},
            },
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
            },
        }],
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "spec": {
            "activeDeadlineSeconds": ENDED_AFTER_S, "ttlSecondsAfterFinished": ENDED_AFTER_S,
            "template": {"spec": pod},
        },
    });
    let named = "the name of a check is legal";
    let left = until.saturating_duration_since(Instant::now());
    let command = Command { job: Some(Box::new(job)), ..Command::new(NAME, &[]) };
    JobSpec {
        env: vec![
            (JOB_VARIABLE.to_owned(), id.to_string()),
            (DELIVERS_FOR.0.to_owned(), DELIVERS_FOR.1.to_owned()),
        ],
        timeout_ms: Some(schema::time::millis(left).max(1)),
        cluster: Some(ClusterJob {
            place: place.clone(),
            application: "pvn".parse().expect(named),
            service: NAME.parse().expect(named),
            channel: NAME.parse().expect(named),
        }),
        ..JobSpec::new(id, JobKind::GetInfo, command)
    }
}
