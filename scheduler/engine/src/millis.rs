//! Spans of time as whole milliseconds, which is how rows have them. For `#[serde(with = …)]`.
//!
//! Rows may hold any integer. One below zero is no time at all; and where no time at all would make
//! something go round without a pause (`positive`), it is a millisecond.

use std::time::Duration;

use schema::time::millis;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

fn read(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn read_positive(millis: i64) -> Duration {
    read(millis.max(1))
}

fn written(span: &Duration) -> i64 {
    millis(*span)
}

pub(crate) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    written(span).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    i64::deserialize(deserializer).map(read)
}

pub(crate) mod positive {
    pub(crate) use super::serialize;
    use super::{Deserialize, Deserializer, Duration, read_positive};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        i64::deserialize(deserializer).map(read_positive)
    }
}

pub(crate) mod maybe {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, read, written};

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        span.as_ref().map(written).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(read))
    }
}

pub(crate) mod maybe_positive {
    pub(crate) use super::maybe::serialize;
    use super::{Deserialize, Deserializer, Duration, read_positive};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(read_positive))
    }
}
