//! `pvnctl services approve`: shows the plan and asks, and binds the yes to what was shown.

use clap::Args;
use schema::api::{Approval, DecisionRequest, Instance, Service};
use schema::id::ApprovalId;
use schema::status::ApprovalStatus;

use super::decision::{self, Common};
use crate::address::InstancePath;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::one_line;
use crate::when;

const EXAMPLES: &str = "\
Examples:
  pvnctl approve shop/web@production
  pvnctl approve shop/web@production --reason 'checked with the team'
  pvnctl approve shop/web@production --approval apr-… --plan-digest sha256:…
  pvnctl approve shop/web --all-of-release

On a terminal it shows what is asked, with the plan if there is one, and asks.
A yes is for that plan alone: when another one has come meanwhile that is shown,
and it asks again.
Without a terminal there is nobody to ask: name what was looked at with
--approval and --plan-digest, as `pvnctl get services SERVICE` prints them, or
give --yes for what is asked about now. --plan-digest alone does where nothing
else was asked about with the same one before.";

/// How often a plan is shown, each time another one, before it is for the person to look why.
const LOOKS: u32 = 5;

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What is decided on.
    #[command(flatten)]
    common: Common,
    /// Do not ask: yes to what is asked about now
    #[arg(long, short = 'y')]
    yes: bool,
    /// In every channel that waits with the newest release of the service, one after the other
    #[arg(long, conflicts_with_all = ["approval", "plan_digest", "channel"])]
    all_of_release: bool,
}

/// Finds what is asked, asks, and sends the decision.
pub(super) async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let Arguments { common, yes, all_of_release } = arguments;
    if all_of_release {
        return everywhere(&common, yes, client, console).await;
    }
    let Common { instance, reason, approval, plan_digest } = common;
    let instance = instance.resolve(client).await?;
    let request = DecisionRequest { approval, reason, plan_digest, any_plan: false };
    match here(&instance, request, yes, client, console).await {
        Err(Failure::Ended(_)) => Err(Failure::user("nothing was approved")),
        ended => ended,
    }
}

/// Shows what this instance asks, and asks whoever sits at the terminal.
pub(crate) async fn ask(
    instance: &InstancePath,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    match here(instance, DecisionRequest::default(), false, client, console).await {
        Err(Failure::Ended(_)) => Err(Failure::user("nothing was approved")),
        ended => ended,
    }
}

/// Asks about each channel in which the newest release waits for a yes.
async fn everywhere(
    common: &Common,
    yes: bool,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let service = common.instance.resolve_service(client).await?;
    let now: Service = client.get(&service.path(), &[]).await?;
    let name = format!("{}/{}", now.application, now.name);
    let (mut asked, mut declined) = (0, Vec::new());
    for channel in now.channels.iter().filter(|one| one.desired_version == now.version) {
        let path = InstancePath { service: service.clone(), channel: channel.channel.to_string() };
        // A shared approval may have been given with the one before.
        let now: Instance = client.get(&path.own_path(), &[]).await?;
        let is_pending = |approval: &Approval| approval.status == ApprovalStatus::Pending;
        if !now.approvals.iter().any(is_pending) {
            continue;
        }
        asked += 1;
        let request =
            DecisionRequest { reason: common.reason.clone(), ..DecisionRequest::default() };
        match here(&path, request, yes, client, console).await {
            Ok(()) => {}
            Err(Failure::Ended(_)) => declined.push(channel.channel.to_string()),
            Err(failure) => return Err(failure),
        }
    }
    match (asked, declined.is_empty()) {
        (0, _) => Err(Failure::with_next(
            format!("no channel of {name} waits for an approval of its newest release"),
            format!("`pvnctl services get {name}` shows how they stand"),
        )),
        (_, true) => Ok(()),
        (_, false) => {
            Err(Failure::user(format!("nothing was approved in {}", decision::listed(&declined))))
        }
    }
}

/// Finds what is asked in this channel, asks, and sends the decision; where another plan came while
/// somebody looked, shows that and asks again. Ends silently with 1 where somebody says no.
async fn here(
    instance: &InstancePath,
    request: DecisionRequest,
    yes: bool,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    if request.plan_digest.is_some() {
        return decision::send("approve", instance, &request, client, console).await;
    }
    for _ in 1..LOOKS {
        let seen = seen(instance, request.clone(), yes, client, console).await?;
        let sent = decision::send("approve", instance, &seen, client, console).await;
        let Err(Failure::Refused(_)) = &sent else { return sent };
        match news(instance, &request, &seen, client).await {
            Some(news) => console.say(news)?,
            None => return sent,
        }
    }
    let seen = seen(instance, request, yes, client, console).await?;
    decision::send("approve", instance, &seen, client, console).await
}

/// What is new, where there is something to say yes to by now that was not seen.
async fn news(
    instance: &InstancePath,
    request: &DecisionRequest,
    seen: &DecisionRequest,
    client: &Client,
) -> Option<&'static str> {
    let now: Instance = client.get(&instance.own_path(), &[]).await.ok()?;
    let asked = only_one(&now, request.approval.as_deref())?;
    let is_id = |named: &String| named.starts_with(ApprovalId::PREFIX);
    match seen.approval.as_ref().is_some_and(is_id) {
        false => Some("it is asked for just now"),
        true if asked.plan_digest != seen.plan_digest => {
            Some("fetch has found another plan meanwhile")
        }
        true => None,
    }
}

/// The request for what is asked now, if somebody agrees to it.
async fn seen(
    instance: &InstancePath,
    mut request: DecisionRequest,
    yes: bool,
    client: &Client,
    console: &mut Console,
) -> Result<DecisionRequest, Failure> {
    let now: Instance = client.get(&instance.own_path(), &[]).await?;
    // Of none or two the server says what is wrong.
    if let Some(asked) = only_one(&now, request.approval.as_deref()) {
        let others = decision::others(instance, request.approval.as_deref(), client).await;
        if !yes && !agreed(instance, &now, &others, asked, request.approval.as_deref(), console)? {
            return Err(Failure::Ended(1));
        }
        request.approval = Some(asked.id.to_string());
        request.plan_digest.clone_from(&asked.plan_digest);
    }
    Ok(request)
}

/// The approval that is meant, if that is clear.
fn only_one<'a>(now: &'a Instance, named: Option<&str>) -> Option<&'a Approval> {
    let is_named = |approval: &&Approval| {
        named.is_none_or(|name| {
            approval.id.to_string() == name || approval.name.as_deref() == Some(name)
        })
    };
    let mut pending = now
        .approvals
        .iter()
        .filter(|approval| approval.status == ApprovalStatus::Pending)
        .filter(is_named);
    pending.next().filter(|_| pending.next().is_none())
}

/// Shows what is asked, and asks. Where there is no plan, its id names all that there is to see.
fn agreed(
    instance: &InstancePath,
    now: &Instance,
    others: &[String],
    asked: &Approval,
    named: Option<&str>,
    console: &mut Console,
) -> Result<bool, Failure> {
    if asked.plan_digest.is_none() && named.is_some_and(|name| name == asked.id.to_string()) {
        return Ok(true);
    }
    if !console.can_ask() {
        let [command, _] = decision::commands(
            &instance.service.app,
            &instance.service.service,
            &instance.channel,
            asked,
        );
        return Err(Failure::with_next(
            "refusing to approve: there is no terminal to show the plan on",
            format!(
                "look at it with `pvnctl services get {} --app {}`, then `{command}`; --yes \
                 approves whatever is asked about now",
                instance.service.service, instance.service.app
            ),
        ));
    }
    let name =
        asked.name.as_ref().map_or_else(String::new, |name| format!(" `{}`", one_line(name)));
    let version =
        now.desired_version.as_deref().map_or_else(String::new, |version| format!(" of {version}"));
    let since = when::ago(asked.requested_at, when::now());
    console.say(&format!("{} asks for approval{name}{version}, since {since}:", instance.say()))?;
    if asked.explanation.is_none() {
        console.say(&one_line(&instance.named().text(&now.message)))?;
    }
    let colour = console.colours_stderr();
    console.talk(&decision::asked(asked, colour))?;
    if !others.is_empty() {
        let quoted: Vec<_> = others.iter().map(|other| format!("`{other}`")).collect();
        let (name, names) =
            (one_line(asked.name.as_deref().unwrap_or_default()), decision::listed(&quoted));
        console.say(&format!(
            "`{name}` is shared: a yes also lets {names} go, where nothing else holds it back"
        ))?;
    }
    console.ask("Approve this?")
}
