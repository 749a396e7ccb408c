//! Secrets in configs that are too short to be masked in what jobs print. Told as warnings by `configs apply` and `validate`.

use super::Document;
use crate::check::pointer_segment;
use crate::diagnostic::Diagnostic;
use crate::mask::SHORTEST_BYTES;
use crate::yaml::{NodeKind, YamlNode};

/// One warning for each `rawSecret` that is written as it stands and too short.
pub fn unmasked_secrets<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for document in documents {
        let mut found = Vec::new();
        walk(&document.tree, &mut String::new(), &mut found);
        warnings.extend(found.into_iter().map(|pointer| {
            let message = format!("this secret is not masked in what jobs print: it is shorter than {SHORTEST_BYTES} bytes");
            document.problem(&pointer, message).help("use a longer secret; one that short would black out ordinary words")
        }));
    }
    warnings
}

/// The pointers to them. No deeper than `yaml::DEPTH_LIMIT`.
fn walk(node: &YamlNode, pointer: &mut String, found: &mut Vec<String>) {
    let length = pointer.len();
    match &node.kind {
        NodeKind::Scalar { .. } => {}
        NodeKind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer_segment(pointer, &index.to_string());
                walk(item, pointer, found);
                pointer.truncate(length);
            }
        }
        NodeKind::Mapping(entries) => {
            for entry in entries {
                pointer_segment(pointer, &entry.key);
                match &entry.value.kind {
                    NodeKind::Scalar { text, .. } if entry.key == "rawSecret" => {
                        if (1..SHORTEST_BYTES).contains(&text.len()) && !text.contains("{{") {
                            found.push(pointer.clone());
                        }
                    }
                    _ => walk(&entry.value, pointer, found),
                }
                pointer.truncate(length);
            }
        }
    }
}
