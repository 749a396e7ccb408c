//! Structured output: what a fetch in mode `STRUCTURED_OUTPUT` and a getInfo command print on
//! stdout (docs/commands.md, "Structured output"). The JSON Schemas are made from these types;
//! `check` holds a document against them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Most bytes of stdout that are read as structured output: 8 MiB.
pub const OUTPUT_LIMIT_BYTES: usize = 8 << 20;

/// What a structured fetch saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FetchOutput {
    /// Every object that the runtime keeps for this service.
    pub objects: Vec<RuntimeObject>,
}

/// One thing in the outside world: a process, a deployment, a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RuntimeObject {
    /// Its name, unique with `objectType`.
    pub name: String,
    /// Its kind, in the words of the tool.
    pub object_type: String,
    /// The versions of it that exist, active or on their way in or out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ObjectVersion>,
    /// How it fares.
    #[serde(default)]
    pub status: ObjectStatus,
    /// Where a person can look at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_links: Vec<ExternalLink>,
    /// What happened to it, for whoever has to find out why it is not well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debug_events: Vec<DebugEvent>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One version of a runtime object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ObjectVersion {
    /// The service version that made it; empty when unknown or not started by pvn.
    pub version: String,
    /// Whether it is the one meant to serve.
    #[serde(default)]
    pub active: bool,
    /// Whether somebody changed it behind pvn's back.
    #[serde(default)]
    pub drifted: bool,
    /// Replicas that exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Replicas that serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i64>,
    /// Replicas that are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_replicas: Option<i64>,
}

/// How a runtime object fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ObjectStatus {
    /// Still on its way.
    #[default]
    Pending,
    /// As it should be.
    Succeeded,
    /// Broken.
    Failed,
}

/// A link out of pvn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ExternalLink {
    /// What is behind it.
    #[serde(default, rename = "type")]
    pub kind: LinkKind,
    /// Where it leads.
    pub url: String,
    /// What people read.
    pub name: String,
}

/// What is behind a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LinkKind {
    /// Not said.
    #[default]
    Unknown,
    /// A page about the object.
    Detail,
    /// Its logs.
    Log,
    /// The application itself.
    App,
}

/// Something that happened to a runtime object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DebugEvent {
    /// When.
    pub timestamp: Timestamp,
    /// What.
    pub message: String,
}

/// What a getInfo command tells people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GetInfoOutput {
    /// Named texts, in the order in which they are shown.
    pub outputs: Vec<Info>,
}

/// One named text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Info {
    /// What the text is about.
    pub name: String,
    /// The text.
    pub text: String,
}
