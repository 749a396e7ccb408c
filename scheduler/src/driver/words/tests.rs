//! Which words are read of what a job printed, how much of them, and that none is a secret.

use serde_json::json;

use super::*;
use crate::blobs::Keep;

#[test]
fn a_line_is_the_first_or_last_that_says_something_without_colours() {
    let check = |text: &str, first: Option<&str>, last: Option<&str>| {
        assert_eq!(
            (first_line(text.as_bytes()).as_deref(), last_line(text.as_bytes()).as_deref()),
            (first, last),
            "{text:?}"
        );
    };
    check("", None, None);
    check("\n \r\n\t\n", None, None);
    check("one", Some("one"), Some("one"));
    check("\n  one \n\n two\n\n", Some("one"), Some("two"));
    check(
        "\u{1b}[1;31mError:\u{1b}[0m no\tsuch bucket\n\u{1b}[0m\n",
        Some("Error: no such bucket"),
        Some("Error: no such bucket"),
    );
    check("10 %\r20 %\rdone\u{7}\r", Some("10 %"), Some("done"));
    check("a\u{1b}(Bb\u{1b}", Some("ab"), Some("ab"));
    check("{\n│ Error: no\n│ \n╵\n}\n", Some("│ Error: no"), Some("│ Error: no"));
    check("\n?\n!\n", Some("?"), Some("!"));
    let warning = "\u{1b}[33m╷\u{1b}[0m\n│ \u{1b}[1mWarning: \u{1b}[0mold\n│ \n│ gone in 2.0\n╵\n";
    let warns = Some("│ Warning: old");
    check(&format!("killed\n{warning}"), Some("killed"), Some("killed"));
    check(&format!("{warning}\n╷\n│ Error: no\n╵\n{warning}"), warns, Some("│ Error: no"));
    check(warning, warns, Some("│ gone in 2.0"));
    check("keep \u{202e}bd\u{2069}", Some("keep bd"), Some("keep bd"));
}

#[test]
fn a_long_line_is_cut_at_a_whole_character() {
    let line = first_line("ä".repeat(500).as_bytes()).unwrap();
    assert_eq!(line, "ä".repeat(LINE_LIMIT_CHARS) + "…");
    assert!(first_line(&[0xff, b'x']).unwrap().ends_with('x'));
}

#[test]
fn a_line_that_is_too_long_is_cut_at_whole_characters() {
    let (head, tail) = ("ä".repeat(LOOK_BYTES), "ö".repeat(LOOK_BYTES));
    let shown = cut(
        JobId::from_bytes([7; 16]),
        1 << 20,
        &head.as_bytes()[..head.len() - 1],
        &tail.as_bytes()[1..],
    );
    assert!(
        shown.starts_with('ä')
            && shown.ends_with('ö')
            && shown.contains("1048576 bytes")
            && !shown.contains('\u{fffd}')
    );
}

#[tokio::test]
async fn a_long_explanation_shows_head_and_tail_and_the_command_that_prints_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    let secret = "hunter2-secret";
    for margin in 0..2 * secret.len() {
        let text = format!(
            "Plan: 1 to add\n{}{secret}{}\nDESTROY production-db\n",
            "ä+ bucket\n".repeat(20_000),
            "x".repeat(TAIL_BYTES - 30 - margin)
        );
        let id = blobs.put(text.as_bytes(), Keep::Lazy).unwrap();
        let files = vec![
            serde_json::from_value(json!({"name": EXPLANATION, "contentBlobId": id})).unwrap(),
        ];
        let end =
            End::Reported(Box::new(Report { exit_code: Some(2), files, ..Report::default() }));
        let job = JobId::from_bytes([7; 16]);
        let told =
            read(&blobs, job, &end, Secrets::of(&[secret.as_bytes()])).await.explanation.unwrap();
        assert!(
            told.starts_with("Plan: 1 to add\n") && told.ends_with("\nDESTROY production-db\n"),
            "{margin}"
        );
        assert!(told.contains(&format!("`pvnctl jobs files {job} plan-explanation`")), "{margin}");
        assert!(
            told.len() < EXPLANATION_LIMIT_BYTES + 300
                && !told.contains("hunter2")
                && !told.contains("-secret"),
            "{margin}"
        );
    }
}

#[tokio::test]
async fn a_document_that_nobody_was_to_read_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    let noticed = async |text: &str, code, structured| {
        let stdout_bytes = text.len() as u64;
        let report = Report {
            exit_code: Some(code),
            stdout_bytes,
            stdout_blob_id: Some(blobs.put(text.as_bytes(), Keep::Lazy).unwrap()),
            structured,
            ..Report::default()
        };
        read(&blobs, JobId::from_bytes([7; 16]), &End::Reported(Box::new(report)), None)
            .await
            .has_objects
    };
    let document = r#" {"objects": [{"name": "web", "objectTyp": "bucket"}]} "#;
    assert!(noticed(document, 0, None).await);
    assert!(!noticed(document, 1, None).await, "a failure is told anyway");
    let checked =
        serde_json::from_value(json!({"kind": "fetch", "value": {"objects": []}})).unwrap();
    assert!(!noticed(document, 0, Some(checked)).await);
    for other in
        ["", "nothing to do\n", "{\"objects\": 1}", "{}", "[1]", "{\"objects\": []} more", "{{{{"]
    {
        assert!(!noticed(other, 0, None).await, "{other}");
    }
    assert!(
        !noticed(&format!("{}{document}", " ".repeat(DOCUMENT_LIMIT_BYTES)), 0, None).await,
        "too long to look at each time"
    );
}

#[tokio::test]
async fn rule_15_output_that_is_not_whole_is_the_same_as_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    let cut = async |job: u8, kept: &str, bytes: u64, code| {
        let stdout_blob_id = Some(kept)
            .filter(|kept| !kept.is_empty())
            .map(|kept| blobs.put(kept.as_bytes(), Keep::Lazy).unwrap());
        let report = Report {
            exit_code: Some(code),
            stdout_bytes: bytes,
            stdout_blob_id,
            ..Report::default()
        };
        read(&blobs, JobId::from_bytes([job; 16]), &End::Reported(Box::new(report)), None).await.cut
    };
    assert_eq!(cut(1, "Plan: 1", 7, 2).await, None, "it is whole");
    assert_eq!(cut(1, "Plan: 1", 0, 2).await, None, "nobody counted");
    assert_eq!(cut(1, "Plan: 1", 8, 0).await, None, "there is nothing to approve");
    let [one, other, empty] =
        [cut(1, "Plan: 1", 8, 2).await, cut(2, "Plan: 1", 8, 2).await, cut(2, "", 8, 2).await];
    assert!(
        one.is_some() && other.is_some() && empty.is_some() && one != other && other != empty,
        "{one:?} {other:?} {empty:?}"
    );
    assert!(
        cut(1, "Plan: 1, and what it said on stderr", 8, 2).await.is_some(),
        "both streams together"
    );
}

#[tokio::test]
async fn only_a_job_that_has_something_to_tell_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    let noise = "noise\n".repeat(2_000);
    let put = |text: &str| blobs.put(text.as_bytes(), Keep::Lazy).unwrap();
    let report = |code: i32, files: serde_json::Value| {
        let whole = json!({
            "exitCode": code, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0",
            "stdoutBlobId": put(&format!("\n2 to add\n{noise}")), "stderrBlobId": put(&format!("{noise}no credentials\n")), "files": files,
        });
        End::Reported(Box::new(serde_json::from_value(whole).unwrap()))
    };
    assert_eq!(
        read(&blobs, JobId::from_bytes([7; 16]), &report(0, json!([])), None).await,
        Words::default()
    );
    let words = read(&blobs, JobId::from_bytes([7; 16]), &report(2, json!([])), None).await;
    assert_eq!(
        (words.stdout.as_deref(), words.stderr.as_deref()),
        (Some("2 to add"), Some("no credentials"))
    );
    assert_eq!(words.headline().as_deref(), Some("2 to add"));
    let explained = json!([{"name": EXPLANATION, "contentBlobId": put("Plan: 1 to add\nmore")}]);
    let words = read(&blobs, JobId::from_bytes([7; 16]), &report(2, explained.clone()), None).await;
    assert_eq!(words.headline().as_deref(), Some("Plan: 1 to add"));
    let words = read(&blobs, JobId::from_bytes([7; 16]), &report(0, explained), None).await;
    assert_eq!((words.explanation.as_deref(), words.stderr), (Some("Plan: 1 to add\nmore"), None));
}

#[tokio::test]
async fn no_word_tells_a_secret_that_the_job_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    let put = |text: &str| blobs.put(text.as_bytes(), Keep::Lazy).unwrap();
    let secret = "hunter2-secret";
    let long = format!(
        "token={secret}\n{}{secret}",
        "x".repeat(EXPLANATION_LIMIT_BYTES + 1 - 6 - 2 * secret.len())
    );
    for text in [
        format!("Plan: {secret}, and aHVudGVyMi1zZWNyZXQ="),
        long.clone() + "more",
        long[..long.len() - 4].to_owned() + "more",
    ] {
        let whole = json!({
            "exitCode": 2, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0",
            "stdoutBlobId": put(&text), "stderrBlobId": put(&text), "files": [{"name": EXPLANATION, "contentBlobId": put(&text)}],
        });
        let end = End::Reported(Box::new(serde_json::from_value(whole).unwrap()));
        let words =
            read(&blobs, JobId::from_bytes([7; 16]), &end, Secrets::of(&[secret.as_bytes()])).await;
        let told = format!("{words:?} {:?}", words.headline());
        assert!(
            !told.contains("hunter2-sec") && !told.contains("aHVudGVy") && told.contains("***"),
            "{}",
            &told[..200]
        );
    }
}

#[tokio::test]
async fn a_secret_that_begins_before_the_end_that_is_looked_at_is_not_half_shown() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    let secret = "hunter2-secret";
    for within in 1..secret.len() {
        let text =
            format!("{}{secret}{}", "x".repeat(2 * LOOK_BYTES), "y".repeat(LOOK_BYTES - within));
        let id = blobs.put(text.as_bytes(), Keep::Lazy).unwrap();
        let report = Report { exit_code: Some(1), stderr_blob_id: Some(id), ..Report::default() };
        let words = read(
            &blobs,
            JobId::from_bytes([7; 16]),
            &End::Reported(Box::new(report)),
            Secrets::of(&[secret.as_bytes()]),
        )
        .await;
        assert!(
            words.stderr.as_deref().is_some_and(|said| said.starts_with("***y")),
            "{within}: {:?}",
            words.stderr
        );
    }
}
