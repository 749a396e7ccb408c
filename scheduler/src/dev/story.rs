//! Log entries as lines for people: when, who, what, in colour on a terminal. Pure.

use anstyle::{AnsiColor, Style};
use pvnctl::short;
use pvnctl::typed::Typed;
use schema::api::{LogEntry, Service, decision_flags};
use schema::command_target::CommandTarget;
use schema::id::{ApplicationName, ChannelName, ServiceName};
use schema::log_kind::LogKind;
use schema::status::{ApprovalStatus, Status};
use serde_json::Value;

/// The first lines: where it listens, how to point `pvnctl` at it, and the page: a link that signs
/// in once.
pub(super) fn banner(server: &str, page: Option<&str>, typed: &Typed, colour: bool) -> String {
    let bold = if colour { Style::new().bold() } else { Style::new() };
    let list = typed.command("pvnctl services list");
    let page = page.map(|path| format!("look at it on {bold}{server}{path}{bold:#}\n"));
    let page = page.unwrap_or_default();
    format!("pvn listens on {bold}{server}{bold:#}\n{page}ask it with {bold}{list}{bold:#}\n\n")
}

/// The last line of `--until-converged`.
pub(super) fn verdict(good: bool, text: &str, colour: bool) -> String {
    let tone = if good { AnsiColor::Green } else { AnsiColor::Red };
    let style = if colour { tone.on_default().bold() } else { Style::new() };
    format!("{style}{text}{style:#}\n")
}

/// One entry; `None` for what people need not see.
pub(super) fn tell(entry: &LogEntry, typed: &Typed, colour: bool) -> Option<String> {
    let word = |key: &str| entry.data.get(key).and_then(Value::as_str);
    let status = word("to").and_then(|text| text.parse::<Status>().ok());
    let kind = entry.kind.parse::<LogKind>().ok();
    let tone = match (kind, status) {
        (Some(LogKind::InstanceStatus), Some(Status::Converged)) => {
            AnsiColor::Green.on_default().bold()
        }
        (Some(LogKind::InstanceStatus), Some(Status::Failed)) => AnsiColor::Red.on_default().bold(),
        (
            Some(LogKind::InstanceStatus),
            Some(Status::WaitingManualApproval | Status::WaitingPreconditions | Status::Paused),
        ) => AnsiColor::Yellow.on_default(),
        (Some(LogKind::InstanceStatus), _) => AnsiColor::Cyan.on_default(),
        (Some(LogKind::DriftFound | LogKind::ApprovalAsked | LogKind::ApprovalExpired), _) => {
            AnsiColor::Yellow.on_default().bold()
        }
        _ => Style::new(),
    };
    // What `dev` does by itself has been told already.
    if kind == Some(LogKind::ConfigApplied) {
        return None;
    }
    let (tone, faint) =
        if colour { (tone, Style::new().dimmed()) } else { (Style::new(), Style::new()) };
    let message = short::sentence(&entry.message);
    let told = || message.clone();
    let (who, message) = match (&entry.application, &entry.service, &entry.channel) {
        (Some(application), Some(service), Some(channel)) => {
            let target = CommandTarget {
                application: application.as_str(),
                service: service.as_str(),
                channel: channel.as_str(),
            };
            (format!("{application}/{service} {channel}"), target.text(&message))
        }
        (Some(application), Some(service), None) => (format!("{application}/{service}"), told()),
        (Some(application), None, _) => (application.to_string(), told()),
        (None, ..) => (String::new(), told()),
    };
    let what = match status {
        Some(status) => format!("{tone}{status}{tone:#} {message}"),
        None => format!("{tone}{message}{tone:#}"),
    };
    // The time of day, to the tenth of a second: RFC 3339 has it at a fixed place.
    let at = entry.at.to_string();
    let time = at.get(11..21).unwrap_or(&at);
    let what: String =
        what.chars().map(|character| if character == '\n' { ' ' } else { character }).collect();
    let mut text = format!("{faint}{time}{faint:#} {who:<24} {what}\n");
    if let (Some(LogKind::ApprovalAsked), Some(application), Some(service), Some(channel)) =
        (kind, &entry.application, &entry.service, &entry.channel)
    {
        let approval = word("approval").and_then(|id| id.parse().ok());
        let flags = approval.map(|id| decision_flags(id, word("planDigest"))).unwrap_or_default();
        text += &answers(application, service, channel, &flags, typed);
    }
    Some(text)
}

/// What is asked since an earlier run, which this one logs no more.
pub(super) fn open_questions(service: &Service, typed: &Typed) -> String {
    let mut text = String::new();
    for instance in &service.channels {
        for approval in
            instance.approvals.iter().filter(|approval| approval.status == ApprovalStatus::Pending)
        {
            let version = approval.version.as_deref().unwrap_or_default();
            text += &format!(
                "{}/{} {}: an approval was asked for {version} before\n",
                service.application, service.name, instance.channel
            );
            let flags = decision_flags(approval.id, approval.plan_digest.as_deref());
            text += &answers(&service.application, &service.name, &instance.channel, &flags, typed);
        }
    }
    text
}

/// How an approval is looked at and given.
fn answers(
    application: &ApplicationName,
    service: &ServiceName,
    channel: &ChannelName,
    flags: &str,
    typed: &Typed,
) -> String {
    let see = typed.command(&format!("pvnctl services get {service} --app {application}"));
    let yes = typed.command(&format!(
        "pvnctl services approve {service} --app {application} --channel {channel} {flags}"
    ));
    format!("           see it:  {see}\n           approve: {}\n", yes.trim_end())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use schema::time::Timestamp;
    use serde_json::json;

    use super::*;

    fn entry(kind: &str, message: &str, data: Value) -> LogEntry {
        LogEntry {
            seq: 1,
            at: Timestamp::from_millis(1_700_000_000_123),
            kind: kind.to_owned(),
            actor: None,
            origin: None,
            application: Some("shop".parse().unwrap()),
            service: Some("web".parse().unwrap()),
            channel: Some("eu".parse().unwrap()),
            message: message.to_owned(),
            data,
        }
    }

    fn check(kind: &str, message: &str, data: Value, expected: &str) {
        assert_eq!(
            tell(
                &entry(kind, message, data),
                &Typed::reaching(None, Some(Path::new("/d/t")), None),
                false
            )
            .as_deref(),
            Some(expected)
        );
    }

    #[test]
    fn a_change_of_status_names_it() {
        check(
            "instance.status",
            "web-1 is as desired",
            json!({"from": "CONVERGING", "to": "CONVERGED"}),
            "22:13:20.1 shop/web eu              CONVERGED web-1 is as desired\n",
        );
    }

    #[test]
    fn drift_is_told_in_its_own_words() {
        check(
            "drift.found",
            "drift: fetch sees work to do",
            json!({}),
            "22:13:20.1 shop/web eu              drift: fetch sees work to do\n",
        );
    }

    #[test]
    fn who_is_asked_gets_the_exact_command() {
        check(
            "approval.asked",
            "approval `qa` is asked for web-1",
            json!({"approval": "apr-00000000000000000000000000000001", "planDigest": "sha256:ab"}),
            "22:13:20.1 shop/web eu              approval `qa` is asked for web-1\n           see \
             it:  pvnctl --token-file /d/t services get shop/web\n           approve: pvnctl --token-file \
             /d/t services approve shop/web@eu --approval \
             apr-00000000000000000000000000000001 --plan-digest sha256:ab\n",
        );
    }

    #[test]
    fn colour_is_asked_for() {
        let entry = entry("drift.found", "drift", json!({}));
        assert!(!tell(&entry, &Typed::default(), false).unwrap().contains('\u{1b}'));
        assert!(tell(&entry, &Typed::default(), true).unwrap().contains('\u{1b}'));
    }
}
