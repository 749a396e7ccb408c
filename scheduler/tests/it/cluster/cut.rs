//! The Pods' way to the scheduler breaks while jobs run, and the API server answers all the time: what the container's log has counts.

use schema::spool::Stream;
use serde_json::json;

use super::World;
use super::ends::{ended, running};
use super::fake::Fake;
use super::logs::{ended_well, marked_line};

/// A job behind a wrapper of ours that runs, and of whose stdout this much was delivered.
async fn heard_world(delivered: &str) -> World {
    let mut world = World::new().await;
    world.let_go_as(world.wrapped_spec()).await;
    let reach = world.delivery.expect(&world.wrapped_spec(), &tokio::sync::mpsc::channel(1).0).await.unwrap();
    let token = world.delivery.check(&reach.iter().find(|(key, _)| key == "PVN_TOKEN").unwrap().1).unwrap();
    let upload = world.delivery.admit(&token).unwrap();
    upload.append(Stream::Stdout, 0, delivered.as_bytes().to_vec()).await.unwrap();
    world.fake.pod(json!({}), running());
    upload.sign().await.unwrap();
    assert_eq!(world.told().await, "runs");
    world
}

#[tokio::test]
async fn p3_a_job_that_was_heard_of_and_is_silent_ends_with_what_its_wrapper_left_in_its_log() {
    let mut world = heard_world("").await;
    world.fake.log(&marked_line(&world, &ended_well(true)));
    world.until("its Pod to be ended", Fake::is_job_told_to_end).await;
    world.fake.pod(json!({}), ended(0, "Completed"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
}
