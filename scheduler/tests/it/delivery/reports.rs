//! The report: what it needs, that it counts once, and that whatever comes later changes nothing
//! and is on record.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use pvn_scheduler::delivery::RECORDS_OF_A_JOB;
use pvn_scheduler::runner::evidence::{Exit, OutcomeEvidence};
use schema::id::BlobId;
use serde_json::{Value, json};

use super::{Uploader, World, offset, report};

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_carries_its_streams_is_accepted_at_once() {
    let world = World::start().await;
    let job = world.fetch().await;
    let said = report(
        json!({"stdoutBytes": 5, "stdoutInline": STANDARD.encode("hello"), "stderrBytes": 3, "stderrInline": STANDARD.encode("err"),
        "stderrBlobId": BlobId::of(b"err")}),
    );
    job.accepted(&said).await;
    let ended = world.job(job.job).await;
    assert_eq!(
        (ended.status.to_string().as_str(), ended.exit_code),
        ("SUCCEEDED", Some(0)),
        "stored before it was answered"
    );
    let kept = ended.report.unwrap();
    assert_eq!(
        (world.blob(kept.stdout_blob_id), world.blob(kept.stderr_blob_id)),
        (b"hello".to_vec(), b"err".to_vec())
    );
    assert_eq!((kept.stdout_inline, kept.stderr_inline), (None, None));
    job.accepted(&said).await;
    assert!(world.logged("job.late_report").await.is_empty(), "the same again is nothing to note");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_refused_until_all_that_it_names_is_there() {
    let world = World::start().await;
    let job = world.fetch().await;
    let check = async |said: &Value, wanted: Value| {
        let answer = job.report(said).await;
        assert_eq!((answer.status, offset(&answer)), (StatusCode::CONFLICT, None));
        assert!(answer.detail().contains("then the report again"));
        assert_eq!(answer.json()["wanted"], wanted);
    };
    let plan = json!([{"name": "plan", "contentBlobId": BlobId::of(b"plan")}]);
    let said = report(
        json!({"stdoutBytes": 5, "stdoutBlobId": BlobId::of(b"hello"), "stderrBytes": 3, "stderrBlobId": BlobId::of(b"err"),
        "files": plan}),
    );
    assert!(!world.delivery.signs(job.job).unwrap().heard);
    check(&said, json!({"stdout": 0, "stderr": 0, "files": ["plan"]})).await;
    assert!(world.delivery.signs(job.job).unwrap().heard, "a report alone is a sign of life");
    job.patch("stdout", 0, "hel").await;
    job.patch("stderr", 0, "exx").await;
    job.send("PUT", "files/plan", "plot").await;
    check(&said, json!({"stdout": 3, "stderr": 0, "files": ["plan"]})).await;
    assert_eq!(
        offset(&job.send("HEAD", "streams/stderr", "").await),
        Some(0),
        "what has another digest is wanted anew"
    );
    job.patch("stdout", 3, "lo").await;
    job.patch("stderr", 0, "err").await;
    check(&said, json!({"files": ["plan"]})).await;
    job.send("PUT", "files/plan", "plan").await;
    job.accepted(&said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_stream_that_was_cut_the_rest_is_asked_for_once_and_then_all_of_it() {
    let world = World::start().await;
    let job = world.fetch().await;
    let said = report(
        json!({"stdoutBytes": 1_000_000, "truncated": true, "stdoutHeadBytes": 4, "stdoutBlobId": BlobId::of(b"headtail")}),
    );
    job.patch("stdout", 0, "head").await;
    assert_eq!(job.report(&said).await.json()["wanted"], json!({"stdout": 4}));
    assert_eq!(
        job.report(&said).await.json()["wanted"],
        json!({"stdout": 0}),
        "nothing came, so what is here is wrong"
    );
    job.patch("stdout", 0, "headtail").await;
    job.accepted(&said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_report_that_contradicts_itself_is_refused_with_the_field() {
    let world = World::start().await;
    let job = world.fetch().await;
    for (more, part) in [
        (json!({"exitCode": 256}), "exitCode is 256"),
        (json!({"exitCode": "0"}), "exitCode"),
        (json!({"stdoutInline": "?"}), "stdoutInline is not base64"),
        (json!({"stdoutInline": "eA==", "stdoutBlobId": BlobId::of(b"y")}), "stdoutBlobId"),
        (json!({"stderrInline": STANDARD.encode(vec![0; (64 << 10) + 1])}), "at most 65536"),
        (json!({"files": [{"name": "../x"}]}), "files[0].name"),
        (json!({"files": [{"name": "x"}, {"name": "x"}]}), "twice"),
        (json!({"files": vec![json!({"name": "x"}); 65]}), "65 entries"),
        (json!({"version": null}), "version"),
    ] {
        let answer = job.report(&report(more)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{part}");
        assert!(answer.detail().contains(part), "{part}: {}", answer.detail());
    }
    for text in ["", "{}", "[]", "nonsense", "{\"exitCode\": 0"] {
        assert_eq!(
            job.send("PUT", "report", text.to_owned()).await.status,
            StatusCode::BAD_REQUEST,
            "{text:?}"
        );
    }
    assert!(
        matches!(world.status(job.job).await.as_str(), "PENDING" | "STARTING" | "RUNNING"),
        "none of it ended the job"
    );
}

/// Everything that a job that is over may still send.
async fn check_over(job: &Uploader) {
    for (method, path) in [
        ("PATCH", "streams/stdout"),
        ("PUT", "files/plan"),
        ("GET", "inputs/fetch:x"),
        ("POST", "heartbeat"),
    ] {
        let request = job.request(method, path);
        let request =
            if method == "PATCH" { request.header("upload-offset", "0") } else { request };
        let answer = job.ask(request.body(Body::from("late")).unwrap()).await;
        assert_eq!((answer.status, offset(&answer)), (StatusCode::GONE, None), "{method} {path}");
        assert!(answer.detail().contains("is over"), "{}", answer.detail());
    }
    assert_eq!(job.send("HEAD", "streams/stdout", "").await.status, StatusCode::GONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_report_for_a_job_that_is_finished_changes_nothing_and_is_on_record() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.accepted(&report(json!({"exitCode": 2}))).await;
    let before = world.job(job.job).await;
    check_over(&job).await;
    let answer = job.report(&report(json!({"exitCode": 0, "hostname": "x".repeat(10_000)}))).await;
    assert_eq!((answer.status, offset(&answer)), (StatusCode::CONFLICT, None));
    assert!(
        answer.detail().contains("ended otherwise before") && answer.json().get("wanted").is_none(),
        "{}",
        answer.detail()
    );
    assert_eq!(world.job(job.job).await, before);
    let noted = world.logged("job.late_report").await;
    assert_eq!(
        (noted.len(), &noted[0].data["said"]["exitCode"], &noted[0].data["job"]),
        (1, &json!(0), &json!(job.job))
    );
    assert_eq!(noted[0].service.as_ref().unwrap().as_str(), "web");
    assert!(noted[0].data.to_string().len() < 2_000, "bounded, whatever it says");
    assert!(!world.logged("job.late_upload").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_report_twice_and_different_counts_the_first_and_fills_no_database() {
    let world = World::start().await;
    let job = world.fetch().await;
    let first = report(json!({"exitCode": 3}));
    job.accepted(&first).await;
    for code in 4..60 {
        assert_eq!(
            job.report(&report(json!({"exitCode": code}))).await.status,
            StatusCode::CONFLICT
        );
        job.accepted(&first).await;
    }
    assert_eq!(world.job(job.job).await.exit_code, Some(3));
    assert_eq!(world.logged("job.late_report").await.len(), RECORDS_OF_A_JOB);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_reports_at_once_one_counts_and_only_the_same_is_accepted() {
    let world = World::start().await;
    let job = world.fetch().await;
    let reports: Vec<Value> =
        (0..16).map(|number| report(json!({"exitCode": number % 4}))).collect();
    let answers = futures::future::join_all(reports.iter().map(|said| job.report(said))).await;
    let counted = world.job(job.job).await.exit_code.unwrap();
    for (said, answer) in reports.iter().zip(answers) {
        let expected =
            if said["exitCode"] == counted { StatusCode::OK } else { StatusCode::CONFLICT };
        assert_eq!(answer.status, expected, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_sign_of_life_is_the_start_and_later_ones_are_counted() {
    let world = World::start().await;
    let job = world.fetch().await;
    assert!(!world.delivery.signs(job.job).unwrap().heard);
    assert_eq!(job.send("POST", "heartbeat", "").await.json(), json!({"cancel": false}));
    world
        .until("the job RUNNING", async || (world.status(job.job).await == "RUNNING").then_some(()))
        .await;
    let started = world.job(job.job).await.started_at;
    let first = world.delivery.signs(job.job).unwrap();
    world
        .until("the clock going on", async || {
            job.patch("stdout", 0, "x").await;
            (world.delivery.signs(job.job).unwrap().last > first.last).then_some(())
        })
        .await;
    assert_eq!(world.job(job.job).await.started_at, started);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_told_with_every_answer_also_after_a_restart() {
    let world = World::start().await;
    let job = world.fetch().await;
    assert!(job.send("POST", "heartbeat", "").await.headers.get("pvn-cancel").is_none());
    world.handle.cancel_job(job.job, crate::driver::caller("eve")).await.unwrap();
    world
        .until("the runner being asked", async || {
            world.delivery.is_cancelled(job.job).then_some(())
        })
        .await;
    let world = world.crash().await;
    let job = world.as_job(job.job, &job.token);
    let beat = job.send("POST", "heartbeat", "").await;
    assert_eq!(
        (beat.json(), &beat.headers["pvn-cancel"]),
        (json!({"cancel": true}), &"true".parse().unwrap())
    );
    for answer in [
        job.patch("stdout", 0, "x").await,
        job.patch("stdout", 9, "x").await,
        job.send("HEAD", "streams/stderr", "").await,
        job.send("GET", "inputs/fetch:no", "").await,
        job.report(&report(json!({"stdoutBytes": 9}))).await,
    ] {
        assert_eq!(answer.headers["pvn-cancel"], "true", "{}", answer.status);
    }
    job.accepted(&report(json!({"exitCode": null, "signal": "SIGTERM", "stdoutBytes": 1}))).await;
    assert_eq!(world.status(job.job).await, "CANCELLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_never_delivers_ends_by_what_its_place_says_and_keeps_what_came() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.patch("stdout", 0, "half of ").await;
    let exit = OutcomeEvidence {
        exit: Some(Exit { code: 2, oom_killed: false, started_at: None, ended_at: None }),
        ..OutcomeEvidence::default()
    };
    world.delivery.settle(job.job, exit.clone(), true).await;
    world.delivery.settle(job.job, OutcomeEvidence::default(), true).await;
    let ended = world
        .until("its end", async || {
            Some(world.job(job.job).await).filter(|job| job.ended_at.is_some())
        })
        .await;
    assert_eq!((ended.status.to_string().as_str(), ended.exit_code), ("SUCCEEDED", Some(2)));
    let kept = ended.report.unwrap();
    assert_eq!(world.blob(kept.stdout_blob_id), b"half of ");
    assert!(kept.output_incomplete);
    check_over(&job).await;
    assert_eq!(job.report(&report(json!({"exitCode": 0}))).await.status, StatusCode::CONFLICT);
    assert_eq!(world.job(job.job).await.exit_code, Some(2));
    world.delivery.settle(job.job, exit, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_report_stands_whatever_the_place_says_afterwards() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.accepted(&report(json!({"exitCode": 2}))).await;
    let exit = Exit { code: 137, oom_killed: true, started_at: None, ended_at: None };
    world
        .delivery
        .settle(job.job, OutcomeEvidence { exit: Some(exit), ..OutcomeEvidence::default() }, true)
        .await;
    assert_eq!(world.job(job.job).await.exit_code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_running_job_uploads_is_seen_live_and_its_end_too() {
    let world = World::start().await;
    let job = world.fetch().await;
    let mut request = crate::http::request(
        "GET",
        &format!("/v1/jobs/{}/logs", job.job),
        Some("viewer"),
        Body::empty(),
    );
    request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let follow = Uploader { token: "viewer".to_owned(), ..job.clone() };
    let mut events = {
        use tower::ServiceExt;
        follow.router.clone().oneshot(request).await.unwrap().into_body().into_data_stream()
    };
    let mut seen = String::new();
    let mut until = async |part: &str| {
        while !seen.contains(part) {
            seen += std::str::from_utf8(&events.next().await.expect("the stream goes on").unwrap())
                .unwrap();
        }
    };
    let sent = Instant::now();
    job.patch("stdout", 0, "first").await;
    until(&STANDARD.encode("first")).await;
    // Measured at some 60 ms; a busy machine is let be late, a poll of a second is not.
    assert!(sent.elapsed() < Duration::from_secs(10), "{:?}", sent.elapsed());
    job.patch("stderr", 0, "second").await;
    until(&STANDARD.encode("second")).await;
    let get = format!("/v1/jobs/{}/logs?stream=stdout&offset=2", job.job);
    assert_eq!(
        job.ask(crate::http::request("GET", &get, Some("viewer"), Body::empty())).await.body,
        b"rst"
    );
    job.accepted(&report(json!({"exitCode": 2, "stdoutBytes": 5, "stderrBytes": 6}))).await;
    until(r#""status":"SUCCEEDED","exitCode":2"#).await;
}
