//! What changes in a document, as a unified diff that people may see: raw secrets are masked, and a changed one says that
//! it changed.

use std::collections::HashSet;

use similar::TextDiff;

use crate::store::MASK;

/// Unified diff from the stored text to the new one, `None` for a new document.
pub(super) fn diff(label: &str, old: Option<&str>, new: &str) -> String {
    let old_text = old.unwrap_or_default();
    let known: HashSet<&str> = old_text.lines().collect();
    let masked_old = mask(old_text, &|_| false);
    let masked_new = mask(new, &|line| old.is_some() && !known.contains(line));
    TextDiff::from_lines(&masked_old, &masked_new)
        .unified_diff()
        .context_radius(3)
        .header(&if old.is_some() { format!("{label} (stored)") } else { "/dev/null".to_owned() }, &format!("{label} (given)"))
        .to_string()
}

/// The text with what stands after `rawSecret:` masked, block scalars of several lines included.
fn mask(text: &str, changed: &dyn Fn(&str) -> bool) -> String {
    let mut masked = String::with_capacity(text.len());
    // Lines deeper than this belong to a masked block.
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        let indent = bare.len() - bare.trim_start().len();
        if let Some(depth) = block {
            if bare.trim().is_empty() || indent > depth {
                continue;
            }
            block = None;
        }
        let Some(at) = value_of_raw_secret(bare) else {
            masked.push_str(line);
            continue;
        };
        masked.push_str(&bare[..at]);
        masked.push(' ');
        masked.push_str(MASK);
        if changed(bare) {
            masked.push_str(" (changed)");
        }
        masked.push('\n');
        // What follows deeper than the line itself can only be more of the value.
        block = Some(indent + if bare.trim_start().starts_with("- ") { 2 } else { 0 });
    }
    masked
}

/// Where in the line the value of a `rawSecret` starts.
fn value_of_raw_secret(line: &str) -> Option<usize> {
    let key = ["rawSecret", "raw_secret"].into_iter().filter_map(|key| line.find(key).map(|at| at + key.len())).min()?;
    let colon = line[key..].find(':')?;
    Some(key + colon + 1)
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
    fn a_changed_secret_shows_that_it_changed() {
        let shown = diff("runtime `r`", Some("a: 1\nrawSecret: one\n"), "a: 1\nrawSecret: two\n");
        assert!(shown.contains("+rawSecret: *** (changed)"), "{shown}");
        assert!(diff("runtime `r`", Some("a: 1\n"), "a: 1\n").is_empty());
    }

    #[test]
    fn lines_that_change_are_shown_with_their_surroundings() {
        let shown = diff("runtime `r`", Some("a: 1\nb: 2\n"), "a: 1\nb: 3\n");
        assert_eq!(shown, "--- runtime `r` (stored)\n+++ runtime `r` (given)\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n");
    }
}
