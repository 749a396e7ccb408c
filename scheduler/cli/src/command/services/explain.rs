//! `pvnctl services explain`.

use clap::Args;
use schema::api::Explanation;

use super::ill;
use crate::args::ChannelArgument;
use crate::client::Client;
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::table::{Table, one_line};
use crate::when;

/// What can be typed.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Which instance.
    #[command(flatten)]
    instance: ChannelArgument,
}

/// Prints the chain of causes.
pub(super) async fn perform(arguments: &Arguments, client: &Client, console: &mut Console) -> Result<(), Failure> {
    let explanation: Explanation = client.get(&arguments.instance.path("explain"), &[]).await?;
    console.print(&explanation, |paper| page(&arguments.instance, &explanation, paper))?;
    ill::note(client, console).await
}

/// The commands that are told in backticks and that a terminal, which breaks a table where its width ends, does not show whole.
fn broken<'a>(told: &'a [String], shown: &str) -> Vec<&'a str> {
    let mut commands: Vec<&str> = Vec::new();
    let quoted = told.iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    for command in quoted.filter(|quoted| quoted.starts_with("pvnctl ") && !shown.contains(quoted)) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

fn page(instance: &ChannelArgument, explanation: &Explanation, paper: &Paper) -> String {
    let now = when::now();
    let reason = explanation.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let mut text = paper.heading(&format!("{} is {}{reason}", instance.say(), explanation.status));
    if !explanation.message.is_empty() {
        text += &format!("{}\n", one_line(&explanation.message));
    }
    if !explanation.causes.is_empty() {
        let mut causes = Table::new(["BECAUSE", "", "SINCE", "UNTIL"]);
        for cause in &explanation.causes {
            causes.row([
                cause.code.as_str().into(),
                cause.message.as_str().into(),
                cause.since.map(|since| when::ago(since, now)).unwrap_or_default().into(),
                cause.until.map(|until| when::until(until, now)).unwrap_or_default().into(),
            ]);
        }
        let causes = paper.table(&causes);
        let told: Vec<String> = explanation.causes.iter().map(|cause| one_line(&cause.message)).collect();
        let broken = broken(&told, &causes);
        text += &format!("\n{causes}");
        if !broken.is_empty() {
            text += &format!("\n{}", paper.heading("COMMANDS"));
            for command in broken {
                text += &format!("  {command}\n");
            }
        }
    }
    if explanation.next.is_empty() {
        return text + "\nnothing happens next by itself\n";
    }
    let mut next = Table::new(["NEXT", "WHEN", "AT"]);
    for action in &explanation.next {
        next.row([action.action.as_str().into(), when::until(action.at, now).into(), action.at.into()]);
    }
    text + "\n" + &paper.table(&next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_the_width_breaks_stands_once_more_and_whole() {
        let told = "`eu` is not converged; `pvnctl services push web --app shop --channels eu,us` releases to both; `pvnctl jobs list` too";
        let told = vec![told.to_owned(), told.to_owned()];
        let mut table = Table::new(["BECAUSE", ""]);
        for message in &told {
            table.row(["UPSTREAM_UNSTABLE".into(), message.as_str().into()]);
        }
        assert_eq!(broken(&told, &table.render(Some(60), false)), ["pvnctl services push web --app shop --channels eu,us"]);
        assert!(broken(&told, &table.render(None, false)).is_empty());
    }
}
