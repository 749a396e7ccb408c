//! The JSON Schemas (draft 7) made from the types. `bin/emit.rs` writes them to `schema/json/`, a
//! test fails when they drift, the scheduler publishes them under `/schemas/`, and `pvnctl configs
//! schema` prints [`CONFIG`].

mod editor;
mod examples;
mod manual;
mod words;

use crate::WrittenDocument;
use crate::json_schema::of;

/// For editors: one document of a `*.pvn.yaml`, as `pvnctl configs schema` prints it.
pub const CONFIG: &str = include_str!("../../json/config.json");

/// Every published schema by file name, with its text.
pub const PUBLISHED: &[(&str, &str)] = &[
    ("config.json", CONFIG),
    ("fetch-output.json", schema::check::FETCH_OUTPUT_SCHEMA),
    ("get-info-output.json", schema::check::GET_INFO_OUTPUT_SCHEMA),
    ("notification.json", include_str!("../../json/notification.json")),
    ("report.json", include_str!("../../json/report.json")),
];

/// What [`PUBLISHED`] must be, made from the types as they are now: file name and text.
pub fn emitted() -> Vec<(&'static str, String)> {
    let schemas = [
        ("config.json", editor::for_editors(of::<WrittenDocument>())),
        ("fetch-output.json", of::<schema::output::FetchOutput>()),
        ("get-info-output.json", of::<schema::output::GetInfoOutput>()),
        ("notification.json", of::<schema::api::NotificationMessage>()),
        ("report.json", of::<schema::report::Report>()),
    ];
    schemas.into_iter().map(|(name, schema)| (name, format!("{schema:#}\n"))).collect()
}

/// The text of `docs/config.md`: every field for people, made from the types as they are now.
pub fn manual() -> String {
    manual::of(&of::<WrittenDocument>())
}

/// The text of `docs/words.md`: every code of a cause and every kind of an entry of the log.
pub fn words() -> String {
    words::page()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_reference_for_people_is_that_of_the_types() {
        let committed = include_str!("../../../docs/config.md");
        assert!(
            manual() == committed,
            "docs/config.md is not what the types say; run `cargo run -p config --bin emit`"
        );
    }

    #[test]
    fn the_words_for_people_are_those_of_the_types() {
        let committed = include_str!("../../../docs/words.md");
        assert!(
            words() == committed,
            "docs/words.md is not what the types say; run `cargo run -p config --bin emit`"
        );
    }

    #[test]
    fn every_field_is_described() {
        fn look(schema: &Value, at: &str, silent: &mut Vec<String>) {
            for (name, property) in
                schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                if property.get("description").is_none() {
                    silent.push(format!("{at}.{name}"));
                }
            }
        }
        let schema = of::<WrittenDocument>();
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
            assert!(
                text == *committed,
                "schema/json/{name} is not what the types say; run `cargo run -p config --bin \
                 emit`"
            );
        }
    }

    /// Whether an editor, which checks the text's own spelling, has nothing against a document.
    fn check_editor(document: Value, accepted: bool) {
        let mut scope =
            valico::json_schema::Scope::without_formats(valico::json_schema::SchemaVersion::Draft7);
        let schema =
            scope.compile_and_return(serde_json::from_str(CONFIG).unwrap(), false).unwrap();
        assert_eq!(schema.validate(&document).is_valid(), accepted, "{document}");
    }

    #[test]
    fn an_editor_accepts_both_spellings_and_offers_one() {
        let command = serde_json::json!({"task_config": {"program": {"cmd": ["a"]}}});
        check_editor(
            serde_json::json!({"runtime": {"name": "r", "extension": {"proxy_runtime": {"runtime": "k"}, "apply": command}}}),
            true,
        );
        check_editor(
            serde_json::json!({"runtime": {"name": "r", "custom": {"proxyRuntime": {"runtime": "k"}, "apply": command}}}),
            true,
        );
        check_editor(
            serde_json::json!({"runtime": {"name": "r", "custom": {"apply": command}}}),
            false,
        );
        check_editor(
            serde_json::json!({"runtime": {"name": "r", "custom": {"proxyRuntime": {"runtime": "k"}, "apply": {}}}}),
            false,
        );
        check_editor(serde_json::json!({"runtime": {"name": "r", "local": {}, "fake": {}}}), false);
        check_editor(serde_json::json!({"runtime": {"name": "r"}}), true);
        check_editor(serde_json::json!({"runtime": {"name": "r", "colour": 1}}), false);
        check_editor(serde_json::json!({}), false);
        let service = |env: Value, deadline: &str| serde_json::json!({"service": {"name": "s", "application": "a", "env": {"A": env}, "progressDeadline": deadline}});
        check_editor(service(serde_json::json!({"value": 8080}), "1h30m"), true);
        check_editor(
            service(serde_json::json!({"secret": {"key": "k", "version": "2"}}), "1.5s"),
            true,
        );
        check_editor(
            service(serde_json::json!({"secret": {"key": "k", "version": "two"}}), "1.5s"),
            false,
        );
        check_editor(service(serde_json::json!({"value": "x"}), "300"), false);
        let schema: Value = serde_json::from_str(CONFIG).unwrap();
        let offered = schema["definitions"]["FetchCommand"]["properties"].as_object().unwrap();
        assert!(offered.contains_key("pollInterval") && !offered.contains_key("poll_interval"));
    }
}
