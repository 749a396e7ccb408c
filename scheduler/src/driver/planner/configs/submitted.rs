//! Documents as they were submitted, held against what there is. Called by `configs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::Document;
use schema::api::DocumentChange;
use schema::id::BlobId;

use super::super::deletions::Deletions;
use super::super::diff;
use super::super::gone::RemovedChannel;
use super::super::snapshot::{ConfigSnapshot, key_of};
use crate::store::StoredDocumentKey;

/// A document that was given, beside what is stored.
pub(in crate::driver::planner) struct SubmittedDocument {
    pub(in crate::driver::planner) document: Arc<Document>,
    pub(in crate::driver::planner) change: &'static str,
    pub(super) version: u64,
    diff: String,
}

impl SubmittedDocument {
    /// Whether nothing of its name was in force.
    pub(in crate::driver::planner) fn is_new(&self) -> bool {
        self.change == "created"
    }

    pub(super) fn is_changed(&self) -> bool {
        self.change != "unchanged"
    }

    pub(super) fn shown(self) -> DocumentChange {
        DocumentChange {
            kind: self.document.kind().to_owned(),
            name: self.document.name().to_owned(),
            application: self.document.application().cloned(),
            change: self.change.to_owned(),
            version: self.version,
            diff: self.diff,
        }
    }
}

/// Names what documents were compared with: the version of a document says which text is stored.
/// What is deleted and what is lost with channels counts with it.
pub(super) fn basis(
    given: &[SubmittedDocument],
    deletions: &Deletions,
    going: &[RemovedChannel],
) -> String {
    let compared = |given: &SubmittedDocument| {
        let document = &given.document;
        (
            document.kind(),
            document.application().cloned(),
            document.name().to_owned(),
            given.change,
            given.version,
        )
    };
    let compared: Vec<_> = given.iter().map(compared).collect();
    let lost: Vec<_> = going.iter().flat_map(RemovedChannel::lost).collect();
    let basis = (compared, deletions.named(), lost);
    BlobId::of(&serde_json::to_vec(&basis).expect("our own types have JSON forms")).to_string()
}

/// Holds a document against what is in force; `deleted` are the newest versions of what is not any
/// more, from which its own go on.
pub(super) fn compare(
    estate: &ConfigSnapshot,
    deleted: &BTreeMap<StoredDocumentKey, u64>,
    document: Arc<Document>,
) -> SubmittedDocument {
    let key = key_of(&document);
    let stored = estate.stored.get(&key);
    let label = key.to_string();
    let new = document.source().text.as_str();
    let (change, version, diff) = match stored {
        None => {
            let version = deleted.get(&key).map_or(1, |last| last + 1);
            ("created", version, diff::diff(&label, None, new))
        }
        Some(stored) if stored.digest == document.digest().to_string() => {
            ("unchanged", stored.version, String::new())
        }
        Some(stored) => {
            ("changed", stored.version + 1, diff::diff(&label, Some(&stored.source.text), new))
        }
    };
    SubmittedDocument { change, version, diff, document }
}
