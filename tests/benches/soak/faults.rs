//! The faults. Each happens, lasts for a while and is over, but for clients that misbehave, which
//! stay until they are too many.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tests::dice::Dice;
use tests::disk::{DatabaseLock, SmallDisk};
use tests::scheduler::Scheduler;
use tests::{poison, skip, wait};

use crate::estate::Estate;

/// Connections that say nothing, at a time: below the daemon's limit, so that we can still ask it
/// how it is.
const SILENT: usize = 150;

/// Readers of events that never read, at a time.
const DEAF: usize = 40;

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    KillDaemon,
    RestartDaemon,
    PauseDaemon,
    KillWrapper,
    PauseWrapper,
    Person,
    Poison,
    FullDisk,
    LockedDatabase,
    DeafReader,
    SilentConnections,
    Release,
    Damage,
}

const ALL: &[Fault] = &[
    Fault::KillDaemon,
    Fault::RestartDaemon,
    Fault::PauseDaemon,
    Fault::KillWrapper,
    Fault::KillWrapper,
    Fault::PauseWrapper,
    Fault::Person,
    Fault::Person,
    Fault::Person,
    Fault::Poison,
    Fault::FullDisk,
    Fault::LockedDatabase,
    Fault::DeafReader,
    Fault::SilentConnections,
    Fault::Release,
    Fault::Release,
    Fault::Damage,
    Fault::Damage,
];

pub(crate) struct Faults<'a> {
    estate: &'a Estate,
    disk: Option<&'a SmallDisk>,
    can_lock: bool,
    deaf: Vec<TcpStream>,
    silent: Vec<TcpStream>,
    last: String,
    pub(crate) counts: BTreeMap<Fault, usize>,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(estate: &'a Estate, disk: Option<&'a SmallDisk>) -> Self {
        let can_lock = skip::tool("python3").is_some();
        Self {
            estate,
            disk,
            can_lock,
            deaf: Vec::new(),
            silent: Vec::new(),
            last: String::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Faults that cannot be had here, and why.
    pub(crate) fn absent(&self) -> Vec<&'static str> {
        let disk =
            self.disk.is_none().then_some("a full disk: mounting a small file system needs root");
        let lock = (!self.can_lock).then_some("a locked database: python3 is not on PATH");
        disk.into_iter().chain(lock).collect()
    }

    /// What happened last, for a message.
    pub(crate) fn last(&self) -> &str {
        &self.last
    }

    /// Something happens.
    pub(crate) fn one(&mut self, scheduler: &mut Scheduler, dice: &mut Dice) {
        let fault = *dice.pick(ALL);
        let lasts = Duration::from_millis(200 + dice.below(4_000) as u64);
        self.last = format!("{fault:?} for {lasts:?}");
        *self.counts.entry(fault).or_default() += 1;
        match fault {
            Fault::KillDaemon => {
                scheduler.kill();
                scheduler.run(&self.estate.start());
            }
            Fault::RestartDaemon => {
                let status = scheduler.stop();
                assert!(status.success(), "a soft stop ended with {status}:\n{}", scheduler.log());
                scheduler.run(&self.estate.start());
            }
            Fault::PauseDaemon => paused(scheduler.pid(), lasts),
            Fault::KillWrapper => {
                if let Some(pid) = some_wrapper(scheduler.home(), dice) {
                    signal(pid, Signal::SIGKILL);
                }
            }
            Fault::PauseWrapper => {
                if let Some(pid) = some_wrapper(scheduler.home(), dice) {
                    paused(pid, lasts);
                }
            }
            Fault::Person => self.person(scheduler, dice),
            Fault::Poison => self.estate.poison(
                dice.percent(70).then(|| [poison::fetch_output(dice), poison::info_output(dice)]),
            ),
            Fault::FullDisk => {
                if let Some(disk) = self.disk {
                    disk.fill();
                    std::thread::park_timeout(lasts);
                    disk.free();
                }
            }
            Fault::LockedDatabase => {
                if self.can_lock {
                    let lock = DatabaseLock::take(&scheduler.data().join("pvn.db"));
                    std::thread::park_timeout(lasts);
                    drop(lock);
                }
            }
            Fault::DeafReader => self.connect(scheduler, true, DEAF / 4),
            Fault::SilentConnections => self.connect(scheduler, false, SILENT / 2),
            Fault::Release => {
                let words = self.estate.release_of_some(dice);
                self.ask(scheduler, &words);
            }
            Fault::Damage => self.estate.damage(dice),
        }
        std::thread::park_timeout(Duration::from_millis(dice.below(1_500) as u64));
    }

    /// Nothing happens any more, and nothing of it is left.
    pub(crate) fn end(&mut self, scheduler: &mut Scheduler) {
        self.deaf.clear();
        self.silent.clear();
        self.estate.poison(None);
        wait::until("the daemon to be ready after the last fault", || {
            (scheduler.get("/readyz")?.0 == 200).then_some(())
        });
    }

    fn person(&mut self, scheduler: &Scheduler, dice: &mut Dice) {
        let target = self.estate.some(dice);
        let on = |does: &[&str]| {
            let rest = [
                target.service.as_str(),
                "--app",
                &target.application,
                "--channel",
                &target.channel,
            ];
            [&["services", does[0]], rest.as_slice(), &does[1..]]
                .concat()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let words = match dice.below(8) {
            0 => on(&["pause"]),
            1 | 2 => on(&["resume"]),
            3 => on(&["retry"]),
            4 | 5 => on(&["approve", "--yes"]),
            6 => on(&["reject", "--reason", "soak"]),
            _ => {
                let path = format!(
                    "/v1/jobs?application={}&service={}&limit=1",
                    target.application, target.service
                );
                let newest = scheduler
                    .get(&path)
                    .and_then(|(_, body)| serde_json::from_str::<serde_json::Value>(&body).ok());
                match newest.as_ref().and_then(|page| page["items"][0]["id"].as_str()) {
                    Some(job) => ["jobs", "cancel", job].map(str::to_owned).to_vec(),
                    None => on(&["retry"]),
                }
            }
        };
        self.ask(scheduler, &words);
    }

    /// Runs `pvnctl`, which may be told no and must not break.
    fn ask(&mut self, scheduler: &Scheduler, words: &[String]) {
        self.last = format!("pvnctl {}", words.join(" "));
        let output = scheduler.pvnctl(words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{} ended with {}: {stderr}",
            self.last,
            output.status
        );
    }

    /// Clients that never read what they asked for, or never ask. The oldest go where there are too
    /// many.
    fn connect(&mut self, scheduler: &Scheduler, deaf: bool, count: usize) {
        let address = scheduler.url().trim_start_matches("http://").to_owned();
        let (held, limit) = if deaf { (&mut self.deaf, DEAF) } else { (&mut self.silent, SILENT) };
        for _ in 0..count {
            let Ok(mut stream) = TcpStream::connect(&address) else { continue };
            if deaf {
                let head = format!(
                    "GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: \
                     text/event-stream\r\nAuthorization: Bearer {}\r\n\r\n",
                    scheduler.token()
                );
                // One that is not taken in is a silent one.
                let _ = stream.write_all(head.as_bytes());
            }
            held.push(stream);
        }
        held.drain(..held.len().saturating_sub(limit));
    }
}

fn signal(pid: u32, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill(Pid::from_raw(i32::try_from(pid).expect("process ids fit")), signal);
}

fn paused(pid: u32, lasts: Duration) {
    signal(pid, Signal::SIGSTOP);
    std::thread::park_timeout(lasts);
    signal(pid, Signal::SIGCONT);
}

/// A wrapper that runs a job of this daemon: its arguments name a directory below `home`.
fn some_wrapper(home: &Path, dice: &mut Dice) -> Option<u32> {
    let home = home.to_str().expect("the path is UTF-8");
    let is_ours = |pid: &u32| {
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut words = line.split('\0');
        words.next().is_some_and(|program| program.ends_with("pvn-wrapper"))
            && words.any(|word| word.starts_with(home))
    };
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let mut ours: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_ours)
        .collect();
    ours.sort_unstable();
    if ours.is_empty() { None } else { Some(*dice.pick(&ours)) }
}
