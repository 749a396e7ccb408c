//! The targets of `wrapper/src/fuzz/targets.rs` and what they try, compiled once more for
//! libFuzzer: the wrapper itself is a program, which nothing can link.

#[path = "../../src/args/declared.rs"]
mod declared;
#[path = "../../src/fuzz/targets.rs"]
mod targets;

mod args {
    //! Under the name that it has in the wrapper.
    pub(crate) use crate::declared::{Input, Output};
}

/// `--in` and `--out`.
pub fn arguments(case: &[u8]) {
    targets::arguments(case);
}

/// Masking of secrets across read boundaries.
pub fn mask(case: &[u8]) {
    targets::mask(case);
}

/// What a killed wrapper left in its spool.
pub fn spool(case: &[u8]) {
    targets::spool(case);
}

/// The check of structured output.
pub fn structured(case: &[u8]) {
    targets::structured(case);
}
