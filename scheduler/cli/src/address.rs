//! Services and their instances as people say them: `shop/orders-db@production`, and as much less
//! as says it alone. What is left out is asked for; flags say the same.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use clap_complete::ArgValueCompleter;
use schema::api::{Service, ServiceSummary};
use schema::check::nearest;
use schema::command_target::CommandTarget;
use schema::id::JobId;

use crate::client::Client;
use crate::completing;
use crate::failure::Failure;

mod scope;

pub use scope::ScopeArguments;

/// Services of one name that are told to choose from.
const SHOWN: usize = 5;

/// Most services among whose names one is looked for that was meant.
const COMPARED: usize = 1_000;

/// `[APPLICATION/]SERVICE[@CHANNEL]`, each by name or id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    application: Option<String>,
    service: String,
    channel: Option<String>,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, channel) = match text.split_once('@') {
            Some((rest, channel)) => (rest, Some(channel)),
            None => (text, None),
        };
        let (application, service) = match rest.split_once('/') {
            Some((application, service)) => (Some(application), service),
            None => (None, rest),
        };
        let mut parts = application.into_iter().chain([service]).chain(channel);
        if parts.any(|part| part.is_empty() || part.contains(['/', '@'])) {
            return Err(
                "write it as [APPLICATION/]SERVICE[@CHANNEL], as in shop/web@production".to_owned()
            );
        }
        Ok(Self {
            application: application.map(str::to_owned),
            service: service.to_owned(),
            channel: channel.map(str::to_owned),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(application) = &self.application {
            write!(f, "{application}/")?;
        }
        f.write_str(&self.service)?;
        self.channel.as_ref().map_or(Ok(()), |channel| write!(f, "@{channel}"))
    }
}

/// A service and its application.
#[derive(Debug, Clone, Args)]
pub struct ServiceArgument {
    /// The service, by name or id: `shop/web`, or `web` alone where no other application has one;
    /// `shop/web@eu` means one release channel of it
    #[arg(value_name = "SERVICE", add = ArgValueCompleter::new(completing::services))]
    address: Address,
    /// Its application, by name or id, where the service's name does not say it
    #[arg(long, value_name = "APPLICATION", add = ArgValueCompleter::new(completing::applications))]
    app: Option<String>,
}

/// A service in one channel.
#[derive(Debug, Clone, Args)]
pub struct ChannelArgument {
    /// The service in one release channel, by names or ids: `shop/web@eu`; `web@eu` where no other
    /// application has such a service, `web` where it has one channel
    #[arg(value_name = "SERVICE", add = ArgValueCompleter::new(completing::instances))]
    address: Address,
    /// Its application, by name or id, where the service's name does not say it
    #[arg(long, value_name = "APPLICATION", add = ArgValueCompleter::new(completing::applications))]
    app: Option<String>,
    /// The release channel, by name or id, where the service's name does not say it
    #[arg(long, value_name = "CHANNEL", add = ArgValueCompleter::new(completing::channels))]
    channel: Option<String>,
}

/// A service, its application known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePath {
    /// The application, by name or id.
    pub app: String,
    /// The service, by name or id.
    pub service: String,
}

/// A service in one channel, all of it known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstancePath {
    pub service: ServicePath,
    /// The release channel, by name or id.
    pub channel: String,
}

impl ServicePath {
    /// Path of the service in the API.
    pub fn path(&self) -> Vec<&str> {
        vec!["v1", "applications", &self.app, "services", &self.service]
    }
}

impl InstancePath {
    /// Path of the instance in the API.
    pub fn own_path(&self) -> Vec<&str> {
        let mut path = self.service.path();
        path.extend(["channels", &self.channel]);
        path
    }

    /// For the commands in what is told of it.
    pub fn named(&self) -> CommandTarget<'_> {
        CommandTarget {
            application: &self.service.app,
            service: &self.service.service,
            channel: &self.channel,
        }
    }

    /// The same, and what follows it.
    pub fn path<'a>(&'a self, what: &'a str) -> Vec<&'a str> {
        let mut path = self.own_path();
        path.push(what);
        path
    }

    /// The instance as people read it.
    pub fn say(&self) -> String {
        format!("{}/{} in {}", self.service.app, self.service.service, self.channel)
    }

    /// The instance as people type it.
    pub fn address(&self) -> String {
        format!("{}/{}@{}", self.service.app, self.service.service, self.channel)
    }
}

impl Address {
    /// The id that this is, of a kind with this prefix, or the beginning of one: a name of a
    /// service may look so too, and its application says that it is one.
    fn id(&self, prefix: &str) -> Option<String> {
        let Self { application: None, service, channel: None } = self else { return None };
        let digits = service.strip_prefix(prefix)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (!digits.is_empty() && digits.bytes().all(is_digit)).then(|| service.clone())
    }
}

impl ServiceArgument {
    /// What was typed elsewhere.
    pub fn new(address: Address, app: Option<String>) -> Self {
        Self { address, app }
    }

    /// Which service is meant, and which of its channels where one was named.
    ///
    /// # Errors
    /// No such service, or more than one; what the server says.
    pub async fn resolve(&self, client: &Client) -> Result<(ServicePath, Option<String>), Failure> {
        let service = service(&self.address, self.app.as_deref(), client).await?;
        Ok((service, self.address.channel.clone()))
    }

    /// The same for a command that names channels by a flag as well.
    ///
    /// # Errors
    /// The same, and channels that are named in both ways.
    pub async fn with_channels(
        &self,
        flag: &str,
        channels: Option<&Vec<String>>,
        client: &Client,
    ) -> Result<(ServicePath, Option<Vec<String>>), Failure> {
        let named = self.address.channel.as_ref();
        if let (Some(named), Some(channels)) = (named, channels)
            && channels.iter().any(|channel| channel != named)
        {
            return Err(twice("release channel", named, flag, &channels.join(",")));
        }
        let (service, _) = self.resolve(client).await?;
        Ok((service, channels.cloned().or_else(|| named.map(|named| vec![named.clone()]))))
    }
}

impl ChannelArgument {
    /// The job that was named in the service's place, if one was.
    pub fn job_id(&self) -> Option<String> {
        let is_alone = self.app.is_none() && self.channel.is_none();
        self.address.id(JobId::PREFIX).filter(|_| is_alone)
    }

    /// Which service is meant, whatever the channel.
    ///
    /// # Errors
    /// The address names a channel; no such service, or more than one; what the server says.
    pub async fn resolve_service(&self, client: &Client) -> Result<ServicePath, Failure> {
        if let Some(channel) = &self.address.channel {
            return Err(Failure::with_next(
                format!("`{}` means the release channel `{channel}` alone", self.address),
                "leave the channel out, or the flag that means all of them",
            ));
        }
        service(&self.address, self.app.as_deref(), client).await
    }

    /// Which instance is meant.
    ///
    /// # Errors
    /// No such service or more than one, more than one channel and none named; what the server
    /// says.
    pub async fn resolve(&self, client: &Client) -> Result<InstancePath, Failure> {
        let Self { address, app, channel } = self;
        let channel =
            either("release channel", address.channel.as_deref(), "--channel", channel.as_deref())?;
        let service = service(address, app.as_deref(), client).await?;
        let channel = match channel {
            Some(channel) => channel.to_owned(),
            None => only_channel(&service, client).await?,
        };
        Ok(InstancePath { service, channel })
    }
}

/// What the address or the flag says, where they do not say different things.
fn either<'a>(
    what: &str,
    said: Option<&'a str>,
    flag: &str,
    given: Option<&'a str>,
) -> Result<Option<&'a str>, Failure> {
    match (said, given) {
        (Some(said), Some(given)) if said != given => Err(twice(what, said, flag, given)),
        (said, given) => Ok(given.or(said)),
    }
}

fn twice(what: &str, said: &str, flag: &str, given: &str) -> Failure {
    Failure::with_next(
        format!("two different things are named as the {what}: `{said}`, and {flag} `{given}`"),
        format!("leave one of them out: {flag} and the address say the same"),
    )
}

/// The service that is meant. Without an application it is asked which has one.
async fn service(
    address: &Address,
    app: Option<&str>,
    client: &Client,
) -> Result<ServicePath, Failure> {
    let app = either("application", address.application.as_deref(), "--app", app)?;
    if let Some(app) = app {
        return Ok(ServicePath { app: app.to_owned(), service: address.service.clone() });
    }
    let found = named(&address.service, SHOWN + 1, client).await?;
    let channel = address.channel.as_ref().map_or_else(String::new, |of| format!("@{of}"));
    match found.as_slice() {
        [] => {
            let all = client.list::<ServiceSummary>(&["v1", "services"], &[], Some(COMPARED));
            let all: Vec<ServiceSummary> = all.await.map(|all| all.items).unwrap_or_default();
            let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            let near = nearest(&address.service, &names)
                .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            Err(Failure::with_next(
                format!("there is no service `{}` in any application", address.service),
                format!("{near}`pvnctl services list` shows those there are"),
            ))
        }
        [one] => {
            Ok(ServicePath { app: one.application.to_string(), service: one.name.to_string() })
        }
        several => {
            let named = several.iter().take(SHOWN);
            let mut named: Vec<_> =
                named.map(|one| format!("`{}/{}{channel}`", one.application, one.name)).collect();
            if several.len() > SHOWN {
                named.push("more".to_owned());
            }
            Err(Failure::with_next(
                format!("more than one application has a service `{}`", address.service),
                format!("say which: {}", named.join(", ")),
            ))
        }
    }
}

/// The services of this name in all applications, at most `most`.
async fn named(name: &str, most: usize, client: &Client) -> Result<Vec<ServiceSummary>, Failure> {
    let query = [("named", name.to_owned())];
    Ok(client.list(&["v1", "services"], &query, Some(most)).await?.items)
}

/// The one channel of a service.
async fn only_channel(service: &ServicePath, client: &Client) -> Result<String, Failure> {
    let now: Service = client.get(&service.path(), &[]).await?;
    match now.channels.as_slice() {
        [] => Err(Failure::with_next(
            format!("{}/{} has no release channel", now.application, now.name),
            "give its application one, with `pvnctl configs apply PATH`",
        )),
        [one] => Ok(one.channel.to_string()),
        several => {
            let each = several.iter().map(|one| {
                format!("`{}/{}@{}` ({})", now.application, now.name, one.channel, one.status)
            });
            Err(Failure::with_next(
                format!(
                    "{}/{} has {} release channels, and this is about one",
                    now.application,
                    now.name,
                    several.len()
                ),
                format!("say which: {}", each.collect::<Vec<_>>().join(", ")),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(Option<&str>, &str, Option<&str>)>) {
        let parsed = text.parse::<Address>().ok();
        let found = parsed.as_ref().map(|address| {
            (address.application.as_deref(), address.service.as_str(), address.channel.as_deref())
        });
        assert_eq!(found, expected, "{text}");
        if let Some(address) = parsed {
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn an_address_says_application_service_and_channel_or_less() {
        check("web", Some((None, "web", None)));
        check("shop/web", Some((Some("shop"), "web", None)));
        check("web@eu", Some((None, "web", Some("eu"))));
        check("shop/web@eu", Some((Some("shop"), "web", Some("eu"))));
        for wrong in ["", "/web", "shop/", "web@", "@eu", "a/b/c", "a@b@c", "a@b/c"] {
            check(wrong, None);
        }
    }
}
