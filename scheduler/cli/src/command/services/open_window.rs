//! `pvnctl services open-window`.

use clap::Args;
use schema::api::{Instance, OpenWindowRequest};
use schema::schedule::Duration;

use crate::address::{ChannelArgument, InstancePath};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::short;

const EXAMPLES: &str = "\
Examples:
  pvnctl open-window shop/web@production --reason 'INC-311: checkout is down'
  pvnctl open-window shop/web@production --reason 'INC-311' --for 3h --yes
  pvnctl open-window shop/web@production --end

It is for the version that is wanted now, and ends at its time, once that version has arrived, or \
                        with another release. Approvals, preconditions, pauses and limits count \
                        as ever. It needs the role break-glass or admin.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    instance: ChannelArgument,
    /// Why it cannot wait: in the audit log, and told to whoever looks
    #[arg(
        long,
        short,
        value_name = "TEXT",
        required_unless_present = "end",
        conflicts_with = "end"
    )]
    reason: Option<String>,
    /// For how long: 24h at most [default: 1h]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "end")]
    time: Option<Duration>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// End it instead: the window counts again
    #[arg(long)]
    end: bool,
}

/// Shows what would start, asks, and sends it.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let instance = arguments.instance.resolve(client).await?;
    if arguments.end {
        let request = OpenWindowRequest { end: true, ..OpenWindowRequest::default() };
        let now = send(&request, &instance, client).await?;
        return told(&now, "the apply window counts again", &instance, console);
    }
    let shown: Instance = client.get(&instance.own_path(), &[]).await?;
    if !arguments.yes && !agrees(&shown, &instance, console)? {
        return Err(Failure::user("nothing was done"));
    }
    let request = OpenWindowRequest {
        version: shown.desired_version,
        reason: arguments.reason.clone(),
        for_seconds: arguments
            .time
            .map(|time| u64::try_from(time.as_ms()).unwrap_or(0).div_ceil(1_000)),
        end: false,
    };
    let now = send(&request, &instance, client).await?;
    let until = now.window_lift.as_ref().map_or_else(String::new, |lift| lift.until.to_string());
    told(&now, &format!("the apply window is lifted until {until}"), &instance, console)
}

/// Whether whoever is at the terminal wants that.
fn agrees(
    shown: &Instance,
    instance: &InstancePath,
    console: &mut Console,
) -> Result<bool, Failure> {
    if !console.can_ask() {
        return Err(Failure::with_next(
            "refusing to open a window: there is no terminal to ask on",
            "give --yes to do it without asking",
        ));
    }
    let version = shown.desired_version.as_deref().unwrap_or("nothing yet");
    let message = instance.named().text(&shown.message);
    console.say(&format!(
        "{} is to be {version}, and is {}: {message}",
        instance.say(),
        shown.status
    ))?;
    console.ask(&format!("Let {version} start outside its window?"))
}

async fn send(
    request: &OpenWindowRequest,
    instance: &InstancePath,
    client: &Client,
) -> Result<Instance, Failure> {
    client.post(&instance.path("open-window"), request).await
}

fn told(
    now: &Instance,
    done: &str,
    instance: &InstancePath,
    console: &mut Console,
) -> Result<(), Failure> {
    let message = short::sentence(&instance.named().text(&now.message)).to_string();
    console.done(now, &format!("{done}: {}; it is {}: {message}", instance.say(), now.status))
}
