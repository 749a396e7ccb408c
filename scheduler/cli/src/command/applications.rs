//! `pvnctl applications`: applications and their release channels.

use clap::Subcommand;
use schema::api::{Application, ApplicationSummary, DocumentReference, ReleaseChannel};

use super::delete::{self, DeleteArguments};
use crate::client::Client;
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::table::Table;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List all applications
    #[command(visible_alias = "ls")]
    List,
    /// Show one application with its release channels and services
    Get {
        /// The application, by name or id
        application: String,
    },
    /// Delete an application with all of its services; what was applied stays as it is
    Delete {
        /// The application, by name or id
        application: String,
        /// How.
        #[command(flatten)]
        how: DeleteArguments,
    },
}

/// Does it.
///
/// # Errors
/// What the server says.
pub async fn perform(
    command: Command,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        Command::List => {
            let applications =
                client.list::<ApplicationSummary>(&["v1", "applications"], &[], None).await?;
            console.print_list(
                &applications,
                "no applications; make one with `pvnctl configs apply PATH`",
                list,
            )
        }
        Command::Get { application } => {
            let application: Application =
                client.get(&["v1", "applications", &application], &[]).await?;
            console.print_one(&application, |paper| page(&application, paper))
        }
        Command::Delete { application, how } => {
            let kind = "application".to_owned();
            let delete =
                DocumentReference { kind, name: application, ..DocumentReference::default() };
            delete::perform(delete, &how, client, console).await
        }
    }
}

fn list(applications: &[ApplicationSummary]) -> Table {
    let mut table = Table::new(["NAME", "RELEASE CHANNELS", "SERVICES"]).first_to_go(&["SERVICES"]);
    for application in applications {
        let channels: Vec<_> =
            application.release_channels.iter().map(ToString::to_string).collect();
        table.row([
            (&application.name).into(),
            channels.join(", ").into(),
            application.services.into(),
        ]);
    }
    table
}

fn page(application: &Application, paper: &Paper) -> String {
    let mut text = paper.heading(application.name.as_str());
    let mut channels =
        Table::new(["CHANNEL", "GROUP", "RUNTIMES", "PRECONDITIONS"]).first_to_go(&["GROUP"]);
    for channel in &application.release_channels {
        let runtimes =
            channel.runtimes.iter().map(|connection| match connection.runtime.as_str() {
                runtime if runtime == connection.name => runtime.to_owned(),
                runtime => format!("{} ({runtime})", connection.name),
            });
        channels.row([
            (&channel.name).into(),
            channel.group.as_deref().unwrap_or_default().into(),
            runtimes.collect::<Vec<_>>().join(", ").into(),
            preconditions(channel).into(),
        ]);
    }
    text += &paper.table(&channels);
    let services: Vec<_> = application.services.iter().map(ToString::to_string).collect();
    text += &match services.is_empty() {
        true => "\nno services\n".to_owned(),
        false => format!("\nservices: {}\n", services.join(", ")),
    };
    text
}

/// The preconditions in short: `releaseChannelStable staging, manualApproval qa`.
fn preconditions(channel: &ReleaseChannel) -> String {
    let short = |precondition: &serde_json::Value| {
        let (kind, fields) =
            precondition.as_object()?.iter().find(|(_, fields)| fields.is_object())?;
        let what = ["releaseChannel", "selector", "name"]
            .iter()
            .find_map(|field| fields.get(field)?.as_str());
        Some(what.map_or_else(|| kind.clone(), |what| format!("{kind} {what}")))
    };
    channel
        .preconditions
        .iter()
        .map(|precondition| short(precondition).unwrap_or_else(|| precondition.to_string()))
        .collect::<Vec<_>>()
        .join(", ")
}
