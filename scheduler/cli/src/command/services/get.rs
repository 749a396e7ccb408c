//! `pvnctl services get`.

use clap::Args;
use schema::api::{Approval, ApprovalVote, Instance, Service};
use schema::output::{ObjectStatus, RuntimeObject};
use schema::status::ApprovalStatus;

use super::{decision, ill};
use crate::address::{ServiceArgument, ServicePath};
use crate::client::Client;
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::named::told;
use crate::short;
use crate::table::{self, Cell, Table, Tone, harmless, one_line};
use crate::when;

/// What can be typed.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Which service.
    #[command(flatten)]
    pub service: ServiceArgument,
}

/// Prints the service.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let (path, channel) = arguments.service.resolve(client).await?;
    let service = find(&path, channel.as_deref(), client).await?;
    console.print_one(&service, |paper| page(&service, paper))?;
    ill::note(client, console).await
}

/// The service as it is now, with this channel of it alone where one is named.
pub(crate) async fn find(
    path: &ServicePath,
    channel: Option<&str>,
    client: &Client,
) -> Result<Service, Failure> {
    let mut service: Service = client.get(&path.path(), &[]).await?;
    if let Some(channel) = channel {
        only(&mut service, channel)?;
    }
    Ok(service)
}

/// Leaves one channel of the service.
fn only(service: &mut Service, channel: &str) -> Result<(), Failure> {
    let known: Vec<_> = service.channels.iter().map(|of| of.channel.to_string()).collect();
    let is_meant =
        |of: &Instance| of.channel.as_str() == channel || of.channel_id.to_string() == channel;
    service.channels.retain(is_meant);
    if service.channels.is_empty() {
        return Err(Failure::with_next(
            format!("{}/{} has no release channel `{channel}`", service.application, service.name),
            format!("it has {}", known.join(", ")),
        ));
    }
    Ok(())
}

/// All of it, for people.
pub(crate) fn page(service: &Service, paper: &Paper) -> String {
    let version = service
        .version
        .as_ref()
        .map_or_else(|| "no release yet".to_owned(), |version| format!("version {version}"));
    let mut text = paper.heading(&format!("{}/{}, {version}", service.application, service.name));
    text += &paper.table(&channels(service));
    for instance in &service.channels {
        text += &objects(instance, paper);
        for info in &instance.info {
            text += &format!(
                "\n{}",
                paper.heading(&format!("{} in {}", harmless(&info.name), instance.channel))
            );
            text += &format!("{}\n", harmless(info.text.trim_end()));
        }
        for approval in
            instance.approvals.iter().filter(|approval| approval.status == ApprovalStatus::Pending)
        {
            text += &pending(service, instance, approval, paper);
        }
        text += &decided(instance);
    }
    text
}

fn channels(service: &Service) -> Table {
    let now = when::now();
    let mut table = Table::new([
        "CHANNEL", "RUNTIME", "STATUS", "REASON", "VERSION", "SINCE", "NEXT", "MESSAGE",
    ])
    .first_to_go(&["RUNTIME", "NEXT", "SINCE", "REASON", "VERSION"]);
    for instance in &service.channels {
        table.row([
            (&instance.channel).into(),
            (&instance.runtime).into(),
            table::status(instance.status),
            instance.reason.map(|reason| reason.to_string()).unwrap_or_default().into(),
            instance.desired_version.as_deref().unwrap_or_default().into(),
            when::ago(instance.since, now).into(),
            instance.next_action_at.map(|at| when::until(at, now)).unwrap_or_default().into(),
            short::sentence(&told(service, instance)).into(),
        ]);
    }
    table
}

fn objects(instance: &Instance, paper: &Paper) -> String {
    if instance.objects.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["OBJECT", "TYPE", "STATUS", "VERSIONS", "LINKS", "MESSAGE"])
        .first_to_go(&["TYPE"]);
    for object in &instance.objects {
        let links: Vec<_> = object.external_links.iter().map(|link| link.url.clone()).collect();
        table.row([
            object.name.as_str().into(),
            object.object_type.as_str().into(),
            match object.status {
                ObjectStatus::Pending => Cell::toned("PENDING", Tone::Busy),
                ObjectStatus::Succeeded => Cell::toned("SUCCEEDED", Tone::Good),
                ObjectStatus::Failed => Cell::toned("FAILED", Tone::Bad),
            },
            versions(object).into(),
            links.join(" ").into(),
            object.message.as_str().into(),
        ]);
    }
    format!(
        "\n{}{}",
        paper.heading(&format!("objects in {}", instance.channel)),
        paper.table(&table)
    )
}

/// Versions in short: `web-3 2/3, web-2 (inactive), ? drifted`.
fn versions(object: &RuntimeObject) -> String {
    let one = |version: &schema::output::ObjectVersion| {
        let mut text =
            if version.version.is_empty() { "?".to_owned() } else { version.version.clone() };
        if let (Some(available), Some(target)) =
            (version.available_replicas, version.target_replicas.or(version.replicas))
        {
            text += &format!(" {available}/{target}");
        }
        if !version.active {
            text += " (inactive)";
        }
        if version.drifted {
            text += " drifted";
        }
        text
    };
    object.versions.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn pending(service: &Service, instance: &Instance, approval: &Approval, paper: &Paper) -> String {
    let name =
        approval.name.as_ref().map(|name| format!(" `{}`", one_line(name))).unwrap_or_default();
    let since = when::ago(approval.requested_at, when::now());
    let said = format!("{} of {} said yes", decision::yes(approval), approval.needed);
    let text = format!(
        "\n{}{}",
        paper.heading(&format!(
            "{} asks for approval{name}, since {since}: {said}",
            instance.channel
        )),
        decision::asked(approval, paper.colour)
    );
    let commands = decision::commands(
        service.application.as_str(),
        service.name.as_str(),
        instance.channel.as_str(),
        approval,
    );
    let [approve, reject] = commands.map(|command| paper.typed.command(&command));
    text + &format!("approve it: {approve}\nreject it:  {reject}\n")
}

/// The newest approval when it was decided: by whom, and on which plan.
fn decided(instance: &Instance) -> String {
    let newest = instance.approvals.first();
    let Some(approval) = newest.filter(|approval| {
        matches!(approval.status, ApprovalStatus::Approved | ApprovalStatus::Rejected)
    }) else {
        return String::new();
    };
    let now = when::now();
    let said = |vote: &ApprovalVote| {
        let why =
            vote.reason.as_ref().map_or_else(String::new, |why| format!(" ({})", one_line(why)));
        format!("{} {} ago{why}", one_line(&vote.who), when::ago(vote.when, now))
    };
    let by: Vec<_> = approval.by.iter().map(said).collect();
    let other = approval
        .version
        .as_ref()
        .filter(|version| instance.desired_version.as_ref().is_some_and(|now| now != *version));
    let other = other.map_or_else(String::new, |version| {
        let now = instance.desired_version.as_deref().unwrap_or_default();
        format!(" for {}, not for {},", one_line(version), one_line(now))
    });
    format!(
        "\n{}{other} in {} is {} by {}\n",
        decision::describe(approval),
        instance.channel,
        approval.status,
        by.join(", ")
    )
}
