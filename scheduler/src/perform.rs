//! One function per action. Has no opinions: what it is asked was decided and committed; what comes
//! of it goes back to the driver. Everything here can be done twice: a job that was started is
//! found by its id, a stop of what has stopped changes nothing.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use engine::action::StartJob;
use engine::desired::FetchAnswer;
use schema::id::BlobId;
use schema::report::StructuredKind;
use schema::status::JobKind;
use schema::target::PlacedJob;
use schema::time::{self, Timestamp};
use schema::wire::{self, SECRET_KEYS_VARIABLE};

use crate::clock::Clock;
use crate::compile::environment::JobIdentity;
use crate::compile::{Command, Commands, EnvValue, RunTarget};
use crate::crash;
use crate::names::InstanceNames;
use crate::runner::registry::Runners;
use crate::runner::{ClusterJob, End, Instance, JobSpec};
use crate::secrets::Sealer;
use crate::store::Store;

mod cache;
mod claim;
mod fake;
mod former;
mod secrets;

use cache::Cache;
pub use claim::StartClaim;

/// Name of the output file that an apply can be handed.
pub const PLAN: &str = "plan";

/// What sealed values in compiled commands and parameter values are bound to.
pub const RAW_SECRET: &str = "raw secret";

/// What a start came to.
#[derive(Debug)]
pub enum StartOutcome {
    /// The runner has the job; its news say the rest.
    Handed,
    /// It is over already.
    Over(End),
    /// It was withdrawn meanwhile, or may start no longer: nobody has it.
    Unclaimed,
}

/// Performs actions. Shared by all tasks of the driver.
#[derive(Debug)]
pub struct Performer {
    store: Store,
    clock: Clock,
    sealer: Sealer,
    runners: Runners,
    root: PathBuf,
    compiled: Cache,
}

impl Performer {
    /// A performer whose local jobs start from `root`.
    pub fn new(
        store: Store,
        clock: Clock,
        sealer: Sealer,
        runners: Runners,
        root: PathBuf,
    ) -> Self {
        Self { store, clock, sealer, runners, root, compiled: Cache::default() }
    }

    /// Starts a job, or finds that it was started before; not once `until` has come, or when it is
    /// withdrawn first.
    pub async fn start(
        &self,
        start: &StartJob,
        names: &InstanceNames,
        claim: &StartClaim,
        until: Option<Timestamp>,
    ) -> StartOutcome {
        crash::at(crash::BEFORE_START);
        let prepared = match self.prepare(start, names).await {
            Ok(prepared) => prepared,
            Err(end) => return StartOutcome::Over(end),
        };
        // Another daemon may have the database by now, and whatever was decided before is that
        // one's.
        if let Err(error) = self.store.ensure_held().await {
            return StartOutcome::Over(later(error.to_string()));
        }
        if until.is_some_and(|until| until <= self.clock.now()) || !claim.hand_over() {
            return StartOutcome::Unclaimed;
        }
        let started = match prepared {
            Prepared::Local(spec) => {
                self.runners.start(*spec);
                StartOutcome::Handed
            }
            Prepared::Over(end) => StartOutcome::Over(end),
        };
        crash::at(crash::AFTER_START);
        started
    }

    /// Stops a job: asks it to end, then makes it. Its end comes with the runner's news.
    pub fn stop(&self, job: &PlacedJob) {
        crash::at(crash::BEFORE_STOP);
        // One that does not run any more has told its end, or will.
        self.runners.stop(job);
        crash::at(crash::AFTER_STOP);
    }

    /// Whether a stop of this job reaches anybody.
    pub fn hears(&self, job: &PlacedJob) -> bool {
        self.runners.hears(job)
    }

    /// Lets the runners forget jobs whose ends are stored.
    pub async fn forget(&self, jobs: &[PlacedJob]) {
        crash::at(crash::BEFORE_ACK);
        self.runners.forget(jobs).await;
        crash::at(crash::AFTER_ACK);
    }

    /// Lets the runners forget a service instance that is deleted for good.
    pub async fn forget_instance(&self, names: &InstanceNames) {
        self.runners.forget_instance(&instance(names)).await;
    }

    async fn prepare(&self, start: &StartJob, names: &InstanceNames) -> Result<Prepared, End> {
        let commands = self.commands(start.compiled).await?;
        let Some(command) = started(&commands, start) else {
            return Err(never(format!("the runtime has no {} command", start.kind)));
        };
        let command = command.as_ref();
        let (root, clean_env) = match &commands.place {
            RunTarget::Fake { crashing_programs } => {
                let now = self.clock.now();
                let end = fake::run(command, crashing_programs, &start.version, now);
                return Ok(Prepared::Over(end));
            }
            RunTarget::Local { root, clean_env } => (
                root.as_ref().map_or_else(|| self.root.clone(), |root| self.root.join(root)),
                *clean_env,
            ),
            RunTarget::Cluster(_) => (self.root.clone(), false),
        };
        let cluster = match &commands.place {
            RunTarget::Cluster(place) => Some(ClusterJob {
                place: place.as_ref().clone(),
                application: names.application.1.clone(),
                service: names.service.1.clone(),
                channel: names.channel.1.clone(),
            }),
            RunTarget::Local { .. } | RunTarget::Fake { .. } => None,
        };
        let (mut env, secret_keys) = self.open(command).await?;
        let inputs = self.inputs(start).await?;
        // Without a file of the fetch there is nothing in which its secrets could be.
        let given: Vec<&str> = env
            .iter()
            .filter(|(key, _)| secret_keys.contains(key))
            .map(|(_, value)| value.as_str())
            .collect();
        let hidden = if inputs.is_empty() {
            Vec::new()
        } else {
            self.secrets_of_fetch(start, &commands, &given).await?
        };
        let known: Vec<&[u8]> = given
            .iter()
            .map(|text| text.as_bytes())
            .chain(hidden.iter().map(|value| value.as_bytes()))
            .collect();
        let former = self.former(names.instance(), start.job, start.decided_at, &known).await?;
        let former = former.into_iter().map(OsString::from_vec).collect();
        env.extend(identity(start, names, &commands).variables());
        Ok(Prepared::Local(Box::new(JobSpec {
            job: start.job,
            kind: start.kind,
            attempt: start.attempt,
            command: command.clone(),
            env,
            clean_env,
            root: Some(root),
            secret_keys,
            hidden,
            former,
            timeout_ms: start.timeout.map(time::millis),
            success_exit_codes: if is_exit_code_fetch(start, &commands) {
                vec![0, 2]
            } else {
                vec![0]
            },
            inputs,
            instance: Some(instance(names)),
            cluster,
        })))
    }

    async fn commands(&self, digest: BlobId) -> Result<Arc<Commands>, End> {
        if let Some(found) = self.compiled.get(digest) {
            return Ok(found);
        }
        match self.store.compiled(digest).await {
            Ok(Some(commands)) => {
                let commands = Arc::new(commands);
                self.compiled.put(digest, commands.clone());
                Ok(commands)
            }
            Ok(None) => Err(never(format!(
                "its commands {digest} are not in the database; push the service again"
            ))),
            Err(error) => Err(later(format!("failed to read its commands: {error}"))),
        }
    }

    /// The variables that the config sets, secrets opened, and which of them are secret.
    async fn open(&self, command: &Command) -> Result<(Vec<(String, String)>, Vec<String>), End> {
        let mut env = Vec::with_capacity(command.env.len() + 12);
        let mut secret_keys = Vec::new();
        for variable in &command.env {
            let bytes = match &variable.value {
                // Joined with ours.
                EnvValue::Plain(text) if variable.key == SECRET_KEYS_VARIABLE => {
                    secret_keys.extend(wire::secret_keys(text).map(str::to_owned));
                    continue;
                }
                EnvValue::Plain(text) => {
                    env.push((variable.key.clone(), text.clone()));
                    continue;
                }
                // The cluster's; the Job refers to it.
                EnvValue::KubernetesSecret { .. } => continue,
                EnvValue::Secret { key, version } => match self.store.secret(key, *version).await {
                    Ok(Some((_, bytes))) => bytes,
                    Ok(None) if *version == 0 => {
                        return Err(never(format!(
                            "secret `{key}` does not exist; set it with `pvnctl secrets set {key}`"
                        )));
                    }
                    Ok(None) => {
                        return Err(never(format!(
                            "secret `{key}` has no version {version}; `pvnctl secrets list` shows \
                             those it has"
                        )));
                    }
                    Err(error) => {
                        return Err(later(format!("failed to open secret `{key}`: {error}")));
                    }
                },
                EnvValue::Sealed(sealed) => {
                    self.sealer.unseal(RAW_SECRET, sealed).map_err(|error| {
                        never(format!("failed to open the secret in `{}`: {error}", variable.key))
                    })?
                }
            };
            let text = String::from_utf8(bytes).map_err(|_| {
                never(format!(
                    "the secret in `{}` is not UTF-8 text, which an environment variable must be",
                    variable.key
                ))
            })?;
            if text.contains('\0') {
                let why = format!(
                    "the secret in `{}` holds a NUL character, which no environment variable can; \
                     set it anew",
                    variable.key
                );
                return Err(never(why));
            }
            env.push((variable.key.clone(), text));
            secret_keys.push(variable.key.clone());
        }
        Ok((env, secret_keys))
    }

    /// What `--in` can name: for an apply, the files of the fetch that found the work; the plan is
    /// the one that was decided on.
    async fn inputs(&self, start: &StartJob) -> Result<Vec<(String, BlobId)>, End> {
        let Some(fetch) = start.fetch_job else { return Ok(Vec::new()) };
        let row = self
            .store
            .job_row(fetch)
            .await
            .map_err(|error| later(format!("failed to read the fetch {fetch}: {error}")))?;
        let files = row.and_then(|row| row.report).map(|report| report.files).unwrap_or_default();
        let others = files.into_iter().filter(|file| file.name != PLAN || start.plan.is_none());
        let mut inputs: Vec<_> = others
            .filter_map(|file| Some((format!("fetch:{}", file.name), file.content_blob_id?)))
            .collect();
        if let Some(plan) = start.plan {
            inputs.push((format!("fetch:{PLAN}"), plan));
        }
        Ok(inputs)
    }
}

/// What a job needs before it starts.
enum Prepared {
    Local(Box<JobSpec>),
    Over(End),
}

fn command(commands: &Commands, kind: JobKind) -> Option<&Command> {
    match kind {
        JobKind::Fetch => commands.fetch.as_ref(),
        JobKind::Apply => Some(&commands.apply),
        JobKind::GetInfo => commands.get_info.as_ref(),
    }
}

/// What a start runs: a command, or the check of its tool.
fn started<'a>(commands: &'a Commands, start: &StartJob) -> Option<Cow<'a, Command>> {
    let command = command(commands, start.kind)?;
    if start.is_check {
        return command.tool_check().map(Cow::Owned);
    }
    Some(Cow::Borrowed(command))
}

/// It never started and another try makes no sense.
fn never(why: String) -> End {
    End::NotStarted { why, surroundings: false }
}

/// It never started and another try makes sense.
fn later(why: String) -> End {
    End::NotStarted { why, surroundings: true }
}

/// Only a structured fetch is expected to print a document; any other one speaks by its exit code.
fn fetch_mode(commands: &Commands) -> Option<FetchAnswer> {
    let fetch = commands.fetch.as_ref()?;
    Some(if fetch.expect == Some(StructuredKind::Fetch) {
        FetchAnswer::StructuredOutput
    } else {
        FetchAnswer::ExitCode
    })
}

fn instance(names: &InstanceNames) -> Instance {
    Instance::new(names.instance(), &names.application.1, &names.service.1, &names.channel.1)
}

fn is_exit_code_fetch(start: &StartJob, commands: &Commands) -> bool {
    let is_fetch = start.kind == JobKind::Fetch && !start.is_check;
    is_fetch && fetch_mode(commands) == Some(FetchAnswer::ExitCode)
}

fn identity<'a>(
    start: &'a StartJob,
    names: &'a InstanceNames,
    commands: &Commands,
) -> JobIdentity<'a> {
    JobIdentity {
        application: &names.application.1,
        application_id: names.application.0,
        service: &names.service.1,
        service_id: names.service.0,
        channel: &names.channel.1,
        channel_id: names.channel.0,
        version: &start.version,
        job: start.job,
        kind: start.kind,
        attempt: start.attempt,
        fetch_mode: fetch_mode(commands),
        fresh_after: start.fresh_after,
        plan: start.plan,
    }
}
