//! Output files of jobs: what was masked for people is handed out, and nothing else.

use axum::body::Body;
use axum::http::StatusCode;
use pvn_scheduler::blobs::{Blobs, Keep};
use pvn_scheduler::store::Commit;
use schema::report::Report;
use schema::status::JobStatus;
use serde_json::json;

use super::streams::job;
use super::{Answer, Service, request};

/// A job that left an explanation of this text, a plan, an explanation of which nothing is kept,
/// and a file that it never made.
async fn with_files(service: &Service, explanation: &str) -> String {
    let blobs = Blobs::open(&service.rig.dir.path().join("other-blobs")).unwrap();
    let put = |text: &str| blobs.put(text.as_bytes(), Keep::Lazy).unwrap();
    let mut row = job(service, JobStatus::Succeeded).await;
    let report: Report = serde_json::from_value(json!({
        "exitCode": 2, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0",
        "files": [
            {"name": "plan-explanation", "contentBlobId": put(explanation)}, {"name": "plan", "contentBlobId": put("password=hunter2")},
            {"name": "absent", "error": "there is no such file"},
        ],
    }))
    .unwrap();
    row.report = Some(Box::new(report));
    let path = format!("/v1/jobs/{}/files", row.id);
    service.rig.store.commit(&Commit { jobs: vec![row], ..Commit::default() }).await.unwrap();
    path
}

async fn as_viewer(service: &Service, path: &str) -> Answer {
    service.ask(request("GET", path, Some("viewer"), Body::empty())).await
}

#[tokio::test]
async fn a_viewer_reads_a_long_explanation_to_its_last_byte() {
    let service = Service::start().await;
    let text = format!("{}DESTROY production-db\n", "+ one bucket\n".repeat(170_000));
    let path = with_files(&service, &text).await + "/plan-explanation";
    let mut read = Vec::new();
    loop {
        let answer = as_viewer(&service, &format!("{path}?offset={}", read.len())).await;
        assert_eq!(
            (answer.status, &answer.headers["cache-control"]),
            (StatusCode::OK, &"no-store".parse().unwrap())
        );
        assert_eq!(answer.headers["content-type"], "application/octet-stream");
        assert!(answer.body.len() <= 1 << 20);
        if answer.body.is_empty() {
            break;
        }
        read.extend(answer.body);
    }
    assert!(read == text.as_bytes(), "{} of {} bytes", read.len(), text.len());
    assert_eq!(as_viewer(&service, &format!("{path}?offset=2&limit=3")).await.body, b"one");
}

#[tokio::test]
async fn a_plan_is_refused_because_it_is_kept_unmasked() {
    let service = Service::start().await;
    let files = with_files(&service, "1 to add").await;
    for role in ["viewer", "admin"] {
        let answer =
            service.ask(request("GET", &format!("{files}/plan"), Some(role), Body::empty())).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{role}");
        let detail = answer.detail();
        assert!(
            detail.contains("may hold secrets") && detail.contains("plan-explanation"),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_says_why() {
    let service = Service::start().await;
    let files = with_files(&service, "1 to add").await;
    for (name, part) in [
        ("nothing", "left no file `nothing`; it left `plan-explanation`, `plan`, `absent`"),
        ("absent", "there is no such file"),
    ] {
        let answer = as_viewer(&service, &format!("{files}/{name}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{name}");
        assert!(answer.detail().contains(part), "{}", answer.detail());
    }
    let other = Service::start().await;
    let files = with_files(&other, "gone").await;
    std::fs::remove_dir_all(other.rig.dir.path().join("other-blobs")).unwrap();
    let answer = as_viewer(&other, &format!("{files}/plan-explanation")).await;
    assert!(
        answer.status == StatusCode::NOT_FOUND && answer.detail().contains("not kept any more"),
        "{}",
        answer.detail()
    );
}
