//! The pure core: what a service instance should do next. No clock, randomness, IO, logging, threads or async; ordered
//! maps only, so the same inputs give the same bytes. Called by the scheduler's driver and by the simulation in
//! `tests/sim`; imports `schema` alone.
//!
//! ```text
//! step(state, event, now) -> (state, actions)
//! next_wake(state) -> the instant at which Event::Tick would change something
//! ```

pub mod action;
pub mod desired;
pub mod event;
