//! Config documents and parameter values -> compiled instances. Pure: no IO, no clock. Called by
//! the driver when configs are applied (to refuse what cannot work) and when a release is pushed.
//!
//! ```text
//! Configs   --check----------------------------> every problem           `configs apply`
//! Configs   --channels-------------------------> the application's channels   tables, pages
//! parameter values --values, bundle_name-------> what the release stores      `services push`
//! Configs + release + channel --compile--------> CompiledInstance             one for each channel
//! ```

mod channels;
mod check;
mod cluster;
mod commands;
mod configs;
mod cycle;
pub mod environment;
mod instance;
mod job_file;
mod nearest;
mod parameters;
mod policy;
mod problem;
mod release;
mod template;
mod tool_check;
mod value;

use std::time::Duration;

use std::collections::BTreeSet;
use std::sync::Arc;

use config::{Application, Body, Document, Service};
use engine::desired::Desired;
use schema::api::{Diagnostic, PushRequest};
use schema::id::{ChannelName, ReleaseId, RuntimeName};
use schema::target::JobTarget;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use channels::{Channel, RuntimeConnection, upstream};
pub use cluster::{
    AUTHORITIES, AUTHORITIES_DIRECTORY, ClusterPlace, DEFAULT_TTL_S, WRAPPER_CONTAINER,
    WRAPPER_DIRECTORY, cluster_places, given_places, verbatim,
};
pub use configs::{BUILT_IN_RUNTIME, Configs, key};
pub use job_file::JOB_DEADLINE_LIMIT_S;
pub use problem::DocumentKey;
pub use value::{Seal, SecretValue, StoredValue, Values};

use instance::ServiceInChannel;
use problem::Problems;

/// How documents are understood.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Every runtime runs its jobs on this machine, whatever its `proxyRuntime` says (`dev`). A
    /// `fake` one stays fake.
    pub everything_local: bool,
}

/// What a new release keeps where it gives nothing.
#[derive(Debug, Clone, Copy)]
pub struct Earlier<'a> {
    /// The values of the last release.
    pub values: &'a Values,
    /// The channels to which the new one goes: those of the others keep what somebody gave for
    /// them alone.
    pub goes_to: &'a BTreeSet<ChannelName>,
}

/// A release, as far as its instances depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Release<'a> {
    pub id: ReleaseId,
    pub version: &'a str,
    /// When it was made.
    pub released_at: Timestamp,
    /// Its parameter values, from [`values`].
    pub values: &'a Values,
}

/// Every problem of the documents in force, those of single documents excepted, which reading told.
/// With `changed`, only what these documents can have broken is looked at.
pub fn check(
    configs: &Configs,
    options: &Options,
    changed: Option<&BTreeSet<DocumentKey>>,
) -> Vec<Diagnostic> {
    let mut diagnostics = configs.diagnostics(check::check(configs, options, changed));
    // In the order in which people read their files.
    diagnostics.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    diagnostics
}

/// What to say of places whose given namespace is not there.
pub fn absent_namespaces(configs: &Configs, absent: &[ClusterPlace]) -> Vec<Diagnostic> {
    let mut problems = Problems::default();
    cluster::add_absent(configs, absent, &mut problems);
    configs.diagnostics(problems)
}

/// The channels of an application, groups expanded, selectors resolved.
///
/// # Errors
/// What is wrong with it. Never for a document that [`check()`] let pass.
pub fn channels(
    configs: &Configs,
    application: &Application,
) -> Result<Vec<Channel>, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let channels = channels::resolve(configs, application, &mut problems);
    configs.result(channels, problems)
}

/// The values of a new release: those given as text, for all channels and for single ones, checked
/// against the parameters of the service; and what is not given as the last release had it.
///
/// Besides them what is wrong with those that are given: unknown parameters and channels, values of
/// another type, and empty ones of what is required. That a required one is missing only
/// [`compile`] can say.
pub fn values(
    configs: &Configs,
    service: &Service,
    channels: &[Channel],
    request: &PushRequest,
    earlier: Option<Earlier<'_>>,
    seal: &dyn Seal,
) -> (Values, Vec<Diagnostic>) {
    let mut problems = Problems::default();
    let values = release::values(service, channels, request, earlier, seal, &mut problems);
    (values, configs.diagnostics(problems))
}

/// What of the values that are given for a release is allowed and probably not meant. `goes_to`:
/// its channels.
pub fn value_warnings(
    service: &Service,
    request: &PushRequest,
    goes_to: &BTreeSet<ChannelName>,
    earlier: Option<&Values>,
) -> Vec<String> {
    release::value_warnings(service, request, goes_to, earlier)
}

/// The name that `bundleName` gives the version of a release with these values; `None` when the
/// service has no `bundleName`. The caller appends a number when the name is taken.
///
/// # Errors
/// The rendered text cannot name a version.
pub fn bundle_name(
    configs: &Configs,
    service: &Service,
    values: &Values,
) -> Result<Option<String>, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let name = release::bundle_name(service, values, &mut problems);
    configs.result(name, problems)
}

/// The runtime that serves a service in a channel; `None` when none fits, which [`check()`]
/// explains.
pub fn runtime(
    configs: &Configs,
    options: &Options,
    service: &Service,
    channel: &Channel,
) -> Option<RuntimeName> {
    let mut problems = Problems::default();
    let seal = &check::NoSeal;
    ServiceInChannel { configs, options, seal, service, channel, release: None }
        .pick_runtime(&mut problems)
        .map(|runtime| runtime.name.clone())
}

/// One service in one channel at one release. The same arguments always give the same commands, so
/// that their digest (`desired.compiled`) tells whether a change of config means anything here.
///
/// Besides it what is wrong: required parameters without a value, values that do not fit their
/// parameter, and all that [`check()`] finds. Of what has problems only the secrets that it asks
/// for mean anything.
pub fn compile(
    configs: &Configs,
    options: &Options,
    service: &Service,
    channel: &Channel,
    release: &Release<'_>,
    seal: &dyn Seal,
) -> (Option<CompiledInstance>, Vec<Diagnostic>) {
    let mut problems = Problems::default();
    let compiled =
        ServiceInChannel { configs, options, seal, service, channel, release: Some(release) }
            .compile(&mut problems);
    (compiled, configs.diagnostics(problems))
}

/// The same for a release that was made before, whose service's config is not the one in force:
/// `what` and `way` say of each problem which release it is of, and what to do.
///
/// # Errors
/// As [`compile`], with the lines of `document`.
pub fn compile_earlier(
    configs: &Configs,
    options: &Options,
    document: &Arc<Document>,
    channel: &Channel,
    release: &Release<'_>,
    seal: &dyn Seal,
    (what, way): (&str, &str),
) -> Result<CompiledInstance, Vec<Diagnostic>> {
    let Body::Service(service) = document.body() else { return Err(Vec::new()) };
    let mut problems = Problems::default();
    let compiled =
        ServiceInChannel { configs, options, seal, service, channel, release: Some(release) }
            .compile(&mut problems);
    if problems.count() == 0 {
        return compiled.ok_or_else(Vec::new);
    }
    problems.are_of(what, way);
    let mut then = configs.clone();
    then.put(document.clone());
    Err(then.diagnostics(problems))
}

/// Everything that one service instance needs for a release: what the engine decides with, and the
/// commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledInstance {
    pub channel: ChannelName,
    /// The custom runtime that serves it.
    pub runtime: RuntimeName,
    /// Where the jobs run.
    pub place: RunTarget,
    /// For the engine.
    pub desired: Desired,
    /// For the runner. Stored by its digest, which is `desired.compiled`.
    pub commands: Commands,
}

/// Where jobs run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunTarget {
    /// Processes on the scheduler's own machine.
    Local {
        /// Directory of the commands as the config says it, relative to where the scheduler was
        /// started (`dev`: to DIR); `None` = there.
        root: Option<String>,
        /// Whether jobs get only PATH, HOME, USER, LANG and TMPDIR of the daemon's environment.
        clean_env: bool,
    },
    /// Jobs on a Kubernetes cluster.
    Cluster(Box<ClusterPlace>),
    /// Nothing runs; every command succeeds at once, except those of the named programs.
    Fake {
        /// Programs (by name) whose command fails.
        crashing_programs: Vec<String>,
    },
}

impl RunTarget {
    /// As it stands in the rows of its jobs.
    pub fn target(&self) -> JobTarget {
        match self {
            Self::Local { .. } => JobTarget::Local,
            Self::Cluster(place) => JobTarget::Cluster(place.cluster.clone()),
            Self::Fake { .. } => JobTarget::Fake,
        }
    }
}

/// The three commands of an instance, rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Where they run.
    pub place: RunTarget,
    /// Is there work to do?
    pub fetch: Option<Command>,
    /// Do it.
    pub apply: Command,
    /// Show people something.
    pub get_info: Option<Command>,
}

/// One rendered command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Name of the program, for messages and for `fake`.
    pub name: String,
    /// The program and its arguments: entrypoint, then cmd. Not empty. On a cluster its Job says
    /// what is run.
    pub argv: Vec<String>,
    /// Environment, lowest precedence first already merged; without `PVN_*`.
    pub env: Vec<EnvVar>,
    /// Working directory as written; relative to the place's root.
    pub working_directory: Option<String>,
    /// What structured output is expected (`--expect`).
    pub expect: Option<schema::report::StructuredKind>,
    /// Let what the command leaves behind live on (`taskConfig.leaveRunning`).
    pub leave_running: bool,
    /// How long it may take to end once it was asked to; `None` as its place has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace_ms: Option<u64>,
    /// On a cluster: the `batch/v1` Job as the config says it, with the values put in; its main
    /// container, which has the name `name`, without its secret variables, which are in `env`.
    /// What it says of a variable wins over `env`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Box<serde_json::Value>>,
}

impl Command {
    /// One that asks for nothing but to be run.
    pub fn new(name: &str, argv: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            argv: argv.iter().map(|&text| text.to_owned()).collect(),
            env: Vec::new(),
            working_directory: None,
            expect: None,
            leave_running: false,
            stop_grace_ms: None,
            job: None,
        }
    }

    /// How long it may take to end once it was asked to, where the config says so: its task, or
    /// its Job of its Pod.
    pub(crate) fn stop_grace(&self) -> Option<Duration> {
        if let Some(ms) = self.stop_grace_ms {
            return Some(Duration::from_millis(ms));
        }
        let seconds = self
            .job
            .as_ref()?
            .pointer("/spec/template/spec/terminationGracePeriodSeconds")?
            .as_i64()?;
        Some(Duration::from_millis(u64::try_from(seconds.saturating_mul(1_000)).unwrap_or(0)))
    }
}

/// One environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    pub key: String,
    /// Its value, or where to find it.
    pub value: EnvValue,
}

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnvValue {
    /// As it stands.
    Plain(String),
    /// A secret of the store; `version` 0 is the latest. Opened at the start of each job and never
    /// stored.
    Secret {
        key: String,
        /// Its version; 0 = the latest.
        version: u64,
    },
    /// A key of a Secret of the cluster where the job runs. On a cluster only.
    KubernetesSecret {
        /// Name of the Secret.
        name: String,
        /// Key inside it.
        key: String,
    },
    /// A secret that stood in clear in the config, sealed by [`Seal`]. Opened at the start of each
    /// job.
    Sealed(String),
}

impl Commands {
    /// Those that there are.
    pub fn each(&self) -> impl Iterator<Item = &Command> {
        self.fetch.iter().chain([&self.apply]).chain(&self.get_info)
    }

    /// The keys of all stored secrets that the commands ask for.
    pub fn secret_keys(&self) -> BTreeSet<&str> {
        let variables = self.each().flat_map(|command| &command.env);
        variables
            .filter_map(|variable| match &variable.value {
                EnvValue::Secret { key, .. } => Some(key.as_str()),
                EnvValue::Plain(_) | EnvValue::Sealed(_) | EnvValue::KubernetesSecret { .. } => {
                    None
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
