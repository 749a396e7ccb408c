//! `docs/config.md`: the reference of all fields, for people, made from the same schema that the
//! reader checks with. The words above the tables are here; those in the tables are the
//! descriptions of the types.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::examples::EXAMPLES;
use crate::json_schema::snake_case;

const HEAD: &str = "# The config file

<!-- Made from the types by `cargo run -p config --bin emit`; a test fails when it is not. -->

Files end in `.pvn.yaml` or `.pvn.yml` and hold one or more YAML documents. Each document has \
                    exactly one of the top-level keys
`runtime`, `application`, `service`. `pvnctl configs validate PATH...` checks files without a \
                    server, `pvnctl configs schema` prints
the JSON Schema for editors: with the YAML language server, write `# yaml-language-server: \
                    $schema=FILE` on a file's first line.

- Every field may be written in camelCase or snake_case. The same field twice, also in both \
                    spellings, is an error; so is a field that
  is not known.
- `null` equals absent. An empty mapping is not absent: `fake: {}` makes a fake runtime.
- A text field takes a scalar as it is written: `yes`, `1.0` and `0x10` stay these characters. \
                    Whole numbers are decimal and may stand
  in quotes; `true` and `false` may not. Words in upper case are exact.
- Durations are numbers with units (`h`, `m`, `s`, `ms`), as in `300s`, `1.5s`, `10m` or `1h30m`; \
                    they are positive and at most a hundred
  years.
- Names of runtimes, applications, services, release channels and connections have 1 to 63 \
                    characters: lower-case letters, digits and
  `-`, starting with a letter and not ending with `-`.
- Anchors, aliases and `<<` work inside a document. Tabs cannot indent. A file has at most 8 MiB \
                    and is UTF-8.
- What is not in the files any more stays as it is: a service goes on under its old name when it \
                    is renamed, and `configs apply` warns of
  that where a file that named it is given without it. `pvnctl services delete` ends it, and so \
                    does `configs apply --prune`.
  Only the release channels of an application go with its config.
- Paths of local files are relative to the config file. The client reads them and sends them \
                    along; a pattern without `/` is about
  names at any depth, one with `/` about the path from the directory, as in `.gitignore`.
- All problems of all files are told at once, and nothing is stored unless there are none.

In the tables **bold** fields are required. *Exactly one* and *at most one* name the groups of \
                    which not more may be given. The
examples are whole and fit together; `examples/` has some that run.
";

/// The text of `docs/config.md` for a schema of the reader's form.
pub(super) fn of(schema: &Value) -> String {
    let mut text = HEAD.to_owned();
    let definitions =
        schema.get("definitions").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut wanted: Vec<String> = Vec::new();
    for document in ["Runtime", "Application", "Service"] {
        let at = wanted.len();
        wanted.push(document.to_owned());
        let mut next = at;
        // What a document refers to stands below it, in the order in which its fields name it, and
        // only once.
        while let Some(name) = wanted.get(next).cloned() {
            for reference in definitions
                .get(&name)
                .and_then(|definition| definition.get("properties"))
                .into_iter()
                .flat_map(references)
            {
                let is_section = definitions
                    .get(&reference)
                    .is_some_and(|definition| definition.get("properties").is_some());
                if is_section
                    && !wanted.contains(&reference)
                    && !["Runtime", "Application", "Service"].contains(&reference.as_str())
                {
                    wanted.push(reference);
                }
            }
            next += 1;
        }
    }
    for name in wanted {
        if let Some(definition) = definitions.get(&name).and_then(Value::as_object) {
            section(&mut text, &name, definition, &definitions);
        }
        for (_, example) in EXAMPLES.iter().filter(|(of, _)| *of == name) {
            let _ = write!(text, "\n```yaml\n{example}```\n");
        }
    }
    text
}

fn section(
    text: &mut String,
    name: &str,
    definition: &Map<String, Value>,
    definitions: &Map<String, Value>,
) {
    let is_document = ["Runtime", "Application", "Service"].contains(&name);
    let title = if is_document {
        format!("## `{}`", snake_case(name).trim_start_matches('_'))
    } else {
        format!("### {}", words(name))
    };
    let says = |key: &str| definition.get(key);
    let _ = write!(
        text,
        "\n{title}\n\n{}\n",
        says("description").and_then(Value::as_str).unwrap_or_default()
    );
    for (group, rule) in [("x-exactlyOne", "Exactly one"), ("x-atMostOne", "At most one")] {
        if let Some(fields) = says(group).and_then(Value::as_array) {
            let fields: Vec<String> =
                fields.iter().filter_map(Value::as_str).map(|field| format!("`{field}`")).collect();
            let _ = write!(text, "\n*{rule}* of {}.\n", fields.join(", "));
        }
    }
    for (alias, field) in says("x-aliases").and_then(Value::as_object).into_iter().flatten() {
        let _ = write!(
            text,
            "\n`{alias}` is an old name of `{}`.\n",
            field.as_str().unwrap_or_default()
        );
    }
    let required: Vec<&str> = says("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = says("properties").and_then(Value::as_object);
    if properties.is_none_or(Map::is_empty) {
        return;
    }
    text.push_str("\n| field | takes | |\n| --- | --- | --- |\n");
    for (field, property) in properties.into_iter().flatten() {
        let shown = if required.contains(&field.as_str()) {
            format!("**`{field}`**")
        } else {
            format!("`{field}`")
        };
        let description = property
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .replace('|', "\\|")
            .replace('\n', " ");
        let _ = writeln!(text, "| {shown} | {} | {description} |", takes(property, definitions));
    }
}

/// What a field takes, in a few words.
fn takes(property: &Value, definitions: &Map<String, Value>) -> String {
    if let Some(name) = reference(property) {
        let definition = definitions.get(name);
        return match definition {
            Some(definition) if definition.get("enum").is_some() => takes(definition, definitions),
            Some(definition) if definition.get("properties").is_some() => {
                format!("[{}](#{})", words(name), words(name).replace(' ', "-"))
            }
            Some(definition) if definition.get("type").is_some_and(|kind| kind == "object") => {
                "`{}`".to_owned()
            }
            Some(definition)
                if definition.get("format").is_some_and(|format| format == "pvn-duration") =>
            {
                "duration".to_owned()
            }
            _ => "name".to_owned(),
        };
    }
    let says = |key: &str| property.get(key);
    if let Some(allowed) = says("enum").and_then(Value::as_array) {
        return allowed
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match says("type").and_then(Value::as_str) {
        Some("array") => format!(
            "list: {}",
            says("items").map(|items| takes(items, definitions)).unwrap_or_default()
        ),
        Some("object") => match says("additionalProperties").filter(|rest| rest.is_object()) {
            Some(rest) => format!("mapping: {}", takes(rest, definitions)),
            None => "mapping".to_owned(),
        },
        Some("boolean") => "`true`, `false`".to_owned(),
        Some("integer") => match (says("minimum"), says("maximum")) {
            (Some(least), Some(most)) => format!("whole number, {least} to {most}"),
            (Some(least), None) => format!("whole number, at least {least}"),
            _ => "whole number".to_owned(),
        },
        _ => match says("format").and_then(Value::as_str) {
            Some("pvn-cron") => "cron schedule".to_owned(),
            Some("pvn-timezone") => "time zone".to_owned(),
            _ => "text".to_owned(),
        },
    }
}

/// The definition that a property is, directly or beside a description.
fn reference(property: &Value) -> Option<&str> {
    let property = property.pointer("/allOf/0").unwrap_or(property);
    property.get("$ref")?.as_str()?.strip_prefix("#/definitions/")
}

/// Every definition named anywhere in a part of the schema, in order.
fn references(part: &Value) -> Vec<String> {
    match part {
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, member)| {
                match member.as_str().and_then(|text| text.strip_prefix("#/definitions/")) {
                    Some(name) if key == "$ref" => vec![name.to_owned()],
                    _ => references(member),
                }
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// A type's name in words: `ApplyCommand` is `apply command`.
fn words(name: &str) -> String {
    snake_case(name).trim_start_matches('_').replace('_', " ")
}
