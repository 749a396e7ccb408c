//! The Job file of a command: exactly one `batch/v1` Job and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use schema::check::cut;

use super::Rules;
use crate::KubernetesConfig;
use crate::template::Template;
use crate::yaml::{self, NodeKind, Visited, YamlNode};

/// Most objects that a message lists.
const LISTED_OBJECTS: usize = 10;

impl Rules<'_> {
    /// A file whose `subPath` is a template is known only when it is rendered; the compiler looks
    /// at it then.
    pub(super) fn job(&mut self, config: &KubernetesConfig, at: &str) {
        let (texts, at) = match (&config.inlined, &config.local) {
            (Some(text), _) => (vec![(String::new(), text.as_str())], format!("{at}/inlined")),
            (None, Some(local)) if !local.has_template() => {
                let sub_path = local.sub_path.as_ref().map(Template::as_str);
                let files = crate::local::attached(self.attachments, local, sub_path);
                if files.is_empty() {
                    if local.sub_path.is_some() && local.path.is_some() {
                        self.add(
                            format!("{at}/local/subPath"),
                            "there is no file at this path inside `path`",
                        );
                    }
                    return;
                }
                (
                    files.into_iter().map(|(name, text)| (format!("`{name}`: "), text)).collect(),
                    format!("{at}/local"),
                )
            }
            _ => return,
        };
        let mut found = Vec::new();
        for (name, text) in texts {
            for range in yaml::documents(text) {
                match yaml::parse(&text[range.clone()]) {
                    Ok(Some(object)) if !object.is_null() => {
                        for (key, at_byte) in given_twice(&object) {
                            let line = yaml::line(text, range.start + at_byte);
                            self.add(
                                &*at,
                                format!(
                                    "{name}the key `{}` is given twice (line {line} of the \
                                     Kubernetes file)",
                                    cut(key)
                                ),
                            );
                        }
                        found.push(describe(&object));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let line = yaml::line(text, range.start + error.span.start);
                        self.add(
                            &*at,
                            format!("{name}{error} (line {line} of the Kubernetes file)"),
                        );
                        if let Some(help) = error.help {
                            self.help(help);
                        }
                        return;
                    }
                }
            }
        }
        if !matches!(found.as_slice(), [Object { is_job: true, .. }]) {
            self.add(
                &*at,
                format!(
                    "a command's Kubernetes file must hold exactly one batch/v1 Job and nothing \
                     else; found {}",
                    listed(&found)
                ),
            );
        }
    }
}

/// Keys that a mapping has already, with their byte: Kubernetes would take one of the two, and
/// which one nobody knows.
fn given_twice(object: &YamlNode) -> Vec<(&str, usize)> {
    // Of each mapping that the walk is in, by its depth.
    let mut keys: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    object.visit(&mut Vec::new(), &mut |steps, visited| {
        match visited {
            Visited::Entry(entry) => {
                if !keys.entry(steps.len()).or_default().insert(&entry.key) {
                    found.push((entry.key.as_str(), entry.key_span.start));
                }
            }
            Visited::Mapping(_) => drop(keys.remove(&(steps.len() + 1))),
            Visited::Scalar(..) => {}
        }
        true
    });
    found
}

fn listed(found: &[Object]) -> String {
    let listed: Vec<&str> =
        found.iter().take(LISTED_OBJECTS).map(|object| object.words.as_str()).collect();
    let more = found.len().saturating_sub(LISTED_OBJECTS);
    match (listed.is_empty(), more) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => listed.join(", "),
        (false, more) => format!("{} and {more} more", listed.join(", ")),
    }
}

struct Object {
    is_job: bool,
    words: String,
}

fn describe(object: &YamlNode) -> Object {
    let text = |pointer: &str| match object.nearest(pointer) {
        (YamlNode { kind: NodeKind::Scalar { text, .. }, .. }, _, true) => Some(text.as_str()),
        _ => None,
    };
    let words = match (text("/apiVersion"), text("/kind")) {
        (Some(version), Some(kind)) => {
            let name =
                text("/metadata/name").map(|name| format!(" `{}`", cut(name))).unwrap_or_default();
            format!("{} {}{name}", cut(version), cut(kind))
        }
        _ => "a document without `apiVersion` and `kind`".to_owned(),
    };
    Object {
        is_job: text("/apiVersion") == Some("batch/v1") && text("/kind") == Some("Job"),
        words,
    }
}
