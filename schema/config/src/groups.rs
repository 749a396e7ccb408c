//! Groups of fields of which exactly one, or at most one, may be given, in documents where that is
//! not so. The reader has told it; here such a group is brought to one field, so that the types,
//! which hold no other, can be made and the rest be held against the rules.

use std::collections::BTreeMap;

use schema::check::{Checker, SchemaNode};
use serde_json::{Map, Value, json};

use crate::document::body_of;
use crate::rules::{self, RuleViolation};

/// The rules that a document breaks whose groups no type can hold.
pub(super) fn broken_rules(
    document: &Value,
    attachments: &BTreeMap<String, String>,
    checker: &Checker,
) -> Vec<RuleViolation> {
    let mut broken: Vec<RuleViolation> = Vec::new();
    for completed in completed(document, checker) {
        // What does not fit the types for another reason is told already.
        let found =
            body_of(&completed).ok().flatten().map(|body| rules::check(&body, attachments, false));
        for rule in found.into_iter().flatten() {
            if !broken.contains(&rule) {
                broken.push(rule);
            }
        }
    }
    broken
}

/// Documents in which each group has one field, that together show each field of every group. Only
/// for checking: what they say is not what somebody wrote. One document where all groups are as
/// they must be.
fn completed(document: &Value, checker: &Checker) -> Vec<Value> {
    let Some(root) = checker.root() else { return vec![document.clone()] };
    let mut most = 1;
    let mut nth = 0;
    let mut completed = Vec::new();
    while nth < most {
        let mut copy = document.clone();
        most = most.max(complete(&mut copy, &root, checker, nth));
        completed.push(copy);
        nth += 1;
    }
    completed
}

/// Leaves of each group the `nth` field that is given, or the last, and gives one where none is.
/// How many the largest has.
fn complete(part: &mut Value, node: &SchemaNode<'_>, checker: &Checker, nth: usize) -> usize {
    match part {
        Value::Array(items) => {
            let Some(node) = checker.item(node) else { return 0 };
            items
                .iter_mut()
                .map(|item| complete(item, &node, checker, nth))
                .max()
                .unwrap_or_default()
        }
        Value::Object(members) => {
            let most = one_of_group(members, node, nth);
            let below = members.iter_mut().filter_map(|(key, member)| {
                Some(complete(member, &checker.member(node, key)?, checker, nth))
            });
            below.max().unwrap_or_default().max(most)
        }
        _ => 0,
    }
}

fn one_of_group(members: &mut Map<String, Value>, node: &SchemaNode<'_>, nth: usize) -> usize {
    let name = node.location().rsplit('/').next().unwrap_or_default();
    // Other groups are options side by side in the types, too.
    let Some((_, stand_in)) = ENUMS.iter().find(|(message, _)| *message == name) else { return 0 };
    let fields = ["x-exactlyOne", "x-atMostOne"]
        .iter()
        .filter_map(|rule| node.says.get(*rule)?.as_array())
        .flatten();
    let given: Vec<&str> =
        fields.filter_map(Value::as_str).filter(|field| members.contains_key(*field)).collect();
    let Some(kept) = given.get(nth.min(given.len().saturating_sub(1))) else {
        if let Some((field, value)) = stand_in.map(|stand_in| stand_in()) {
            members.insert(field.to_owned(), value);
        }
        return 0;
    };
    for field in given.iter().filter(|field| *field != kept) {
        members.shift_remove(*field);
    }
    given.len()
}

/// The field that stands for the missing one of a group: one that breaks no rule.
type StandIn = fn() -> (&'static str, Value);

/// The messages whose group is an enum in the types, with what stands in where none is given;
/// nothing where none may be.
const ENUMS: [(&str, Option<StandIn>); 14] = [
    ("ApplyCommand", Some(task)),
    ("EnvValue", Some(|| ("value", "".into()))),
    ("FetchCommand", Some(task)),
    ("GetInfoCommand", Some(task)),
    ("NotificationTarget", Some(|| ("slack", json!({"url": {"secret": {"key": "stand-in"}}})))),
    ("ParameterDefinition", Some(|| ("string", json!({})))),
    ("ParameterValue", Some(|| ("string", "".into()))),
    ("Precondition", Some(|| ("manualApproval", json!({})))),
    ("ReleaseChannelStable", Some(|| ("releaseChannel", "stand-in".into()))),
    ("Runtime", None),
    ("SecretValue", Some(|| ("rawSecret", "".into()))),
    ("SentValue", Some(|| ("secret", json!({"key": "stand-in"})))),
    ("SpecFile", Some(|| ("inlined", "stand-in".into()))),
    ("VolumeSource", Some(|| ("ephemeral", json!({})))),
];

fn task() -> (&'static str, Value) {
    ("taskConfig", json!({"program": {}}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrittenDocument;

    #[test]
    fn what_stands_in_for_a_group_fits_the_types() {
        let checker = crate::source::checker();
        for (name, stand_in) in ENUMS {
            let definition = format!("/definitions/{name}");
            let schema = crate::json_schema::of::<WrittenDocument>();
            assert!(schema.pointer(&definition).is_some(), "{name} is a message");
            let Some((field, _)) = stand_in.map(|stand_in| stand_in()) else { continue };
            let group = schema
                .pointer(&format!("{definition}/x-exactlyOne"))
                .and_then(Value::as_array)
                .expect(name);
            assert!(group.contains(&field.into()), "{name} has {field} in its group");
        }
        let nothing = json!({"runtime": {"name": "r", "custom": {"proxyRuntime": {"runtime": "k"}, "fetch": {}, "getInfo": {}, "apply": {"env": {"A": {}},
            "taskConfig": {"program": {}, "volumes": [{"name": "v", "source": {}, "mount": {"mountPath": "/v"}}]}},
            "parameters": [{"name": "p"}]}}});
        let service = json!({"service": {"name": "s", "application": "a", "customRuntime": {"parameterValues": [{"name": "p"}, {"name": "q", "secret": {}}]}}});
        let preconditions = json!([{}, {"releaseChannelStable": {}}]);
        let application = json!({"application": {"name": "a", "releaseChannels": [{"name": "c", "preconditions": preconditions}]}});
        for document in [nothing, service, application] {
            let completed = completed(&document, &checker);
            assert_eq!(completed.len(), 1, "{document}");
            serde_json::from_value::<WrittenDocument>(completed[0].clone()).unwrap();
            assert!(
                serde_json::from_value::<WrittenDocument>(document).is_err(),
                "types hold no group without a field"
            );
        }
    }

    #[test]
    fn each_field_of_a_group_is_shown_once() {
        let checker = crate::source::checker();
        let env = |value: Value| json!({"service": {"name": "s", "application": "a", "env": {"A": value, "B": {"value": "x"}}}});
        let three = env(json!({"value": "x", "rawSecret": "y", "secret": {"key": "k"}}));
        let expected =
            [json!({"value": "x"}), json!({"rawSecret": "y"}), json!({"secret": {"key": "k"}})]
                .map(env);
        assert_eq!(completed(&three, &checker), expected);
    }
}
