//! What changes in a document, as a unified diff that people may see: secrets are masked, and a
//! changed one says that it changed. Where they stand is `config::secrets`' business.

use std::collections::HashMap;

use config;
use diffy::DiffOptions;

use crate::store::MASK;

/// Unified diff from the stored text to the new one, `None` for a new document.
pub(crate) fn diff(label: &str, old: Option<&str>, new: &str) -> String {
    let old_text = old.unwrap_or_default();
    // What one side calls a secret is one on the other side too: a value that becomes a
    // `rawSecret`, or one that was rotated.
    let (before, after) = (config::secrets(old_text), config::secrets(new));
    let masked_old = config::masked(old_text, &before, &after, |_| MASK.to_owned());
    let values: HashMap<_, _> = before
        .iter()
        .filter(|secret| !secret.path.is_empty())
        .map(|secret| (&secret.path, &secret.value))
        .collect();
    let masked_new =
        config::masked(new, &after, &before, |secret| match values.get(&secret.path) {
            Some(before) if **before != secret.value => format!("{MASK} (changed)"),
            _ => MASK.to_owned(),
        });
    let stored = if old.is_some() { format!("{label} (stored)") } else { "/dev/null".to_owned() };
    let mut options = DiffOptions::new();
    options.set_original_filename(stored).set_modified_filename(format!("{label} (given)"));
    let patch = options.create_patch(&masked_old, &masked_new);
    if patch.hunks().is_empty() { String::new() } else { patch.to_string() }
}

/// The same of a document that goes as a whole.
pub(crate) fn deleted(label: &str, old: &str) -> String {
    let mut options = DiffOptions::new();
    options
        .set_original_filename(format!("{label} (stored)"))
        .set_modified_filename("/dev/null".to_owned());
    options.create_patch(&masked_document(old, &[]), "").to_string()
}

/// A document's text as people may see it. What is a secret in one of the texts `beside` it, other
/// versions of it, is one here, too: a value that was rotated may still be in use, and stand in a
/// comment or another field.
pub(crate) fn masked_document(text: &str, beside: &[String]) -> String {
    let also: Vec<_> = beside.iter().flat_map(|other| config::secrets(other)).collect();
    config::masked(text, &config::secrets(text), &also, |_| MASK.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_however_it_is_written() {
        for text in [
            "env:\n  A: {rawSecret: hunter2}\n",
            "env:\n  A:\n    rawSecret: hunter2\n",
            "env:\n  A:\n    raw_secret: |\n      hunter2\n      hunter2\n  B: {value: x}\n",
            "env:\n  A:\n    \"rawSecret\": \"hunter2\"\n",
            "env:\n  A:\n    rawSecret:\n      hunter2\n",
            "values:\n- name: a\n  secret: {rawSecret: 'hunter2'}\n",
            "values:\n- rawSecret: >\n    hunter2\n",
        ] {
            let shown = diff("service `a/b`", None, text);
            assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
            assert_eq!(shown.contains("B: {value: x}"), text.contains("B:"), "{shown}");
        }
    }

    #[test]
    fn what_was_a_secret_in_another_version_is_masked_in_this_one() {
        let before = "A: {rawSecret: hunter2-one}\n".to_owned();
        let now = "A: {rawSecret: two-hunter}\nB: 'db://u:hunter2-one@x' # was hunter2-one\n";
        assert_eq!(
            masked_document(now, &[before]),
            "A: {rawSecret: ***}\nB: 'db://u:***@x' # was ***\n"
        );
        assert!(masked_document(now, &[]).contains("hunter2-one"));
    }

    #[test]
    fn a_changed_secret_shows_that_it_changed() {
        let shown = diff("runtime `r`", Some("a: 1\nrawSecret: one\n"), "a: 1\nrawSecret: two\n");
        assert!(shown.contains("+rawSecret: *** (changed)"), "{shown}");
        let shown =
            diff("runtime `r`", Some("a: {rawSecret: one}\n"), "a: {rawSecret: one, b: 1}\n");
        assert!(shown.contains("+a: {rawSecret: ***, b: 1}"), "{shown}");
        assert!(diff("runtime `r`", Some("a: 1\n"), "a: 1\n").is_empty());
    }

    #[test]
    fn what_is_a_secret_on_one_side_is_shown_on_neither() {
        for (old, new) in [
            ("A: {value: hunter2}\n", "A: {rawSecret: hunter2}\n"),
            ("A: {rawSecret: hunter2}\n", "A: {value: hunter2}\n"),
            (
                "A: {rawSecret: hunter2}\nB: 1\n",
                "A: {rawSecret: another}\nB: {value: 'db://u:hunter2@db'}\n# was hunter2\n",
            ),
        ] {
            let shown = diff("runtime `r`", Some(old), new);
            assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
        }
    }

    #[test]
    fn lines_that_change_are_shown_with_their_surroundings() {
        let shown = diff("runtime `r`", Some("a: 1\nb: 2\n"), "a: 1\nb: 3\n");
        assert_eq!(
            shown,
            "--- runtime `r` (stored)\n+++ runtime `r` (given)\n@@ -1,2 +1,2 @@\n a: 1\n-b: \
             2\n+b: 3\n"
        );
    }
}
