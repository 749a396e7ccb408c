//! Which entries of the log people are told of, and of which not again. Pure.

use schema::api::LogEntry;
use schema::log_kind::LogKind;
use schema::notification::NotificationEvent;
use schema::status::{Reason, Status};

use crate::store::ToldLast;

/// What becomes of an entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decided {
    /// What people are told.
    pub(super) event: Option<NotificationEvent>,
    /// What was told last from now on, where that changes; nothing where all is well.
    pub(super) told: Option<Option<ToldLast>>,
}

/// Whether entries of this kind may be told, or change what was told last.
pub(super) fn is_told(kind: LogKind) -> bool {
    matches!(
        kind,
        LogKind::ApprovalAsked
            | LogKind::DriftFound
            | LogKind::InstanceBroken
            | LogKind::InstanceMended
            | LogKind::InstanceRetry
            | LogKind::InstanceStatus
            | LogKind::RuntimeAppliesGoOn
            | LogKind::RuntimeAppliesStopped
    )
}

/// What is told of a runtime.
pub(super) fn of_runtime(kind: LogKind) -> Option<NotificationEvent> {
    match kind {
        LogKind::RuntimeAppliesStopped => Some(NotificationEvent::AppliesStopped),
        LogKind::RuntimeAppliesGoOn => Some(NotificationEvent::Recovered),
        _ => None,
    }
}

/// What is told of an instance that pursues this version, when `before` was told last.
pub(super) fn decide(
    kind: LogKind,
    entry: &LogEntry,
    before: Option<&ToldLast>,
    version: &str,
) -> Decided {
    let tell = |event| Decided { event: Some(event), told: None };
    let ill = |event| Decided {
        event: Some(event),
        told: Some(Some(ToldLast { event, version: version.to_owned() })),
    };
    match kind {
        LogKind::ApprovalAsked => tell(NotificationEvent::ApprovalAsked),
        // The engine tells the same drift once. Of what failed before it is not the news.
        LogKind::DriftFound if before.is_some() => tell(NotificationEvent::DriftFound),
        LogKind::DriftFound => ill(NotificationEvent::DriftFound),
        // Written at each start.
        LogKind::InstanceBroken if is(before, NotificationEvent::Broken) => Decided::default(),
        LogKind::InstanceBroken => ill(NotificationEvent::Broken),
        LogKind::InstanceMended if is(before, NotificationEvent::Broken) => {
            well(Some(NotificationEvent::Recovered))
        }
        LogKind::InstanceRetry => {
            let told = before.map(|before| ToldLast { version: String::new(), ..before.clone() });
            Decided { event: None, told: told.map(Some) }
        }
        LogKind::InstanceStatus => of_status(entry, before, version),
        _ => Decided::default(),
    }
}

fn is(before: Option<&ToldLast>, event: NotificationEvent) -> bool {
    before.is_some_and(|before| before.event == event)
}

fn well(event: Option<NotificationEvent>) -> Decided {
    Decided { event, told: Some(None) }
}

fn of_status(entry: &LogEntry, before: Option<&ToldLast>, version: &str) -> Decided {
    let word = |name: &str| entry.data[name].as_str();
    let status = |name: &str| word(name).and_then(|text| text.parse::<Status>().ok());
    // Nobody has looked since.
    if word("outdated").is_some() {
        return Decided::default();
    }
    match status("to") {
        Some(Status::Failed) => {
            let is_stuck = word("reason") == Some(Reason::Stuck.as_str());
            let event = if is_stuck { NotificationEvent::Stuck } else { NotificationEvent::Failed };
            // One that is stuck fails again and again, which is no news.
            let is_known = before.is_some_and(|before| {
                before.version == version
                    && (before.event == event || before.event == NotificationEvent::Stuck)
            });
            if is_known {
                return Decided::default();
            }
            let told = ToldLast { event, version: version.to_owned() };
            Decided { event: Some(event), told: Some(Some(told)) }
        }
        Some(Status::Converged) => match before {
            Some(before)
                if before.event == NotificationEvent::DriftFound && before.version == version =>
            {
                well(Some(NotificationEvent::DriftRepaired))
            }
            Some(_) => well(Some(NotificationEvent::Recovered)),
            None if status("from") != Some(Status::Converged) => {
                Decided { event: Some(NotificationEvent::Converged), told: None }
            }
            None => Decided::default(),
        },
        Some(Status::Deleted) if before.is_some() => well(None),
        _ => Decided::default(),
    }
}

#[cfg(test)]
mod tests {
    use schema::time::Timestamp;
    use serde_json::json;

    use super::*;

    fn entry(kind: LogKind, data: serde_json::Value) -> LogEntry {
        LogEntry {
            seq: 1,
            at: Timestamp::from_millis(1),
            kind: kind.to_string(),
            actor: None,
            origin: None,
            application: None,
            service: None,
            channel: None,
            message: String::new(),
            data,
        }
    }

    fn status(from: &str, to: &str, reason: Option<&str>) -> LogEntry {
        entry(LogKind::InstanceStatus, json!({"from": from, "to": to, "reason": reason}))
    }

    /// What is told of these entries, one after the other, each of an instance at this version.
    fn told(story: &[(LogEntry, &str)]) -> Vec<String> {
        let mut last: Option<ToldLast> = None;
        let mut told = Vec::new();
        for (entry, version) in story {
            let decided = decide(entry.kind.parse().unwrap(), entry, last.as_ref(), version);
            if let Some(next) = decided.told {
                last = next;
            }
            told.extend(decided.event.map(|event| event.to_string()));
        }
        told
    }

    #[test]
    fn what_fails_again_and_again_is_told_once_and_that_it_is_well_again() {
        let failed = || status("CONVERGING", "FAILED", Some("APPLY_FAILED"));
        let trying = || status("FAILED", "CONVERGING", None);
        let well = || status("CONVERGING", "CONVERGED", None);
        let story = [failed(), trying(), failed(), trying(), well(), failed()];
        assert_eq!(told(&story.map(|entry| (entry, "1"))), ["FAILED", "RECOVERED", "FAILED"]);
    }

    #[test]
    fn another_version_and_a_try_by_hand_are_news() {
        let failed = || status("CONVERGING", "FAILED", Some("APPLY_FAILED"));
        let retry = entry(LogKind::InstanceRetry, json!({}));
        let story = [(failed(), "1"), (failed(), "2"), (retry, "2"), (failed(), "2")];
        assert_eq!(told(&story), ["FAILED", "FAILED", "FAILED"]);
    }

    #[test]
    fn what_is_stuck_is_told_beside_what_failed_and_then_no_more() {
        let failed = || status("CONVERGING", "FAILED", Some("APPLY_FAILED"));
        let stuck = || status("FAILED", "FAILED", Some("STUCK"));
        let story = [failed(), stuck(), failed(), stuck()];
        assert_eq!(told(&story.map(|entry| (entry, "1"))), ["FAILED", "STUCK"]);
    }

    #[test]
    fn drift_is_told_and_its_end() {
        let drift = entry(LogKind::DriftFound, json!({"count": "1"}));
        let well = || status("CONVERGING", "CONVERGED", None);
        assert_eq!(told(&[(drift.clone(), "1"), (well(), "1")]), ["DRIFT_FOUND", "DRIFT_REPAIRED"]);
        // A new release came in between.
        assert_eq!(told(&[(drift, "1"), (well(), "2")]), ["DRIFT_FOUND", "RECOVERED"]);
    }

    #[test]
    fn what_was_seen_before_a_restart_is_no_news() {
        let data = json!({"from": "CONVERGING", "to": "CONVERGED", "outdated": "true"});
        let outdated = entry(LogKind::InstanceStatus, data);
        assert!(told(&[(outdated, "1")]).is_empty());
        let broken = || entry(LogKind::InstanceBroken, json!({}));
        let mended = entry(LogKind::InstanceMended, json!({}));
        assert_eq!(told(&[(broken(), ""), (broken(), ""), (mended, "")]), ["BROKEN", "RECOVERED"]);
    }

    #[test]
    fn a_release_that_arrives_is_told_as_that() {
        let arrived = status("CONVERGING", "CONVERGED", None);
        let unseen = status("CONVERGED", "CONVERGED", Some("FETCH_FAILED"));
        assert_eq!(told(&[(arrived, "1"), (unseen, "1")]), ["CONVERGED"]);
        let gone = status("FAILED", "DELETED", None);
        assert!(told(&[(gone, "1")]).is_empty());
    }
}
