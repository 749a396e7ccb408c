//! `pvn-wrapper`: runs a command the way pvn needs it run, and tells how it ended. The story of one run is [`exec`]:
//! arguments, claim, inputs, start, supervise, outputs, report, exit.
//!
//! What always holds: signals are blocked before anything else is done, so none is lost; one thread, no socket; nothing that
//! only the end needs is touched before the command runs; a command that ran decides the exit code.

mod args;
mod capture;
mod escalate;
mod exit;
mod inputs;
mod install;
mod job;
mod mask;
mod outputs;
mod process;
mod quick;
mod report;
mod signals;
mod spawn;
mod store;
mod supervise;
mod tee;
mod validate;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use schema::id::JobId;
use schema::report::Report;
use schema::spool;

use crate::args::{Arguments, Exec, What};
use crate::job::Job;
use crate::mask::Secrets;
use crate::report::Began;
use crate::signals::Inherited;
use crate::spawn::Refusal;
use crate::store::Home;
use crate::tee::say;

type Environment = Vec<(OsString, OsString)>;

fn main() -> ExitCode {
    let inherited = signals::block();
    let began = Began::now();
    let raw: Vec<OsString> = std::env::args_os().collect();
    if let Some(options) = quick::exec(&raw) {
        return ExitCode::from(exec(&options, &inherited, began));
    }
    let code = match Arguments::try_parse_from(&raw) {
        Ok(arguments) => match arguments.what {
            What::Exec(options) => exec(&options, &inherited, began),
            What::Validate { kind, file } => validate::validate(kind.into(), &file),
            What::Install { directory } => install::install(&directory),
        },
        Err(error) => usage(&error, &raw, began),
    };
    ExitCode::from(code)
}

/// Help that was asked for is 0; a usage error is 125, and that of a local job is reported.
fn usage(error: &clap::Error, raw: &[OsString], began: Began) -> u8 {
    // Nobody may read it; then there is nobody to tell.
    let _ = error.print();
    if !error.use_stderr() {
        return 0;
    }
    if let Some(directory) = args::job_of(raw)
        && let Ok(job) = Job::claim(&directory, began.timestamp())
    {
        let text = error.to_string();
        let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        deliver(&began.refused(&Refusal::ours(format!("the wrapper's arguments are wrong: {why}"))), Some(&job), None);
    }
    exit::OURS
}

fn exec(options: &Exec, inherited: &Inherited, began: Began) -> u8 {
    let environment: Environment = std::env::vars_os().collect();
    let job = match options.job.as_deref().map(|directory| Job::claim(directory, began.timestamp())).transpose() {
        Ok(job) => job,
        Err(error) => {
            // Whoever has the claim reports.
            say(&with_causes(&error));
            return exit::OURS;
        }
    };
    if job.is_some() {
        // Fails only for a group leader, who then has what it asks for: a terminal of nobody else's.
        let _ = rustix::process::setsid();
    }
    let (secrets, short) = Secrets::of_environment(&environment);
    for key in short {
        say(&format!("the value of {key} is not masked: it is shorter than 6 bytes"));
    }
    let shared = Shared { options, environment: &environment, job: job.as_ref(), secrets: secrets.as_ref(), began };
    let (mut report, code) = match shared.run(inherited) {
        Ok(ended) => ended,
        Err(refusal) => {
            let why = secrets.as_ref().map_or_else(|| refusal.why.clone(), |secrets| secrets.hide(&refusal.why));
            say(&why);
            (began.refused(&refusal), refusal.code)
        }
    };
    if let Some(secrets) = &secrets {
        report::hide(&mut report, secrets);
    }
    deliver(&report, job.as_ref(), options.report.as_deref());
    code
}

/// What every step of a run may look at.
struct Shared<'a> {
    options: &'a Exec,
    environment: &'a Environment,
    job: Option<&'a Job>,
    secrets: Option<&'a Secrets>,
    began: Began,
}

impl Shared<'_> {
    fn run(&self, inherited: &Inherited) -> Result<(Report, u8), Refusal> {
        let options = self.options;
        inputs::place(&options.inputs, self.job_directory())?;
        let home = self.home();
        let ours = |what: &str, error: std::io::Error| Refusal { surroundings: true, ..Refusal::ours(format!("{what}: {error}")) };
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| ours("cannot become the subreaper", error.into()))?;
        let signals = supervise::signal_descriptor().map_err(|error| ours("cannot wait for signals", error))?;
        let started = spawn::start(&options.command, self.environment, inherited)?;
        let escalation =
            escalate::Escalation::new(options.stop_signal, options.kill_after, options.deadline(), options.idle_timeout, Instant::now());
        let [stdout, stderr] = spool::Stream::ALL;
        let outcome = supervise::watch(
            supervise::Watch {
                root: started.pid,
                captures: [
                    capture::Capture::new(started.stdout, stdout, Some(&home), options.max_output),
                    capture::Capture::new(started.stderr, stderr, Some(&home), options.max_output),
                ],
                secrets: self.secrets,
                escalation,
                scope: options.signal_scope,
                leave_running: options.leave_running,
                drain: options.drain,
            },
            &signals,
        );
        let ended = self.ended(outcome);
        self.clean_up(&home);
        Ok(ended)
    }

    /// The report and the exit code of a command that ran.
    fn ended(&self, outcome: supervise::Outcome) -> (Report, u8) {
        let options = self.options;
        let mut report = self.began.report(outcome.ended);
        // A child that could not even be killed was killed as far as anybody can tell.
        let mut code = outcome.status.map_or(128 + 9, exit::of_child);
        report::set_status(&mut report, outcome.status);
        report.timed_out = outcome.escalation.timed_out;
        report.killed_after_grace = outcome.escalation.killed_after_grace;
        report.leaked = outcome.leaked;
        report.output_incomplete = outcome.captures.iter().any(|capture| capture.incomplete);
        let [stdout, stderr] = outcome.captures.map(capture::Capture::finish);
        report::set_streams(&mut report, [&stdout, &stderr]);
        report.files = outputs::collect(&options.outputs, self.job_directory());
        let fine = report.exit_code.is_some_and(|code| options.success_exit_codes.has(code));
        if fine {
            if let Some(kind) = options.expect {
                report.structured = Some(outputs::structured(kind.into(), &stdout));
            }
            report.bad_output = outputs::complaint(&report.files, report.structured.as_ref());
            if let Some(why) = &report.bad_output {
                say(why);
                code = exit::BAD_OUTPUT;
            }
        }
        (report, code)
    }

    /// The spool directory of the local job that we run, or that our command is a part of.
    fn job_directory(&self) -> Option<&Path> {
        self.job.map(Job::directory).or_else(|| self.variable(spool::DIRECTORY_VARIABLE).map(Path::new))
    }

    /// Where large streams go. See [`Self::clean_up`] for how long.
    fn home(&self) -> Home {
        let own = || format!("wrapper-{}", std::process::id());
        if let Some(job) = self.job {
            let live_after = Some(Duration::from_millis(spool::LIVE_AFTER_MS));
            return Home { directory: job.directory().to_owned(), live_after };
        }
        let directory = match (&self.options.spool, self.job_directory()) {
            (Some(spool), _) => spool.clone(),
            (None, Some(job)) => job.join(own()),
            (None, None) => {
                let temporary = self.variable("TMPDIR").filter(|value| !value.is_empty()).unwrap_or(OsStr::new("/tmp"));
                // Anything but an id could lead out of the directory, which is removed in the end.
                let id = self.variable("PVN_JOB_ID").and_then(|id| id.to_str()?.parse::<JobId>().ok());
                let name = id.map_or_else(own, |id| id.to_string());
                PathBuf::from(temporary).join("pvn").join(name)
            }
        };
        Home { directory, live_after: None }
    }

    /// A dry run leaves nothing behind but what it was told to keep; a job's directory is the scheduler's.
    fn clean_up(&self, home: &Home) {
        if self.job.is_none() && self.options.spool.is_none() {
            // Nothing else is in it, and what cannot be removed has nobody else to remove it.
            let _ = std::fs::remove_dir_all(&home.directory);
        }
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }
}

/// Hands the report over. Failing to do so never changes the code of a command that ran.
fn deliver(report: &Report, job: Option<&Job>, to: Option<&Path>) {
    if let Some(job) = job
        && let Err(error) = job.report(report)
    {
        say(&format!("cannot write the report into {}: {error}", job.directory().display()));
    }
    if let Some(to) = to
        && let Err(error) = report::write(report, to)
    {
        say(&format!("cannot write the report to {}: {error}", to.display()));
    }
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
