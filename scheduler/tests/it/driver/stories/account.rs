//! What a channel may have, kept beside the driver.

use super::*;

impl Account {
    pub(super) fn is_left(&self, channel: &str, size: &str) -> bool {
        self.left.get(channel).is_some_and(|left| left.contains(size))
    }

    /// A new release. `named`: the sizes that people gave with it. `begun`: what began to be
    /// applied where.
    pub(super) fn hear(
        &mut self,
        release: &Made,
        named: &BTreeSet<String>,
        begun: &BTreeSet<(String, String)>,
    ) -> Result<(), String> {
        let version = &release.row.version;
        for channel in &release.channels {
            let (size, channel) = (release.size(channel), channel.as_str());
            let said = self.went.entry(channel.to_owned()).or_default();
            let number = said
                .iter()
                .find(|went| went.version == *version)
                .map_or(release.row.number, |went| went.number);
            self.before_back.remove(channel);
            if release.row.rolled_back_to.is_some() {
                let before =
                    (self.left.get(channel).cloned().unwrap_or_default(), self.own.clone());
                self.before_back.insert(channel.to_owned(), before);
                let left = self.left.entry(channel.to_owned()).or_default();
                let stays = |size: &String| {
                    said.iter().any(|went| went.number <= number && went.size == *size)
                };
                let later = said.iter().filter(|went| went.number > number).map(|went| &went.size);
                left.extend(later.filter(|size| !stays(size)).cloned());
                left.remove(&size);
                self.own.insert((channel.to_owned(), size.clone()));
            } else if named.contains(&size) {
                self.left.entry(channel.to_owned()).or_default().remove(&size);
            } else {
                let elsewhere =
                    CHANNELS.iter().find(|other| **other != channel && self.is_left(other, &size));
                if self.is_left(channel, &size) {
                    return Err(format!(
                        "{version} brings {size} to {channel}, where it was taken back, and \
                         nobody named it"
                    ));
                }
                let all_begun = begun
                    .iter()
                    .filter(|(here, begun)| here == channel && !self.is_left(channel, begun));
                if let Some(has) = all_begun
                    .map(|(_, begun)| begun)
                    .max_by_key(|begun| age(begun))
                    .filter(|has| age(has) > age(&size))
                {
                    return Err(format!(
                        "{version} takes {channel} back from {has} to {size}, and nobody said so"
                    ));
                }
                let it = (channel.to_owned(), size.clone());
                if let Some(other) =
                    elsewhere.filter(|_| !begun.contains(&it) && !self.own.contains(&it))
                {
                    return Err(format!(
                        "{version} brings {size} to {channel}, which only waited for it when \
                         {other} took it back"
                    ));
                }
            }
            self.went.entry(channel.to_owned()).or_default().push(Went {
                number,
                version: version.clone(),
                size,
            });
        }
        self.releases = release.row.number;
        Ok(())
    }

    /// Somebody says no to what the channel was asked last. Where that was to go back, nothing was
    /// taken back.
    pub(super) fn hear_no(&mut self, channel: &str) {
        if let Some((left, own)) = self.before_back.remove(channel) {
            self.left.insert(channel.to_owned(), left);
            self.own.retain(|(other, size)| {
                other != channel || own.contains(&(other.clone(), size.clone()))
            });
        }
    }

    /// The jobs that were started since.
    pub(super) fn see(&mut self, seen: &[JobSpec]) -> Result<(), String> {
        for spec in &seen[self.jobs..] {
            let (channel, size) =
                (variable(spec, "PVN_RELEASE_CHANNEL"), spec.command.argv.last().unwrap());
            if spec.kind == JobKind::Apply && self.is_left(&channel, size) {
                return Err(format!("{channel} applies {size}, which was taken back there"));
            }
        }
        self.jobs = seen.len();
        Ok(())
    }
}
