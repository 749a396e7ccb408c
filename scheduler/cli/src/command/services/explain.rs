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
        text += &format!("\n{}", paper.table(&causes));
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
