//! What an instance is doing and waits for, below its line: the job that runs, how long it takes
//! beside what is usual, the last line that it printed, and the command that answers an approval.
//! The same for `status`, for whoever waits, and for `dev`. Pure.

use schema::api::{OverviewInstance, OverviewJob};
use schema::status::{JobStatus, Status};
use schema::time::Timestamp;

use crate::console::Paper;
use crate::short;
use crate::table::{Tone, one_line, wrap};
use crate::when;

/// Lines of a sentence that are shown: the whole one is in `explain`.
const SENTENCE_LINES: usize = 2;

/// Columns by which what belongs to an instance is set in.
pub const INDENT: usize = 4;

/// The instance as people type it.
pub fn address(instance: &OverviewInstance) -> String {
    format!("{}/{}@{}", instance.application, instance.service, instance.channel)
}

/// The job that runs there, and how far it is.
pub fn running(job: &OverviewJob, now: Timestamp, paper: &Paper) -> String {
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
    let mut text = set_in(&said, SENTENCE_LINES, paper);
    if let Some(line) = &job.last_line {
        let width = paper.width.map_or(usize::MAX, |width| usize::from(width) - INDENT - 2);
        let line: String = one_line(line).chars().take(width).collect();
        text += &format!("{:INDENT$}{}\n", "", paper.toned(&format!("│ {line}"), Tone::Faint));
    }
    text
}

/// The command that a person answers it with, if it waits for one.
pub fn answer(instance: &OverviewInstance, paper: &Paper) -> String {
    let verb = match instance.status {
        Status::WaitingManualApproval => "approve",
        Status::Failed | Status::Broken => "explain",
        Status::Paused => "resume",
        _ if instance.observed.is_some() => "resume",
        _ => return String::new(),
    };
    let command = paper.typed.command(&format!("pvnctl {verb} {}", address(instance)));
    format!("{:INDENT$}{}\n", "", paper.toned(&command, Tone::Busy))
}

/// What stands below a table of instances: those of them in which something runs, or that wait for
/// a person.
pub fn beneath<'a>(
    instances: impl Iterator<Item = &'a OverviewInstance>,
    now: Timestamp,
    paper: &Paper,
) -> String {
    let mut text = String::new();
    for one in instances {
        let asks = one.status == Status::WaitingManualApproval;
        if one.job.is_none() && !asks {
            continue;
        }
        text += &format!("  {}\n", address(one));
        text += &one.job.as_ref().map_or_else(String::new, |job| running(job, now, paper));
        if asks {
            text += &answer(one, paper);
        }
    }
    text
}

/// A sentence below its instance, at most a few lines of it.
pub fn sentence(text: &str, paper: &Paper) -> String {
    set_in(text, SENTENCE_LINES, paper)
}

/// A text below its instance, at most so many lines of it.
pub fn set_in(text: &str, most: usize, paper: &Paper) -> String {
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
