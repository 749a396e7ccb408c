//! What a preview comes to, from documents as Pulumi prints them.

use serde_json::json;

use super::*;

fn digest(document: &Value) -> PreviewDigest {
    PreviewDigest::read(document.to_string().as_bytes()).unwrap()
}

fn preview(document: &Value) -> Preview {
    Preview::of(&digest(document)).unwrap()
}

fn step(op: &str, resource: &str, more: &Value) -> Value {
    let mut step = json!({"op": op, "urn": format!("urn:pulumi:dev::p::{resource}"),
        "oldState": {"inputs": {"secret": "hunter2"}}, "detailedDiff": null});
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}

/// The same with everything in it in the other order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().rev().map(reversed).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect(),
        ),
        value => value.clone(),
    }
}

/// One of each, as 3.198 prints them, with the resources that `--refresh` looked at.
fn drift() -> Value {
    json!({
        "config": {"p:token": "[secret]"},
        "steps": [
            step("same", "pulumi:pulumi:Stack::p-dev", &json!({})),
            step("refresh", "a:b:Cmd::cmd", &json!({})),
            step("replace", "random:index/randomPet:RandomPet::pet", &json!({
                "diffReasons": ["prefix", "id"], "replaceReasons": ["prefix"]})),
            step("update", "x:y:Group$a:b:Cmd::cmd", &json!({
                "diffReasons": ["environment"],
                "detailedDiff": {
                    "environment.TOKEN": {"kind": "update", "inputDiff": false},
                    "environment.ADDED": {"kind": "add", "inputDiff": false},
                }})),
            step("create", "a:b:Cmd::one::two", &json!({})),
            step("delete", "a:b:Cmd::old", &json!({})),
            step("read", "a:b:Zone::zone", &json!({})),
        ],
        "duration": 51_731_000,
        "changeSummary": {"create": 1, "delete": 1, "replace": 1, "same": 2, "update": 1},
    })
}

const EXPLANATION: &str = "\
Preview: 1 to create, 1 to update, 1 to replace, 1 to delete, 2 unchanged

delete   a:b:Cmd old
create   a:b:Cmd one::two
replace  random:index/randomPet:RandomPet pet: id, prefix; replaced because of prefix
update   a:b:Cmd cmd: environment.ADDED, environment.TOKEN
";

#[test]
fn the_same_drift_comes_to_the_same_text_in_whatever_order_and_time() {
    let drift = drift();
    assert_eq!(preview(&drift).explanation(), EXPLANATION);
    let mut other = reversed(&drift);
    other["duration"] = 7.into();
    assert_ne!(other.to_string(), drift.to_string());
    assert_eq!(preview(&other).explanation(), EXPLANATION);
    assert_eq!(preview(&other).document(), preview(&drift).document());
}

#[test]
fn no_value_leaves_the_job() {
    let preview = preview(&drift());
    let document = preview.document();
    assert!(!document.contains("hunter2") && !document.contains("config"), "{document}");
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["summary"]["replace"], 1);
    assert_eq!(
        document["steps"][2],
        json!({"op": "replace", "urn": "urn:pulumi:dev::p::random:index/randomPet:RandomPet::pet",
            "type": "random:index/randomPet:RandomPet", "name": "pet",
            "properties": ["id", "prefix"], "replaceReasons": ["prefix"]})
    );
}

#[test]
fn work_is_what_pulumi_calls_a_change() {
    let check = |summary: Value, work: bool, first_line: &str| {
        let preview = preview(&json!({"changeSummary": summary}));
        assert_eq!((preview.is_work(), preview.explanation().as_str()), (work, first_line));
    };
    check(json!({"same": 3}), false, "Preview: no changes, 3 unchanged\n");
    check(json!({"same": 3, "create": 0}), false, "Preview: no changes, 3 unchanged\n");
    check(json!({"create": 1}), true, "Preview: 1 to create\n");
    // What is only looked up is somebody else's: `up` would change nothing of it.
    check(json!({"same": 1, "read": 2}), false, "Preview: no changes, 2 to read, 1 unchanged\n");
    // Operations that we never heard of are work.
    check(json!({"same": 1, "mend": 2}), true, "Preview: 2 to mend, 1 unchanged\n");
}

#[test]
fn what_a_failed_up_left_to_be_deleted_is_work_though_nothing_counts_it() {
    let left = step("delete-replaced", "a:b:C::old", &json!({}));
    let preview = preview(&json!({"changeSummary": {"same": 1}, "steps": [left]}));
    assert!(preview.is_work());
    assert_eq!(preview.explanation(), "Preview: 1 unchanged\n\ndelete-replaced a:b:C old\n");
    assert_eq!(preview.destroys(), "delete-replaced a:b:C old\n");
}

#[test]
fn what_is_not_known_is_no_success() {
    let check = |document: Value, expected: &str| {
        let why = Preview::of(&digest(&document)).unwrap_err();
        assert!(why.contains(expected), "{why}");
    };
    check(json!({}), "no `changeSummary`");
    check(json!({"changeSummary": {"same": "3"}}), "no `changeSummary`");
    check(json!({"changeSummary": {"same": -3}}), "no `changeSummary`");
    check(json!({"changeSummary": null}), "no `changeSummary`");
    let steps =
        json!([step("same", "a:b:C::web", &json!({})), step("delete", "a:b:C::old", &json!({}))]);
    for summary in [json!({}), json!({"same": 2}), json!({"delete": 0}), json!({"read": 1})] {
        check(
            json!({"changeSummary": summary, "steps": steps}),
            "the preview counts no change and lists one (`delete   a:b:C old`)",
        );
    }
    check(
        json!({"changeSummary": {"same": 1}, "diagnostics": [
            {"message": "a warning", "severity": "warning"},
            {"message": "error: preview failed\n", "severity": "error"},
            {"urn": "urn:pulumi:dev::p::a:b:Cmd::web", "severity": "error",
                "message": "\u{1b}[31merror: \u{1b}[0mno such zone\n"},
        ]}),
        "the preview found an error: web (a:b:Cmd): no such zone",
    );
    check(json!({"changeSummary": {"same": 1}, "diagnostics": [{"severity": "error"}]}), "error");
    for printed in ["", "{", "[]x", "{}\n{}", "no"] {
        let why = PreviewDigest::read(printed.as_bytes()).err().unwrap();
        assert!(why.contains("did not print one JSON document"), "{printed:?}: {why}");
    }
    // A list is a document, and no preview.
    assert!(Preview::of(&PreviewDigest::read(b"[]").unwrap()).is_err());
}

#[test]
fn what_a_program_prints_to_its_standard_error_is_no_error() {
    let document = json!({"changeSummary": {"same": 1}, "diagnostics": [
        {"message": "DeprecationWarning: soon\n", "severity": "info#err"},
        {"message": "hello", "severity": "info"},
    ]});
    assert!(!preview(&document).is_work());
    assert_eq!(digest(&document).messages(), "DeprecationWarning: soon\nhello\n");
}

#[test]
fn what_runs_pulumi_may_say_something_first() {
    let printed = b"Loading .env {a}\nThe virtualenv is {old}\n{\n  \"changeSummary\": {}\n}\n";
    assert!(!Preview::of(&PreviewDigest::read(printed).unwrap()).unwrap().is_work());
}

#[test]
fn a_name_forges_no_line() {
    let document = json!({"changeSummary": {"create": 1}, "steps": [
        step("create", "a:b:C::web\n\u{1b}[2Kdelete   a:b:C all", &json!({})),
    ]});
    assert_eq!(
        preview(&document).explanation(),
        "Preview: 1 to create\n\ncreate   a:b:C web\u{fffd}\u{fffd}[2Kdelete   a:b:C all\n"
    );
}

#[test]
fn what_is_destroyed_and_replaced_is_named_and_what_is_only_counted_too() {
    let destroys = |document: &Value| preview(document).destroys();
    assert_eq!(
        destroys(&drift()),
        "delete   a:b:Cmd old\n\
         replace  random:index/randomPet:RandomPet pet: id, prefix; replaced because of prefix\n"
    );
    let summary = |counts: Value| json!({"changeSummary": counts});
    assert_eq!(destroys(&summary(json!({"create": 2, "update": 1, "same": 3, "read": 1}))), "");
    assert_eq!(
        destroys(&summary(json!({"delete": 2, "delete-all": 1}))),
        "2 to delete\n1 to delete-all\n"
    );
}
