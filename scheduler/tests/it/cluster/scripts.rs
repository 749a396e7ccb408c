//! Wrappers that images bring, and scripts around them: their reports end no job, its container does.

use pvn_scheduler::delivery::{Reported, Upload};
use schema::report::Report;
use schema::wire::TOKEN_VARIABLE;
use serde_json::json;
use tokio::sync::mpsc;

use super::ends::{ended, running};
use super::{World, job_id};

/// The uploads of the job, as its wrapper reaches them.
async fn upload(world: &World) -> Upload {
    let (news, _) = mpsc::channel(1);
    let reach = world.delivery.expect(&world.spec(), &news).await.unwrap();
    let token = &reach.iter().find(|(key, _)| key == TOKEN_VARIABLE).unwrap().1;
    world.delivery.admit(&world.delivery.check(token).unwrap()).unwrap()
}

fn report(code: i32) -> Box<Report> {
    Box::new(Report { exit_code: Some(code), start_timestamp_ns: "1".to_owned(), duration_ns: "1".to_owned(), ..Report::default() })
}

async fn running_world() -> World {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world
}

#[tokio::test]
async fn p1_a_report_from_within_a_script_ends_no_job_whose_container_runs_on() {
    for (code, container, end) in [(0, 0, "gone, exit Some(0)"), (0, 9, "gone, exit Some(9)"), (3, 0, "gone, exit Some(3)")] {
        let mut world = running_world().await;
        let upload = upload(&world).await;
        assert_eq!(upload.report(report(code)).await.unwrap(), Reported::Kept);
        assert_eq!(upload.report(report(code)).await.unwrap(), Reported::Kept, "the same once more");
        assert_eq!(upload.report(report(7)).await.unwrap(), Reported::Second, "of the next command of the script");
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
    assert_eq!((report.exit_code, report.duration_ns.as_str()), (Some(0), "1"), "what the wrapper said");
}
