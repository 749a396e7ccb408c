//! Starts the real programs for the end-to-end tests and the benchmarks: a scheduler on a free port
//! with a data directory of its own, `pvnctl` against it, `dev` over a copy of an example, and
//! waiting for a condition with a deadline.

mod applying;
pub mod browser;
pub mod clock;
#[path = "../cluster/lib.rs"]
pub mod cluster;
pub mod copy;
pub mod cpu;
pub mod dev;
pub mod dice;
pub mod disk;
pub mod example;
pub mod files;
pub mod http;
pub mod listener;
pub mod open_page;
pub mod person;
pub mod poison;
pub mod port;
pub mod programs;
pub mod reader;
pub mod scale;
pub mod scheduler;
pub mod skip;
pub mod spool;
pub mod terminal;
pub mod wait;
