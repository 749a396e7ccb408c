//! Rollbacks that were only asked for, and configs that one left.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_a_rollback_that_was_only_asked_for_is_nothing_that_a_channel_has() {
    // What somebody gave for production alone in what it goes back to is as little its own again.
    for own in [None, Some("huge")] {
        let rig = Rig::start(sick("none", "none")).await;
        rig.request(TWO_CHANNELS, false).await.unwrap();
        rig.push(&[("size", "good")]).await.unwrap();
        rig.until_converged("web-1").await;
        match own {
            Some(own) => rig.push_apart("left", own).await,
            None => _ = rig.push(&[("size", "left")]).await.unwrap(),
        }
        rig.until_converged("web-2").await;
        for channel in ["staging", "production"] {
            rig.take_back(channel).await;
        }
        // Nothing of it begins, whatever keeps it.
        rig.handle
            .ask(target("production"), Ask::Pause(Default::default()), caller("eve"))
            .await
            .unwrap();
        let request = RollbackRequest {
            version: Some("web-2".to_owned()),
            channels: Some(vec!["production".to_owned()]),
        };
        rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
        let request = PushRequest {
            params: [("size".to_owned(), "other".to_owned())].into(),
            channels: Some(vec!["staging".to_owned()]),
            ..PushRequest::default()
        };
        rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
        rig.until_at("staging", "web-6").await;
        rig.take_back("staging").await;
        assert_eq!(rig.push(&[]).await.unwrap().warnings, Vec::<String>::new(), "{own:?}");
        assert_eq!(rig.params("web-8").await, sizes(&[("size", "good")]), "{own:?}");
        rig.handle.ask(target("production"), Ask::Resume, caller("eve")).await.unwrap();
        rig.until_converged("web-8").await;
        assert_eq!(
            rig.sizes("web-8"),
            sizes(&[("staging", "good"), ("production", "good")]),
            "{own:?}"
        );

        // One that began counts, as the release that it is.
        rig.push(&[("size", "better")]).await.unwrap();
        rig.until_converged("web-9").await;
        let request = RollbackRequest {
            version: Some("web-2".to_owned()),
            channels: Some(vec!["production".to_owned()]),
        };
        rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
        rig.until_at("production", "web-2").await;
        rig.take_back("staging").await;
        rig.push(&[]).await.unwrap();
        let kept = rig.params("web-12").await;
        assert_eq!(
            kept.get("production:size").map(String::as_str),
            Some(own.unwrap_or("left")),
            "{kept:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_that_a_rollback_left_is_told_of_by_it_and_by_the_push_that_brings_it_again() {
    let rig = Rig::start(sick("none", "none")).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.request(&TWO_CHANNELS.replace("defaultValue: medium", "defaultValue: bad"), true)
        .await
        .unwrap();
    rig.until_converged("web-2").await;
    let request = RollbackRequest { version: Some("web-1".to_owned()), channels: None };
    let back = rig
        .handle
        .rollback("app".into(), "web".into(), request, caller("eve"))
        .await
        .unwrap()
        .warnings;
    let told = "web-1 has version 1 of the service's config, and version 2 is in force: the next \
                push releases version 2";
    assert!(matches!(&back[..], [one] if one.contains(told)), "{back:?}");
    rig.until_converged("web-1").await;
    let pushed = rig.push(&[]).await.unwrap().warnings;
    let told = "web-4 has version 2 of the service's config, which was in force when the release \
                before it went back to web-1 and version 1";
    assert!(matches!(&pushed[..], [one] if one.contains(told)), "{pushed:?}");
    rig.until_converged("web-4").await;
    assert_eq!(
        rig.push(&[]).await.unwrap().warnings,
        Vec::<String>::new(),
        "it is what was released last"
    );

    // One that was applied since is what somebody wants.
    let request = RollbackRequest { version: Some("web-1".to_owned()), channels: None };
    rig.handle.rollback("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    rig.apply(&TWO_CHANNELS.replace("defaultValue: medium", "defaultValue: good")).await.unwrap();
    assert_eq!(rig.push(&[]).await.unwrap().warnings, Vec::<String>::new());
    // Where it has the config in force nothing is said.
    rig.until_converged("web-7").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-8").await;
    let request = RollbackRequest { version: Some("web-7".to_owned()), channels: None };
    assert_eq!(
        rig.handle
            .rollback("app".into(), "web".into(), request, caller("eve"))
            .await
            .unwrap()
            .warnings,
        Vec::<String>::new()
    );
}
