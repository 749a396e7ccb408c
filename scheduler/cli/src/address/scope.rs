//! What a list is narrowed to: an application, a service, a channel.

use clap::Args;
use clap_complete::ArgValueCompleter;
use schema::id::{JobId, ReleaseId};

use super::{Address, either, service};
use crate::client::Client;
use crate::completing;
use crate::failure::Failure;

/// Filters of a list.
#[derive(Debug, Clone, Default, Args)]
pub struct ScopeArguments {
    /// Only of this service, or of one release channel of it: `shop/web`, `shop/web@eu`, or `web`
    /// where no other application has one
    #[arg(value_name = "SERVICE", add = ArgValueCompleter::new(completing::instances))]
    address: Option<Address>,
    /// Only of this application
    #[arg(long, value_name = "APPLICATION", add = ArgValueCompleter::new(completing::applications))]
    app: Option<String>,
    /// Only of this service
    #[arg(long, value_name = "SERVICE", conflicts_with = "address")]
    service: Option<Address>,
    /// Only in this release channel
    #[arg(long, value_name = "CHANNEL", add = ArgValueCompleter::new(completing::channels))]
    channel: Option<String>,
}

impl ScopeArguments {
    /// The job that was named in the service's place, if one was.
    pub fn job_id(&self) -> Option<String> {
        self.id(JobId::PREFIX)
    }

    /// The same for a release.
    pub fn release_id(&self) -> Option<String> {
        self.id(ReleaseId::PREFIX)
    }

    fn id(&self, prefix: &str) -> Option<String> {
        let is_alone = self.app.is_none() && self.channel.is_none();
        self.address.as_ref().filter(|_| is_alone)?.id(prefix)
    }

    /// The filters as the API takes them.
    ///
    /// # Errors
    /// No such service, or more than one; a channel of no application.
    pub async fn query(&self, client: &Client) -> Result<Vec<(&'static str, String)>, Failure> {
        let Self { address, app, service: flag, channel } = self;
        let address = address.as_ref().or(flag.as_ref());
        let said = address.and_then(|address| address.channel.as_deref());
        let channel = either("release channel", said, "--channel", channel.as_deref())?;
        let mut query = Vec::new();
        match (address, app) {
            (Some(address), app) => {
                let of = service(address, app.as_deref(), client).await?;
                query.extend([("application", of.app), ("service", of.service)]);
            }
            (None, Some(app)) => query.push(("application", app.clone())),
            (None, None) if channel.is_some() => {
                return Err(Failure::with_next(
                    "a release channel is one of an application, and none is named",
                    "name it with --app, or the service in its channel: shop/web@eu",
                ));
            }
            (None, None) => {}
        }
        query.extend(channel.map(|channel| ("channel", channel.to_owned())));
        Ok(query)
    }
}
