//! Config files on their way in, and what became of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Diagnostic;
use crate::id::{ApplicationName, ReleaseId, ServiceName};
use crate::time::Timestamp;

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
        /// The `basis` of an earlier answer: with 409 nothing is stored where these files meet
        /// other documents by now, or take away other releases with a channel.
        #[serde(skip_serializing_if = "Option::is_none")]
        basis: Option<String>,
        /// Also delete the services that no file gives, of each application whose document the
        /// files give.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        prune: bool,
        /// Documents to delete, in a request without files. An application goes with all of its
        /// services.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        delete: Vec<DocumentReference>,
    }
}

request! {
    /// Names a stored document.
    DocumentReference {
        /// `runtime`, `application` or `service`.
        kind: String,
        /// The application of a service; of the other kinds nothing.
        #[serde(skip_serializing_if = "String::is_empty")]
        application: String,
        /// Its name.
        name: String,
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
        /// Names what the files were compared with. Servers of before tell none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        basis: Option<String>,
        /// What is allowed and probably not meant; refused is nothing because of it. Servers of
        /// before tell none.
        #[serde(default)]
        warnings: Vec<Diagnostic>,
        /// Services for which something of this was not done, because a row of the database cannot
        /// be read; all else was.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOut>,
    }
}

body! {
    /// A service that a change leaves as it is.
    LeftOut {
        /// The application.
        application: ApplicationName,
        /// The service.
        service: ServiceName,
        /// What was not done, and which row cannot be read.
        why: String,
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
        /// `created`, `changed`, `unchanged` or `deleted`.
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

body! {
    /// A version of a config document, without its text.
    ConfigVersion {
        /// `runtime`, `application` or `service`.
        kind: String,
        /// Its name.
        name: String,
        /// The application, for a service.
        application: Option<ApplicationName>,
        /// From 1.
        version: u64,
        /// When it was given.
        created_at: Timestamp,
        /// By whom.
        created_by: String,
    }
}

body! {
    /// A config document as it is stored.
    StoredConfig {
        /// Which one it is.
        #[serde(flatten)]
        config: ConfigVersion,
        /// The file that it was in.
        file: String,
        /// As it was written, with its comments; what is secret in it is masked.
        text: String,
        /// Whether something in it is masked: then it cannot be applied as it is here.
        masked: bool,
        /// The files that it refers to and that were stored with it, by their paths.
        attachments: Vec<String>,
        /// The newest versions that are kept, at most 50, newest first.
        versions: Vec<ConfigVersion>,
    }
}
