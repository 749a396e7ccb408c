//! The pure core: what a service instance should do next. No clock, randomness, IO, logging,
//! threads or async; ordered maps only, so the same inputs give the same bytes. Called by the
//! scheduler's driver and by the simulation in `tests/sim`; imports `schema` alone.
//!
//! ```text
//! step(state, event, now) -> (state, actions)      one instance: what to do
//! next_wake(state)        -> the instant at which Event::Tick would change something
//! Lanes                   -> over all instances: who may do it now
//! FleetBreaker            -> over those of one runtime: whether they fail together
//! explain(state, lanes)   -> why an instance stands where it stands, and what would move it
//! forecast(state, release) -> the same of a release that nobody has made yet
//! ```
//!
//! A step takes the time (`clock`), lets the event change facts (`step`, `finish`, `observe`,
//! `approve`), and settles what follows from all facts together: deadlines, expired approvals,
//! where the instance is (`converge`), what it wants a place for, and what is said of that
//! (`describe`, kept by `standing`). Where an instance with a fetch can be:
//!
//! ```text
//!   release ──> Unlooked ──fetch──> Converged <──────────────── fetch: nothing to do, from anywhere
//!                  │                    │ drift                  (three misses in a row: Unseen)
//!                  └───────fetch: work──┴──> gates in order:
//!                                            Unmet ────> Approval ─> WindowShut ─> Ready ──lane──> Applying
//!                                               │           └─no─> Rejected                          │
//!                                            Observing                                             ends
//!          ┌─────────────────────────────────────────────────────────────────────────────────────────┘
//!          ├─ well ────────────> Looking ──fetch: still work──> Grace ────────────┐
//!          ├─ retryable code ──> Retrying                       │ time            │ time, and a fetch
//!          ├─ never started ───> Misfired ──────────────────────┤                 │ that still sees work
//!          ├─ badly ───────────> ApplyFailed, ApplyUnknown ─────┴─────────────────┴──> gates again
//!          ├─ cancelled ───────> Cancelled ──a person──> gates again
//!          └─ not known to be gone: Unsettled ──the runner, or a person──> gates again
//! ```
//!
//! Where a watch tells how the world is, its words take the place of each fetch in this picture,
//! and no fetch is ever run: what was told before an apply was over counts for nothing after it. A
//! watch that is silent for too long is a fetch that did not answer.
//!
//! Drift that a person leaves as it is (Acknowledged) is work that nothing is done about until its
//! time has come, and told as Converged.
//!
//! A window that a person has lifted for the release is open until that ends; nothing else is.
//!
//! What a person wants to be observed only, or a daemon in observer mode, comes to Observing in the
//! place of every gate that asks people, and no further.
//!
//! Paused and Deleted take precedence over all of these but never end an apply; Pending and Broken
//! are what a structured fetch says of objects that run the right version. Without a fetch, a
//! release is work until its apply has succeeded.

pub mod action;
mod again;
mod anew;
mod approve;
pub mod breaker;
mod check;
mod clock;
mod clock_step;
mod converge;
mod describe;
mod desire;
pub mod desired;
mod drift;
mod duration;
pub mod event;
pub mod explain;
mod finish;
mod late;
pub mod limiter;
pub mod limits;
mod millis;
pub mod observation;
mod observe;
mod observed;
mod progress;
pub mod retry;
mod standing;
mod start;
pub mod state;
mod step;
pub mod view;
mod window_lift;

pub use anew::{Flying, Salvaged};
pub use converge::{SITUATIONS, situation};
pub use explain::{
    Forecast, PursuedVersion, Surroundings, brings_back, explain, forecast, names_together,
};
pub use progress::{GoBack, go_back_now};
pub use start::{Start, start_now, unbegun, void_start};
pub use state::{BrokenInvariant, State};
pub use step::{next_wake, step};
