//! Which channels one release has to go to because they wait for each other. Pure. Called by
//! `calls` and by `planner::gates`, for the commands that they suggest.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::ChannelName;

/// What each channel of an application waits for until it is stable, by its config. Empty where
/// nobody asked.
pub(super) type ConfiguredUpstream = BTreeMap<ChannelName, Vec<ChannelName>>;

/// What each channel waits for until it is stable.
pub(super) type Upstream<'a> = BTreeMap<&'a ChannelName, Vec<&'a ChannelName>>;

/// These channels, what they wait for, through others too, and those of `waiting` that wait for any
/// of them: a release to less than that leaves one at a version that another does not get. What is
/// waited for comes first.
pub(super) fn together<'a>(
    upstream: &Upstream<'a>,
    channels: impl IntoIterator<Item = &'a ChannelName>,
    waiting: &BTreeSet<&'a ChannelName>,
) -> Vec<&'a ChannelName> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    channels.into_iter().for_each(|channel| add(upstream, channel, &mut seen, &mut all));
    let waits_for_one = |channel: &&&ChannelName, all: &[&ChannelName]| {
        !all.contains(*channel)
            && upstream
                .get(**channel)
                .is_some_and(|first| first.iter().any(|name| all.contains(name)))
    };
    while let Some(channel) = waiting.iter().find(|channel| waits_for_one(channel, &all)) {
        add(upstream, channel, &mut seen, &mut all);
    }
    all
}

fn add<'a>(
    upstream: &Upstream<'a>,
    channel: &'a ChannelName,
    seen: &mut BTreeSet<&'a ChannelName>,
    all: &mut Vec<&'a ChannelName>,
) {
    // Also where the gates of several configs make a circle.
    if seen.insert(channel) {
        upstream
            .get(channel)
            .into_iter()
            .flatten()
            .for_each(|first| add(upstream, first, seen, all));
        all.push(channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_goes_to_the_whole_chain_and_to_whoever_waits_in_it() {
        let [dev, staging, eu, us] =
            ["dev", "staging", "eu", "us"].map(|name| name.parse::<ChannelName>().unwrap());
        let chain: Upstream<'_> =
            [(&staging, vec![&dev]), (&eu, vec![&staging]), (&us, vec![&staging])].into();
        let check = |from: &ChannelName, waiting: &[&ChannelName], expected: &[&str]| {
            let all = together(&chain, [from], &waiting.iter().copied().collect());
            assert_eq!(
                all.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
                expected,
                "{from}"
            );
        };
        check(&dev, &[], &["dev"]);
        check(&eu, &[], &["dev", "staging", "eu"]);
        check(&eu, &[&us], &["dev", "staging", "eu", "us"]);
        check(&dev, &[&us], &["dev"]);
        check(&dev, &[&staging, &us], &["dev", "staging", "us"]);
        let circle: Upstream<'_> = [(&dev, vec![&eu]), (&eu, vec![&dev])].into();
        assert_eq!(together(&circle, [&dev], &BTreeSet::new()), [&eu, &dev]);
    }
}
