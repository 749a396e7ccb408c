//! `pvnctl runtimes`: what jobs run on.

use clap::Subcommand;
use schema::api::Runtime;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::Table;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List all runtimes
    List,
    /// Show one runtime
    Get {
        /// The runtime, by name or id
        runtime: String,
    },
}

/// Does it.
///
/// # Errors
/// What the server says.
pub async fn perform(command: Command, client: &Client, console: &mut Console) -> Result<(), Failure> {
    match command {
        Command::List => {
            let runtimes = client.list::<Runtime>(&["v1", "runtimes"], &[], None).await?;
            console.print_list(&runtimes, "no runtimes", table)
        }
        Command::Get { runtime } => {
            let runtime: Runtime = client.get(&["v1", "runtimes", &runtime], &[]).await?;
            console.print(&runtime, |paper| paper.table(&table(std::slice::from_ref(&runtime))))
        }
    }
}

fn table(runtimes: &[Runtime]) -> Table {
    let mut table = Table::new(["NAME", "KIND", "RUNS ON", "LIMIT", "INSTANCES", "LABELS"]);
    for runtime in runtimes {
        // The automatic labels repeat what the other columns say.
        let labels: Vec<_> =
            runtime.labels.iter().filter(|(label, _)| !label.starts_with('@')).map(|(label, value)| format!("{label}={value}")).collect();
        table.row([
            (&runtime.name).into(),
            runtime.kind.as_str().into(),
            runtime.proxy_runtime.as_ref().map(ToString::to_string).unwrap_or_default().into(),
            runtime.max_concurrency.map(|limit| limit.to_string()).unwrap_or_default().into(),
            runtime.instances.into(),
            labels.join(" ").into(),
        ]);
    }
    table
}
