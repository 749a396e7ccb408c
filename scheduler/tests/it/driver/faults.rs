//! Crashes between commit and perform, a locked database, a stop that overtakes its start.

use pvn_scheduler::driver::{Ask, Health, Refusal};
use pvn_scheduler::store::{JobFilter, PageRequest};
use schema::status::{JobKind, JobStatus, Status};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::round::tidy_world;
use super::{Rig, TWO_CHANNELS, caller, target};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_11_a_crash_during_an_apply_starts_no_second_one() {
    let applying = |spec: &pvn_scheduler::runner::JobSpec| match spec.kind {
        JobKind::Fetch => Some(2),
        _ => None,
    };
    let rig = Rig::start(applying).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let filter = JobFilter { kind: Some(JobKind::Apply), ..JobFilter::default() };
    rig.until("the apply being RUNNING", async || {
        let page = rig.store.jobs(&filter, &PageRequest::default()).await.unwrap();
        page.items.into_iter().find(|job| job.status == JobStatus::Running)
    })
    .await;
    let rig = rig.crash(applying).await;
    rig.until("the driver answering again", async || rig.handle.explain(target("staging")).await.ok()).await;
    let page = rig.store.jobs(&filter, &PageRequest::default()).await.unwrap();
    assert_eq!(page.total, 1, "{page:?}");
    assert_eq!(rig.runner.applies(), 0, "the apply runs on; nothing was started");
    // Its end still counts.
    let job = page.items[0].id;
    rig.handle.cancel_job(job, caller("eve")).await.unwrap();
    let instance = rig.until_status("staging", Status::Failed).await;
    assert_eq!(instance.reason.map(schema::status::Reason::as_str), Some("CANCELLED"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_goes_on_where_the_last_run_stopped() {
    let rig = Rig::start(|spec| (spec.kind == JobKind::Fetch).then_some(2)).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-1");
    let rig = rig.restart(tidy_world()).await;
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-2");
    let jobs =
        rig.store.jobs(&JobFilter { status: Some(JobStatus::Running), ..Default::default() }, &PageRequest::default()).await.unwrap();
    for job in jobs.items {
        rig.handle.cancel_job(job.id, caller("root")).await.unwrap();
    }
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_locked_starts_nothing_new_and_reading_goes_on() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let options = SqliteConnectOptions::new().filename(rig.dir.path().join("pvn.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();

    let refused = rig.push(&[]).await.unwrap_err();
    assert!(matches!(&refused, Refusal::Unavailable(why) if why.contains("locked") && why.contains("nothing was changed")), "{refused}");
    let mut health = rig.handle.health();
    assert!(matches!(&*health.borrow(), Health::Degraded { .. }));
    assert!(matches!(rig.handle.ask(target("staging"), Ask::Pause, caller("eve")).await, Err(Refusal::Unavailable(_))));
    assert_eq!(rig.handle.explain(target("staging")).await.unwrap().status, Status::Converging);
    assert_eq!(rig.instance("staging").await.desired_version, None);
    assert!(rig.runner.kinds().is_empty(), "nothing is started that was not stored");

    held.rollback().await.unwrap();
    tokio::time::timeout(super::PATIENCE, health.wait_for(|health| *health == Health::Ready)).await.unwrap().unwrap();
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-1");
    rig.until_status("production", Status::Converged).await;
}
