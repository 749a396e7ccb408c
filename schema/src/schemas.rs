//! The JSON Schemas (draft 7) made from the types. `bin/emit.rs` writes them to `json/`, a test fails when they drift, the
//! scheduler publishes them under `/schemas/`, and `pvnctl configs schema` prints [`CONFIG`].

mod editor;
mod manual;

use crate::json_schema::of;

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

#[cfg(test)]
mod tests {
    use serde_json::Value;

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
