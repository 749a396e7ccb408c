//! What a rollback says about the values of a channel, and what it says nothing about.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_a_rollback_of_one_channel_is_no_word_about_another_also_after_a_push_for_the_first() {
    let rig = Rig::start(sick("none", "none")).await;
    let gate = "    preconditions:\n    - releaseChannelStable: {releaseChannel: staging}\n";
    rig.request(&TWO_CHANNELS.replace(gate, ""), false).await.unwrap();
    rig.push(&[("size", "old")]).await.unwrap();
    rig.until_converged("web-1").await;
    rig.handle
        .ask(target("production"), Ask::Pause(Default::default()), caller("eve"))
        .await
        .unwrap();
    rig.push(&[("size", "new")]).await.unwrap();
    rig.until_at("staging", "web-2").await;
    rig.take_back("staging").await;
    let only_staging =
        PushRequest { channels: Some(vec!["staging".to_owned()]), ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), only_staging, caller("root")).await.unwrap();
    rig.until_at("staging", "web-4").await;
    // What was only waited for is let through now, and is what production has.
    rig.handle.ask(target("production"), Ask::Resume, caller("eve")).await.unwrap();
    rig.until_at("production", "web-2").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-5").await;
    assert_eq!(rig.sizes("web-5"), sizes(&[("staging", "old"), ("production", "new")]));
    // And one that is given for the first alone is for all that come after.
    let other = PushRequest {
        params: [("size".to_owned(), "other".to_owned())].into(),
        channels: Some(vec!["staging".to_owned()]),
        ..PushRequest::default()
    };
    rig.handle.push("app".into(), "web".into(), other, caller("root")).await.unwrap();
    rig.until_at("staging", "web-6").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-7").await;
    assert_eq!(rig.sizes("web-7"), sizes(&[("staging", "other"), ("production", "other")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_what_somebody_refused_to_go_back_from_is_what_a_channel_has() {
    let rig = Rig::start(sick("none", "none")).await;
    let asks = "    runtimes: [{runtime: tool}]\n    preconditions:\n    - manualApproval: {}\n";
    let text = TWO_CHANNELS.replace("    runtimes: [{runtime: tool}]\n    preconditions:\n", asks);
    rig.request(&text, false).await.unwrap();
    for (size, version) in [("old", "web-1"), ("new", "web-2")] {
        rig.push(&[("size", size)]).await.unwrap();
        rig.until_status("production", Status::WaitingManualApproval).await;
        rig.handle
            .ask(target("production"), Ask::Approve(any_plan()), caller("ann"))
            .await
            .unwrap();
        rig.until_converged(version).await;
    }
    let request = RollbackRequest {
        version: Some("web-1".to_owned()),
        channels: Some(vec!["production".to_owned()]),
    };
    rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    rig.until_status("production", Status::WaitingManualApproval).await;
    rig.handle.ask(target("production"), Ask::Reject(any_plan()), caller("ann")).await.unwrap();
    rig.until_status("production", Status::Failed).await;
    rig.take_back("staging").await;
    rig.push(&[]).await.unwrap();
    assert_eq!(rig.params("web-5").await, sizes(&[("size", "old"), ("production:size", "new")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_a_rollback_that_was_refused_is_no_word_about_the_next_push() {
    let rig = Rig::start(sick("none", "none")).await;
    let asks = "    runtimes: [{runtime: tool}]\n    preconditions:\n    - manualApproval: {}\n";
    rig.request(
        &TWO_CHANNELS.replace("    runtimes: [{runtime: tool}]\n    preconditions:\n", asks),
        false,
    )
    .await
    .unwrap();
    for (size, version) in [("old", "web-1"), ("new", "web-2")] {
        rig.push(&[("size", size)]).await.unwrap();
        rig.until_status("production", Status::WaitingManualApproval).await;
        rig.handle
            .ask(target("production"), Ask::Approve(any_plan()), caller("ann"))
            .await
            .unwrap();
        rig.until_converged(version).await;
    }
    let request = RollbackRequest { version: None, channels: Some(vec!["production".to_owned()]) };
    rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    rig.until_status("production", Status::WaitingManualApproval).await;
    rig.handle.ask(target("production"), Ask::Reject(any_plan()), caller("ann")).await.unwrap();
    rig.push(&[]).await.unwrap();
    assert_eq!(
        rig.params("web-4").await,
        sizes(&[("size", "old"), ("production:size", "new"), ("staging:size", "new")])
    );

    // Nor is it about a later one, for which production only waits when staging goes back from it.
    rig.push(&[("size", "huge")]).await.unwrap();
    rig.until_at("staging", "web-5").await;
    let request = RollbackRequest {
        version: Some("web-2".to_owned()),
        channels: Some(vec!["staging".to_owned()]),
    };
    rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    rig.push(&[]).await.unwrap();
    assert_eq!(rig.params("web-7").await, sizes(&[("size", "new")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_what_was_promised_to_a_channel_comes_with_its_next_release_whatever_goes_back() {
    let rig = Rig::start(sick("none", "none")).await;
    rig.request(TWO_CHANNELS, false).await.unwrap();
    rig.push(&[("size", "good")]).await.unwrap();
    rig.until_converged("web-1").await;
    let request = PushRequest {
        params_for_channel: [(
            "production".to_owned(),
            [("size".to_owned(), "promised".to_owned())].into(),
        )]
        .into(),
        channels: Some(vec!["staging".to_owned()]),
        ..PushRequest::default()
    };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    rig.until_at("staging", "web-2").await;
    rig.take_back("staging").await;
    rig.push(&[]).await.unwrap();
    assert_eq!(
        rig.params("web-4").await,
        sizes(&[("size", "good"), ("production:size", "promised")])
    );
}
