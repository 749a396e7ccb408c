//! Config files -> documents, or every problem of every file. Pure: the client has read the files
//! and what they refer to.
//!
//! ```text
//! text --cut--> document texts --yaml--> tree --coerce--> value --schema--> typed body --rules--> Document
//!                                 |                         |                   |            |
//!                                 one problem               twice-given      problems by pointer, shown at their place
//! ```

use std::collections::HashMap;

use schema::api::ConfigFile;
use schema::check::{Problem, ValueFault, cut};
use schema::id::BlobId;
use serde_json::Value;

use crate::diagnostic::{self, Diagnostic};
use crate::document::{Document, Noticed, body_of};
use crate::local::{self, Reference};
use crate::rules::RuleViolation;
use crate::source::{
    CHECKER, DOCUMENT_PROBLEM_LIMIT, DocumentSource, Parsed, diagnostic_at, parse,
};
use crate::yaml::{self, YamlNode};
use crate::{Body, groups, ineffective, rules, unmasked};

mod faults;

/// Largest config file and largest local file, in bytes: 8 MiB.
pub const FILE_LIMIT_BYTES: usize = 8 << 20;

/// Most problems told in one go.
pub const PROBLEM_LIMIT: usize = 1000;

/// Reads config files.
///
/// # Errors
/// Every problem of every file, in their order; at most [`PROBLEM_LIMIT`].
pub fn read(files: &[ConfigFile]) -> Result<Vec<Document>, Vec<Diagnostic>> {
    let mut documents: Vec<Document> = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        if file.text.len() > FILE_LIMIT_BYTES {
            problems.push(too_large(&file.path, file.text.len() as u64));
            continue;
        }
        for source in cut_file(&file.path, &file.text) {
            let source = DocumentSource { attachments: attachments_of(&source, file), ..source };
            match read_source(source) {
                Ok(Some(document)) => documents.push(document),
                Ok(None) => {}
                Err(found) => problems.extend(found),
            }
        }
    }
    problems.extend(same_name_twice(&documents));
    if problems.is_empty() {
        return Ok(documents);
    }
    // One go for everything: what the sound documents say wrongly about each other does not wait
    // for the broken ones.
    problems.extend(crate::check_references(&documents));
    if problems.len() > PROBLEM_LIMIT {
        problems.truncate(PROBLEM_LIMIT);
        let last =
            Diagnostic::of_file("", format!("only the first {PROBLEM_LIMIT} problems are shown"));
        problems.push(last);
    }
    Err(problems)
}

/// Reads one document again that [`Document::source`] gave. `None` when its text holds none.
///
/// # Errors
/// Every problem; none for a source of the same version of pvn.
pub fn read_source(source: DocumentSource) -> Result<Option<Document>, Vec<Diagnostic>> {
    let (shared, hidden, parsed) = parse(&source);
    read_parsed(source, shared, parsed).map_err(|mut problems| {
        for problem in &mut problems {
            problem.message = hidden.hide(&problem.message);
            problem.path = hidden.hide(&problem.path);
            problem.help = problem.help.as_deref().map(|help| hidden.hide(help));
        }
        problems
    })
}

fn read_parsed(
    source: DocumentSource,
    shared: diagnostic::NamedText,
    parsed: Result<Option<Parsed>, Vec<Diagnostic>>,
) -> Result<Option<Document>, Vec<Diagnostic>> {
    let Some(parsed) = parsed? else { return Ok(None) };
    let Parsed { tree, mut value, mut problems } = parsed;
    let room = DOCUMENT_PROBLEM_LIMIT.saturating_sub(problems.len());
    let found = CHECKER.with(|checker| checker.check(&value, room));
    // What is wrong by itself is taken out, so that the rest can still be held against the rules.
    found.iter().for_each(|problem| take_out(&mut value, problem));
    let is_whole = found.is_empty() && problems.is_empty();
    problems.extend(faults::schema_problems(found, &tree, &shared));
    let at = |pointer: &str, message: String| place(&tree, &shared, pointer, message);
    let told =
        |rule: RuleViolation| Diagnostic { help: rule.help, ..at(&rule.pointer, rule.message) };
    let body = match body_of(&value) {
        Ok(body) => body.inspect(|body| {
            problems.extend(rules::check(body, &source.attachments, is_whole).into_iter().map(told))
        }),
        // The schema is made from the types, so a value that passed it fits them; if it does not,
        // that is told, not hidden.
        Err(error) if is_whole => {
            return Err(vec![at("", format!("not a config document: {error}"))]);
        }
        Err(_) => {
            let broken =
                CHECKER.with(|checker| groups::broken_rules(&value, &source.attachments, checker));
            problems.extend(broken.into_iter().map(told));
            None
        }
    };
    let Some(body) = body.filter(|_| problems.is_empty()) else {
        problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        problems.truncate(DOCUMENT_PROBLEM_LIMIT);
        return Err(problems);
    };
    let digest = digest(&body, &source);
    let noticed = Noticed {
        flawed_secrets: unmasked::flaws(&tree, &source.text),
        variables_of_pvn: ineffective::variables_of_pvn(&tree),
    };
    Ok(Some(Document { body, source, digest, noticed, places: Default::default() }))
}

/// The local files and directories that the documents of a config file ask for, in order, each with
/// a way to point at the field that asks. Of a text with problems what can be made out; [`read`]
/// tells the problems.
pub fn references(path: &str, text: &str) -> Vec<(Reference, Diagnostic)> {
    if text.len() > FILE_LIMIT_BYTES {
        return Vec::new();
    }
    let mut wanted = Vec::new();
    for source in cut_file(path, text) {
        let (shared, _, parsed) = parse(&source);
        if let Ok(Some(parsed)) = parsed {
            let found = local_blocks(&parsed.value);
            wanted.extend(found.into_iter().map(|reference| {
                let asked = place(
                    &parsed.tree,
                    &shared,
                    &reference.pointer,
                    format!("cannot read `{}`", cut(&reference.path)),
                );
                (reference, asked)
            }));
        }
    }
    wanted
}

/// A file that is larger than [`FILE_LIMIT_BYTES`].
pub fn too_large(path: &str, bytes: u64) -> Diagnostic {
    Diagnostic::of_file(
        path,
        format!("{bytes} bytes are too many; the limit is {FILE_LIMIT_BYTES} (8 MiB) a file"),
    )
}

/// A file that is not UTF-8 from this byte on.
pub fn not_utf8(path: &str, valid_up_to: usize) -> Diagnostic {
    Diagnostic::of_file(path, format!("not UTF-8 at byte {valid_up_to}"))
        .help("save the file as UTF-8 text")
}

/// Where a pointer leads: the value, the key of one that is long, or the nearest thing around one
/// that is not there.
fn place(
    tree: &YamlNode,
    shared: &diagnostic::NamedText,
    pointer: &str,
    message: String,
) -> Diagnostic {
    let (node, entry, found) = tree.nearest(pointer);
    let is_long = shared
        .text
        .get(node.span.clone())
        .is_none_or(|text| text.contains('\n') || text.is_empty());
    let span = match entry {
        Some(entry) if !found || is_long => entry.key_span.clone(),
        _ => node.span.clone(),
    };
    diagnostic_at(shared, span, pointer, message)
}

/// Removes the field that a problem is about, unless the problem is about the fields in it.
fn take_out(value: &mut Value, problem: &Problem) {
    let is_group = match &problem.fault {
        ValueFault::Rule(rule) => {
            ["exactly one of ", "at most one of "].iter().any(|start| rule.starts_with(start))
        }
        _ => false,
    };
    if let Some((parent, name)) = problem.pointer.rsplit_once('/').filter(|_| !is_group)
        && let Some(Value::Object(parent)) = value.pointer_mut(parent)
    {
        parent.shift_remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// Every `local` block of a document, whatever else is wrong with it.
fn local_blocks(value: &Value) -> Vec<Reference> {
    let mut found = Vec::new();
    CHECKER.with(|checker| {
        checker.visit(value, &mut |pointer, definition, value| {
            if definition == "/definitions/LocalFiles"
                && let Ok(local) = serde_json::from_value(value.clone())
            {
                found.extend(local::references(&local, pointer));
            }
        });
    });
    found
}

/// The documents of a file, each with its own text, unread.
fn cut_file<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = DocumentSource> + 'a {
    let (mut line, mut at) = (1, 0);
    yaml::documents(text).into_iter().map(move |range| {
        line += text[at..range.start].matches('\n').count();
        at = range.start;
        DocumentSource {
            file: path.to_owned(),
            first_line: line,
            text: text[range].to_owned(),
            attachments: Default::default(),
        }
    })
}

/// Of the files sent along, those that this document asks for.
fn attachments_of(
    source: &DocumentSource,
    file: &ConfigFile,
) -> std::collections::BTreeMap<String, String> {
    if file.attachments.is_empty() {
        return Default::default();
    }
    let wanted = references(&source.file, &source.text);
    let is_wanted = |name: &str| {
        wanted.iter().any(|(reference, _)| {
            name.strip_prefix(reference.path.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    file.attachments
        .iter()
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, text)| (name.clone(), text.clone()))
        .collect()
}

fn digest(body: &Body, source: &DocumentSource) -> BlobId {
    let meaning = serde_json::json!([body.kind(), body.meaning(), source.attachments]);
    BlobId::of(meaning.to_string().as_bytes())
}

fn same_name_twice(documents: &[Document]) -> Vec<Diagnostic> {
    let mut first: HashMap<(&str, Option<&str>, &str), &Document> = HashMap::new();
    let mut problems = Vec::new();
    for document in documents {
        let key = (
            document.kind(),
            document.application().map(|application| application.as_str()),
            document.name(),
        );
        match first.get(&key) {
            None => {
                first.insert(key, document);
            }
            Some(earlier) => {
                let (line, _) =
                    earlier.problem(&format!("/{}/name", earlier.kind()), "").line_and_column();
                let of = document
                    .application()
                    .map(|application| format!(" of application `{application}`"))
                    .unwrap_or_default();
                let message = format!(
                    "{} `{}`{of} is given twice; the first is at {}:{line}",
                    document.kind(),
                    document.name(),
                    earlier.source().file
                );
                problems.push(document.problem(&format!("/{}/name", document.kind()), message));
            }
        }
    }
    problems
}
