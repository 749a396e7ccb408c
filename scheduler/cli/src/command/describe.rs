//! `pvnctl describe`: one thing with all that is known of it. Of a service that is how its channels
//! stand, why those stand there that have not converged, and what happened last.

use clap::{Args, Subcommand};
use schema::api::{Explanation, LogEntry, Service};
use schema::status::Status;

use super::{applications, events, jobs, releases, runtimes, services};
use crate::address::{InstancePath, ServiceArgument, ServicePath};
use crate::client::{Client, Listed};
use crate::console::Console;
use crate::failure::Failure;

/// Entries of the log that are shown of a service: a screen has its channels, too.
const EVENTS: usize = 10;

const EXAMPLES: &str = "\
Examples:
  pvnctl describe service shop/web
  pvnctl describe svc shop/web@eu
  pvnctl describe job job-44b5ba11";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_value_name = "NOUN", subcommand_help_heading = "Nouns")]
pub struct Arguments {
    /// Of what.
    #[command(subcommand)]
    pub noun: DescribedNoun,
}

/// What there is to describe.
#[derive(Debug, Subcommand)]
pub enum DescribedNoun {
    /// A service: its channels, the causes of where they stand, the newest entries of the log
    #[command(visible_aliases = ["services", "svc"])]
    Service(ServiceArgument),
    /// A job with its report
    #[command(visible_alias = "jobs")]
    Job {
        /// The job's id, or any beginning of it that names no other
        job: String,
    },
    /// A release with its parameters
    #[command(visible_aliases = ["releases", "rel"])]
    Release {
        /// The release's id, or any beginning of it that names no other
        release: String,
    },
    /// An application with its release channels
    #[command(visible_aliases = ["applications", "apps", "app"])]
    Application {
        /// The application, by name or id
        application: String,
    },
    /// A runtime
    #[command(visible_aliases = ["runtimes", "rt"])]
    Runtime {
        /// The runtime, by name or id
        runtime: String,
    },
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
        DescribedNoun::Service(argument) => service(&argument, client, console).await,
        DescribedNoun::Job { job } => {
            jobs::perform(jobs::Command::Get { job }, client, console).await
        }
        DescribedNoun::Release { release } => {
            releases::perform(releases::Command::Get { release }, client, console).await
        }
        DescribedNoun::Application { application } => {
            let get = applications::Command::Get { application };
            applications::perform(get, client, console).await
        }
        DescribedNoun::Runtime { runtime } => {
            runtimes::perform(runtimes::Command::Get { runtime }, client, console).await
        }
    }
}

async fn service(
    argument: &ServiceArgument,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let (path, channel) = argument.resolve(client).await?;
    let service = services::get::find(&path, channel.as_deref(), client).await?;
    let mut explained = Vec::new();
    for instance in service.channels.iter().filter(|one| one.status != Status::Converged) {
        let instance = InstancePath {
            service: ServicePath {
                app: service.application.to_string(),
                service: service.name.to_string(),
            },
            channel: instance.channel.to_string(),
        };
        let explanation: Explanation = client.get(&instance.path("explain"), &[]).await?;
        explained.push((instance, explanation));
    }
    let mut query = vec![
        ("application", service.application.to_string()),
        ("service", service.name.to_string()),
    ];
    query.extend(channel.map(|channel| ("channel", channel)));
    let log = events::newest(&query, EVENTS, client).await?;
    tell(&service, &explained, &log, console)?;
    services::ill::note(client, console).await
}

/// With JSON and YAML the service alone, as `get` does: the rest are answers of their own.
fn tell(
    service: &Service,
    explained: &[(InstancePath, Explanation)],
    log: &Listed<LogEntry>,
    console: &mut Console,
) -> Result<(), Failure> {
    console.print_one(service, |paper| {
        let mut text = services::get::page(service, paper);
        for (instance, explanation) in explained {
            text += &format!("\n{}", services::explain::page(instance, explanation, paper));
        }
        if !log.items.is_empty() {
            text += &format!("\n{}", paper.heading("newest in the log"));
            text += &paper.table(&events::rows(&log.items));
        }
        text
    })
}
