//! Jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ApplicationName, ChannelName, JobId, RuntimeName, ServiceName};
use crate::report::Report;
use crate::status::{JobKind, JobStatus};
use crate::time::Timestamp;

body! {
    /// A job: `jobs list`, `jobs get`.
    Job {
        /// Its id.
        id: JobId,
        /// Which command.
        kind: JobKind,
        /// The application.
        application: ApplicationName,
        /// The service.
        service: ServiceName,
        /// The channel.
        channel: ChannelName,
        /// The runtime.
        runtime: RuntimeName,
        /// The desired version that it was started for.
        version: String,
        /// From 1.
        attempt: u32,
        /// How it stands.
        status: JobStatus,
        /// The command's exit code, when it ended with one.
        exit_code: Option<i32>,
        /// Why it was started or why it failed, for people.
        message: String,
        /// When it was decided.
        created_at: Timestamp,
        /// When its command started.
        started_at: Option<Timestamp>,
        /// When it ended.
        ended_at: Option<Timestamp>,
        /// What the wrapper told; only in `jobs get`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/run`.
    RunRequest {
        /// Which command; absent means fetch.
        kind: Option<JobKind>,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/refresh`.
    RefreshRequest {
        /// Whether what failed by itself is tried again too, once fetch has seen that there is
        /// work: not what a person cancelled or rejected, nor what has an unknown end or may still
        /// run.
        #[serde(default)]
        try_again: bool,
    }
}

body! {
    /// A job started on request: answer of `POST …/channels/{channel}/run`.
    RunStarted {
        /// The job.
        job: JobId,
    }
}

body! {
    /// A piece of a job's output: data of the server-sent event `chunk`.
    LogChunk {
        /// `stdout` or `stderr`.
        stream: String,
        /// Offset of its first byte in the stream.
        offset: u64,
        /// The bytes, base64.
        data: String,
    }
}

body! {
    /// The end of a job's output: data of the server-sent event `end`.
    LogEnd {
        /// How the job ended.
        status: JobStatus,
        /// The command's exit code, when it ended with one.
        exit_code: Option<i32>,
    }
}
