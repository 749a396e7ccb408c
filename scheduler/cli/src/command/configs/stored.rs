//! `pvnctl configs list` and `configs get`: documents as the scheduler keeps them.

use clap::{Args, ValueEnum};
use schema::api::{ConfigVersion, StoredConfig};

use super::super::listing::FilteredList;
use crate::address::{Address, ServiceArgument};
use crate::client::{Client, Listed};
use crate::console::Console;
use crate::failure::Failure;
use crate::output_name::OutputName;
use crate::table::Table;
use crate::when;

/// What can be typed.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Only those with this in their name
    #[arg(long)]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  pvnctl configs get service shop/web
  pvnctl configs get application shop --version 3      as it was, also when it is deleted
  pvnctl configs get runtime tf --versions             who changed it, and when

It prints the document as it was written, with its comments. Secrets in it are
masked: what is printed then has to get them back before it can be applied.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GetArguments {
    /// What it is
    kind: ConfigKind,
    /// Its name; of a service `shop/web`, or `web` alone where no other application has one
    name: Address,
    /// The application of a service, where its name does not say it
    #[arg(long, value_name = "APPLICATION")]
    app: Option<String>,
    /// This version of it [default: the one in force]
    #[arg(long, value_name = "NUMBER")]
    version: Option<u64>,
    /// List the versions that are kept, and not what it says
    #[arg(long)]
    versions: bool,
}

impl GetArguments {
    /// The one of this name that is in force.
    pub(in crate::command) fn named(kind: ConfigKind, name: Address) -> Self {
        Self { kind, name, app: None, version: None, versions: false }
    }
}

/// The kinds of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigKind {
    #[value(alias = "runtimes", alias = "rt")]
    Runtime,
    #[value(alias = "applications", alias = "app")]
    Application,
    #[value(alias = "services", alias = "svc")]
    Service,
}

/// Lists those in force.
pub(in crate::command) async fn list(
    arguments: &ListArguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let query: Vec<_> = arguments.name.iter().map(|name| ("name", name.clone())).collect();
    let remedy = Some("`pvnctl configs apply PATH` stores some");
    let list = FilteredList { resource: "configs", what: "configs", remedy, query: &query };
    let found = list.ask::<ConfigVersion>(None, client).await?;
    list.print(&found, client, console, table).await
}

/// Prints one.
pub(in crate::command) async fn get(
    arguments: &GetArguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut query = Vec::new();
    let (kind, name) = match arguments.kind {
        ConfigKind::Runtime => ("runtime", arguments.name.to_string()),
        ConfigKind::Application => ("application", arguments.name.to_string()),
        ConfigKind::Service => {
            let typed = ServiceArgument::new(arguments.name.clone(), arguments.app.clone());
            let (service, _) = typed.resolve(client).await?;
            query.push(("application", service.app));
            ("service", service.service)
        }
    };
    query.extend(arguments.version.map(|version| ("version", version.to_string())));
    let stored: StoredConfig = client.get(&["v1", "configs", kind, &name], &query).await?;
    if arguments.versions {
        let versions = Listed { items: stored.versions, unreadable: Vec::new() };
        return console.print_list(&versions, "no versions", table);
    }
    console.print(&stored, |_| stored.text.clone())?;
    if stored.masked {
        console.say("what is secret in it is masked: it cannot be applied as it is here")?;
    }
    if !stored.attachments.is_empty() {
        let files = stored.attachments.join(", ");
        console.say(&format!("it was stored with the files that it names: {files}"))?;
    }
    Ok(())
}

fn table(found: &[ConfigVersion]) -> Table {
    let mut table = Table::new(["KIND", "NAME", "VERSION", "BY", "WHEN"])
        .first_to_go(&["BY", "WHEN", "VERSION", "KIND"]);
    for found in found {
        table.row([
            found.kind.as_str().into(),
            found.output_name().into(),
            found.version.into(),
            found.created_by.as_str().into(),
            when::ago(found.created_at, when::now()).into(),
        ]);
    }
    table
}
