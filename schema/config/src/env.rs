//! Environment variables of a config: plain, secret, or from the cluster.

use std::collections::BTreeMap;

use crate::message;

/// Environment by key; keys are `^[a-zA-Z_][a-zA-Z0-9_]*$`.
pub type Env = BTreeMap<String, EnvValue>;

message! {
    /// The value of an environment variable: exactly one of its fields.
    #[schemars(extend("x-exactlyOne" = ["value", "rawSecret", "secret", "kubernetesSecret"]))]
    EnvValue {
        /// The value as it stands.
        value: Option<String>,
        /// A secret value written here; masked wherever it would be shown.
        raw_secret: Option<String>,
        /// A secret kept by the scheduler (`pvnctl secrets set`).
        secret: Option<SecretRef>,
        /// A secret of the Kubernetes cluster where the job runs.
        kubernetes_secret: Option<KubernetesSecret>,
    }
}

/// What the key of a secret that the scheduler keeps looks like, in words. `pvnctl secrets set` goes by it, and so does every document
/// that names one.
pub const SECRET_KEY_RULE: &str = "keys of secrets are 1 to 128 letters, digits, `.`, `_`, `-` and `/`";

/// The same as a pattern.
const SECRET_KEY_PATTERN: &str = r"^[A-Za-z0-9_./-]{1,128}$";

/// Longest key, bytes.
const SECRET_KEY_LIMIT: usize = 128;

/// Whether a secret can have this key.
pub fn is_secret_key(key: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    (1..=SECRET_KEY_LIMIT).contains(&key.len()) && key.bytes().all(legal)
}

message! {
    /// A secret kept by the scheduler.
    SecretRef {
        /// Its key: 1 to 128 letters, digits, `.`, `_`, `-` and `/`.
        #[schemars(regex(pattern = SECRET_KEY_PATTERN), extend("patternErrorMessage" = SECRET_KEY_RULE))]
        key: String,
        /// Its version, from 1. Default: the latest.
        #[schemars(range(min = 1))]
        version: Option<u32>,
    }
}

message! {
    /// A key of a Kubernetes Secret.
    KubernetesSecret {
        /// Name of the Secret.
        #[schemars(length(min = 1))]
        secret_name: String,
        /// Key inside it.
        #[schemars(length(min = 1))]
        key: String,
    }
}

/// Which of its fields an [`EnvValue`] has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EnvValueKind<'a> {
    /// `value`.
    Value(&'a str),
    /// `rawSecret`.
    RawSecret(&'a str),
    /// `secret`.
    Secret(&'a SecretRef),
    /// `kubernetesSecret`.
    KubernetesSecret(&'a KubernetesSecret),
}

impl EnvValue {
    /// The one field that is set.
    ///
    /// # Panics
    /// Never for a value that the reader made, which refuses none and two.
    pub fn kind(&self) -> EnvValueKind<'_> {
        let kinds = [
            self.value.as_deref().map(EnvValueKind::Value),
            self.raw_secret.as_deref().map(EnvValueKind::RawSecret),
            self.secret.as_ref().map(EnvValueKind::Secret),
            self.kubernetes_secret.as_ref().map(EnvValueKind::KubernetesSecret),
        ];
        kinds.into_iter().flatten().next().expect("the reader checked that exactly one is set")
    }
}
