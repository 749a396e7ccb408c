//! A document that was read, with all that is needed to point at any of its fields later and to
//! store and read it again.

use std::ops::Range;
use std::sync::OnceLock;

use schema::id::{ApplicationName, BlobId};
use serde::Deserialize;
use serde_json::Value;

use crate::diagnostic::{self, Diagnostic};
use crate::source::{self, DocumentSource, Places, diagnostic_at};
use crate::unmasked::WrittenFlaw;
use crate::{Body, LocalFiles, WrittenDocument};

/// One document of a config file, read and checked.
#[derive(Debug, Clone)]
pub struct Document {
    pub(super) body: Body,
    pub(super) source: DocumentSource,
    pub(super) digest: BlobId,
    pub(super) noticed: Noticed,
    /// Read again from the source once something is wrong: thousands of documents are held at a
    /// time, their trees are many times as large as their texts, and nearly all are sound.
    pub(super) places: OnceLock<Box<Places>>,
}

/// What only the text shows and is told as a warning, each with its pointer.
#[derive(Debug, Clone)]
pub(super) struct Noticed {
    /// Raw secrets that are not what somebody meant.
    pub(super) flawed_secrets: Vec<(String, WrittenFlaw)>,
    /// Variables that pvn sets itself, with their names.
    pub(super) variables_of_pvn: Vec<(String, String)>,
}

impl Document {
    fn places(&self) -> &Places {
        self.places.get_or_init(|| Box::new(source::places(&self.source)))
    }

    /// What it says.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// `runtime`, `application` or `service`.
    pub fn kind(&self) -> &'static str {
        self.body.kind()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.body.name()
    }

    /// The application of a service.
    pub fn application(&self) -> Option<&ApplicationName> {
        match &self.body {
            Body::Service(service) => Some(&service.application),
            _ => None,
        }
    }

    /// Its text and files, to store and to read again with [`crate::read_source`].
    pub fn source(&self) -> &DocumentSource {
        &self.source
    }

    /// Digest of what it means: the same for another order of fields, another spelling, comments,
    /// `90s` for `1m30s`.
    pub fn digest(&self) -> BlobId {
        self.digest
    }

    /// A problem at a field, given by its JSON pointer (`/service/env/A`) or its dotted path
    /// (`service.env.A`); for a field that is not there, at the nearest one around it.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Diagnostic {
        let pointer = self.written(path);
        let Places { shown, tree } = self.places();
        let (node, entry, found) = tree.nearest(&pointer);
        let span = match entry {
            Some(entry) if !found || is_long(&self.source.text, &node.span) => {
                entry.key_span.clone()
            }
            _ => node.span.clone(),
        };
        diagnostic_at(shown, span, &pointer, message.into())
    }

    /// The pointer of what somebody wrote for the field with this pointer or dotted path, which may
    /// be one of commands that pvn made.
    fn written(&self, path: &str) -> String {
        let pointer = if path.is_empty() || path.starts_with('/') {
            path.to_owned()
        } else {
            diagnostic::pointer(path)
        };
        match &self.body {
            Body::Runtime(runtime) => runtime.written(&pointer).into_owned(),
            Body::Application(_) | Body::Service(_) => pointer,
        }
    }

    /// The same at a field whose value must not be shown: its lines come without it.
    pub fn problem_hiding(&self, path: &str, message: impl Into<String>) -> Diagnostic {
        let mut problem = self.problem(path, message);
        let pointer = self.written(path);
        let (node, _, _) = self.places().tree.nearest(&pointer);
        let secret = crate::Secret { span: node.span.clone(), path: pointer, value: String::new() };
        problem.source.text = crate::secrets::blanked(&problem.source.text, &[secret]).into();
        problem
    }

    /// The same at a part of the field's text: `needle` as it stands there, the first at or after
    /// byte `from` of the text. Where it cannot be found in the source (escapes, folded lines),
    /// at the field.
    pub fn problem_in(
        &self,
        path: &str,
        from: usize,
        needle: &str,
        message: impl Into<String>,
    ) -> Diagnostic {
        let mut problem = self.problem(path, message);
        let pointer = self.written(path);
        let (node, _, found) = self.places().tree.nearest(&pointer);
        let text = self.source.text.get(node.span.clone()).unwrap_or_default();
        let skipped = text
            .char_indices()
            .map(|(at, _)| at)
            .take_while(|at| *at <= from)
            .last()
            .unwrap_or_default();
        if let Some(at) = text[skipped..].find(needle).filter(|_| found && !needle.is_empty()) {
            let start = node.span.start + skipped + at;
            problem.span = Some(start..start + needle.len());
        }
        problem
    }

    /// The files that a `local` block takes in, in their order: name and text. `sub_path` is the
    /// rendered one.
    pub fn attached<'a>(
        &'a self,
        local: &'a LocalFiles,
        sub_path: Option<&str>,
    ) -> Vec<(&'a str, &'a str)> {
        crate::local::attached(&self.source.attachments, local, sub_path)
    }
}

/// What the JSON value of a document says. `None` when it is of no kind.
///
/// # Errors
/// It does not fit the types.
pub(super) fn body_of(value: &Value) -> Result<Option<Body>, serde_json::Error> {
    Ok(match WrittenDocument::deserialize(value)? {
        WrittenDocument { runtime: Some(runtime), .. } => Some(Body::Runtime(Box::new(runtime))),
        WrittenDocument { application: Some(application), .. } => {
            Some(Body::Application(Box::new(application)))
        }
        WrittenDocument { service: Some(service), .. } => Some(Body::Service(Box::new(service))),
        WrittenDocument { runtime: None, application: None, service: None } => None,
    })
}

impl Body {
    /// `runtime`, `application` or `service`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Runtime(_) => "runtime",
            Self::Application(_) => "application",
            Self::Service(_) => "service",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Runtime(runtime) => runtime.name.as_str(),
            Self::Application(application) => application.name.as_str(),
            Self::Service(service) => service.name.as_str(),
        }
    }

    /// What it means, as JSON in which nothing says less than nothing: no nulls, no empty lists, no
    /// `false`.
    pub(super) fn meaning(&self) -> Value {
        let mut value = match self {
            Self::Runtime(runtime) => serde_json::to_value(runtime),
            Self::Application(application) => serde_json::to_value(application),
            Self::Service(service) => serde_json::to_value(service),
        }
        .expect("documents are JSON");
        prune(&mut value);
        value
    }
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(prune);
            members.retain(|_, member| match member {
                Value::Null | Value::Bool(false) => false,
                Value::Array(items) => !items.is_empty(),
                _ => true,
            });
            members.sort_keys();
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

/// Whether a place goes over several lines, so that its key is the better thing to show.
fn is_long(text: &str, span: &Range<usize>) -> bool {
    text.get(span.clone()).is_some_and(|text| text.contains('\n'))
}
