//! `pvnctl jobs files`: what files a job left, and the bytes of one.

use clap::Args;
use schema::api::Job;
use schema::report::OutputFile;

use crate::client::{Client, Listed};
use crate::console::Console;
use crate::failure::Failure;
use crate::table::Table;

/// Bytes asked for at a time: the server sends at most this much in one answer.
const PIECE_BYTES: usize = 1 << 20;

const EXAMPLES: &str = "\
The bytes are printed as they are kept. Only `plan-explanation`, which is masked for people, can \
                        be read; a plan and other files
are for commands alone, because they may hold secrets.

Examples:
  pvnctl jobs files job-…                           what files it left
  pvnctl jobs files job-… plan-explanation | less   all of what is shown where people approve";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The job's id, or any beginning of it that names no other
    pub job: String,
    /// Which file to print [default: list them]
    pub name: Option<String>,
}

/// Lists the files, or writes one.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        let job: Job = client.get(&["v1", "jobs", &arguments.job], &[]).await?;
        let items = job.report.map(|report| report.files).unwrap_or_default();
        return console.print_list(&Listed { items, unreadable: Vec::new() }, "no files", table);
    };
    let mut offset = 0;
    loop {
        let query = [("offset", offset.to_string()), ("limit", PIECE_BYTES.to_string())];
        let bytes =
            client.get_bytes(&["v1", "jobs", &arguments.job, "files", name], &query).await?;
        if bytes.is_empty() {
            return console.flush();
        }
        console.data_bytes(&bytes)?;
        offset += bytes.len();
    }
}

/// One line a file.
pub(super) fn table(files: &[OutputFile]) -> Table {
    let mut table = Table::new(["FILE", "CONTENT", "ERROR"]);
    for file in files {
        table.row([
            file.name.as_str().into(),
            file.content_blob_id.map(|id| id.to_string()).unwrap_or_default().into(),
            file.error.as_deref().unwrap_or_default().into(),
        ]);
    }
    table
}
