//! What lets a command run is asked for only with leave that is given right before (promises P1 and
//! P2), also when the cluster was away or the daemon started again in between; a Job that gets none
//! is taken away, and it is known that it never ran.

use axum::http::Method;
use pvn_scheduler::clock::{Clock, Manual};
use serde_json::json;

use super::ends::running;
use super::fake::Fault;
use super::{World, check, job_id};

/// Longer than a job may take to start.
const LONG_MS: i64 = 3_600_000;

/// The faults that follow are those of the requests that let the Job go.
fn made(world: &World) {
    // No namespace, and made.
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Pass);
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Pass);
}

/// Starts a job whose Job is made; that it is let go the cluster does not hear.
async fn make(world: &World) {
    made(world);
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Hang);
    world.runner.start(world.spec());
    world
        .until("its Job to be made, and to be let go without an answer", |fake| {
            fake.count("PATCH", "/jobs/") >= 3
        })
        .await;
}

/// That its Job was made once, never let go, and is gone.
async fn check_never_let_go(world: &World) {
    world.until("its Job to be gone", |fake| fake.object("/jobs/").is_none()).await;
    assert_eq!(world.fake.object("/pods/"), None, "nothing ran");
}

#[tokio::test]
async fn p2_a_job_that_gets_no_leave_is_taken_away_and_never_started() {
    let mut world = World::new().await;
    world.daemon.refuses_after(0, "it was paused");
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, taken back: it was paused");
    check_never_let_go(&world).await;
    assert_eq!(world.fake.count("PATCH", "/jobs/"), 2, "no namespace, made");
}

#[tokio::test]
async fn p2_leave_is_asked_for_again_each_time_a_job_is_to_be_let_go() {
    for fault in [Fault::Refuse(503), Fault::Refuse(409), Fault::Refuse(401)] {
        let mut world = World::new().await;
        made(&world);
        world.fake.fail(Method::PATCH, "/jobs/", fault);
        world.daemon.refuses_after(1, "the apply window has shut");
        world.runner.start(world.spec());
        assert_eq!(world.end().await, "gone, taken back: the apply window has shut", "{fault:?}");
        check_never_let_go(&world).await;
        assert_eq!(
            world.fake.count("PATCH", "/jobs/"),
            3,
            "{fault:?}: no namespace, made, and one try to let it go"
        );
    }
}

/// As a gateway that is slow.
#[tokio::test]
async fn p2_a_job_is_withdrawn_whose_gate_shuts_while_the_request_that_lets_it_go_is_under_way() {
    let mut world = World::new().await;
    made(&world);
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Hold);
    world.daemon.refuses_after(1, "it was paused");
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, taken back: it was paused");
    world.fake.release();
    check_never_let_go(&world).await;
}

/// By a proxy that held the first of two requests that make it.
#[tokio::test]
async fn p1_a_job_that_runs_is_not_suspended_by_a_late_request_of_ours_that_made_it() {
    let mut world = World::new().await;
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Pass);
    world.fake.fail(Method::PATCH, "/jobs/", Fault::AgainLater);
    world.let_go_as(world.spec()).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    let before = world.fake.object("/jobs/");
    world.fake.release();
    world.until("the late request", |fake| fake.count("LATE", "/jobs/") == 1).await;
    assert_eq!(world.fake.object("/jobs/"), before);
}

#[tokio::test]
async fn a_late_request_that_makes_the_job_of_one_that_is_over_leaves_nothing_behind() {
    let mut world = World::new().await;
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Pass);
    world.fake.fail(Method::PATCH, "/jobs/", Fault::AgainLater);
    world.daemon.refuses_after(0, "it was paused");
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, taken back: it was paused");
    check_never_let_go(&world).await;
    for is_restarted in [false, true] {
        if is_restarted {
            world.restart().await;
            assert_eq!(world.runner.recover(&[]).await, []);
        } else {
            world.runner.forget(job_id()).await;
        }
        world.fake.release();
        world.until("the late request", |fake| fake.count("LATE", "/jobs/") == 1).await;
        let before = world.fake.count("DELETE", "/jobs/");
        let made = |fake: &super::fake::Fake| fake.count("DELETE", "/jobs/") > before;
        world.until("it to be looked for again", made).await;
        assert_eq!(world.fake.object("/jobs/"), None);
    }
}

#[tokio::test]
async fn p2_a_job_that_was_made_in_another_life_of_the_daemon_gets_leave_again_or_is_taken_away() {
    for may in [true, false] {
        let mut world = World::new().await;
        make(&world).await;
        if !may {
            world.daemon.refuses_after(0, "observer mode was turned on");
        }
        world.restart().await;
        assert_eq!(world.runner.recover(&[job_id()]).await, []);
        if may {
            assert_eq!(world.end().await, "gone, exit Some(0)");
        } else {
            assert_eq!(world.end().await, "gone, taken back: observer mode was turned on");
            check_never_let_go(&world).await;
        }
    }
}

#[tokio::test]
async fn p2_a_job_that_the_cluster_did_not_show_after_a_restart_is_let_go_with_leave_once_it_does()
{
    let mut world = World::new().await;
    make(&world).await;
    world.restart().await;
    world.fake.fail(Method::GET, "/jobs/", Fault::Refuse(403));
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn p2_a_request_that_may_have_let_a_job_go_is_not_told_as_never() {
    let mut world = World::new().await;
    made(&world);
    // It is done, and the answer says that it cannot be known.
    world.fake.fail(Method::PATCH, "/jobs/", Fault::DoneButTimedOut);
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Refuse(403));
    world.fake.exit_with(3);
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, exit Some(3)");
}

#[tokio::test]
async fn rule_13_a_job_that_was_made_and_whose_time_to_start_is_over_is_not_let_go_after_a_restart()
{
    let mut world = World::new().await;
    make(&world).await;
    world
        .restart_at(Clock::Manual(Manual::starting_at(Clock::System.now().plus_ms(LONG_MS))))
        .await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert_eq!(
        world.end().await,
        "gone, never, surroundings: its time to start was over before it was let go"
    );
    check_never_let_go(&world).await;
}

#[tokio::test]
async fn p1_a_daemon_that_lost_its_database_makes_no_job_and_lets_none_go() {
    let mut world = World::new().await;
    world.daemon.is_not_ours("the database is another's");
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, never, surroundings: the database is another's");
    assert_eq!(world.fake.count("PATCH", "/jobs/"), 0, "no Job was asked for");

    let mut world = World::new().await;
    // Lost while the Job is being made.
    world.fake.fail(Method::POST, "/secrets", Fault::Hold);
    world.runner.start(world.spec());
    world.until("its Secret to be asked for", |fake| fake.count("POST", "/secrets") == 1).await;
    world.daemon.is_not_ours("the database is another's");
    world.fake.release();
    assert_eq!(world.end().await, "gone, never, surroundings: the database is another's");
    check_never_let_go(&world).await;
}

#[tokio::test]
async fn a_cluster_that_refuses_connections_gives_the_place_back_soon_and_nothing_is_left_to_take_away()
 {
    let mut world = World::new().await;
    // Nobody listens where somebody did a moment ago.
    let port =
        tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let kubeconfig = world.fake.kubeconfig();
    let (before, rest) = kubeconfig.split_once("127.0.0.1:").unwrap();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    std::fs::write(world.dir.path().join("kubeconfig"), format!("{before}127.0.0.1:{port}{after}"))
        .unwrap();
    world.runner.start(world.spec());
    let end = world.end().await;
    assert!(
        end.starts_with(
            "gone, never, surroundings: looking for other applies of its instance: the cluster \
             does not answer: "
        ),
        "{end}"
    );
    world.runner.forget(job_id()).await;
    assert!(!world.runner.recorded().contains(&job_id()), "there is nothing to take away later");
}

#[tokio::test]
async fn p1_a_create_of_which_nobody_knows_whether_it_was_done_holds_its_place() {
    // As before: asked again until it is answered.
    check(
        &[
            (Method::PATCH, "/jobs/", Fault::DoneButTimedOut),
            (Method::PATCH, "/jobs/", Fault::Refuse(500)),
        ],
        "gone, exit Some(3)",
    )
    .await;
}

#[tokio::test]
async fn p2_a_plan_that_is_lost_is_not_asked_for_from_a_pod_but_told_before_a_job_is_made() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.inputs.push(("fetch:plan".to_owned(), schema::id::BlobId::of(b"the plan")));
    world.runner.start(spec);
    let told = world.end().await;
    assert!(
        told.starts_with("gone, never, input lost: its input `fetch:plan` cannot be used: "),
        "{told}"
    );
    assert_eq!(world.fake.count("PATCH", "/jobs/"), 0, "no Job was made");
}
