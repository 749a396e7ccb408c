//! What a tool that is built in finds where its jobs run: what `pvn-wrapper TOOL check` prints, and
//! the scheduler reads of such a job. Nothing in it is a secret.

use serde::{Deserialize, Serialize};

use crate::status::CheckStatus;

/// Most bytes of stdout that are read as a [`ToolCheckOutput`]: some hundred times what a check
/// prints. 64 KiB.
pub const TOOL_CHECK_LIMIT_BYTES: usize = 64 << 10;

/// The document that a check prints. Fields that are not known are left alone: the wrapper in an
/// image may be a newer one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCheckOutput {
    /// In the order in which a job would need it.
    pub findings: Vec<ToolFinding>,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFinding {
    /// What was tried: the word of a [`crate::status::CheckKind`], or one that this version does
    /// not know yet.
    pub what: String,
    /// What was found.
    pub status: CheckStatus,
    /// A sentence for people.
    pub message: String,
    /// What to do about it; there is one exactly when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
