//! What a list is narrowed to: an application, a service, a channel.

use clap::Args;
use clap_complete::ArgValueCompleter;
use schema::id::{JobId, ReleaseId};

use super::{Address, either, named, service};
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
    ///
    /// # Errors
    /// What the server says.
    pub async fn job_id(&self, client: &Client) -> Result<Option<String>, Failure> {
        self.id(JobId::PREFIX, client).await
    }

    /// The same for a release.
    ///
    /// # Errors
    /// What the server says.
    pub async fn release_id(&self, client: &Client) -> Result<Option<String>, Failure> {
        self.id(ReleaseId::PREFIX, client).await
    }

    /// An id, or its first digits alone where no service is called so.
    async fn id(&self, prefix: &str, client: &Client) -> Result<Option<String>, Failure> {
        let is_alone = self.app.is_none() && self.channel.is_none();
        let Some(address) = self.address.as_ref().filter(|_| is_alone) else { return Ok(None) };
        let digits = Address { service: format!("{prefix}{}", address.service), ..address.clone() };
        match (address.id(prefix), digits.id(prefix)) {
            (Some(id), _) => Ok(Some(id)),
            (None, Some(id)) => {
                let is_service = !named(&address.service, 1, client).await?.is_empty();
                Ok(Some(id).filter(|_| !is_service))
            }
            (None, None) => Ok(None),
        }
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
