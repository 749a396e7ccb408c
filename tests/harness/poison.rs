//! Outputs of fetch and getInfo at every edge of what the schemas let through, and a little beyond.

use serde_json::{Value, json};

use crate::dice::Dice;

/// Stands for half of a character outside the basic plane, which JSON can spell and Rust's texts
/// cannot hold.
const LONE_SURROGATE: &str = "LONE-SURROGATE";

/// What a structured fetch may print.
pub fn fetch_output(dice: &mut Dice) -> String {
    let objects: Vec<Value> = (0..dice.below(4)).map(|_| object(dice)).collect();
    text_of(&json!({ "objects": objects }))
}

/// What a getInfo command may print.
pub fn info_output(dice: &mut Dice) -> String {
    let outputs: Vec<Value> =
        (0..dice.below(4)).map(|_| json!({"name": text(dice), "text": text(dice)})).collect();
    text_of(&json!({ "outputs": outputs }))
}

/// What a command may print that nobody checks: bytes.
pub fn words(dice: &mut Dice) -> Vec<u8> {
    match dice.below(5) {
        0 => (0..dice.below(400)).map(|_| dice.fall().to_le_bytes()[0]).collect(),
        1 => vec![b'\n'; dice.below(5000)],
        2 => [b"\x1b[31m".as_slice(), text(dice).as_bytes(), b"\x1b]0;title\x07\r"].concat(),
        _ => text(dice).into_bytes(),
    }
}

fn text_of(value: &Value) -> String {
    value.to_string().replace(LONE_SURROGATE, "\\ud800")
}

fn object(dice: &mut Dice) -> Value {
    // Few names, so that some come twice.
    let mut object = json!({"name": dice.pick(&["web", "", "db\u{0}"]), "objectType": text(dice)});
    if dice.percent(70) {
        object["versions"] = (0..dice.below(4)).map(|_| version(dice)).collect();
    }
    if dice.percent(70) {
        object["status"] = (*dice.pick(&["PENDING", "SUCCEEDED", "FAILED"])).into();
    }
    if dice.percent(40) {
        object["externalLinks"] = (0..dice.below(3))
            .map(|_| json!({"type": dice.pick(&["UNKNOWN", "DETAIL", "LOG", "APP"]), "url": text(dice), "name": text(dice)}))
            .collect();
    }
    if dice.percent(60) {
        object["debugEvents"] = (0..1 + dice.below(3))
            .map(|_| json!({"timestamp": instant(dice), "message": text(dice)}))
            .collect();
    }
    if dice.percent(40) {
        object["message"] = text(dice).into();
    }
    object
}

fn version(dice: &mut Dice) -> Value {
    let mut version =
        json!({"version": text(dice), "active": dice.percent(50), "drifted": dice.percent(30)});
    for field in ["replicas", "availableReplicas", "targetReplicas"] {
        if dice.percent(60) {
            version[field] = count(dice);
        }
    }
    version
}

/// Mostly what an `i64` holds; sometimes what none does, which is to be refused.
fn count(dice: &mut Dice) -> Value {
    match dice.below(9) {
        0 => i64::MIN.into(),
        1 => i64::MAX.into(),
        2 => (-1).into(),
        3 => u64::MAX.into(),
        4 => 3.0.into(),
        5 => 1e300.into(),
        6 => 9_007_199_254_740_993_i64.into(),
        7 => Value::Null,
        _ => dice.below(10).into(),
    }
}

/// Instants that RFC 3339 allows, at the ends of its years and of zones, and some that it does not.
fn instant(dice: &mut Dice) -> &'static str {
    const INSTANTS: &[&str] = &[
        "9999-12-31T23:59:59.999999999Z",
        "9999-12-31T23:59:59-01:00",
        "9999-12-31T23:59:59-23:59",
        "0000-01-01T00:00:00+23:59",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00Z",
        "2016-12-31T23:59:60Z",
        "2026-02-28t12:00:00z",
        "2026-06-01T12:00:00.000000001+14:00",
        "2026-02-30T00:00:00Z",
        "yesterday",
    ];
    dice.pick::<&'static str>(INSTANTS)
}

/// Texts that something along the way may stumble over.
pub fn text(dice: &mut Dice) -> String {
    match dice.below(16) {
        0 => String::new(),
        1 => "\u{0}".to_owned(),
        2 => LONE_SURROGATE.to_owned(),
        3 => "\u{202e}gnp.exe\u{feff}\u{fffd}\u{10ffff}".to_owned(),
        4 => "e\u{301}\u{301}\u{301}\u{1f469}\u{200d}\u{1f680}".to_owned(),
        5 => "\u{1b}[2J\u{7}\r\n\t".to_owned(),
        6 => "x".repeat(1 << dice.below(18)),
        7 => "\u{fc}".repeat(200),
        8 => "{{.Params.size}} {{\"{{\"}} ${HOME} $(id) `id`".to_owned(),
        9 => "'; DROP TABLE instances; --".to_owned(),
        10 => "<script>alert(1)</script>".to_owned(),
        11 => "null".to_owned(),
        12 => " ".to_owned(),
        13 => "line one\nline two\n\n".to_owned(),
        14 => "s0-1".to_owned(),
        _ => format!("plain {}", dice.below(1000)),
    }
}
