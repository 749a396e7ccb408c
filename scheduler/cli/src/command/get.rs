//! `pvnctl get`: things by their noun, in a list or one of them. The same as `NOUN list` and `NOUN
//! get`, in the order in which most people's fingers know it.

use clap::{Args, Subcommand};

use super::{
    applications, auth, configs, events, jobs, notifications, releases, runtimes, secrets, services,
};
use crate::address::{Address, ServiceArgument};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl get services                     all of them; svc is short for it
  pvnctl get svc shop/web                 one, channel by channel
  pvnctl get jobs shop/web@eu --limit 5
  pvnctl get job job-44b5ba11 -o json
  pvnctl get releases -o name             one id a line";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_value_name = "NOUN", subcommand_help_heading = "Nouns")]
pub struct Arguments {
    /// Of what.
    #[command(subcommand)]
    pub noun: GetNoun,
}

/// What there is to get.
#[derive(Debug, Subcommand)]
pub enum GetNoun {
    /// Services, or one of them channel by channel
    #[command(visible_aliases = ["service", "svc"])]
    Services(ServicesToGet),
    /// Jobs, newest first, or one of them
    #[command(visible_alias = "job")]
    Jobs(jobs::list::Arguments),
    /// Releases, newest first, or one of them
    #[command(visible_aliases = ["release", "rel"])]
    Releases(releases::ReleaseFilters),
    /// Applications, or one of them
    #[command(visible_aliases = ["application", "apps", "app"])]
    Applications(ByName),
    /// Runtimes, or one of them
    #[command(visible_aliases = ["runtime", "rt"])]
    Runtimes(ByName),
    /// Config documents, or one of them as it was written
    #[command(visible_aliases = ["config", "cfg"])]
    Configs(ConfigsToGet),
    /// Notifications, newest first
    #[command(visible_aliases = ["notification", "ntf"])]
    Notifications(notifications::NotificationFilters),
    /// Keys of secrets
    #[command(visible_alias = "secret")]
    Secrets,
    /// API tokens
    #[command(visible_alias = "token")]
    Tokens,
    /// The log
    #[command(visible_aliases = ["event", "ev"])]
    Events(events::Arguments),
}

/// One thing by its name, or all.
#[derive(Debug, Args)]
pub struct ByName {
    /// Which, by name or id [default: all]
    pub name: Option<String>,
}

/// One service, or all that pass the filters.
#[derive(Debug, Args)]
pub struct ServicesToGet {
    /// Which, by name or id: `shop/web`, or `web` where no other application has one [default: all]
    #[arg(value_name = "SERVICE", conflicts_with_all = ["status", "limit"])]
    address: Option<Address>,
    /// Filters.
    #[command(flatten)]
    filters: services::list::Arguments,
}

/// One document, or all that have something in their name.
#[derive(Debug, Args)]
pub struct ConfigsToGet {
    /// Of which kind: runtime, application or service [default: all]
    #[arg(requires = "document")]
    kind: Option<configs::stored::ConfigKind>,
    /// Its name; of a service `shop/web`
    #[arg(value_name = "NAME", requires = "kind", conflicts_with = "name")]
    document: Option<Address>,
    /// Filters.
    #[command(flatten)]
    filters: configs::stored::ListArguments,
}

/// Does it.
///
/// # Errors
/// What the server says.
pub async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    match arguments.noun {
        GetNoun::Services(ServicesToGet { address: Some(address), filters }) => {
            let service = ServiceArgument::new(address, filters.app);
            let one = services::get::Arguments { service };
            services::perform(services::Command::Get(one), client, console).await
        }
        GetNoun::Services(ServicesToGet { address: None, filters }) => {
            services::perform(services::Command::List(filters), client, console).await
        }
        GetNoun::Jobs(list) => {
            let command = match list.scope.job_id(client).await? {
                Some(job) => jobs::Command::Get { job },
                None => jobs::Command::List(list),
            };
            jobs::perform(command, client, console).await
        }
        GetNoun::Releases(list) => {
            let command = match list.scope.release_id(client).await? {
                Some(release) => releases::Command::Get { release },
                None => releases::Command::List(list),
            };
            releases::perform(command, client, console).await
        }
        GetNoun::Applications(ByName { name }) => {
            let command = name.map_or(applications::Command::List, |application| {
                applications::Command::Get { application }
            });
            applications::perform(command, client, console).await
        }
        GetNoun::Runtimes(ByName { name }) => {
            let command =
                name.map_or(runtimes::Command::List, |runtime| runtimes::Command::Get { runtime });
            runtimes::perform(command, client, console).await
        }
        GetNoun::Configs(ConfigsToGet { kind: Some(kind), document: Some(name), .. }) => {
            let one = configs::stored::GetArguments::named(kind, name);
            configs::stored::get(&one, client, console).await
        }
        GetNoun::Configs(ConfigsToGet { filters, .. }) => {
            configs::stored::list(&filters, client, console).await
        }
        GetNoun::Notifications(filters) => {
            let list = notifications::Command::List(filters);
            notifications::perform(list, client, console).await
        }
        GetNoun::Secrets => secrets::perform(secrets::Command::List, client, console).await,
        GetNoun::Tokens => {
            let list = auth::Command::Token(auth::TokenCommand::List);
            auth::perform(list, client, console).await
        }
        GetNoun::Events(arguments) => events::perform(arguments, client, console).await,
    }
}
