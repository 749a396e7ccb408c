//! Where things have their pages.

use schema::api::{InstanceSummary, LogEntry, ServiceSummary};
use schema::id::{ApplicationName, ChannelName, ServiceName};

/// The page of a service.
pub fn service_path(application: &ApplicationName, service: &ServiceName) -> String {
    format!("/applications/{application}/services/{service}")
}

/// The page of a service, at one of its channels.
pub fn instance_path(
    application: &ApplicationName,
    service: &ServiceName,
    channel: &ChannelName,
) -> String {
    format!("{}?channel={channel}", service_path(application, service))
}

/// What the paths of things to do with a channel of a service begin with.
pub(crate) fn channel_action(
    application: &ApplicationName,
    service: &ServiceName,
    channel: &ChannelName,
) -> String {
    format!("{}/channels/{channel}", service_path(application, service))
}

/// A path with a query of those pairs that say something.
pub(crate) fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut said = String::from(path);
    for (at, (name, value)) in pairs.iter().filter(|(_, value)| !value.is_empty()).enumerate() {
        said.push(if at == 0 { '?' } else { '&' });
        said.push_str(name);
        said.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                    said.push(char::from(byte));
                }
                byte => said.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    said
}

/// What a log entry is about, in a word.
pub(crate) fn entry_name(entry: &LogEntry) -> String {
    let part = |text: Option<String>, before: &str| text.map(|text| format!("{before}{text}"));
    [
        entry.application.as_ref().map(ToString::to_string),
        part(entry.service.as_ref().map(ToString::to_string), "/"),
        part(entry.channel.as_ref().map(ToString::to_string), " · "),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The page of what a log entry is about: the job, else the channel, else the service.
pub(crate) fn entry_path(entry: &LogEntry) -> Option<String> {
    let (application, service) = (entry.application.as_ref()?, entry.service.as_ref()?);
    Some(match &entry.channel {
        Some(channel) => instance_path(application, service, channel),
        None => service_path(application, service),
    })
}

/// Something that has a page.
pub(crate) trait Linked {
    /// Its path.
    fn href(&self) -> String;
}

impl Linked for InstanceSummary {
    fn href(&self) -> String {
        instance_path(&self.application, &self.service, &self.channel)
    }
}

impl Linked for ServiceSummary {
    fn href(&self) -> String {
        service_path(&self.application, &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_holds_what_it_is_given_and_nothing_else() {
        assert_eq!(
            query("/a", &[("x", ""), ("y", "a b&c=é"), ("z", "1")]),
            "/a?y=a%20b%26c%3D%C3%A9&z=1"
        );
        assert_eq!(query("/a", &[("x", "")]), "/a");
    }
}
