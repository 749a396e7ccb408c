//! Values of parameters: as a release stores them, and as templates see them.

use std::collections::BTreeMap;

use schema::id::ChannelName;
use serde::{Deserialize, Serialize};

/// A secret value, never in clear.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretValue {
    /// A secret of the store.
    Stored {
        /// Its key.
        key: String,
        /// Its version; 0 is the latest.
        version: u64,
    },
    /// Sealed where it was given; opened by whoever sealed it, see [`Seal`].
    Sealed(String),
}

/// Seals a secret that a document or a person gave in clear. The same clear text always gives the same sealed text: the digest
/// of compiled commands tells whether anything changed.
pub trait Seal {
    /// The sealed text.
    fn seal(&self, clear: &str) -> String;
}

/// One value as a release stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Given {
    /// Of any type but `secret`: as it was written.
    Text(String),
    /// Of type `secret`.
    Secret(SecretValue),
}

/// The parameter values of one release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Values {
    /// For all channels.
    pub all: BTreeMap<String, Given>,
    /// For one channel each; these win.
    pub per_channel: BTreeMap<ChannelName, BTreeMap<String, Given>>,
}

impl Values {
    /// The value that a channel sees.
    pub fn get(&self, channel: Option<&ChannelName>, name: &str) -> Option<&Given> {
        let own = channel.and_then(|channel| self.per_channel.get(channel)).and_then(|values| values.get(name));
        own.or_else(|| self.all.get(name))
    }

    /// These values, and where they say nothing the earlier release's. A value given for all channels also takes the place of
    /// an earlier one for a single channel: who says `--param image=v2` means every channel.
    #[must_use]
    pub fn over(mut self, earlier: &Self) -> Self {
        for (channel, values) in &earlier.per_channel {
            let own = self.per_channel.entry(channel.clone()).or_default();
            for (name, value) in values {
                if !self.all.contains_key(name) {
                    own.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        for (name, value) in &earlier.all {
            self.all.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self.per_channel.retain(|_, values| !values.is_empty());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values as `a=1 production:a=2`.
    fn values(text: &str) -> Values {
        let mut values = Values::default();
        for (name, value) in text.split_whitespace().map(|pair| pair.split_once('=').unwrap()) {
            let value = Given::Text(value.to_owned());
            match name.split_once(':') {
                None => values.all.insert(name.to_owned(), value),
                Some((channel, name)) => values.per_channel.entry(channel.parse().unwrap()).or_default().insert(name.to_owned(), value),
            };
        }
        values
    }

    fn check(given: &str, earlier: &str, expected: &str) {
        assert_eq!(values(given).over(&values(earlier)), values(expected), "{given} over {earlier}");
    }

    #[test]
    fn values_not_given_are_those_of_the_last_release() {
        check("", "a=1 production:b=2", "a=1 production:b=2");
        check("a=2", "a=1 b=1", "a=2 b=1");
        check("production:a=2", "a=1", "a=1 production:a=2");
        check("production:a=3", "a=1 production:a=2 production:b=2", "a=1 production:a=3 production:b=2");
    }

    #[test]
    fn a_value_for_all_channels_takes_the_place_of_earlier_ones_for_single_channels() {
        check("a=3", "a=1 production:a=2", "a=3");
        check("a=3 production:a=4", "a=1 production:a=2", "a=3 production:a=4");
    }

    #[test]
    fn the_channels_own_value_wins() {
        let values = values("a=1 production:a=2");
        let production = "production".parse().unwrap();
        let staging = "staging".parse().unwrap();
        assert_eq!(values.get(Some(&production), "a"), Some(&Given::Text("2".to_owned())));
        assert_eq!(values.get(Some(&staging), "a"), Some(&Given::Text("1".to_owned())));
        assert_eq!(values.get(None, "a"), Some(&Given::Text("1".to_owned())));
    }
}
