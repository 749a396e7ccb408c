//! A job that runs and of which the cluster shows nothing any more: that is told while it is so,
//! with the reason, and so is a stop that nobody answers to.

use axum::http::Method;
use serde_json::json;

use super::ends::{ended, running_world};
use super::fake::{Fake, Fault};
use super::{World, job_id};

/// How a cluster falls silent, what is told of it, and whether it answers again by itself.
type Row = (&'static str, fn(&Fake), &'static str);

fn hang(fake: &Fake) {
    for path in ["/jobs", "/pods"] {
        // Who watches hears that something is wrong.
        fake.fail(Method::GET, path, Fault::Cut);
        (0..20).for_each(|_| fake.fail(Method::GET, path, Fault::Hang));
    }
}

fn cut(fake: &Fake) {
    for path in ["/jobs", "/pods"] {
        (0..200).for_each(|_| fake.fail(Method::GET, path, Fault::Cut));
    }
}

const ROWS: &[Row] = &[
    (
        "away",
        |fake| fake.refuse_all(Some((503, "no backend"))),
        "its cluster cannot be asked: no backend, so nobody sees what becomes of it",
    ),
    (
        "somebody else",
        |fake| fake.refuse_all(Some((404, "page not found"))),
        "its cluster cannot be asked: page not found, so nobody sees",
    ),
    (
        "no right",
        |fake| fake.refuse_all(Some((403, "no role"))),
        "the scheduler's account may not `list` ",
    ),
    (
        "hangs",
        hang,
        "its cluster cannot be asked: it has not answered for 5 s, so nobody sees what becomes of \
         it",
    ),
    ("cut", cut, "its cluster cannot be asked: "),
];

async fn blind(world: &mut World, how: fn(&Fake), expected: &str) {
    how(&world.fake);
    // What is too old is listed anew.
    world.fake.end_watches(2);
    let told = world.told().await;
    let way_out = if expected.contains("may not") {
        "has this right"
    } else {
        "ends when the cluster answers, or when somebody cancels the job"
    };
    assert!(
        told.starts_with(&format!("waits, surroundings: {expected}")) && told.contains(way_out),
        "{told}"
    );
}

#[tokio::test]
async fn that_a_cluster_does_not_show_a_running_job_any_more_is_told_with_the_reason() {
    for (name, how, expected) in ROWS {
        let mut world = running_world().await;
        blind(&mut world, *how, expected).await;
        assert_eq!(world.fake.count("DELETE", "/"), 0, "{name}: nothing of it is taken away");
    }
}

#[tokio::test]
async fn a_running_job_that_is_seen_again_says_so_and_ends_as_it_did() {
    let mut world = running_world().await;
    let (_, how, expected) = ROWS[0];
    blind(&mut world, how, expected).await;
    world.fake.refuse_all(None);
    assert_eq!(world.told().await, "starts", "it waits for nothing any more");
    world.fake.pod(json!({}), ended(4, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(4)");
}

#[tokio::test]
async fn a_watch_that_is_lost_and_found_again_is_told_nobody() {
    let mut world = running_world().await;
    world.fake.end_watches(1);
    world.fake.pod(json!({}), ended(4, "Error"));
    assert_eq!(world.told().await, "gone, exit Some(4)");
}

#[tokio::test]
async fn rule_13_that_a_cluster_does_not_answer_to_a_stop_is_told_while_it_is_so() {
    let mut world = running_world().await;
    (0..20).for_each(|_| world.fake.fail(Method::PATCH, "/jobs/", Fault::Hang));
    assert!(world.runner.stop(job_id()));
    let told = world.told().await;
    let expected = "waits, surroundings: it was not asked to end yet: its cluster has not \
                    answered for 5 s; ends when the cluster takes the stop";
    assert!(told.starts_with(expected), "{told}");
}
