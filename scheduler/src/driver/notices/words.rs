//! The words of a message. Pure.

use engine::State;
use schema::api::LogEntry;
use schema::id::{ApplicationName, RuntimeName};
use schema::notification::NotificationEvent;
use schema::shown::seen;

use crate::store::NotifiedPlace;

/// Most characters of a sentence: what fits on a telephone, and far below what Slack takes (3,000
/// in a block. Source: its reference of blocks).
const LIMIT_CHARS: usize = 1_000;

/// What happened to a service in a channel, on one line.
pub(super) fn of_place(
    event: NotificationEvent,
    (application, service, channel): &NotifiedPlace,
    version: Option<&str>,
) -> String {
    let what = match event {
        NotificationEvent::ApprovalAsked => "asks for approval",
        NotificationEvent::Failed => "failed",
        NotificationEvent::Stuck => "is stuck",
        NotificationEvent::Broken => "stands still: it is broken",
        NotificationEvent::DriftFound => "has drifted",
        NotificationEvent::DriftRepaired => "is repaired after drift",
        NotificationEvent::AppliesStopped => "has its applies stopped",
        NotificationEvent::Recovered => "is well again",
        NotificationEvent::Converged => "is converged",
    };
    let version = version.map_or_else(String::new, |version| format!(" ({version})"));
    format!("{application}/{service}@{channel} {what}{version}")
}

/// What happened to a runtime on which an application has services, on one line.
pub(super) fn of_runtime(
    event: NotificationEvent,
    runtime: &RuntimeName,
    application: &ApplicationName,
) -> String {
    match event {
        NotificationEvent::Recovered => {
            format!("{application}: runtime {runtime} is well again")
        }
        _ => format!("{application}: applies on runtime {runtime} are stopped"),
    }
}

/// A sentence of the log as a message has it: what people see of it, and not too long.
pub(super) fn why(message: &str) -> String {
    short(&seen(message))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LIMIT_CHARS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// What the plan would do that the question of this entry is about, on one line: the tool's own sum
/// where it has one, else what it says first.
pub(super) fn plan(state: &State, entry: &LogEntry) -> Option<String> {
    let id = entry.data["approval"].as_str()?;
    let asked =
        engine::view::approvals(state).into_iter().find(|asked| asked.id.to_string() == id)?;
    line_of(&asked.explanation?)
}

fn line_of(explanation: &str) -> Option<String> {
    let shown = seen(explanation);
    let mut lines = shown.lines().map(str::trim).filter(|line| !line.is_empty());
    // Source: the sum that Terraform and OpenTofu print, and that tools made after them do.
    let sum = lines.clone().rev().find(|line| line.starts_with("Plan: "));
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    sum.or_else(|| lines.find(says)).map(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_told_by_its_sum() {
        let terraform = "  # aws_x.y will be created\n  + resource\n\nPlan: 2 to add, 1 to change, \
                         0 to destroy.\n";
        assert_eq!(line_of(terraform).unwrap(), "Plan: 2 to add, 1 to change, 0 to destroy.");
        assert_eq!(line_of("\n---\n  3 files differ\nmore").unwrap(), "3 files differ");
        assert_eq!(line_of(" \n---\n"), None);
    }

    #[test]
    fn an_endless_sentence_is_cut() {
        assert_eq!(why(&"é".repeat(2_000)).chars().count(), LIMIT_CHARS + 1);
        assert_eq!(why("\u{1b}[31mred\u{1b}[0m"), "red");
    }
}
