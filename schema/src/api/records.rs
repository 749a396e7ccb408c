//! The log, pages of lists, secrets and problems.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{RoleSet, TokenRights, TokenScope};
use crate::id::{ApplicationName, ChannelName, ServiceName};
use crate::status::Role;
use crate::time::Timestamp;

body! {
    /// One entry of the append-only log: the timeline and the audit.
    LogEntry {
        /// Its number; later entries have greater ones.
        seq: u64,
        /// When.
        at: Timestamp,
        /// A stable dotted word of [`crate::log_kind::LogKind`], or one that an earlier version
        /// wrote.
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

/// A page of a list. The next one is asked for with `?cursor=`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T = serde_json::Value> {
    /// The items.
    pub items: Vec<T>,
    /// Present when there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How many there are in all, under the same filter; of jobs and log entries at most 10,000
    /// are counted.
    pub total: u64,
    /// What belongs on this page and cannot be read, each with its place in the database and the
    /// reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

body! {
    /// An API token, without its value: `auth token list`.
    Token {
        /// Its name, which the audit log and approvals show.
        name: String,
        /// Its role, where it has one alone; `roles` has all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        /// When it was made.
        created_at: Timestamp,
        /// When it stops being valid by itself.
        expires_at: Option<Timestamp>,
        /// When a person ended it.
        revoked_at: Option<Timestamp>,
        /// Everything that it may do: its roles, none that another of them includes. Absent in the
        /// answers of older schedulers, where `role` is the only one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roles: Vec<Role>,
        /// The applications in which it may change something; absent: in all. It reads everywhere.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        applications: Vec<ApplicationName>,
        /// The names of the channels in which it may change something; absent: in all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        channels: Vec<ChannelName>,
    }
}

/// Body of `POST /v1/tokens`: what it may do is `role`, `roles`, or both together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRequest {
    /// Its name, 1 to 63 characters of letters, digits, `.`, `_`, `@` and `-`; unique for ever,
    /// because the audit log names it.
    pub name: String,
    /// What it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How long it is valid, seconds; absent means until it is revoked.
    #[serde(default)]
    pub valid_for_seconds: Option<u64>,
    /// More of what it may do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// Limits what it may change to these applications, each a name or an id; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applications: Option<Vec<String>>,
    /// Limits what it may change to release channels of these names; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<String>>,
}

impl TokenRequest {
    /// A token of this name with this role, valid until it is revoked.
    pub fn new(name: &str, role: Role) -> Self {
        Self { name: name.to_owned(), role: Some(role), ..Self::default() }
    }
}

impl Token {
    /// What it may, and where; `None` where no role is named, which no scheduler answers.
    pub fn rights(&self) -> Option<TokenRights> {
        let roles = RoleSet::new(self.roles.iter().copied().chain(self.role))?;
        let applications = self.applications.iter().cloned().collect();
        let channels = self.channels.iter().cloned().collect();
        Some(TokenRights { roles, scope: TokenScope { applications, channels } })
    }
}

request! {
    /// Body of `POST /v1/sign-in`.
    SignInRequest {
        /// The code of the link that the scheduler printed.
        code: String,
    }
}

body! {
    /// A token just made: the only time that its value is shown.
    NewToken {
        /// Its name.
        name: String,
        /// Its role, where it has one alone; `roles` has all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<Role>,
        /// The value to send as `Authorization: Bearer …`.
        token: String,
        /// When it stops being valid by itself.
        expires_at: Option<Timestamp>,
        /// Everything that it may do: its roles, none that another of them includes. Absent in the
        /// answers of older schedulers, where `role` is the only one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roles: Vec<Role>,
        /// The applications in which it may change something; absent: in all. It reads everywhere.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        applications: Vec<ApplicationName>,
        /// The names of the channels in which it may change something; absent: in all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        channels: Vec<ChannelName>,
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
        /// Whether a value that is the latest already makes no new version.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        if_changed: bool,
    }
}

body! {
    /// A secret's version just set: answer of `PUT /v1/secrets/{key}`.
    SecretVersion {
        /// Its key.
        key: String,
        /// The number of the version just set.
        version: u64,
        /// What is allowed and probably not meant: a value that is too short to be masked in what
        /// jobs print.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
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
