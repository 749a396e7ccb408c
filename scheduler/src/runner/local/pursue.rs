//! Follows a job from its start, or from where it is found, to its end: waits for its wrapper,
//! passes stops on, and brings what it left into the blob store. Called by `start` for new jobs and
//! by `local` for those of before.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use schema::id::JobId;
use schema::report::Report;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::collect;
use super::directory::{SpoolContents, WrapperClaim};
use super::left::{self, LeftOvers, Trace};
use super::process::Wrapper;
use super::{End, LocalInner, RunnerEvent};
use crate::clock::Clock;
use crate::runner::job_tasks::sleep_until;

mod lost;
mod no_room;

use lost::KILLED;
use no_room::{NoRoom, no_room};

/// A job that is over sooner is told only as ended: two commits less for the many that last
/// milliseconds.
const STARTED_AFTER: Duration = Duration::from_millis(50);

/// How long after the second stop a wrapper may still be there before it is killed itself. More
/// than the time in which it gives up on a child that cannot be killed (10 s).
pub(super) const WRAPPER_GRACE: Duration = Duration::from_secs(15);

/// How often a claim that is just being written is looked at again, and how many times: it takes
/// microseconds.
pub(super) const CLAIMING_LOOK: Duration = Duration::from_millis(10);
pub(super) const CLAIMING_LOOKS: u32 = 100;

/// Tries to bring what a job left into the blob store, and the time between two: about a minute in
/// all, then the job is told without it. What passes by itself, a full disk for example, is waited
/// for.
const COLLECT_TRIES: u32 = 8;
const COLLECT_PAUSE: Duration = Duration::from_millis(250);

/// How often a job is looked at again that cannot be claimed on a full disk, or whose output cannot
/// be kept: at first, and at most, for a try to keep much output takes the room that others wait
/// for.
const NO_ROOM_PAUSE: Duration = Duration::from_secs(1);
const NO_ROOM_LONGEST: Duration = Duration::from_secs(15);

/// What was seen of a wrapper while it ran.
#[derive(Default)]
struct Seen {
    trace: Option<Trace>,
    /// With it the job was claimed: its command may have begun.
    claim: Option<WrapperClaim>,
    /// How many stops were passed on to it.
    stops: u32,
}

/// Where a job's task stands.
pub(super) enum TaskPhase {
    Running(Wrapper),
    Found(SpoolContents),
    /// There is no room, so that it cannot be found out or its output not be kept: it is looked at
    /// again.
    NoRoom(NoRoom),
    Over(End, ProcessesGone),
    Detached,
}

impl TaskPhase {
    /// A job whose directory could not be looked at. A claim that we take is written: without room
    /// for it the look comes later, and so it does where somebody has taken the right to the
    /// directory away for a while.
    pub(super) fn unseen(error: io::Error) -> Self {
        let unreadable = |error| {
            Self::Over(
                unknown(format!("its spool directory cannot be read: {error}")),
                ProcessesGone::NotToBeSeen,
            )
        };
        NoRoom::of(error, false).map_or_else(unreadable, Self::NoRoom)
    }
}

/// Whether every process of a job that is over is known to be gone.
pub(super) enum ProcessesGone {
    Yes,
    /// These may be all that keeps it from being so; the trace finds what they start.
    Not(LeftOvers, Option<Trace>),
    /// What is still there is meant to stay, or nobody can look.
    NotToBeSeen,
}

impl LocalInner {
    /// Follows a job to its end and tells it.
    pub(super) async fn pursue(
        self: Arc<Self>,
        job: JobId,
        mut at: TaskPhase,
        mut stops: mpsc::Receiver<()>,
    ) {
        let mut looks = 0;
        let mut seen = Seen::default();
        let mut no_room_pause = None;
        let ended = loop {
            at = match at {
                TaskPhase::Running(wrapper) => {
                    seen.trace = self.trace(job, &wrapper);
                    if matches!(wrapper, Wrapper::Adopted(_)) {
                        seen.claim = seen.claim.or_else(|| self.directory(job).claim());
                    }
                    self.wait(job, wrapper, &mut stops, &mut seen).await
                }
                TaskPhase::Found(SpoolContents::Claiming) if looks < CLAIMING_LOOKS => {
                    looks += 1;
                    tokio::time::sleep(CLAIMING_LOOK).await;
                    self.look(job).await
                }
                TaskPhase::Found(found) => self.found(job, found, &mut stops, &mut seen).await,
                TaskPhase::NoRoom(lack) => {
                    // Once: nothing else tells it where the disk says that it has room, as with a
                    // quota.
                    if no_room_pause.is_none() {
                        let wait = no_room(
                            &self.settings.spool,
                            self.blobs.root(),
                            &lack,
                            Clock::System.now(),
                        );
                        tracing::warn!(
                            %job,
                            "{}; it is looked at again until {}",
                            wait.why, wait.ends_when
                        );
                        self.followed
                            .tell(&self.news, RunnerEvent::Waits { job, wait: Some(wait) })
                            .await;
                    }
                    let pause = no_room_pause
                        .map_or(NO_ROOM_PAUSE, |pause: Duration| (pause * 2).min(NO_ROOM_LONGEST));
                    no_room_pause = Some(pause);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => self.look(job).await,
                        () = self.followed.detach.cancelled() => TaskPhase::Detached,
                    }
                }
                TaskPhase::Over(end, gone) => break Some((end, gone)),
                TaskPhase::Detached => break None,
            };
        };
        // First, so that whoever hears of the end and asks for a start again is answered.
        self.followed.over(job);
        let Some((end, gone)) = ended else { return };
        let ProcessesGone::Not(left, trace) = gone else {
            let gone = matches!(gone, ProcessesGone::Yes);
            return self.followed.tell(&self.news, RunnerEvent::Ended { job, end, gone }).await;
        };
        self.followed
            .tell(&self.news, RunnerEvent::Ended { job, end: end.clone(), gone: false })
            .await;
        // The driver keeps the next apply from starting beside it, until it hears that this is
        // over.
        tokio::select! {
            () = left::ended(job, trace.as_ref(), left) => {
                let ended = RunnerEvent::Ended { job, end, gone: true };
                self.followed.tell(&self.news, ended).await;
            }
            () = self.followed.detach.cancelled() => {}
        }
    }

    /// What will be known of a wrapper when it is gone.
    pub(super) fn trace(&self, job: JobId, wrapper: &Wrapper) -> Option<Trace> {
        match wrapper {
            Wrapper::Started(child) => Some(Trace::of_child(child.id())),
            Wrapper::Adopted(_) => Trace::of_living(self.directory(job).claim()?.pid),
        }
    }

    /// Waits for the wrapper's end, and passes stops on to it.
    async fn wait(
        self: &Arc<Self>,
        job: JobId,
        mut wrapper: Wrapper,
        stops: &mut mpsc::Receiver<()>,
        seen: &mut Seen,
    ) -> TaskPhase {
        let mut kill_at: Option<Instant> = None;
        let mut tell = Some(
            Instant::now()
                + if matches!(wrapper, Wrapper::Started(_)) {
                    STARTED_AFTER
                } else {
                    Duration::ZERO
                },
        );
        loop {
            let due = [kill_at, tell].into_iter().flatten().min();
            tokio::select! {
                biased;
                ended = wrapper.ended() => return match ended {
                    Ok(()) => self.look(job).await,
                    Err(error) => {
                        let why = format!("its wrapper cannot be waited for: {error}");
                        TaskPhase::Over(unknown(why), ProcessesGone::NotToBeSeen)
                    }
                },
                Some(()) = stops.recv() => {
                    seen.stops += 1;
                    // One that somebody stopped would hear of nothing.
                    wrapper.signal(Signal::CONT);
                    // Two of the same that arrive together count as one; the wrapper takes either
                    // for a stop.
                    wrapper.signal(if seen.stops % 2 == 1 { Signal::TERM } else { Signal::INT });
                    if seen.stops > 1 {
                        kill_at = kill_at.or(Some(Instant::now() + WRAPPER_GRACE));
                    }
                }
                () = sleep_until(due), if due.is_some() => {
                    if kill_at.is_some_and(|at| Instant::now() >= at) {
                        kill_at = None;
                        wrapper.signal(Signal::KILL);
                    } else {
                        let claim = self.tell_started(job).await;
                        seen.claim = seen.claim.or(claim);
                        tell = match seen.claim {
                            Some(_) => None,
                            None => Some(Instant::now() + STARTED_AFTER),
                        };
                    }
                }
                () = self.followed.detach.cancelled() => return TaskPhase::Detached,
            }
        }
    }

    /// Tells that the job runs, when its wrapper has claimed it.
    async fn tell_started(&self, job: JobId) -> Option<WrapperClaim> {
        let directory = self.directory(job);
        let claim = self.blocking.run(move || directory.claim()).await?;
        self.followed.tell(&self.news, RunnerEvent::Started { job, at: claim.at }).await;
        Some(claim)
    }

    /// Looks at a job. What one that is over left goes into the blob store at once, in the same
    /// turn on a blocking thread; if that fails it is found as over, and collected again.
    async fn look(&self, job: JobId) -> TaskPhase {
        let (directory, blobs) = (self.directory(job), self.blobs.clone());
        let look = move || match directory.look()? {
            SpoolContents::Reported(report) => {
                Ok(match collect::collect(report.clone(), &directory, &blobs) {
                    Ok(collected) => over(collected),
                    Err(error) => NoRoom::to_keep(error).map_or_else(
                        |_| TaskPhase::Found(SpoolContents::Reported(report)),
                        TaskPhase::NoRoom,
                    ),
                })
            }
            found => Ok(TaskPhase::Found(found)),
        };
        let looked: io::Result<TaskPhase> = self.blocking.run(look).await;
        match looked {
            Ok(at) => at,
            Err(error) => TaskPhase::unseen(error),
        }
    }

    /// What a directory says, taken further.
    async fn found(
        &self,
        job: JobId,
        found: SpoolContents,
        stops: &mut mpsc::Receiver<()>,
        seen: &mut Seen,
    ) -> TaskPhase {
        match found {
            SpoolContents::Reported(report) => {
                self.collect(job, report).await.map_or_else(TaskPhase::NoRoom, over)
            }
            SpoolContents::Running { pid } => {
                let directory = self.directory(job);
                let adopted =
                    Wrapper::adopt(pid).and_then(|wrapper| Ok((wrapper, directory.is_locked()?)));
                match adopted {
                    // Locked after we took hold of the process: the pid was still the wrapper's.
                    Ok((Some(wrapper), true)) => TaskPhase::Running(wrapper),
                    Ok(_) => self.look(job).await,
                    Err(error) => {
                        let why = format!(
                            "its wrapper (pid {}) cannot be followed: {error}",
                            pid.as_raw_nonzero()
                        );
                        TaskPhase::Over(unknown(why), ProcessesGone::NotToBeSeen)
                    }
                }
            }
            SpoolContents::NeverStarted | SpoolContents::Nothing if self.boot.is_owed(job) => {
                TaskPhase::Over(
                    unknown("the machine was started again before its end was known".to_owned()),
                    ProcessesGone::Yes,
                )
            }
            SpoolContents::NeverStarted | SpoolContents::Nothing => {
                self.unclaimed(job, matches!(found, SpoolContents::Nothing), stops, seen).await
            }
            SpoolContents::Claiming | SpoolContents::Lost => {
                self.lost(job, KILLED, stops, seen).await
            }
        }
    }

    async fn collect(&self, job: JobId, report: Box<Report>) -> Result<Box<Report>, NoRoom> {
        let mut pause = COLLECT_PAUSE;
        for _ in 0..COLLECT_TRIES {
            let (directory, blobs, copy) =
                (self.directory(job), self.blobs.clone(), report.clone());
            match self.blocking.run(move || collect::collect(copy, &directory, &blobs)).await {
                Ok(report) => return Ok(report),
                Err(error) => match NoRoom::to_keep(error) {
                    Ok(lack) => return Err(lack),
                    Err(error) => {
                        tracing::warn!(
                            %job, %error,
                            "failed to store the output of a job; trying again"
                        )
                    }
                },
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause *= 2,
                () = self.followed.detach.cancelled() => break,
            }
        }
        tracing::error!(%job, "failed to store the output of a job; its end is told without it");
        let (directory, told) = (self.directory(job), report.clone());
        Ok(self.blocking.run(move || collect::without_output(told, &directory)).await)
    }
}

fn never_started() -> TaskPhase {
    let why = "its wrapper ended before it started the command".to_owned();
    TaskPhase::Over(End::NotStarted { why, surroundings: true }, ProcessesGone::Yes)
}

/// The end that a report tells. Blocks for as long as it takes to look at what is left, if there is
/// anything.
fn over(report: Box<Report>) -> TaskPhase {
    let left = left::reported(&report);
    let gone = if report.left_running && !left.is_nothing() {
        left::spare(&left);
        ProcessesGone::NotToBeSeen
    } else if left::is_unseen(&report) {
        ProcessesGone::NotToBeSeen
    } else if left.is_nothing() {
        ProcessesGone::Yes
    } else {
        ProcessesGone::Not(left, None)
    };
    TaskPhase::Over(End::Reported(report), gone)
}

pub(super) fn unknown(why: String) -> End {
    End::Unknown { why, report: None }
}
