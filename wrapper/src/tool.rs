//! The tools that the wrapper drives itself: `pvn-wrapper terraform plan` and its like, so that an
//! image needs nothing but its tool. Each calls the tool's own program as a person would, shows the
//! command line, and puts what it said into the words of a runtime: exit codes, structured output,
//! files. Called by `main`.
//!
//! A run is two processes. The outer one is an ordinary `exec`, with all that it keeps: signals,
//! output, deadlines, report. It runs this program again, `--within` a directory in which the files
//! lie that are handed over, and that one runs the tool:
//!
//! ```text
//! pvn-wrapper terraform plan                    `adopt`: what is handed over, and from where
//!   └─ pvn-wrapper terraform plan --within DIR  `run`: one command of the tool after the other
//!        └─ terraform plan …
//! ```
//!
//! `pvn-wrapper exec … -- pvn-wrapper terraform plan` is the same run, with flags of `exec`: what
//! the scheduler starts.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::exit;
use crate::spawn::Environment;
use crate::writer::say;

mod answers;
mod aws_ecs;
mod before;
mod call;
mod faults;
mod findings;
mod google_cloud_run;
mod ownership;
mod program;
mod pulumi;
mod said;
mod scratch;
mod terraform;

pub(crate) use scratch::Scratch;

/// How a file that the tool's commands hand over is called, below the run's directory.
type Handed = &'static [(&'static str, &'static str)];

/// A tool, and what is to be done with it.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Terraform or OpenTofu: the plan of a configuration, and exactly that plan applied
    Terraform {
        #[command(subcommand)]
        step: terraform::TerraformStep,
    },
    /// Pulumi: the preview of a stack, and the stack brought to what its program says
    Pulumi {
        #[command(subcommand)]
        step: pulumi::PulumiStep,
    },
    /// Amazon ECS: a service and its task definition
    AwsEcs {
        #[command(subcommand)]
        step: aws_ecs::EcsStep,
    },
    /// Google Cloud Run: a service as it is, and the wanted one handed over
    GoogleCloudRun {
        #[command(subcommand)]
        step: google_cloud_run::CloudRunStep,
    },
}

/// What every tool takes.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ToolArguments {
    /// A command that the shell runs first, such as a login; what it exports and where it changes
    /// to holds for the tool. May be given more than once
    #[arg(long = "pre-run", value_name = "CMD")]
    pub(crate) before: Vec<String>,

    /// The shell for `--pre-run`
    #[arg(long, value_name = "PATH", default_value = "/bin/sh")]
    pub(crate) shell: PathBuf,

    /// The directory of the run: this is its inner process
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) within: Option<PathBuf>,

    /// `--pre-run` is over: this process takes the place of its shell
    #[arg(long, hide = true)]
    pub(crate) prepared: bool,
}

/// What a step of a tool asks of the run around it.
pub(crate) struct Needs {
    /// In one word, for the name of its directory: `terraform-plan`.
    pub(crate) name: &'static str,
    /// What is put in place before: path below the directory, reference.
    pub(crate) inputs: Handed,
    /// What is handed over after: name, path below the directory.
    pub(crate) outputs: Handed,
    /// What it may write beside those, where the run starts: no two runs that do are at the same
    /// time.
    pub(crate) guards: &'static [&'static str],
    /// The exit codes after which all that must be there.
    pub(crate) success_exit_codes: &'static [u8],
    /// Whether its directory stays, for the next job of the service instance.
    pub(crate) stays: bool,
}

impl Tool {
    fn common(&self) -> &ToolArguments {
        match self {
            Self::Terraform { step } => step.common(),
            Self::Pulumi { step } => step.common(),
            Self::AwsEcs { step } => step.common(),
            Self::GoogleCloudRun { step } => step.common(),
        }
    }

    /// What its step asks of the run around it.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            Self::Terraform { step } => step.needs(),
            Self::Pulumi { step } => step.needs(),
            Self::AwsEcs { step } => step.needs(),
            Self::GoogleCloudRun { step } => step.needs(),
        }
    }

    /// Whether this is the process around which `exec` is.
    pub(crate) fn is_within(&self) -> bool {
        self.common().within.is_some()
    }

    /// Runs the step and returns what to end with.
    pub(crate) fn run(&self, raw: &[OsString], environment: &Environment) -> u8 {
        let common = self.common();
        let Some(within) = &common.within else {
            unreachable!("`main` adopts a run that is not within one");
        };
        let done = if common.before.is_empty() || common.prepared {
            before::say_prepared(common, within).and_then(|()| self.step(within, environment))
        } else {
            before::run(common, within, raw)
        };
        done.unwrap_or_else(|fault| {
            say(&fault.why);
            fault.code
        })
    }
}

impl Tool {
    fn step(&self, within: &Path, environment: &Environment) -> Result<u8, Fault> {
        // Files of a job lie where those of its check do.
        if self.is_check()
            && let Err(why) = findings::try_to_write(within)
        {
            return findings::print_unwritable(why);
        }
        match self {
            Self::Terraform { step } => step.run(within, environment),
            Self::Pulumi { step } => step.run(within),
            Self::AwsEcs { step } => step.run(within, environment),
            Self::GoogleCloudRun { step } => step.run(within, environment),
        }
    }

    fn is_check(&self) -> bool {
        match self {
            Self::Terraform { step } => matches!(step, terraform::TerraformStep::Check(_)),
            Self::Pulumi { step } => matches!(step, pulumi::PulumiStep::Check(_)),
            Self::AwsEcs { step } => matches!(step, aws_ecs::EcsStep::Check(_)),
            Self::GoogleCloudRun { step } => {
                matches!(step, google_cloud_run::CloudRunStep::Check(_))
            }
        }
    }
}

/// Why a step came to nothing: what to end with, and a sentence for people.
#[derive(Debug)]
pub(crate) struct Fault {
    code: u8,
    why: String,
}

impl Fault {
    /// The tool, or what it needs, failed.
    fn failed(why: impl Into<String>) -> Self {
        Self { code: exit::FAILED, why: why.into() }
    }

    /// The same, and another try may do.
    fn again(why: impl Into<String>) -> Self {
        Self { code: exit::TRY_AGAIN, why: why.into() }
    }

    /// Whoever wrote the command line is mistaken.
    fn usage(why: impl Into<String>) -> Self {
        Self { code: exit::OURS, why: why.into() }
    }

    /// A file of the run cannot be written.
    fn unwritten(path: &Path, error: &std::io::Error) -> Self {
        Self::failed(format!("cannot write {}: {error}", path.display()))
    }
}

/// Whether a word of the command line is the name of a tool.
pub(crate) fn is_tool(word: &OsStr) -> bool {
    word.to_str().is_some_and(Tool::has_subcommand)
}

/// Prints a structured output, and ends with 0.
fn print_document(document: &impl Serialize) -> Result<u8, Fault> {
    let text = serde_json::to_vec(document).expect("texts and numbers can be written as JSON");
    let mut stdout = std::io::stdout();
    stdout
        .write_all(&text)
        .and_then(|()| stdout.flush())
        .map_err(|error| Fault::failed(format!("cannot write to standard output: {error}")))?;
    Ok(0)
}

/// These arguments, for a command line.
fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
