//! Documents side by side, and which runtime serves which instance, as far as they show it. Called
//! by what looks for things that several instances would share.

use std::collections::BTreeMap;
use std::fmt::Display;

use schema::id::{ApplicationName, RuntimeName};

use crate::{Application, Body, Document, ReleaseChannel, Runtime, RuntimeRole, Service};

/// Most instances that a message names.
const NAMED: usize = 3;

/// An instance, for people.
pub(super) fn instance(service: &Service, channel: impl Display) -> String {
    format!("{}/{} in {channel}", service.application, service.name)
}

/// The first few of them, and how many more there are.
pub(super) fn listed(instances: &[String]) -> String {
    let names = instances.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match instances.len().saturating_sub(NAMED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// A runtime, where it is written, and what it comes to.
pub(super) struct RuntimeOfDocument<'a> {
    pub(super) document: &'a Document,
    pub(super) runtime: &'a Runtime,
    pub(super) role: RuntimeRole<'a>,
}

/// All documents, by name.
pub(super) struct Estate<'a> {
    pub(super) runtimes: BTreeMap<&'a RuntimeName, RuntimeOfDocument<'a>>,
    pub(super) applications: BTreeMap<&'a ApplicationName, &'a Application>,
    pub(super) services: Vec<(&'a Document, &'a Service)>,
}

impl<'a> Estate<'a> {
    pub(super) fn of(documents: impl IntoIterator<Item = &'a Document>) -> Self {
        let mut estate =
            Self { runtimes: BTreeMap::new(), applications: BTreeMap::new(), services: Vec::new() };
        for document in documents {
            match document.body() {
                Body::Runtime(runtime) => {
                    let found = RuntimeOfDocument { document, runtime, role: runtime.role() };
                    estate.runtimes.insert(&runtime.name, found);
                }
                Body::Application(application) => {
                    estate.applications.insert(&application.name, application);
                }
                Body::Service(service) => estate.services.push((document, service)),
            }
        }
        estate
    }

    /// The channels that the application names, each with the runtime that serves the service.
    pub(super) fn of_channels(
        &self,
        service: &Service,
        application: &'a Application,
    ) -> Vec<(&'a ReleaseChannel, &'a RuntimeName)> {
        let channels = application.release_channels.iter();
        channels
            .filter_map(|channel| Some((channel, runtime_of(service, channel, &self.runtimes)?)))
            .collect()
    }
}

/// The runtime that serves a service in a channel, as far as one can know.
fn runtime_of<'a>(
    service: &Service,
    channel: &'a crate::ReleaseChannel,
    runtimes: &BTreeMap<&RuntimeName, RuntimeOfDocument<'_>>,
) -> Option<&'a RuntimeName> {
    let own = service.per_release_channel.iter().find(|own| own.release_channel == channel.name);
    let wanted =
        own.and_then(|own| own.runtime_connection.as_ref()).or(service.runtime_connection.as_ref());
    let name_of = |entry: &crate::ChannelRuntime| {
        entry.name.as_ref().map_or(entry.runtime.as_str(), |name| name.as_str()).to_owned()
    };
    let has_commands = |entry: &&crate::ChannelRuntime| {
        runtimes.get(&entry.runtime).is_some_and(|runtime| runtime.role.commands.is_some())
    };
    let entry = match wanted {
        Some(wanted) => channel.runtimes.iter().find(|entry| name_of(entry) == wanted.as_str()),
        None => channel.runtimes.iter().find(has_commands),
    };
    entry.map(|entry| &entry.runtime)
}

/// The channels that groups make, and the runtimes of these, as far as the given runtimes show it.
pub(super) fn of_groups<'a>(
    application: &Application,
    runtimes: &BTreeMap<&'a RuntimeName, RuntimeOfDocument<'a>>,
) -> Vec<(String, &'a RuntimeName)> {
    let mut found = Vec::new();
    for group in &application.release_channel_groups {
        // What is wrong with a selector is told elsewhere.
        let selector = &group.runtime_selector;
        for (name, RuntimeOfDocument { runtime, role, .. }) in runtimes {
            let mut labels: BTreeMap<String, String> = runtime
                .labels
                .iter()
                .map(|label| (label.label.to_string(), label.value.to_string()))
                .collect();
            labels.insert("@name".to_owned(), name.to_string());
            labels.insert("@type".to_owned(), role.kind.to_owned());
            if role.commands.is_some() && selector.matches(&labels) {
                // A group's template may call its channels otherwise; which one is meant is clear
                // all the same.
                found.push((format!("{}-{name}", group.name), *name));
            }
        }
    }
    found
}
