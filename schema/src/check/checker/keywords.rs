//! Keywords of our own: groups of fields of which one is given, and keys of the environment. Called
//! by `checker` where a schema is compiled.

use serde_json::{Map, Value};
use valico::json_schema::schema::WalkContext;
use valico::json_schema::scope::Scope;
use valico::json_schema::validators::{BoxedValidator, ValidationState};

use super::formats::failed;
use crate::check::problem::cut;

/// Keywords of our own: `x-exactlyOne` and `x-atMostOne` name the fields of a group;
/// `propertyNames` gives the place of the key where valico's gives none.
pub(super) fn add_to(scope: &mut Scope) {
    for (keyword, one_is_needed) in [("x-exactlyOne", true), ("x-atMostOne", false)] {
        scope.add_keyword(vec![keyword], move |schema: &Value, _: &WalkContext<'_>| {
            let fields = schema.get(keyword);
            let fields = fields.and_then(|fields| serde_json::from_value(fields.clone()).ok());
            let fields: Vec<String> = fields.unwrap_or_default();
            let check = move |value: &Value, path: &str, _: &Scope, _: &ValidationState| {
                match group(value, &fields, one_is_needed) {
                    Some(detail) => failed(path.to_owned(), detail),
                    None => ValidationState::new(),
                }
            };
            Ok(Some(Box::new(check) as BoxedValidator))
        });
    }
    scope.add_keyword(vec!["propertyNames"], |_: &Value, _: &WalkContext<'_>| {
        let check = |value: &Value, path: &str, _: &Scope, _: &ValidationState| {
            let mut state = ValidationState::new();
            for key in
                value.as_object().into_iter().flat_map(Map::keys).filter(|key| !is_env_key(key))
            {
                let detail = format!(
                    "`{}` is not the key of an environment variable: letters, digits and `_`, not \
                     starting with a digit",
                    cut(key)
                );
                state.append(failed(format!("{path}/{key}"), detail));
            }
            state
        };
        Ok(Some(Box::new(check) as BoxedValidator))
    });
}

/// `^[a-zA-Z_][a-zA-Z0-9_]*$`, the only rule for keys that our schemas have.
fn is_env_key(key: &str) -> bool {
    !key.starts_with(|c: char| c.is_ascii_digit())
        && !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn group(value: &Value, fields: &[String], one_is_needed: bool) -> Option<String> {
    let object = value.as_object()?;
    let given: Vec<&str> =
        fields.iter().map(String::as_str).filter(|field| object.contains_key(*field)).collect();
    let quoted = |names: &[&str]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let all = quoted(&fields.iter().map(String::as_str).collect::<Vec<_>>());
    let rule = if one_is_needed { "exactly one" } else { "at most one" };
    match given.as_slice() {
        [] if one_is_needed => Some(format!("exactly one of {all} is needed; none is given")),
        [] | [_] => None,
        [_, _] if fields.len() == 2 => Some(format!("{rule} of {all}; both are given")),
        many => Some(format!("{rule} of {all}; {} are given", quoted(many))),
    }
}
