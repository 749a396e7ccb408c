//! Values of parameters: as a release stores them, and as templates see them.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::ChannelName;
use serde::{Deserialize, Serialize};

/// A secret value, never in clear.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretValue {
    /// A secret of the store.
    Stored {
        key: String,
        /// Its version; 0 is the latest.
        version: u64,
    },
    /// Sealed where it was given; opened by whoever sealed it, see [`Seal`].
    Sealed(String),
}

/// Seals a secret that a document or a person gave in clear. The same clear text always gives the
/// same sealed text: the digest of compiled commands tells whether anything changed.
pub trait Seal {
    /// The sealed text.
    fn seal(&self, clear: &str) -> String;
}

/// One value as a release stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoredValue {
    /// Of any type but `secret`: as it was written.
    Text(String),
    /// Of type `secret`.
    Secret(SecretValue),
    /// None, for a channel that keeps what the definition says where others have a value.
    Default,
}

/// The parameter values of one release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Values {
    /// For all channels.
    pub all: BTreeMap<String, StoredValue>,
    /// For one channel each; these win.
    pub per_channel: BTreeMap<ChannelName, BTreeMap<String, StoredValue>>,
    /// Which of the latter nobody gave for that channel: it kept them, and they are of this
    /// version.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<ChannelName, BTreeMap<String, String>>,
    /// Where they come from a release that went back in some channels: what was given for all
    /// since. The rest is no word about the channels that did not go back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_back: Option<BTreeSet<String>>,
}

impl Values {
    /// The value that a channel sees; none where that is what the definition says.
    pub fn get(&self, channel: Option<&ChannelName>, name: &str) -> Option<&StoredValue> {
        let own = channel
            .and_then(|channel| self.per_channel.get(channel))
            .and_then(|values| values.get(name));
        own.or_else(|| self.all.get(name)).filter(|value| **value != StoredValue::Default)
    }

    /// The parameters for which a channel has a value here, or keeps to what the definition says.
    pub fn names(&self, channel: &ChannelName) -> impl Iterator<Item = &String> {
        self.all.keys().chain(self.per_channel.get(channel).into_iter().flat_map(BTreeMap::keys))
    }

    /// The version whose value a channel keeps, if it keeps one.
    pub fn kept_version(&self, channel: &ChannelName, name: &str) -> Option<&str> {
        self.kept.get(channel)?.get(name).map(String::as_str)
    }

    /// Whether somebody gave this value for this channel alone.
    pub fn is_given_for(&self, channel: &ChannelName, name: &str) -> bool {
        self.per_channel.get(channel).is_some_and(|own| own.contains_key(name))
            && self.kept_version(channel, name).is_none()
    }

    /// Takes away what a channel has of its own.
    pub fn forget(&mut self, channel: &ChannelName) {
        self.per_channel.remove(channel);
        self.kept.remove(channel);
    }

    /// Takes away what a channel keeps, but not what somebody gave for it.
    pub fn forget_kept(&mut self, channel: &ChannelName) {
        let kept = self.kept.remove(channel).unwrap_or_default();
        if let Some(own) = self.per_channel.get_mut(channel) {
            own.retain(|name, _| !kept.contains_key(name));
        }
    }

    /// Lets a channel keep a value where it would see another one; none is what the definition
    /// says. `version`: whose value it is; none where somebody gave it for this channel.
    pub fn keep(
        &mut self,
        channel: &ChannelName,
        name: &str,
        value: Option<&StoredValue>,
        version: Option<&str>,
    ) {
        if self.get(Some(channel), name) == value {
            return;
        }
        let value = value.cloned().unwrap_or(StoredValue::Default);
        self.per_channel.entry(channel.clone()).or_default().insert(name.to_owned(), value);
        let kept = self.kept.entry(channel.clone()).or_default();
        match version {
            Some(version) => _ = kept.insert(name.to_owned(), version.to_owned()),
            None => _ = kept.remove(name),
        }
        self.kept.retain(|_, versions| !versions.is_empty());
    }

    /// The parameters that two channels see differently, but for those that somebody gave for one
    /// of them.
    pub fn differ<'a>(&'a self, one: &ChannelName, other: &ChannelName) -> BTreeSet<&'a str> {
        let of = |channel| self.per_channel.get(channel).into_iter().flat_map(BTreeMap::keys);
        let names = of(one).chain(of(other)).map(String::as_str);
        let differs = |name: &&str| self.get(Some(one), name) != self.get(Some(other), name);
        names
            .filter(differs)
            .filter(|name| !self.is_given_for(one, name) && !self.is_given_for(other, name))
            .collect()
    }

    /// These values, and where they say nothing the earlier release's. A value given for all
    /// channels also takes the place of an earlier one for a single channel: who says `--param
    /// image=v2` means every channel to which the release goes (`goes_to`).
    #[must_use]
    pub fn over(mut self, earlier: &Self, goes_to: &BTreeSet<ChannelName>) -> Self {
        for (channel, versions) in &earlier.kept {
            let own = self.per_channel.get(channel);
            let stays = |name: &String| {
                !self.all.contains_key(name) && own.is_none_or(|own| !own.contains_key(name))
            };
            let stay = versions
                .iter()
                .filter(|(name, _)| stays(name))
                .map(|(name, version)| (name.clone(), version.clone()));
            self.kept.insert(channel.clone(), stay.collect());
        }
        self.kept.retain(|_, versions| !versions.is_empty());
        for (channel, values) in &earlier.per_channel {
            let own = self.per_channel.entry(channel.clone()).or_default();
            for (name, value) in values {
                let is_elsewhere =
                    !goes_to.contains(channel) && earlier.is_given_for(channel, name);
                if is_elsewhere || !self.all.contains_key(name) {
                    own.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        self.since_back = earlier
            .since_back
            .as_ref()
            .map(|since| since.iter().chain(self.all.keys()).cloned().collect());
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

    /// Values as `a=1 production:a=2 production:b=3<web-2`, the last of which is kept; `-` is what
    /// the definition says.
    fn values(text: &str) -> Values {
        let mut values = Values::default();
        for (name, value) in text.split_whitespace().map(|pair| pair.split_once('=').unwrap()) {
            let (value, version) = value
                .split_once('<')
                .map_or((value, None), |(value, version)| (value, Some(version)));
            if let (Some((channel, name)), Some(version)) = (name.split_once(':'), version) {
                values
                    .kept
                    .entry(channel.parse().unwrap())
                    .or_default()
                    .insert(name.to_owned(), version.to_owned());
            }
            let value = if value == "-" {
                StoredValue::Default
            } else {
                StoredValue::Text(value.to_owned())
            };
            match name.split_once(':') {
                None => values.all.insert(name.to_owned(), value),
                Some((channel, name)) => values
                    .per_channel
                    .entry(channel.parse().unwrap())
                    .or_default()
                    .insert(name.to_owned(), value),
            };
        }
        values
    }

    fn check(given: &str, earlier: &str, expected: &str) {
        check_only("production staging", given, earlier, expected);
    }

    fn check_only(goes_to: &str, given: &str, earlier: &str, expected: &str) {
        let goes_to = goes_to.split_whitespace().map(|name| name.parse().unwrap()).collect();
        assert_eq!(
            values(given).over(&values(earlier), &goes_to),
            values(expected),
            "{given} over {earlier}"
        );
    }

    #[test]
    fn values_not_given_are_those_of_the_last_release() {
        check("", "a=1 production:b=2", "a=1 production:b=2");
        check("a=2", "a=1 b=1", "a=2 b=1");
        check("production:a=2", "a=1", "a=1 production:a=2");
        check(
            "production:a=3",
            "a=1 production:a=2 production:b=2",
            "a=1 production:a=3 production:b=2",
        );
    }

    #[test]
    fn a_value_for_all_channels_takes_the_place_of_earlier_ones_for_single_channels() {
        check("a=3", "a=1 production:a=2", "a=3");
        check("a=3 production:a=4", "a=1 production:a=2", "a=3 production:a=4");
    }

    #[test]
    fn a_release_of_some_channels_leaves_the_others_their_own_values() {
        check_only("staging", "a=3", "a=1 production:a=2 staging:a=4", "a=3 production:a=2");
        check_only("staging", "a=3", "a=1 production:a=2<web-2", "a=3");
    }

    #[test]
    fn a_value_that_a_channel_keeps_is_known_as_such_until_one_is_given() {
        check("", "a=1 production:a=2<web-2", "a=1 production:a=2<web-2");
        check("b=1", "a=1 production:a=2<web-2", "a=1 b=1 production:a=2<web-2");
        check("a=3", "a=1 production:a=2<web-2 production:b=2<web-2", "a=3 production:b=2<web-2");
        check("production:a=3", "a=1 production:a=2<web-2", "a=1 production:a=3");
        check("staging:a=3", "a=1 production:a=2<web-2", "a=1 production:a=2<web-2 staging:a=3");
        check("", "a=1 production:a=-<web-2", "a=1 production:a=-<web-2");
        check("a=3", "a=1 production:a=-<web-2", "a=3");
    }

    #[test]
    fn a_channel_keeps_a_value_only_where_it_would_see_another_one() {
        let keep = |before: &str, name: &str, value: &str, version, after: &str| {
            let mut kept = values(before);
            let value = (value != "-").then(|| StoredValue::Text(value.to_owned()));
            kept.keep(&"production".parse().unwrap(), name, value.as_ref(), version);
            assert_eq!(kept, values(after), "{before} and {name}={value:?}");
        };
        keep("a=1", "a", "1", Some("web-2"), "a=1");
        keep("a=1", "a", "2", Some("web-2"), "a=1 production:a=2<web-2");
        keep("a=1", "b", "2", Some("web-2"), "a=1 production:b=2<web-2");
        keep("a=1", "a", "-", Some("web-2"), "a=1 production:a=-<web-2");
        keep("a=1", "b", "-", Some("web-2"), "a=1");
        keep("a=1 production:a=-<web-2", "a", "1", Some("web-3"), "a=1 production:a=1<web-3");
        keep("a=1", "a", "2", None, "a=1 production:a=2");
        keep("a=1 production:a=2<web-2", "a", "3", Some("web-3"), "a=1 production:a=3<web-3");
        keep("a=1 production:a=2<web-2", "a", "3", None, "a=1 production:a=3");
        keep("a=1 production:a=2", "a", "3", Some("web-3"), "a=1 production:a=3<web-3");
    }

    #[test]
    fn channels_differ_in_what_nobody_gave_for_one_of_them() {
        let differ = |text: &str| {
            let values = values(text);
            let names = values.differ(&"production".parse().unwrap(), &"staging".parse().unwrap());
            names.into_iter().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(differ("a=1 b=1"), "");
        assert_eq!(differ("a=1 production:a=2<web-2"), "a");
        assert_eq!(differ("a=1 production:a=-<web-2"), "a");
        assert_eq!(differ("a=1 staging:a=2<web-2 staging:b=1<web-2"), "a b");
        assert_eq!(differ("a=1 production:a=2 staging:b=1"), "");
        assert_eq!(differ("a=1 production:a=2<web-2 staging:a=3"), "");
        assert_eq!(differ("a=1 production:a=2<web-2 staging:a=2<web-2"), "");
    }

    #[test]
    fn the_channels_own_value_wins() {
        let values = values("a=1 production:a=2");
        let production = "production".parse().unwrap();
        let staging = "staging".parse().unwrap();
        assert_eq!(values.get(Some(&production), "a"), Some(&StoredValue::Text("2".to_owned())));
        assert_eq!(values.get(Some(&staging), "a"), Some(&StoredValue::Text("1".to_owned())));
        assert_eq!(values.get(None, "a"), Some(&StoredValue::Text("1".to_owned())));
        assert_eq!(self::values("a=1 production:a=-<web-2").get(Some(&production), "a"), None);
    }
}
