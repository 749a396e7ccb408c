//! The rules of docs/convergence.md, each by a test that names it, told as short scenarios.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod apply_alone;
mod begun;
mod clocks;
mod destroys;
mod drift;
mod failed_objects;
mod failing_fetch;
mod foretold;
mod fresh_after;
mod in_words;
mod only_observed;
mod outdated;
mod progress;
mod refused;
mod regate;
mod rule_08;
mod rule_18;
mod rule_20;
mod rules_01_to_06;
mod rules_07_to_11;
mod rules_12_to_17;
mod scenario;
mod shares;
mod size;
mod uses;
mod waits_for;
mod watched;
mod window_lift;
mod without_effect;
