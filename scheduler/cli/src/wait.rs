//! Waits until services have converged: `services wait`, `--wait` elsewhere, and `dev --until-converged`. What is so is
//! judged by a pure function over the whole state; the loop only looks again and again, so nothing can be missed.

mod progress;

use std::collections::VecDeque;
use std::time::Duration;

use schema::api::{Instance, Release, Service};
use schema::status::{Reason, Status};
use tokio::time::Instant;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::when;

pub use progress::Progress;

/// How often to look: a person sees no delay, and the server answers thousands of these a second.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How many of a service's newest releases are looked at for one that was replaced between two looks: it is the second or third.
const RELEASES_LOOKED_AT: usize = 20;

/// What to wait for: one service.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The application, by name or id.
    pub application: String,
    /// The service, by name or id.
    pub service: String,
    /// Only these channels, by name or id; `None` means all that have a release and that no config took away.
    pub channels: Option<Vec<String>>,
    /// Exactly this version; `None` means whatever is desired.
    pub version: Option<String>,
}

/// How a goal stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every channel has converged.
    Converged,
    /// These channels have failed.
    Failed(Vec<String>),
    /// Not yet.
    Waiting,
    /// It will never come, and why.
    Never(String),
}

impl Goal {
    fn wants(&self, instance: &Instance) -> bool {
        match &self.channels {
            None => instance.desired_version.is_some() && instance.status != Status::Deleted,
            Some(names) => names.iter().any(|name| name == instance.channel.as_str() || *name == instance.channel_id.to_string()),
        }
    }

    /// The channels of the service that are waited for.
    pub fn wanted<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a Instance> {
        service.channels.iter().filter(|instance| self.wants(instance))
    }

    /// How the goal stands, given the service as it is.
    pub fn judge(&self, service: &Service) -> Verdict {
        let name = format!("{}/{}", service.application, service.name);
        for channel in self.channels.iter().flatten() {
            if !service.channels.iter().any(|instance| channel == instance.channel.as_str() || *channel == instance.channel_id.to_string())
            {
                let known: Vec<_> = service.channels.iter().map(|instance| instance.channel.as_str()).collect();
                return Verdict::Never(format!("{name} has no channel `{channel}`; it has {}", known.join(", ")));
            }
        }
        let Some(newest) = &service.version else {
            return Verdict::Never(format!(
                "{name} has no release; make one with `pvnctl services push {} --app {}`",
                service.name, service.application
            ));
        };
        if let Some(version) = self.version.as_ref().filter(|version| *version != newest) {
            return Verdict::Never(format!("{version} was replaced by {newest}"));
        }
        if self.wanted(service).next().is_none() {
            return Verdict::Never(format!("{name} has no channel with a release any more: a config took them away"));
        }
        let (mut failed, mut waiting) = (Vec::new(), false);
        for instance in self.wanted(service) {
            if instance.status == Status::Deleted {
                return Verdict::Never(format!("{name} in {} was deleted", instance.channel));
            }
            // An older release may still be finishing its apply; its end is not the end that is waited for.
            let current = instance.desired_version.is_some()
                && self.version.as_ref().is_none_or(|version| instance.desired_version.as_ref() == Some(version));
            match instance.status {
                // Another look is to come, and says how it is now.
                Status::Converged if instance.outdated => waiting = true,
                Status::Failed if instance.outdated && !waits_for_person(instance) => waiting = true,
                Status::Converged if current => {}
                Status::Failed | Status::Broken if current => failed.push(instance.channel.to_string()),
                _ => waiting = true,
            }
        }
        match (failed.is_empty(), waiting) {
            (false, _) => Verdict::Failed(failed),
            (true, true) => Verdict::Waiting,
            (true, false) => Verdict::Converged,
        }
    }
}

/// Whether no look brings it on: a person cancelled or rejected it.
fn waits_for_person(instance: &Instance) -> bool {
    matches!(instance.reason, Some(Reason::Cancelled | Reason::ManualApprovalRejected))
}

/// Goals that are still open and looked at in one go. Thousands are released at once; asking for all of them several times a
/// second would take the time from the scheduler that is to converge them. The next look goes on with the others.
const OPEN_AT_A_TIME: usize = 64;

/// Waits until every goal has converged, each once. Shows progress on stderr. Bears a server that goes away and comes back; one that
/// was never reached is an error at once.
///
/// # Errors
/// With exit code 2 when a channel FAILED, 3 at the timeout, 1 when it can never come or the server refuses.
pub async fn until_converged(client: &Client, goals: &[Goal], timeout: Duration, console: &mut Console) -> Result<(), Failure> {
    let deadline = Instant::now() + timeout;
    let mut progress = Progress::default();
    let (mut reached, mut lost) = (false, false);
    let mut seen: Vec<Option<Service>> = goals.iter().map(|_| None).collect();
    let mut open: VecDeque<usize> = (0..goals.len()).collect();
    loop {
        let mut still_open = Vec::new();
        while let Some(index) = open.pop_front() {
            let (goal, seen) = (&goals[index], &mut seen[index]);
            match client.get::<Service>(&["v1", "applications", &goal.application, "services", &goal.service], &[]).await {
                Ok(service) => {
                    reached = true;
                    if std::mem::take(&mut lost) {
                        progress.say(console, &format!("{} is back", client.server()))?;
                    }
                    let verdict = goal.judge(&service);
                    let service = seen.insert(service);
                    match verdict {
                        Verdict::Converged => {}
                        Verdict::Waiting => still_open.push(index),
                        Verdict::Failed(channels) => {
                            progress.finish(console, goals, std::slice::from_ref(&Some(service.clone())))?;
                            return Err(failed(service, &channels));
                        }
                        Verdict::Never(why) => {
                            let failed = failed_before(client, goal, service).await;
                            return Err(failed.unwrap_or_else(|| Failure::user(why)));
                        }
                    }
                }
                Err(failure) if failure.is_passing() && (reached || !matches!(failure, Failure::Unreachable { .. })) => {
                    still_open.push(index);
                    if !std::mem::replace(&mut lost, true) {
                        progress.say(console, &format!("{failure}; still trying"))?;
                    }
                }
                Err(failure) => return Err(failure),
            }
            if still_open.len() >= OPEN_AT_A_TIME {
                break;
            }
        }
        open.extend(still_open);
        progress.show(console, goals, &seen)?;
        if open.is_empty() {
            return progress.finish(console, goals, &seen);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            progress.finish(console, goals, &seen)?;
            return Err(timed_out(client, goals, &seen, timeout, lost));
        }
        tokio::time::sleep(LOOK_EVERY.min(left)).await;
    }
}

fn failed(service: &Service, channels: &[String]) -> Failure {
    let said: Vec<_> = service
        .channels
        .iter()
        .filter(|instance| channels.iter().any(|channel| channel == instance.channel.as_str()))
        .map(|instance| {
            format!(
                "{} FAILED{}: {}",
                instance.channel,
                instance.reason.map(|reason| format!(" ({reason})")).unwrap_or_default(),
                instance.message
            )
        })
        .collect();
    let next = format!(
        "see `pvnctl services explain {} --app {} --channel {}`, and the output with `pvnctl jobs list --app {} --service {}` and `pvnctl jobs logs ID`",
        service.name, service.application, channels[0], service.application, service.name
    );
    Failure::with_next(format!("{}/{} in {}", service.application, service.name, said.join("; ")), next).ending_with(2)
}

/// What to say when the version that is waited for FAILED before another one took its place: an automatic rollback may be faster than
/// the next look. `None` when it did not, and when nobody can tell.
async fn failed_before(client: &Client, goal: &Goal, service: &Service) -> Option<Failure> {
    let (version, newest) = (goal.version.as_ref()?, service.version.as_ref()?);
    let query = [("application", goal.application.clone()), ("service", goal.service.clone())];
    let releases = client.list::<Release>(&["v1", "releases"], &query, Some(RELEASES_LOOKED_AT)).await.ok()?.items;
    let release = releases.iter().find(|release| release.version == *version).filter(|_| version != newest)?;
    let by = &releases.first()?.by;
    let wanted = |name: &str| goal.wanted(service).any(|instance| instance.channel.as_str() == name);
    let failed = release.channels.iter().filter(|channel| channel.status == Status::Failed && wanted(channel.channel.as_str()));
    let channels: Vec<&str> = failed.map(|channel| channel.channel.as_str()).collect();
    if channels.is_empty() {
        return None;
    }
    let (application, service) = (&service.application, &service.name);
    let message =
        format!("{version} of {application}/{service} FAILED in {} and was replaced by {newest}, which {by} released", channels.join(", "));
    let next = format!("see what became of it with `pvnctl jobs list --app {application} --service {service}` and `pvnctl jobs logs ID`");
    Some(Failure::with_next(message, next).ending_with(2))
}

fn timed_out(client: &Client, goals: &[Goal], seen: &[Option<Service>], timeout: Duration, lost: bool) -> Failure {
    let after = when::duration(timeout);
    if lost {
        return Failure::with_next(
            format!("timeout after {after}: {} does not answer any more", client.server()),
            "look at the scheduler; what it was doing goes on when it is back",
        )
        .ending_with(3);
    }
    let open: Vec<_> = goals
        .iter()
        .zip(seen)
        .filter_map(|(goal, service)| service.as_ref().map(|service| (goal, service)))
        .flat_map(|(goal, service)| goal.wanted(service).map(move |instance| (service, instance)))
        .filter(|(_, instance)| instance.status != Status::Converged || instance.outdated)
        .collect();
    let said: Vec<_> = open
        .iter()
        .map(|(service, instance)| {
            format!("{}/{} in {} is {}: {}", service.application, service.name, instance.channel, instance.status, instance.message)
        })
        .collect();
    let next = open.first().map_or_else(
        || "give it longer with --timeout".to_owned(),
        |(service, instance)| {
            format!(
                "see what it waits for with `pvnctl services explain {} --app {} --channel {}`, or give it longer with --timeout",
                service.name, service.application, instance.channel
            )
        },
    );
    Failure::with_next(format!("timeout after {after}: {}", said.join("; ")), next).ending_with(3)
}

#[cfg(test)]
mod tests {
    use schema::id::{ChannelId, ServiceId};
    use schema::time::Timestamp;

    use super::*;

    fn service(version: Option<&str>, channels: &[(&str, Status, Option<&str>)]) -> Service {
        let channels = channels
            .iter()
            .map(|(channel, status, desired)| {
                serde_json::from_value(serde_json::json!({
                    "channel": channel, "channelId": ChannelId::from_bytes([1; 16]), "runtime": "vm", "status": status, "reason": null, "message": "",
                    "desiredVersion": desired, "since": Timestamp::from_millis(0), "objects": [], "info": [], "approvals": [], "paused": false, "observer": false,
                }))
                .unwrap()
            })
            .collect();
        Service {
            id: ServiceId::from_bytes([1; 16]),
            name: "web".parse().unwrap(),
            application: "shop".parse().unwrap(),
            version: version.map(str::to_owned),
            channels,
        }
    }

    fn check(channels: Option<&[&str]>, version: Option<&str>, service: &Service, expected: &Verdict) {
        let goal = Goal {
            application: "shop".to_owned(),
            service: "web".to_owned(),
            channels: channels.map(|names| names.iter().map(ToString::to_string).collect()),
            version: version.map(str::to_owned),
        };
        assert_eq!(goal.judge(service), *expected);
    }

    #[test]
    fn all_channels_with_a_release_must_converge() {
        use Status::{Converged, Converging, Failed};
        let v = Some("web-1");
        check(None, None, &service(v, &[("a", Converged, v), ("b", Converged, v)]), &Verdict::Converged);
        check(None, None, &service(v, &[("a", Converged, v), ("b", Converging, v)]), &Verdict::Waiting);
        check(None, None, &service(v, &[("a", Converging, v), ("b", Failed, v)]), &Verdict::Failed(vec!["b".to_owned()]));
        check(None, None, &service(v, &[("a", Converged, v), ("never-released", Converging, None)]), &Verdict::Converged);
        check(Some(&["a"]), None, &service(v, &[("a", Converged, v), ("b", Failed, v)]), &Verdict::Converged);
    }

    #[test]
    fn what_was_seen_before_the_commands_changed_is_not_the_end() {
        let mut service = service(Some("web-1"), &[("a", Status::Converged, Some("web-1"))]);
        service.channels[0].outdated = true;
        check(None, None, &service, &Verdict::Waiting);
        service.channels[0].status = Status::Failed;
        check(None, None, &service, &Verdict::Waiting);
        service.channels[0].reason = Some(Reason::Cancelled);
        check(None, None, &service, &Verdict::Failed(vec!["a".to_owned()]));
    }

    #[test]
    fn a_channel_that_was_taken_away_is_waited_for_only_by_its_name() {
        let v = Some("web-1");
        let one = service(v, &[("a", Status::Converged, v), ("gone", Status::Deleted, v)]);
        check(None, None, &one, &Verdict::Converged);
        check(Some(&["a", "gone"]), None, &one, &Verdict::Never("shop/web in gone was deleted".to_owned()));
        let none_left = "shop/web has no channel with a release any more: a config took them away".to_owned();
        check(None, None, &service(v, &[("gone", Status::Deleted, v)]), &Verdict::Never(none_left));
    }

    #[test]
    fn the_end_of_an_older_release_is_not_the_end() {
        let older = service(Some("web-2"), &[("a", Status::Failed, Some("web-1"))]);
        check(None, Some("web-2"), &older, &Verdict::Waiting);
        check(None, Some("web-1"), &older, &Verdict::Never("web-1 was replaced by web-2".to_owned()));
    }

    #[test]
    fn what_can_never_come_is_said_at_once() {
        let Verdict::Never(why) =
            (Goal { application: "shop".into(), service: "web".into(), channels: None, version: None }).judge(&service(None, &[]))
        else {
            panic!("a service without release converges never");
        };
        assert_eq!(why, "shop/web has no release; make one with `pvnctl services push web --app shop`");
        let one = service(Some("web-1"), &[("a", Status::Converged, Some("web-1"))]);
        check(Some(&["b"]), None, &one, &Verdict::Never("shop/web has no channel `b`; it has a".to_owned()));
    }
}
