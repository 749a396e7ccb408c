//! What `preview --json` prints -> whether there is work, and the part of it that may leave the
//! job: which resources change how, and the names of their properties, never a value. The same
//! drift comes to the same text, for an approval is bound to it: Pulumi tells its steps in any
//! order. Pure. Called by `pulumi`.
//!
//! The shape is Pulumi's `PreviewDigest`, the same from 3.17 to 3.260.

use std::collections::BTreeMap;

use schema::shown;
use serde::Serialize;
use serde_json::Value;

use super::failure;

/// Operations of a summary that change nothing, as for Pulumi's own `--expect-no-changes`: besides
/// what stays there is what a program only looks up, which belongs to others.
const NO_CHANGE: &[&str] = &["same", "read", "read-replacement", "discard"];

/// Steps that tell no change either: `--refresh` has one of the first for every resource.
const LOOKS: &[&str] = &["refresh", "diff"];

/// Operations that destroy nothing. What Pulumi may call others is taken for one that does; what is
/// made in the place of something else has a step of its own for that.
const DESTROYS_NOTHING: &[&str] = &["create", "update", "import", "create-replacement"];

/// Steps that a summary does not count: what an `up` that failed has left to be deleted. Source:
/// `Logical` of Pulumi's steps, 3.260.
const UNCOUNTED: &[&str] = &["delete-replaced", "remove-pending-replace"];

/// How people say what becomes of a resource, in the order in which it is told; other operations
/// are called as Pulumi calls them.
const OPERATIONS: &[(&str, &str)] = &[
    ("create", "created"),
    ("update", "updated"),
    ("replace", "replaced"),
    ("delete", "deleted"),
    ("import", "imported"),
];

/// The JSON document in what was printed, which begins with `open` at the start of a line: whatever
/// runs `pulumi`, such as `poetry run`, may say something first.
pub(super) fn document(printed: &[u8], open: char) -> Result<Value, serde_json::Error> {
    let text = String::from_utf8_lossy(printed);
    let start = match text.find(&format!("\n{open}")) {
        Some(start) if !text.starts_with(open) => start,
        _ => 0,
    };
    serde_json::from_str(&text[start..])
}

/// A preview as it is printed.
pub(super) struct PreviewDigest(Value);

impl PreviewDigest {
    pub(super) fn read(printed: &[u8]) -> Result<Self, String> {
        document(printed, '{').map(Self).map_err(|error| {
            format!(
                "`pulumi preview --json` did not print one JSON document ({error}), so it is not \
                 known whether there is work; unset PULUMI_ENABLE_STREAMING_JSON_PREVIEW if it is \
                 set"
            )
        })
    }

    /// What the program and its providers said, for the log.
    pub(super) fn messages(&self) -> String {
        let mut messages = String::new();
        for message in list(&self.0, "diagnostics").map(|diagnostic| text(diagnostic, "message")) {
            messages.push_str(message.trim_end());
            messages.push('\n');
        }
        messages
    }

    /// Why it failed, if it did. What a program prints to its standard error (`info#err`) is no
    /// error.
    pub(super) fn error(&self) -> Option<String> {
        let errors = list(&self.0, "diagnostics")
            .filter(|diagnostic| text(diagnostic, "severity") == "error");
        failure::first(errors.map(|error| {
            let (kind, name) = type_and_name(text(error, "urn"));
            failure::sentence(kind, name, text(error, "message"))
        }))
    }
}

/// What would be done.
#[derive(Debug, Serialize)]
pub(super) struct Preview {
    summary: BTreeMap<String, u64>,
    steps: Vec<PlannedStep>,
}

/// What becomes of a resource. In the order of its fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct PlannedStep {
    urn: String,
    op: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    /// The properties that change: paths where Pulumi has them.
    properties: Vec<String>,
    /// Those for which it has to be replaced.
    #[serde(rename = "replaceReasons", skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

impl Preview {
    /// Reads one that ended well; `Err`: why nothing can be said of it.
    pub(super) fn of(digest: &PreviewDigest) -> Result<Self, String> {
        if let Some(error) = digest.error() {
            return Err(format!("the preview found an error: {error}"));
        }
        let summary = digest.0.get("changeSummary").and_then(counts).ok_or(
            "the preview has no `changeSummary` that can be read, so it is not known whether there \
             is work",
        )?;
        let mut steps: Vec<PlannedStep> = list(&digest.0, "steps")
            .filter(|step| {
                let op = text(step, "op");
                !NO_CHANGE.contains(&op) && !LOOKS.contains(&op)
            })
            .map(PlannedStep::of)
            .collect();
        steps.sort_unstable();
        let preview = Self { summary, steps };
        if let (false, Some(step)) = (preview.is_work(), preview.steps.first()) {
            return Err(format!(
                "the preview counts no change and lists one (`{}`), so it is not known whether \
                 there is work",
                step.line()
            ));
        }
        Ok(preview)
    }

    pub(super) fn is_work(&self) -> bool {
        self.summary.iter().any(|(op, count)| *count > 0 && !NO_CHANGE.contains(&op.as_str()))
            || self.steps.iter().any(|step| UNCOUNTED.contains(&step.op.as_str()))
    }

    /// For programs.
    pub(super) fn document(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }

    /// What is destroyed, or replaced by another, a line each; empty: nothing.
    pub(super) fn destroys(&self) -> String {
        let destroys = |op: &str| !DESTROYS_NOTHING.contains(&op) && !NO_CHANGE.contains(&op);
        let steps = self.steps.iter().filter(|step| destroys(&step.op));
        let lines = steps.map(|step| step.line() + "\n");
        // Whatever the steps say: what is counted is never taken for nothing.
        let untold = self.summary.iter().filter(|(op, count)| {
            **count > 0 && destroys(op) && !self.steps.iter().any(|step| step.op == **op)
        });
        lines.chain(untold.map(|(op, count)| format!("{count} to {op}\n"))).collect()
    }

    /// For people, who see the first line wherever there is room for one.
    pub(super) fn explanation(&self) -> String {
        let changes = told(&self.summary, |op| match op {
            "same" => "unchanged".to_owned(),
            op => format!("to {op}"),
        });
        let none = if self.is_work() { "" } else { "no changes, " };
        let mut text = format!("Preview: {none}{changes}\n");
        if !self.steps.is_empty() {
            text.push('\n');
        }
        for step in &self.steps {
            text.push_str(&step.line());
            text.push('\n');
        }
        text
    }
}

impl PlannedStep {
    fn of(step: &Value) -> Self {
        let urn = text(step, "urn");
        let (kind, name) = type_and_name(urn);
        let reasons = names(step, "replaceReasons");
        // The precise paths where there are any; for what is replaced there are only the names.
        let paths = step.get("detailedDiff").and_then(Value::as_object);
        let mut properties: Vec<String> =
            paths.into_iter().flat_map(serde_json::Map::keys).cloned().collect();
        if properties.is_empty() {
            properties = names(step, "diffReasons");
            properties.extend_from_slice(&reasons);
        }
        let sorted = |mut names: Vec<String>| {
            names.sort_unstable();
            names.dedup();
            names
        };
        Self {
            urn: urn.to_owned(),
            op: text(step, "op").to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            properties: sorted(properties),
            reasons: sorted(reasons),
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{:<8} {} {}", self.op, self.kind, self.name);
        if !self.properties.is_empty() {
            line.push_str(": ");
            line.push_str(&self.properties.join(", "));
        }
        if !self.reasons.is_empty() {
            line.push_str("; replaced because of ");
            line.push_str(&self.reasons.join(", "));
        }
        // A name cannot end its line and begin one of its own making.
        line.replace(shown::steers, "\u{fffd}")
    }
}

/// How many resources have which operation; `None` if one of them is no count.
pub(super) fn counts(summary: &Value) -> Option<BTreeMap<String, u64>> {
    summary.as_object()?.iter().map(|(op, count)| Some((op.clone(), count.as_u64()?))).collect()
}

/// These counts in words, as in `2 to create, 3 unchanged`: what stays as it is stands last.
pub(super) fn told(counts: &BTreeMap<String, u64>, say: impl Fn(&str) -> String) -> String {
    let place = |op: &str| match OPERATIONS.iter().position(|(name, _)| *name == op) {
        Some(place) => place,
        None if NO_CHANGE.contains(&op) => OPERATIONS.len() + 1 + usize::from(op == "same"),
        None => OPERATIONS.len(),
    };
    let mut counts: Vec<(&String, u64)> =
        counts.iter().map(|(op, count)| (op, *count)).filter(|(_, count)| *count > 0).collect();
    counts.sort_by_key(|(op, _)| place(op));
    let words: Vec<String> =
        counts.iter().map(|(op, count)| format!("{count} {}", say(op))).collect();
    if words.is_empty() { "no resources".to_owned() } else { words.join(", ") }
}

/// What became of resources, in a word.
pub(super) fn past(op: &str) -> String {
    let known = OPERATIONS.iter().chain(&[("same", "unchanged")]).find(|(name, _)| *name == op);
    known.map_or(op, |(_, past)| past).to_owned()
}

/// The type and the name in a URN: `urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME`.
fn type_and_name(urn: &str) -> (&str, &str) {
    let mut parts = urn.splitn(4, "::").skip(2);
    let kind = parts.next().unwrap_or_default();
    let kind = kind.rsplit_once('$').map_or(kind, |(_, kind)| kind);
    (kind, parts.next().unwrap_or(urn))
}

fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn names(of: &Value, name: &str) -> Vec<String> {
    list(of, name).filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
