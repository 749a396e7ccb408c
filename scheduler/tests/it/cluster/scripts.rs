//! Wrappers that images bring, and scripts around them: their reports end no job, its container
//! does.

use pvn_scheduler::delivery::{Reported, Upload};
use schema::report::Report;
use schema::spool::Stream;
use schema::wire::TOKEN_VARIABLE;
use serde_json::json;
use tokio::sync::mpsc;

use super::ends::{ended, ended_saying, running, running_world};
use super::logs::marked_line;
use super::{World, job_id};

/// The uploads of the job, as its wrapper reaches them.
async fn upload(world: &World) -> Upload {
    let (news, _) = mpsc::channel(1);
    let reach = world.delivery.expect(&world.spec(), &news).await.unwrap();
    let token = &reach.iter().find(|(key, _)| key == TOKEN_VARIABLE).unwrap().1;
    world.delivery.admit(&world.delivery.check(token).unwrap()).unwrap()
}

fn report(code: i32) -> Box<Report> {
    Box::new(Report {
        exit_code: Some(code),
        start_timestamp_ns: "1".to_owned(),
        duration_ns: "1".to_owned(),
        ..Report::default()
    })
}

#[tokio::test]
async fn p1_a_report_from_within_a_script_ends_no_job_whose_container_runs_on() {
    for (code, container, end) in
        [(0, 0, "gone, exit Some(0)"), (0, 9, "gone, exit Some(9)"), (3, 0, "gone, exit Some(3)")]
    {
        let mut world = running_world().await;
        let upload = upload(&world).await;
        assert_eq!(upload.report(report(code)).await.unwrap(), Reported::Kept);
        assert_eq!(
            upload.report(report(code)).await.unwrap(),
            Reported::Kept,
            "the same once more"
        );
        assert_eq!(
            upload.report(report(7)).await.unwrap(),
            Reported::Second,
            "of the next command of the script"
        );
        assert!(world.news.try_recv().is_err() && !upload.is_over(), "its container runs");
        world.fake.pod(json!({}), ended(container, "Error"));
        assert_eq!(world.end().await, end);
    }
}

#[tokio::test]
async fn p4_a_report_that_waits_for_its_container_counts_after_a_restart_too() {
    let mut world = running_world().await;
    assert_eq!(upload(&world).await.report(report(0)).await.unwrap(), Reported::Kept);
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    let mut told = world.told().await;
    while told == "starts" {
        told = world.told().await;
    }
    assert_eq!(told, "runs", "its report alone does not end it");
    world.fake.pod(json!({}), ended(0, "Completed"));
    let report = world.report().await;
    assert_eq!(
        (report.exit_code, report.duration_ns.as_str()),
        (Some(0), "1"),
        "what the wrapper said"
    );
}

#[tokio::test]
async fn p8_the_last_words_of_a_wrapper_within_a_script_hide_no_failure_of_its_container() {
    for (own, container, end) in
        [(0, 9, "gone, exit Some(9)"), (0, 0, "gone, exit Some(0)"), (3, 0, "gone, exit Some(3)")]
    {
        let mut world = running_world().await;
        world.fake.pod(json!({}), ended_saying(container, &report(own)));
        assert_eq!(world.end().await, end);
    }
}

/// What a script printed of which the first command ran under a wrapper.
const WHOLE_LOG: &str = "logged in\nplan: drop all tables\n";

#[tokio::test]
async fn p2_what_a_script_prints_beside_its_wrapper_is_a_part_of_its_output_when_that_decides_its_end()
 {
    for crash in [false, true] {
        let mut world = running_world().await;
        world.fake.log(WHOLE_LOG);
        let upload = upload(&world).await;
        upload.append(Stream::Stdout, 0, b"logged in\n".to_vec()).await.unwrap();
        upload.append(Stream::Stderr, 0, b"as eve\n".to_vec()).await.unwrap();
        let of_login = Report { stdout_bytes: 10, stderr_bytes: 7, ..*report(0) };
        assert_eq!(upload.report(Box::new(of_login)).await.unwrap(), Reported::Kept);
        if crash {
            world.restart().await;
            assert_eq!(world.runner.recover(&[job_id()]).await, []);
        }
        world.fake.pod(json!({}), ended(2, "Error"));
        let report = world.report().await;
        assert_eq!(
            (report.exit_code, world.stdout(&report).as_str(), report.stderr_blob_id),
            (Some(2), WHOLE_LOG, None)
        );
        assert!(report.output_incomplete, "nobody kept the streams apart");
    }
}

#[tokio::test]
async fn p2_the_same_where_its_wrapper_could_not_deliver() {
    let mut world = running_world().await;
    let of_login = Report {
        stdout_bytes: 10,
        stdout_inline: Some("bG9nZ2VkIGluCg==".to_owned()),
        ..*report(0)
    };
    world
        .fake
        .log(&format!("logged in\n{}plan: drop all tables\n", marked_line(&world, &of_login)));
    world.fake.pod(json!({}), ended(2, "Error"));
    let report = world.report().await;
    assert_eq!((report.exit_code, world.stdout(&report).as_str()), (Some(2), WHOLE_LOG));
}

#[tokio::test]
async fn rule_14_a_report_from_within_a_script_says_nothing_of_a_container_whose_end_nobody_saw() {
    let mut world = running_world().await;
    assert_eq!(upload(&world).await.report(report(0)).await.unwrap(), Reported::Kept);
    world.fake.delete("/pods/");
    let end = world.end().await;
    assert!(
        end.starts_with("not gone, unknown: its Pod was deleted, and its node did not say"),
        "{end}"
    );
    let mut world = running_world().await;
    assert_eq!(upload(&world).await.report(report(0)).await.unwrap(), Reported::Kept);
    world.fake.pod(
        json!({"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}),
        ended(0, "Completed"),
    );
    assert_eq!(
        world.end().await,
        "gone, unknown: its Pod was deleted while it ran",
        "whatever it ended with when it was asked to"
    );
}

/// A job behind a wrapper that pvn put there, which runs.
async fn wrapped_world() -> (World, Upload) {
    let mut world = World::new().await;
    world.let_go_as(world.wrapped_spec()).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    let upload = upload(&world).await;
    (world, upload)
}

/// A report of a command that ended a second into 2026.
fn at_once() -> Box<Report> {
    Box::new(Report {
        start_timestamp_ns: "1767225600000000000".to_owned(),
        duration_ns: "1000000000".to_owned(),
        ..*report(0)
    })
}

#[tokio::test]
async fn rule_14_a_command_whose_pod_was_deleted_before_it_ended_is_unknown_whatever_its_wrapper_delivers()
 {
    let deleted =
        || json!({"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30});
    for crash in [false, true] {
        let (mut world, upload) = wrapped_world().await;
        world.fake.pod(deleted(), running());
        let kept =
            async || (upload.report(at_once()).await.unwrap() == Reported::Kept).then_some(());
        // The watch may be behind the test; whoever is behind the kubelet is not.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        kept().await.expect("it waits for what the cluster says");
        if crash {
            world.restart().await;
            assert_eq!(world.runner.recover(&[job_id()]).await, []);
        }
        world.fake.pod(deleted(), ended_saying(0, &at_once()));
        assert_eq!(
            world.end().await,
            "gone, unknown: its Pod was deleted while it ran",
            "crash: {crash}"
        );
    }
}

#[tokio::test]
async fn p5_a_command_that_had_ended_before_its_pod_was_deleted_counts() {
    let (mut world, upload) = wrapped_world().await;
    let deleted =
        || json!({"deletionTimestamp": "2026-01-01T00:02:30Z", "deletionGracePeriodSeconds": 30});
    world.fake.pod(deleted(), running());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(upload.report(at_once()).await.unwrap(), Reported::Kept);
    world.fake.pod(deleted(), ended_saying(0, &at_once()));
    assert_eq!(world.end().await, "gone, exit Some(0)");
    let (mut world, upload) = wrapped_world().await;
    let sent = tokio::spawn(async move { upload.report(at_once()).await });
    assert_eq!(world.end().await, "gone, exit Some(0)", "its report alone ends it");
    world.runner.forget(job_id()).await;
    assert_eq!(sent.await.unwrap().unwrap(), Reported::Stored);
}

#[tokio::test]
async fn a_stop_that_nobody_asked_for_is_told_in_the_clusters_words() {
    let (mut world, upload) = wrapped_world().await;
    let stopped = || Box::new(Report { stopped_by: Some("SIGTERM".to_owned()), ..*at_once() });
    assert_eq!(upload.report(stopped()).await.unwrap(), Reported::Kept);
    let mut status = ended_saying(0, &stopped());
    (status["reason"], status["message"]) = (json!("DeadlineExceeded"), json!("m"));
    world.fake.pod(json!({}), status);
    assert_eq!(
        world.end().await,
        "gone, unknown: its Pod ran past its own deadline: DeadlineExceeded: m"
    );
}

/// The cluster is away when the scheduler comes back, and the wrapper delivers.
#[tokio::test]
async fn p8_a_report_that_comes_before_the_cluster_was_looked_at_waits_for_that() {
    let deleted =
        || json!({"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30});
    for (metadata, end) in [
        (deleted(), "gone, unknown: its Pod was deleted while it ran"),
        (json!({}), "gone, exit Some(0)"),
    ] {
        let (mut world, _) = wrapped_world().await;
        world.restart().await;
        world.fake.refuse_all(Some((503, "away")));
        assert_eq!(world.runner.recover(&[job_id()]).await, []);
        let upload = upload(&world).await;
        assert_eq!(upload.report(at_once()).await.unwrap(), Reported::Kept);
        let told = world.told().await;
        let expected = "waits, surroundings: its cluster does not answer, so nobody knows what \
                        became of its Pod";
        assert!(told.starts_with(expected), "{told}");
        world.fake.pod(metadata, ended_saying(0, &at_once()));
        world.fake.refuse_all(None);
        assert_eq!(world.end().await, end);
    }
}

/// The same, and when the cluster is back there is no Pod any more, or not even a Job.
#[tokio::test]
async fn p8_a_report_says_nothing_when_its_pod_went_while_nobody_watched() {
    for (lost, end) in [
        ("/pods/", "unknown: its Pod went while nobody watched"),
        ("/", "unknown: its Job was deleted while nobody watched"),
    ] {
        let (mut world, _) = wrapped_world().await;
        world.restart().await;
        world.fake.refuse_all(Some((503, "away")));
        assert_eq!(world.runner.recover(&[job_id()]).await, []);
        assert_eq!(upload(&world).await.report(at_once()).await.unwrap(), Reported::Kept);
        world.fake.job(|job| {
            let failed = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"});
            job["status"] = json!({"failed": 1, "conditions": [failed]});
        });
        world.fake.lose(lost);
        world.fake.refuse_all(None);
        let told = world.end().await;
        assert!(told.contains(end), "{told}");
    }
}

#[tokio::test]
async fn p8_a_report_that_was_told_and_not_stored_is_told_again_once_the_cluster_was_looked_at() {
    let (mut world, upload) = wrapped_world().await;
    let sent = tokio::spawn(async move { upload.report(at_once()).await });
    assert_eq!(world.end().await, "gone, exit Some(0)");
    world.restart().await;
    drop(sent.await);
    world.fake.refuse_all(Some((503, "away")));
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert!(world.told().await.starts_with("waits"), "it is not told before");
    world.fake.refuse_all(None);
    assert_eq!(world.end().await, "gone, exit Some(0)");
}
