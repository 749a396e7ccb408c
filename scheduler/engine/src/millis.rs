//! A span of time as whole milliseconds, which is how rows have it. For `#[serde(with = …)]`.
//!
//! Rows may hold any integer: one below zero is no time at all.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

fn of(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn written(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    written(*span).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    i64::deserialize(deserializer).map(of)
}
