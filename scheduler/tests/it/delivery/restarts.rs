//! The scheduler killed between any two requests: nothing that was acknowledged is lost, nothing
//! counts twice.

use axum::http::StatusCode;
use proptest::prelude::*;
use schema::id::BlobId;
use serde_json::json;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::{World, offset, report};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.patch("stdout", 0, "before ").await;
    job.send("PUT", "files/plan", "the plan").await;
    job.file("large", 0, 4, "12").await;
    world
        .until("the job RUNNING", async || (world.status(job.job).await == "RUNNING").then_some(()))
        .await;
    let started = world.job(job.job).await.started_at;
    let world = world.crash().await;
    let job = world.as_job(job.job, &job.token);
    assert_eq!(offset(&job.send("HEAD", "streams/stdout", "").await), Some(7));
    assert_eq!(offset(&job.patch("stdout", 7, "after").await), Some(12));
    assert_eq!(job.file("large", 2, 4, "34").await.status, StatusCode::CREATED);
    let files = [("plan", b"the plan".as_slice()), ("large", b"1234")]
        .map(|(name, content)| json!({"name": name, "contentBlobId": BlobId::of(content)}));
    job.accepted(&report(
        json!({"stdoutBytes": 12, "stdoutBlobId": BlobId::of(b"before after"), "files": files}),
    ))
    .await;
    let ended = world.job(job.job).await;
    assert_eq!(world.blob(ended.report.unwrap().stdout_blob_id), b"before after");
    assert!(started.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_report_is_accepted_again_after_a_restart_and_another_is_not() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.patch("stdout", 0, "out").await;
    let said = report(
        json!({"exitCode": 2, "stdoutBytes": 3, "stdoutBlobId": BlobId::of(b"out"), "stderrBytes": 1, "stderrInline": "eA=="}),
    );
    job.accepted(&said).await;
    let world = world.crash().await;
    let job = world.as_job(job.job, &job.token);
    job.accepted(&said).await;
    assert_eq!(job.report(&report(json!({"exitCode": 0}))).await.status, StatusCode::CONFLICT);
    assert_eq!(job.send("POST", "heartbeat", "").await.status, StatusCode::GONE);
    assert_eq!(world.job(job.job).await.exit_code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_was_taken_and_not_stored_is_told_again_after_a_kill() {
    let world = World::start().await;
    let job = world.fetch().await;
    let options = SqliteConnectOptions::new().filename(world.dir.path().join("pvn.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let said = report(json!({"exitCode": 2}));
    let taken = world.dir.path().join("uploads").join(job.job.to_string()).join("report.json");
    tokio::select! {
        answer = job.report(&said) => panic!("answered {} before it was stored", answer.status),
        () = world.until("the report being taken", async || taken.exists().then_some(())) => {}
    }
    let crashed = world.crash();
    held.rollback().await.unwrap();
    other.close().await.unwrap();
    let world = crashed.await;
    // Its wrapper is gone: nobody sends it again.
    let ended = world
        .until("its end", async || {
            Some(world.job(job.job).await).filter(|job| job.ended_at.is_some())
        })
        .await;
    assert_eq!(ended.exit_code, Some(2));
    world.as_job(job.job, &job.token).accepted(&said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_performed_again_gives_the_same_token_and_keeps_what_came() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.patch("stdout", 0, "kept").await;
    let spec = world.runner.handed.lock().unwrap()[&job.job].spec.clone();
    for world in [world.crash().await] {
        let environment = world.delivery.expect(&spec, &world.runner.news).await.unwrap();
        assert_eq!(environment[1], ("PVN_TOKEN".to_owned(), job.token.clone()));
        assert_eq!(environment[0].0, "PVN_API_URL");
        assert_eq!(
            offset(&world.as_job(job.job, &job.token).send("HEAD", "streams/stdout", "").await),
            Some(4)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_waits_for_is_removed_at_the_next_start() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.accepted(&report(json!({}))).await;
    let stray =
        world.dir.path().join("uploads").join(schema::id::JobId::derive(&[b"stray"]).to_string());
    std::fs::create_dir_all(stray.join("files")).unwrap();
    std::fs::write(stray.join("stdout"), "x").unwrap();
    let world = world.crash().await;
    assert_eq!(world.staged(), 0);
}

/// What a wrapper that is cut off, comes back, repeats and overtakes itself does, and what happens
/// to the scheduler.
#[derive(Debug, Clone)]
enum Step {
    /// Sends these bytes of the stream's truth; of the body only so much arrives.
    Send { stream: usize, offset: usize, length: usize, arrives: usize },
    /// Goes on where the scheduler says.
    GoOn { stream: usize, length: usize },
    /// The scheduler is killed.
    Kill,
    /// Reports too early.
    Report,
}

fn step() -> impl Strategy<Value = Step> {
    let stream = || 0_usize..2;
    let arrives = prop_oneof![2 => Just(usize::MAX), 1 => 0_usize..1500];
    let send = (stream(), 0_usize..3000, 0_usize..1500, arrives);
    prop_oneof![
        6 => send.prop_map(|(stream, offset, length, arrives)| {
            Step::Send { stream, offset, length, arrives }
        }),
        4 => (stream(), 0_usize..1500).prop_map(|(stream, length)| Step::GoOn { stream, length }),
        1 => Just(Step::Kill),
        1 => Just(Step::Report),
    ]
}

const NAMES: [&str; 2] = ["stdout", "stderr"];

async fn play(steps: Vec<Step>) {
    let truth: [Vec<u8>; 2] =
        [7_u32, 13].map(|factor| (0..3000_u32).map(|at| (at * factor % 251) as u8).collect());
    let id = |stream: usize| BlobId::of(&truth[stream]);
    let said = report(
        json!({"stdoutBytes": 3000, "stdoutBlobId": id(0), "stderrBytes": 3000, "stderrBlobId": id(1)}),
    );
    let mut world = World::start().await;
    let mut job = world.fetch().await;
    // The model: how much of each truth is held.
    let mut model = [0; 2];
    for step in steps {
        match step {
            Step::Send { stream, offset: at, length, arrives } => {
                let piece = &truth[stream][at..(at + length).min(3000)];
                let arrived = piece[..piece.len().min(arrives)].to_vec();
                let is_cut = arrived.len() < piece.len();
                let gap = at > model[stream];
                if !gap {
                    model[stream] = model[stream].max(at + arrived.len());
                }
                let mut pieces = vec![Ok(arrived)];
                if is_cut {
                    pieces.push(Err(std::io::Error::other("cut off")));
                }
                let body = axum::body::Body::from_stream(futures::stream::iter(pieces));
                let answer = job.patch(NAMES[stream], at as u64, body).await;
                let (status, held) = (answer.status.as_u16(), offset(&answer));
                if is_cut {
                    // Nothing of it came, so nothing is known of the gap.
                    assert!(matches!(status, 408 | 409), "{status}");
                } else {
                    let expected = if gap { 409 } else { 204 };
                    assert_eq!((status, held), (expected, Some(model[stream] as u64)));
                }
            }
            Step::GoOn { stream, length } => {
                let at = offset(&job.send("HEAD", &format!("streams/{}", NAMES[stream]), "").await)
                    .unwrap();
                assert_eq!(at, model[stream] as u64);
                let end = (model[stream] + length).min(3000);
                job.patch(NAMES[stream], at, truth[stream][model[stream]..end].to_vec()).await;
                model[stream] = end;
            }
            Step::Kill => {
                world = world.crash().await;
                job = world.as_job(job.job, &job.token);
            }
            Step::Report if model == [3000; 2] => {}
            Step::Report => {
                let wanted = job.report(&said).await.json()["wanted"].clone();
                for stream in 0..2 {
                    let expected = (model[stream] < 3000).then_some(model[stream] as u64);
                    assert_eq!(wanted[NAMES[stream]].as_u64(), expected);
                }
            }
        }
    }
    for stream in 0..2 {
        let rest = truth[stream][model[stream]..].to_vec();
        job.patch(NAMES[stream], model[stream] as u64, rest).await;
    }
    job.accepted(&said).await;
    let kept = world.job(job.job).await.report.unwrap();
    assert_eq!(
        (world.blob(kept.stdout_blob_id), world.blob(kept.stderr_blob_id)),
        (truth[0].clone(), truth[1].clone())
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn whatever_comes_and_whoever_is_killed_the_stored_stream_is_the_truth(
        steps in prop::collection::vec(step(), 0..24),
    ) {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().unwrap().block_on(play(steps));
    }
}
