//! Pods that went while the scheduler was away: what is merely not in the books any more is not
//! known to be gone (promise P1).

use schema::status::JobKind;
use serde_json::{Value, json};

use super::ends::{ended, running};
use super::fake::Fake;
use super::{World, job_id};

/// What becomes of a job of this kind whose command ran when the scheduler went, when this has
/// happened by the time that it is back.
async fn after(kind: JobKind, happened: impl FnOnce(&Fake)) -> World {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.kind = kind;
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.runner.detach().await;
    happened(&world.fake);
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    world
}

/// How an apply and a fetch end of which nothing is left then: who only looks may look twice.
async fn check(happened: fn(&Fake), why: &str) {
    for (kind, gone) in
        [(JobKind::Apply, "not gone"), (JobKind::Fetch, "gone"), (JobKind::GetInfo, "gone")]
    {
        let end = after(kind, happened).await.end().await;
        assert_eq!(end, format!("{gone}, unknown: {why}"), "{kind}");
    }
}

/// Its Job counts its only Pod so.
pub(super) fn over(fake: &Fake, condition: &str, reason: &str, counts: &Value) {
    fake.job(|job| {
        job["status"] = json!({"conditions": [{"type": condition, "status": "True", "reason": reason, "message": "m"}]});
        job["status"].as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
    });
}

#[tokio::test]
async fn p1_an_apply_whose_job_and_pod_were_deleted_while_nobody_watched_may_still_run() {
    check(|fake| fake.lose("/"), "its Job was deleted while nobody watched").await;
}

#[tokio::test]
async fn p1_an_apply_whose_pod_was_deleted_while_nobody_watched_may_still_run_whatever_its_job_counts()
 {
    check(
        |fake| {
            fake.lose("/pods/");
            over(fake, "Failed", "DeadlineExceeded", &json!({"failed": 1}));
        },
        "its Pod went while nobody watched",
    )
    .await;
}

#[tokio::test]
async fn p1_an_apply_whose_job_was_suspended_and_whose_pod_went_while_nobody_watched_may_still_run()
{
    check(
        |fake| {
            fake.lose("/pods/");
            fake.job(|job| job["spec"]["suspend"] = true.into());
        },
        "somebody suspended its Job while nobody watched, which ends what ran",
    )
    .await;
}

#[tokio::test]
async fn p1_nor_is_an_apply_gone_whose_job_is_deleted_once_the_scheduler_is_back() {
    let mut before = (0, 0);
    let asked = |fake: &Fake| (fake.count("GET", "watch"), fake.count("GET", "/jobs/"));
    let mut world = after(JobKind::Apply, |fake| {
        fake.lose("/pods/");
        before = asked(fake);
    })
    .await;
    world
        .until("its Job to be found and watched", |fake| {
            asked(fake).0 >= before.0 + 2 && asked(fake).1 > before.1
        })
        .await;
    world.fake.delete("/jobs/");
    assert_eq!(
        world.end().await,
        "not gone, unknown: its Job was deleted, and nobody saw a Pod of it"
    );
}

#[tokio::test]
async fn an_apply_whose_job_is_complete_and_counts_nothing_else_has_ended() {
    let complete = |fake: &Fake| {
        fake.lose("/pods/");
        over(fake, "Complete", "CompletionsReached", &json!({"succeeded": 1}));
    };
    let end = after(JobKind::Apply, complete).await.end().await;
    assert_eq!(end, "gone, unknown: its Pod went while nobody watched");
}

/// A Pod that is about to end, for a while.
fn asked_to_end() -> Value {
    json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30})
}

#[tokio::test]
async fn p1_p3_a_pod_that_is_about_to_end_when_the_scheduler_is_back_is_followed_to_its_end() {
    let suspended: fn(&Fake) = |fake| fake.job(|job| job["spec"]["suspend"] = true.into());
    let deleted: fn(&Fake) = |fake| fake.lose("/jobs/");
    for (happened, why) in [
        (suspended, "somebody suspended its Job, which ends what runs"),
        (deleted, "its Job was deleted while it ran"),
    ] {
        let mut world = after(JobKind::Apply, |fake| {
            fake.pod(asked_to_end(), running());
            happened(fake);
        })
        .await;
        world.until("its Job to be deleted", |fake| fake.object("/jobs/").is_none()).await;
        // Longer than a watch needs to show what is there.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        while let Ok(told) = world.news.try_recv() {
            assert!(!matches!(told, super::RunnerEvent::Ended { .. }), "it still runs: {told:?}");
        }
        world.fake.pod(asked_to_end(), ended(143, "Error"));
        assert_eq!(world.end().await, format!("gone, unknown: {why}"));
    }
}

#[tokio::test]
async fn p1_of_several_tries_one_that_went_without_its_nodes_word_may_run_beside_the_last() {
    for (is_seen, gone) in [(false, "not gone"), (true, "gone")] {
        let mut world = super::tries::twice().await;
        if is_seen {
            world.fake.try_pod(1, ended(143, "Error"));
        }
        world.fake.delete_pod(1);
        world.fake.try_pod(2, ended(0, "Completed"));
        over(&world.fake, "Complete", "CompletionsReached", &json!({"succeeded": 1, "failed": 1}));
        assert_eq!(world.end().await, format!("{gone}, exit Some(0)"));
    }
}
