//! `pvn-wrapper terraform plan|apply|info|check`, for Terraform and OpenTofu. Called by `tool`.
//!
//! plan ends as `plan -detailed-exitcode` does (0 no change, 2 changes, 1 an error) and hands over
//! the plan, as text for people and as JSON; apply runs exactly that plan; info prints what the
//! state says that is not sensitive; check tries what the others need. 75: the state is locked or
//! has moved on, so try again.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};

use super::call::{CallEnd, Output, ToolCaller};
use super::faults::{self, KnownFault};
use super::program::first_on_path;
use super::{Fault, Needs, ToolArguments, words};
use crate::exit;
use crate::spawn::{Environment, variable};

mod check;
mod diagnostic;
mod info;
mod lock;
mod place;
mod plan;
mod unsaved;

use unsaved::{UNSAVED, UnsavedState};

/// What is called: the first that is there.
const PROGRAMS: &[&str] = &["terraform", "tofu"];

/// That none of them is.
const NONE: &str = "neither `terraform` nor `tofu` was found: put one into the image, or on the \
                    PATH of the machine where the job runs";

/// The plan, below the run's directory.
const PLAN: &str = "plan";
/// What it says, for people.
const EXPLANATION: &str = "plan.txt";
/// The same for programs.
const DOCUMENT: &str = "plan.json";
/// What of it is destroyed or replaced, a line each.
const DESTROYS: &str = "destroys.txt";
/// Calls that only read.
const READS: &[&str] = &["show", "output", "state", "version"];
/// How variables begin with more arguments for calls.
const ARGUMENTS: &str = "TF_CLI_ARGS";
/// What terraform keeps from one command to the next.
const DATA: &str = "data";

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum TerraformStep {
    /// Make a plan: 0 no change, 2 changes, 1 an error. Hands over `plan`, `plan-explanation`,
    /// `plan-json` and `plan-destroys`
    Plan(StepArguments),
    /// Apply the plan of the fetch that found the work, and nothing else
    Apply(StepArguments),
    /// Print outputs that are not sensitive, and which state it is, as a getInfo does
    Info(StepArguments),
    /// Try what a job needs, and print what was found: the program, backend and providers, state
    Check(StepArguments),
}

#[derive(Debug, Args)]
pub(crate) struct StepArguments {
    /// More arguments for `init`, as a shell takes them; may be given more than once
    #[arg(long = "init-args", value_name = "ARGS", allow_hyphen_values = true)]
    init_args: Vec<String>,

    #[command(flatten)]
    common: ToolArguments,
}

/// Failures that exist only as text.
const FAULTS: &[KnownFault] = &[
    KnownFault {
        texts: &["Error: Saved plan is stale"],
        seen: "terraform 1.11.4, tofu 1.12.6",
        may_pass: true,
        words: "the plan is stale: the state has changed since it was made; nothing was applied, \
                and the next plan is made of the state as it is",
    },
    KnownFault {
        texts: &["Error: Saved plan does not match the given state"],
        seen: "terraform 1.11.4, tofu 1.12.6",
        may_pass: true,
        words: "the plan was made of another state (another lineage: a new backend, or a state \
                that was made anew); nothing was applied, and the next plan is made of this one",
    },
    KnownFault {
        texts: &["Error: Inconsistent dependency lock file"],
        seen: "terraform 1.11.4, tofu 1.12.6",
        may_pass: false,
        words: "the providers that the configuration asks for are not those of \
                `.terraform.lock.hcl`: run `terraform init` where the configuration is kept, and \
                commit that file",
    },
    KnownFault {
        texts: &["Error: Backend initialization required", "Error: Backend configuration changed"],
        seen: "terraform 1.11.4, tofu 1.12.6",
        may_pass: false,
        words: "the backend is not initialised as the configuration has it now; the wrapper runs \
                `init` before each plan, so look what else changes it meanwhile",
    },
    KnownFault {
        texts: &[
            "Error: Can't ask approval for state migration",
            "Error: Error asking for state migration action",
        ],
        seen: "terraform 1.11.4",
        may_pass: false,
        words: "there is a state beside the configuration (terraform.tfstate, or one of a \
                workspace in terraform.tfstate.d) that is not in the backend; pvn moves none: do \
                it by hand (`terraform init -migrate-state`), or rename it and give that name as \
                `path` in `backendConfig`",
    },
    KnownFault {
        texts: &[
            "Error: Failed to query available provider packages",
            "Error: Failed to install provider",
            "Error: Required plugins are not installed",
            "Error: Could not load plugin",
        ],
        seen: "terraform 1.11.4, tofu 1.12.6",
        may_pass: true,
        words: "a provider is missing: the registry cannot be reached, or has no such version; put \
                providers into the image (`terraform providers mirror`) to need no registry",
    },
    KnownFault {
        texts: &["Unsupported state file format"],
        seen: "terraform 1.11.4",
        may_pass: true,
        words: "the state cannot be read: it is damaged, or a local one is being written just now; \
                if this stays, put back an earlier one (`terraform.tfstate.backup`, or a version \
                that the bucket kept)",
    },
    KnownFault {
        texts: &[
            "Error: Error loading state",
            "Error: Failed to get existing workspaces",
            "Error: Error refreshing state",
            "Error: error configuring S3 Backend",
        ],
        seen: "terraform 1.11.4, tofu 1.12.6",
        may_pass: true,
        words: "the backend that keeps the state cannot be reached, or refuses the credentials",
    },
];

impl TerraformStep {
    fn arguments(&self) -> &StepArguments {
        match self {
            Self::Plan(arguments)
            | Self::Apply(arguments)
            | Self::Info(arguments)
            | Self::Check(arguments) => arguments,
        }
    }

    pub(super) fn common(&self) -> &ToolArguments {
        &self.arguments().common
    }

    pub(super) fn needs(&self) -> Needs {
        match self {
            Self::Plan(_) => Needs {
                name: "terraform-plan",
                inputs: &[],
                outputs: &[
                    ("plan", PLAN),
                    ("plan-explanation", EXPLANATION),
                    ("plan-json", DOCUMENT),
                    ("plan-destroys", DESTROYS),
                ],
                guards: &[],
                success_exit_codes: &[0, 2],
                stays: true,
            },
            Self::Apply(_) => Needs {
                name: "terraform-apply",
                inputs: &[(PLAN, "fetch:plan")],
                outputs: &[],
                guards: &[UNSAVED],
                success_exit_codes: &[0],
                stays: true,
            },
            Self::Info(_) => Needs {
                name: "terraform-info",
                inputs: &[],
                outputs: &[],
                guards: &[],
                success_exit_codes: &[0],
                stays: true,
            },
            Self::Check(_) => Needs {
                name: "terraform-check",
                inputs: &[],
                outputs: &[],
                guards: &[],
                success_exit_codes: &[0],
                stays: false,
            },
        }
    }

    pub(super) fn run(&self, within: &Path, environment: &Environment) -> Result<u8, Fault> {
        let is_check = matches!(self, Self::Check(_));
        let program = match first_on_path(PROGRAMS, NONE) {
            Ok(program) => program,
            Err(why) if is_check => return check::without_program(why),
            Err(why) => return Err(Fault::failed(why)),
        };
        let mut caller = ToolCaller::new()?;
        caller.default("TF_IN_AUTOMATION", "1");
        caller.default("TF_INPUT", "0");
        caller.default("CHECKPOINT_DISABLE", "1");
        // What lies beside the configuration is for whoever works there; with backends of their
        // own, two channels would take it from one another. A check leaves nothing there.
        if is_check || variable(environment, "PVN_JOB_ID").is_some() {
            place::keep_data(&mut caller, &within.join(DATA));
        }
        let mut terraform = Terraform { program, caller, within };
        let init_args = &self.arguments().init_args;
        let data = terraform.caller.given(place::DATA_VARIABLE);
        let unsaved = UnsavedState::of(program, data.as_deref(), environment);
        if matches!(self, Self::Plan(_) | Self::Apply(_)) {
            unsaved.none()?;
        }
        if !is_check {
            terraform.init(init_args, matches!(self, Self::Info(_)))?;
        }
        match self {
            Self::Plan(_) => terraform.plan(),
            Self::Apply(_) => terraform.apply(&unsaved),
            Self::Info(_) => info::print(&mut terraform),
            Self::Check(_) => check::run(&mut terraform, init_args),
        }
    }
}

/// The program, and where its files are.
struct Terraform<'a> {
    program: &'static str,
    caller: ToolCaller,
    within: &'a Path,
}

impl Terraform<'_> {
    /// Calls it.
    fn call(&mut self, arguments: &[OsString], to: Output<'_>) -> Result<CallEnd, Fault> {
        // What is read for people and programs is ours to ask for: `-json` in the user's arguments
        // would show what is sensitive.
        let is_read = arguments.first().is_some_and(|call| READS.iter().any(|read| call == read));
        self.caller.hide(is_read.then_some(ARGUMENTS));
        let mut command = vec![OsString::from(self.program)];
        command.extend_from_slice(arguments);
        self.caller.call(&command, to)
    }

    /// What a failed call comes to.
    fn fault(&self, ended: &CallEnd, call: &str) -> Fault {
        let call = format!("{} {call}", self.program);
        if self.caller.is_stopped() {
            return ended.stopped(&call);
        }
        let own = diagnostic::own_errors(&ended.words);
        lock::fault(&own, self.program).unwrap_or_else(|| faults::of(FAULTS, &own, ended, &call))
    }

    /// Calls it, and takes any code but 0 for a failure.
    fn must(&mut self, arguments: &[OsString], to: Output<'_>) -> Result<CallEnd, Fault> {
        let ended = self.call(arguments, to)?;
        if ended.code == 0 {
            return Ok(ended);
        }
        Err(self.fault(&ended, &arguments[0].to_string_lossy()))
    }

    fn init(&mut self, more: &[String], aside: bool) -> Result<(), Fault> {
        let mut arguments = words(&["init", "-input=false", "-no-color"]);
        // The data may be of a run with another backend, whose state is not to be moved.
        arguments.push("-reconfigure".into());
        for more in more {
            let words = shlex::split(more).ok_or_else(|| {
                Fault::failed(format!("`{more}` is no list of arguments: a quote is not closed"))
            })?;
            arguments.extend(words.into_iter().map(OsString::from));
        }
        self.must(&arguments, if aside { Output::Aside } else { Output::Shown })?;
        let data = self.caller.given(place::DATA_VARIABLE);
        place::check_workspace(data.as_deref().map_or(Path::new(".terraform"), Path::new))
    }

    fn plan(&mut self) -> Result<u8, Fault> {
        let file = self.within.join(PLAN);
        let mut arguments = words(&["plan", "-detailed-exitcode", "-input=false", "-no-color"]);
        let mut out = OsString::from("-out=");
        out.push(&file);
        arguments.push(out);
        let ended = self.call(&arguments, Output::Shown)?;
        let has_changes = match ended.code {
            0 => false,
            2 => true,
            _ => return Err(self.fault(&ended, "plan")),
        };
        let mut show = words(&["show", "-json"]);
        show.push(file.clone().into());
        let json = self.must(&show, Output::Kept)?.answer;
        let plan = plan::TerraformPlan::read(&json).map_err(|error| {
            Fault::failed(format!("`{} show -json` printed no plan: {error}", self.program))
        })?;
        let mut document = self.create(DOCUMENT)?;
        plan.write(&mut document).map_err(|error| self.unwritten(DOCUMENT, &error))?;
        let destroys = plan.destroys(has_changes);
        self.create(DESTROYS)?
            .write_all(destroys.as_bytes())
            .map_err(|error| self.unwritten(DESTROYS, &error))?;
        let mut explanation = self.create(EXPLANATION)?;
        // They go first: the first line is shown wherever there is room for one, and nobody should
        // have to search for what is lost.
        let gap = if destroys.is_empty() { "" } else { "\n" };
        writeln!(explanation, "{}\n{gap}{destroys}", plan.summary(has_changes))
            .map_err(|error| self.unwritten(EXPLANATION, &error))?;
        let mut show = words(&["show", "-no-color"]);
        show.push(file.into());
        self.must(&show, Output::Into(&explanation))?;
        Ok(if has_changes { exit::WORK } else { 0 })
    }

    fn apply(&mut self, unsaved: &UnsavedState) -> Result<u8, Fault> {
        let mut arguments = words(&["apply", "-input=false", "-no-color"]);
        arguments.push(self.within.join(PLAN).into());
        let ended = self.call(&arguments, Output::Shown)?;
        if ended.code == 0 {
            return Ok(0);
        }
        Err(unsaved.after(&ended).unwrap_or_else(|| self.fault(&ended, "apply")))
    }

    fn create(&self, name: &str) -> Result<File, Fault> {
        File::create(self.within.join(name)).map_err(|error| self.unwritten(name, &error))
    }

    fn unwritten(&self, name: &str, error: &std::io::Error) -> Fault {
        Fault::unwritten(&self.within.join(name), error)
    }
}
