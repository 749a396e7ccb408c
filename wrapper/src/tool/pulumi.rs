//! `pvn-wrapper pulumi preview|up|info|check`. Called by `tool`.
//!
//! preview ends with 0 for no change, 2 for changes, 1 for an error, and hands over what would be
//! done, as text for people and as JSON; up brings the stack to what its program says; info prints
//! its outputs, secrets masked; check tries what the others need. 75: the stack is locked, or its
//! backend cannot be reached.
//!
//! Preview and up both refresh: without that a preview sees no drift, and an up that repairs none
//! ends well. Pulumi's own codes differ over its versions and never pass through: it ends with 2
//! when it was called wrongly, which would read as work.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use schema::shown;
use serde_json::Value;

use self::preview::{Preview, PreviewDigest};
use super::call::{CallEnd, Output, ToolCaller, no_json};
use super::{Fault, Needs, ToolArguments};
use crate::exit;

mod check;
mod failure;
mod info;
mod preview;

/// What would be done, below the run's directory, for people.
const EXPLANATION: &str = "preview.txt";
/// The same for programs.
const DOCUMENT: &str = "preview.json";
/// What would be destroyed or replaced, a line each.
const DESTROYS: &str = "destroys.txt";

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum PulumiStep {
    /// Look what would be done: 0 no change, 2 changes, 1 an error. Hands over `plan-explanation`,
    /// `plan-json` and `plan-destroys`
    Preview(PulumiArguments),
    /// Bring the stack to what its program says
    Up(PulumiArguments),
    /// Print the stack's outputs, secrets masked, and its last update, as a getInfo does
    Info(PulumiArguments),
    /// Try what a job needs, and print what was found: the program, its login, the stack
    Check(PulumiArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PulumiArguments {
    /// The stack
    #[arg(long, value_name = "STACK", value_parser = NonEmptyStringValueParser::new())]
    stack: String,

    /// What stands before `pulumi`, as a shell takes it, such as `poetry run`; may be given more
    /// than once
    #[arg(
        long = "command-prefix", value_name = "ARGS", allow_hyphen_values = true,
        value_parser = ShellWords::parse
    )]
    prefix: Vec<ShellWords>,

    #[command(flatten)]
    common: ToolArguments,
}

/// Arguments as a shell takes them.
#[derive(Debug, Clone)]
struct ShellWords(Vec<String>);

impl ShellWords {
    fn parse(text: &str) -> Result<Self, String> {
        shlex::split(text).map(Self).ok_or_else(|| "a quote is not closed".to_owned())
    }
}

impl PulumiStep {
    fn arguments(&self) -> &PulumiArguments {
        match self {
            Self::Preview(arguments)
            | Self::Up(arguments)
            | Self::Info(arguments)
            | Self::Check(arguments) => arguments,
        }
    }

    pub(super) fn common(&self) -> &ToolArguments {
        &self.arguments().common
    }

    pub(super) fn needs(&self) -> Needs {
        let (name, outputs, success_exit_codes): (_, super::Handed, &[u8]) = match self {
            Self::Preview(_) => (
                "pulumi-preview",
                &[
                    ("plan-explanation", EXPLANATION),
                    ("plan-json", DOCUMENT),
                    ("plan-destroys", DESTROYS),
                ],
                &[0, 2],
            ),
            Self::Up(_) => ("pulumi-up", &[], &[0]),
            Self::Info(_) => ("pulumi-info", &[], &[0]),
            Self::Check(_) => ("pulumi-check", &[], &[0]),
        };
        let stays = !matches!(self, Self::Check(_));
        Needs { name, inputs: &[], outputs, guards: &[], success_exit_codes, stays }
    }

    pub(super) fn run(&self, within: &Path) -> Result<u8, Fault> {
        let mut caller = ToolCaller::new()?;
        caller.default("PULUMI_SKIP_UPDATE_CHECK", "true");
        let PulumiArguments { stack, prefix, .. } = self.arguments();
        let mut program: Vec<String> =
            prefix.iter().flat_map(|ShellWords(words)| words.iter().cloned()).collect();
        program.push("pulumi".to_owned());
        let mut pulumi = Pulumi { caller, program, stack };
        match self {
            Self::Preview(_) => pulumi.preview(within),
            Self::Up(_) => pulumi.up(),
            Self::Info(_) => info::print(&mut pulumi),
            Self::Check(_) => check::run(&mut pulumi),
        }
    }
}

/// How it is called, and for which stack.
struct Pulumi<'a> {
    caller: ToolCaller,
    program: Vec<String>,
    stack: &'a str,
}

impl Pulumi<'_> {
    /// Calls it for the stack.
    fn call(&mut self, arguments: &[&str], to: Output<'_>) -> Result<CallEnd, Fault> {
        self.call_for_none(&[arguments, &["--stack", self.stack]].concat(), to)
    }

    /// Calls it for no stack.
    fn call_for_none(&mut self, arguments: &[&str], to: Output<'_>) -> Result<CallEnd, Fault> {
        let program = self.program.iter().map(String::as_str);
        let words = program.chain(arguments.iter().copied());
        let command: Vec<OsString> = words.map(OsString::from).collect();
        self.caller.call(&command, to)
    }

    /// What a failed call comes to; `reason`: what it said on standard output of why.
    fn fault(&self, ended: &CallEnd, step: &str, reason: Option<String>) -> Fault {
        let program: Vec<String> =
            self.program.iter().map(|word| shown::shell_word(word)).collect();
        let program = program.join(" ");
        if self.caller.is_stopped() {
            let more = if step == "up" {
                ": what it has done is in the stack's state, and the next `up` goes on from there"
            } else {
                ""
            };
            return Fault::failed(format!("`{program} {step}` was asked to stop, and did{more}"));
        }
        failure::of(&failure::Failed { ended, reason, program: &program, step, stack: self.stack })
    }

    /// The JSON that a call prints, which begins with `open`.
    fn document(&mut self, arguments: &[&str], open: char) -> Result<Value, Fault> {
        let ended = self.call(arguments, Output::Kept)?;
        let step = arguments[..2].join(" ");
        if ended.code != 0 {
            return Err(self.fault(&ended, &step, None));
        }
        preview::document(&ended.answer, open)
            .map_err(|error| no_json(&format!("pulumi {step}"), &error))
    }

    fn preview(&mut self, within: &Path) -> Result<u8, Fault> {
        let arguments = ["preview", "--json", "--refresh", "--non-interactive"];
        let ended = self.call(&arguments, Output::Kept)?;
        let digest = PreviewDigest::read(&ended.answer);
        let said = digest.as_ref().map_or_else(
            |_| format!("{}\n", String::from_utf8_lossy(&ended.answer).trim_end()),
            PreviewDigest::messages,
        );
        // Nobody may read it.
        let _ = io::stderr().write_all(said.as_bytes());
        if ended.code != 0 {
            let reason = digest.ok().and_then(|digest| digest.error());
            return Err(self.fault(&ended, "preview", reason));
        }
        let preview = digest.and_then(|digest| Preview::of(&digest)).map_err(Fault::failed)?;
        let explanation = preview.explanation();
        let files = [
            (DOCUMENT, &preview.document()),
            (EXPLANATION, &explanation),
            (DESTROYS, &preview.destroys()),
        ];
        for (name, text) in files {
            let path = within.join(name);
            std::fs::write(&path, text).map_err(|error| Fault::unwritten(&path, &error))?;
        }
        let mut stdout = io::stdout();
        // Nobody may read it: it is handed over as a file.
        let _ = stdout.write_all(explanation.as_bytes()).and_then(|()| stdout.flush());
        Ok(if preview.is_work() { exit::WORK } else { 0 })
    }

    fn up(&mut self) -> Result<u8, Fault> {
        let arguments = ["up", "--yes", "--skip-preview", "--refresh", "--non-interactive"];
        let ended = self.call(&arguments, Output::Followed)?;
        if ended.code == 0 {
            return Ok(0);
        }
        let reason = failure::of_diagnostics(&String::from_utf8_lossy(&ended.answer));
        Err(self.fault(&ended, "up", reason))
    }
}
