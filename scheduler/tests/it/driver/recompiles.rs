//! What a change of configs means for what is released already.

use std::sync::atomic::Ordering;

use pvn_scheduler::driver::Refusal;
use pvn_scheduler::runner::{JobSpec, RunnerEvent};
use pvn_scheduler::store::{EventFilter, PageRequest};
use schema::status::{JobStatus, Status};

use super::rollbacks::with_w;
use super::round::{tidy_world, variable};
use super::{Rig, TWO_CHANNELS, report};

/// `app` of one team on runtime `tool`, and what another team has beside it.
fn two_teams(app: &str) -> String {
    app.to_owned()
        + "---\nruntime: {name: theirs, custom: {proxyRuntime: {runtime: local}, apply: \
           {taskConfig: {program: {name: a, entrypoint: [a]}}}}}\n"
        + "---\napplication: {name: shop, releaseChannels: [{name: only, runtimes: [{runtime: \
           theirs}]}]}\n"
        + "---\nservice: {name: cart, application: shop}\n"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_release_that_does_not_compile_any_more_refuses_no_change_that_does_not_touch_it() {
    let rig = Rig::start(tidy_world()).await;
    // Theirs is offered where app is released, too, and app uses another one.
    let app = |is_required, given| {
        with_w(is_required, given)
            .replace(
                "runtimes: [{runtime: tool}]",
                "runtimes: [{runtime: tool}, {runtime: theirs}]",
            )
            .replace(
                "  application: app\n  parameters",
                "  application: app\n  runtimeConnection: tool\n  parameters",
            )
    };
    rig.request(&two_teams(&app(false, false)), true).await.unwrap();
    rig.request(&app(false, true), true).await.unwrap();
    rig.apply(&app(true, true)).await.unwrap();
    // As an older pvn went back: what is pursued lacks the value.
    let rig = rig
        .edited("UPDATE releases SET service_version = 1 WHERE version = 'web-2'", tidy_world())
        .await;
    let theirs = two_teams("").replace("entrypoint: [a]", "entrypoint: [b]");
    let result = rig.apply(&theirs).await.expect("the change touches nothing of app");
    assert_eq!(result.documents[0].change, "changed");
    assert!(result.left_out.is_empty(), "what was asked for is done");
    let told = &result.warnings;
    assert_eq!(told.len(), 1, "once, not for each channel: {told:?}");
    assert!(
        told[0].message.contains("web-2 of app/web")
            && told[0].message.contains("parameter `w` is required"),
        "{told:?}"
    );
    let filter = EventFilter { kind: Some("release.not_recompiled".into()), ..Default::default() };
    let events = rig.store.events(&filter, &PageRequest::default()).await.unwrap();
    assert_eq!((events.total, events.items[0].service.as_ref().unwrap().as_str()), (1, "web"));

    let touching = [
        app(true, true).replace("entrypoint: [look]", "entrypoint: [look, harder]"),
        app(true, true).replace(
            "  - name: staging\n",
            "  - name: staging\n    labels: [{label: tier, value: one}]\n",
        ),
    ];
    for text in touching {
        let refused = rig.apply(&text).await.unwrap_err();
        assert!(
            matches!(&refused, Refusal::Config(problems) if problems[0].message.contains("`w`")),
            "{refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_required_parameter_and_its_value_come_in_one_apply_with_push() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    let refused = rig.apply(&with_w(true, true)).await.unwrap_err();
    let Refusal::Config(problems) = &refused else { panic!("{refused:?}") };
    let (message, help) = (&problems[0].message, &problems[0].snippet);
    assert!(message.contains("web-1") && message.contains("`w`"), "{message}");
    assert!(
        help.contains("--push") && help.contains("pvnctl services push web --app app"),
        "{help}"
    );
    let result =
        rig.request(&with_w(true, true), true).await.expect("the new release has the value");
    assert_eq!((result.pushed[0].version.as_str(), result.left_out.len()), ("web-2", 0));
    rig.until_converged("web-2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_seen_with_other_commands_is_outdated_until_a_fetch_with_the_new_ones_has_answered()
 {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    assert!(!rig.instance("staging").await.outdated);
    rig.runner.silent.store(true, Ordering::SeqCst);
    rig.apply(&TWO_CHANNELS.replace("entrypoint: [look]", "entrypoint: [look, harder]"))
        .await
        .unwrap();
    let at_once = rig.instance("staging").await;
    assert_eq!(
        (at_once.status, at_once.outdated),
        (Status::Converged, true),
        "{}",
        at_once.message
    );
    let is_new = |spec: &&JobSpec| {
        variable(spec, "PVN_RELEASE_CHANNEL") == "staging"
            && spec.command.argv == ["look", "harder"]
    };
    let seen = &rig.runner.seen;
    let look = rig
        .until("a fetch with them", async || {
            seen.lock().unwrap().iter().find(is_new).map(|spec| spec.job)
        })
        .await;
    rig.runner.tell(RunnerEvent::Ended { job: look, end: report(Some(0), None), gone: true });
    rig.until("it to have answered", async || {
        (!rig.instance("staging").await.outdated).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_that_the_config_has_no_more_ends_as_it_was_begun() {
    let rig = Rig::start(tidy_world()).await;
    rig.runner.silent.store(true, Ordering::SeqCst);
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let seen = &rig.runner.seen;
    let look =
        rig.until("a fetch", async || seen.lock().unwrap().first().map(|spec| spec.job)).await;
    let (before, after) = TWO_CHANNELS.split_once("    fetch:\n").unwrap();
    let (_, after) = after.split_once("    apply:\n").unwrap();
    rig.apply(&format!("{before}    apply:\n{after}")).await.unwrap();
    rig.runner.tell(RunnerEvent::Ended { job: look, end: report(Some(2), None), gone: true });
    let over = rig
        .until("its end", async || {
            rig.store.job(look).await.unwrap().filter(|job| job.ended_at.is_some())
        })
        .await;
    assert_eq!((over.status, over.exit_code), (JobStatus::Succeeded, Some(2)), "{}", over.message);
}
