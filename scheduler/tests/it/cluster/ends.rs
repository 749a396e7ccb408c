//! Every way in which a cluster ends a job, or keeps it from starting for good, has words of its
//! own; what nobody knows is unknown, and only what never ran through no fault of its own is tried
//! again.

use axum::http::Method;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::runner::JobSpec;
use schema::report::Report;
use serde_json::{Value, json};

use super::World;
use super::fake::{Fake, Fault};

mod late;

/// What the cluster does to a job whose Job was let go, or whose command runs, and how that ends;
/// `*` stands for what depends on which of two watches is faster.
type Row = (From, fn(&Fake), &'static str);

#[derive(Clone, Copy, PartialEq)]
enum From {
    LetGo,
    Running,
}

pub(super) fn status(phase: &str, state: &Value) -> Value {
    let container = json!({"name": "do", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    json!({"phase": phase, "containerStatuses": [container]})
}

pub(super) fn running() -> Value {
    status("Running", &json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}))
}

/// A world with a job whose command is told to run.
pub(super) async fn running_world() -> World {
    running_as(|_| {}).await
}

/// The same with a Job whose file gives it so many more tries.
pub(super) async fn running_with_tries(more: u32) -> World {
    running_as(|spec| spec.command.job.as_mut().unwrap()["spec"]["backoffLimit"] = more.into())
        .await
}

async fn running_as(change: impl FnOnce(&mut JobSpec)) -> World {
    let mut world = World::new().await;
    let mut spec = world.spec();
    change(&mut spec);
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world
}

pub(super) fn ended(code: i32, reason: &str) -> Value {
    ended_at(code, reason, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")
}

/// The same so many seconds ago.
pub(super) fn ended_ago(code: i32, reason: &str, seconds: i64) -> Value {
    let at = Clock::System.now().plus_ms(-1000 * seconds).to_string();
    ended_at(code, reason, &at, &at)
}

fn ended_at(code: i32, reason: &str, started_at: &str, finished_at: &str) -> Value {
    let terminated = json!({"exitCode": code, "reason": reason, "startedAt": started_at, "finishedAt": finished_at});
    status("Failed", &json!({"terminated": terminated}))
}

/// The same with what a wrapper left as the container's last words.
pub(super) fn ended_saying(code: i32, report: &Report) -> Value {
    let mut status = ended(code, "Error");
    status["containerStatuses"][0]["state"]["terminated"]["message"] =
        serde_json::to_string(report).unwrap().into();
    status
}

/// The state of a Pod whose command ended so, with another one beside it that runs on.
pub(super) fn ended_beside_another(code: i32, reason: &str) -> Value {
    let mut both = ended(code, reason);
    both["phase"] = json!("Running");
    both
}

fn disrupted(fake: &Fake, reason: &str) {
    let mut status = ended(143, "Error");
    status["conditions"] =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"}]);
    fake.pod(json!({}), status);
}

/// A Pod that failed, of which an init container ended so and the command never ran.
fn init_ended(name: &str, terminated: &Value) -> Value {
    let mut all = status("Failed", &json!({"waiting": {"reason": "PodInitializing"}}));
    all["initContainerStatuses"] = json!([
        {"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": terminated}},
    ]);
    all
}

/// An init container of this name has failed.
fn init(fake: &Fake, name: &str) {
    fake.pod(json!({}), init_ended(name, &json!({"exitCode": 4, "reason": "Error"})));
}

const ROWS: &[Row] = &[
    (
        From::Running,
        |fake| fake.pod(json!({}), ended(137, "OOMKilled")),
        "gone, exit Some(137) by OOM",
    ),
    (
        From::Running,
        |fake| {
            let mut status = ended(137, "Error");
            status["reason"] = json!("Evicted");
            status["message"] = json!("The node was low on resource: memory.");
            fake.pod(json!({}), status);
        },
        "gone, unknown: Evicted: The node was low on resource: memory.",
    ),
    (
        From::Running,
        |fake| disrupted(fake, "EvictionByEvictionAPI"),
        "gone, unknown: its Pod was evicted: m",
    ),
    (
        From::Running,
        |fake| disrupted(fake, "PreemptionByScheduler"),
        "gone, unknown: its Pod made room for another: m",
    ),
    (
        From::Running,
        |fake| disrupted(fake, "DeletionByTaintManager"),
        "gone, unknown: its node is lost or was emptied: m",
    ),
    (
        From::Running,
        |fake| disrupted(fake, "DeletionByPodGC"),
        "gone, unknown: its node is gone: m",
    ),
    (
        From::Running,
        |fake| {
            fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}), running())
        },
        "not gone, unknown: its Pod was to end and did not: its node does not answer, and the \
         command may still run there",
    ),
    (
        From::Running,
        |fake| fake.pod(json!({}), ended(137, "ContainerStatusUnknown")),
        "gone, unknown: ContainerStatusUnknown",
    ),
    // Gone from the books, without its node's word that it ended: deleted by force, say.
    (
        From::Running,
        |fake| fake.delete("/pods/"),
        "not gone, unknown: its Pod was deleted, and its node*",
    ),
    (
        From::Running,
        |fake| {
            fake.delete("/jobs/");
            fake.delete("/pods/");
        },
        "not gone, unknown: its *Pod *deleted*",
    ),
    (
        From::Running,
        |fake| fake.delete("/namespaces/n"),
        "not gone, unknown: its *Pod *deleted*, with its namespace `n`",
    ),
    (
        From::LetGo,
        |fake| {
            fake.pod(json!({}), json!({"phase": "Pending"}));
            fake.delete("/pods/");
        },
        "gone, never, surroundings: its Pod was deleted before it had a node",
    ),
    // What its node has done since nobody has written down yet.
    (
        From::LetGo,
        |fake| {
            fake.pod(json!({}), json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}));
            fake.delete("/pods/");
        },
        "not gone, unknown: its Pod was deleted, and its node*",
    ),
    (
        From::LetGo,
        |fake| {
            fake.pod(
                json!({}),
                status("Pending", &json!({"waiting": {"reason": "ContainerCreating"}})),
            );
            fake.delete("/pods/");
        },
        "not gone, unknown: its Pod was deleted, and its node*",
    ),
    // Of a node that is gone its Pods are called failed by somebody else.
    (
        From::LetGo,
        |fake| {
            let mut status = status("Failed", &json!({"waiting": {"reason": "ContainerCreating"}}));
            status["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "m"}]);
            fake.pod(json!({}), status);
        },
        "not gone, unknown: its node is gone: m",
    ),
    (
        From::LetGo,
        |fake| fake.delete("/jobs/"),
        "gone, unknown: its Job was deleted, and nobody saw a Pod of it",
    ),
    (
        From::LetGo,
        |fake| {
            fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), ended(0, "Completed"))
        },
        "gone, unknown: its Pod was deleted while it ran",
    ),
    // Whatever it says of itself when it was asked to end: 2 would be work for an apply.
    (
        From::Running,
        |fake| fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), ended(2, "Error")),
        "gone, unknown: its Pod was deleted while it ran",
    ),
    (
        From::Running,
        |fake| {
            fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": i64::MIN}), ended(0, "Completed"))
        },
        "gone, unknown: its Pod was deleted while it ran",
    ),
    (
        From::LetGo,
        |fake| init(fake, "pvn-wrapper"),
        "gone, never, surroundings: its init container `pvn-wrapper` ended with 4: Error",
    ),
    // It has effects of its own, and the command's attempts are not its.
    (
        From::LetGo,
        |fake| init(fake, "migrate"),
        "gone, never: its init container `migrate` ended with 4: Error",
    ),
    (
        From::LetGo,
        |fake| {
            let all = init_ended(
                "migrate",
                &json!({"exitCode": 0, "reason": "Completed", "startedAt": "2026-01-01T00:00:00Z"}),
            );
            fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:30Z"}), all);
        },
        "gone, never: its Pod was deleted while it ran; its init container `migrate` had begun \
         and may have done something, so it is not tried again by itself",
    ),
    (
        From::LetGo,
        |fake| {
            let mut all = init_ended(
                "migrate",
                &json!({"exitCode": 137, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z"}),
            );
            all["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m"}]);
            fake.pod(json!({}), all);
        },
        "gone, never: its Pod was evicted: m; its init container `migrate` ended with 137: Error",
    ),
    (
        From::LetGo,
        |fake| {
            fake.pod(json!({}), json!({"phase": "Failed", "reason": "OutOfcpu", "message": "m"}))
        },
        "gone, never, surroundings: OutOfcpu: m",
    ),
    (From::LetGo, |fake| fake.pod(json!({}), ended(128, "StartError")), "gone, never: StartError"),
];

/// Whether a line is as expected.
fn matches(line: &str, expected: &str) -> bool {
    let mut rest = line;
    let mut parts = expected.split('*').peekable();
    let begins = parts
        .next()
        .is_some_and(|first| rest.strip_prefix(first).map(|left| rest = left).is_some());
    let goes_on =
        parts.all(|part| rest.find(part).map(|at| rest = &rest[at + part.len()..]).is_some());
    begins && goes_on && (rest.is_empty() || expected.ends_with('*'))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_14_every_way_in_which_a_cluster_ends_a_job_has_words_of_its_own() {
    let rows = ROWS.iter().map(|(from, make, expected)| async move {
        let mut world = World::new().await;
        world.let_go().await;
        if *from == From::Running {
            world.fake.pod(json!({}), running());
            assert_eq!(world.told().await, "runs");
        }
        make(&world.fake);
        let end = world.end().await;
        assert!(matches(&end, expected), "{end} instead of {expected}");
    });
    futures::future::join_all(rows).await;
}

#[tokio::test]
async fn what_a_policy_refuses_is_told_at_once_in_its_own_words() {
    let words = "admission webhook \"policy.example\" denied the request: no such team";
    let mut world = World::new().await;
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Say(403, words));
    world.runner.start(world.spec());
    assert_eq!(world.end().await, format!("gone, never: making its Job: {words}"));
}

#[tokio::test]
async fn p1_a_job_that_somebody_suspended_while_it_ran_cannot_be_resumed_unseen() {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    let mut job = world.fake.object("/jobs/").unwrap();
    job["spec"]["suspend"] = true.into();
    world.fake.put(
        &format!("/apis/batch/v1/namespaces/n/jobs/{}", job["metadata"]["name"].as_str().unwrap()),
        job,
    );
    world.fake.pod(
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}),
        ended(143, "Error"),
    );
    assert_eq!(
        world.end().await,
        "gone, unknown: somebody suspended its Job, which ends what runs"
    );
    assert_eq!(world.fake.object("/jobs/"), None);
}

#[tokio::test]
async fn p3_a_grace_that_no_clock_can_add_to_its_time_keeps_no_job_running() {
    let mut world = World::new().await;
    world.let_go().await;
    let forever = || json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": i64::MAX});
    world.fake.pod(forever(), running());
    assert_eq!(world.told().await, "runs");
    // It is looked at while it runs.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.fake.pod(forever(), ended(143, "Error"));
    assert_eq!(world.end().await, "gone, unknown: its Pod was deleted while it ran");
}
