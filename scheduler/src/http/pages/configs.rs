//! `/configs`: the config documents that are stored, as they were written, with their versions and
//! what changed from one to the next. What is secret is masked.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pages::frame::NavEntry;
use pages::{DocumentDetails, DocumentPlace, DocumentRow};
use schema::api::Page;
use serde::Deserialize;

use super::{frame, given, page};
use crate::driver::document_diff;
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::config_text;
use crate::http::error::{Error, Result};
use crate::http::extract::{self, Query};
use crate::store::{DocumentKind, DocumentVersion, StoredDocument, StoredDocumentKey};

/// Documents of one page of the list.
const ROWS: u32 = 50;

/// Versions that are offered of one document, newest first; an older one has its number in the
/// address.
const VERSIONS: u32 = 50;

/// Most of a document, or of what changed in it, that a page shows, bytes.
const SHOWN_BYTES: usize = 256 << 10;

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/configs", get(configs)).route("/configs/document", get(document))
}

#[derive(Deserialize)]
struct ListedDocuments {
    #[serde(default)]
    name: String,
    cursor: Option<String>,
}

fn row(version: DocumentVersion) -> DocumentRow {
    let StoredDocumentKey { kind, application, name } = version.key;
    DocumentRow {
        place: DocumentPlace { kind: kind.as_str().to_owned(), application, name },
        version: version.version,
        created_at: version.created_at,
        created_by: version.created_by,
    }
}

async fn configs(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Query(list): Query<ListedDocuments>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Config", NavEntry::Configs).await?;
    frame.live = Some("/live".to_owned());
    let name = list.name.trim();
    let found =
        api.store.documents_in_force(name, &extract::page(list.cursor, Some(ROWS))?).await?;
    let Page { items, next_cursor, total, unreadable } = found;
    let items = items.into_iter().map(row).collect();
    page(pages::configs(&frame, name, &Page { items, next_cursor, total, unreadable }))
}

#[derive(Deserialize)]
struct WhichDocument {
    kind: String,
    #[serde(default)]
    application: String,
    name: String,
    #[serde(default)]
    version: String,
    /// The version that it is compared with; the one before it where none is given.
    #[serde(default)]
    with: String,
}

async fn document(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Query(which): Query<WhichDocument>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Config", NavEntry::Configs).await?;
    let WhichDocument { kind, application, name, version, with } = which;
    let [version, with] = [numbered(&version)?, numbered(&with)?];
    let is_not_there = || {
        Error::not_found(format!(
            "there is no such version of a {kind} `{name}`; `/configs` lists the documents that \
             are stored"
        ))
    };
    let key = DocumentKind::of(&kind).map(|kind| StoredDocumentKey {
        kind,
        application,
        name: name.clone(),
    });
    let key = key.ok_or_else(is_not_there)?;
    let stored = match version {
        Some(version) => api.store.document_version(&key, version).await?,
        None => api.store.document(&key).await?,
    };
    let stored = stored.ok_or_else(is_not_there)?;
    let before = with.or_else(|| stored.version.checked_sub(1).filter(|before| *before > 0));
    let before = match before {
        Some(before) => api.store.document_version(&key, before).await?,
        None => None,
    };
    if with.is_some() && before.is_none() {
        return Err(is_not_there());
    }
    let versions = api.store.document_versions(&key, VERSIONS).await?;
    frame.title = format!("{kind} {name}");
    let compared = before.as_ref().map(|before| before.version);
    let diff = before.map(|before| changes(&before, &stored)).unwrap_or_default();
    let text = config_text::shown(&api, &stored).await?;
    let StoredDocument { key, version, source, created_at, created_by, .. } = stored;
    let details = DocumentDetails {
        shown: row(DocumentVersion { key, version, created_at, created_by }),
        file: source.file,
        first_line: source.first_line,
        text: schema::shown::beginning(&text, SHOWN_BYTES),
        attachments: source.attachments.into_keys().collect(),
        compared,
        diff: schema::shown::beginning(&diff, SHOWN_BYTES),
        versions: versions.into_iter().map(row).collect(),
    };
    page(pages::document(&frame, &details))
}

/// The number of a version, where one is given.
fn numbered(text: &str) -> Result<Option<u64>> {
    let read = given(text).map(|text| {
        text.parse().map_err(|_| Error::bad_request(format!("`{text}` is no number of a version")))
    });
    read.transpose()
}

/// What changed from one version to the next: of the document all of it, of the files beside it
/// which ones, as nobody knows where in them something secret stands.
fn changes(before: &StoredDocument, after: &StoredDocument) -> String {
    let (old, new) = (&before.source, &after.source);
    let label = format!("{} `{}`", after.key.kind.as_str(), after.key.name);
    let mut changed = document_diff(&label, Some(&old.text), &new.text);
    let paths: BTreeSet<_> = old.attachments.keys().chain(new.attachments.keys()).collect();
    for path in
        paths.into_iter().filter(|path| old.attachments.get(*path) != new.attachments.get(*path))
    {
        changed.push_str(&format!("# the file {path} is another one\n"));
    }
    changed
}
