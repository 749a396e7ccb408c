//! Starts the real programs for the end-to-end tests and the benchmarks: a scheduler on a free port with a data
//! directory of its own, `pvnctl` against it, and waiting for a condition with a deadline.

pub mod files;
pub mod programs;
pub mod scheduler;
pub mod skip;
pub mod wait;
