//! What a container's log says of a job, and what nobody may read out of it.

use axum::http::Method;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pvn_scheduler::compile::Command;
use pvn_scheduler::runner::JobSpec;
use schema::id::BlobId;
use schema::report::{Report, StructuredKind, line};
use schema::spool::Stream;
use schema::status::JobKind;
use serde_json::{Value, json};

use super::away::over;
use super::ends::{ended, ended_beside_another, running, status};
use super::fake::{Fake, Fault};
use super::{World, job_id};

const DOCUMENT: &str = r#"{"objects": [{"name": "web", "objectType": "T"}]}"#;

fn report(code: i32) -> Value {
    json!({"exitCode": code, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0"})
}

/// What the job's wrapper writes when it reaches nobody.
pub(super) fn marked_line(world: &World, told: &Report) -> String {
    let secret = world.fake.object("/secrets/").unwrap();
    let token = STANDARD.decode(secret["data"]["PVN_TOKEN"].as_str().unwrap()).unwrap();
    line::write(&job_id().to_string(), &String::from_utf8(token).unwrap(), told)
}

/// That of a command that ended with 0; `is_first`: of its container's first process.
pub(super) fn ended_well(is_first: bool) -> Report {
    Report { first_process: is_first, ..serde_json::from_value(report(0)).unwrap() }
}

#[tokio::test]
async fn p1_a_marked_line_that_a_running_command_prints_ends_nothing() {
    let mut world = World::new().await;
    world.let_go_as(world.wrapped_spec()).await;
    // As `kubectl logs` of another job of ours prints it.
    world.fake.log(&format!("looking\npvn-wrapper-report: {}\n", report(0)));
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.until("its log to be read", |fake| fake.count("GET", "/log") >= 2).await;
    assert!(world.news.try_recv().is_err(), "it runs");
    world.fake.pod(json!({}), ended(3, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(3)");
}

#[tokio::test]
async fn the_report_of_a_wrapper_that_an_image_brings_ends_its_job_where_it_is_all_of_the_container()
 {
    for is_first in [true, false] {
        let mut world = World::new().await;
        world.let_go().await;
        world.fake.log(&marked_line(&world, &ended_well(is_first)));
        world.fake.pod(json!({}), running());
        assert_eq!(world.told().await, "runs");
        world.until("its log to be read", |fake| fake.count("GET", "/log") >= 1).await;
        if is_first {
            world.until("its Pod to be ended", Fake::is_job_told_to_end).await;
            // It went on trying for longer than its Pod's grace.
            world.fake.pod(json!({}), ended(137, "Error"));
            assert_eq!(world.end().await, "gone, exit Some(0)");
        } else {
            assert!(
                world.fake.object("/jobs/").unwrap()["spec"]["activeDeadlineSeconds"].is_null(),
                "a script goes on"
            );
        }
    }
}

/// Its Pod is ended for what its wrapper left in the log, and is not there any more when the daemon
/// is back.
async fn its_pod_goes_during_a_restart(world: &mut World) {
    world.until("its Pod to be ended", Fake::is_job_told_to_end).await;
    world.restart().await;
    world.fake.lose("/pods/");
    over(&world.fake, "Failed", "DeadlineExceeded", &json!({"failed": 1}));
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
}

#[tokio::test]
async fn p4_p5_what_a_wrapper_left_in_its_log_counts_after_a_restart_although_its_pod_went_meanwhile()
 {
    for is_ours in [true, false] {
        let mut world = World::new().await;
        let spec = if is_ours { world.wrapped_spec() } else { world.spec() };
        world.let_go_as(spec).await;
        world.fake.log(&marked_line(&world, &ended_well(true)));
        world.fake.pod(json!({}), running());
        assert_eq!(world.told().await, "runs");
        its_pod_goes_during_a_restart(&mut world).await;
        assert_eq!(world.end().await, "gone, exit Some(0)", "{is_ours}");
    }
}

#[tokio::test]
async fn p4_output_too_long_for_the_line_is_kept_before_the_pod_that_has_it_is_ended() {
    let mut world = World::new().await;
    world.let_go_as(world.wrapped_spec()).await;
    let printed = "a line\n".repeat(20_000);
    let told = Report { stdout_bytes: printed.len() as u64, ..ended_well(false) };
    world.fake.log(&format!("{printed}{}", marked_line(&world, &told)));
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    its_pod_goes_during_a_restart(&mut world).await;
    let report = world.report().await;
    assert_eq!((report.exit_code, world.stdout(&report) == printed), (Some(0), true));
}

#[tokio::test]
async fn p2_long_output_of_a_wrapper_that_reaches_nobody_is_the_same_whatever_its_wrapper_said() {
    let printed = "will destroy a database\n".repeat(4_000);
    for (said, end) in [
        ("pvn-wrapper: it took 10 s\n", "\n"),
        ("pvn-wrapper: it took 12 s\npvn-wrapper: more\n", "\n"),
        ("", ""),
        ("\npvn-wrapper: x\n", ""),
    ] {
        let mut world = World::new().await;
        world.let_go_as(world.wrapped_spec()).await;
        let printed = format!("{printed}the end{end}");
        let bytes = printed.len() as u64;
        let digest = |bytes: &str| Some(BlobId::of(bytes.as_bytes()));
        let (stdout_blob_id, stderr_blob_id) = (digest(&printed), digest(""));
        let told = Report {
            stdout_bytes: bytes,
            stdout_blob_id,
            stderr_blob_id,
            exit_code: Some(2),
            ..ended_well(true)
        };
        let mark = if end.is_empty() && said.is_empty() { "\n" } else { "" };
        world.fake.log(&format!("{printed}{said}{mark}{}", marked_line(&world, &told)));
        world.fake.pod(json!({}), ended(2, "Error"));
        let report = world.report().await;
        assert_eq!(
            (report.exit_code, world.stdout(&report) == printed, report.output_incomplete),
            (Some(2), true, false),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_log_is_not_spliced_into_output_that_was_uploaded_before_a_restart() {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    let token =
        world.delivery.expect(&world.spec(), &tokio::sync::mpsc::channel(1).0).await.unwrap();
    let token =
        world.delivery.check(&token.iter().find(|(key, _)| key == "PVN_TOKEN").unwrap().1).unwrap();
    world
        .delivery
        .admit(&token)
        .unwrap()
        .append(Stream::Stdout, 0, b"first\n".to_vec())
        .await
        .unwrap();
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    world.fake.log("from the log, which holds more\n");
    world.fake.pod(json!({}), ended(1, "Error"));
    let report = world.report().await;
    assert_eq!(world.stdout(&report), "first\n");
}

#[tokio::test]
async fn structured_output_that_nobody_checked_is_checked_here() {
    for (log, is_right) in
        [(format!("{DOCUMENT}\n"), true), (format!("a warning\n{DOCUMENT}\n"), false)]
    {
        let mut world = World::new().await;
        world.fake.log(&log);
        let mut spec = world.spec();
        spec.command = Command { expect: Some(StructuredKind::Fetch), ..spec.command };
        world.runner.start(spec);
        let report = world.report().await;
        let structured = report.structured.expect("it was checked");
        assert_eq!(
            (structured.value.is_some(), structured.errors.is_empty()),
            (is_right, is_right),
            "{log}: {structured:?}"
        );
    }
}

#[tokio::test]
async fn secrets_that_the_scheduler_handed_out_are_masked_in_all_that_the_cluster_tells() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.env.push(("PASSWORD".to_owned(), "hunter22".to_owned()));
    spec.secret_keys.push("PASSWORD".to_owned());
    world.fake.log("logging in with hunter22 (aHVudGVyMjI=)\n");
    world.let_go_as(spec).await;
    world.fake.pod(
        json!({}),
        status(
            "Pending",
            &json!({"waiting": {"reason": "ErrImagePull", "message": "x?p=hunter22: not found"}}),
        ),
    );
    let told = world.told().await;
    assert!(told.contains("x?p=***: not found"), "{told}");
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    // Also by the next life of the daemon, which was handed nothing.
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    world.fake.pod(json!({}), ended(1, "Error"));
    let report = world.report().await;
    assert_eq!(world.stdout(&report), "logging in with *** (***)\n");
    let known =
        std::fs::read_to_string(world.dir.path().join("cluster").join(job_id().to_string()))
            .unwrap_or_default();
    assert!(!known.contains("hunter22"), "{known}");
}

#[tokio::test]
async fn a_job_whose_sidecar_never_ends_is_ended_once_its_end_is_stored() {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), ended_beside_another(0, "Completed"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
    assert!(
        world.fake.object("/jobs/").unwrap()["spec"]["activeDeadlineSeconds"].is_null(),
        "its end is not stored yet"
    );
    world.runner.forget(job_id()).await;
    world.until("its Job to be ended", Fake::is_job_told_to_end).await;
}

/// Or a yes to one would be one to the next, whatever that found.
#[tokio::test]
async fn p2_rule_15_what_a_fetch_printed_that_nobody_can_read_is_the_same_as_no_other() {
    let mut world = World::new().await;
    world.fake.log("destroy nothing\n");
    world.fake.exit_with(2);
    world.fake.fail(Method::GET, "/log", Fault::Say(403, "no logs"));
    world.runner.start(JobSpec { kind: JobKind::Fetch, ..world.spec() });
    let report = world.report().await;
    let printed = report
        .stdout_blob_id
        .map(|id| world.blobs.read(id, 0, 1 << 10).unwrap().unwrap())
        .unwrap_or_default();
    let expected = format!("pvn: what {} printed is not known: reading its log: no logs", job_id());
    assert!(
        String::from_utf8_lossy(&printed).starts_with(&expected),
        "{}",
        String::from_utf8_lossy(&printed)
    );
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_asked_for_again_and_else_its_job_says_so() {
    for (fault, stdout, stderr) in [
        (Fault::Say(500, "kubelet away"), "printed\n", ""),
        // A page of somebody else is not what it printed.
        (Fault::Page(200), "printed\n", ""),
        (Fault::Page(404), "printed\n", ""),
        (
            Fault::Say(403, "no logs"),
            "",
            "pvn: what this job printed is not known: reading its log: no logs; give the \
             scheduler's account this right in the cluster\n",
        ),
    ] {
        let mut world = World::new().await;
        world.fake.log("printed\n");
        world.fake.fail(Method::GET, "/log", fault);
        world.runner.start(world.spec());
        let report = world.report().await;
        let text = |id: Option<_>| {
            id.map_or_else(String::new, |id| {
                String::from_utf8(world.blobs.read(id, 0, 1 << 10).unwrap().unwrap()).unwrap()
            })
        };
        assert_eq!(
            (report.exit_code, text(report.stdout_blob_id), text(report.stderr_blob_id)),
            (Some(0), stdout.to_owned(), stderr.to_owned())
        );
    }
}
