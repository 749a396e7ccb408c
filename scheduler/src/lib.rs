//! The daemon `pvn-scheduler`. `daemon` builds the parts; see ARCHITECTURE.md for who may import whom.

pub mod compile;
pub mod driver;
pub mod runner;
