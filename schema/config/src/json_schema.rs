//! JSON Schemas (draft 7) of our types, in the one form that all of ours have.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value};

/// The schema of a type, in the form that all of ours have: draft 7, no `null` (absent is enough),
/// words as one `enum`.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with_transform(RecursiveTransform(Plain));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    serde_json::to_value(schema).expect("a schema is JSON")
}

/// Takes out `null` as an alternative, gathers the words of an enum, whose `oneOf` no checker
/// explains well, and joins the lines of descriptions.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        if let Some(object) = schema.as_object_mut() {
            without_null(object);
            join_lines(object);
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

/// Where a line of a doc comment ends is a matter of the source, not of who reads the text.
fn join_lines(schema: &mut Map<String, Value>) {
    let Some(Value::String(text)) = schema.get_mut("description") else { return };
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    *text = paragraphs.collect::<Vec<_>>().join("\n\n");
}

fn words(schema: &mut Map<String, Value>) {
    let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else { return };
    choices.iter_mut().filter_map(Value::as_object_mut).for_each(join_lines);
    let Some(words) =
        choices.iter().map(|choice| choice.get("const").cloned()).collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let descriptions = choices
        .iter()
        .map(|choice| choice.get("description").cloned().unwrap_or_default())
        .collect();
    schema.shift_remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), Value::Array(words));
    schema.insert("enumDescriptions".to_owned(), Value::Array(descriptions));
}

/// The protobuf spelling of a field: `steady_state_poll_interval`.
pub(crate) fn snake_case(camel: &str) -> String {
    camel.chars().fold(String::with_capacity(camel.len() + 4), |mut snake, c| {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
        snake
    })
}
