//! The words of the wire protocol between a wrapper and a scheduler that do not share a disk:
//! paths, headers, bodies, marks and times (docs/api.md, "Uploads"). Names only; each side does its
//! own IO. A local job needs none of it: see [`crate::spool`].
//!
//! Every path is below `{PVN_API_URL}/v1/jobs/{PVN_JOB_ID}` and every request carries
//! `Authorization: Bearer TOKEN`; the token names job and attempt. Errors are
//! `application/problem+json` (RFC 9457).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::BlobId;

/// Environment variable of the scheduler's address, without a path.
pub const URL_VARIABLE: &str = "PVN_API_URL";
/// Environment variable of the job's token. The wrapper hides it from the command.
pub const TOKEN_VARIABLE: &str = "PVN_TOKEN";
/// Environment variable that names a file with the token, read again when the token is refused.
pub const TOKEN_FILE_VARIABLE: &str = "PVN_TOKEN_FILE";
/// Environment variable that names a bundle of certificates (PEM) that alone are trusted to speak
/// for the scheduler.
pub const CA_VARIABLE: &str = "PVN_CA_FILE";
/// Environment variable of the job's id.
pub const JOB_VARIABLE: &str = "PVN_JOB_ID";
/// Environment variable of the job's kind: `fetch`, `apply` or `getInfo`.
pub const KIND_VARIABLE: &str = "PVN_JOB_KIND";
/// Environment variable of an apply's plan, if it has one: the blob id of what was decided on.
pub const PLAN_VARIABLE: &str = "PVN_FETCH_PLAN_BLOB_ID";
/// Environment variable of a fetch's mode: `EXIT_CODE` or `STRUCTURED_OUTPUT`.
pub const FETCH_MODE_VARIABLE: &str = "PVN_FETCH_MODE";
/// Environment variable that names the variables whose values are secret, with commas between.
pub const SECRET_KEYS_VARIABLE: &str = "PVN_SECRET_KEYS";

/// How the names of variables begin whose values are secret and not for the command: it may find
/// them in what it is handed, and must not show them. A number follows. [`SECRET_KEYS_VARIABLE`]
/// names them too; the wrapper hides them from the command.
pub const HIDDEN_PREFIX: &str = "PVN_HIDDEN_";

/// Where a local job finds the private directory of its service instance.
pub const INSTANCE_VARIABLE: &str = "PVN_INSTANCE_DIR";

/// Where a local job finds the directory that all jobs of its scheduler share, for what can be got
/// again.
pub const CACHE_VARIABLE: &str = "PVN_CACHE_DIR";

/// Environment variable of the instant after which an answer must have been asked for to be new
/// enough for this fetch or getInfo: RFC 3339. Not there where only a look of now will do.
pub const FRESH_AFTER_VARIABLE: &str = "PVN_FRESH_AFTER";

/// Names that pvn sets or that its wrapper obeys. A config that sets one of them has no effect on
/// it, so that a command can rely on what they say; any other name is the user's, also one that
/// starts with `PVN_`.
pub const OURS: [&str; 21] = [
    "PVN_API_URL",
    "PVN_APPLICATION",
    "PVN_APPLICATION_ID",
    "PVN_ATTEMPT",
    CACHE_VARIABLE,
    "PVN_ENDED_BY",
    "PVN_FETCH_MODE",
    "PVN_FETCH_PLAN_BLOB_ID",
    FRESH_AFTER_VARIABLE,
    INSTANCE_VARIABLE,
    "PVN_JOB_ID",
    "PVN_JOB_KIND",
    "PVN_RELEASE_CHANNEL",
    "PVN_RELEASE_CHANNEL_ID",
    "PVN_SECRET_KEYS",
    "PVN_SERVICE",
    "PVN_SERVICE_ID",
    "PVN_SERVICE_VERSION",
    "PVN_SPOOL_DIR",
    "PVN_TOKEN",
    "PVN_TOKEN_FILE",
];

/// Whether only pvn sets this variable.
pub fn is_ours(key: &str) -> bool {
    OURS.contains(&key) || key.starts_with(HIDDEN_PREFIX)
}

/// Environment variable of the time between asking the command to stop and killing it, where the
/// wrapper has no flag that says it.
pub const KILL_AFTER_VARIABLE: &str = "PVN_KILL_AFTER";

/// Environment variable of the instant at which the place of a job ends whatever of it is still
/// there: milliseconds since 1970, by the scheduler's clock. A wrapper that cannot deliver ends
/// before it, so that what it leaves in the log of its container stays.
pub const ENDED_BY_VARIABLE: &str = "PVN_ENDED_BY";

/// Environment variable of the directory where a wrapper keeps what it has not delivered.
pub const SPOOL_VARIABLE: &str = "PVN_SPOOL_DIR";

/// The names in the value of [`SECRET_KEYS_VARIABLE`]; people who write it by hand put a blank
/// after the comma.
pub fn secret_keys(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|key| !key.is_empty())
}

/// Header with the offset of a piece, in bytes of what is stored of the stream; in an answer, the
/// next one wanted.
pub const OFFSET_HEADER: &str = "Upload-Offset";
/// Header with the whole length of a file that comes in pieces: `PUT /files/{name}` with offset and
/// length answers 204 with the next offset wanted until the last piece, then 201. A file of at most
/// [`UPLOAD_LIMIT_BYTES`] comes whole, without both.
pub const LENGTH_HEADER: &str = "Upload-Length";
/// Header of an input: the blob id of what is sent, so that a part of it, or another, is not taken
/// for it.
pub const BLOB_HEADER: &str = "Pvn-Blob-Id";
/// Header that any answer may carry, with the value `true`: stop the command.
pub const CANCEL_HEADER: &str = "Pvn-Cancel";
/// Content type of a piece. Source: the IETF draft "Resumable Uploads for HTTP".
pub const PIECE_CONTENT_TYPE: &str = "application/partial-upload";
/// Content type of errors. Source: RFC 9457.
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// What the `type` of a scheduler's error is below.
pub const PROBLEMS_PATH: &str = "/problems/";

/// Largest piece of a stream in one request: 1 MiB, so that a lost connection costs little; the
/// scheduler takes up to 8 MiB.
pub const PIECE_LIMIT_BYTES: usize = 1 << 20;
/// Largest body of an upload that the scheduler takes: 8 MiB. A larger file goes in pieces with
/// offsets.
pub const UPLOAD_LIMIT_BYTES: usize = 8 << 20;

/// How often a wrapper gives a sign of life, milliseconds.
pub const HEARTBEAT_EVERY_MS: u64 = 5_000;

/// Longest form of a report for the kubelet's termination message, bytes. Source: Kubernetes keeps
/// no more of a message.
pub const TERMINATION_LIMIT_BYTES: usize = 4096;
/// The termination log. Source: default `terminationMessagePath` of a container.
pub const TERMINATION_LOG: &str = "/dev/termination-log";

/// What a line on stderr starts with when it carries the whole report because delivering it failed.
/// See [`crate::report::line`].
pub const REPORT_MARK: &str = "pvn-wrapper-report: ";
/// What the wrapper's own words on stderr start with, line by line.
pub const WORDS_MARK: &str = "pvn-wrapper: ";
/// How long delivery fails before the marked line is written, milliseconds.
pub const REPORT_LINE_AFTER_MS: u64 = 10_000;

/// Answer of `POST /heartbeat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// Whether the command is to be stopped.
    pub cancel: bool,
}

/// Answer of `PUT /files/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredFile {
    /// Content address of the bytes.
    pub blob_id: BlobId,
}

/// Answer of `PUT /report` that accepts it; the same answer when the same report comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// Always true.
    pub accepted: bool,
}

/// Answer of `PUT /report` with 409: what is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The offsets from which to send again; absent when the job is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Wanted>,
}

/// What a scheduler wants before it accepts a report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// Stdout from this byte on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<u64>,
    /// Stderr from this byte on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<u64>,
    /// Declared files that are not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}
