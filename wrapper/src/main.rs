//! `pvn-wrapper`: runs a command the way pvn needs it run, and tells how it ended. The story of one
//! run is [`exec`]: arguments, claim, inputs, start, supervise, outputs, report, exit.
//!
//! What always holds: signals are blocked before anything else is done, so none is lost; no thread
//! and no socket, nor anything that only the end needs, but for room for the report, is touched
//! before the command runs; a command that ran decides the exit code.

// `raw` has the real `main`; a test program needs that of its harness.
#![cfg_attr(not(test), no_main)]

mod adopt;
mod args;
mod capture;
mod copying;
mod deliver;
mod escalate;
mod exit;
mod freshness;
#[cfg(test)]
mod fuzz;
mod hand_over;
mod inputs;
mod install;
mod job;
mod last;
mod last_words;
mod live;
mod locks;
mod oom;
mod order;
mod outputs;
mod process;
mod quick;
mod raw;
mod report;
mod resume;
mod room;
mod run;
mod signals;
mod spawn;
mod store;
mod supervise;
mod tee;
mod terminal;
mod thread_result;
mod tool;
mod validate;
mod writer;

use std::ffi::OsString;
use std::time::Duration;

use schema::mask::{self, Secrets};

use crate::args::{Arguments, ExecArguments, What};
use crate::hand_over::{Ended, ReportSink};
use crate::job::JobSlot;
use crate::report::Began;
use crate::run::Shared;
use crate::signals::Inherited;
use crate::spawn::{Environment, SpawnRefusal};
use crate::writer::{Writer, say};

/// How long a usage error waits for its reader: it may be that of a job, which is to be reported.
const USAGE_PATIENCE: Duration = Duration::from_secs(1);

/// What would be called if there were no harness, for the compiler to see what is in use.
#[cfg(test)]
fn main() {
    raw::main(0, std::ptr::null());
}

/// Everything. Called by `raw::main`; returns what the program ends with.
fn begin() -> u8 {
    let inherited = &signals::block();
    raw::prepare();
    let began = Began::now();
    // The usual one would wait for ever for a reader that is stuck.
    std::panic::set_hook(Box::new(|fault| say(&fault.to_string())));
    let raw: Vec<OsString> = std::env::args_os().collect();
    let what = match quick::exec(&raw) {
        Some(options) => Ok(What::Exec(Box::new(options))),
        None => Arguments::read(&raw).map(|arguments| arguments.what),
    };
    let what = what.and_then(|what| match what {
        What::Exec(options) => adopt::adopt(*options).map(|options| What::Exec(Box::new(options))),
        What::Tool(tool) if !tool.is_within() => {
            adopt::alone(&raw).map(|options| What::Exec(Box::new(options)))
        }
        what => Ok(what),
    });
    match what {
        Ok(what) => match what {
            What::Exec(options) => exec(&options, inherited, began),
            What::Tool(tool) => tool.run(&raw, &std::env::vars_os().collect()),
            What::Validate { kind, file } => validate::validate(kind.into(), &file),
            What::Install { directory } => install::install(&directory),
            What::Resume { deliver_for, directory } => resume::resume(&directory, deliver_for),
        },
        Err(error) => usage(&error, &raw, began),
    }
}

/// Help that was asked for is 0; a usage error is 125, and that of a job is reported.
fn usage(error: &clap::Error, raw: &[OsString], began: Began) -> u8 {
    // Nobody may read it; then there is nobody to tell.
    if !error.use_stderr() {
        let _ = error.print();
        return 0;
    }
    let environment: Environment = std::env::vars_os().collect();
    let (secrets, _) = secrets_of(&environment);
    let text = mask::hide(secrets, &error.to_string()).into_owned();
    let _ = writer::within(
        &mut Writer::of(rustix::stdio::stderr()),
        text.as_bytes(),
        USAGE_PATIENCE,
        USAGE_PATIENCE,
    );
    if raw.get(1).is_some_and(|what| what == "exec" || tool::is_tool(what)) {
        let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let refusal = SpawnRefusal::ours(format!("the wrapper's arguments are wrong: {why}"));
        let way = ReportSink::of_usage_error(raw, &environment, began);
        hide_token(&environment);
        way.hand_over(Ended::refused(&began, &refusal), None, &environment, secrets);
    }
    exit::OURS
}

// Not inlined, so that `images/wrapper-order.ld` finds it.
#[inline(never)]
fn exec(options: &ExecArguments, inherited: &Inherited, began: Began) -> u8 {
    let environment: Environment = std::env::vars_os().collect();
    let (secrets, short) = secrets_of(&environment);
    let job = match options
        .job
        .as_deref()
        .map(|directory| JobSlot::claim(directory, began.timestamp(), options.kill_after))
        .transpose()
    {
        Ok(job) => job,
        Err(error) => {
            // Whoever has the claim reports.
            say(&with_causes(&error));
            return exit::OURS;
        }
    };
    if job.is_some() {
        // Fails only for a group leader, who then has what it asks for: a terminal of nobody
        // else's.
        let _ = rustix::process::setsid();
    }
    for key in short {
        say(&format!("the value of {key} is not masked: it is shorter than 6 bytes"));
    }
    let mut way = ReportSink::of(options, job, &environment, &began);
    hide_token(&environment);
    let shared = Shared { options, environment: &environment, secrets, began };
    let ended = shared.run(inherited, &mut way).unwrap_or_else(|refusal| {
        say(&refusal.why);
        Ended::refused(&began, &refusal)
    });
    let code = ended.code;
    way.hand_over(ended, options.report.as_deref(), &environment, secrets);
    code
}

/// Nobody finds the job's token, or a value that is only to be masked, in our memory from now on:
/// not in `/proc/PID/environ`, and other than root not by tracing us. The command runs as our user
/// and must not speak for the job.
fn hide_token(environment: &Environment) {
    let hidden: Vec<&str> = environment
        .iter()
        .filter(|(key, _)| spawn::is_hidden(key))
        .filter_map(|(key, _)| key.to_str())
        .collect();
    if !hidden.is_empty() {
        raw::forget_variables(&hidden);
        // What is refused leaves it to the first.
        let _ =
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    }
}

/// What is hidden in all that leaves us, our own messages too, for the rest of the program; and
/// what is too short for it.
fn secrets_of(environment: &Environment) -> (Option<&'static Secrets>, Vec<String>) {
    let (secrets, short) = Secrets::of_environment(environment);
    let secrets: Option<&'static Secrets> = secrets.map(|secrets| &*Box::leak(Box::new(secrets)));
    if let Some(secrets) = secrets {
        writer::hide(secrets);
    }
    (secrets, short)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
