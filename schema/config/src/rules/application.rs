//! Rules of an application: its channels, their groups, and what a release waits for there.

use super::Rules;
use crate::precondition::{self, Precondition};
use crate::{Application, ChannelGroup, Constant, ConstantTemplate};

impl Rules<'_> {
    pub(super) fn application(&mut self, application: &Application, at: &str) {
        if self.is_whole
            && application.release_channels.is_empty()
            && application.release_channel_groups.is_empty()
        {
            self.add(at, format!("application `{}` has no release channels", application.name));
            self.help("add `releaseChannels: [{name: …, runtimes: [{runtime: …}]}]`");
        }
        let names = application.release_channels.iter().map(|channel| channel.name.as_str());
        self.unique(names, "release channel", |index| format!("{at}/releaseChannels/{index}/name"));
        for (index, channel) in application.release_channels.iter().enumerate() {
            let at = format!("{at}/releaseChannels/{index}");
            if self.is_whole && channel.runtimes.is_empty() {
                self.add(&at, "the channel has no runtime");
                self.help("name one under `runtimes`, as in `runtimes: [{runtime: my-runtime}]`");
            }
            let connections = channel.runtimes.iter().map(|entry| {
                entry.name.as_ref().map_or(entry.runtime.as_str(), |name| name.as_str())
            });
            self.unique(connections, "runtime connection", |index| {
                format!("{at}/runtimes/{index}")
            });
            self.channel(&channel.constants, &channel.preconditions, &at, false);
        }
        self.notifications(&application.notifications, &format!("{at}/notifications"));
        let names = application.release_channel_groups.iter().map(|group| group.name.as_str());
        self.unique(names, "release channel group", |index| {
            format!("{at}/releaseChannelGroups/{index}/name")
        });
        for (index, ChannelGroup { template, .. }) in
            application.release_channel_groups.iter().enumerate()
        {
            if let Some(template) = template {
                let at = format!("{at}/releaseChannelGroups/{index}/template");
                let constants = template.constants.iter().map(ConstantTemplate::as_written);
                let constants: Vec<_> = constants.collect();
                self.channel(&constants, &template.preconditions, &at, true);
            }
        }
    }

    fn channel(
        &mut self,
        constants: &[Constant],
        preconditions: &[Precondition],
        at: &str,
        is_template: bool,
    ) {
        self.constants(constants, at);
        for (place, what) in precondition::violations(preconditions, is_template) {
            self.add(format!("{at}/preconditions/{place}"), what);
        }
    }
}
