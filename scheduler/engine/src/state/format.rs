//! Which encoding a stored state has. A state is stored as JSON; fields that a later version adds
//! have defaults, and what an older version cannot understand gets a higher number here, so that it
//! breaks that instance only, and says why.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The encoding that this version writes, and the highest that it reads.
pub const FORMAT: u32 = 1;

/// Written with every state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StateFormat;

impl Serialize for StateFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(FORMAT)
    }
}

impl<'de> Deserialize<'de> for StateFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            1..=1 => Ok(Self),
            other => Err(D::Error::custom(format!(
                "it was written by another version of pvn (format {other}; this one reads \
                 {FORMAT})"
            ))),
        }
    }
}
