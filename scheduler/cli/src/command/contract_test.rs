//! `pvnctl contract-test`: runs the commands of a directory's runtimes against what pvn expects of
//! them, with a scheduler of its own that ends with it.

mod daemon;
mod trial;

use std::path::PathBuf;

use clap::Args;
use schema::schedule::Duration;
use schema::status::CheckStatus;
use serde::Serialize;

use crate::client::Listed;
use crate::console::Console;
use crate::failure::Failure;
use crate::output_name::OutputName;
use crate::table::{Cell, Table, Tone};
use daemon::TrialDaemon;
use trial::Trial;

const EXAMPLES: &str = "\
Examples:
  pvnctl contract-test deploy/
  pvnctl contract-test deploy/ --disturb 'rm -rf out'    with work for each trial

It does what `pvn-scheduler dev DIR` does, so the commands change the world as
they always do, and it says yes to every approval: give it a directory whose
targets are for trying out. --disturb is run in DIR before a trial and makes
that there is work; without it what needs work is left out where fetch finds
none.

Checks, for each service in each release channel:
  fetchBefore   the first fetch answers, 0 or 2 (or objects)
  apply         an apply succeeds
  fetchAfter    what was applied is found as desired
  fetchLooks    two fetches in a row find the same: it changes nothing
  version       a structured fetch tells the version that was applied
  applyAgain    another apply succeeds, over what the first one made
  killed        an apply killed in the middle is made good by the next one

Exit codes:
  0  nothing failed          2  something failed          1  any error";

/// Most services that are tried: a directory of a runtime that is being written has one or two.
const SERVICES_LIMIT: usize = 8;

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Directory with the config files
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Value of a parameter; everything after the first `=` is the value
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Run by `sh -c` in DIR before a trial, so that there is work to do
    #[arg(long, value_name = "COMMAND")]
    disturb: Option<String>,
    /// Longest wait for one trial
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    timeout: Duration,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ContractFinding {
    /// The service in its channel, as people type it.
    instance: String,
    check: &'static str,
    status: CheckStatus,
    message: String,
}

impl OutputName for ContractFinding {
    fn output_name(&self) -> String {
        format!("{} {} {}", self.instance, self.check, self.status)
    }
}

/// Runs all of it and prints the report.
///
/// # Errors
/// No scheduler to be found, configs that it refuses; exit code 2 when a check failed.
pub async fn perform(arguments: &Arguments, console: &mut Console) -> Result<(), Failure> {
    let mut daemon = TrialDaemon::start(&arguments.dir, &arguments.params).await?;
    let tried = tried(arguments, &mut daemon, console).await;
    daemon.stop().await;
    let findings = tried?;
    let failed = findings.iter().filter(|found| found.status == CheckStatus::Failed).count();
    let list = Listed { items: findings, unreadable: Vec::new() };
    console.print_list(&list, "nothing was tried", table)?;
    match failed {
        0 => Ok(()),
        failed => Err(Failure::with_next(
            format!("{failed} of {} checks failed", list.items.len()),
            "mend the commands; `pvn-scheduler dev DIR` shows what they print",
        )
        .ending_with(2)),
    }
}

async fn tried(
    arguments: &Arguments,
    daemon: &mut TrialDaemon,
    console: &mut Console,
) -> Result<Vec<ContractFinding>, Failure> {
    let services = daemon.services(SERVICES_LIMIT + 1).await?;
    let client = &daemon.client;
    if services.is_empty() {
        return Err(Failure::with_next(
            format!("{} has no service", arguments.dir.display()),
            "a runtime is tried by a service; add one, or begin with `pvnctl init`",
        ));
    }
    if services.len() > SERVICES_LIMIT {
        console.say(&format!("only the first {SERVICES_LIMIT} services are tried"))?;
    }
    let mut findings = Vec::new();
    for service in services.iter().take(SERVICES_LIMIT) {
        let within = std::time::Duration::from_millis(arguments.timeout.as_ms().unsigned_abs());
        let disturb = arguments.disturb.as_deref().map(|command| (command, &*arguments.dir));
        let trial = Trial::of(service, client, within, disturb);
        findings.extend(trial.run(console).await?);
    }
    Ok(findings)
}

fn table(findings: &[ContractFinding]) -> Table {
    let mut table = Table::new(["INSTANCE", "CHECK", "STATUS", "MESSAGE"]);
    for found in findings {
        let tone = match found.status {
            CheckStatus::Ok => Tone::Good,
            CheckStatus::Failed => Tone::Bad,
            CheckStatus::Skipped => Tone::Faint,
        };
        table.row([
            found.instance.as_str().into(),
            found.check.into(),
            Cell::toned(found.status.to_string(), tone),
            found.message.as_str().into(),
        ]);
    }
    table
}
