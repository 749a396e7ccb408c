//! The config schema for editors. It says what the reader accepts and still completes one spelling
//! only: the camelCase names are `properties`, which editors offer; snake_case and deprecated names
//! are `patternProperties`, which editors check and do not offer.

use serde_json::{Map, Value, json};

use crate::json_schema::snake_case;

/// Turns the reader's schema, which knows canonical names only, into one for editors.
pub(super) fn for_editors(mut schema: Value) -> Value {
    walk(&mut schema);
    schema
}

fn walk(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            spellings(object);
            scalars(object);
            // Descriptions, examples and the like hold no schemas; of the rest every part is
            // walked.
            object.values_mut().for_each(walk);
        }
        Value::Array(parts) => parts.iter_mut().for_each(walk),
        _ => {}
    }
}

/// What the reader makes of scalars: a text may be written as a number or a word like `true`, a
/// whole number may stand in quotes. Formats that only the reader knows become patterns, or go.
fn scalars(schema: &mut Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str).map(str::to_owned);
    match format.as_deref() {
        Some("pvn-duration") => {
            schema.shift_remove("format");
            schema.insert("pattern".to_owned(), r"^([0-9]+(\.[0-9]+)?(ms|h|m|s))+$".into());
            schema.insert(
                "patternErrorMessage".to_owned(),
                "write numbers with their units, as in `300s`, `1.5s`, `10m` or `1h30m`".into(),
            );
        }
        Some("pvn-cron" | "pvn-timezone") => drop(schema.shift_remove("format")),
        _ => {}
    }
    let is_free = !["pattern", "enum", "const"].iter().any(|rule| schema.contains_key(*rule));
    match schema.get("type").and_then(Value::as_str) {
        Some("string") if is_free => {
            drop(schema.insert("type".to_owned(), json!(["string", "number", "boolean"])))
        }
        Some("integer") => {
            schema.insert("type".to_owned(), json!(["integer", "string"]));
            schema.insert("pattern".to_owned(), "^[+-]?[0-9]+$".into());
        }
        _ => {}
    }
}

fn spellings(schema: &mut Map<String, Value>) {
    let aliases = schema
        .shift_remove("x-aliases")
        .and_then(|aliases| aliases.as_object().cloned())
        .unwrap_or_default();
    let groups = [
        schema.shift_remove("x-exactlyOne").map(|group| (group, true)),
        schema.shift_remove("x-atMostOne").map(|group| (group, false)),
    ];
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let names_of = |field: &str| {
        let mut names = vec![field.to_owned()];
        names.extend(Some(snake_case(field)).filter(|snake| snake != field));
        for (alias, of) in &aliases {
            if of == field {
                names.push(alias.clone());
                names.extend(Some(snake_case(alias)).filter(|snake| snake != alias));
            }
        }
        names
    };
    let mut patterns = Map::new();
    for (field, property) in properties {
        for name in names_of(field).into_iter().skip(1) {
            // Its description is that of the name that editors offer.
            let mut property = property.clone();
            property.as_object_mut().map(|property| property.shift_remove("description"));
            patterns.insert(format!("^{name}$"), property);
        }
    }
    let given = |field: &str| match names_of(field).as_slice() {
        [one] => json!({"required": [one]}),
        names => {
            let any_of: Vec<_> = names.iter().map(|name| json!({"required": [name]})).collect();
            json!({"anyOf": any_of})
        }
    };
    let mut rules = Vec::new();
    let required: Vec<String> = schema
        .get("required")
        .and_then(|names| serde_json::from_value(names.clone()).ok())
        .unwrap_or_default();
    let (one_name, more_names): (Vec<_>, Vec<_>) =
        required.into_iter().partition(|field| names_of(field).len() == 1);
    rules.extend(more_names.iter().map(|field| given(field)));
    for (group, one_is_needed) in groups.into_iter().flatten() {
        let fields: Vec<String> = serde_json::from_value(group).unwrap_or_default();
        let mut choices: Vec<Value> = fields.iter().map(|field| given(field)).collect();
        if !one_is_needed {
            choices.push(json!({"not": {"anyOf": choices.clone()}}));
        }
        rules.push(json!({"oneOf": choices}));
    }
    if !patterns.is_empty() {
        schema.insert("patternProperties".to_owned(), patterns.into());
    }
    if one_name.is_empty() {
        schema.shift_remove("required");
    } else {
        schema.insert("required".to_owned(), one_name.into());
    }
    if !rules.is_empty() {
        schema.insert("allOf".to_owned(), rules.into());
    }
}
