//! The Pods' way to the scheduler breaks while jobs run, and the API server answers all the time:
//! what the container's log has counts, and is taken whole.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::BlobId;
use schema::report::Report;
use schema::spool::Stream;
use serde_json::json;

use super::ends::{ended, running};
use super::fake::Fake;
use super::logs::{ended_well, marked_line};
use super::{World, job_id};

/// A line of a stream that is too long for a report.
const LINE: &str = "will destroy a database\n";

/// What a command printed to stdout: 96 KB.
fn printed() -> String {
    LINE.repeat(4_000)
}

/// A job behind a wrapper of ours that runs, and of whose stdout this much was delivered.
async fn heard_world(delivered: &str) -> World {
    let mut world = World::new().await;
    world.let_go_as(world.wrapped_spec()).await;
    let reach = world
        .delivery
        .expect(&world.wrapped_spec(), &tokio::sync::mpsc::channel(1).0)
        .await
        .unwrap();
    let token =
        world.delivery.check(&reach.iter().find(|(key, _)| key == "PVN_TOKEN").unwrap().1).unwrap();
    let upload = world.delivery.admit(&token).unwrap();
    upload.append(Stream::Stdout, 0, delivered.as_bytes().to_vec()).await.unwrap();
    world.fake.pod(json!({}), running());
    upload.sign().await.unwrap();
    assert_eq!(world.told().await, "runs");
    world
}

/// The report of a command that ended with this code and printed this, as its wrapper writes it
/// into its log.
fn told(code: i32, stdout: &str, stderr: &str) -> Report {
    let inline = |text: &str| {
        Some(STANDARD.encode(text)).filter(|_| !text.is_empty() && text.len() <= 64 << 10)
    };
    let digest = |text: &str| Some(BlobId::of(text.as_bytes()));
    Report {
        exit_code: Some(code),
        stdout_bytes: stdout.len() as u64,
        stderr_bytes: stderr.len() as u64,
        stdout_blob_id: digest(stdout),
        stderr_blob_id: digest(stderr),
        stdout_inline: inline(stdout),
        stderr_inline: inline(stderr),
        ..ended_well(true)
    }
}

/// What is kept of a job whose way broke after this was delivered: its container has ended, and its
/// log says this before the report.
async fn check(delivered: &str, report: &Report, log: &str, expected: [&str; 2], is_whole: bool) {
    let mut world = heard_world(delivered).await;
    world.fake.log(&format!("{log}{}", marked_line(&world, report)));
    world.fake.pod(json!({}), ended(2, "Error"));
    let kept = world.report().await;
    let text = |id: Option<_>| {
        id.map_or_else(String::new, |id| {
            String::from_utf8(world.blobs.read(id, 0, 1 << 20).unwrap().unwrap()).unwrap()
        })
    };
    let streams = [text(kept.stdout_blob_id), text(kept.stderr_blob_id)];
    let is_as_expected = [0, 1].map(|at| streams[at] == expected[at]);
    assert_eq!(
        is_as_expected,
        [true; 2],
        "of {:?} after {log:.100}",
        streams.map(|text| text.len())
    );
    assert_eq!((kept.exit_code, kept.output_incomplete), (Some(2), !is_whole));
}

#[tokio::test]
async fn p3_a_job_that_was_heard_of_and_is_silent_ends_with_what_its_wrapper_left_in_its_log() {
    let mut world = heard_world("").await;
    world.fake.log(&marked_line(&world, &ended_well(true)));
    world.until("its Pod to be ended", Fake::is_job_told_to_end).await;
    world.fake.pod(json!({}), ended(0, "Completed"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn p2_p4_output_that_was_not_delivered_to_its_end_is_taken_whole_from_the_log() {
    let printed = printed();
    for delivered in ["", LINE, &printed[..50_000], &printed] {
        check(
            delivered,
            &told(2, &printed, ""),
            &format!("{printed}pvn-wrapper: it took 10 s\n"),
            [&printed, ""],
            true,
        )
        .await;
    }
}

#[tokio::test]
async fn p2_p4_long_output_beside_a_few_words_on_the_other_stream_is_taken_from_the_log_too() {
    let (printed, words) = (printed(), "a warning\n");
    for delivered in ["", LINE] {
        let mixed = format!("{LINE}{words}{}pvn-wrapper: it took 10 s\n", &printed[LINE.len()..]);
        check(delivered, &told(2, &printed, words), &mixed, [&printed, words], true).await;
    }
    check(
        "ok\n",
        &told(2, "ok\n", &printed),
        &format!("{LINE}ok\n{}", &printed[LINE.len()..]),
        ["ok\n", &printed],
        true,
    )
    .await;
}

#[tokio::test]
async fn p2_output_that_is_whole_nowhere_is_what_there_is_most_of_and_says_so() {
    let printed = printed();
    let (short, long) = (&printed[..LINE.len() * 10], &printed[..LINE.len() * 3_000]);
    // Its node has thrown away the older part of the log.
    check(short, &told(2, &printed, ""), long, [long, ""], false).await;
    check(long, &told(2, &printed, ""), short, [long, ""], false).await;
}

#[tokio::test]
async fn p4_output_that_was_delivered_in_part_is_kept_whole_before_the_pod_that_has_it_is_ended() {
    let printed = printed();
    let mut world = heard_world(LINE).await;
    world.fake.log(&format!("{printed}{}", marked_line(&world, &told(0, &printed, ""))));
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    world.until("its Pod to be ended", Fake::is_job_told_to_end).await;
    // What is read afterwards may be less.
    world.fake.log("");
    world.fake.pod(json!({}), ended(0, "Completed"));
    let kept = world.report().await;
    assert_eq!(
        (kept.exit_code, world.stdout(&kept) == printed, kept.output_incomplete),
        (Some(0), true, false)
    );
}
