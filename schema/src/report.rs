//! What a wrapped process tells: how it ended, when, and what it left. Written by the wrapper, read
//! by the scheduler. Field names are the wire format (docs/wrapper.md, "The report").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::BlobId;
use crate::spool::Stream;

#[cfg(feature = "check")]
pub(crate) use self::words::each_text;

pub mod line;
pub mod message;
mod short;
mod words;

/// Largest stream that rides inside the report itself: 64 KiB.
pub const INLINE_LIMIT_BYTES: usize = 64 << 10;

/// How one run of a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The child's own exit code, 0 to 255; absent when it never started, died of a signal, or is
    /// unknown.
    pub exit_code: Option<i32>,
    /// The signal that ended the child, by name: `SIGTERM`, `SIGRTMIN+3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Whether the kernel wrote a core file.
    #[serde(default)]
    pub core_dumped: bool,
    /// Why the child could not be started; then nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_error: Option<String>,
    /// With `execError`: whether the surroundings are to blame (no process slots, no memory, disk
    /// full), so that another try makes sense.
    #[serde(default, skip_serializing_if = "is_false")]
    pub surroundings: bool,
    /// Whether the declared timeout ended it.
    #[serde(default)]
    pub timed_out: bool,
    /// The signal that asked the run to stop, when neither its own deadlines nor the scheduler
    /// did: somebody deleted its Pod, say. Then no exit code says that the command is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// Whether the child had to be killed because it did not heed the first signal in time.
    #[serde(default)]
    pub killed_after_grace: bool,
    /// Whether the kernel's out-of-memory killer ended it.
    #[serde(default)]
    pub oom_killed: bool,
    /// Content address of what is stored of stdout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_blob_id: Option<BlobId>,
    /// Content address of what is stored of stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_blob_id: Option<BlobId>,
    /// Content address of the order in which pieces of the two streams were read; absent where
    /// nobody knows it, and where there is one stream alone. Set by the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_blob_id: Option<BlobId>,
    /// All bytes that the child wrote to stdout, kept or not.
    pub stdout_bytes: u64,
    /// All bytes that the child wrote to stderr, kept or not.
    pub stderr_bytes: u64,
    /// When `truncated`: bytes kept of stdout's head; the rest of what is stored is its tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_head_bytes: Option<u64>,
    /// When `truncated`: bytes kept of stderr's head; the rest of what is stored is its tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_head_bytes: Option<u64>,
    /// The whole of a small stdout, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_inline: Option<String>,
    /// The whole of a small stderr, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_inline: Option<String>,
    /// Whether a stream was longer than `--max-output`.
    #[serde(default)]
    pub truncated: bool,
    /// Bytes that could not be kept although they were within the limit (disk full, say).
    #[serde(default)]
    pub lost_bytes: u64,
    /// Whether a stream was cut before its end because a left-over process held it open.
    #[serde(default)]
    pub output_incomplete: bool,
    /// Processes that outlived the child.
    #[serde(default)]
    pub leaked: Vec<LeakedProcess>,
    /// Whether what is alive in `leaked` was meant to stay: `--leave-running`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub left_running: bool,
    /// Whether the wrapper was the first process of its container (PID 1): when it ends, all of
    /// the container does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub first_process: bool,
    /// The declared output files.
    #[serde(default)]
    pub files: Vec<OutputFile>,
    /// Why an output file that the command left could not be kept: what a fetch found cannot be
    /// told from a report without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_lost: Option<String>,
    /// Why the wrapper ended with 65 although the command was fine: a declared output is missing,
    /// or the structured one is not what was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_output: Option<String>,
    /// The checked structured output, when it was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Structured>,
    /// Version of the wrapper.
    pub version: String,
    /// Wall time of the start, nanoseconds since 1970, as decimal text.
    pub start_timestamp_ns: String,
    /// Monotonic time from start to end, nanoseconds, as decimal text.
    pub duration_ns: String,
    /// Where it ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
}

/// A process that outlived the child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeakedProcess {
    /// Its process id as the wrapper saw it; 0 when `/proc` does not show it.
    pub pid: i32,
    /// Its command line; bytes that are not UTF-8 are replaced.
    pub argv: Vec<String>,
    /// Whether it was still there when the wrapper ended: `--leave-running`, or it could not be
    /// killed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub alive: bool,
}

impl Report {
    /// Of a stream of which so many bytes are stored, what of it is not and where, in words; `None`
    /// where all of it is. Of a long output the middle is not kept, and the two ends look like one
    /// text.
    pub fn gap(&self, stream: Stream, kept: u64) -> Option<String> {
        let (all, head) = match stream {
            Stream::Stdout => (self.stdout_bytes, self.stdout_head_bytes),
            Stream::Stderr => (self.stderr_bytes, self.stderr_head_bytes),
        };
        let missing = all.checked_sub(kept).filter(|missing| *missing > 0)?;
        let place =
            head.map_or_else(|| "at its end".to_owned(), |head| format!("after byte {head}"));
        let stream = stream.as_str();
        Some(format!(
            "{missing} of {all} bytes of {stream} are missing {place}: they were not kept"
        ))
    }

    /// That the command was killed, or ran out of memory, as people are told everywhere: the
    /// subject is the command. `None` where it ended by itself with its exit code.
    pub fn killed_in_words(&self) -> Option<String> {
        let why = if self.oom_killed { " (out of memory)" } else { "" };
        match (&self.signal, self.exit_code) {
            (Some(signal), _) => Some(format!("was killed by {signal}{why}")),
            (None, Some(code)) if self.oom_killed => {
                Some(format!("ended with exit code {code}{why}"))
            }
            (None, None) if self.oom_killed => Some("ran out of memory".to_owned()),
            (None, _) => None,
        }
    }

    /// What it says of the streams is not what is told: nobody kept them apart or counted them.
    pub fn forget_streams(&mut self) {
        (self.stdout_blob_id, self.stderr_blob_id, self.order_blob_id) = (None, None, None);
        (self.stdout_inline, self.stderr_inline) = (None, None);
        (self.stdout_bytes, self.stderr_bytes) = (0, 0);
        (self.stdout_head_bytes, self.stderr_head_bytes) = (None, None);
        (self.truncated, self.lost_bytes, self.output_incomplete) = (false, 0, true);
    }

    /// A file that the command left cannot be kept; what is told is why the first one cannot.
    pub fn lose(&mut self, name: &str, why: &str) {
        for file in self.files.iter_mut().filter(|file| file.name == name) {
            *file = OutputFile {
                name: name.to_owned(),
                content_blob_id: None,
                error: Some(why.to_owned()),
            };
        }
        self.files_lost.get_or_insert_with(|| format!("output `{name}`: {why}"));
    }
}

/// A declared output file (`--out NAME=PATH`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputFile {
    /// Its declared name.
    pub name: String,
    /// Content address of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_blob_id: Option<BlobId>,
    /// Why there is no content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Structured output, checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Structured {
    /// Which document was expected.
    pub kind: StructuredKind,
    /// The document, when it is as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<serde_json::Value>,
    /// Otherwise every problem found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<OutputError>,
}

/// Which structured document a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StructuredKind {
    /// [`crate::output::FetchOutput`].
    Fetch,
    /// [`crate::output::GetInfoOutput`].
    GetInfo,
}

/// One problem in a structured document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputError {
    /// JSON pointer (RFC 6901) to the value; empty for the whole document.
    pub pointer: String,
    /// What was expected and what was found.
    pub message: String,
}

fn is_false(value: &bool) -> bool {
    !value
}
