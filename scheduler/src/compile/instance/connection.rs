//! Which of its channel's runtimes a service uses. Called by `instance` and `check`.

use config::{JobHost, Runtime, RuntimeRole};

use super::super::channels::RuntimeConnection;
use super::super::nearest;
use super::super::problem::Problems;
use super::ServiceInChannel;

impl<'a> ServiceInChannel<'a> {
    /// The runtime behind the connection that the service asks for, or the only one that fits.
    pub(in super::super) fn pick_runtime(&self, problems: &mut Problems) -> Option<&'a Runtime> {
        let own = self.own();
        let of_channel = own
            .as_ref()
            .and_then(|(own, place)| Some((own.runtime_connection.as_ref()?, place.clone())));
        let wanted =
            of_channel.or_else(|| Some((self.service.runtime_connection.as_ref()?, self.place())));
        let connection = match wanted {
            Some((name, place)) => {
                match self.channel.connections.iter().find(|connection| connection.name == *name) {
                    Some(connection) => connection,
                    None => {
                        let names = self
                            .channel
                            .connections
                            .iter()
                            .map(|connection| connection.name.as_str());
                        problems.add(
                            place
                                .field("runtimeConnection")
                                .problem(format!(
                                    "release channel `{}` offers no runtime connection `{name}`",
                                    self.channel.name
                                ))
                                .help(nearest::help(name.as_str(), "connections", names)),
                        );
                        return None;
                    }
                }
            }
            None => self.only_connection(problems)?,
        };
        self.configs.runtime(&connection.runtime)
    }

    fn only_connection(&self, problems: &mut Problems) -> Option<&'a RuntimeConnection> {
        let all = &self.channel.connections;
        let fits = |connection: &&RuntimeConnection| {
            let role = self.configs.runtime(&connection.runtime).map(Runtime::role);
            role.is_some_and(|role| {
                role.commands.is_some() || matches!(role.host, Some(JobHost::Fake(_)))
            })
        };
        let fitting: Vec<&RuntimeConnection> = all.iter().filter(fits).collect();
        match (fitting.as_slice(), all.as_slice()) {
            ([connection], _) => Some(*connection),
            ([], [connection]) => Some(connection),
            // The channel's own problem, told there when configs are checked.
            (_, []) if self.release.is_none() => None,
            _ => {
                let names: Vec<String> =
                    all.iter().map(|connection| format!("`{}`", connection.name)).collect();
                problems.add(
                    self.place()
                        .problem(format!(
                            "release channel `{}` has {} runtimes and the service names none",
                            self.channel.name,
                            all.len()
                        ))
                        .help(format!("set `runtimeConnection` to one of {}", names.join(", "))),
                );
                None
            }
        }
    }

    pub(super) fn tell_no_commands(&self, runtime: &Runtime, problems: &mut Problems) {
        let RuntimeRole { kind, host, .. } = runtime.role();
        let (message, help) = match host {
            Some(JobHost::Local(_)) => (
                format!("runtime `{}` has no commands of its own", runtime.name),
                format!(
                    "write a `custom` runtime whose `proxyRuntime` is `{}`, and name that one in \
                     the channel",
                    runtime.name
                ),
            ),
            Some(JobHost::Kubernetes(_) | JobHost::Fake(_)) | None => (
                format!(
                    "not supported yet: services on runtime `{}` of kind `{kind}`",
                    runtime.name
                ),
                "write a `custom` runtime with the commands themselves, and name that one in the \
                 channel"
                    .to_owned(),
            ),
        };
        problems.add(
            self.place().problem(format!("{message} (channel `{}`)", self.channel.name)).help(help),
        );
    }
}
