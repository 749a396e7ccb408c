//! The scheduler's parts in process: the store's contract, the driver with and without faults.

#![expect(
    clippy::unwrap_used,
    reason = "clippy knows test functions, not the helpers that they share"
)]

mod cluster;
mod delivery;
mod driver;
mod http;
mod local;
mod notifications;
mod retention;
mod store;
mod wait;
