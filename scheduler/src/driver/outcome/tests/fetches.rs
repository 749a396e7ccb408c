//! What a fetch tells the engine.

use schema::spool::EXPLANATION;

use super::*;
use crate::perform::PLAN;

#[test]
fn a_document_that_the_mode_does_not_read_is_told() {
    let words = Words { has_objects: true, ..Words::default() };
    let doubt =
        |asked: &JobPurpose<'_>| match read(report(json!({"exitCode": 0})), true, &words, asked)
            .outcome
        {
            Outcome::Exited { seen, .. } => seen.doubt,
            other => panic!("{other:?}"),
        };
    assert!(
        doubt(&FETCH).is_some_and(|doubt| doubt.contains("set `fetchMode: STRUCTURED_OUTPUT`"))
    );
    assert_eq!(doubt(&JobPurpose { kind: JobKind::Apply, ..FETCH }), None);
    assert_eq!(doubt(&JobPurpose { kind: JobKind::GetInfo, ..FETCH }), None);
}

#[test]
fn work_that_is_told_on_stderr_alone_may_be_a_mistake_of_the_script() {
    let doubt = |words: &Words, code: i32, asked: &JobPurpose<'_>| match read(
        report(json!({"exitCode": code})),
        true,
        words,
        asked,
    )
    .outcome
    {
        Outcome::Exited { seen, .. } => seen.doubt,
        other => panic!("{other:?}"),
    };
    let mute = Words { stderr: Some("fetch.sh: 4: Syntax error".into()), ..Words::default() };
    assert!(doubt(&mute, 2, &FETCH).is_some_and(|doubt| doubt.contains("`workExitCodes: [10]`")));
    assert_eq!(doubt(&mute, 1, &FETCH), None, "told as what it is");
    for codes in [&[10][..], &[2, 10]] {
        let codes = WorkExitCodes::chosen(codes);
        let chosen = JobPurpose { work: Some(&codes), ..FETCH };
        for code in [2, 10] {
            assert_eq!(doubt(&mute, code, &chosen), None, "somebody has said what is meant");
        }
    }
    assert_eq!(doubt(&mute, 2, &JobPurpose { kind: JobKind::Apply, ..FETCH }), None);
    assert_eq!(doubt(&Words::default(), 2, &FETCH), None);
    for said in [
        Words { stdout: Some("1 to add".into()), ..mute.clone() },
        Words { explanation: Some("1 to add".into()), ..mute.clone() },
    ] {
        assert_eq!(doubt(&said, 2, &FETCH), None);
    }
}

#[test]
fn rule_15_work_is_bound_to_the_output_of_its_fetch_alone_where_that_is_not_whole() {
    let [kept, cut, file] = ["kept", "cut", "file"].map(|text| BlobId::of(text.as_bytes()));
    let words = Words { cut: Some(cut), ..Words::default() };
    let seen = |words: &Words, files: serde_json::Value| {
        let ended =
            report(json!({"exitCode": 2, "stdoutBytes": 9, "stdoutBlobId": kept, "files": files}));
        match read(ended, true, words, &FETCH).outcome {
            Outcome::Exited { seen, .. } => (
                seen.fingerprint(),
                seen.is_cut,
                seen.doubt.is_some_and(|doubt| doubt.contains("runtimes check")),
            ),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(seen(&words, json!([])), (Some(cut), true, true));
    assert_eq!(seen(&Words::default(), json!([])), (Some(kept), false, false));
    for name in [PLAN, EXPLANATION] {
        assert_eq!(
            seen(&words, json!([{"name": name, "contentBlobId": file}])),
            (Some(file), false, false),
            "{name}"
        );
    }
}

#[test]
fn rule_15_when_things_happened_is_no_part_of_what_is_approved() {
    let asked = JobPurpose { mode: Some(FetchAnswer::StructuredOutput), ..FETCH };
    let digest = |message: &str, at: &str| {
        let event = json!({"timestamp": at, "message": "looked"});
        let value = json!({"objects": [{"name": "o", "objectType": "T", "message": message, "debugEvents": [event]}]});
        let ending = read(
            report(json!({"exitCode": 0, "structured": {"kind": "fetch", "value": value}})),
            true,
            &Words::default(),
            &asked,
        );
        match ending.outcome {
            Outcome::Exited { seen, .. } => seen.fingerprint().expect("it has one"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(digest("down", "2026-01-01T00:00:00Z"), digest("down", "2026-01-01T00:00:05Z"));
    assert_ne!(digest("down", "2026-01-01T00:00:00Z"), digest("gone", "2026-01-01T00:00:00Z"));
}

#[test]
fn structured_output_reaches_the_engine_as_objects() {
    let structured = JobPurpose { mode: Some(FetchAnswer::StructuredOutput), ..FETCH };
    let value = json!({"objects": [{"name": "web", "objectType": "PROCESS"}]});
    let outcome = check(
        json!({"exitCode": 0, "structured": {"kind": "fetch", "value": value}}),
        &structured,
        JobStatus::Succeeded,
        Some(0),
        "",
    );
    let Outcome::Exited { seen, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(seen.objects.unwrap().unwrap()[0].name, "web");
}

#[test]
fn p8_a_fetch_whose_files_could_not_be_kept_has_told_nothing() {
    let lost =
        json!({"exitCode": 2, "filesLost": "output `plan-explanation`: it could not be stored"});
    let outcome = check(
        lost.clone(),
        &FETCH,
        JobStatus::Failed,
        Some(2),
        "output `plan-explanation`: it could not be stored",
    );
    assert!(matches!(outcome, Outcome::BadOutput { .. }), "{outcome:?}");
    // What an apply did it did.
    let mut applied = lost;
    applied["exitCode"] = json!(0);
    check(
        applied,
        &JobPurpose { kind: JobKind::Apply, ..FETCH },
        JobStatus::Succeeded,
        Some(0),
        "",
    );
}
