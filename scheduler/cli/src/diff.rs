//! What a config change would do, for people: one line a document and the unified diff under it.

use anstyle::{AnsiColor, Style};
use schema::api::{ConfigsResult, DocumentChange};

use crate::table::harmless;

/// Whether anything would change.
pub fn changes(result: &ConfigsResult) -> usize {
    result.documents.iter().filter(|document| document.change != "unchanged").count()
}

/// The name by which people know the document: `service shop/web`.
pub fn name(document: &DocumentChange) -> String {
    match &document.application {
        Some(application) => format!("{} {application}/{}", document.kind, document.name),
        None => format!("{} {}", document.kind, document.name),
    }
}

/// Every change with its diff; unchanged documents are only counted.
pub fn render(result: &ConfigsResult, colour: bool) -> String {
    let style = |wanted: Style| if colour { wanted } else { Style::new() };
    let (added, removed, place) = (
        style(AnsiColor::Green.on_default()),
        style(AnsiColor::Red.on_default()),
        style(AnsiColor::Cyan.on_default()),
    );
    let mut text = String::new();
    for document in result.documents.iter().filter(|document| document.change != "unchanged") {
        let (sign, tone) = match document.change.as_str() {
            "created" => ('+', added),
            "deleted" => ('-', removed),
            _ => ('~', place),
        };
        text += &format!(
            "{tone}{sign} {}{tone:#} ({}, config version {})\n",
            name(document),
            document.change,
            document.version
        );
        for line in harmless(&document.diff).lines() {
            let tone = match line.as_bytes().first() {
                Some(b'+') => added,
                Some(b'-') => removed,
                Some(b'@') => place,
                _ => Style::new(),
            };
            text += &format!("  {tone}{line}{tone:#}\n");
        }
    }
    text
}

/// The changes in a sentence: `1 to create, 2 to change, 3 unchanged`.
pub fn summary(result: &ConfigsResult, done: bool) -> String {
    let count =
        |what: &str| result.documents.iter().filter(|document| document.change == what).count();
    let mut parts = Vec::new();
    for (what, future) in
        [("created", "to create"), ("changed", "to change"), ("deleted", "to delete")]
    {
        match count(what) {
            0 => {}
            number => parts.push(format!("{number} {}", if done { what } else { future })),
        }
    }
    parts.push(format!("{} unchanged", count("unchanged")));
    parts.join(", ")
}
