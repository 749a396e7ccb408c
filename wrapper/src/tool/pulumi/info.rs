//! What there is to say of a stack, secrets masked. Called by `pulumi`.

use std::collections::BTreeMap;

use schema::output::{GetInfoOutput, Info};
use serde_json::Value;

use super::super::{Fault, print_document};
use super::{Pulumi, preview};

/// What stands for a secret, in Pulumi's words.
const SECRET: &str = "[secret]";

/// An object that has this key is no plain value: a secret, in clear or not, or what may hold one.
/// Source: `resource.SigKey` of Pulumi's SDK for Go.
const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";

/// Prints it as a getInfo does.
pub(super) fn print(pulumi: &mut Pulumi<'_>) -> Result<u8, Fault> {
    let outputs = pulumi.document(&["stack", "output", "--json"], '{')?;
    let history = ["stack", "history", "--json", "--page-size", "1"];
    let history = pulumi.document(&history, '[')?;
    print_document(&GetInfoOutput { outputs: infos(pulumi.stack, &outputs, &history) })
}

fn infos(stack: &str, outputs: &Value, history: &Value) -> Vec<Info> {
    let info = |name: &str, text: String| Info { name: name.to_owned(), text };
    let mut infos = vec![
        info("stack", stack.to_owned()),
        info("last update", history.get(0).map_or_else(|| "none yet".to_owned(), update)),
    ];
    let sorted: BTreeMap<&String, &Value> = outputs.as_object().into_iter().flatten().collect();
    infos.extend(sorted.into_iter().map(|(name, value)| {
        let text = match value.clone() {
            Value::String(text) => text,
            mut value => {
                hide(&mut value);
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            }
        };
        info(&format!("output {name}"), text)
    }));
    infos
}

/// As in `update 7 succeeded at 2026-11-28T03:00:00.000Z: 2 created, 3 unchanged`.
fn update(update: &Value) -> String {
    let text = |name: &str| update.get(name).and_then(Value::as_str);
    let mut told = text("kind").unwrap_or("update").to_owned();
    // Only Pulumi Cloud numbers them.
    if let Some(version @ 1..) = update.get("version").and_then(Value::as_u64) {
        told.push_str(&format!(" {version}"));
    }
    told.push_str(&format!(" {}", text("result").unwrap_or("with an unknown result")));
    match (text("endTime"), text("startTime")) {
        (Some(end), _) => told.push_str(&format!(" at {end}")),
        (None, Some(start)) => told.push_str(&format!(" since {start}")),
        (None, None) => {}
    }
    if let Some(counts) = update.get("resourceChanges").and_then(preview::counts) {
        told.push_str(&format!(": {}", preview::told(&counts, preview::past)));
    }
    told
}

/// Takes out secrets that Pulumi itself did not mask.
fn hide(value: &mut Value) {
    if value.get(SIGNATURE).is_some() {
        *value = SECRET.into();
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(outputs: &Value, history: &Value) -> Vec<(String, String)> {
        let infos = infos("org/dev", outputs, history);
        infos.into_iter().map(|info| (info.name, info.text)).collect()
    }

    #[test]
    fn outputs_are_told_in_order_and_without_secrets() {
        let marked = |value: &str| {
            json!({SIGNATURE: "1b47061264138c4ac30d75fd1eb44270",
                "plaintext": value, "ciphertext": value})
        };
        let outputs = json!({
            "url": "https://x", "ports": [80, 443], "masked": "[secret]",
            "marked": marked("hunter2"), "deep": {"a": [marked("hunter2"), 1]},
        });
        assert_eq!(
            told(&outputs, &json!([])),
            [
                ("stack", "org/dev"),
                ("last update", "none yet"),
                ("output deep", r#"{"a":["[secret]",1]}"#),
                ("output marked", "[secret]"),
                ("output masked", "[secret]"),
                ("output ports", "[80,443]"),
                ("output url", "https://x"),
            ]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
    }

    #[test]
    fn the_last_update_is_told_with_its_end_and_what_it_did() {
        let check = |update: Value, expected: &str| {
            assert_eq!(told(&json!({}), &json!([update]))[1].1, expected);
        };
        check(
            json!({"version": 0, "kind": "update", "startTime": "2026-11-28T02:59:00.000Z",
                "message": "", "environment": {}, "config": {"p:k": {"secret": true}},
                "result": "succeeded", "endTime": "2026-11-28T03:00:00.000Z",
                "resourceChanges": {"same": 3, "create": 2, "delete": 0}}),
            "update succeeded at 2026-11-28T03:00:00.000Z: 2 created, 3 unchanged",
        );
        check(
            json!({"version": 7, "kind": "destroy", "startTime": "2026-11-28T02:59:00.000Z",
                "result": "in-progress"}),
            "destroy 7 in-progress since 2026-11-28T02:59:00.000Z",
        );
    }
}
