//! The place `fake`: nothing runs, every command succeeds at once, except those of the programs
//! that the config names. For trying configs out.

use schema::report::{Report, Structured, StructuredKind};
use schema::time::Timestamp;
use serde_json::json;

use crate::compile::Command;
use crate::runner::End;

/// The end of a command that did not run.
pub(super) fn run(
    command: &Command,
    crashing_programs: &[String],
    version: &str,
    now: Timestamp,
) -> End {
    let crashes = crashing_programs.contains(&command.name);
    let structured = command.expect.filter(|_| !crashes).map(|kind| Structured {
        kind,
        value: Some(match kind {
            StructuredKind::Fetch => json!({"objects": [{
                "name": command.name, "objectType": "FAKE", "status": "SUCCEEDED",
                "versions": [{"version": version, "active": true}],
            }]}),
            StructuredKind::GetInfo => {
                json!({"outputs": [{"name": "fake", "text": "nothing runs on a fake runtime"}]})
            }
        }),
        errors: Vec::new(),
    });
    End::Reported(Box::new(Report {
        exit_code: Some(i32::from(crashes)),
        structured,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        start_timestamp_ns: (i128::from(now.as_millis()) * 1_000_000).to_string(),
        duration_ns: "0".to_owned(),
        ..Report::default()
    }))
}
