//! What is accepted and what is refused, as the author of a fetch command would see it.

use serde_json::{Value, json};

use super::{PROBLEM_LIMIT, check, check_hiding};
use crate::mask::Secrets;
use crate::output::OUTPUT_LIMIT_BYTES;
use crate::report::StructuredKind;

/// Every problem of a fetch's stdout, one a line: pointer, colon, message.
fn problems(stdout: impl AsRef<[u8]>) -> String {
    match check(stdout.as_ref(), StructuredKind::Fetch) {
        Ok(_) => "none".to_owned(),
        Err(errors) => errors
            .iter()
            .map(|error| format!("{}: {}", error.pointer, error.message))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn refused(stdout: impl AsRef<[u8]>, expected: &str) {
    let found = problems(stdout);
    assert_eq!(found, expected, "\n--- found\n{found}\n--- expected\n{expected}\n");
}

#[track_caller]
fn accepted(stdout: Value, expected: Value) {
    assert_eq!(check(stdout.to_string().as_bytes(), StructuredKind::Fetch), Ok(expected));
}

#[test]
fn a_whole_document_comes_back_as_it_is() {
    let whole = json!({"objects": [{
        "name": "web", "objectType": "Deployment", "status": "SUCCEEDED", "message": "fine",
        "versions": [{"version": "v-1", "active": true, "drifted": false, "replicas": 3, "availableReplicas": 2, "targetReplicas": -1}],
        "externalLinks": [{"type": "LOG", "url": "https://logs", "name": "logs"}],
        "debugEvents": [{"timestamp": "2026-01-31T12:00:00.5+01:00", "message": "started"}],
    }]});
    accepted(whole.clone(), whole);
    accepted(json!({"objects": []}), json!({"objects": []}));
}

#[test]
fn null_equals_absent_and_a_whole_float_is_whole() {
    accepted(
        json!({"objects": [{"name": "a", "objectType": "b", "status": null, "versions": [{"version": "", "replicas": 3.0}], "debugEvents": null}]}),
        json!({"objects": [{"name": "a", "objectType": "b", "versions": [{"version": "", "replicas": 3}]}]}),
    );
    refused(r#"{"objects": null}"#, "/objects: expected an array, found null");
    refused(
        r#"{"objects": [], "more": null}"#,
        "/more: unknown field `more`; known here: `objects`",
    );
}

#[test]
fn get_info_has_a_schema_of_its_own() {
    let get_info = |stdout: &str| check(stdout.as_bytes(), StructuredKind::GetInfo);
    assert!(get_info(r#"{"outputs": [{"name": "url", "text": "https://x"}]}"#).is_ok());
    let errors = get_info(r#"{"outputs": [{"name": "url"}]}"#).unwrap_err();
    assert_eq!(errors[0].pointer, "/outputs/0/text");
    assert_eq!(errors[0].message, "`text` is required and missing");
}

#[test]
fn every_problem_is_told_with_its_pointer() {
    refused(
        r#"{"objects": [
            {"objecttype": 1, "name": 5, "status": "succeeded", "versions": {}},
            7,
            {"name": "a", "objectType": "b", "versions": [{"version": "1", "replicas": "3", "active": "yes"}, {"version": 2}],
             "externalLinks": [{"url": "u", "type": "LOGS"}], "debugEvents": [{"timestamp": "yesterday", "message": "m"}]}
        ]}"#,
        "/objects/0/name: expected a string, found `5`
/objects/0/objectType: `objectType` is required and missing
/objects/0/objecttype: unknown field `objecttype`; did you mean `objectType`?
/objects/0/status: expected one of `PENDING`, `SUCCEEDED`, `FAILED`, found the string \
         \"succeeded\"; did you mean `SUCCEEDED`?
/objects/0/versions: expected an array, found an object
/objects/1: expected an object, found `7`
/objects/2/versions/0/active: expected `true` or `false`, found the string \"yes\"
/objects/2/versions/0/replicas: expected a whole number, found the string \"3\"
/objects/2/versions/1/version: expected a string, found `2`
/objects/2/externalLinks/0/name: `name` is required and missing
/objects/2/externalLinks/0/type: expected one of `UNKNOWN`, `DETAIL`, `LOG`, `APP`, found the \
         string \"LOGS\"; did you mean `LOG`?
/objects/2/debugEvents/0/timestamp: `yesterday` is not an RFC 3339 timestamp (premature end of \
         input); write one as in `2026-01-31T12:00:00Z`",
    );
}

#[test]
fn a_pointer_is_escaped_as_rfc_6901_says() {
    refused(
        r#"{"objects": [], "a/b~c": 1}"#,
        "/a~1b~0c: unknown field `a/b~c`; known here: `objects`",
    );
}

#[test]
fn bad_input_output_that_is_not_json_shows_its_first_bytes() {
    refused(
        "Refreshing state...\n",
        ": not JSON: expected value at line 1 column 1; stdout begins with \"Refreshing \
         state...\\n\"",
    );
    let long = format!("Error: {}", "x".repeat(1000));
    assert!(
        problems(&long).ends_with(&format!("stdout begins with \"Error: {}\" …", "x".repeat(113))),
        "{}",
        problems(&long)
    );
    refused(
        "",
        ": stdout is empty; a FetchOutput was expected there, a JSON object (stderr is not read \
         for it)",
    );
    refused(
        " \n\t",
        ": stdout is empty; a FetchOutput was expected there, a JSON object (stderr is not read \
         for it)",
    );
    refused("[]", ": expected an object, found an array");
    refused("\"objects\"", ": expected an object, found the string \"objects\"");
}

#[test]
fn bad_input_a_number_that_was_a_secret_is_told() {
    for number in ["***", "9***"] {
        let told = problems(format!("{{\"objects\": [{{\"name\": {number}}}]}}"));
        assert!(
            told.contains("/objects/0") && told.contains("(`***` stands where a secret was"),
            "{told}"
        );
    }
}

#[test]
fn bad_input_malformed_json_says_where() {
    refused(
        r#"{"objects": [{"name": tru}]}"#,
        "/objects/0/name: not JSON: expected ident at line 1 column 26; stdout begins with \
         \"{\\\"objects\\\": [{\\\"name\\\": tru}]}\"",
    );
    refused(
        "{\"objects\": [",
        "/objects/0: not JSON: EOF while parsing a list at line 1 column 13; stdout begins with \
         \"{\\\"objects\\\": [\"",
    );
    refused(
        r#"{"objects": [{"name": "a", "objectType": "b", "versions": [{"version": "", "replicas": 1e400}]}]}"#,
        "/objects/0/versions/0/replicas: not JSON: number out of range at line 1 column 92; \
         stdout begins with \"{\\\"objects\\\": [{\\\"name\\\": \\\"a\\\", \\\"objectType\\\": \
         \\\"b\\\", \\\"versions\\\": [{\\\"version\\\": \\\"\\\", \\\"replicas\\\": 1e400}]}]}\"",
    );
}

#[test]
fn text_or_another_document_after_the_first_is_an_error() {
    refused(
        "{\"objects\": []}\ndone\n",
        ": more text follows the JSON document at line 2 column 1: \"done\\n\"; print exactly one \
         document on stdout and all else on stderr",
    );
    refused(
        "{\"objects\": []}\n{\"objects\": []}\n",
        ": a second document follows the JSON document at line 2 column 1: \"{\\\"objects\\\": \
         []}\\n\"; print exactly one document on stdout and all else on stderr",
    );
    accepted(json!({"objects": []}), json!({"objects": []}));
    assert!(
        check(b" \n{\"objects\": []}\n\n", StructuredKind::Fetch).is_ok(),
        "blanks around it are no text"
    );
}

#[test]
fn bad_input_not_utf8_and_byte_order_mark() {
    refused(
        b"{\"objects\": [{\"name\": \"\xff\"}]}",
        ": not UTF-8 at byte 23; stdout begins with \"{\\\"objects\\\": [{\\\"name\\\": \
         \\\"\u{fffd}\\\"}]}\"",
    );
    refused(
        "\u{feff}{\"objects\": []}",
        ": not JSON: it starts with a byte order mark; stdout begins with \
         \"\\u{feff}{\\\"objects\\\": []}\"",
    );
}

#[test]
fn a_key_given_twice_is_an_error() {
    refused(
        r#"{"objects": [{"name": "a", "name": "b", "objectType": "c"}]}"#,
        "/objects/0/name: the field `name` is given twice",
    );
}

#[test]
fn numbers_have_ranges() {
    for (number, ok) in [
        ("9223372036854775807", true),
        ("9223372036854775808", false),
        ("-9223372036854775808", true),
        ("1e30", false),
        ("1.5", false),
    ] {
        let stdout = format!(
            r#"{{"objects": [{{"name": "a", "objectType": "b", "versions": [{{"version": "", "replicas": {number}}}]}}]}}"#
        );
        assert_eq!(problems(&stdout) == "none", ok, "{number}: {}", problems(&stdout));
    }
}

#[test]
fn bad_input_output_without_end_is_refused_above_8_mib() {
    let mut stdout = b"{\"objects\": []}".to_vec();
    stdout.resize(OUTPUT_LIMIT_BYTES, b' ');
    assert!(check(&stdout, StructuredKind::Fetch).is_ok(), "the limit itself is allowed");
    stdout.push(b' ');
    refused(
        &stdout,
        ": 8388609 bytes of stdout are too many for a FetchOutput; the limit is 8388608 (8 MiB)",
    );
}

#[test]
fn bad_input_a_hundred_thousand_levels_are_refused() {
    for open in ["[", "{\"a\":"] {
        let stdout = open.repeat(100_000);
        assert!(
            problems(&stdout).contains("nested deeper than 128 levels at line 1"),
            "{}",
            &problems(&stdout)[..400]
        );
    }
}

#[test]
fn bad_input_millions_of_problems_are_bounded() {
    let lines = |stdout: &str| check(stdout.as_bytes(), StructuredKind::Fetch).unwrap_err().len();
    assert_eq!(
        lines(&format!("{{\"objects\": [{}1]}}", "1,".repeat(1_000_000))),
        PROBLEM_LIMIT + 1
    );
    let fields: String = (0..200_000).map(|n| format!("\"f{n}\":1,")).collect();
    assert!(lines(&format!("{{{fields}\"objects\":[]}}")) <= PROBLEM_LIMIT + 1);
    let twice = "\"objects\":[],".repeat(200_000);
    assert_eq!(lines(&format!("{{{twice}\"objects\":[]}}")), PROBLEM_LIMIT + 1);
}

#[test]
fn a_message_shows_neither_a_part_of_a_secret_nor_how_long_it_is() {
    for length in [8, 40, 59, 60, 61, 200] {
        let secret: String = (0..length).map(|at| char::from(b'a' + at as u8 % 26)).collect();
        // Escaped in a way that nobody looks for in bytes.
        let escaped: String = secret.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        let document = format!(
            r#"{{"objects": "key {escaped} and some more words, so many that there is no room for all of them"}}"#
        );
        let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
        let errors =
            check_hiding(document.as_bytes(), StructuredKind::Fetch, Some(&secrets)).unwrap_err();
        let expected = "expected an array, found the string \"key *** and some more words, so \
                        many that there is no room f…\"";
        assert_eq!(
            errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>(),
            [expected],
            "{length}"
        );
    }
}
