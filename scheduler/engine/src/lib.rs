//! The pure core: what a service instance should do next. No clock, randomness, IO, logging, threads or async; ordered
//! maps only, so the same inputs give the same bytes. Called by the scheduler's driver and by the simulation in
//! `tests/sim`; imports `schema` alone.
//!
//! ```text
//! step(state, event, now) -> (state, actions)      one instance: what to do
//! next_wake(state)        -> the instant at which Event::Tick would change something
//! Lanes                   -> over all instances: who may do it now
//! explain(state, lanes)   -> why an instance stands where it stands, and what would move it
//! ```

pub mod action;
mod approve;
mod clock;
mod converge;
pub mod desired;
pub mod event;
pub mod explain;
mod finish;
pub mod lanes;
pub mod limits;
mod observed;
pub mod retry;
mod standing;
pub mod state;
mod step;
pub mod view;

pub use explain::explain;
pub use state::State;
pub use step::{next_wake, step};
