//! A job's `timeout` counts from its Job's creation, with a wrapper or without, and ends it
//! (promise P3).

use std::time::Duration;

use pvn_scheduler::clock::{Clock, Manual};
use serde_json::{Value, json};

use super::ends::{ended_ago, running};
use super::fake::Fake;
use super::{World, job_id};
use crate::wait;

/// Milliseconds in which nothing that these tests wait for can be missed.
const SOON_MS: i64 = 3_000;

/// A world with a job whose command runs, with this little time.
async fn running_world() -> World {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(SOON_MS);
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world
}

/// A Pod that is asked to end now, and has its usual grace for that.
fn asked_to_end() -> Value {
    json!({"deletionTimestamp": Clock::System.now().plus_ms(30_000).to_string(), "deletionGracePeriodSeconds": 30})
}

/// A command runs past its timeout and answers the TERM that comes then with this exit code: it has
/// timed out.
async fn check(code: i32, reason: &str) {
    let mut world = running_world().await;
    world.until("its Job to be ended", Fake::is_job_told_to_end).await;
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 0, "it stays for people to look at");
    world.fake.pod(asked_to_end(), ended_ago(code, reason, 0));
    assert_eq!(world.end().await, format!("gone, exit Some({code}), timed out"));
}

#[tokio::test]
async fn p3_a_command_without_a_wrapper_is_ended_at_its_timeout_and_says_so() {
    check(143, "Error").await;
}

#[tokio::test]
async fn p3_a_command_that_says_that_all_is_well_when_its_time_is_over_has_timed_out() {
    check(0, "Completed").await;
}

/// A world whose scheduler has another clock than the cluster, ahead of it by so many seconds or
/// behind, with a job that is let go.
async fn skewed_world(ahead_s: i64, timeout_ms: i64) -> World {
    let mut world = World::new().await;
    world
        .restart_at(Clock::Manual(Manual::starting_at(Clock::System.now().plus_ms(ahead_s * 1000))))
        .await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(timeout_ms);
    world.let_go_as(spec).await;
    world
}

/// The same once its command ran past its timeout, and ends with this code so many seconds before
/// its Pod is asked to end.
async fn skewed_end(ahead_s: i64, code: i32, before_s: i64) -> String {
    let mut world = skewed_world(ahead_s, SOON_MS).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.until("its Job to be ended", Fake::is_job_told_to_end).await;
    world.fake.pod(asked_to_end(), ended_ago(code, "Error", before_s));
    world.end().await
}

/// The cluster's own clocks agree that it was asked to end before it did; ours is ahead of them
/// all.
#[tokio::test]
async fn p3_what_ended_well_because_its_time_was_over_has_timed_out_however_far_ahead_our_clock_is()
{
    for ahead_s in [20, 3600] {
        assert_eq!(
            skewed_end(ahead_s, 0, 0).await,
            "gone, exit Some(0), timed out",
            "{ahead_s} s ahead"
        );
    }
}

/// Ours is behind: what had ended by itself long before its Pod was asked to end did not time out,
/// nor did what failed in time.
#[tokio::test]
async fn p8_what_ended_by_itself_has_not_timed_out_however_far_behind_our_clock_is() {
    for behind_s in [20, 3600] {
        for code in [0, 7] {
            assert_eq!(
                skewed_end(-behind_s, code, 15).await,
                format!("gone, exit Some({code})"),
                "{behind_s} s behind"
            );
        }
        let mut world = skewed_world(-behind_s, 10 * SOON_MS).await;
        world.fake.pod(json!({}), ended_ago(7, "Error", 0));
        assert_eq!(
            world.end().await,
            "gone, exit Some(7)",
            "{behind_s} s behind, and nobody asked it"
        );
    }
}

#[tokio::test]
async fn rule_13_a_command_that_its_node_says_had_ended_before_its_time_was_over_did_not_time_out()
{
    // Its node was not heard of in between. Its clock may be some seconds behind, so that what
    // ended right before may have ended after.
    for (code, ago_s, end) in [(0, 30, ""), (7, 30, ""), (0, 5, ", timed out")] {
        let mut world = running_world().await;
        world.until("its Job to be ended", Fake::is_job_told_to_end).await;
        world.fake.pod(asked_to_end(), ended_ago(code, "Error", ago_s));
        assert_eq!(world.end().await, format!("gone, exit Some({code}){end}"));
    }
}

#[tokio::test]
async fn rule_13_what_somebody_else_had_asked_to_end_before_its_time_was_over_did_not_end_by_itself()
 {
    let mut world = running_world().await;
    let asked =
        json!({"deletionTimestamp": "2026-01-01T00:10:00Z", "deletionGracePeriodSeconds": 600});
    world.fake.pod(asked.clone(), running());
    // One that it ends in order to make no other Pod, and the one at its timeout.
    world.until("its Job to be ended twice", |fake| fake.count("PATCH", "/jobs/") >= 5).await;
    world.fake.pod(asked, ended_ago(0, "Completed", 30));
    assert_eq!(world.end().await, "gone, exit Some(0), timed out");
}

/// A job whose timeout passed while the scheduler was away, and that is taken up.
async fn late_world() -> World {
    let mut world = running_world().await;
    world.runner.detach().await;
    tokio::time::sleep(Duration::from_millis(SOON_MS.unsigned_abs())).await;
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    world
}

#[tokio::test]
async fn rule_13_what_ended_in_time_while_the_scheduler_was_away_is_heard_before_its_time_ends_it()
{
    let mut world = late_world().await;
    // Its node, or its wrapper, takes a while to get through.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!Fake::is_job_told_to_end(&world.fake), "it is listened to");
    world.fake.pod(json!({}), ended_ago(0, "Completed", 7));
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn p8_what_ended_well_because_the_cluster_ended_it_after_its_time_has_timed_out() {
    let mut world = late_world().await;
    let asked = || json!({"deletionTimestamp": Clock::System.now().plus_ms(50_000).to_string(), "deletionGracePeriodSeconds": 30});
    world.fake.pod(asked(), ended_ago(0, "Completed", -20));
    assert_eq!(world.end().await, "gone, exit Some(0), timed out");
}

/// Longer than a job is listened to, and than it takes to ask it to end.
const HEARD_OUT: Duration = Duration::from_secs(90);

#[tokio::test]
async fn p3_a_timeout_that_passed_while_the_scheduler_was_away_ends_the_command_when_it_is_back() {
    let mut world = late_world().await;
    let asked =
        wait::until(HEARD_OUT, async || Fake::is_job_told_to_end(&world.fake).then_some(())).await;
    asked.expect("it is asked to end");
    let killed = |world: &World| world.fake.count("DELETE", "/pods?");
    // The engine's own deadline comes about then.
    assert!(world.runner.stop(job_id()));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(killed(&world), 0, "it keeps its grace");
    assert!(world.runner.stop(job_id()));
    world.until("its Pod to be killed", |fake| fake.count("DELETE", "/pods?") == 1).await;
    world.fake.pod(asked_to_end(), ended_ago(143, "Error", 0));
    assert_eq!(world.end().await, "gone, exit Some(143), timed out");
}

#[tokio::test]
async fn p3_a_command_that_is_seen_to_have_started_only_when_its_job_was_deleted_for_its_timeout_has_timed_out()
 {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(SOON_MS);
    world.let_go_as(spec).await;
    // Its node is slow to say that it runs.
    world.fake.pod(
        json!({"finalizers": ["batch.kubernetes.io/job-tracking"]}),
        json!({"phase": "Pending"}),
    );
    world.until("its Job to be deleted", |fake| fake.count("DELETE", "/jobs/") == 1).await;
    let mut pod = world.fake.object("/pods/").expect("it is not gone yet");
    (pod["metadata"]["deletionTimestamp"], pod["status"]) =
        (json!("2026-01-01T00:00:00Z"), ended_ago(143, "Error", 0));
    world.fake.put(
        &format!(
            "/api/v1/namespaces/n/pods/{}",
            pod["metadata"]["name"].as_str().expect("it has a name")
        ),
        pod,
    );
    assert_eq!(world.end().await, "gone, exit Some(143), timed out");
}
