//! The overview as people see it. Pure.

use std::collections::BTreeMap;

use schema::api::{Overview, OverviewInstance};
use schema::command_target::CommandTarget;
use schema::status::Status;
use schema::time::Timestamp;

use crate::console::Paper;
use crate::short;
use crate::table::{self, one_line};
use crate::under_way::{INDENT, address, answer, running, sentence, set_in};
use crate::when;

/// Before the entry that is chosen, in the place of two spaces.
pub(super) const CHOSEN: &str = "▸ ";

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
    draw_chosen(overview, None, paper)
}

/// The instances that have an entry of their own, in the order in which they stand.
pub(super) fn entries(overview: &Overview) -> Vec<&OverviewInstance> {
    let own = SECTIONS.iter().filter(|(_, statuses)| !statuses.contains(&Status::Converged));
    own.flat_map(|(_, statuses)| among(overview, statuses)).collect()
}

fn among<'a>(
    overview: &'a Overview,
    statuses: &'a [Status],
) -> impl Iterator<Item = &'a OverviewInstance> {
    overview.instances.iter().filter(|instance| {
        // What a person wants to be observed only is on its way nowhere.
        let stands = match instance.status {
            Status::Converging if instance.observed.is_some() => Status::Paused,
            status => status,
        };
        statuses.contains(&stands)
    })
}

/// The same with a mark at the instance of this address.
pub(super) fn draw_chosen(overview: &Overview, chosen: Option<&str>, paper: &Paper) -> String {
    let mut text = counts(overview, paper);
    for (title, statuses) in SECTIONS {
        let among: Vec<_> = among(overview, statuses).collect();
        if among.is_empty() {
            continue;
        }
        text += &format!("\n{}", paper.heading(title));
        if statuses.contains(&Status::Converged) {
            text += &tree(&among, paper);
            continue;
        }
        for instance in among {
            let entry = entry(instance, overview.at, paper);
            let is_chosen = chosen.is_some_and(|chosen| chosen == address(instance));
            text += &match entry.strip_prefix("  ").filter(|_| is_chosen) {
                Some(rest) => format!("{CHOSEN}{rest}"),
                None => entry,
            };
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
        return "no services; make some with `pvnctl apply PATH`\n".to_owned();
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
    let message = short::sentence(&one_line(&named.text(&instance.message)));
    text += &sentence(&paper.typed.text(&message), paper);
    text += &instance.job.as_ref().map_or_else(String::new, |job| running(job, now, paper));
    text + &answer(instance, paper)
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

/// Application, service, and its channels with their versions.
fn tree(instances: &[&OverviewInstance], paper: &Paper) -> String {
    let mut applications: BTreeMap<_, BTreeMap<_, Vec<String>>> = BTreeMap::new();
    for one in instances {
        let version = one.desired_version.as_deref().unwrap_or_default();
        let other = match one.status {
            Status::Converged => String::new(),
            status => format!(" {status}"),
        };
        let observed = one.observed.as_ref();
        let observed = observed.map_or_else(String::new, |by| format!(" (observed by {})", by.who));
        let channel = format!("{} {}{other}{observed}", one.channel, one_line(version));
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

#[cfg(test)]
mod tests;
