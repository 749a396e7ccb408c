//! Whose token opens what.

use axum::body::Body;
use axum::http::StatusCode;
use pvn_scheduler::delivery::{JobToken, TokenSigner};
use pvn_scheduler::secrets::Sealer;
use schema::id::JobId;
use schema::time::Timestamp;
use serde_json::json;

use super::{Uploader, World, report};

/// Every request that a job can make.
const REQUESTS: &[(&str, &str)] = &[
    ("PATCH", "streams/stdout"),
    ("HEAD", "streams/stdout"),
    ("PUT", "files/plan"),
    ("GET", "inputs/fetch:plan"),
    ("POST", "heartbeat"),
    ("PUT", "report"),
];

async fn check(as_job: &Uploader, expected: StatusCode, part: &str) {
    for (method, path) in REQUESTS {
        let body = if *path == "report" { report(json!({})).to_string() } else { String::new() };
        let answer = as_job
            .ask(
                as_job
                    .request(method, path)
                    .header("upload-offset", "0")
                    .body(Body::from(body))
                    .unwrap(),
            )
            .await;
        // A file has both headers or none.
        if *path == "files/plan" && expected.is_success() {
            continue;
        }
        assert_eq!(answer.status, expected, "{method} {path}");
        if *method != "HEAD" {
            assert!(answer.detail().contains(part), "{method} {path}: {}", answer.detail());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_wrong_or_expired_token_is_401_and_the_first_ones_are_on_record() {
    let world = World::start().await;
    let job = world.fetch().await;
    let tokens = |key: u8| TokenSigner::new(&Sealer::with_key([key; 32]));
    let token = JobToken { job: job.job, attempt: 1, expires_at: None };
    let forged = tokens(9).issue(&token);
    let expired =
        tokens(1).issue(&JobToken { expires_at: Some(Timestamp::from_millis(1)), ..token });
    for (token, part) in [
        (forged.as_str(), "not one that this scheduler made"),
        (&expired, "has expired"),
        ("pvnj1.", "not one that this scheduler made"),
        ("nobody", "not one of a job"),
    ] {
        check(&Uploader { token: token.to_owned(), ..job.clone() }, StatusCode::UNAUTHORIZED, part)
            .await;
    }
    let refused = world.logged("job.refused_upload").await;
    assert!(
        refused
            .iter()
            .all(|entry| entry.data["job"] == job.job.to_string() && entry.service.is_some()),
        "{refused:?}"
    );
    assert_eq!(refused.len(), 1, "the same is noted once");
    // The row says STARTING a moment after the start.
    assert!(
        matches!(world.status(job.job).await.as_str(), "PENDING" | "STARTING"),
        "nothing of it counts as a sign of life"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_report_for_a_job_that_is_someone_elses_is_401_and_on_record() {
    let world = World::start().await;
    let job = world.fetch().await;
    let other = JobId::derive(&[b"other"]);
    let token = TokenSigner::new(&Sealer::with_key([1; 32])).issue(&JobToken {
        job: other,
        attempt: 1,
        expires_at: None,
    });
    check(&Uploader { token, ..job.clone() }, StatusCode::UNAUTHORIZED, "one of another job").await;
    let noted = world.logged("job.refused_upload").await;
    assert!(
        noted.iter().any(|entry| entry.message.contains(&format!("a token of {other} was used"))),
        "{noted:?}"
    );
    job.accepted(&report(json!({}))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_report_for_a_job_that_is_unknown_is_404() {
    let world = World::start().await;
    let unknown = JobId::derive(&[b"unknown"]);
    let token = TokenSigner::new(&Sealer::with_key([1; 32])).issue(&JobToken {
        job: unknown,
        attempt: 1,
        expires_at: None,
    });
    check(&world.as_job(unknown, &token), StatusCode::NOT_FOUND, "there is no job").await;
    assert!(world.logged("job.refused_upload").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_attempt_opens_nothing() {
    let world = World::start().await;
    let job = world.fetch().await;
    let token = TokenSigner::new(&Sealer::with_key([1; 32])).issue(&JobToken {
        job: job.job,
        attempt: 2,
        expires_at: None,
    });
    check(&Uploader { token, ..job.clone() }, StatusCode::NOT_FOUND, "not as attempt 2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_may_not_upload_and_jobs_may_not_use_the_api() {
    let world = World::start().await;
    let job = world.fetch().await;
    for role in ["viewer", "approver", "admin"] {
        check(
            &Uploader { token: role.to_owned(), ..job.clone() },
            StatusCode::FORBIDDEN,
            "only `job-",
        )
        .await;
        check(
            &world.as_job(JobId::derive(&[b"unknown"]), role),
            StatusCode::NOT_FOUND,
            "there is no job",
        )
        .await;
    }
    for path in [
        "/v1/jobs",
        &format!("/v1/jobs/{}", job.job),
        &format!("/v1/jobs/{}/logs?stream=stdout", job.job),
        "/v1/secrets",
    ] {
        let answer =
            job.ask(crate::http::request("GET", path, Some(&job.token), Body::empty())).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_sees_its_own_inputs_and_no_others() {
    let world = World::start().await;
    let fetch = world.fetch().await;
    assert_eq!(fetch.send("PUT", "files/plan", "the plan").await.status, StatusCode::CREATED);
    assert_eq!(fetch.send("PUT", "files/empty", "").await.status, StatusCode::CREATED);
    let blob = |content: &[u8]| schema::id::BlobId::of(content);
    let files = json!([{"name": "plan", "contentBlobId": blob(b"the plan")}, {"name": "empty", "contentBlobId": blob(b"")}]);
    fetch
        .accepted(&report(
            json!({"exitCode": 2, "files": files, "stdoutBytes": 6, "stdoutInline": "c2VjcmV0"}),
        ))
        .await;
    let apply = world.handed("apply").await;
    for (reference, content) in [
        ("fetch:plan".to_owned(), "the plan"),
        (blob(b"the plan").to_string(), "the plan"),
        ("fetch:empty".to_owned(), ""),
    ] {
        let answer = apply.send("GET", &format!("inputs/{reference}"), "").await;
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (StatusCode::OK, content.as_bytes()),
            "{reference}"
        );
        assert_eq!(answer.headers["content-length"], content.len().to_string().as_str());
        assert_eq!(answer.headers["pvn-blob-id"], blob(content.as_bytes()).to_string().as_str());
    }
    // The blob of the fetch's stdout is there, and nobody said that an apply may read it.
    for reference in ["fetch:none", &blob(b"secret").to_string(), "..%2F..%2Fsecret.key", "x"] {
        let answer = apply.send("GET", &format!("inputs/{reference}"), "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{reference}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_the_disk_damaged_is_refused_in_words_and_none_of_it_is_sent() {
    // Cut short, emptied, and as long as before with other bytes.
    for damage in [&b"the"[..], b"", b"THE PLAN"] {
        let world = World::start().await;
        let fetch = world.fetch().await;
        assert_eq!(fetch.send("PUT", "files/plan", "the plan").await.status, StatusCode::CREATED);
        let blob = schema::id::BlobId::of(b"the plan");
        fetch
            .accepted(&report(
                json!({"exitCode": 2, "files": [{"name": "plan", "contentBlobId": blob}]}),
            ))
            .await;
        let apply = world.handed("apply").await;
        // Nobody may write to it: the disk did.
        std::fs::remove_file(world.blobs.path(blob)).unwrap();
        std::fs::write(world.blobs.path(blob), damage).unwrap();
        for reference in ["fetch:plan".to_owned(), blob.to_string()] {
            let answer = apply.send("GET", &format!("inputs/{reference}"), "").await;
            let text = String::from_utf8_lossy(&answer.body);
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{reference}: {text}");
            assert!(
                text.contains("cannot be used")
                    && text.contains("is damaged on the scheduler's disk"),
                "{reference}: {text}"
            );
            assert!(text.contains("the next fetch makes a new one"), "{reference}: {text}");
        }
    }
}
