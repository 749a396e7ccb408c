//! Structured output: checked as the scheduler would, with every problem at its place.

use std::io::Write;
use std::process::{Command, Stdio};

use schema::report::StructuredKind;

use crate::deliver;
use crate::run::{Run, Wrapper};
use crate::scheduler::Scheduler;

const GOOD: &str = r#"{"objects":[{"name":"web","objectType":"X","versions":[{"version":"1","active":true}],"status":"SUCCEEDED"}]}"#;

/// A command prints `text`; `error` is what must be said about it, at `pointer`.
fn check(text: &[u8], wrong: Option<(&str, &str)>) {
    let wrapper = Wrapper::new(&["--expect", "fetch"], &["cat", "document"]);
    std::fs::write(wrapper.path("document"), text).unwrap();
    let run = wrapper.run();
    let structured = run.report.structured.unwrap();
    assert_eq!(run.report.exit_code, Some(0));
    match wrong {
        None => assert!(
            run.code == 0 && structured.value.is_some() && structured.errors.is_empty(),
            "{:?}",
            structured.errors
        ),
        Some((pointer, message)) => {
            assert_eq!((run.code, &structured.value), (65, &None));
            let found = structured
                .errors
                .iter()
                .any(|error| error.pointer == pointer && error.message.contains(message));
            assert!(found, "{pointer}: {message} is not in {:?}", structured.errors);
            assert!(run.stderr.contains("structured output"), "{}", run.stderr);
        }
    }
}

#[test]
fn json_valid_is_in_the_report() {
    check(GOOD.as_bytes(), None);
    check(br#"{"objects":[]}"#, None);
}

#[test]
fn a_secret_with_a_quote_at_its_end_leaves_the_document_whole() {
    for secret in ["hunter22\"", "\"hunter22", "hunter22\\"] {
        let with = |text: &str| serde_json::json!({"objects": [{"name": "web", "objectType": "X", "message": format!("key {text}")}]});
        let wrapper = Wrapper::new(&["--expect", "fetch"], &["cat", "document"])
            .env("PVN_SECRET_KEYS", "KEY")
            .env("KEY", secret);
        std::fs::write(wrapper.path("document"), with(secret).to_string()).unwrap();
        let run = wrapper.run();
        assert_eq!(
            run.report.structured.unwrap().value,
            Some(with("***")),
            "{secret}: {}",
            run.stderr
        );
    }
}

#[test]
fn bad_input_output_that_is_not_json_is_shown() {
    check(b"Refreshing state...\n", Some(("", "Refreshing state")));
    check(b"", Some(("", "")));
    check(b"{\"objects\":\xff}", Some(("", "")));
}

#[test]
fn json_two_documents() {
    check(format!("{GOOD}{GOOD}").as_bytes(), Some(("", "")));
}

#[test]
fn json_log_line_before_it() {
    check(format!("log line\n{GOOD}").as_bytes(), Some(("", "log line")));
}

#[test]
fn json_bom() {
    check(format!("\u{feff}{GOOD}").as_bytes(), Some(("", "")));
}

#[test]
fn json_1e400() {
    check(
        br#"{"objects":[{"name":"a","objectType":"X","versions":[{"version":"1","replicas":1e400}]}]}"#,
        Some(("/objects/0/versions/0/replicas", "out of range")),
    );
}

#[test]
fn json_duplicate_keys() {
    check(br#"{"objects":[],"objects":[]}"#, Some(("/objects", "given twice")));
}

#[test]
fn json_depth_100000() {
    let wrapper = Wrapper::new(&["--expect", "fetch"], &["cat", "document"]);
    std::fs::write(wrapper.path("document"), "[".repeat(100_000)).unwrap();
    let run = wrapper.run();
    assert_eq!(run.code, 65);
    assert!(run.report.bad_output.unwrap().contains("nested deeper"));
}

#[test]
fn json_wrong_type_is_named_by_pointer() {
    check(br#"{"objects":[{"name":1,"objectType":"X"}]}"#, Some(("/objects/0/name", "")));
    check(
        br#"{"objects":[{"name":"a","objectType":"X","status":"GREAT"}]}"#,
        Some(("/objects/0/status", "")),
    );
}

#[test]
fn json_unknown_field_is_named_by_pointer() {
    check(
        br#"{"objects":[{"name":"a","objectType":"X","colour":"red"}]}"#,
        Some(("/objects/0/colour", "")),
    );
}

#[test]
fn json_500_mb_is_refused_by_its_size() {
    let mut wrapper =
        Wrapper::new(&["--expect", "fetch"], &["head", "-c", "500000000", "/dev/zero"]);
    wrapper.command.stdout(Stdio::null());
    let run = wrapper.run();
    assert_eq!(run.code, 65);
    assert!(run.report.structured.unwrap().errors[0].message.contains("500000000 bytes"));
}

#[test]
fn json_just_over_the_limit_is_refused_by_its_size() {
    let run = Wrapper::new(&["--expect", "fetch"], &["head", "-c", "9000000", "/dev/zero"]).run();
    assert_eq!(run.code, 65);
    assert!(run.report.structured.unwrap().errors[0].message.contains("9000000 bytes"));
}

#[test]
fn after_a_failure_nothing_is_expected() {
    let run = Wrapper::new(&["--expect", "fetch"], &["sh", "-c", "echo nonsense; exit 1"]).run();
    assert_eq!((run.code, run.report.structured), (1, None));
}

fn validate(kind: &str, text: &str) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args(["validate", kind, "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn validate_says_what_the_scheduler_would() {
    assert_eq!(validate("fetch", GOOD), (0, String::new()));
    assert_eq!(
        validate("get-info", r#"{"outputs":[{"name":"a","text":"b"}]}"#),
        (0, String::new())
    );
    let (code, said) = validate("get-info", r#"{"outputs":[{"name":"a"}]}"#);
    assert!(code == 65 && said.contains("standard input: /outputs/0"), "{said}");
    let output = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args(["validate", "fetch", "/no/such"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
}

/// A wrapper as an image's ENTRYPOINT has it: no flags, the variables of a job.
fn baked_in(
    scheduler: &Scheduler,
    flags: &[&str],
    script: &str,
    kind: &str,
    mode: Option<&str>,
) -> Run {
    let wrapper = deliver::shell(scheduler, flags, script).env("PVN_JOB_KIND", kind);
    mode.into_iter().fold(wrapper, |wrapper, mode| wrapper.env("PVN_FETCH_MODE", mode)).run()
}

#[test]
fn what_to_expect_comes_from_the_variables_of_the_job_unless_a_flag_says_it() {
    const INFO: &str = r#"{"outputs":[{"name":"a","text":"b"}]}"#;
    let check = |flags: &[&str],
                 prints: &str,
                 kind: &str,
                 mode: Option<&str>,
                 expected: Option<StructuredKind>,
                 code: i32| {
        let scheduler = Scheduler::start();
        let run = baked_in(&scheduler, flags, &format!("printf '%s' '{prints}'"), kind, mode);
        let found = scheduler.check().structured.map(|structured| structured.kind);
        assert_eq!(
            (found, run.code),
            (expected, code),
            "{kind} {mode:?} {flags:?}: {}",
            run.stderr
        );
    };
    check(&[], GOOD, "fetch", Some("STRUCTURED_OUTPUT"), Some(StructuredKind::Fetch), 0);
    check(&[], "no document", "fetch", Some("STRUCTURED_OUTPUT"), Some(StructuredKind::Fetch), 65);
    check(&[], INFO, "getInfo", None, Some(StructuredKind::GetInfo), 0);
    check(&[], "no document", "getInfo", None, Some(StructuredKind::GetInfo), 65);
    check(&[], "no document", "fetch", Some("EXIT_CODE"), None, 0);
    check(&[], "no document", "fetch", None, None, 0);
    check(&[], "no document", "apply", Some("STRUCTURED_OUTPUT"), None, 0);
    check(
        &["--expect", "get-info"],
        INFO,
        "fetch",
        Some("STRUCTURED_OUTPUT"),
        Some(StructuredKind::GetInfo),
        0,
    );
}

#[test]
fn a_wrapper_within_the_command_prints_a_part_of_the_document_and_checks_nothing() {
    let scheduler = Scheduler::start();
    let wrapper = env!("CARGO_BIN_EXE_pvn-wrapper");
    let script =
        format!("'{wrapper}' exec -- printf '{{\"objects\":' && '{wrapper}' exec -- printf '[]}}'");
    let run = baked_in(&scheduler, &[], &script, "fetch", Some("STRUCTURED_OUTPUT"));
    assert_eq!((run.code, run.text().as_str()), (0, r#"{"objects":[]}"#), "{}", run.stderr);
    assert!(scheduler.check().structured.unwrap().value.is_some());
}
