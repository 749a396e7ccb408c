//! What a wrapper that was killed left behind: found by what a command cannot shed, ended, and
//! followed to its end where it cannot be ended. Called by `pursue`.
//!
//! | found by | what it is worth |
//! | --- | --- |
//! | the wrapper's session, or the job's id in the environment; and all that descends from such a process | it is the job's |
//! | an orphan that came to us: this daemon takes in orphans below it ([`take_in_orphans`]), and only wrappers start processes outside its session | it is a lost job's, whatever it did to session and environment |
//! | an orphan of whoever has those of a wrapper that an earlier daemon started, begun since, in our control groups, in another session that is not older than the wrapper either, of no other job | it may be the job's |
//!
//! When the first two find nothing and there is no third, everything of the job is known to be
//! gone. What is the job's is asked to end and killed ([`end()`]). What may be the job's is left
//! alone and waited for: then the job is not known to be gone, and that is told as such until it
//! has ended.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use schema::id::JobId;
use schema::report::Report;
use schema::spool;
use schema::time::Timestamp;

use crate::runner::JobWait;

use super::table::{Process, ProcessTable, Row, ticks_ago};

mod end;

pub(super) use end::{EndOfLeft, end};

/// Time between the request to stop and KILL where the claim does not say it.
pub(super) const USUAL_KILL_AFTER: Duration = Duration::from_millis(spool::KILL_AFTER_MS);

/// How many processes are named for people.
const SHOWN: usize = 3;

/// How often what cannot be ended, or may be the job's, is looked at: it may take days.
pub(super) const LONG_LOOK: Duration = Duration::from_secs(1);

/// How often ended orphans are looked for. They hold nothing but a number.
const REAP_EVERY: Duration = Duration::from_secs(5);

/// How much earlier than its wrapper's word a process of the job can have begun by our reckoning:
/// two clocks are compared.
const CLOCK_MARGIN_MS: i64 = 2000;

/// What the name of a wrapper's program begins with. See `table::Row::name`.
const WRAPPER: &str = "pvn-wrapper";

/// What is known of a wrapper, from when it was alive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Trace {
    /// Its number, and that of its session.
    pub(super) session: Option<i32>,
    /// When it began, in ticks since the machine was started.
    pub(super) began: Option<u64>,
    /// Who gets its children when it dies; `None` = nobody saw.
    pub(super) reaper: Option<i32>,
}

impl Trace {
    /// Of one that we have just started: its orphans come to us.
    pub(super) fn of_child(pid: Option<u32>) -> Self {
        Self {
            session: pid.map(u32::cast_signed),
            began: Some(ticks_ago(CLOCK_MARGIN_MS)),
            reaper: Some(own_pid()),
        }
    }

    /// Of one that an earlier daemon started and that is alive: its orphans go where it went.
    pub(super) fn of_living(pid: i32) -> Option<Self> {
        let row = Row::of(pid)?;
        Some(Self { session: Some(pid), began: Some(row.process.began), reaper: Some(row.parent) })
    }

    /// Of one that died while nobody looked, by its claim.
    pub(super) fn of_claim(pid: i32, at: Timestamp, now: Timestamp) -> Self {
        Self {
            session: Some(pid),
            began: Some(ticks_ago(now.since_ms(at) + CLOCK_MARGIN_MS)),
            reaper: None,
        }
    }
}

/// Whether this was before the machine was started, by the clocks.
pub(super) fn was_before_boot(at: Timestamp, now: Timestamp) -> bool {
    ticks_ago(now.since_ms(at)) == 0
}

/// What a look found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct LeftOvers {
    /// The job's.
    pub(super) certain: Vec<Process>,
    /// Those of them that no other one of them started, as far as is known: who is asked to end.
    roots: Vec<Process>,
    /// May be the job's.
    pub(super) possible: Vec<Process>,
}

impl LeftOvers {
    fn all(&self) -> impl Iterator<Item = Process> {
        self.certain.iter().chain(&self.possible).copied()
    }

    /// Whether everything of the job is known to be gone.
    pub(super) fn is_nothing(&self) -> bool {
        self.all().next().is_none()
    }

    /// What is told while it is asked to end, of a job whose wrapper is gone as `how` says; `None`
    /// when nothing of it is there.
    pub(super) fn wait(&self, how: &str, kill_at: Timestamp) -> Option<JobWait> {
        (!self.certain.is_empty()).then(|| JobWait {
            why: format!(
                "{how}; what it left was asked to stop and still runs: {}",
                named(&self.roots)
            ),
            ends_when: format!(
                "it has ended by itself, or is killed at {kill_at}; cancelling the job twice kills \
                 it at once"
            ),
            until: kill_at,
            surroundings: false,
            is_unseen: true,
        })
    }

    /// What is still there, for people, as the end of a sentence.
    pub(super) fn words(&self) -> String {
        match (self.certain.as_slice(), self.possible.as_slice()) {
            ([], []) => String::new(),
            ([], possible) => {
                format!(
                    "; {} may be one that it left: it began since and nothing says whose it is, so \
                     it is left alone; end it if it is the job's",
                    named(possible)
                )
            }
            (certain, _) => format!(
                "; some of its processes are still there and could not be stopped: {}",
                named(certain)
            ),
        }
    }
}

/// Some of these, for people.
fn named(all: &[Process]) -> String {
    all.iter().take(SHOWN).map(|process| process.words()).collect::<Vec<_>>().join(", ")
}

/// What jobs left running on purpose, by this daemon's knowledge: it is nobody's left-over.
static SPARED: Mutex<BTreeSet<Process>> = Mutex::new(BTreeSet::new());

fn spared() -> std::sync::MutexGuard<'static, BTreeSet<Process>> {
    SPARED.lock().expect("nobody panics with the lock")
}

/// A job left this running on purpose. Blocks.
pub(super) fn spare(left: &LeftOvers) {
    let mut spared = spared();
    spared.retain(|process| process.lives());
    spared.extend(left.all());
}

/// Makes this process the one that gets orphans below it, and takes note of their ends from then
/// on.
pub(super) fn take_in_orphans() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Takes note of orphans that have ended, for ever. Our own children are left to those who wait for
/// them.
pub(super) async fn reap_orphans() {
    let mut every = tokio::time::interval(REAP_EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        // One that does not panic; and when the runtime ends there is nothing left to do.
        let _ = tokio::task::spawn_blocking(reap).await;
    }
}

fn reap() {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Cheap, and mostly nothing.
    if !matches!(rustix::process::waitid(WaitId::All, peek), Ok(Some(_))) {
        return;
    }
    let Ok(table) = ProcessTable::read() else { return };
    let own = own_pid();
    for row in
        table.rows.values().filter(|row| row.ended && row.parent == own && is_foreign(row, &table))
    {
        if let Some(pid) = Pid::from_raw(row.process.pid) {
            // Nobody else waits for it.
            let _ = rustix::process::waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
            );
        }
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether a process below us was not started by us: ours stay in our session, but for wrappers,
/// which lead one of their own.
fn is_foreign(row: &Row, table: &ProcessTable) -> bool {
    let session = table.rows.get(&own_pid()).map(|own| own.session);
    session.is_some_and(|session| row.session != session) && !is_wrapper(row)
}

/// Whether it is a job's wrapper. It is named by the kernel, for its environment may be hidden from
/// us.
fn is_wrapper(row: &Row) -> bool {
    row.name.starts_with(WRAPPER) && row.session == row.process.pid
}

/// Looks for what a job left. Blocks.
fn look(job: JobId, trace: &Trace) -> std::io::Result<LeftOvers> {
    let table = ProcessTable::read()?;
    let own = own_pid();
    let job = job.to_string();
    let alive = |pid: &i32| table.rows.get(pid).is_some_and(|row| !row.ended);
    // A number is not given again while it is a session's; so where a process of this number lives,
    // the session is another.
    let session = trace.session.filter(|session| !alive(session));
    let since = |row: &Row| trace.began.is_none_or(|began| row.process.began >= began);
    let mut certain = BTreeSet::new();
    let mut orphans = BTreeSet::new();
    let reapers = match trace.reaper {
        Some(reaper) => BTreeSet::from([reaper]),
        None => table.ancestors(own).into_iter().chain([1, own]).collect(),
    };
    let groups = table.rows.get(&own).and_then(Row::groups);
    // Nobody can join a session: whoever is in one that was there before the wrapper is not the
    // the job's: another child of the shell that started us, for one.
    // And 0 is a session from outside our process namespace.
    let is_in_an_older_session = |row: &Row| {
        row.session == 0 || table.rows.get(&row.session).is_some_and(|leader| !since(leader))
    };
    let spared = table.with_descendants(
        spared().iter().filter(|process| process.lives()).map(|process| process.pid).collect(),
    );
    for row in table.rows.values().filter(|row| row.process.pid != own) {
        let pid = row.process.pid;
        let of = row.job();
        if of.as_ref() == Some(&job) || (session == Some(row.session) && since(row)) {
            certain.insert(pid);
        } else if of.is_none()
            && reapers.contains(&row.parent)
            && since(row)
            && is_foreign(row, &table)
            && !spared.contains(&pid)
        {
            if row.parent == own {
                certain.insert(pid);
            } else if !is_in_an_older_session(row) && row.groups() == groups {
                orphans.insert(pid);
            }
        }
    }
    let certain = table.with_descendants(certain);
    let possible = table.with_descendants(orphans);
    let processes = |pids: &BTreeSet<i32>| -> Vec<Process> {
        pids.iter()
            .filter(|pid| alive(pid) && **pid != own)
            .filter_map(|pid| Some(table.rows.get(pid)?.process))
            .collect()
    };
    let is_root = |pid: &i32| !table.rows.get(pid).is_some_and(|row| certain.contains(&row.parent));
    let roots = certain.iter().copied().filter(is_root).collect();
    Ok(LeftOvers {
        roots: processes(&roots),
        possible: processes(&possible.difference(&certain).copied().collect()),
        certain: processes(&certain),
    })
}

pub(super) async fn look_later(job: JobId, trace: &Trace) -> std::io::Result<LeftOvers> {
    let trace = trace.clone();
    tokio::task::spawn_blocking(move || look(job, &trace)).await.map_err(std::io::Error::other)?
}

/// Returns once all of it has ended, and what it may have started meanwhile.
pub(super) async fn ended(job: JobId, trace: Option<&Trace>, mut left: LeftOvers) {
    loop {
        while left.all().any(Process::lives) {
            tokio::time::sleep(LONG_LOOK).await;
        }
        let Some(trace) = trace else { return };
        match look_later(job, trace).await {
            Ok(found) if found.is_nothing() => return,
            Ok(found) => left = found,
            Err(error) => {
                tracing::error!(%job, %error, "failed to look for left-over processes");
                tokio::time::sleep(LONG_LOOK).await;
            }
        }
    }
}

/// Whether a report says that something is left which nobody here can look at: its wrapper could
/// not either, or `/proc` hides it. What has ended takes no signal.
pub(super) fn is_unseen(report: &Report) -> bool {
    let takes_signal = |pid| {
        Pid::from_raw(pid)
            .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
    };
    let mut left = report.leaked.iter().filter(|left| left.alive).map(|left| left.pid);
    left.any(|pid| pid <= 0 || (Process::of(pid).is_none() && takes_signal(pid)))
}

/// What a report says is left and could not be ended, as far as it still runs. Blocks.
pub(super) fn reported(report: &Report) -> LeftOvers {
    let leaked = report.leaked.iter().filter(|left| left.alive);
    LeftOvers {
        certain: leaked.filter_map(|left| Process::of(left.pid)).collect(),
        ..LeftOvers::default()
    }
}
