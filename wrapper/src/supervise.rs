//! Waits for the child, its output and its signals, in one loop over three descriptors; reaps
//! whatever is re-parented to us; sees to it that nothing stays behind. Called by `main` between
//! the start and the report.
//!
//! Three events, never taken for one another: the child has ended; its pipes are closed; its last
//! descendant is gone.
//!
//! ```text
//! Running ──child reaped──▶ Draining ──`--drain` over, or a stop was asked──▶ Asked ──2 s──▶ Killed ──2 s──▶ over
//!                              └──── nothing of ours lives, pipes closed ────────┴──────────────┴──────────▶ over
//! ```
//! Of a child that somebody else killed the first 2 s are its own grace.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use schema::mask::Secrets;
use schema::report::LeakedProcess;
use schema::spool::Stream;

use crate::args::SignalScope;
use crate::capture::Capture;
use crate::escalate::Escalation;
use crate::locks::Locks;
use crate::oom::OomCounter;
use crate::order::OutputOrder;
use crate::store::BUFFER_BYTES;
use crate::terminal::Terminal;

mod forward;
mod left;
mod readers;
mod stopped;

/// Time between TERM and KILL for what the child left behind when it ended, and again between KILL
/// and giving up on it. docs/wrapper.md, `--drain`.
const LEFT_OVER_GRACE: Duration = Duration::from_secs(2);

/// How long we wait for a child that was killed: one that is stuck in the kernel must not keep us
/// for ever.
const KILLED_PATIENCE: Duration = Duration::from_secs(10);

/// How old a command is when we look after what only matters to one that stays: by then a trivial
/// one is over.
const SETTLED: Duration = Duration::from_millis(5);

/// What to supervise, and how.
pub(crate) struct Supervision<'a> {
    pub(crate) root: Pid,
    pub(crate) captures: [Capture; 2],
    pub(crate) secrets: Option<&'a Secrets>,
    pub(crate) escalation: Escalation,
    pub(crate) scope: SignalScope,
    pub(crate) leave_running: bool,
    pub(crate) drain: Duration,
    pub(crate) order: OutputOrder,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) locks: &'a mut Locks,
}

/// How it ended.
pub(crate) struct SupervisedEnd {
    /// `None` when it could not even be killed.
    pub(crate) status: Option<WaitStatus>,
    pub(crate) ended: Instant,
    pub(crate) captures: [Capture; 2],
    pub(crate) escalation: Escalation,
    pub(crate) leaked: Vec<LeakedProcess>,
    /// Whether what is alive of those was meant to stay.
    pub(crate) left_running: bool,
    /// Whether the kernel killed it, or a part of it, for want of memory.
    pub(crate) oom_killed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Draining { until: Instant },
    Asked { until: Instant },
    Killed { until: Instant },
}

struct SignalLoop<'a> {
    watch: Supervision<'a>,
    phase: Phase,
    status: Option<WaitStatus>,
    ended: Instant,
    /// Whether any process of ours is left, as the kernel says.
    alone: bool,
    killed_at: Option<Instant>,
    leaked: Vec<LeakedProcess>,
    /// Made for the first read: most commands write nothing, and a quarter of a megabyte is not
    /// for nothing.
    buffer: Vec<u8>,
    /// When [`OomCounter::begin`] is due.
    settles_at: Option<Instant>,
    memory: OomCounter,
    /// Whether we were stopped together with the command, and it waits for the SIGCONT that we
    /// get: then with whether it had the terminal.
    stopped: Option<bool>,
}

/// Runs the loop until all is over. Not inlined, for the sake of the caller's stack.
#[inline(never)]
pub(crate) fn watch(watch: Supervision<'_>, signals: &SignalFd) -> SupervisedEnd {
    let now = Instant::now();
    let mut state = SignalLoop {
        watch,
        phase: Phase::Running,
        status: None,
        ended: now,
        alone: false,
        killed_at: None,
        leaked: Vec::new(),
        buffer: Vec::new(),
        settles_at: now.checked_add(SETTLED),
        memory: OomCounter::default(),
        stopped: None,
    };
    while !state.is_over() {
        state.wait(signals);
        state.time(Instant::now());
    }
    state.finish()
}

impl SignalLoop<'_> {
    fn is_over(&self) -> bool {
        let closed = self.watch.captures.iter().all(|capture| capture.pipe().is_none());
        match self.phase {
            Phase::Running => self.killed_at.is_some_and(|at| at.elapsed() >= KILLED_PATIENCE),
            Phase::Draining { until } if self.watch.leave_running => {
                closed || Instant::now() >= until
            }
            Phase::Draining { until } => self.alone && (closed || Instant::now() >= until),
            Phase::Asked { .. } => self.alone,
            Phase::Killed { until } => self.alone || Instant::now() >= until,
        }
    }

    /// Sleeps until something happens, and takes it in.
    fn wait(&mut self, signals: &SignalFd) {
        let now = Instant::now();
        let timeout = self.next().map(|at| {
            let left = at.saturating_duration_since(now);
            Timespec {
                tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        let [stdout, stderr] = &self.watch.captures;
        let candidates = [
            (Ready::Reader(1), stderr.tee.blocked(), PollFlags::OUT),
            (Ready::Reader(0), stdout.tee.blocked(), PollFlags::OUT),
            (Ready::Pipe(0), stdout.wanted(), PollFlags::IN),
            (Ready::Pipe(1), stderr.wanted(), PollFlags::IN),
            (Ready::Signal, Some(signals.as_fd()), PollFlags::IN),
        ];
        let mut who = Vec::with_capacity(candidates.len());
        let mut descriptors = Vec::with_capacity(candidates.len());
        for (ready, descriptor, flags) in candidates {
            if let Some(descriptor) = descriptor {
                who.push(ready);
                descriptors.push(PollFd::from_borrowed_fd(descriptor, flags));
            }
        }
        if rustix::event::poll(&mut descriptors, timeout.as_ref()).is_err() {
            return;
        }
        let ready =
            descriptors.iter().zip(who).filter(|(descriptor, _)| !descriptor.revents().is_empty());
        // A pipe that holds nothing and that nobody can write to any more.
        let is_over = |descriptor: &PollFd<'_>| {
            !descriptor.revents().intersects(PollFlags::IN | PollFlags::ERR)
        };
        let ready: Vec<(Ready, bool)> =
            ready.map(|(descriptor, ready)| (ready, is_over(descriptor))).collect();
        let now = Instant::now();
        // Signals last: what was written before the end is read before the end is acted upon.
        for (ready, is_over) in ready {
            match ready {
                Ready::Pipe(which) => self.read(which, is_over, now),
                Ready::Reader(which) => self.watch.captures[which].tee.flush(now),
                Ready::Signal => self.signal(signals, now),
            }
        }
    }

    fn read(&mut self, which: usize, is_over: bool, now: Instant) {
        let capture = &mut self.watch.captures[which];
        let before = capture.total();
        if is_over {
            capture.end(self.watch.secrets, now);
        } else {
            fill(&mut self.buffer);
            if capture.read(&mut self.buffer, self.watch.secrets, now) > 0 {
                self.watch.escalation.output(now);
            }
        }
        self.watch.order.add(Stream::ALL[which], capture.total() - before, now);
    }

    /// Takes in every process that has ended.
    fn reap(&mut self, now: Instant) {
        // Whether the child is stopped matters under a terminal only.
        let stops = if self.watch.terminal.is_some() {
            WaitOptions::UNTRACED
        } else {
            WaitOptions::empty()
        };
        loop {
            match rustix::process::wait(WaitOptions::NOHANG | stops) {
                Ok(Some((pid, status))) if status.stopped() => {
                    if pid == self.watch.root {
                        self.stopped_by_terminal(status.stopping_signal().unwrap_or_default(), now);
                    }
                }
                Ok(Some((pid, status))) if pid == self.watch.root => {
                    if let Some(terminal) = &self.watch.terminal {
                        terminal.take_back();
                    }
                    self.status = Some(status);
                    self.ended = now;
                    // What was stopped, or killed by whomever, did not come to leave what is to
                    // stay: its work goes on in there.
                    self.watch.leave_running &=
                        !self.watch.escalation.asked() && status.terminating_signal().is_none();
                    let until = now.checked_add(self.watch.drain).unwrap_or(now);
                    // What it leaves behind has no more time than itself.
                    let until = self
                        .watch
                        .escalation
                        .timeout()
                        .map_or(until, |timeout| until.min(timeout.max(now)));
                    self.phase = Phase::Draining { until };
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.alone = true;
                    return;
                }
            }
        }
    }

    /// Acts on whatever is due.
    fn time(&mut self, now: Instant) {
        self.watch.captures.iter_mut().for_each(|capture| capture.tick(now));
        self.watch.order.tick(now);
        self.watch.locks.look(now);
        if self.settles_at.is_some_and(|at| now >= at) {
            self.settles_at = None;
            // What is gone may have left its number to somebody else.
            if self.status.is_none() {
                self.memory.begin(self.watch.root);
            }
        }
        match self.phase {
            Phase::Running => {
                if let Some(send) = self.watch.escalation.tick(now) {
                    self.send(send, self.watch.scope);
                }
            }
            Phase::Draining { until }
                if !self.alone
                    && !self.watch.leave_running
                    && (now >= until || self.watch.escalation.asked()) =>
            {
                self.leaked = self.left_over();
                self.ask_left_over(Signal::TERM);
                let grace = self.left_over_grace();
                self.phase = Phase::Asked { until: now.checked_add(grace).unwrap_or(now) };
            }
            Phase::Asked { until } if now >= until => {
                self.kill_all();
                self.phase = Phase::Killed { until: now + LEFT_OVER_GRACE };
            }
            Phase::Draining { .. } | Phase::Asked { .. } => {}
            // Again and again: what is killed may just have forked.
            Phase::Killed { .. } if !self.alone => self.kill_all(),
            Phase::Killed { .. } => {}
        }
    }

    /// What a command left that somebody else killed is its work, which goes on in there: it has
    /// the time that the command would have had.
    fn left_over_grace(&self) -> Duration {
        if self.is_killed() && !self.watch.escalation.asked() {
            self.watch.escalation.kill_after()
        } else {
            LEFT_OVER_GRACE
        }
    }

    /// Whether KILL ended it. A shell whose command was killed says so with its exit code.
    fn is_killed(&self) -> bool {
        self.status.is_some_and(|status| {
            status.terminating_signal() == Some(Signal::KILL.as_raw())
                || status.exit_status() == Some(128 + Signal::KILL.as_raw())
        })
    }

    /// When something is due without anything happening before.
    fn next(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Running => {
                self.watch.escalation.next().or(self.killed_at.map(|at| at + KILLED_PATIENCE))
            }
            Phase::Draining { until } | Phase::Asked { until } => Some(until),
            Phase::Killed { until } => Some(until.min(Instant::now() + Duration::from_millis(50))),
        };
        let streams = self.watch.captures.iter().filter_map(|capture| capture.next());
        streams
            .chain(phase)
            .chain(self.watch.order.next())
            .chain(self.watch.locks.next())
            .chain(self.settles_at)
            .min()
    }

    fn finish(mut self) -> SupervisedEnd {
        let now = Instant::now();
        for (capture, stream) in self
            .watch
            .captures
            .iter_mut()
            .zip(Stream::ALL)
            .filter(|(capture, _)| capture.pipe().is_some())
        {
            fill(&mut self.buffer);
            let before = capture.total();
            capture.cut(&mut self.buffer, self.watch.secrets, now);
            self.watch.order.add(stream, capture.total() - before, now);
        }
        self.watch.order.finish();
        if !self.alone {
            // Those that live on, on purpose or because nothing ends them.
            for left in self.left_over() {
                match self.leaked.iter_mut().find(|known| known.pid == left.pid) {
                    Some(known) => known.alive = true,
                    None => self.leaked.push(LeakedProcess { alive: true, ..left }),
                }
            }
        }
        readers::show_the_rest(&mut self.watch.captures, self.watch.escalation.asked());
        SupervisedEnd {
            oom_killed: self.is_killed() && self.killed_at.is_none() && self.memory.has_killed(),
            status: self.status,
            ended: self.ended,
            captures: self.watch.captures,
            escalation: self.watch.escalation,
            leaked: self.leaked,
            left_running: self.watch.leave_running,
        }
    }
}

/// Makes the buffer if it is not there: zeroed by the kernel, so that only what is read into
/// becomes memory of ours. Setting its length would touch all of it.
fn fill(buffer: &mut Vec<u8>) {
    if buffer.is_empty() {
        *buffer = vec![0; BUFFER_BYTES];
    }
}

#[derive(Debug, Clone, Copy)]
enum Ready {
    Signal,
    Pipe(usize),
    Reader(usize),
}
