//! What config is stored: the list of documents, and one with its versions and what changed.

use askama::Template;
use schema::api::Page;
use schema::time::Timestamp;

use crate::frame::Frame;
use crate::links::query;
use crate::{Rendered, render};

/// What names a document.
#[derive(Debug, Clone)]
pub struct DocumentPlace {
    /// `runtime`, `application` or `service`.
    pub kind: String,
    /// The application of a service, else empty.
    pub application: String,
    pub name: String,
}

impl DocumentPlace {
    fn href(&self) -> String {
        self.version_href("")
    }

    /// Its page at a version; at the newest where that is empty.
    fn version_href(&self, version: &str) -> String {
        let pairs = [
            ("kind", self.kind.as_str()),
            ("application", &self.application),
            ("name", &self.name),
            ("version", version),
        ];
        query("/configs/document", &pairs)
    }

    fn label(&self) -> String {
        let before = if self.application.is_empty() { "" } else { "/" };
        format!("{}{before}{}", self.application, self.name)
    }
}

/// A version of a document in a list.
#[derive(Debug, Clone)]
pub struct DocumentRow {
    pub place: DocumentPlace,
    pub version: u64,
    pub created_at: Timestamp,
    pub created_by: String,
}

#[derive(Template)]
#[template(path = "configs.html")]
struct ConfigsView<'a> {
    frame: &'a Frame,
    name: &'a str,
    list: &'a Page<DocumentRow>,
    next: Option<String>,
}

/// A page of the documents in force; `name`: what they were narrowed to.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn configs(frame: &Frame, name: &str, list: &Page<DocumentRow>) -> Rendered {
    let next = list.next_cursor.as_deref();
    let next = next.map(|cursor| query("/configs", &[("name", name), ("cursor", cursor)]));
    render(&ConfigsView { frame, name, list, next })
}

/// A version of a document.
#[derive(Debug)]
pub struct DocumentDetails {
    pub shown: DocumentRow,
    /// The file that it was read from, and the line on which it begins there, from 1.
    pub file: String,
    pub first_line: usize,
    /// As it was written, without what is secret.
    pub text: String,
    /// Paths of the files that came with it.
    pub attachments: Vec<String>,
    /// The version that it is compared with; nothing for the first.
    pub compared: Option<u64>,
    /// What changed since that one, as a unified diff; empty where nothing did.
    pub diff: String,
    /// All versions that are offered, newest first.
    pub versions: Vec<DocumentRow>,
}

#[derive(Template)]
#[template(path = "document.html")]
struct DocumentView<'a> {
    frame: &'a Frame,
    details: &'a DocumentDetails,
}

impl DocumentView<'_> {
    fn at(&self, row: &DocumentRow) -> String {
        row.place.version_href(&row.version.to_string())
    }

    fn is_shown(&self, row: &DocumentRow) -> bool {
        row.version == self.details.shown.version
    }

    fn is_compared(&self, row: &DocumentRow) -> bool {
        self.details.compared == Some(row.version)
    }

    /// A version that is compared and older than those that are offered.
    fn is_not_offered(&self, version: &u64) -> bool {
        !self.details.versions.iter().any(|row| row.version == *version)
    }

    /// What is compared, in a heading.
    fn compared_in_words(&self, with: &u64) -> String {
        let shown = self.details.shown.version;
        if shown.checked_sub(1) == Some(*with) {
            format!("Changed since version {with}")
        } else {
            format!("From version {with} to {shown}")
        }
    }
}

/// The page of a version of a document.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn document(frame: &Frame, details: &DocumentDetails) -> Rendered {
    render(&DocumentView { frame, details })
}
