//! `pvnctl jobs get`.

use schema::api::Job;

use super::files::table;
use super::list::rows;
use crate::client::Client;
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::short;
use crate::table::harmless;

/// Prints the job.
pub(super) async fn perform(
    job: &str,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let job: Job = client.get(&["v1", "jobs", job], &[]).await?;
    console.print_one(&job, |paper| page(&job, paper))
}

fn page(job: &Job, paper: &Paper) -> String {
    let mut text = paper.table(&rows(std::slice::from_ref(job)));
    if !job.message.is_empty() {
        text += &format!("\n{}\n", short::sentence(&harmless(&job.message)));
    }
    let Some(report) = &job.report else { return text };
    // Every wrapper says which version it is.
    let is_bare = report.version.is_empty();
    let has_output = report.stdout_blob_id.is_some_and(|blob| !blob.is_of_nothing());
    let is_uncounted =
        report.stdout_bytes == 0 && report.stderr_bytes == 0 && (is_bare || has_output);
    let is_held_open = !report.leaked.is_empty();
    let is_incomplete = report.output_incomplete && !is_uncounted;
    let mut facts: Vec<String> = Vec::new();
    facts.extend(report.killed_in_words());
    facts.extend(report.exec_error.as_ref().map(|error| format!("could not be started: {error}")));
    for (so, what) in [
        (report.timed_out, "ran into its timeout"),
        (report.killed_after_grace, "did not heed the first signal"),
        (report.truncated, "printed more than is kept; head and tail are there"),
        (
            is_incomplete && is_held_open,
            "left a process that held its output open, so that the output was cut",
        ),
    ] {
        if so {
            facts.push(what.to_owned());
        }
    }
    text += &facts.iter().map(|fact| format!("\nthe command {fact}")).collect::<String>();
    if is_incomplete && !is_held_open {
        text += &format!(
            "\nwhat is kept of its output is not what it printed: its wrapper ended before it had \
             handed over all of it, or not all of it was delivered and the log of its container, \
             where it has one, did not have it whole; where it runs on a cluster `pvnctl runtimes \
             check {}` tries the way from there",
            job.runtime
        );
    }
    text += &match is_uncounted {
        true => {
            format!(
                "\nno wrapper counted its output: its stdout is what its node still had of its \
                 container's log when it ended, as far as that could be read; see `pvnctl jobs \
                 logs {}`\n",
                short::id(&job.id.to_string())
            )
        }
        false => {
            format!(
                "\n{} bytes on stdout, {} on stderr; see `pvnctl jobs logs {}`\n",
                report.stdout_bytes,
                report.stderr_bytes,
                short::id(&job.id.to_string())
            )
        }
    };
    for error in report.structured.iter().flat_map(|structured| &structured.errors) {
        text += &format!("output error at `{}`: {}\n", error.pointer, harmless(&error.message));
    }
    if !report.files.is_empty() {
        text += &format!("\n{}", paper.table(&table(&report.files)));
    }
    text
}
