//! `pvnctl jobs logs`: the job's stdout on stdout and its stderr on stderr, byte for byte.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use schema::api::{Job, LogChunk, LogEnd};
use schema::spool::Stream;
use tokio::time::Instant;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// Bytes asked for at a time: the server sends at most this much in one answer.
const PIECE_BYTES: usize = 1 << 20;
/// How long to look for a server that was lost while following; it goes on where it was when it is
/// back.
const LOST_FOR: Duration = Duration::from_secs(300);
/// How long to look for a server that was not reached yet: it may just be starting again, or have
/// another address.
const FIRST_FOR: Duration = Duration::from_secs(10);
/// Wait between two looks for a lost server.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  pvnctl jobs logs job-… 2>/dev/null      stdout alone
  pvnctl jobs logs job-… -f               follow until the job ends";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The job's id, or any beginning of it that names no other
    pub job: String,
    /// Go on until the job has ended
    #[arg(short, long)]
    pub follow: bool,
    /// Only this stream
    #[arg(long, value_name = "STREAM", value_parser = ["stdout", "stderr"])]
    pub stream: Option<String>,
}

/// Writes the output.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    if arguments.follow {
        let gone = console.reader_gone();
        let wants_stdout = arguments.stream.as_deref() != Some("stderr");
        let follower = LogPrinter { only: arguments.stream.clone(), ..LogPrinter::default() };
        return tokio::select! {
            ended = follower.until_end(&arguments.job, client, console) => ended.map(drop),
            () = gone, if wants_stdout => {
                Err(Failure::Output(std::io::ErrorKind::BrokenPipe.into()))
            }
        };
    }
    let mut kept = StreamLengths::default();
    for stream in ["stdout", "stderr"] {
        if arguments.stream.as_deref().is_some_and(|only| only != stream) {
            continue;
        }
        let mut offset = 0;
        loop {
            let query = [
                ("stream", stream.to_owned()),
                ("offset", offset.to_string()),
                ("limit", PIECE_BYTES.to_string()),
            ];
            let bytes = client.get_bytes(&["v1", "jobs", &arguments.job, "logs"], &query).await?;
            write(stream, &bytes, console)?;
            offset += bytes.len();
            if bytes.is_empty() {
                break;
            }
        }
        *kept.of(stream) = Some(offset as u64);
    }
    kept.tell_gaps(&arguments.job, client, console).await?;
    console.flush()
}

/// How much of each stream was written.
#[derive(Default)]
struct StreamLengths {
    stdout: Option<u64>,
    stderr: Option<u64>,
}

impl StreamLengths {
    fn of(&mut self, stream: &str) -> &mut Option<u64> {
        if stream == "stdout" { &mut self.stdout } else { &mut self.stderr }
    }

    /// Says on stderr what is missing, and where: of a long output the middle is not kept, and the
    /// two ends look like one text.
    async fn tell_gaps(
        &self,
        job: &str,
        client: &Client,
        console: &mut Console,
    ) -> Result<(), Failure> {
        // Nothing is said of a job that cannot be asked for: its output is there all the same.
        let Ok(Job { report: Some(report), .. }) =
            client.get::<Job>(&["v1", "jobs", job], &[]).await
        else {
            return Ok(());
        };
        for (stream, kept) in [(Stream::Stdout, self.stdout), (Stream::Stderr, self.stderr)] {
            if let Some(gap) = kept.and_then(|kept| report.gap(stream, kept)) {
                console.flush()?;
                console.say(&gap)?;
            }
        }
        Ok(())
    }
}

/// Writes the job's output as it is printed, and returns how the job ended.
///
/// # Errors
/// What the server says, or that it stayed away.
pub async fn follow(job: &str, client: &Client, console: &mut Console) -> Result<LogEnd, Failure> {
    LogPrinter::default().until_end(job, client, console).await
}

#[derive(Default)]
struct LogPrinter {
    stdout: u64,
    stderr: u64,
    only: Option<String>,
}

impl LogPrinter {
    async fn until_end(
        mut self,
        job: &str,
        client: &Client,
        console: &mut Console,
    ) -> Result<LogEnd, Failure> {
        let mut reached = false;
        let mut lost_since: Option<Instant> = None;
        // Which of the times that it was lost was told last.
        let mut told: Option<Instant> = None;
        loop {
            let looked = self.stream(job, client, console, &mut reached, &mut lost_since).await;
            let since = *lost_since.get_or_insert_with(Instant::now);
            match looked {
                Ok(Some(end)) => {
                    let wanted =
                        |stream: &str| self.only.as_ref().is_none_or(|only| only == stream);
                    let kept = StreamLengths {
                        stdout: wanted("stdout").then_some(self.stdout),
                        stderr: wanted("stderr").then_some(self.stderr),
                    };
                    kept.tell_gaps(job, client, console).await?;
                    return Ok(end);
                }
                // The server stops softly: it ends its streams, and is asked again for the rest.
                Ok(None) => {}
                Err(failure)
                    if reached && failure.passes(true)
                        || failure.is_passing() && since.elapsed() <= FIRST_FOR =>
                {
                    if told != Some(since) {
                        told = Some(since);
                        let patience = if reached { LOST_FOR } else { FIRST_FOR };
                        console.flush()?;
                        console.say(&format!(
                            "{failure}; a job that runs goes on; trying again for {} s",
                            patience.as_secs()
                        ))?;
                    }
                }
                Err(failure) => return Err(failure),
            }
            if since.elapsed() > LOST_FOR {
                return Err(Failure::with_next(
                    format!(
                        "{} is gone since {} s; {job} may still run",
                        client.server(),
                        LOST_FOR.as_secs()
                    ),
                    format!("look at the scheduler, then type `pvnctl jobs logs -f {job}` again"),
                ));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn stream(
        &mut self,
        job: &str,
        client: &Client,
        console: &mut Console,
        reached: &mut bool,
        lost_since: &mut Option<Instant>,
    ) -> Result<Option<LogEnd>, Failure> {
        let query =
            [("stdoutOffset", self.stdout.to_string()), ("stderrOffset", self.stderr.to_string())];
        let mut events = client.events(&["v1", "jobs", job, "logs"], &query, None).await?;
        *reached = true;
        while let Some(event) = events.next().await? {
            *lost_since = None;
            let strange = |error: &dyn std::fmt::Display| {
                Failure::user(format!("the server sent a log event that cannot be read: {error}"))
            };
            match event.kind.as_str() {
                "chunk" => {
                    let chunk: LogChunk =
                        serde_json::from_str(&event.data).map_err(|error| strange(&error))?;
                    let bytes = STANDARD.decode(&chunk.data).map_err(|error| strange(&error))?;
                    let at =
                        if chunk.stream == "stdout" { &mut self.stdout } else { &mut self.stderr };
                    *at = chunk.offset + bytes.len() as u64;
                    if self.only.as_ref().is_none_or(|only| *only == chunk.stream) {
                        write(&chunk.stream, &bytes, console)?;
                        console.flush()?;
                    }
                }
                "end" => {
                    return serde_json::from_str(&event.data)
                        .map(Some)
                        .map_err(|error| strange(&error));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

fn write(stream: &str, bytes: &[u8], console: &mut Console) -> Result<(), Failure> {
    if stream == "stdout" { console.data_bytes(bytes) } else { console.talk_bytes(bytes) }
}
