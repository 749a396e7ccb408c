//! What valico finds -> what is wrong with the value, and where. Called by `checker`.

use serde_json::Value;
use valico::common::error::ValicoError;

use super::{Checker, SchemaNode};
use crate::check::problem::{Notation, Problem, ValueFault, cut, found_words};

impl Checker {
    /// `base`: how much of the error's path leads to `part`.
    pub(super) fn problem(
        &self,
        error: &dyn ValicoError,
        part: &Value,
        node: &SchemaNode<'_>,
        base: usize,
    ) -> Problem {
        let pointer = error.get_path().to_owned();
        let below = pointer.get(base..).unwrap_or_default();
        let value = || part.pointer(below).cloned().unwrap_or(Value::Null);
        let says =
            |name: &str| self.below(node, below).and_then(|node| node.says.get(name).cloned());
        let text = |name: &str| says(name).and_then(|value| value.as_str().map(str::to_owned));
        let fault = match error.get_code() {
            "wrong_type" => {
                ValueFault::Type { expected: text("type").unwrap_or_default(), found: value() }
            }
            "required" => ValueFault::Missing {
                field: below.rsplit('/').next().unwrap_or_default().to_owned(),
            },
            "properties" => {
                let detail = error.get_detail().unwrap_or_default();
                return unknown(&pointer, detail, says("properties"));
            }
            "enum" | "const" => {
                let allowed = says("enum")
                    .and_then(|words| serde_json::from_value(words).ok())
                    .unwrap_or_default();
                ValueFault::Word { found: value(), allowed }
            }
            "min_length" | "max_length" | "pattern" => {
                ValueFault::Rule(match text("patternErrorMessage") {
                    Some(rule) => format!(
                        "{} is not allowed here: {rule}",
                        found_words(&value(), Notation::Yaml)
                    ),
                    None if error.get_code() == "min_length" => "must not be empty".to_owned(),
                    None => format!(
                        "`{}` does not fit {}",
                        cut(value().as_str().unwrap_or_default()),
                        text("pattern").unwrap_or_default()
                    ),
                })
            }
            "minimum" | "maximum" => {
                ValueFault::Rule(out_of_bounds(says("minimum"), says("maximum"), &value()))
            }
            "format" => ValueFault::Rule(error.get_detail().unwrap_or_default().to_owned()),
            // Our schemas use no other keyword; if one is added, this is honest until it has words
            // of its own.
            other => ValueFault::Rule(format!("breaks the rule `{other}` of the schema")),
        };
        Problem { pointer, fault }
    }
}

/// A field that the object at `pointer` does not have. The key stands in the detail only:
/// "Additional property 'KEY' is not allowed".
fn unknown(pointer: &str, detail: &str, known: Option<Value>) -> Problem {
    let name = detail
        .find('\'')
        .zip(detail.rfind('\''))
        .and_then(|(from, to)| detail.get(from + 1..to))
        .unwrap_or_default();
    let known = known
        .and_then(|known| Some(known.as_object()?.keys().cloned().collect()))
        .unwrap_or_default();
    let field = name.replace("~1", "/").replace("~0", "~");
    Problem { pointer: format!("{pointer}/{name}"), fault: ValueFault::Unknown { field, known } }
}

fn out_of_bounds(least: Option<Value>, most: Option<Value>, found: &Value) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("must be from {least} to {most}, found {found}"),
        (Some(least), None) => format!("must be at least {least}, found {found}"),
        (None, most) => format!("must be at most {}, found {found}", most.unwrap_or_default()),
    }
}
