//! How the rest of the daemon asks for anything: each call is answered once what it asks for is
//! stored.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schema::api::{
    ConfigsRequest, ConfigsResult, Explanation, LogEntry, PushRequest, Pushed, RollbackRequest,
};
use schema::id::{InstanceId, JobId, RuntimeName};
use schema::status::JobKind;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::calls::{Call, Reply};
use super::checks::CheckSources;
use super::once::DryRun;
use super::planner::{self, ClusterAnswers, Planned, Request};
use super::revisions::CommitRevisions;
use super::together::ConfiguredUpstream;
use super::upcoming::UpcomingAction;
use super::{Ask, Caller, Health, InstanceTarget, Refusal, Remark};
use crate::store::Store;

/// How often clusters are asked for what one request names: more than once only where other configs
/// are applied in between.
const ASKED_LIMIT: usize = 5;

/// How long an explanation waits for the config, which is read behind all that is being planned.
const CONFIG_WITHIN: Duration = Duration::from_secs(2);

/// The way into the driver's queue. Cloned freely; the queue is bounded, so asking waits when the
/// driver is behind.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) calls: mpsc::Sender<Call>,
    pub(super) planner: planner::Queue,
    pub(super) store: Store,
    pub(super) log: broadcast::Sender<Arc<LogEntry>>,
    pub(super) revisions: CommitRevisions,
    pub(super) health: watch::Receiver<Health>,
    pub(super) broken: watch::Receiver<Vec<String>>,
    /// For what is about no job; jobs are the loop's.
    pub(super) checks: CheckSources,
    /// Instances whose apply was out of sight at the start.
    pub(super) lost: Arc<[InstanceId]>,
    pub(super) is_observer: bool,
}

impl Handle {
    /// Whether it looks, and applies nothing.
    pub fn is_observer(&self) -> bool {
        self.is_observer
    }

    /// Checks, compares and (unless `dry_run`) stores config documents; all or nothing. With `push`
    /// also releases.
    ///
    /// # Errors
    /// [`Refusal::Config`] with every problem; [`Refusal::Unavailable`].
    pub async fn apply_configs(
        &self,
        request: ConfigsRequest,
        caller: Caller,
    ) -> Result<ConfigsResult, Refusal> {
        let request = Arc::new(request);
        let mut asked = ClusterAnswers::default();
        for _ in 0..ASKED_LIMIT {
            let (request, caller, known) = (request.clone(), caller.clone(), asked.clone());
            match self
                .plan(|reply| Request::Configs { request, asked: known, caller, reply })
                .await?
            {
                Planned::Done(result) => return Ok(*result),
                // Here, where nobody else waits for the answer.
                Planned::Ask(places) => {
                    let absent = self.checks.clusters.absent(places.clone()).await;
                    asked = ClusterAnswers { places, absent };
                }
            }
        }
        Err(Refusal::Unavailable(
            "other configs were applied again and again meanwhile; nothing was changed, try again"
                .to_owned(),
        ))
    }

    /// Makes a release of a service.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn push(
        &self,
        application: String,
        service: String,
        request: PushRequest,
        caller: Caller,
    ) -> Result<Pushed, Refusal> {
        self.plan(|reply| Request::Push { application, service, request, caller, reply }).await
    }

    /// Makes a release that goes back to an earlier version.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn rollback(
        &self,
        application: String,
        service: String,
        request: RollbackRequest,
        caller: Caller,
    ) -> Result<Pushed, Refusal> {
        self.plan(|reply| Request::Rollback { application, service, request, caller, reply }).await
    }

    /// Does to one instance what a person asks.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn ask(
        &self,
        target: InstanceTarget,
        ask: Ask,
        caller: Caller,
    ) -> Result<(), Refusal> {
        let instance = self.instance(&target).await?;
        self.call(|reply| Call::Person { instance, ask, caller, reply }).await
    }

    /// Stops a job.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn cancel_job(&self, job: JobId, caller: Caller) -> Result<(), Refusal> {
        let Some(row) = self.store.job_row(job).await? else {
            return Err(Refusal::NotFound(format!(
                "{job} does not exist; `pvnctl jobs list` shows those that do"
            )));
        };
        // One that was given up may still run.
        match self.call(|reply| Call::Cancel { job, caller, reply }).await {
            Err(Refusal::NotFound(_)) if row.ended_at.is_some() => Err(Refusal::Conflict(format!(
                "{job} is over ({}); there is nothing to cancel",
                row.status
            ))),
            answer => answer,
        }
    }

    /// Notes something in the log; returns when it is stored. Whoever calls this sees to it that it
    /// is not called without end.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn remark(&self, remark: Remark) -> Result<(), Refusal> {
        self.call(|reply| Call::Remark { remark: Box::new(remark), reply }).await
    }

    /// Why an instance stands where it stands.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub async fn explain(&self, target: InstanceTarget) -> Result<Explanation, Refusal> {
        let instance = self.instance(&target).await?;
        let explained = self
            .call(|reply| Call::Explain { instance, upstream: ConfiguredUpstream::new(), reply })
            .await?;
        if !explained.causes.iter().any(engine::names_together) {
            return Ok(explained);
        }
        let InstanceTarget { application, service, .. } = target;
        let upstream = self.plan(|reply| Request::Upstream { application, service, reply });
        match tokio::time::timeout(CONFIG_WITHIN, upstream).await {
            Ok(Ok(upstream)) => {
                self.call(|reply| Call::Explain { instance, upstream, reply }).await
            }
            // Less is told than could be, which is better than nothing.
            Ok(Err(_)) | Err(_) => Ok(explained),
        }
    }

    /// What comes next by itself, soonest first: of what is not converged at most `limit`, and of
    /// the rest the first.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn upcoming(&self, limit: usize) -> Result<Vec<UpcomingAction>, Refusal> {
        self.call(|reply| Call::Upcoming { limit, reply }).await
    }

    /// Runs one command of one instance now, changing nothing: the dry run.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn run_once(
        &self,
        target: InstanceTarget,
        kind: JobKind,
        caller: Caller,
    ) -> Result<JobId, Refusal> {
        let instance = self.instance(&target).await?;
        let what = DryRun::Command(kind);
        self.call(|reply| Call::RunOnce { instance, what, caller, reply }).await
    }

    /// Whether decisions can be stored at present: what `/readyz` shows.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    /// Instances that stand still, each with the reason: what `/readyz` names.
    pub fn broken(&self) -> Vec<String> {
        self.broken.borrow().clone()
    }

    /// How many instances have an apply of which nobody can say whether it runs, because the spool
    /// directory that it was to run in is lost; until a person says that it may be tried again.
    pub async fn lost(&self) -> usize {
        let mut count = 0;
        for instance in self.lost.iter() {
            // One that cannot be read is told as broken.
            let state = self.store.state(*instance).await.ok().flatten();
            count += usize::from(state.is_some_and(|state| state.unsettled().is_some()));
        }
        count
    }

    /// Log entries as they are committed, for server-sent events and `dev`; slow readers miss some
    /// and are told.
    pub fn watch(&self) -> broadcast::Receiver<Arc<LogEntry>> {
        self.log.subscribe()
    }

    /// That something was committed, be it in the log or not, for pages that look again.
    pub fn revisions(&self) -> &CommitRevisions {
        &self.revisions
    }

    /// Numbers for `/metrics`, by metric name with labels.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn metrics(&self) -> Result<BTreeMap<String, f64>, Refusal> {
        self.call(|reply| Call::Metrics { reply }).await
    }

    /// Applies that were held since the start may start.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn let_applies_start(&self) -> Result<(), Refusal> {
        self.call(|reply| Call::LetAppliesStart { reply }).await
    }

    /// The applies of a runtime that were stopped because many failed go on.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] where they are not; [`Refusal::Unavailable`].
    pub async fn resume_runtime(
        &self,
        runtime: RuntimeName,
        caller: Caller,
    ) -> Result<(), Refusal> {
        self.call(|reply| Call::ResumeRuntime { runtime, caller, reply }).await
    }

    /// The instance that a person means.
    async fn instance(&self, target: &InstanceTarget) -> Result<InstanceId, Refusal> {
        let InstanceTarget { application, service, channel } = target;
        let Some(app) = self.store.find_application(application).await? else {
            return Err(Refusal::NotFound(format!(
                "application `{application}` does not exist; `pvnctl applications list` shows \
                 those that do"
            )));
        };
        let Some(svc) = self.store.find_service(app.id, service).await? else {
            return Err(Refusal::NotFound(format!(
                "application `{0}` has no service `{service}`; `pvnctl services list --app {0}` \
                 shows those that it has",
                app.name
            )));
        };
        let Some(found) = self.store.find_channel(app.id, channel).await? else {
            let all = self.store.channels(app.id).await?;
            let names: Vec<_> = all
                .iter()
                .filter(|row| row.deleted_at.is_none())
                .map(|row| row.name.as_str())
                .collect();
            return Err(Refusal::NotFound(format!(
                "application `{}` has no release channel `{channel}`; it has {}",
                app.name,
                names.join(", ")
            )));
        };
        Ok(InstanceId::of(svc.id, found.id))
    }

    pub(super) async fn call<T>(&self, make: impl FnOnce(Reply<T>) -> Call) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.calls.send(make(reply)).await.map_err(|_| planner::stopping())?;
        answer.await.map_err(|_| planner::stopping())?
    }

    pub(super) async fn plan<T>(
        &self,
        make: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.planner.0.send(make(reply)).await.map_err(|_| planner::stopping())?;
        answer.await.map_err(|_| planner::stopping())?
    }
}
