//! The tools that the wrapper drives, by the tools' own programs.

use schema::status::CheckStatus;
use schema::tool_check::{ToolCheckOutput, ToolFinding};

use crate::run::Run;

mod aws_ecs;
mod failures;
mod google_cloud_run;
mod pulumi;
mod terraform;

/// What a step `check` found: one word a finding, `tool .` for one that works, `tool FAILED`,
/// `tool -` for one that was not tried; and all of it.
#[track_caller]
fn found(run: &Run) -> (String, Vec<ToolFinding>) {
    assert_eq!(run.code, 0, "{}", run.stderr);
    let ToolCheckOutput { findings } = serde_json::from_slice(&run.stdout).unwrap();
    let word = |finding: &ToolFinding| {
        let is_failed = finding.status == CheckStatus::Failed;
        assert_eq!(finding.remedy.is_some(), is_failed, "{finding:?}");
        match finding.status {
            CheckStatus::Ok => format!("{} .", finding.what),
            CheckStatus::Failed => format!("{} FAILED", finding.what),
            CheckStatus::Skipped => format!("{} -", finding.what),
        }
    };
    (findings.iter().map(word).collect::<Vec<_>>().join(", "), findings)
}

/// That a check found exactly this, and of the first that is not well these words.
#[track_caller]
fn finds(run: &Run, expected: &str, words: &str) {
    let (short, findings) = found(run);
    assert_eq!(short, expected, "{findings:#?}\n{}", run.stderr);
    let first = findings.iter().find(|finding| finding.status != CheckStatus::Ok);
    let said = first.map_or("", |finding| &finding.message);
    assert!(said.contains(words), "{words:?} is not in {said:?}");
}
