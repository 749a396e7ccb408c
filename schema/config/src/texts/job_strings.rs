//! The strings of a Job file: which names are in them, and that a secret is where nobody reads it.

use super::NamesInScope;
use crate::template::TemplateError;
use crate::yaml::{self, Visited, YamlNode};

/// What is wrong in the strings of a Job file, with bytes of the whole text.
pub(super) fn job_strings(
    tree: &YamlNode,
    text: &str,
    start: usize,
    names: &NamesInScope,
) -> Vec<TemplateError> {
    let mut found = Vec::new();
    tree.visit(&mut Vec::new(), &mut |steps, visited| {
        if let Visited::Scalar(scalar, node) = visited {
            let is_readable = !is_of_environment(&yaml::pointer(steps));
            for error in names.check_where(&scalar.into(), is_readable) {
                let from = start + node.span.start;
                let offset =
                    text.get(from..).and_then(|rest| rest.find(&error.tag)).unwrap_or_default();
                found.push(TemplateError { at: from + offset, ..error });
            }
        }
        true
    });
    found
}

/// Whether this is the value of a variable of a container: what is secret of those never stands in
/// the Job. All else of a Job can be read by whoever may read Jobs.
fn is_of_environment(pointer: &str) -> bool {
    let Some(rest) = pointer.strip_prefix("/spec/template/spec/containers/") else { return false };
    let steps: Vec<&str> = rest.split('/').collect();
    matches!(steps.as_slice(), [_, "env", _, "value"])
}
