//! `pvnctl services push`.

use clap::Args;
use schema::api::{ChannelPreview, ParameterChange, PushRequest, Pushed};

use crate::address::{ServiceArgument, ServicePath};
use crate::args::{Params, WaitArguments, listed_name};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::short;
use crate::table::Table;
use crate::wait::{self, Goal};

const EXAMPLES: &str = "\
Examples:
  pvnctl push shop/web
  pvnctl push shop/web --param image=v2 --param-for-channel eu:replicas=3
  pvnctl push shop/web@staging --wait --timeout 10m
  pvnctl push shop/web --param image=v2 --dry-run      what would change, and what holds it up

Parameters that are not given keep the last release's value, else their default.
After a rollback of some channels the others keep what they have: the values
that they last began to apply or were converged at, not those that they wait
for. With --wait it ends as `services wait` does: 0 converged, 2 FAILED,
3 timeout, 1 anything else.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("timeout", |timeout| timeout.requires("wait")))]
pub struct Arguments {
    /// Which service.
    #[command(flatten)]
    service: ServiceArgument,
    /// With which values.
    #[command(flatten)]
    params: Params,
    /// Only these release channels, separated by commas [default: all]
    #[arg(long, value_name = "CHANNELS", value_delimiter = ',', value_parser = listed_name)]
    channels: Option<Vec<String>>,
    /// Show what would change in each channel, and release nothing
    #[arg(long, short = 'n', conflicts_with = "wait")]
    dry_run: bool,
    /// Wait until the release has converged
    #[arg(long, short)]
    wait: bool,
    /// How long.
    #[command(flatten)]
    patience: WaitArguments,
}

/// Makes the release, and waits for it.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let channels = arguments.channels.as_ref();
    let (service, channels) =
        arguments.service.with_channels("--channels", channels, client).await?;
    let request = PushRequest {
        params: arguments.params.for_all()?,
        params_for_channel: arguments.params.by_channel()?,
        channels: channels.clone(),
        dry_run: arguments.dry_run,
        ..PushRequest::default()
    };
    let mut path = service.path();
    path.push("push");
    if arguments.dry_run {
        let previewed: Pushed = client.ask(&path, &[], &request).await?;
        return show(&previewed, console);
    }
    let pushed: Pushed = client.post(&path, &request).await?;
    released(
        &service,
        channels,
        &pushed,
        arguments.wait.then_some(&arguments.patience),
        client,
        console,
    )
    .await
}

/// Prints what a release would change.
fn show(previewed: &Pushed, console: &mut Console) -> Result<(), Failure> {
    console.print(previewed, |paper| {
        let header = ["CHANNEL", "FROM", "TO", "CHANGES", "NEXT", "HELD UP BY"];
        let mut table = Table::new(header).first_to_go(&["FROM"]);
        for one in &previewed.preview {
            table.row([
                (&one.channel).into(),
                one.before.as_deref().unwrap_or("nothing").into(),
                previewed.version.as_str().into(),
                changes(one).into(),
                short::sentence(&one.next).into(),
                short::sentence(&one.waits_for.join("; ")).into(),
            ]);
        }
        paper.table(&table)
    })?;
    for warning in &previewed.warnings {
        console.say(&format!("warning: {warning}"))?;
    }
    console.say("a dry run: nothing was released")
}

/// What would be another value, and which commands the config makes other ones. That there is none
/// is said too: whoever looks wants to know.
fn changes(one: &ChannelPreview) -> String {
    let of_config =
        (!one.commands.is_empty()).then(|| format!("by config: {}", one.commands.join(", ")));
    let changes: Vec<_> = one.params.iter().map(change).chain(of_config).collect();
    match (changes.is_empty(), &one.before) {
        (true, Some(_)) => "nothing but the version".to_owned(),
        (true, None) => "the first release".to_owned(),
        (false, _) => changes.join(", "),
    }
}

/// `image: v1 -> v2`; with the version that has it already, where this push does not give it.
fn change(change: &ParameterChange) -> String {
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "default".to_owned());
    let kept = change.kept_from.as_ref();
    let kept = kept.map_or_else(String::new, |version| format!(" (as in {version})"));
    format!("{}: {} -> {}{kept}", change.name, said(&change.before), said(&change.after))
}

/// Prints the release made, and waits for it when asked to.
pub(super) async fn released(
    service: &ServicePath,
    channels: Option<Vec<String>>,
    pushed: &Pushed,
    wait: Option<&WaitArguments>,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    if wait.is_some() {
        console.go_on_unread();
    }
    let told = tell(pushed, console);
    told.map_err(|failure| {
        failure.after(|| format!("{} is released all the same", pushed.version))
    })?;
    let Some(patience) = wait else { return Ok(()) };
    let goal = Goal {
        channels,
        ..Goal::of_made(&service.app, &service.service, pushed.release, &pushed.version)
    };
    wait::until_converged(client, vec![goal], patience.duration(), console).await
}

fn tell(pushed: &Pushed, console: &mut Console) -> Result<(), Failure> {
    console.print(pushed, |_| {
        let release = short::id(&pushed.release.to_string());
        format!("released {} as {release}\n", pushed.version)
    })?;
    for warning in &pushed.warnings {
        console.say(&format!("warning: {warning}"))?;
    }
    console.flush()
}
