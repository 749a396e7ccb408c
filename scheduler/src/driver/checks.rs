//! What works and what does not where a runtime's jobs run, for whoever asks. Called by `http`.
//!
//! The runner of clusters looks at places there, that of this machine at directories and programs;
//! what a tool needs is found by a job of a service instance ([`jobs`]), for all that it is given,
//! from image to credentials, is the instance's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schema::api::{Finding, RuntimeCheck};
use schema::id::{
    ApplicationId, ApplicationName, BlobId, ChannelId, ChannelName, JobId, RuntimeName, ServiceId,
    ServiceName,
};
use schema::status::{CheckKind, CheckStatus, JobKind};
use tokio::time::Instant;

use super::calls::Call;
use super::planner::Request;
use super::{Caller, Handle, Refusal};
use crate::blobs::Blobs;
use crate::compile::{ClusterPlace, Command, Commands, EnvValue, RunTarget};
use crate::names::InstanceNames;
use crate::runner::registry::Runners;
use crate::runner::{ClusterQuestions, JobSpec, PlaceLook};

mod fetches;
mod groups;
mod jobs;

use groups::InstanceGroup;

/// Longest wait for the jobs of a check. Below the 60 s of silence after which `pvnctl` gives an
/// answer up.
const JOBS_WITHIN: Duration = Duration::from_secs(52);

/// Most service instances whose commands are read for one check: a few statements of SQL a second
/// are nothing, tens of thousands would hold up others.
const READ_LIMIT: usize = 64;

/// Whom a check asks about what is no job.
#[derive(Debug, Clone)]
pub(super) struct CheckSources {
    pub(super) clusters: Arc<dyn ClusterQuestions>,
    runners: Runners,
    /// Where local jobs start from.
    root: PathBuf,
    /// What jobs printed.
    blobs: Blobs,
}

impl CheckSources {
    pub(super) fn of(
        clusters: Arc<dyn ClusterQuestions>,
        runners: &Runners,
        root: &Path,
        blobs: &Blobs,
    ) -> Self {
        let (runners, root, blobs) = (runners.clone(), root.to_owned(), blobs.clone());
        Self { clusters, runners, root, blobs }
    }
}

/// What of a runtime can be checked, as its document says.
#[derive(Debug)]
pub(super) struct CheckedRuntime {
    pub(super) name: RuntimeName,
    /// On clusters.
    pub(super) places: Vec<ClusterPlace>,
    /// Where on this machine its jobs start, if they do.
    pub(super) here: Option<RunTarget>,
    /// Whose service instances have jobs there: its own name, or those of the runtimes that name
    /// it.
    pub(super) serving: Vec<RuntimeName>,
    /// Whether its commands are a tool's that is built in.
    pub(super) has_tool: bool,
}

/// A service instance that has a release on a runtime.
#[derive(Debug, Clone)]
pub(super) struct ServedInstance {
    pub(super) names: Arc<InstanceNames>,
    /// Its commands.
    pub(super) compiled: BlobId,
}

impl ServedInstance {
    /// Which of two is looked at before the other.
    pub(super) fn order(&self) -> (&ApplicationName, &ServiceName, &ChannelName) {
        let InstanceNames { application, service, channel } = &*self.names;
        (&application.1, &service.1, &channel.1)
    }
}

/// Which service instances are to be looked at; those that nobody names, one for each image and
/// place.
#[derive(Debug, Clone, Default)]
pub struct CheckedInstances {
    /// Of this application only.
    pub application: Option<ApplicationId>,
    /// Of this service only.
    pub service: Option<ServiceId>,
    /// In this channel only.
    pub channel: Option<ChannelId>,
}

impl CheckedInstances {
    fn names_any(&self) -> bool {
        self.application.is_some() || self.service.is_some() || self.channel.is_some()
    }

    fn includes(&self, names: &InstanceNames) -> bool {
        self.application.is_none_or(|id| id == names.application.0)
            && self.service.is_none_or(|id| id == names.service.0)
            && self.channel.is_none_or(|id| id == names.channel.0)
    }
}

impl Handle {
    /// Finds out by trying.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], also where none of the instances that are named is there,
    /// [`Refusal::Forbidden`] where the caller is limited,
    /// [`Refusal::Conflict`] when too many are under way, [`Refusal::Unavailable`].
    pub async fn check_runtime(
        &self,
        runtime: String,
        asked: CheckedInstances,
        caller: Caller,
    ) -> Result<RuntimeCheck, Refusal> {
        // Also where instances are named: a cluster is asked for all.
        caller.reaches_everything(&format!("all that runtime {runtime} serves"))?;
        let until = Instant::now() + JOBS_WITHIN;
        let whose = caller.clone();
        let checked = self.plan(|reply| Request::Places { runtime, caller: whose, reply }).await?;
        let runtimes = checked.serving.clone();
        let mut served = self.call(|reply| Call::ServedBy { runtimes, reply }).await?;
        served.retain(|instance| asked.includes(&instance.names));
        if served.is_empty() && asked.names_any() {
            return Err(Refusal::NotFound(format!(
                "none of these service instances has a release on `{}`; `pvnctl services list` \
                 shows where they are",
                checked.name
            )));
        }
        let places = self.check_places(&checked);
        let instances = self.check_instances(&checked, served, &caller, until);
        let (places, instances) = tokio::join!(places, instances);
        let checks = [places?, instances?].concat();
        let ok = checks.iter().all(|finding| finding.status != CheckStatus::Failed);
        Ok(RuntimeCheck { runtime: checked.name, ok, checks })
    }

    async fn check_places(&self, checked: &CheckedRuntime) -> Result<Vec<Finding>, Refusal> {
        let name = &checked.name;
        if checked.places.is_empty() {
            let why = format!("jobs of `{name}` run on no cluster; there is nothing to reach");
            return Ok(vec![Finding::skipped(name, CheckKind::Connection, why)]);
        }
        self.checks.clusters.check(checked.places.clone()).await.map_err(Refusal::Conflict)
    }

    async fn check_instances(
        &self,
        checked: &CheckedRuntime,
        served: Vec<ServedInstance>,
        caller: &Caller,
        until: Instant,
    ) -> Result<Vec<Finding>, Refusal> {
        let unread = served.len().saturating_sub(READ_LIMIT);
        let mut read = Vec::new();
        for instance in served.into_iter().take(READ_LIMIT) {
            // Of one whose commands are gone its own status tells.
            if let Some(commands) = self.store.compiled(instance.compiled).await? {
                read.push((instance, commands));
            }
        }
        let mut findings = Vec::new();
        if let Some(here) = &checked.here {
            findings.extend(self.look_here(checked, here, &read).await);
        }
        // Jobs on a host are those of other runtimes, which are asked by their names.
        if !checked.serving.contains(&checked.name) {
            return Ok(findings);
        }
        // What cannot be started fails, and that was told.
        let is_well = findings.iter().all(|found| found.status != CheckStatus::Failed);
        let fetches = if is_well { fetches::chosen(&read) } else { Vec::new() };
        let looks = fetches.iter().map(|one| self.try_fetch(&checked.name, one, caller, until));
        for found in futures::future::join_all(looks).await {
            findings.extend(found?);
        }
        if read.is_empty() && checked.has_tool {
            let why = format!(
                "no service has a release on `{}` yet, and a job is given all that it needs by a \
                 service; make one with `pvnctl services push`, and check again",
                checked.name
            );
            findings.push(Finding::skipped(&checked.name, CheckKind::Instance, why));
        }
        let (groups, others) = groups::of(read);
        let looks = groups.iter().map(|group| self.try_tool(&checked.name, group, caller, until));
        for found in futures::future::join_all(looks).await {
            findings.extend(found?);
        }
        if !others.is_empty() || unread > 0 && !groups.is_empty() {
            let why = groups::not_tried(&others, unread);
            findings.push(Finding::skipped(&checked.name, CheckKind::Instance, why));
        }
        Ok(findings)
    }

    /// What is on this machine, without a job.
    async fn look_here(
        &self,
        checked: &CheckedRuntime,
        here: &RunTarget,
        read: &[(ServedInstance, Commands)],
    ) -> Vec<Finding> {
        let RunTarget::Local { root, clean_env } = here else { return Vec::new() };
        let started_in = &self.checks.root;
        let root = root.as_ref().map_or_else(|| started_in.clone(), |root| started_in.join(root));
        let mut commands: Vec<&Command> = Vec::new();
        for (_, of_instance) in read {
            if !matches!(of_instance.place, RunTarget::Local { .. }) {
                continue;
            }
            let Commands { fetch, apply, get_info, .. } = of_instance;
            commands.extend(fetch.iter().chain([apply]).chain(get_info));
        }
        // Where one without a directory of its own would start.
        let no_program = Command::new("command", &[]);
        if commands.is_empty() {
            commands.push(&no_program);
        }
        let jobs = commands.into_iter().map(|command| JobSpec {
            env: plain_variables(command),
            root: Some(root.clone()),
            clean_env: *clean_env,
            ..JobSpec::new(JobId::from_bytes([0; 16]), JobKind::Fetch, command.clone())
        });
        let look = PlaceLook { runtime: checked.name.clone(), jobs: jobs.collect() };
        self.checks.runners.look(look).await
    }

    /// What the tool of one instance needs, by a job; nothing where it has none.
    async fn try_tool(
        &self,
        runtime: &RuntimeName,
        group: &InstanceGroup,
        caller: &Caller,
        until: Instant,
    ) -> Result<Vec<Finding>, Refusal> {
        let label = group.first.names.label();
        let about = |finding: Finding| Finding { instance: Some(label.clone()), ..finding };
        let said = about(Finding::ok(runtime, CheckKind::Instance, group.chosen()));
        let found = self.try_by_job(runtime, &group.first, caller, until).await?;
        Ok([said].into_iter().chain(found.into_iter().map(about)).collect())
    }
}

/// The variables of a command that stand in its config.
fn plain_variables(command: &Command) -> Vec<(String, String)> {
    let plain = |value: &EnvValue| match value {
        EnvValue::Plain(text) => Some(text.clone()),
        _ => None,
    };
    let variables = command.env.iter();
    variables.filter_map(|variable| Some((variable.key.clone(), plain(&variable.value)?))).collect()
}
