//! `pvnctl runtimes`: what jobs run on.

use clap::Subcommand;
use clap_complete::ArgValueCompleter;
use schema::api::{DocumentReference, EjectedRuntime, Runtime, RuntimeCheck};
use schema::status::CheckStatus;

use super::delete::{self, DeleteArguments};
use crate::address::ScopeArguments;
use crate::client::Client;
use crate::completing;
use crate::console::{Console, yaml};
use crate::failure::Failure;
use crate::table::{Cell, Table, Tone};

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List all runtimes
    #[command(visible_alias = "ls")]
    List,
    /// Show one runtime
    Get {
        /// The runtime, by name or id
        #[arg(add = ArgValueCompleter::new(completing::runtimes))]
        runtime: String,
    },
    /// Print a runtime of a kind that is built in as the `custom` one that it is made to, to go on
    /// from there by hand
    Eject {
        /// The runtime, by name or id
        #[arg(add = ArgValueCompleter::new(completing::runtimes))]
        runtime: String,
    },
    /// Let its applies go on, which were stopped because many fetches or applies failed together
    Resume {
        /// The runtime, by name or id
        runtime: String,
    },
    /// Delete a runtime that nothing is released on
    Delete {
        /// The runtime, by name or id
        #[arg(add = ArgValueCompleter::new(completing::runtimes))]
        runtime: String,
        /// How.
        #[command(flatten)]
        how: DeleteArguments,
    },
    /// Try what its jobs need where they run: connection, rights, namespace, wrapper image, way
    /// back from a Pod; directories and programs on the scheduler's machine; a tool that is built
    /// in, its credentials and what it works on
    Check {
        /// The runtime, by name or id; a Kubernetes runtime is checked for all that run on it
        #[arg(add = ArgValueCompleter::new(completing::runtimes))]
        runtime: String,
        /// By whose jobs a tool is tried; else by some of each.
        #[command(flatten)]
        scope: ScopeArguments,
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
            let runtimes = client.list::<Runtime>(&["v1", "runtimes"], &[], None).await?;
            console.print_list(&runtimes, "no runtimes", table)
        }
        Command::Get { runtime } => {
            let runtime: Runtime = client.get(&["v1", "runtimes", &runtime], &[]).await?;
            console.print_one(&runtime, |paper| paper.table(&table(std::slice::from_ref(&runtime))))
        }
        Command::Eject { runtime } => {
            let ejected: EjectedRuntime =
                client.get(&["v1", "runtimes", &runtime, "custom"], &[]).await?;
            let text = commented(&yaml(&ejected.document)?);
            console.print(&ejected.document, |_| text)
        }
        Command::Resume { runtime } => {
            let path = ["v1", "runtimes", &runtime, "resume"];
            let resumed: Runtime = client.post(&path, &serde_json::json!({})).await?;
            console.done(&resumed, &format!("applies of runtime {} go on", resumed.name))
        }
        Command::Delete { runtime, how } => {
            let kind = "runtime".to_owned();
            let delete = DocumentReference { kind, name: runtime, ..DocumentReference::default() };
            delete::perform(delete, &how, client, console).await
        }
        Command::Check { runtime, scope } => {
            let query = scope.query(client).await?;
            check(&runtime, &query, client, console).await
        }
    }
}

/// What each part of the commands is for, above it.
fn commented(yaml: &str) -> String {
    const PARTS: [(&str, &str); 5] = [
        ("    fetch:", "Is there work to do?"),
        ("    apply:", "Do it."),
        ("    getInfo:", "Show people something."),
        ("    parameters:", "What the services give it; their own blocks fill these as before."),
        ("    proxyRuntime:", "Where the jobs run."),
    ];
    let mut text = "# The commands of a kind of runtime that is built in, written out. Apply this \
                    in its place: nothing changes\n# until you change it. What pvn learns about \
                    the tool later does not reach it any more.\n"
        .to_owned();
    for line in yaml.lines() {
        if let Some((_, comment)) = PARTS.iter().find(|(start, _)| line == *start) {
            text.push_str(&format!("    # {comment}\n"));
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Exit code 2 when something failed.
async fn check(
    runtime: &str,
    query: &[(&str, String)],
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let found: RuntimeCheck =
        client.ask(&["v1", "runtimes", runtime, "check"], query, &serde_json::json!({})).await?;
    console.print(&found, |paper| {
        let mut table =
            Table::new(["RUNTIME", "CHECK", "STATUS", "MESSAGE"]).first_to_go(&["RUNTIME"]);
        for finding in &found.checks {
            let tone = match finding.status {
                CheckStatus::Ok => Tone::Good,
                CheckStatus::Failed => Tone::Bad,
                CheckStatus::Skipped => Tone::Faint,
            };
            let status = Cell::toned(finding.status.as_str(), tone);
            table.row([
                (&finding.runtime).into(),
                finding.check.as_str().into(),
                status,
                finding.message.as_str().into(),
            ]);
        }
        let remedies = found.checks.iter().filter_map(|finding| {
            Some(format!("{}: {}\n", finding.check, finding.remedy.as_ref()?))
        });
        [paper.table(&table), remedies.collect()].concat()
    })?;
    if found.ok { Ok(()) } else { Err(Failure::Ended(2)) }
}

fn table(runtimes: &[Runtime]) -> Table {
    let mut table = Table::new(["NAME", "KIND", "RUNS ON", "LIMIT", "INSTANCES", "LABELS"])
        .first_to_go(&["LIMIT", "RUNS ON", "INSTANCES", "KIND"]);
    for runtime in runtimes {
        // The automatic labels repeat what the other columns say.
        let labels: Vec<_> = runtime
            .labels
            .iter()
            .filter(|(label, _)| !label.starts_with('@'))
            .map(|(label, value)| format!("{label}={value}"))
            .collect();
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
