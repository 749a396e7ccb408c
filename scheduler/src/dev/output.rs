//! The end of what a command printed that failed, beside the news of it: whoever tries a command
//! out looks for its words first.

use std::collections::BTreeMap;

use anstyle::Style;
use pvnctl::client::Client;
use pvnctl::failure::Failure;
use schema::api::{Job, LogEntry};
use schema::id::JobId;
use schema::log_kind::LogKind;
use schema::shown::seen;
use schema::status::{JobKind, JobStatus};

/// Most lines that are shown; `pvnctl logs` has all.
const LINES: usize = 10;

/// Bytes from the end of an output in which they are looked for.
const END_BYTES: u64 = 8 << 10;

/// Most characters of a line.
const LINE_CHARS: usize = 240;

/// What was told of each command of each instance: one that fails again and again in the same way
/// is told once.
#[derive(Debug, Default)]
pub(super) struct OutputsTold(BTreeMap<(String, JobKind), String>);

impl OutputsTold {
    /// The lines to be printed below an entry of the log; none where it tells of no failure, where
    /// the entry has all that was printed, and where the same was told before.
    pub(super) async fn below(
        &mut self,
        entry: &LogEntry,
        client: &Client,
        colour: bool,
    ) -> String {
        let Some(id) = failed_job(entry) else { return String::new() };
        let Ok(lines) = last_lines(id, client).await else { return String::new() };
        let Some((job, lines)) = lines else { return String::new() };
        let whose = format!("{}/{}@{}", job.application, job.service, job.channel);
        let text = shown(&lines, colour);
        if self.0.get(&(whose.clone(), job.kind)) == Some(&text) {
            return String::new();
        }
        self.0.insert((whose, job.kind), text.clone());
        text
    }
}

/// The job whose end an entry tells.
fn failed_job(entry: &LogEntry) -> Option<JobId> {
    let is_end = entry.kind == LogKind::JobEnded.as_str();
    let job = entry.data.get("job").and_then(serde_json::Value::as_str).filter(|_| is_end)?;
    job.parse().ok()
}

/// The last lines of a job that failed: of its stderr, else of its stdout. Not where only one was
/// printed, which its message has, nor of an output so long that its middle was not kept.
async fn last_lines(id: JobId, client: &Client) -> Result<Option<(Job, Vec<String>)>, Failure> {
    let id = id.to_string();
    let job: Job = client.get(&["v1", "jobs", &id], &[]).await?;
    let Some(report) = job.report.as_ref().filter(|_| job.status == JobStatus::Failed) else {
        return Ok(None);
    };
    let (stream, bytes) = match report.stderr_bytes {
        0 => ("stdout", report.stdout_bytes),
        bytes => ("stderr", bytes),
    };
    if report.truncated || bytes == 0 {
        return Ok(None);
    }
    let offset = bytes.saturating_sub(END_BYTES);
    let query = [
        ("stream", stream.to_owned()),
        ("offset", offset.to_string()),
        ("limit", END_BYTES.to_string()),
    ];
    let end = client.get_bytes(&["v1", "jobs", &id, "logs"], &query).await?;
    let lines = ending(&end, offset > 0);
    Ok((lines.len() > 1).then_some((job, lines)))
}

/// The last lines in the end of an output. `is_cut`: its first line may be a part of one.
fn ending(bytes: &[u8], is_cut: bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().skip(usize::from(is_cut));
    let lines: Vec<String> = lines
        .map(|line| line.trim_end().rsplit('\r').next().unwrap_or_default())
        .map(|line| seen(line).chars().take(LINE_CHARS).collect::<String>())
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

fn shown(lines: &[String], colour: bool) -> String {
    let faint = if colour { Style::new().dimmed() } else { Style::new() };
    lines.iter().map(|line| format!("           {faint}│ {line}{faint:#}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_and_as_they_can_be_shown() {
        assert_eq!(ending(b"one\n\n\x1b[31mtwo\x1b[0m\n", false), ["one", "two"]);
        assert_eq!(ending(b"ut\nthree", true), ["three"]);
        assert_eq!(ending(b"10 %\r20 %\r\nend\n", false), ["20 %", "end"]);
        let many: String = (0..30).map(|line| format!("{line}\n")).collect();
        let last = ending(many.as_bytes(), false);
        assert_eq!((last.len(), last[0].as_str(), last[9].as_str()), (LINES, "20", "29"));
        assert!(ending(b"", false).is_empty());
        assert_eq!(shown(&["a".to_owned()], false), "           │ a\n");
    }
}
