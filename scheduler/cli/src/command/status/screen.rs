//! The overview as people see it. Pure.

use std::collections::BTreeMap;

use schema::api::{Overview, OverviewInstance, OverviewJob};
use schema::status::{JobStatus, Status};
use schema::time::Timestamp;

use crate::console::Paper;
use crate::named::CommandTarget;
use crate::short;
use crate::table::{self, Tone, one_line, wrap};
use crate::when;

/// Lines of a message that are shown: the whole one is in `explain`.
const MESSAGE_LINES: usize = 2;

/// Columns by which what belongs to an instance is set in.
const INDENT: usize = 4;

/// What stands under which heading, in the order of the screen.
const SECTIONS: [(&str, &[Status]); 5] = [
    ("waiting for you", &[Status::WaitingManualApproval]),
    ("failed", &[Status::Broken, Status::Failed]),
    ("on its way", &[Status::Converging]),
    ("held back", &[Status::WaitingPreconditions, Status::Paused]),
    ("as desired", &[Status::Converged, Status::Replaced, Status::Deleted]),
];

/// All of it.
pub(super) fn draw(overview: &Overview, paper: &Paper) -> String {
    let mut text = counts(overview, paper);
    for (title, statuses) in SECTIONS {
        let among: Vec<_> = overview
            .instances
            .iter()
            .filter(|instance| statuses.contains(&instance.status))
            .collect();
        if among.is_empty() {
            continue;
        }
        text += &format!("\n{}", paper.heading(title));
        if statuses.contains(&Status::Converged) {
            text += &tree(&among, paper);
        } else {
            for instance in among {
                text += &entry(instance, overview.at, paper);
            }
        }
    }
    if overview.more > 0 {
        let next = paper.typed.command("pvnctl get services --status STATUS");
        let more = format!("and {} more: --limit, or {next}", overview.more);
        text += &format!("\n{}", paper.prose(&more));
    }
    text
}

/// How many stand how, what needs somebody first.
fn counts(overview: &Overview, paper: &Paper) -> String {
    if overview.counts.is_empty() {
        return "no services; make some with `pvnctl apply`\n".to_owned();
    }
    let known = SECTIONS.iter().flat_map(|(_, statuses)| statuses.iter());
    let mut parts = Vec::new();
    for status in known {
        let number = overview.counts.get(status.as_str()).copied().unwrap_or(0);
        if number > 0 {
            parts.push((format!("{number} {status}"), table::status_tone(*status)));
        }
    }
    let mut text = String::new();
    let mut taken = 0;
    for (part, tone) in parts {
        let needed = part.chars().count() + 2;
        if taken > 0 {
            let is_full = paper.width.is_some_and(|width| taken + needed > usize::from(width));
            text += if is_full { ",\n" } else { ", " };
            taken = if is_full { 0 } else { taken };
        }
        text += &paper.toned(&part, tone);
        taken += needed;
    }
    text + "\n"
}

/// One that wants to be seen: how it stands, why, what it does, and the command for it.
fn entry(instance: &OverviewInstance, now: Timestamp, paper: &Paper) -> String {
    let mut text = head(instance, now, paper);
    let named = CommandTarget {
        application: instance.application.as_str(),
        service: instance.service.as_str(),
        channel: instance.channel.as_str(),
    };
    let message = short::ids_in(&one_line(&named.text(&instance.message)));
    text += &set_in(&paper.typed.text(&message), MESSAGE_LINES, paper);
    if let Some(job) = &instance.job {
        text += &running(job, now, paper);
    }
    let verb = match instance.status {
        Status::WaitingManualApproval => Some("approve"),
        Status::Failed | Status::Broken => Some("explain"),
        Status::Paused => Some("resume"),
        _ => None,
    };
    if let Some(verb) = verb {
        let command = paper.typed.command(&format!("pvnctl {verb} {}", address(instance)));
        text += &format!("{:INDENT$}{}\n", "", paper.toned(&command, Tone::Busy));
    }
    text
}

/// The first line: as much of it as has room, and the instance and its status always.
fn head(instance: &OverviewInstance, now: Timestamp, paper: &Paper) -> String {
    let status = instance.status.as_str();
    let mut rest = Vec::new();
    rest.extend(instance.desired_version.as_deref().map(one_line));
    rest.push(when::ago(instance.since, now));
    rest.extend(instance.reason.map(|reason| reason.to_string()));
    let address = address(instance);
    let width = paper.width.map_or(usize::MAX, usize::from);
    let mut taken = 2 + address.len() + 2 + status.len();
    // Side by side where both have room, else the status below.
    let mut text = if taken <= width {
        format!("  {address}  ")
    } else {
        taken = INDENT + status.len();
        format!("  {address}\n{:INDENT$}", "")
    };
    text += &paper.toned(status, table::status_tone(instance.status));
    for part in rest {
        taken += 2 + part.chars().count();
        if taken > width {
            break;
        }
        text += &format!("  {part}");
    }
    text + "\n"
}

fn running(job: &OverviewJob, now: Timestamp, paper: &Paper) -> String {
    let id = short::id(&job.id.to_string());
    let again = if job.attempt > 1 { format!(", attempt {}", job.attempt) } else { String::new() };
    let said = match (job.status, job.started_at) {
        (JobStatus::Running, Some(started)) => {
            let usual = job.usual_ms.map_or_else(String::new, |usual| {
                format!(", usually {}", when::length(usual.try_into().unwrap_or(i64::MAX)))
            });
            format!("{} {id} runs for {}{usual}{again}", job.kind, when::ago(started, now))
        }
        (status, _) => format!("{} {id} is {status}{again}", job.kind),
    };
    let mut text = set_in(&said, MESSAGE_LINES, paper);
    if let Some(line) = &job.last_line {
        let width = paper.width.map_or(usize::MAX, |width| usize::from(width) - INDENT - 2);
        let line: String = one_line(line).chars().take(width).collect();
        text += &format!("{:INDENT$}{}\n", "", paper.toned(&format!("│ {line}"), Tone::Faint));
    }
    text
}

/// A text below its instance, at most so many lines of it.
fn set_in(text: &str, most: usize, paper: &Paper) -> String {
    if text.is_empty() {
        return String::new();
    }
    let width = paper.width.map_or(usize::MAX, |width| usize::from(width) - INDENT - 1);
    let lines = wrap(text, width, true);
    let is_cut = lines.len() > most;
    let mut said: Vec<_> =
        lines.into_iter().take(most).map(|line| format!("{:INDENT$}{line}", "")).collect();
    if is_cut && let Some(last) = said.last_mut() {
        last.push('…');
    }
    said.join("\n") + "\n"
}

/// Application, service, and its channels with their versions.
fn tree(instances: &[&OverviewInstance], paper: &Paper) -> String {
    let mut applications: BTreeMap<_, BTreeMap<_, Vec<String>>> = BTreeMap::new();
    for one in instances {
        let version = one.desired_version.as_deref().unwrap_or_default();
        let other = match one.status {
            Status::Converged => String::new(),
            status => format!(" {status}"),
        };
        let channel = format!("{} {}{other}", one.channel, one_line(version));
        let services = applications.entry(&one.application).or_default();
        services.entry(&one.service).or_default().push(channel.trim_end().to_owned());
    }
    let mut text = String::new();
    for (application, services) in applications {
        text += &format!("  {application}\n");
        for (service, channels) in services {
            text += &set_in(&format!("{service}: {}", channels.join(", ")), usize::MAX, paper);
        }
    }
    text
}

fn address(instance: &OverviewInstance) -> String {
    format!("{}/{}@{}", instance.application, instance.service, instance.channel)
}

#[cfg(test)]
mod tests;
