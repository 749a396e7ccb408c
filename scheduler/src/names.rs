//! What a service instance is called, for people and for commands.

use schema::id::{
    ApplicationId, ApplicationName, ChannelId, ChannelName, InstanceId, ServiceId, ServiceName,
};

/// The names and ids of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceNames {
    pub application: (ApplicationId, ApplicationName),
    pub service: (ServiceId, ServiceName),
    pub channel: (ChannelId, ChannelName),
}

impl InstanceNames {
    pub fn instance(&self) -> InstanceId {
        InstanceId::of(self.service.0, self.channel.0)
    }

    /// `application/service in channel`, for messages.
    pub fn label(&self) -> String {
        format!("{}/{} in {}", self.application.1, self.service.1, self.channel.1)
    }

    /// `SERVICE --app APPLICATION --channel CHANNEL`: the words that name it in a command of
    /// `pvnctl`.
    pub fn target(&self) -> String {
        target_of(&self.application.1, &self.service.1, &self.channel.1)
    }
}

/// The words that name an instance in a command of `pvnctl`.
pub(crate) fn target_of(
    application: &ApplicationName,
    service: &ServiceName,
    channel: &ChannelName,
) -> String {
    format!("{service} --app {application} --channel {channel}")
}
