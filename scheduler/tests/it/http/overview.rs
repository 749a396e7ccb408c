//! How everything stands at a glance.

use axum::http::StatusCode;
use pvn_scheduler::http::OutputRange;
use pvn_scheduler::store::{Commit, JobRow};
use schema::id::JobId;
use schema::spool::Stream;
use schema::status::{JobKind, JobStatus};

use super::{Service, streams};
use crate::store::at;

/// An apply of `web` in `staging` that runs, after some that took this long, milliseconds.
async fn with_applies(service: &Service, lengths: &[i64]) {
    let fetch = streams::job(service, JobStatus::Succeeded).await;
    let mut jobs: Vec<JobRow> = lengths
        .iter()
        .zip(1..)
        .map(|(length, number)| JobRow {
            id: JobId::from_bytes([number; 16]),
            seq: fetch.seq + i64::from(number),
            kind: JobKind::Apply,
            started_at: Some(at(0)),
            ended_at: Some(at(0).plus_ms(*length)),
            ..fetch.clone()
        })
        .collect();
    jobs.push(JobRow {
        id: JobId::from_bytes([0xee; 16]),
        seq: fetch.seq + 100,
        kind: JobKind::Apply,
        status: JobStatus::Running,
        exit_code: None,
        ended_at: None,
        ..fetch
    });
    service.rig.store.commit(&Commit { jobs, ..Commit::default() }).await.unwrap();
}

/// `stdout` of this many lines, the last one told.
fn lines(range: &OutputRange) -> std::io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    if range.stream == Stream::Stdout {
        (0..20_000).for_each(|line| whole.extend(format!("line {line}\n").bytes()));
    }
    let offset = usize::try_from(range.offset).unwrap();
    Ok(whole.into_iter().skip(offset).take(range.limit).collect())
}

#[tokio::test]
async fn a_running_apply_has_its_last_line_and_its_usual_length() {
    let service = Service::printing(lines).await;
    with_applies(&service, &[9_000, 1_000, 2_000, 3_000, 4_000, 5_000]).await;
    let told = service.get("/v1/status").await.json();
    let instances = told["instances"].as_array().unwrap();
    let staging = instances.iter().find(|one| one["channel"] == "staging").unwrap();
    assert_eq!(staging["job"]["lastLine"], "line 19999", "{told}");
    assert_eq!(staging["job"]["usualMs"], 3_000, "the middle one of the last five");
    assert_eq!(staging["job"]["kind"], "apply");
    let production = instances.iter().find(|one| one["channel"] == "production").unwrap();
    assert!(production["job"].is_null(), "{told}");
}

#[tokio::test]
async fn all_are_counted_and_those_that_have_no_room_too() {
    let service = Service::start().await;
    let told = service.get("/v1/status").await.json();
    let counted: u64 =
        told["counts"].as_object().unwrap().values().map(|number| number.as_u64().unwrap()).sum();
    assert_eq!((counted, told["instances"].as_array().unwrap().len()), (2, 2), "{told}");
    assert_eq!(told["more"], 0);
    let told = service.get("/v1/status?limit=1&application=app").await.json();
    let shown = told["instances"].as_array().unwrap().len() as u64;
    let converged = told["counts"]["CONVERGED"].as_u64().unwrap_or(0);
    assert_eq!(shown + told["more"].as_u64().unwrap(), 2 - converged, "{told}");
    assert_eq!(service.get("/v1/status?limit=0").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(service.get("/v1/status?application=x").await.status, StatusCode::NOT_FOUND);
}
