//! Hands a run over to its scheduler over HTTP: streams while it runs, then what is left, the files
//! and the report. Called by `main`; [`schema::wire`] has the words, docs/api.md the protocol.
//!
//! ```text
//! main thread     Spool::make ─ start the command ─ start ─ supervise ────────────── finish: wait ─ exit
//!                                                     │      │ store tells Live        │ Last
//! courier thread                                      └──────┴ PATCH ─ PATCH ─ … ──────┴ PATCH ─ PUT files ─ PUT report
//! heart thread                                           └ POST heartbeat, every 5 s
//! ```
//!
//! What always holds: no socket, certificate or thread is touched before the command runs (inputs
//! over HTTP excepted, by need); the threads never hold anything that the reader of the pipes waits
//! for; the wrapper ends when the time for delivering is over, whatever the threads do.

pub(crate) mod backoff;
pub(crate) mod client;
pub(crate) mod courier;
pub(crate) mod heart;
mod progress;
pub(crate) mod spool;
pub(crate) mod target;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use schema::wire::REPORT_LINE_AFTER_MS;

use self::client::JobClient;
use self::courier::DeliveryOutcome;
use self::spool::Spool;
use self::target::DeliveryTarget;
use crate::last::Last;
use crate::live::Live;
use crate::thread_result::ThreadResult;

/// Stack of a thread of ours: a TLS handshake needs a quarter of it.
pub(crate) const STACK_BYTES: usize = 1 << 20;

/// How long delivering goes on after somebody asked us to stop: what is left of a Pod's usual 30 s
/// goes by here, and whoever waits at a terminal does not wait for the whole of `--deliver-for`.
const STOPPED_FOR: Duration = Duration::from_secs(25);

/// After this long without success what is in the spool is synced to the disk: before, it is likely
/// to be removed at once.
const SYNC_AFTER: Duration = Duration::from_millis(200);

/// How long the courier may take to notice that its time is over before it is left behind.
const SLACK: Duration = Duration::from_secs(1);

/// The threads, and what they share with us.
pub(crate) struct DeliveryThreads {
    pub(crate) target: DeliveryTarget,
    pub(crate) live: Arc<Live>,
    done: Arc<ThreadResult<DeliveryOutcome>>,
    started: bool,
    resumed: bool,
}

/// How to wait for the end of a delivery.
pub(crate) struct DeliveryWait<'a> {
    /// Where what is not delivered is kept.
    pub(crate) spool: Option<&'a Spool>,
    /// How long delivering goes on after TERM or INT.
    pub(crate) stopped_for: Duration,
    /// Called once when it failed for so long that the report is to leave in another way.
    pub(crate) last_words: &'a dyn Fn(),
}

impl<'a> DeliveryWait<'a> {
    pub(crate) fn of_a_run(spool: Option<&'a Spool>, last_words: &'a dyn Fn()) -> Self {
        Self { spool, stopped_for: STOPPED_FOR, last_words }
    }
}

impl DeliveryThreads {
    /// Nothing is done yet.
    pub(crate) fn new(target: DeliveryTarget) -> Self {
        Self {
            target,
            live: Arc::default(),
            done: ThreadResult::new(),
            started: false,
            resumed: false,
        }
    }

    /// Of a run of which another process may have delivered a part.
    pub(crate) fn resumed(target: DeliveryTarget) -> Self {
        Self { resumed: true, ..Self::new(target) }
    }

    /// A client of the target; an answer that says so asks the command to stop.
    pub(crate) fn client(target: &DeliveryTarget, live: &Arc<Live>) -> JobClient {
        let live = Arc::clone(live);
        let stop = move || {
            if live.cancel() {
                // To ourselves: it is taken in like any other TERM, by the only one who signals the
                // command.
                let _ = kill_process(getpid(), Signal::TERM);
            }
        };
        JobClient::new(target, Box::new(stop))
    }

    /// Starts the threads, if it can be and they are not; [`Self::finish`] tries again.
    pub(crate) fn start(&mut self) {
        if self.started {
            return;
        }
        let carry = self.carry();
        self.start_with(carry);
    }

    /// What the courier does.
    fn carry(&self) -> impl FnOnce() -> DeliveryOutcome + Send + 'static {
        let (target, live, resumed) = (self.target.clone(), Arc::clone(&self.live), self.resumed);
        move || {
            let client = Arc::new(Self::client(&target, &live));
            courier::run(&client, &live, resumed)
        }
    }

    fn start_with(&mut self, carry: impl FnOnce() -> DeliveryOutcome + Send + 'static) {
        let done = Arc::clone(&self.done);
        let courier = move || {
            done.of(carry, || {
                DeliveryOutcome::GaveUp(
                    "a fault of the wrapper's own ended the delivery".to_owned(),
                )
            })
        };
        // It ends with the process; nothing waits for it.
        self.started = std::thread::Builder::new()
            .name("courier".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(courier)
            .is_ok();
    }

    /// The command has ended: for so long delivering is tried. Says of which streams the scheduler
    /// may have some.
    pub(crate) fn ended(&self, deliver_for: Duration) -> [bool; 2] {
        let now = Instant::now();
        self.live
            .end(now.checked_add(deliver_for).unwrap_or(now + Duration::from_secs(365 * 24 * 3600)))
    }

    /// Delivers what is left, and waits for it.
    pub(crate) fn finish(mut self, last: Last, patience: &DeliveryWait<'_>) -> DeliveryOutcome {
        if !self.started {
            self.start();
        }
        if !self.started {
            // No thread to be had: then we do it ourselves, deaf to signals.
            self.live.finish(last);
            return self.carry()();
        }
        self.live.finish(last);
        self.wait(patience)
    }

    fn wait(&self, patience: &DeliveryWait<'_>) -> DeliveryOutcome {
        let began = Instant::now();
        let line_after = Duration::from_millis(REPORT_LINE_AFTER_MS);
        let signals = crate::signals::descriptor().ok();
        let (mut synced, mut spoken) = (false, false);
        loop {
            if let Some(outcome) = self.done.take() {
                if !spoken && matches!(outcome, DeliveryOutcome::GaveUp(_)) {
                    (patience.last_words)();
                }
                return outcome;
            }
            let now = Instant::now();
            let deadline = self.live.deadline().unwrap_or(now);
            if now >= deadline + SLACK {
                if !spoken {
                    (patience.last_words)();
                }
                let was_heard = self.live.heard_at().is_some_and(|heard| heard >= began);
                let why = if was_heard {
                    "it takes longer than `--deliver-for`"
                } else {
                    "the scheduler does not answer"
                };
                return DeliveryOutcome::GaveUp(
                    self.live.failing().unwrap_or_else(|| why.to_owned()),
                );
            }
            let speak_at =
                self.live.heard_at().map_or(began, |heard| heard.max(began)) + line_after;
            if !spoken && now >= speak_at {
                (patience.last_words)();
                self.live.fall_silent();
                spoken = true;
            }
            if !synced && now >= began + SYNC_AFTER {
                // Where it cannot be, it is kept as well as it can be.
                let _ = patience.spool.map(Spool::sync);
                synced = true;
            }
            let next = [
                (!synced).then_some(began + SYNC_AFTER),
                (!spoken).then_some(speak_at),
                Some(deadline + SLACK),
            ];
            let until = next
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(deadline)
                .max(now + Duration::from_millis(1));
            if self.done.sleep(signals.as_ref(), until.saturating_duration_since(Instant::now())) {
                if !spoken {
                    (patience.last_words)();
                    spoken = true;
                }
                self.live.hurry(Instant::now() + patience.stopped_for);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use schema::report::Report;

    use super::*;
    use crate::last::LastBytes;

    #[test]
    fn a_panic_of_the_courier_is_a_delivery_that_gave_up_and_the_report_leaves_by_the_line() {
        let target =
            DeliveryTarget::of("http://127.0.0.1:1", "job-1", &[("PVN_TOKEN".into(), "t".into())])
                .unwrap();
        let mut delivery = DeliveryThreads::new(target);
        delivery.start_with(|| panic!("as a fault of our own would"));
        delivery.ended(Duration::from_secs(3600));
        let nothing = || (LastBytes::Memory(Vec::new()), 0);
        let last = Last::new(Report::default(), [nothing(), nothing()], [false; 2], Vec::new());
        let spoken = Cell::new(0);
        let last_words = || spoken.set(spoken.get() + 1);
        let outcome = delivery.finish(last, &DeliveryWait::of_a_run(None, &last_words));
        assert!(
            matches!(&outcome, DeliveryOutcome::GaveUp(why) if why.contains("fault")),
            "{outcome:?}"
        );
        assert_eq!(spoken.get(), 1);
    }
}
