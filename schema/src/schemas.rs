//! The JSON Schemas (draft 7) made from the types. `bin/emit.rs` writes them to `json/`, a test fails when they drift, the
//! scheduler publishes them under `/schemas/`, and `pvnctl configs schema` prints [`CONFIG`].

mod editor;
mod manual;

pub(crate) use editor::snake_case;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value};

/// For editors: one document of a `*.pvn.yaml`, as `pvnctl configs schema` prints it.
pub const CONFIG: &str = include_str!("../json/config.json");

/// Every published schema by file name, with its text.
pub const PUBLISHED: &[(&str, &str)] = &[
    ("config.json", CONFIG),
    ("fetch-output.json", crate::check::FETCH_OUTPUT_SCHEMA),
    ("get-info-output.json", crate::check::GET_INFO_OUTPUT_SCHEMA),
    ("report.json", include_str!("../json/report.json")),
];

/// What [`PUBLISHED`] must be, made from the types as they are now: file name and text.
pub fn emitted() -> Vec<(&'static str, String)> {
    let schemas = [
        ("config.json", editor::for_editors(of::<crate::config::WrittenDocument>())),
        ("fetch-output.json", of::<crate::output::FetchOutput>()),
        ("get-info-output.json", of::<crate::output::GetInfoOutput>()),
        ("report.json", of::<crate::report::Report>()),
    ];
    schemas.into_iter().map(|(name, schema)| (name, format!("{schema:#}\n"))).collect()
}

/// The text of `docs/config.md`: every field for people, made from the types as they are now.
pub fn manual() -> String {
    manual::of(&of::<crate::config::WrittenDocument>())
}

/// The schema of a type, in the form that all of ours have: draft 7, no `null` (absent is enough), words as one `enum`.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with_transform(RecursiveTransform(Plain));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    serde_json::to_value(schema).expect("a schema is JSON")
}

/// Takes out `null` as an alternative and gathers the words of an enum, whose `oneOf` no checker explains well.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        if let Some(object) = schema.as_object_mut() {
            without_null(object);
            words(object);
        }
    }
}

fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_mut_slice() {
            let one = one.take();
            schema.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [one] = choices.as_mut_slice() {
            let one = one.take();
            schema.shift_remove("anyOf");
            if schema.is_empty() {
                *schema = one.as_object().cloned().unwrap_or_default();
            } else {
                schema.insert("allOf".to_owned(), Value::Array(vec![one]));
            }
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.shift_remove("default");
    }
}

fn words(schema: &mut Map<String, Value>) {
    let Some(choices) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let Some(words) = choices.iter().map(|choice| choice.get("const").cloned()).collect::<Option<Vec<_>>>() else { return };
    let descriptions = choices.iter().map(|choice| choice.get("description").cloned().unwrap_or_default()).collect();
    schema.shift_remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), Value::Array(words));
    schema.insert("enumDescriptions".to_owned(), Value::Array(descriptions));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_for_people_is_that_of_the_types() {
        let committed = include_str!("../../docs/config.md");
        assert!(manual() == committed, "docs/config.md is not what the types say; run `cargo run -p schema --bin emit`");
    }

    #[test]
    fn every_field_is_described() {
        fn look(schema: &Value, at: &str, silent: &mut Vec<String>) {
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if property.get("description").is_none() {
                    silent.push(format!("{at}.{name}"));
                }
            }
        }
        let schema = of::<crate::config::WrittenDocument>();
        let mut silent = Vec::new();
        for (name, definition) in schema["definitions"].as_object().unwrap() {
            look(definition, name, &mut silent);
        }
        assert!(silent.is_empty(), "{silent:?}");
    }

    #[test]
    fn the_emitted_schemas_are_those_of_the_types() {
        for ((name, text), (published, committed)) in emitted().into_iter().zip(PUBLISHED) {
            assert_eq!(name, *published);
            assert!(text == *committed, "schema/json/{name} is not what the types say; run `cargo run -p schema --bin emit`");
        }
    }
}
