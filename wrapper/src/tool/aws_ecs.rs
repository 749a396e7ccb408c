//! `pvn-wrapper aws-ecs fetch|apply|info|check`: a service of Amazon ECS, by the `aws` CLI. Called
//! by `tool`.
//!
//! Whose a task definition is, and of which version, its tags say. fetch prints what is there as a
//! structured fetch does, apply registers the task definition and makes or changes the service,
//! info prints where it is, check tries what they need. apply does not wait: whether a roll-out
//! comes to its end is what fetch sees. 75: throttled, unreachable, or something that somebody else
//! is about to end, so try again.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use self::cli::Aws;
use self::definition::{EcsPlace, EcsTarget};
use super::answers::SharedAnswers;
use super::{Fault, Needs, ToolArguments};
use crate::spawn::{Environment, variable};

mod apply;
mod check;
mod cli;
mod definition;
mod differ;
mod error;
mod fetch;
mod info;
mod links;
mod numbers;
mod revision;
mod service;

/// Most characters of the name of a session. Source: `RoleSessionName` of AssumeRole.
const SESSION_NAME_LIMIT: usize = 64;

/// What of the CLI's files leads to credentials that are not in them: a program, a login in the
/// browser, a token in a file. Source: the CLI's reference of its configuration.
const ELSEWHERE: &[&str] = &["credential_process", "login_session", "sso_", "web_identity_token"];

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum EcsStep {
    /// Print how the service is, as a structured fetch does
    Fetch(EcsArguments),
    /// Register the task definition unless it is, and create or update the service
    Apply(EcsArguments),
    /// Print where the service is and what runs, as a getInfo does
    Info(EcsArguments),
    /// Try what a job needs, and print what was found: the program, its credentials, the cluster
    Check(EcsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct EcsArguments {
    /// The cluster, by its name or ARN; else that of the service definition, else `default`
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,

    /// The region; else that of the CLI's own configuration
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// The task definition as `register-task-definition --cli-input-json` takes it: JSON, or the
    /// path of a file
    #[arg(long, value_name = "JSON")]
    task_definition: Option<String>,

    /// The service as `create-service --cli-input-json` takes it: JSON, or the path of a file. What
    /// it names is kept as it says; what it does not name is left alone
    #[arg(long, value_name = "JSON")]
    service_definition: Option<String>,

    /// The service's name; else that of its definition, else `SERVICE-CHANNEL`
    #[arg(long, value_name = "NAME")]
    service_name: Option<String>,

    /// The service is somebody else's: only its task definition is looked at and changed
    #[arg(
        long, num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", value_name = "BOOL", action = clap::ArgAction::Set,
        value_parser = switch
    )]
    update_task_definition_only: bool,

    /// The role that is assumed for all calls
    #[arg(long, value_name = "ARN")]
    assume_role_arn: Option<String>,

    #[command(flatten)]
    common: ToolArguments,
}

/// What was given, unless it is empty, as a template that found nothing leaves it.
fn given(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|value| !value.trim().is_empty())
}

impl EcsStep {
    fn arguments(&self) -> &EcsArguments {
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
        Needs {
            name: match self {
                Self::Fetch(_) => "aws-ecs-fetch",
                Self::Apply(_) => "aws-ecs-apply",
                Self::Info(_) => "aws-ecs-info",
                Self::Check(_) => "aws-ecs-check",
            },
            inputs: &[],
            outputs: &[],
            guards: &[],
            success_exit_codes: &[0],
            stays: !matches!(self, Self::Check(_)),
        }
    }

    pub(super) fn run(&self, within: &Path, environment: &Environment) -> Result<u8, Fault> {
        let arguments = self.arguments();
        let role = given(arguments.assume_role_arn.as_ref());
        let region = given(arguments.region.as_ref());
        let aws = || Aws::new(region, role, &session(environment));
        match self {
            // Before the first call: what is wrong with a definition needs no cloud to be told.
            Self::Fetch(_) => {
                let target = EcsTarget::of(arguments, environment)?;
                let answers = shared(&target.place, region, role, environment);
                fetch::run(&mut aws()?, &target, answers.as_ref())
            }
            Self::Apply(_) => {
                let target = EcsTarget::of(arguments, environment)?;
                apply::run(&mut aws()?, &target, within)
            }
            Self::Info(_) => {
                let place = EcsPlace::of(arguments, environment)?;
                let answers = shared(&place, region, role, environment);
                info::run(&mut aws()?, &place, answers.as_ref())
            }
            Self::Check(_) => {
                let place = EcsPlace::of(arguments, environment)?;
                check::run(&mut Aws::with_own_credentials(region)?, &place, &|aws| match role {
                    Some(role) => aws.assume(role, &session(environment)),
                    None => Ok(()),
                })
            }
        }
    }
}

/// What other jobs that ask of services of this cluster as who we are were told.
fn shared(
    place: &EcsPlace,
    region: Option<&str>,
    role: Option<&str>,
    environment: &Environment,
) -> Option<SharedAnswers> {
    let question = ["aws-ecs", &place.cluster, region.unwrap_or(""), role.unwrap_or("")];
    let named = |name| variable(environment, name).map(PathBuf::from);
    let below_home = |path| named("HOME").map(|home| home.join(path));
    let files = [
        named("AWS_CONFIG_FILE").or_else(|| below_home(".aws/config")),
        named("AWS_SHARED_CREDENTIALS_FILE").or_else(|| below_home(".aws/credentials")),
        named("AWS_WEB_IDENTITY_TOKEN_FILE"),
        named("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    ];
    let files: Vec<_> = files.into_iter().flatten().collect();
    SharedAnswers::to(&question, &files, ELSEWHERE, environment)
}

/// Who we are in the log of an account whose role we assume.
fn session(environment: &Environment) -> String {
    let part = |name| variable(environment, name).map(|value| value.to_string_lossy().into_owned());
    let parts = ["PVN_SERVICE", "PVN_RELEASE_CHANNEL"].into_iter().filter_map(part);
    let name = std::iter::once("pvn".to_owned()).chain(parts).collect::<Vec<_>>().join("-");
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+=,.@-_".contains(c);
    name.chars().map(|c| if allowed(c) { c } else { '-' }).take(SESSION_NAME_LIMIT).collect()
}

/// `true` or `false`; empty, as a parameter that nobody filled, is `false`.
fn switch(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" | "" => Ok(false),
        _ => Err("write `true` or `false`".to_owned()),
    }
}
