//! The reader's rules between a YAML tree and the schema: spellings become canonical names, scalars
//! become what their field takes, `null` becomes absent, a field given twice is found. Whether the
//! outcome is right is the schema's business.

use std::collections::HashMap;

use schema::check::{Checker, SchemaNode as Schema, pointer_segment};
use serde_json::{Map, Value};

use crate::json_schema::snake_case;
use crate::yaml::{MappingEntry, NodeKind, YamlNode};

/// A field that is given twice: its pointer, its canonical name, and the spellings and places of
/// both.
pub(super) struct Twice {
    pub(super) pointer: String,
    pub(super) first: (String, std::ops::Range<usize>),
    pub(super) second: (String, std::ops::Range<usize>),
}

/// The JSON value of a document. Keys in the tree become canonical, so that pointers into the value
/// find their place in it.
pub(super) fn coerce(tree: &mut YamlNode, checker: &Checker, twice: &mut Vec<Twice>) -> Value {
    let mut pointer = String::new();
    value(tree, checker.root().as_ref(), checker, &mut pointer, twice).unwrap_or(Value::Null)
}

/// `None` for what is absent.
fn value(
    node: &mut YamlNode,
    schema: Option<&Schema<'_>>,
    checker: &Checker,
    pointer: &mut String,
    twice: &mut Vec<Twice>,
) -> Option<Value> {
    if node.is_null() {
        return None;
    }
    Some(match &mut node.kind {
        NodeKind::Scalar { text, plain } => scalar(text, *plain, schema),
        NodeKind::List(items) => {
            let schema = schema.and_then(|schema| checker.item(schema));
            let item = |(index, item): (usize, &mut YamlNode)| {
                let length = pointer.len();
                pointer_segment(pointer, &index.to_string());
                let item = value(item, schema.as_ref(), checker, pointer, twice);
                pointer.truncate(length);
                // An item cannot be absent; the schema says that null is none of what it takes.
                item.unwrap_or(Value::Null)
            };
            Value::Array(items.iter_mut().enumerate().map(item).collect())
        }
        NodeKind::Mapping(entries) => {
            Value::Object(mapping(entries, schema, checker, pointer, twice))
        }
    })
}

fn mapping(
    entries: &mut [MappingEntry],
    schema: Option<&Schema<'_>>,
    checker: &Checker,
    pointer: &mut String,
    twice: &mut Vec<Twice>,
) -> Map<String, Value> {
    let names = schema.map(FieldNames::of);
    let mut members = Map::new();
    let mut seen: HashMap<String, (String, std::ops::Range<usize>)> = HashMap::new();
    for entry in entries {
        let written = entry.key.clone();
        if let Some(canonical) = names.as_ref().and_then(|names| names.canonical(&written)) {
            entry.key = canonical.to_owned();
        }
        let length = pointer.len();
        pointer_segment(pointer, &entry.key);
        let here = (written, entry.key_span.clone());
        if let Some(first) = seen.get(&entry.key) {
            twice.push(Twice { pointer: pointer.clone(), first: first.clone(), second: here });
        } else {
            seen.insert(entry.key.clone(), here);
        }
        let member_schema = schema.and_then(|schema| checker.member(schema, &entry.key));
        match value(&mut entry.value, member_schema.as_ref(), checker, pointer, twice) {
            Some(member) => {
                members.insert(entry.key.clone(), member);
            }
            // An unknown field is told even when it is null; a known one is absent then.
            None if member_schema.is_none() => {
                members.insert(entry.key.clone(), Value::Null);
            }
            None => {}
        }
        pointer.truncate(length);
    }
    members
}

/// A scalar as its field takes it. What does not fit stays text, for the schema to refuse.
fn scalar(text: &str, plain: bool, schema: Option<&Schema<'_>>) -> Value {
    let kind = schema.and_then(|schema| schema.says.get("type")).and_then(Value::as_str);
    let coerced = match kind {
        Some("integer") => whole_number(text),
        Some("boolean") if plain => match text {
            "true" | "True" | "TRUE" => Some(true.into()),
            "false" | "False" | "FALSE" => Some(false.into()),
            _ => None,
        },
        _ => None,
    };
    coerced.unwrap_or_else(|| text.into())
}

/// Decimal digits with a sign; no leading zeros, which YAML 1.1 reads as octal.
fn whole_number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_decimal = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if !is_decimal {
        return None;
    }
    let whole =
        text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok();
    // Beyond 64 bits it is a number still, for the schema to say which range it has to be in.
    whole.or_else(|| serde_json::Number::from_f64(text.parse().ok()?).map(Value::Number))
}

/// The names of a message's fields, in every spelling.
struct FieldNames<'a> {
    canonical: HashMap<String, &'a str>,
}

impl<'a> FieldNames<'a> {
    fn of(schema: &'a Schema<'_>) -> Self {
        let mut canonical = HashMap::new();
        let mut add = |name: &str, field: &'a str| {
            canonical.insert(snake_case(name), field);
            canonical.insert(name.to_owned(), field);
        };
        for (alias, field) in
            schema.says.get("x-aliases").and_then(Value::as_object).into_iter().flatten()
        {
            if let Some(field) = field.as_str() {
                add(alias, field);
            }
        }
        for field in
            schema.says.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
        {
            add(field, field);
        }
        Self { canonical }
    }

    fn canonical(&self, written: &str) -> Option<&'a str> {
        self.canonical.get(written).copied()
    }
}
