//! The real binary around small real children. Each test names the rule that it shows; every run ends with the common
//! assertions of [`run::Run`]: one report, sizes and digests that agree with the bytes, nothing left behind.

#![expect(clippy::unwrap_used, reason = "clippy knows test functions, not the helpers that they share")]

mod exit;
mod inherit;
mod job;
mod leftovers;
mod outputs;
mod run;
mod signals;
mod streams;
mod structured;
