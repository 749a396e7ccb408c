//! Environment variables of a config: plain, secret, or from the cluster.

use std::collections::BTreeMap;

use crate::message::{message, one_of};
use crate::template::Template;

/// Environment by key; keys are `^[a-zA-Z_][a-zA-Z0-9_]*$`.
pub type Env = BTreeMap<String, EnvValue>;

one_of! {
    /// The value of an environment variable: exactly one of its fields.
    #[schemars(extend("x-exactlyOne" = ["value", "rawSecret", "secret", "kubernetesSecret"]))]
    EnvValue {
        /// The value as it stands.
        value: Template => Value,
        /// A secret value written here; masked wherever it would be shown.
        raw_secret: Template => RawSecret,
        /// A secret kept by the scheduler (`pvnctl secrets set`).
        secret: SecretRef => Secret,
        /// A secret of the Kubernetes cluster where the job runs.
        kubernetes_secret: KubernetesSecret => KubernetesSecret,
    }
}

/// What the key of a secret that the scheduler keeps looks like, in words. `pvnctl secrets set`
/// goes by it, and so does every document that names one.
pub const SECRET_KEY_RULE: &str =
    "keys of secrets are 1 to 128 letters, digits, `.`, `_`, `-` and `/`";

/// The same as a pattern.
const SECRET_KEY_PATTERN: &str = r"^[A-Za-z0-9_./-]{1,128}$";

/// Longest key, bytes.
const SECRET_KEY_LIMIT: usize = 128;

/// Whether a secret can have this key.
pub fn is_secret_key(key: &str) -> bool {
    let legal =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    (1..=SECRET_KEY_LIMIT).contains(&key.len()) && key.bytes().all(legal)
}

message! {
    /// A secret kept by the scheduler.
    SecretRef {
        /// Its key: 1 to 128 letters, digits, `.`, `_`, `-` and `/`.
        #[schemars(
            regex(pattern = SECRET_KEY_PATTERN),
            extend("patternErrorMessage" = SECRET_KEY_RULE)
        )]
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
