//! The beginning of a job on a cluster: makes its objects, records them, and lets it go; or takes
//! up what an earlier life of the daemon began. Whoever stops the job meanwhile is heard at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use schema::id::JobId;
use schema::wire::URL_VARIABLE;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ask::{RequestRefusal, ask};
use super::blockers::{StartBlocker, Teller};
use super::clusters::{Cluster, Key};
use super::follow::{AWAY_WITHIN, DELETED_WITHIN, HEARD_OUT_FOR, JobFollower, UNSEEN_WITHIN};
use super::hidden::SecretFinder;
use super::job;
use super::log;
use super::own::OwnObjects;
use super::record::Record;
use super::unstarted::{later, never};
use super::{ClusterInner, FORGET_AGAIN, rights};
use crate::compile::ClusterPlace;
use crate::crash;
use crate::delivery::Holds;
use crate::runner::evidence::Never;
use crate::runner::{ClusterJob, JobSpec};

mod make;

pub(super) use make::{absent_remedy, apply_namespace};

/// Longest time from the decision to the start of the command, for a job without a timeout of its
/// own. Source: docs/convergence.md, rule 13.
pub(super) const START_WITHIN: Duration = Duration::from_secs(600);

/// How long a request that makes a Job may still be done that nobody waits for any more: longer
/// than gateways hold one. And how often it is looked whether it was.
const MADE_LATE_WITHIN: Duration = Duration::from_secs(180);
const MADE_LATE_LOOK: Duration = Duration::from_secs(5);

/// How long taking away a Job that is not let go may hold up the news of it. What is left then is
/// taken away when the job is forgotten.
pub(super) const TIDY_WITHIN: Duration = Duration::from_secs(5);

/// Time between two looks at a kubeconfig that cannot be used.
const CONNECT_AGAIN: Duration = Duration::from_secs(5);

/// What is told of a job that was stopped so early.
const NEVER_STARTED: &str = "it was stopped before it was started";

/// What is told while there is no connection yet.
const UNCONNECTED: &str = "its kubeconfig gives no connection yet; a plugin that it names \
                           (`exec`) is waited for and killed after 60 s";

/// Time in which a job must have started. A little less than the engine gives it when that is long,
/// so that the cluster's own words end it, and what the surroundings are to blame for is tried
/// again.
fn start_within(timeout_ms: Option<i64>) -> Duration {
    let within =
        timeout_ms.map_or(START_WITHIN, |timeout| Duration::from_millis(timeout.unsigned_abs()));
    within.min(within.max(START_WITHIN) - DELETED_WITHIN)
}

/// The values of a job that nobody may see.
fn secrets_of(spec: &JobSpec) -> Vec<String> {
    let given = spec
        .env
        .iter()
        .filter(|(key, _)| spec.secret_keys.contains(key))
        .map(|(_, value)| value.clone());
    let besides =
        spec.hidden.iter().chain(&spec.former).map(|value| value.to_string_lossy().into_owned());
    given.chain(besides).collect()
}

impl ClusterInner {
    /// Makes everything that a job needs and lets it go.
    ///
    /// # Errors
    /// Why it never ran. Nothing of it is left then.
    pub(super) async fn begin(
        self: &Arc<Self>,
        spec: &JobSpec,
        tried_before: bool,
        stops: &mut mpsc::Receiver<()>,
    ) -> Result<JobFollower, Never> {
        let wanted =
            spec.cluster.as_ref().ok_or_else(|| never("it is no job of a cluster".to_owned()))?;
        let reach = self
            .delivery
            .expect(spec, &self.news)
            .await
            .map_err(|error| later(format!("its uploads cannot be expected: {error}")))?;
        // As long as it is not known to be let go nobody watches its Pod.
        self.delivery.hold(spec.job, Holds::All);
        self.warn_of_loopback(wanted, &reach);
        let objects =
            job::objects(spec, wanted, &reach, self.authorities.as_deref(), self.clock.now())
                .map_err(never)?;
        let within = start_within(spec.timeout_ms);
        let secrets = secrets_of(spec);
        let hidden = SecretFinder::of(secrets.clone()).await;
        let mut record = Record {
            token: log::token(&reach),
            secrets: SecretFinder::sealed(&secrets, &self.sealer),
            ..Record::new(spec, wanted, &objects, self.clock.now(), within)
        };
        self.note(spec.job, &record).await?;
        let teller =
            Teller::new(self.news.clone(), spec.job, record.start_by, true, hidden.clone());
        let cluster = tokio::select! {
            cluster = self.connected(&wanted.place, &teller, StartBlocker::refused) => {
                cluster.map_err(later)?
            }
            Some(()) = stops.recv() => return Err(never(NEVER_STARTED.to_owned())),
        };
        teller.tell(None);
        self.check_rights(&cluster, &wanted.place, record.is_apply).await?;
        let own = OwnObjects::new(&record.name, None);
        let view = self.watches.view(
            &cluster,
            Key::of(&wanted.place),
            &wanted.place.namespace,
            spec.job,
            own.clone(),
            true,
        );
        let deadline = Instant::now() + within;
        let mut follower =
            JobFollower::new(self.clone(), spec.job, record.clone(), cluster, own, view, teller);
        let made = tokio::select! {
            made = follower.make(wanted, &objects, tried_before, deadline) => made,
            Some(()) = stops.recv() => Err(never(NEVER_STARTED.to_owned())),
        };
        let uid = match made {
            Ok(uid) => uid,
            Err(why) => {
                self.clear_away(&mut follower).await;
                // Its credentials may be new ones by the next time.
                self.clusters.renew(&wanted.place).await;
                return Err(Never { why: hidden.hide(&why.why), ..why });
            }
        };
        crash::at(crash::AFTER_MADE);
        follower.own.is_made(&uid);
        record.uid = Some(uid);
        self.note(spec.job, &record).await?;
        crash::at(crash::AFTER_RECORDED);
        follower.record = record;
        let is_stopped = tokio::select! {
            () = follower.let_go(deadline) => false,
            Some(()) = stops.recv() => true,
        };
        follower.is_stopped = is_stopped;
        crash::at(crash::AFTER_LET_GO);
        Ok(follower)
    }

    /// Takes away what was made of a job that never started, as far as it can be taken away soon.
    async fn clear_away(&self, follower: &mut JobFollower) {
        if follower.is_unmade {
            self.note_finished(follower.job);
        } else {
            // However that goes: it is not let go by anybody any more.
            let _tidied = tokio::time::timeout(TIDY_WITHIN, follower.delete()).await;
        }
    }

    /// Whether the cluster permits all that a job needs.
    async fn check_rights(
        &self,
        cluster: &Cluster,
        place: &ClusterPlace,
        is_apply: bool,
    ) -> Result<(), Never> {
        let Err(why) = rights::check(cluster, place, is_apply).await else { return Ok(()) };
        // They may be given in the meantime, and its credentials be new ones.
        self.clusters.renew(place).await;
        Err(never(why))
    }

    /// The connection to its cluster. Whoever gives the credentials may take long, which is told as
    /// such a wait.
    async fn connected(
        &self,
        place: &ClusterPlace,
        teller: &Teller,
        wait: fn(&str) -> StartBlocker,
    ) -> Result<Cluster, String> {
        let mut connecting = std::pin::pin!(self.clusters.get(place));
        loop {
            tokio::select! {
                connected = &mut connecting => return connected,
                () = tokio::time::sleep(UNSEEN_WITHIN) => teller.tell(Some(&wait(UNCONNECTED))),
            }
        }
    }

    /// Takes up a job whose Job was made in an earlier life of the daemon.
    pub(super) async fn again(
        self: &Arc<Self>,
        job: JobId,
        record: Record,
        stops: &mut mpsc::Receiver<()>,
    ) -> JobFollower {
        let hidden = SecretFinder::unsealed(&record.secrets, &self.sealer).await;
        let hidden = hidden.unwrap_or_else(|error| {
            tracing::error!(
                %job, %error,
                "the secrets of a job on a cluster cannot be hidden in what the cluster says of it"
            );
            SecretFinder::default()
        });
        let teller = Teller::new(self.news.clone(), job, record.start_by, false, hidden);
        if self.delivery.is_cancelled(job) {
            teller.note_stop();
        }
        let cluster = loop {
            match self.connected(&record.place, &teller, StartBlocker::unseen).await {
                Ok(cluster) => break cluster,
                Err(why) => {
                    tracing::warn!(%job, why, "a job on a cluster cannot be looked after");
                    teller.tell(Some(&StartBlocker::unseen(&why)));
                }
            }
            tokio::time::sleep(CONNECT_AGAIN).await;
        };
        let own = OwnObjects::new(&record.name, record.uid.as_deref());
        if let Some(pod) = &record.pod {
            own.knows(pod);
        }
        let view = self.watches.view(
            &cluster,
            Key::of(&record.place),
            &record.place.namespace,
            job,
            own.clone(),
            false,
        );
        let mut follower = JobFollower::new(self.clone(), job, record, cluster, own, view, teller);
        follower.hears_out_until = Some(Instant::now() + HEARD_OUT_FOR);
        let is_stopped = tokio::select! {
            () = follower.resume() => false,
            Some(()) = stops.recv() => true,
        };
        // What was asked of the cluster then may be done or not.
        (follower.is_stopped, follower.is_unsure) = (is_stopped, follower.is_unsure || is_stopped);
        follower
    }

    /// Deletes the Job of a job that was never let go, if there is one. Returns whether there is
    /// none any more.
    pub(super) async fn clear(&self, record: &Record) -> bool {
        let Ok(cluster) = self.clusters.get(&record.place).await else { return false };
        let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &record.place.namespace);
        let (deadline, params) = (Instant::now() + AWAY_WITHIN, DeleteParams::background());
        match ask(&cluster, false, deadline, "deleting its Job", || {
            jobs.delete(&record.name, &params)
        })
        .await
        {
            Ok(_) | Err(RequestRefusal::NotFound(_)) => true,
            Err(refused) => {
                tracing::warn!(
                    name = record.name,
                    why = refused.why(),
                    "a Job that is not wanted stays suspended; taking it away is tried again"
                );
                false
            }
        }
    }

    /// The same of one of which a request that makes it may be under way: it was never let go, and
    /// nobody will, so what comes of that would stay suspended for ever.
    pub(super) async fn clear_what_comes_late(&self, record: &Record) {
        let until = Instant::now() + MADE_LATE_WITHIN;
        loop {
            let is_clear = self.clear(record).await;
            if is_clear && Instant::now() >= until {
                return;
            }
            tokio::time::sleep(if is_clear { MADE_LATE_LOOK } else { FORGET_AGAIN }).await;
        }
    }

    /// Its Pod is over, so that nothing of it is left to be ended.
    pub(super) fn note_finished(&self, job: JobId) {
        if self.records.has(job) {
            self.finished.lock().expect("nobody panics with the lock").insert(job);
        }
    }

    /// Once is enough: it concerns every Pod alike.
    fn warn_of_loopback(&self, wanted: &ClusterJob, reach: &[(String, String)]) {
        let url = reach
            .iter()
            .find(|(key, _)| key == URL_VARIABLE)
            .map(|(_, url)| url.as_str())
            .unwrap_or_default();
        if wanted.place.wrapper_image.is_some()
            && is_loopback(url)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                url,
                "Pods cannot reach this scheduler at a loopback address, so what their wrappers \
                 have to say comes late, by the Pods' logs; give `--advertise-url` an address \
                 that Pods reach"
            );
        }
    }

    pub(super) async fn note(&self, job: JobId, record: &Record) -> Result<(), Never> {
        let (records, record) = (self.records.clone(), record.clone());
        let noted = tokio::task::spawn_blocking(move || records.put(job, &record)).await;
        let noted = noted.unwrap_or_else(|died| Err(std::io::Error::other(died)));
        noted.map_err(|error| later(format!("it cannot be noted where it runs: {error}")))
    }
}

impl JobFollower {
    /// Notes what is known of it by now, unless it is forgotten already. `what`: the news, for the
    /// log.
    pub(super) async fn note_record(&self, what: &str) {
        if !self.inner.records.has(self.job) {
            return;
        }
        if let Err(Never { why, .. }) = self.inner.note(self.job, &self.record).await {
            tracing::warn!(job = %self.job, why, "{what} cannot be noted");
        }
    }
}

/// The Job of this record, if it is still there.
pub(super) async fn its_job(
    cluster: &Cluster,
    jobs: &Api<Job>,
    record: &Record,
    until: Instant,
) -> Result<Option<Job>, RequestRefusal> {
    match ask(cluster, false, until, "looking for its Job", || jobs.get(&record.name)).await {
        Ok(found) => Ok(Some(found).filter(|found| found.uid() == record.uid)),
        Err(RequestRefusal::NotFound(_)) => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// Whether a URL is of this machine only, as seen by itself.
fn is_loopback(url: &str) -> bool {
    let host =
        url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    ["127.", "localhost", "[::1]"].iter().any(|begin| host.starts_with(begin))
}

#[cfg(test)]
mod tests;
