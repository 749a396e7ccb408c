//! What a fetch may print: any JSON, mostly nearly right, at the edges of what the check lets
//! through.

use schema::check;
use schema::output::{FetchOutput, RuntimeObject};
use schema::report::StructuredKind;

use crate::random::Random;

const INSTANTS: &[&str] = &[
    "9999-12-31T23:59:59-01:00",
    "9999-12-31T23:59:59.999999999Z",
    "0000-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.9999Z",
    "2016-12-31T23:59:60Z",
    "2024-02-29t12:00:00z",
    "2026-07-01T10:00:00+14:00",
    "10000-01-01T00:00:00Z",
    "yesterday",
];

const TEXTS: &[&str] = &[
    "",
    " ",
    "web",
    "\u{0}",
    "\u{feff}\u{202e}txet",
    "\u{1f980}\u{1f1e9}\u{1f1ea}e\u{301}",
    "line\nline\r\n\ttab",
    "\"quoted\" \\ {{.Params.x}} <b>",
    "\u{10ffff}",
    "\u{fffd}",
];

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "1e3",
    "1.0",
    "1.7976931348623157e308",
    "5e-324",
    "-1",
];

fn text(random: &mut Random) -> String {
    let text = if random.one_in(40) {
        "x".repeat(random.below(20_000) as usize)
    } else {
        (*random.pick(TEXTS)).to_owned()
    };
    serde_json::to_string(&text).unwrap()
}

fn number(random: &mut Random) -> &'static str {
    let number: &&'static str = random.pick(NUMBERS);
    number
}

fn object(random: &mut Random) -> String {
    let mut object = format!(
        "\"name\": {}, \"objectType\": {}, \"message\": {}",
        text(random),
        text(random),
        text(random)
    );
    if random.one_in(2) {
        object += &format!(
            ", \"debugEvents\": [{{\"timestamp\": \"{}\", \"message\": {}}}]",
            random.pick(INSTANTS),
            text(random)
        );
    }
    if random.one_in(3) {
        object += &format!(
            ", \"externalLinks\": [{{\"type\": \"LOG\", \"url\": {}, \"name\": {}}}]",
            text(random),
            text(random)
        );
    }
    if random.one_in(3) {
        let (replicas, target) = (number(random), number(random));
        object += &format!(
            ", \"versions\": [{{\"version\": {}, \"replicas\": {replicas}, \"targetReplicas\": \
             {target}}}]",
            text(random)
        );
    }
    if random.one_in(20) {
        object += ", \"status\": null";
    }
    format!("{{{object}}}")
}

/// The objects of a document that passes the check, or what the check says of one that does not.
pub(crate) fn objects(random: &mut Random) -> Result<Vec<RuntimeObject>, String> {
    let objects: Vec<String> = (0..random.below(4)).map(|_| object(random)).collect();
    let document = format!("{{\"objects\": [{}]}}", objects.join(", "));
    let value = check::check(document.as_bytes(), StructuredKind::Fetch)
        .map_err(|errors| errors[0].message.clone())?;
    // The report takes it along as text.
    let value = serde_json::from_str(&serde_json::to_string(&value).unwrap()).unwrap();
    let output: FetchOutput = serde_json::from_value(value)
        .unwrap_or_else(|error| panic!("what passes the check is read: {error}: {document}"));
    Ok(output.objects)
}
