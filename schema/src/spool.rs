//! The spool directory of a local job: the protocol between the daemon's `runner::local` and the
//! wrapper, which share nothing else. Names and the claim only; each side does its own IO.
//!
//! ```text
//! <job id>/            mode 0700, made by the daemon before it starts the wrapper
//!   claim              made with O_EXCL by the wrapper before it starts the command, and locked while the wrapper
//!                      lives; or made by a daemon that wants no late wrapper to start it
//!   inputs/REF         what `--in PATH=REF` can name: `sha256:…`, a symlink to that blob; `fetch:plan`, a symlink to the former, so
//!                      that what is read there can be compared
//!   files/NAME         declared outputs (`--out NAME=PATH`), from the job's wrapper or one nested in its command
//!   stdout, stderr     as read so far, from the moment that a stream is large or [`LIVE_AFTER_MS`] old
//!   order              in which order pieces of the two streams were read: see [`order_record`]; there when it says anything
//!   report.json.new    room for the report, taken before the command starts
//!   report.json        the report, by rename; there only when everything else is complete
//! ```
//!
//! What always holds, whoever is killed when:
//! - **At most one start.** Only the one who made `claim` starts the command, and `claim` is never
//!   removed before the whole directory is gone under its name.
//! - **A report is whole.** It appears by rename, after the files it names. Nothing is synced to
//!   the disk: after a crash of the machine a missing or cut report is an unknown outcome, which is
//!   what the scheduler must then assume anyway. Syncing would cost a trivial job more than
//!   everything else together.
//! - **Alive is what the lock says.** The wrapper holds an exclusive `flock` on `claim` from before
//!   the start until it ends, and the kernel lets go of it whatever ends it: pids and their start
//!   times may repeat, across pid namespaces and boots; a lock does not. The pid in the claim is
//!   for signals, and is used only while the lock is held.
//! - **Never started, or unknown.** No claim: it never started, and a daemon that makes the claim
//!   itself keeps it so. The same for an empty claim that the daemon can lock: the wrapper writes
//!   into it after it has the lock and before it starts anything, and stops when it finds it locked
//!   or written. A wrapper's claim without lock and without report: unknown. No directory at all:
//!   it never started, unless the machine was started again since it was decided; then unknown.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// File that says who may start the command. See the module.
pub const CLAIM: &str = "claim";
/// The report. See [`crate::report::Report`].
pub const REPORT: &str = "report.json";
/// What the report is called until it is complete.
pub const REPORT_TEMPORARY: &str = "report.json.new";
/// Directory of what `--in` can name.
pub const INPUTS: &str = "inputs";
/// What `--in` calls the plan of the fetch that found the work.
pub const PLAN_REFERENCE: &str = "fetch:plan";
/// Directory of the declared outputs.
pub const FILES: &str = "files";

/// The order in which pieces of the two streams were read, as [`order_record`]s one after the
/// other.
pub const ORDER: &str = "order";
/// Largest [`ORDER`]; in which order later pieces came is not known. A third of a million pieces
/// and more.
pub const ORDER_LIMIT_BYTES: u64 = 1 << 20;

/// Environment variable of every process of a local job: the absolute path of its spool directory.
/// A wrapper nested in the job's command finds inputs there and leaves outputs there.
pub const DIRECTORY_VARIABLE: &str = "PVN_JOB_DIR";

/// A stream appears as a file when its first byte is this old, so that people see it live; a job
/// that is over sooner carries its small streams inside the report and makes no file. Milliseconds.
/// Source: "first byte at the scheduler within 250 ms".
pub const LIVE_AFTER_MS: u64 = 150;

/// Name of the declared output that is shown where people approve. The wrapper masks it; all others
/// are for commands.
pub const EXPLANATION: &str = "plan-explanation";

/// Name of the declared output that says what a plan destroys or replaces, one a line; empty:
/// nothing. Read where a runtime has `requireApprovalForDestroy`.
pub const DESTROYS: &str = "plan-destroys";

/// Longest name of a declared output, bytes: far below the 255 of a file name, so that a suffix
/// fits.
pub const OUTPUT_NAME_LIMIT: usize = 128;

/// One of the two streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Both, in the order of their descriptors.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// Its name in paths of the API and, in the spool directory, of its file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Appends one record of [`ORDER`]: the next `length` bytes that were read are of this stream. The
/// record is the number `2 * length + (0 for stdout, 1 for stderr)` in LEB128: seven bits a byte,
/// the lowest first, the highest bit set in all but the last byte. Lengths are of the stream as it
/// was read, whether or not those bytes are kept.
pub fn order_record(stream: Stream, length: u64, to: &mut Vec<u8>) {
    let mut left = u128::from(length) * 2 + stream as u128;
    loop {
        let seven = (left & 0x7f) as u8;
        left >>= 7;
        if left == 0 {
            to.push(seven);
            return;
        }
        to.push(seven | 0x80);
    }
}

/// The pieces that an [`ORDER`] tells of, as far as it makes sense: a file that is being written
/// may end within a record.
pub fn order_pieces(mut bytes: &[u8]) -> impl Iterator<Item = (Stream, u64)> {
    std::iter::from_fn(move || {
        let end = bytes.iter().position(|byte| byte & 0x80 == 0)?;
        let (record, rest) = bytes.split_at(end + 1);
        // Ten bytes hold 70 bits, and the longest length takes 65.
        if record.len() > 10 {
            return None;
        }
        bytes = rest;
        let number =
            record.iter().rev().fold(0_u128, |number, byte| number << 7 | u128::from(byte & 0x7f));
        let stream = if number & 1 == 0 { Stream::Stdout } else { Stream::Stderr };
        u64::try_from(number >> 1).ok().map(|length| (stream, length))
    })
}

/// Time that a command gets between the request to stop and KILL where nothing says otherwise,
/// milliseconds.
pub const KILL_AFTER_MS: u64 = 10_000;

/// What `claim` holds, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Claim {
    /// A wrapper: it starts the command.
    Wrapper {
        /// Its process id, and that of its session. Good only while it holds the lock.
        pid: i32,
        /// When it made the claim.
        at: Timestamp,
        /// Time that its command gets between the request to stop and KILL, milliseconds: for
        /// whoever has to stop the command when the wrapper is no more. Wrappers before this field
        /// was there had none in mind but the usual one.
        #[serde(default = "usual_kill_after")]
        kill_after_ms: u64,
    },
    /// A daemon: nobody starts the command.
    Scheduler,
}

const fn usual_kill_after() -> u64 {
    KILL_AFTER_MS
}

/// Whether `name` can name a declared output: 1 to [`OUTPUT_NAME_LIMIT`] of `A-Z a-z 0-9 . _ -`,
/// not starting with a dot, so that it is a plain file name and part of a URL path everywhere.
pub fn is_output_name(name: &str) -> bool {
    (1..=OUTPUT_NAME_LIMIT).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Whether `reference` can stand in `--in PATH=REF`: `fetch:NAME`, or a blob id.
pub fn is_input_reference(reference: &str) -> bool {
    match reference.strip_prefix("fetch:") {
        Some(name) => is_output_name(name),
        None => reference.parse::<crate::id::BlobId>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_name_is_a_plain_file_name() {
        for name in ["plan", "plan-explanation", "a.b_c", &"x".repeat(OUTPUT_NAME_LIMIT)] {
            assert!(is_output_name(name), "{name:?}");
        }
        for name in
            ["", ".", "..", ".x", "a/b", "a b", "ä", "a\0", &"x".repeat(OUTPUT_NAME_LIMIT + 1)]
        {
            assert!(!is_output_name(name), "{name:?}");
        }
    }

    #[test]
    fn an_input_is_an_output_of_the_fetch_or_a_blob() {
        let blob = crate::id::BlobId::of(b"x").to_string();
        for reference in ["fetch:plan", &blob] {
            assert!(is_input_reference(reference), "{reference:?}");
        }
        for reference in ["", "plan", "fetch:", "fetch:../x", "sha256:12", "apply:plan"] {
            assert!(!is_input_reference(reference), "{reference:?}");
        }
    }

    #[test]
    fn an_order_reads_back_what_was_written_and_stops_where_it_makes_no_sense() {
        let pieces = [
            (Stream::Stdout, 0),
            (Stream::Stderr, 1),
            (Stream::Stdout, 63),
            (Stream::Stderr, 64),
            (Stream::Stdout, u64::MAX),
        ];
        let mut bytes = Vec::new();
        pieces.iter().for_each(|(stream, length)| order_record(*stream, *length, &mut bytes));
        assert_eq!(order_pieces(&bytes).collect::<Vec<_>>(), pieces);
        assert_eq!(order_pieces(&bytes[..bytes.len() - 1]).count(), pieces.len() - 1);
        assert_eq!(order_pieces(&[0xff; 100]).count(), 0);
        assert_eq!(order_pieces(&[[0xff; 20].as_slice(), &[1]].concat()).count(), 0);
        assert_eq!(
            order_pieces(b"\x06").collect::<Vec<_>>(),
            [(Stream::Stdout, 3)],
            "one byte for a short piece"
        );
    }

    #[test]
    fn a_claim_reads_back_what_it_wrote() {
        let claim = |kill_after_ms| Claim::Wrapper {
            pid: 42,
            at: Timestamp::from_millis(7),
            kill_after_ms,
        };
        let text = serde_json::to_string(&claim(5)).unwrap();
        let expected = r#"{"wrapper":{"pid":42,"at":"1970-01-01T00:00:00.007Z","killAfterMs":5}}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Claim>(&text).unwrap(), claim(5));
        let old = r#"{"wrapper":{"pid":42,"at":"1970-01-01T00:00:00.007Z"}}"#;
        assert_eq!(serde_json::from_str::<Claim>(old).unwrap(), claim(10_000));
    }
}
