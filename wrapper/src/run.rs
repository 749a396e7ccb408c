//! One run from its inputs to its report: what happens between the arguments and handing over.
//! Called by `main`.

use std::time::Instant;

use schema::mask::Secrets;
use schema::report::Report;
use schema::spool;

use crate::args::ExecArguments;
use crate::freshness::Before;
use crate::hand_over::{Ended, ReportSink};
use crate::inputs::Placed;
use crate::locks::{LockOwner, Locks};
use crate::order::OutputOrder;
use crate::report::Began;
use crate::signals::Inherited;
use crate::spawn::Environment;
use crate::spawn::SpawnRefusal;
use crate::terminal::Terminal;
use crate::writer::say;
use crate::{capture, escalate, exit, outputs, report, signals, spawn, supervise};

/// What every step of a run may look at.
pub(crate) struct Shared<'a> {
    pub(crate) options: &'a ExecArguments,
    pub(crate) environment: &'a Environment,
    pub(crate) secrets: Option<&'a Secrets>,
    pub(crate) began: Began,
}

impl Shared<'_> {
    /// Runs the command.
    pub(crate) fn run(
        &self,
        inherited: &Inherited,
        way: &mut ReportSink,
    ) -> Result<Ended, SpawnRefusal> {
        let options = self.options;
        let declares = !options.inputs.is_empty() || !options.outputs.is_empty();
        let waits_from = Instant::now();
        let mut locks = if declares {
            Locks::take(options, self.environment, way, waits_from)?
        } else {
            Locks::default()
        };
        // Waiting for another job counts, and so does fetching inputs.
        let time_left = || {
            options.deadline().map(|timeout| {
                if declares { timeout.saturating_sub(waits_from.elapsed()) } else { timeout }
            })
        };
        let _placed = Placed::place(&options.inputs, |inputs| {
            way.place(inputs, self.environment, time_left())
        })?;
        way.prepare();
        let home = way.home();
        let ours = |what: &str, error: std::io::Error| SpawnRefusal {
            surroundings: true,
            ..SpawnRefusal::ours(format!("{what}: {error}"))
        };
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| ours("cannot become the subreaper", error.into()))?;
        let signals =
            signals::descriptor().map_err(|error| ours("cannot wait for signals", error))?;
        let terminal = Terminal::find();
        let before = if options.outputs.is_empty() {
            Before::default()
        } else {
            Before::look(&options.outputs, &locks)
        };
        let started = spawn::start(
            &options.command,
            self.environment,
            inherited,
            terminal.filter(Terminal::is_for_the_command),
        )?;
        way.start();
        let escalation = escalate::Escalation::new(
            options.stop_signal,
            options.kill_after,
            time_left(),
            options.idle_timeout,
            Instant::now(),
        );
        let [stdout, stderr] = spool::Stream::ALL;
        let is_document = options.expected(self.environment, way.is_of_the_job()).is_some();
        let outcome = supervise::watch(
            supervise::Supervision {
                root: started.pid,
                captures: [
                    capture::Capture::new(
                        started.stdout,
                        stdout,
                        is_document,
                        Some(&home),
                        options.max_output,
                    ),
                    capture::Capture::new(
                        started.stderr,
                        stderr,
                        false,
                        Some(&home),
                        options.max_output,
                    ),
                ],
                secrets: self.secrets,
                escalation,
                scope: options.signal_scope,
                leave_running: options.leave_running,
                drain: options.drain,
                order: OutputOrder::new(way.order()),
                terminal: terminal.map(|terminal| terminal.with(started.pid)),
                locks: &mut locks,
            },
            &signals,
        );
        Ok(self.ended(outcome, way, &before))
    }

    /// The report and the exit code of a command that ran. Not inlined, so that its variables do
    /// not lie on the stack beside those of the wait that is over: each page of a stack is a
    /// fault of a microsecond or two.
    #[inline(never)]
    fn ended(&self, outcome: supervise::SupervisedEnd, way: &ReportSink, before: &Before) -> Ended {
        let options = self.options;
        let mut report = self.began.report(outcome.ended);
        // A child that could not even be killed was killed as far as anybody can tell.
        let mut code = outcome.status.map_or(128 + 9, exit::of_child);
        report::set_status(&mut report, outcome.status);
        report.timed_out = outcome.escalation.timed_out;
        report.stopped_by = outcome.escalation.stopped_by.map(signals::name);
        report.killed_after_grace = outcome.escalation.killed_after_grace;
        report.oom_killed = outcome.oom_killed;
        report.leaked = outcome.leaked;
        report.left_running = outcome.left_running;
        report.output_incomplete = outcome.captures.iter().any(|capture| capture.incomplete);
        let cut = outcome.captures.iter().find_map(|capture| capture.tee.cut());
        let is_within_a_line =
            outcome.captures.iter().any(|capture| capture.tee.is_within_a_line());
        let streams = outcome.captures.map(capture::Capture::finish);
        let [stdout, stderr] = &streams;
        report::set_streams(&mut report, [stdout, stderr]);
        let fine = report.exit_code.is_some_and(|code| options.success_exit_codes.has(code));
        if !options.outputs.is_empty() && way.tells_kubelet() {
            // Large files take a while, in which somebody may kill us.
            let lost = || {
                Some("its wrapper was killed while it handed over what the command left".to_owned())
            };
            let mut early = Report {
                files_lost: lost(),
                bad_output: lost().filter(|_| fine),
                ..report.clone()
            };
            if let Some(secrets) = self.secrets {
                early.hide(secrets);
            }
            way.tell_kubelet(&early, self.environment);
        }
        let collected = outputs::collect(&options.outputs, before, self.secrets, way.outputs());
        if let (ReportSink::Job(job), Some(secrets)) = (way, self.secrets) {
            outputs::mask_handed_over(job.directory(), &collected.files, secrets);
        }
        report.files = collected.files;
        report.files_lost = collected.lost;
        if fine {
            let expected = options.expected(self.environment, way.is_of_the_job());
            report.structured =
                expected.map(|kind| outputs::structured(kind, stdout, self.secrets));
            report.bad_output = outputs::complaint(&report.files, report.structured.as_ref());
        }
        let finds_work = report.exit_code == Some(exit::WORK.into());
        let cut = cut.map(|(bytes, why)| {
            format!("{bytes} bytes of the output could not be written where it goes: {why}")
        });
        report.bad_output =
            report.bad_output.take().or_else(|| cut.clone().filter(|_| fine || finds_work));
        // A fetch that says that there is work, and whose plan nobody can look at.
        let lost = report.files_lost.as_ref().filter(|_| finds_work && !fine);
        let complaint = report.bad_output.as_ref().or(lost);
        if let Some(why) = complaint.or(cut.as_ref()) {
            say(why);
        }
        if complaint.is_some() {
            code = exit::BAD_OUTPUT;
        }
        Ended { report, code, streams, is_within_a_line, to_send: collected.to_send }
    }
}
