//! What the reader of the pipes and the courier share: how far each stream may be read, and where.
//! Called by `store`, which tells what grew; by `courier`, which waits for it; by `deliver`, which
//! tells the end.
//!
//! What always holds: the lock is held for a copy of at most one read, never for a file, a socket
//! or a wait, so that a slow scheduler costs the command nothing; what is `ready` never changes any
//! more, which is why beyond the cap's head nothing is told before the end.

use std::fmt;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schema::spool::{LIVE_AFTER_MS, Stream};
use schema::wire::PIECE_LIMIT_BYTES;

use crate::last::Last;

/// Shortest time between two pieces of a stream while the command runs, so that a command which
/// logs line by line does not cost a request a line; below what a person watching notices.
const BATCH: Duration = Duration::from_millis(100);

/// What both sides see.
#[derive(Default)]
pub(crate) struct Live {
    state: Mutex<LiveState>,
    changed: Condvar,
}

#[derive(Default)]
struct LiveState {
    streams: [Growing; 2],
    /// Set when the command has ended: until when delivering is tried.
    deadline: Option<Instant>,
    last: Option<Box<Last>>,
    /// Somebody told that the job is over: why.
    over: Option<String>,
    failing: Option<String>,
    /// When the scheduler last answered as it should.
    heard_at: Option<Instant>,
    cancelled: bool,
    /// Whether no more signs of life are wanted.
    silent: bool,
    /// Whether somebody sleeps on `changed`: waking nobody costs nothing.
    sleepers: u32,
}

#[derive(Default)]
struct Growing {
    source: LiveSource,
    ready: u64,
    /// Whether a piece was handed out, so that the scheduler may have some of it.
    attempted: bool,
    sent_at: Option<Instant>,
}

/// Where what is ready can be read.
#[derive(Clone, Default)]
enum LiveSource {
    #[default]
    Nowhere,
    File(Arc<File>),
    /// No disk: the head alone.
    Memory(Vec<u8>),
}

/// Bytes to send.
pub(crate) enum PendingBytes {
    File(Arc<File>),
    Memory(Vec<u8>),
}

/// A piece of a stream, ready to be sent.
pub(crate) struct StreamPiece {
    pub(crate) stream: Stream,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) bytes: PendingBytes,
}

/// What the courier is to do next.
pub(crate) enum NextAction {
    Send(StreamPiece),
    /// The command has ended: [`Live::last`] has the rest.
    Ended,
    /// The job is over.
    Over(String),
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, LiveState> {
        // A panic elsewhere leaves numbers behind that are right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, LiveState>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, LiveState> {
        state.sleepers += 1;
        let mut state = match until {
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.sleepers -= 1;
        state
    }

    fn wake(&self, state: &LiveState) {
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// `ready` bytes of the stream are in this file, from its beginning.
    pub(crate) fn in_file(&self, stream: Stream, file: File, ready: u64) {
        let mut state = self.lock();
        state.streams[stream as usize].source = LiveSource::File(Arc::new(file));
        state.streams[stream as usize].ready = ready;
        self.wake(&state);
    }

    /// The file has so many bytes that stay as they are.
    pub(crate) fn grew(&self, stream: Stream, ready: u64) {
        let mut state = self.lock();
        let growing = &mut state.streams[stream as usize];
        if ready > growing.ready {
            growing.ready = ready;
            self.wake(&state);
        }
    }

    /// The next bytes of a stream for which there is no file. The caller sees to their number.
    pub(crate) fn in_memory(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.lock();
        let growing = &mut state.streams[stream as usize];
        match &mut growing.source {
            LiveSource::Memory(held) => held.extend_from_slice(bytes),
            _ => growing.source = LiveSource::Memory(bytes.to_owned()),
        }
        growing.ready += bytes.len() as u64;
        self.wake(&state);
    }

    /// Waits until a piece is to be sent that follows what the scheduler has, or until the end.
    pub(crate) fn next(&self, acknowledged: [u64; 2]) -> NextAction {
        let mut state = self.lock();
        loop {
            if let Some(why) = &state.over {
                return NextAction::Over(why.clone());
            }
            if state.deadline.is_some() {
                return NextAction::Ended;
            }
            let now = Instant::now();
            let mut soonest: Option<Instant> = None;
            for stream in Stream::ALL {
                let growing = &mut state.streams[stream as usize];
                let offset = acknowledged[stream as usize];
                let waiting = growing.ready.saturating_sub(offset);
                if waiting == 0 {
                    continue;
                }
                let due = growing.sent_at.map_or(now, |at| at + BATCH);
                if waiting < PIECE_LIMIT_BYTES as u64 && due > now {
                    soonest = Some(soonest.map_or(due, |at| at.min(due)));
                    continue;
                }
                if let Some(piece) = growing.piece(stream, offset, waiting) {
                    growing.attempted = true;
                    growing.sent_at = Some(now);
                    return NextAction::Send(piece);
                }
            }
            state = self.sleep(state, soonest);
        }
    }

    /// Waits until the run is old enough for somebody to watch it; false when it ended sooner.
    pub(crate) fn is_long(&self) -> bool {
        let until = Instant::now() + Duration::from_millis(LIVE_AFTER_MS);
        let mut state = self.lock();
        while state.over.is_none() && state.deadline.is_none() && Instant::now() < until {
            state = self.sleep(state, Some(until));
        }
        state.deadline.is_none()
    }

    /// Waits between two signs of life; false when no more are wanted.
    pub(crate) fn beat(&self, every: Duration) -> bool {
        let until = Instant::now() + every;
        let mut state = self.lock();
        let is_wanted = |state: &LiveState| state.over.is_none() && !state.silent;
        while is_wanted(&state) && Instant::now() < until {
            state = self.sleep(state, Some(until));
        }
        is_wanted(&state)
    }

    /// What is to be known of the run lies where it is looked for by whoever hears nothing any
    /// more. Where signs of life get through and a report does not, as behind a gateway that
    /// takes one method and not the other, they would say that all is well.
    pub(crate) fn fall_silent(&self) {
        let mut state = self.lock();
        state.silent = true;
        self.wake(&state);
    }

    /// Waits before another try, at most until delivering is no longer tried; `cut_short`: not
    /// beyond the end of the command, after which people wait. False when there is no other
    /// try.
    pub(crate) fn back_off(&self, wait: Duration, cut_short: bool, why: &str) -> bool {
        let until = Instant::now() + wait;
        let mut state = self.lock();
        state.failing = Some(why.to_owned());
        let running = state.deadline.is_none();
        loop {
            let now = Instant::now();
            if state.over.is_some() || state.deadline.is_some_and(|deadline| now >= deadline) {
                return false;
            }
            if now >= until || (cut_short && running && state.deadline.is_some()) {
                return true;
            }
            let at = state.deadline.map_or(until, |deadline| deadline.min(until));
            state = self.sleep(state, Some(at));
        }
    }

    /// The scheduler answered as it should.
    pub(crate) fn succeeded(&self) {
        let mut state = self.lock();
        state.failing = None;
        state.heard_at = Some(Instant::now());
    }

    /// Why delivering fails, if it does.
    pub(crate) fn failing(&self) -> Option<String> {
        self.lock().failing.clone()
    }

    /// When the scheduler last answered as it should.
    pub(crate) fn heard_at(&self) -> Option<Instant> {
        self.lock().heard_at
    }

    /// The scheduler says that the command is to be stopped: true the first time while it runs.
    pub(crate) fn cancel(&self) -> bool {
        let mut state = self.lock();
        let first = !state.cancelled && state.deadline.is_none();
        state.cancelled = true;
        first
    }

    /// Whether the scheduler said so.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Whether the command still runs.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().deadline.is_none()
    }

    /// The job is over: nothing more is sent.
    pub(crate) fn over(&self, why: &str) {
        let mut state = self.lock();
        state.over.get_or_insert_with(|| why.to_owned());
        self.wake(&state);
    }

    /// Why the job is over, if it is.
    pub(crate) fn is_over(&self) -> Option<String> {
        self.lock().over.clone()
    }

    /// The command has ended; until `deadline` delivering is tried. Says of which streams the
    /// scheduler may have some.
    pub(crate) fn end(&self, deadline: Instant) -> [bool; 2] {
        let mut state = self.lock();
        state.deadline = Some(deadline);
        self.wake(&state);
        state.streams.each_ref().map(|growing| growing.attempted)
    }

    /// Delivering is tried until then at most.
    pub(crate) fn hurry(&self, deadline: Instant) {
        let mut state = self.lock();
        state.deadline = state.deadline.map(|known| known.min(deadline));
        self.wake(&state);
    }

    /// Until when delivering is tried, once the command has ended.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline
    }

    /// All that is left to be delivered.
    pub(crate) fn finish(&self, last: Last) {
        let mut state = self.lock();
        state.last = Some(Box::new(last));
        self.wake(&state);
    }

    /// Waits for what [`Self::finish`] brings.
    pub(crate) fn last(&self) -> Box<Last> {
        let mut state = self.lock();
        loop {
            if let Some(last) = state.last.take() {
                return last;
            }
            state = self.sleep(state, None);
        }
    }
}

impl Growing {
    fn piece(&self, stream: Stream, offset: u64, waiting: u64) -> Option<StreamPiece> {
        let length = waiting.min(PIECE_LIMIT_BYTES as u64);
        let bytes = match &self.source {
            LiveSource::Nowhere => return None,
            LiveSource::File(file) => PendingBytes::File(Arc::clone(file)),
            LiveSource::Memory(held) => {
                let from = usize::try_from(offset).ok()?;
                PendingBytes::Memory(
                    held.get(from..from + usize::try_from(length).ok()?)?.to_owned(),
                )
            }
        };
        Some(StreamPiece { stream, offset, length, bytes })
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Live")
    }
}

#[cfg(test)]
mod tests;
