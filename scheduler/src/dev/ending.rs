//! How `--until-converged` ends, from how everything stands and from what was told on the way. What
//! was told as FAILED ends it as FAILED, also where a fetch has found a moment later that all is as
//! desired: else the exit code would depend on the moment of a look. Pure.

use std::collections::BTreeSet;

use pvnctl::wait::{self, FailedIn, Goal, GoalVerdict};
use schema::api::{LogEntry, Service};
use schema::id::{ApplicationName, ChannelName, ServiceName};
use schema::log_kind::LogKind;
use schema::status::{Reason, Status};

/// Where a failure was told that counts for this run.
#[derive(Debug, Default)]
pub(super) struct FailuresTold {
    /// What was logged up to here is of before the files were applied.
    counts_after: u64,
    channels: BTreeSet<(ApplicationName, ServiceName, ChannelName)>,
}

impl FailuresTold {
    /// Those that are logged later than this entry.
    pub(super) fn after(entry: u64) -> Self {
        Self { counts_after: entry, channels: BTreeSet::new() }
    }

    /// Takes note of an entry that is told. Returns whether it is the first failure of its channel.
    pub(super) fn keep(&mut self, entry: &LogEntry) -> bool {
        let (Some(application), Some(service), Some(channel)) =
            (&entry.application, &entry.service, &entry.channel)
        else {
            return false;
        };
        entry.seq > self.counts_after
            && is_failure(entry)
            && self.channels.insert((application.clone(), service.clone(), channel.clone()))
    }

    fn names(&self, service: &Service, channel: &ChannelName) -> bool {
        let of = (service.application.clone(), service.name.clone(), channel.clone());
        self.channels.contains(&of)
    }
}

/// Whether it tells that a channel is FAILED. As for whoever waits, that counts for nothing where
/// another look is to come by itself: it is the failure of other commands.
fn is_failure(entry: &LogEntry) -> bool {
    let word = |key: &str| entry.data.get(key).and_then(serde_json::Value::as_str);
    let reason = word("reason").and_then(|reason| reason.parse::<Reason>().ok());
    entry.kind == LogKind::InstanceStatus.as_str()
        && word("to") == Some(Status::Failed.as_str())
        && !wait::is_looked_at_again(reason, word("outdated").is_some())
}

/// How everything stands that is waited for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Standings {
    /// What has failed, in words.
    pub(super) failed: Vec<String>,
    /// What is not there yet, in words.
    pub(super) waiting: Vec<String>,
}

impl Standings {
    /// Whether nothing is waited for any more.
    pub(super) fn are_settled(&self) -> bool {
        !self.failed.is_empty() || self.waiting.is_empty()
    }

    /// Adds how a service stands; when it can never come, why.
    pub(super) fn add(
        &mut self,
        goals: &[Goal],
        service: &Service,
        told: &FailuresTold,
    ) -> Result<(), String> {
        for goal in goals {
            let verdict = goal.judge(service);
            let mut failed = match &verdict {
                GoalVerdict::Failed(channels) => channels.iter().map(FailedIn::in_short).collect(),
                GoalVerdict::Never(why) => return Err(why.clone()),
                GoalVerdict::Converged | GoalVerdict::Waiting => Vec::new(),
            };
            let is_said = |channel: &ChannelName| match &verdict {
                GoalVerdict::Failed(said) => {
                    said.iter().any(|failed| failed.channel == channel.as_str())
                }
                _ => false,
            };
            let since = goal.wanted(service).filter(|instance| {
                told.names(service, &instance.channel) && !is_said(&instance.channel)
            });
            failed.extend(
                since.map(|instance| format!("{} ({} since)", instance.channel, instance.status)),
            );
            if !failed.is_empty() {
                let Service { application, name, .. } = service;
                self.failed.push(format!("{application}/{name} in {}", failed.join(", ")));
            } else if verdict == GoalVerdict::Waiting {
                self.waiting.extend(wait::open(goal, service));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
