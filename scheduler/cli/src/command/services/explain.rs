//! `pvnctl services explain`.

use clap::Args;
use schema::api::Explanation;
use schema::cause::CauseCode;

use super::ill;
use crate::address::{ChannelArgument, InstancePath};
use crate::client::Client;
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::short;
use crate::table::{Table, one_line};
use crate::typed::Typed;
use crate::when;

/// What can be typed.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Which instance.
    #[command(flatten)]
    instance: ChannelArgument,
}

/// Prints the chain of causes.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let instance = arguments.instance.resolve(client).await?;
    show(&instance, client, console).await
}

/// The same of an instance that is known.
pub(crate) async fn show(
    instance: &InstancePath,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let explanation: Explanation = client.get(&instance.path("explain"), &[]).await?;
    console.print(&explanation, |paper| page(instance, &explanation, paper))?;
    ill::note(client, console).await
}

/// The commands that are told in backticks, as people can copy them: those that name no instance
/// are about this one. Left out are those that stand whole in what is `shown`; a terminal breaks a
/// table where its width ends.
fn commands(told: &[String], shown: &str, instance: &InstancePath, typed: &Typed) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let quoted = told.iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    for quoted in quoted.filter(|quoted| quoted.starts_with("pvnctl ")) {
        let as_it_stands =
            || Some(typed.command(quoted)).filter(|command| !shown.contains(command));
        let command = instance
            .named()
            .command(quoted)
            .map(|command| typed.command(&command))
            .or_else(as_it_stands);
        commands.extend(command.filter(|command| !commands.contains(command)));
    }
    commands
}

/// The chain, for people.
pub(crate) fn page(instance: &InstancePath, explanation: &Explanation, paper: &Paper) -> String {
    let now = when::now();
    let reason = explanation.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let mut text = paper.heading(&format!("{} is {}{reason}", instance.say(), explanation.status));
    if !explanation.message.is_empty() {
        text += &paper.prose(&short::sentence(&one_line(&explanation.message)));
    }
    if !explanation.causes.is_empty() {
        let mut causes =
            Table::new(["BECAUSE", "SINCE", "UNTIL", ""]).first_to_go(&["UNTIL", "SINCE"]);
        for cause in &explanation.causes {
            causes.row([
                cause.code.as_str().into(),
                cause.since.map(|since| when::ago(since, now)).unwrap_or_default().into(),
                cause.until.map(|until| when::until(until, now)).unwrap_or_default().into(),
                short::sentence(&cause.message).into(),
            ]);
        }
        let causes = paper.table(&causes);
        let causes_told = explanation.causes.iter().map(|cause| &cause.message);
        let told: Vec<String> = std::iter::once(&explanation.message)
            .chain(causes_told)
            .map(|told| short::sentence(&one_line(told)))
            .collect();
        text += &format!("\n{causes}");
        let commands = commands(&told, &text, instance, &paper.typed);
        if !commands.is_empty() {
            text += &format!("\n{}", paper.heading("COMMANDS"));
            for command in commands {
                text += &format!("  {command}\n");
            }
        }
    }
    if explanation.next.is_empty() {
        let runs = explanation.causes.iter().any(|cause| {
            matches!(
                cause.code,
                CauseCode::JobWaits
                    | CauseCode::JobStarting
                    | CauseCode::JobRunning
                    | CauseCode::JobStopping
            )
        });
        return text
            + if runs {
                "\nthe next thing to happen is the end of this job\n"
            } else {
                "\nnothing happens next by itself\n"
            };
    }
    let mut next = Table::new(["NEXT", "WHEN", "AT"]).first_to_go(&["AT"]);
    for action in &explanation.next {
        next.row([
            action.action.as_str().into(),
            when::until(action.at, now).into(),
            when::on_the_wall(action.at).into(),
        ]);
    }
    text + "\n" + &paper.table(&next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(width: Option<u16>, told: &str, expected: &[&str]) {
        let service =
            crate::address::ServicePath { service: "web".to_owned(), app: "shop".to_owned() };
        let instance = InstancePath { service, channel: "eu".to_owned() };
        let mut table = Table::new(["BECAUSE", ""]);
        let told = vec![told.to_owned(), told.to_owned()];
        for message in &told {
            table.row(["UPSTREAM_UNSTABLE".into(), message.as_str().into()]);
        }
        let typed = Typed::default();
        let shown = table.typed_as(&typed).render(width, false);
        assert_eq!(commands(&told, &shown, &instance, &typed), expected);
    }

    #[test]
    fn a_command_that_the_width_breaks_stands_once_more_and_whole() {
        let told = "`eu` is not converged; `pvnctl services push web --app shop --channels eu,us` \
                    releases to both; `pvnctl jobs list` too";
        check(Some(60), told, &["pvnctl services push shop/web --channels eu,us"]);
        check(None, told, &[]);
    }

    #[test]
    fn a_command_that_names_no_instance_stands_once_more_with_the_names() {
        check(
            None,
            "a new release or `pvnctl services retry` asks anew",
            &["pvnctl services retry shop/web@eu"],
        );
        let gone = "a release (`pvnctl services rollback --to web-3`, or `pvnctl services push`) \
                    brings it back";
        check(
            Some(60),
            gone,
            &[
                "pvnctl services rollback shop/web@eu --to web-3",
                "pvnctl services push shop/web@eu",
            ],
        );
        check(
            None,
            "`pvnctl services resume web --app shop --channel eu` and `pvnctl services explain`",
            &[],
        );
    }
}
