//! Request and response bodies of the HTTP API under `/v1`, and what `pvnctl -o json` prints. Stable: fields may be
//! added, never changed or removed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{
    ApplicationId, ApplicationName, ApprovalId, ChannelId, ChannelName, JobId, ReleaseId, RuntimeId, RuntimeName, ServiceId, ServiceName,
};
use crate::output::{Info, RuntimeObject};
use crate::report::Report;
use crate::status::{ApprovalKind, ApprovalStatus, Decision, JobKind, JobStatus, Reason, Status};
use crate::time::Timestamp;

macro_rules! body {
    ($(#[$doc:meta])* $type:ident { $($(#[$field_doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $type { $($(#[$field_doc])* pub $field: $of,)* }
    };
}

macro_rules! request {
    ($(#[$doc:meta])* $type:ident { $($(#[$field_doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct $type { $($(#[$field_doc])* pub $field: $of,)* }
    };
}

// ---- services ----

body! {
    /// A service with all its channels: `services get`.
    Service {
        /// Its id.
        id: ServiceId,
        /// Its name.
        name: ServiceName,
        /// The application that it belongs to.
        application: ApplicationName,
        /// The version of its newest release; absent before the first.
        version: Option<String>,
        /// One entry for each channel, in the order of the application's config.
        channels: Vec<Instance>,
    }
}

body! {
    /// A service in one line: `services list`.
    ServiceSummary {
        /// Its id.
        id: ServiceId,
        /// Its name.
        name: ServiceName,
        /// The application that it belongs to.
        application: ApplicationName,
        /// The version of its newest release.
        version: Option<String>,
        /// Channel by channel how it stands.
        channels: Vec<ChannelStatus>,
    }
}

body! {
    /// How one channel stands.
    ChannelStatus {
        /// The channel.
        channel: ChannelName,
        /// How it stands.
        status: Status,
    }
}

body! {
    /// A service instance: one service in one channel.
    Instance {
        /// The channel.
        channel: ChannelName,
        /// The channel's id.
        channel_id: ChannelId,
        /// The runtime that serves it.
        runtime: RuntimeName,
        /// How it stands.
        status: Status,
        /// Why, when there is more to say than the status.
        reason: Option<Reason>,
        /// A sentence for people.
        message: String,
        /// What it should be; absent before the first release.
        desired_version: Option<String>,
        /// The newest version that was seen converged.
        converged_version: Option<String>,
        /// Since when status and reason are what they are.
        since: Timestamp,
        /// When something happens next by itself.
        next_action_at: Option<Timestamp>,
        /// When a fetch last answered.
        last_fetch_at: Option<Timestamp>,
        /// What the last answering structured fetch saw.
        objects: Vec<RuntimeObject>,
        /// What the last getInfo told.
        info: Vec<Info>,
        /// Approvals asked for, newest first.
        approvals: Vec<Approval>,
        /// Whether a person paused it.
        paused: bool,
        /// Whether it only looks and never applies.
        observer: bool,
    }
}

body! {
    /// An approval asked for.
    Approval {
        /// Its id.
        id: ApprovalId,
        /// What is approved.
        kind: ApprovalKind,
        /// The name that the config gave it.
        name: Option<String>,
        /// How it stands.
        status: ApprovalStatus,
        /// The fingerprint of what is approved: of the explanation, else of the plan, else of what fetch saw.
        plan_digest: Option<String>,
        /// What the plan would do, for people (text of `plan-explanation`, cut at 64 KiB).
        explanation: Option<String>,
        /// How many different people must say yes.
        needed: u32,
        /// Who said what.
        by: Vec<ApprovalVote>,
        /// Since when it is asked.
        requested_at: Timestamp,
        /// When it stops being valid.
        expires_at: Option<Timestamp>,
    }
}

body! {
    /// What one person said about an approval.
    ApprovalVote {
        /// Name of the token used.
        who: String,
        /// When.
        when: Timestamp,
        /// What.
        decision: Decision,
        /// In their words.
        reason: Option<String>,
    }
}

body! {
    /// Why an instance stands where it stands: `services explain`.
    Explanation {
        /// How it stands.
        status: Status,
        /// Why.
        reason: Option<Reason>,
        /// The sentence for people.
        message: String,
        /// From what is so to what would end it.
        causes: Vec<Cause>,
        /// What happens next by itself, soonest first.
        next: Vec<NextAction>,
    }
}

body! {
    /// One link in the chain of causes.
    Cause {
        /// A stable word in upper case, for programs: `LIMIT_FULL`, `WINDOW_SHUT`, `APPROVAL_PENDING`.
        code: String,
        /// The sentence for people, with names and numbers in it, and what would end it.
        message: String,
        /// Since when.
        since: Option<Timestamp>,
        /// Until when at the latest, where that is known.
        until: Option<Timestamp>,
    }
}

body! {
    /// Something that will happen by itself.
    NextAction {
        /// What: `fetch`, `apply`, `getInfo`, or `deadline: …`.
        action: String,
        /// When.
        at: Timestamp,
    }
}

request! {
    /// Body of `POST /v1/applications/{app}/services/{service}/push`.
    PushRequest {
        /// Values for all channels.
        params: BTreeMap<String, String>,
        /// Values for one channel each, which win.
        params_for_channel: BTreeMap<String, BTreeMap<String, String>>,
        /// Only these channels; absent means all.
        channels: Option<Vec<String>>,
    }
}

body! {
    /// A release made: answer of push and rollback, `services push -o json`.
    Pushed {
        /// The release.
        release: ReleaseId,
        /// The version that it was given.
        version: String,
    }
}

request! {
    /// Body of `POST …/channels/{channel}/approve` and `…/reject`.
    DecisionRequest {
        /// Which approval; absent means the one that is pending.
        approval: Option<String>,
        /// In the person's words.
        reason: Option<String>,
        /// Only if the pending approval is still about this: its `planDigest`.
        plan_digest: Option<String>,
    }
}

request! {
    /// Body of `POST …/rollback`.
    RollbackRequest {
        /// To which version; absent means the last one that converged.
        version: Option<String>,
        /// Only these channels; absent means all.
        channels: Option<Vec<String>>,
    }
}

// ---- jobs ----

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

// ---- runtimes, applications, releases ----

body! {
    /// A runtime.
    Runtime {
        /// Its id.
        id: RuntimeId,
        /// Its name.
        name: RuntimeName,
        /// `custom`, `local`, `fake`, `kubernetes`.
        kind: String,
        /// Its labels, with the automatic ones.
        labels: BTreeMap<String, String>,
        /// Where its jobs run, for a custom one.
        proxy_runtime: Option<RuntimeName>,
        /// Applies at a time; absent means no limit.
        max_concurrency: Option<u32>,
        /// Instances that it serves.
        instances: u64,
    }
}

body! {
    /// An application in one line.
    ApplicationSummary {
        /// Its id.
        id: ApplicationId,
        /// Its name.
        name: ApplicationName,
        /// Its channels, in order.
        release_channels: Vec<ChannelName>,
        /// How many services it has.
        services: u64,
    }
}

body! {
    /// An application: `applications get`.
    Application {
        /// Its id.
        id: ApplicationId,
        /// Its name.
        name: ApplicationName,
        /// Its channels, in order, groups expanded.
        release_channels: Vec<ReleaseChannel>,
        /// Its services by name.
        services: Vec<ServiceName>,
    }
}

body! {
    /// A release channel.
    ReleaseChannel {
        /// Its id.
        id: ChannelId,
        /// Its name.
        name: ChannelName,
        /// The group that made it.
        group: Option<String>,
        /// Its runtime connections.
        runtimes: Vec<RuntimeConnection>,
        /// Its preconditions, as the config says them.
        preconditions: Vec<serde_json::Value>,
        /// Its labels.
        labels: BTreeMap<String, String>,
    }
}

body! {
    /// A runtime under the name by which a channel's services ask for it.
    RuntimeConnection {
        /// The connection's name.
        name: String,
        /// The runtime.
        runtime: RuntimeName,
    }
}

body! {
    /// A release: `releases list`.
    Release {
        /// Its id.
        release: ReleaseId,
        /// Its version.
        version: String,
        /// The application.
        application: ApplicationName,
        /// The service.
        service: ServiceName,
        /// How it stands, over all its channels.
        status: Status,
        /// When it was made.
        created_at: Timestamp,
        /// By whom.
        by: String,
        /// Channel by channel.
        channels: Vec<ChannelStatus>,
        /// The parameter values; secrets as `***`.
        params: BTreeMap<String, String>,
    }
}

// ---- configs ----

request! {
    /// Body of `POST /v1/configs`: the files as the client read them.
    ConfigsRequest {
        /// The files.
        files: Vec<ConfigFile>,
        /// Check and compare, store nothing.
        dry_run: bool,
        /// Push a release of every service in the files afterwards, in the same step.
        push: bool,
        /// Parameter values for that push.
        params: BTreeMap<String, String>,
    }
}

request! {
    /// One config file.
    ConfigFile {
        /// Its path as the person knows it, for messages.
        path: String,
        /// Its text.
        text: String,
        /// The local files that it refers to, by the path written in it.
        attachments: BTreeMap<String, String>,
    }
}

body! {
    /// What `configs apply` and `configs diff` did or would do.
    ConfigsResult {
        /// One entry for each document, in the order given.
        documents: Vec<DocumentChange>,
        /// The releases made, when asked to push.
        pushed: Vec<PushedService>,
    }
}

body! {
    /// What happens to one document.
    DocumentChange {
        /// `runtime`, `application` or `service`.
        kind: String,
        /// Its name.
        name: String,
        /// The application, for a service.
        application: Option<ApplicationName>,
        /// `created`, `changed` or `unchanged`.
        change: String,
        /// The config version that it has now (or would have).
        version: u64,
        /// Unified diff from the stored text to the new one; empty when unchanged.
        diff: String,
    }
}

body! {
    /// A release made by a push of configs.
    PushedService {
        /// The application.
        application: ApplicationName,
        /// The service.
        service: ServiceName,
        /// The release.
        release: ReleaseId,
        /// Its version.
        version: String,
    }
}

// ---- events, tokens, secrets, errors ----

body! {
    /// One entry of the append-only log: the timeline and the audit.
    LogEntry {
        /// Its number; later entries have greater ones.
        seq: u64,
        /// When.
        at: Timestamp,
        /// A stable dotted word: `instance.status`, `job.started`, `config.applied`, `approval.decided`.
        kind: String,
        /// Who, for what a person did.
        actor: Option<String>,
        /// From where, for what a person did.
        origin: Option<String>,
        /// The application concerned.
        application: Option<ApplicationName>,
        /// The service concerned.
        service: Option<ServiceName>,
        /// The channel concerned.
        channel: Option<ChannelName>,
        /// A sentence for people.
        message: String,
        /// More, for programs.
        data: serde_json::Value,
    }
}

body! {
    /// A page of a list. The next one is asked for with `?cursor=`.
    Page {
        /// The items.
        items: Vec<serde_json::Value>,
        /// Present when there are more.
        next_cursor: Option<String>,
        /// How many there are in all, under the same filter.
        total: u64,
    }
}

body! {
    /// A secret, without its values: `secrets list`.
    Secret {
        /// Its key.
        key: String,
        /// Its versions, oldest first.
        versions: Vec<u64>,
        /// When the newest was set.
        created_at: Timestamp,
    }
}

request! {
    /// Body of `PUT /v1/secrets/{key}`.
    SecretRequest {
        /// The value, base64, so that any bytes may be a secret.
        value: String,
    }
}

body! {
    /// An error: RFC 9457, `application/problem+json`.
    Problem {
        /// A stable path that names the kind of problem.
        #[serde(rename = "type")]
        kind: String,
        /// The kind in words.
        title: String,
        /// The HTTP status.
        status: u16,
        /// What happened, with names, and what to do next.
        detail: String,
        /// For config problems: each with its place.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<Diagnostic>,
    }
}

body! {
    /// One problem in a config file.
    Diagnostic {
        /// The file.
        file: String,
        /// Line, from 1; 0 when the whole file is meant.
        line: u64,
        /// Column in characters, from 1.
        column: u64,
        /// Path of the field, dotted: `service.perReleaseChannel[0].env`.
        path: String,
        /// What is wrong and what was expected.
        message: String,
        /// What to do, or what was probably meant.
        help: Option<String>,
        /// The lines themselves with the place marked, as a terminal shows them, without colour.
        snippet: String,
    }
}

impl Default for ConfigsResult {
    fn default() -> Self {
        Self { documents: Vec::new(), pushed: Vec::new() }
    }
}
