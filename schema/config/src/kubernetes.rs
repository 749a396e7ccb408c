//! Kubernetes files inside a config: inlined or beside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::message;
use crate::template::Template;

message! {
    /// Kubernetes documents. Under a command of a custom runtime: exactly one `batch/v1` Job and
    /// nothing else.
    #[schemars(extend("x-exactlyOne" = ["inlined", "local"]))]
    KubernetesConfig {
        /// How the documents are made.
        #[serde(rename = "type")]
        kind: KubernetesType,
        /// The documents as YAML text.
        #[schemars(length(min = 1))]
        inlined: Option<String>,
        /// Files that hold the documents.
        local: Option<LocalFiles>,
    }
}

message! {
    /// Kubernetes documents of one channel; each field wins over that of the service.
    #[schemars(extend("x-atMostOne" = ["inlined", "local"]))]
    KubernetesOverride {
        /// How the documents are made.
        #[serde(rename = "type")]
        kind: Option<KubernetesType>,
        /// The documents as YAML text.
        #[schemars(length(min = 1))]
        inlined: Option<String>,
        /// Files that hold the documents.
        local: Option<LocalFiles>,
    }
}

/// How Kubernetes documents are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum KubernetesType {
    /// They stand in the files.
    Kubernetes,
    /// `kustomize build` makes them (not supported yet).
    Kustomize,
}

message! {
    /// Files or a directory beside the config file. The client reads them and sends them along.
    #[schemars(extend("x-exactlyOne" = ["path", "paths"]))]
    LocalFiles {
        /// A file or directory, relative to the config file.
        #[schemars(length(min = 1))]
        path: Option<String>,
        /// Several files, joined in this order.
        #[serde(default)]
        #[schemars(inner(length(min = 1)))]
        paths: Vec<String>,
        /// A file or directory inside `path`, which is a directory then. May be a template.
        #[schemars(length(min = 1))]
        sub_path: Option<Template>,
        /// Of a directory only files that match one of these patterns (as in `.gitignore`).
        /// Default: all `.yaml`, `.yml` and `.json` files.
        #[serde(default)]
        include_patterns: Vec<String>,
        /// Of a directory no file that matches one of these patterns (as in `.gitignore`).
        #[serde(default)]
        exclude_patterns: Vec<String>,
    }
}

impl LocalFiles {
    /// Whether a `subPath` that is a template says which files these are only when it is rendered.
    pub(super) fn has_template(&self) -> bool {
        self.sub_path.as_ref().is_some_and(|path| !path.is_plain())
    }
}
