//! Ids as people read them in tables and sentences: JSON, YAML, `-o wide` and `-o name` have them
//! whole.

pub use schema::short::id;
use schema::short::ids_in;

use crate::when;

/// A sentence of the scheduler's as people read it: ids in short, instants on their own clock.
pub fn sentence(text: &str) -> String {
    when::local_in(&ids_in(text))
}
