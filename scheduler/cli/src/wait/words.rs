//! How a wait ends, in words: what failed, what took whose place, what was still open, and what to
//! do next.

use std::time::Duration;

use schema::api::{Instance, Release, Service};
use schema::status::Status;

use super::goal::{FailedIn, Goal};
use crate::client::Client;
use crate::failure::Failure;
use crate::named::told;
use crate::when;

/// That nobody waits for a channel any more.
pub(super) fn gone(service: &Service, channel: &str) -> String {
    let Service { application, name, .. } = service;
    format!(
        "{application}/{name} in {channel}: a config took the release channel away; it is not \
         waited for any more"
    )
}

/// That these channels have failed.
pub(super) fn failed(service: &Service, channels: &[FailedIn]) -> Failure {
    let said: Vec<_> = channels
        .iter()
        .map(|failed| match &failed.taken_back {
            Some(words) => format!(
                "{} FAILED: {words}, because it did not converge within its progress deadline",
                failed.channel
            ),
            None => {
                let instance = service
                    .channels
                    .iter()
                    .find(|instance| instance.channel.as_str() == failed.channel);
                let reason = instance
                    .and_then(|instance| instance.reason)
                    .map(|reason| format!(" ({reason})"))
                    .unwrap_or_default();
                format!(
                    "{} FAILED{reason}: {}",
                    failed.channel,
                    instance.map_or_else(String::new, |instance| told(service, instance))
                )
            }
        })
        .collect();
    let Service { application, name, .. } = service;
    let channel = channels.first().map_or("", |failed| failed.channel.as_str());
    let next = format!(
        "see `pvnctl services explain {name} --app {application} --channel {channel}`, and the \
         output with `pvnctl jobs list --app {application} --service {name}` and `pvnctl jobs \
         logs ID`",
    );
    Failure::with_next(format!("{application}/{name} in {}", said.join("; ")), next).ending_with(2)
}

/// What to say when the release that is waited for FAILED before another one took its place:
/// somebody may be faster than the next look. `None` when it did not, and when nobody can tell.
pub(super) async fn failed_before(
    client: &Client,
    goal: &Goal,
    service: &Service,
) -> Option<Failure> {
    let pursued = goal.pursued.as_ref()?;
    let release =
        async |id: String| client.get::<Release>(&["v1", "releases", &id], &[]).await.ok();
    let made = release(pursued.release.to_string()).await?;
    let has_failed = |instance: &&Instance| {
        let mut channels = made.channels.iter();
        channels
            .any(|channel| channel.channel == instance.channel && channel.status == Status::Failed)
    };
    let is_replaced =
        |instance: &&Instance| instance.release.is_some_and(|release| release != pursued.release);
    let failed: Vec<&Instance> =
        goal.wanted(service).filter(is_replaced).filter(has_failed).collect();
    let next = release(failed.first()?.release?.to_string()).await?;
    let of_next = failed.iter().filter(|instance| instance.release == Some(next.release));
    let channels: Vec<&str> = of_next.map(|instance| instance.channel.as_str()).collect();
    let Service { application, name, .. } = service;
    let message = format!(
        "{} of {application}/{name} FAILED in {} and was replaced by {}, which {} released",
        made.version,
        channels.join(", "),
        next.version,
        next.by
    );
    let next = format!(
        "see what became of it with `pvnctl jobs list --app {application} --service {name}` and \
         `pvnctl jobs logs ID`"
    );
    Some(Failure::with_next(message, next).ending_with(2))
}

/// That the timeout came, and nobody knows how it stands: the server does not answer, `any more`
/// where it did once.
pub(super) fn silent(client: &Client, timeout: Duration, any_more: bool) -> Failure {
    let any_more = if any_more { " any more" } else { "" };
    Failure::with_next(
        format!(
            "timeout after {}: {} does not answer{any_more}",
            when::duration(timeout),
            client.server()
        ),
        "look at the scheduler; what it was doing goes on when it is back",
    )
    .ending_with(3)
}

/// The channels of a goal that are still open, each in words with what it waits for.
pub fn open(goal: &Goal, service: &Service) -> Vec<String> {
    let said = |instance: &Instance| {
        format!(
            "{}/{} in {} is {}: {}",
            service.application,
            service.name,
            instance.channel,
            instance.status,
            told(service, instance)
        )
    };
    still_open(goal, service).map(said).collect()
}

fn still_open<'a>(goal: &'a Goal, service: &'a Service) -> impl Iterator<Item = &'a Instance> {
    goal.wanted(service)
        .filter(|instance| instance.status != Status::Converged || instance.outdated)
}

/// That the timeout came, and what was still open.
pub(super) fn timed_out(goals: &[Goal], seen: &[Option<Service>], timeout: Duration) -> Failure {
    let looked: Vec<_> = goals
        .iter()
        .zip(seen)
        .filter_map(|(goal, service)| Some((goal, service.as_ref()?)))
        .collect();
    let said: Vec<_> = looked.iter().flat_map(|(goal, service)| open(goal, service)).collect();
    let first = looked
        .iter()
        .find_map(|(goal, service)| Some((service, still_open(goal, service).next()?)));
    let next = first.map_or_else(
        || "give it longer with --timeout".to_owned(),
        |(service, instance)| {
            format!(
                "see what it waits for with `pvnctl services explain {} --app {} --channel {}`, \
                 or give it longer with --timeout",
                service.name, service.application, instance.channel
            )
        },
    );
    Failure::with_next(
        format!("timeout after {}: {}", when::duration(timeout), said.join("; ")),
        next,
    )
    .ending_with(3)
}
