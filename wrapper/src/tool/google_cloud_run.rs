//! `pvn-wrapper google-cloud-run fetch|apply|info|check`, for a service of Cloud Run by Google's
//! own `gcloud`. Called by `tool`.
//!
//! fetch prints the service as structured output; apply hands the wanted one over and does not wait
//! for its roll-out (`--async`): gcloud would poll for up to half an hour for what fetch sees at
//! its next poll, and whoever stops a job that waits stops nothing but the waiting. info prints
//! what people look for, check tries what the others need. 75: throttled, not reached, or changed
//! by somebody else meanwhile.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use schema::output::FetchOutput;
use serde_json::Value;

use self::key::KeyFile;
use self::live::LiveService;
use self::wanted::WantedService;
use super::answers::{self, SharedAnswers};
use super::call::{CallEnd, Output, ToolCaller};
use super::ownership::Ownership;
use super::{Fault, Needs, ToolArguments, print_document, words};
use crate::spawn::{Environment, variable};
use crate::writer::say;

mod check;
mod drift;
mod faults;
mod info;
mod key;
mod live;
mod object;
mod wanted;

/// The wanted service as apply hands it over, below the run's directory.
const DOCUMENT: &str = "service.json";

/// What gcloud is told unless somebody told it otherwise.
const DEFAULTS: &[(&str, &str)] = &[
    ("CLOUDSDK_CORE_DISABLE_PROMPTS", "1"),
    ("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "1"),
    ("CLOUDSDK_CORE_DISABLE_FILE_LOGGING", "1"),
    ("CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK", "1"),
];

/// What of gcloud's configuration leads to credentials in another file. Source: its properties of
/// the section `auth`.
const ELSEWHERE: &[&str] = &["access_token_file", "credential_file_override"];

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum CloudRunStep {
    /// Print the service as structured output: its versions with traffic, how it fares, drift
    Fetch(CloudRunArguments),
    /// Create or replace the service, unless it is as wanted; does not wait for the roll-out
    Apply(CloudRunArguments),
    /// Print URL, revision, traffic, image and conditions, as a getInfo does
    Info(CloudRunArguments),
    /// Try what a job needs, and print what was found: the program, its credentials, the region
    Check(CloudRunArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CloudRunArguments {
    /// The id of the project in which the service is
    #[arg(long, value_name = "ID")]
    project: String,

    /// The region in which it is, such as `europe-west1`
    #[arg(long, value_name = "NAME")]
    region: String,

    /// The service in JSON, as `gcloud run services describe NAME --format json` prints one: the
    /// text itself, or the path of a file
    #[arg(long = "service-spec", value_name = "JSON|PATH")]
    service_spec: String,

    #[command(flatten)]
    common: ToolArguments,
}

impl CloudRunStep {
    fn arguments(&self) -> &CloudRunArguments {
        match self {
            Self::Fetch(arguments)
            | Self::Apply(arguments)
            | Self::Info(arguments)
            | Self::Check(arguments) => arguments,
        }
    }

    pub(super) fn common(&self) -> &ToolArguments {
        &self.arguments().common
    }

    pub(super) fn needs(&self) -> Needs {
        let name = match self {
            Self::Fetch(_) => "google-cloud-run-fetch",
            Self::Apply(_) => "google-cloud-run-apply",
            Self::Info(_) => "google-cloud-run-info",
            Self::Check(_) => "google-cloud-run-check",
        };
        let stays = !matches!(self, Self::Check(_));
        Needs { name, inputs: &[], outputs: &[], guards: &[], success_exit_codes: &[0], stays }
    }

    pub(super) fn run(&self, within: &Path, environment: &Environment) -> Result<u8, Fault> {
        let arguments = self.arguments();
        let wanted = WantedService::read(&arguments.service_spec, &arguments.project)?;
        let mut caller = ToolCaller::new()?;
        for (name, value) in DEFAULTS {
            caller.default(name, value);
        }
        // Else it writes escape sequences, into a pipe too.
        caller.set("TERM", "dumb");
        // Removed when this returns.
        let _key = KeyFile::of(environment, within, &mut caller)?;
        let mut run = CloudRun { caller, arguments, wanted };
        let shared = shared(arguments, environment);
        match self {
            Self::Fetch(_) => run.fetch(&Ownership::of(environment)?, shared.as_ref()),
            Self::Apply(_) => run.apply(&Ownership::of(environment)?, within, environment),
            Self::Info(_) => run.info(shared.as_ref()),
            Self::Check(_) => check::run(&mut run),
        }
    }
}

/// One service, by gcloud.
struct CloudRun<'a> {
    caller: ToolCaller,
    arguments: &'a CloudRunArguments,
    wanted: WantedService,
}

impl CloudRun<'_> {
    fn fetch(&mut self, own: &Ownership, shared: Option<&SharedAnswers>) -> Result<u8, Fault> {
        let Some(live) = self.look_shared(shared)? else {
            let CloudRunArguments { project, region, .. } = self.arguments;
            say(&format!("there is no service `{}` in {region} of {project}", self.wanted.name()));
            return print_document(&FetchOutput { objects: Vec::new() });
        };
        let mut revisions = Vec::new();
        for name in live.revisions_to_ask_for() {
            let asked = ["revisions", "describe", name];
            let ended = self.gcloud(&asked)?;
            if ended.code != 0 {
                return Err(self.fault(&ended, &asked));
            }
            revisions.push((name.to_owned(), named(&ended, &asked, name)?));
        }
        let arguments = self.arguments;
        let place = (arguments.project.as_str(), arguments.region.as_str());
        let object = object::object(&live, &revisions, &self.wanted, own, place);
        print_document(&FetchOutput { objects: vec![object] })
    }

    fn apply(
        &mut self,
        own: &Ownership,
        within: &Path,
        environment: &Environment,
    ) -> Result<u8, Fault> {
        let name = self.wanted.name().to_owned();
        let live = self.look()?;
        let standing = live.as_ref().map(|live| live.standing(&self.wanted, own));
        let attempt = match (&live, standing) {
            (Some(live), Some(live::Standing::AsWanted)) => {
                say(&format!(
                    "nothing to do: `{name}` is as version {} wants it; {}",
                    own.version,
                    live.condition_text()
                ));
                return Ok(0);
            }
            (Some(live), Some(live::Standing::Failed)) => self.next_attempt(live, environment),
            (Some(live), Some(live::Standing::NotSeen)) => live.attempt().map(str::to_owned),
            _ => None,
        };
        if let Some(other) = live.as_ref().and_then(|live| live.other_owner(own)) {
            say(&format!(
                "`{name}` was last deployed by another service instance of pvn ({other}), and is \
                 replaced"
            ));
        }
        let path = within.join(DOCUMENT);
        let text = self.wanted.document(own, attempt.as_deref()).to_string();
        std::fs::write(&path, text).map_err(|error| Fault::unwritten(&path, &error))?;
        let path = path.to_string_lossy();
        let asked = ["services", "replace", &*path, "--async"];
        let ended = self.gcloud(&asked)?;
        if ended.code != 0 {
            return Err(self.fault(&ended, &asked));
        }
        let accepted = LiveService::new(ended.json(&shown(&asked))?);
        say(&format!(
            "Cloud Run has accepted `{name}` as generation {}; it rolls out there, and fetch tells \
             how that goes",
            accepted.generation()
        ));
        Ok(0)
    }

    /// By what a revision differs from a failed one of the same content: without that Cloud Run
    /// would make none, and what has failed would never be tried again.
    fn next_attempt(&self, live: &LiveService, environment: &Environment) -> Option<String> {
        let why = live.condition_text();
        if let Some(revision) = self.wanted.revision_name() {
            say(&format!(
                "{why}; the service names its revision `{revision}`, so Cloud Run makes no new one \
                 until that name changes"
            ));
            return None;
        }
        let job = variable(environment, "PVN_JOB_ID")?.to_string_lossy().into_owned();
        say(&format!("{why}; it is tried again as a new revision"));
        Some(job)
    }

    fn info(&mut self, shared: Option<&SharedAnswers>) -> Result<u8, Fault> {
        let live = self.look_shared(shared)?;
        let CloudRunArguments { project, region, .. } = self.arguments;
        print_document(&info::output(live.as_ref(), self.wanted.name(), project, region))
    }

    /// The same as [`Self::look`], as another job of the scheduler was told of late, where that
    /// will do. Who has company asks for all services of the region at once.
    fn look_shared(
        &mut self,
        shared: Option<&SharedAnswers>,
    ) -> Result<Option<LiveService>, Fault> {
        let Some(shared) = shared else { return self.look() };
        let name = self.wanted.name().to_owned();
        let told = shared.of(&name, usize::MAX, |names| match names {
            [_] => Ok(Vec::new()),
            names => {
                let services = self.list(&[])?.into_iter();
                let mut named: Vec<_> =
                    services.map(|service| (service.name().to_owned(), service)).collect();
                named.retain(|(name, _)| names.contains(name));
                Ok(named.into_iter().map(|(name, service)| (name, service.into_value())).collect())
            }
        })?;
        if let Some(service) = told {
            return Ok(Some(LiveService::new(service)));
        }
        let asked_at = answers::now();
        let live = self.look()?;
        if let Some(live) = &live {
            shared.keep(&name, asked_at, live.service());
        }
        Ok(live)
    }

    /// The service as it is, or that there is none. The one call that answers for one service says
    /// "not there" in words alone, so whatever it fails with that is not known is held against the
    /// list, which also fails if it is the region that does not exist. (The list alone would not
    /// do: it has all services of the project, and gcloud asks for its first page only.)
    fn look(&mut self) -> Result<Option<LiveService>, Fault> {
        let name = self.wanted.name().to_owned();
        let asked = ["services", "describe", &name];
        let ended = self.gcloud(&asked)?;
        if ended.code == 0 {
            return named(&ended, &asked, &name).map(|service| Some(LiveService::new(service)));
        }
        if self.caller.is_stopped() || faults::is_known(&ended) {
            return Err(self.fault(&ended, &asked));
        }
        let listed = self.list(&[&format!("--filter=metadata.name={name}")])?;
        Ok(listed.into_iter().find(|service| service.name() == name))
    }

    /// The services of the region, or as many of them as gcloud lists.
    fn list(&mut self, flags: &[&str]) -> Result<Vec<LiveService>, Fault> {
        let asked = [&["services", "list"], flags].concat();
        let ended = self.gcloud(&asked)?;
        if ended.code != 0 {
            return Err(self.fault(&ended, &asked));
        }
        let Value::Array(services) = ended.json(&shown(&asked))? else {
            return Err(Fault::failed("`gcloud run services list` printed no list"));
        };
        Ok(services.into_iter().map(LiveService::new).collect())
    }

    /// `gcloud run WORDS` here, with its answer in JSON.
    fn gcloud(&mut self, asked: &[&str]) -> Result<CallEnd, Fault> {
        let mut command = words(&["gcloud", "run"]);
        command.extend(words(asked));
        command.push(format!("--project={}", self.arguments.project).into());
        command.push(format!("--region={}", self.arguments.region).into());
        command.push(OsString::from("--format=json"));
        self.caller.call(&command, Output::Kept)
    }

    /// What a failed call comes to.
    fn fault(&self, ended: &CallEnd, asked: &[&str]) -> Fault {
        let call = shown(asked);
        if self.caller.is_stopped() {
            let why = format!(
                "`{call}` was asked to stop, and did; what Cloud Run had accepted by then goes on"
            );
            return Fault { code: ended.code, why };
        }
        faults::of(ended, &call)
    }
}

/// What other jobs that ask of services of this region as who we are were told.
fn shared(arguments: &CloudRunArguments, environment: &Environment) -> Option<SharedAnswers> {
    let question = ["google-cloud-run", &arguments.project, &arguments.region];
    let named = |name| variable(environment, name).map(PathBuf::from);
    let config = named("CLOUDSDK_CONFIG")
        .or_else(|| named("HOME").map(|home| home.join(".config/gcloud")))
        .unwrap_or_default();
    let active = std::fs::read_to_string(config.join("active_config")).unwrap_or_default();
    let files = [
        config.join("active_config"),
        config.join(format!("configurations/config_{}", active.trim())),
        // Changes with a login, and not with a token.
        config.join("credentials.db"),
    ];
    let named = [
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
        "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ]
    .into_iter()
    .filter_map(named);
    let files: Vec<_> = files.into_iter().chain(named).collect();
    SharedAnswers::to(&question, &files, ELSEWHERE, environment)
}

/// The document of this name that a call answered; anything else says nothing of it.
fn named(ended: &CallEnd, asked: &[&str], name: &str) -> Result<Value, Fault> {
    let document: Value = ended.json(&shown(asked))?;
    if document["metadata"]["name"] == name {
        return Ok(document);
    }
    Err(Fault::failed(format!(
        "`{}` printed something else than `{name}`, so nothing is known of it; what it printed is \
         no answer of gcloud: look whether another program stands in its place",
        shown(asked)
    )))
}

/// A call, for people.
fn shown(asked: &[&str]) -> String {
    format!("gcloud run {}", asked.iter().take(2).copied().collect::<Vec<_>>().join(" "))
}
