//! A release channel that a config takes away: what people are told before it happens, and how it
//! comes back.

use pvn_scheduler::driver::{Ask, Refusal};
use pvn_scheduler::runner::JobSpec;
use schema::api::{Cause, ConfigFile, ConfigsRequest, ConfigsResult, PushRequest, RollbackRequest};
use schema::cause::CauseCode;
use schema::status::Status;

use super::round::{tidy_world, variable};
use super::{Rig, TWO_CHANNELS, caller, target};

fn warnings(result: &ConfigsResult) -> Vec<&str> {
    result.warnings.iter().map(|warning| warning.message.as_str()).collect()
}

/// The config with a slip in the name of `production`.
fn mistyped() -> String {
    TWO_CHANNELS.replace("name: production", "name: prodution")
}

async fn dry_run(rig: &Rig, text: &str) -> ConfigsResult {
    let file =
        ConfigFile { path: "test.pvn.yaml".into(), text: text.into(), ..ConfigFile::default() };
    let request = ConfigsRequest { files: vec![file], dry_run: true, ..ConfigsRequest::default() };
    rig.handle.apply_configs(request, caller("root")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_goes_is_told_of_for_each_service_by_a_dry_run_and_by_the_apply() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    assert!(
        warnings(&dry_run(&rig, &mistyped()).await).is_empty(),
        "of what was never released nothing is lost"
    );
    rig.push(&[]).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    assert!(warnings(&dry_run(&rig, TWO_CHANNELS).await).is_empty());

    let told = "release channel `production` goes: app/web in it (CONVERGED at web-1) is not \
                wanted any more; what pvn keeps for it (its PVN_INSTANCE_DIR) is removed";
    let looked = dry_run(&rig, &mistyped()).await;
    assert_eq!(warnings(&looked), [told]);
    let help = looked.warnings[0].help.as_deref().unwrap_or_default();
    assert!(
        help.contains(
            "`pvnctl services rollback web --app app --to web-1 --channels production` brings it \
             back"
        ),
        "{help}"
    );
    assert!(
        help.contains(
            "`pvnctl services push web --app app --channels production` brings the newest values"
        ),
        "{help}"
    );
    assert!(
        looked.warnings[0].snippet.contains(told) && looked.warnings[0].snippet.contains(help),
        "{}",
        looked.warnings[0].snippet
    );
    assert_eq!(
        rig.instance("production").await.status,
        Status::Converged,
        "a dry run changes nothing"
    );

    assert_eq!(warnings(&rig.apply(&mistyped()).await.unwrap()), [told]);
    assert!(warnings(&rig.apply(&mistyped()).await.unwrap()).is_empty(), "it is gone already");
    // What is there and not wanted any more can be lost no second time.
    rig.apply(TWO_CHANNELS).await.unwrap();
    assert!(warnings(&dry_run(&rig, &mistyped()).await).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_services_in_a_channel_that_goes_the_first_are_named_and_the_others_counted() {
    let rig = Rig::start(|_| Some(0)).await;
    let (estate, _) = TWO_CHANNELS.split_once("---\nservice:").unwrap();
    let many = (10..35).fold(estate.to_owned(), |yaml, number| {
        yaml + &format!("---\nservice: {{name: s{number}x, application: app}}\n")
    });
    rig.request(&many, true).await.unwrap();
    let told = dry_run(&rig, &many.replace("name: production", "name: prodution")).await;
    let told = warnings(&told);
    assert_eq!(told.len(), 21, "{told:#?}");
    assert!(told[0].contains("app/s10x in it ("), "{told:#?}");
    assert!(told[20].contains("`production`") && told[20].contains("5 more services"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_channel_that_is_configured_again_names_what_it_had_and_takes_no_other_orders() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    // Never meant for production.
    let request = PushRequest {
        params: [("size".to_owned(), "experiment".to_owned())].into(),
        channels: Some(vec!["staging".to_owned()]),
        ..PushRequest::default()
    };
    rig.handle.push("app".into(), "web".into(), request, caller("eve")).await.unwrap();
    rig.apply(&mistyped()).await.unwrap();
    rig.apply(TWO_CHANNELS).await.unwrap();
    let back = rig.instance("production").await;
    assert_eq!(back.status, Status::Deleted);
    let way = "with what it had, web-1, or the newest values: `pvnctl services explain` names the \
               commands";
    assert!(back.message.ends_with(way), "{}", back.message);
    assert!(
        !back.message.contains("push"),
        "completed with the service alone it would release to every channel: {}",
        back.message
    );
    let push = "`pvnctl services push web --app app --channels production`";
    let had =
        "`pvnctl services rollback web --app app --to web-1 --channels production` brings it back";
    let explained = rig.handle.explain(target("production")).await.unwrap();
    for way in [push, had] {
        let tells_it =
            |cause: &Cause| cause.code == CauseCode::Deleted && cause.message.contains(way);
        assert!(explained.causes.iter().any(tells_it), "{explained:#?}");
    }
    for ask in [Ask::Retry, Ask::Pause(Default::default()), Ask::Resume] {
        let refused = rig.handle.ask(target("production"), ask, caller("eve")).await.unwrap_err();
        assert!(
            matches!(&refused, Refusal::Conflict(why) if why.contains("DELETED") && why.contains(had) && why.contains(push)),
            "{refused}"
        );
    }
    // The obvious try leads to the same command.
    let only = |version: Option<&str>| RollbackRequest {
        version: version.map(str::to_owned),
        channels: Some(vec!["production".into()]),
    };
    let refused = rig
        .handle
        .rollback("app".into(), "web".into(), only(None), caller("eve"))
        .await
        .unwrap_err()
        .to_string();
    let way = "`production` is DELETED and had web-1; name a version with `pvnctl services \
               rollback web --app app --to VERSION --channels production`";
    assert!(refused.contains(way), "{refused}");
    rig.handle
        .rollback("app".into(), "web".into(), only(Some("web-1")), caller("eve"))
        .await
        .unwrap();
    rig.until_status("production", Status::Converged).await;
    let seen = rig.runner.seen.lock().unwrap().clone();
    let is_production = |spec: &&JobSpec| variable(spec, "PVN_RELEASE_CHANNEL") == "production";
    let last = seen.iter().rfind(is_production).unwrap();
    assert_eq!(variable(last, "PVN_SERVICE_VERSION"), "web-1");
    rig.push(&[]).await.unwrap();
    rig.until("production with the newest values", async || {
        (rig.instance("production").await.converged_version.as_deref() == Some("web-4"))
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_comes_back_at_what_it_had_and_never_at_what_it_was_only_asked_to_go_back_to() {
    let rig =
        Rig::start(|spec| (variable(spec, "PVN_RELEASE_CHANNEL") == "staging").then_some(0)).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    let told = async || {
        dry_run(&rig, &TWO_CHANNELS.replace("- name: production", "- name: prodution"))
            .await
            .warnings
    };
    let help = told().await.remove(0).help.unwrap_or_default();
    assert!(help.contains("--to web-1 --channels production` brings it back"), "{help}");

    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until_converged("web-2").await;
    let taken_back = async |version: &str| {
        let back = RollbackRequest {
            version: Some(version.into()),
            channels: Some(vec!["production".into()]),
        };
        rig.handle.rollback("app".into(), "web".into(), back, caller("eve")).await.unwrap();
    };
    let told = async |version: &str| {
        let help = dry_run(&rig, &mistyped()).await.warnings.remove(0).help.unwrap_or_default();
        let way =
            format!("--to {version} --channels production` brings it back as it was at {version}");
        assert!(help.contains(&way), "{version}: {help}");
    };
    // Nothing of it begins.
    rig.handle
        .ask(target("production"), Ask::Pause(Default::default()), caller("eve"))
        .await
        .unwrap();
    taken_back("web-1").await;
    told("web-2").await;
    rig.handle.ask(target("production"), Ask::Resume, caller("eve")).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    told("web-1").await;
    rig.handle
        .ask(target("production"), Ask::Pause(Default::default()), caller("eve"))
        .await
        .unwrap();
    taken_back("web-2").await;
    told("web-1").await;
    rig.apply(&mistyped()).await.unwrap();
    rig.apply(TWO_CHANNELS).await.unwrap();
    let explained = rig.handle.explain(target("production")).await.unwrap();
    let deleted = explained.causes.iter().find(|cause| cause.code == CauseCode::Deleted).unwrap();
    assert!(deleted.message.contains("brings it back as it was at web-1"), "{}", deleted.message);
    let rollback = RollbackRequest { version: None, channels: Some(vec!["production".into()]) };
    let back =
        rig.handle.rollback("app".into(), "web".into(), rollback, caller("eve")).await.unwrap();
    assert_eq!(back.version, "web-1", "the same answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_gets_another_name_in_its_file_is_told_to_go_on_under_the_old_one() {
    let rig = Rig::start(tidy_world()).await;
    let renamed = TWO_CHANNELS.replace("name: web", "name: website");
    rig.apply(TWO_CHANNELS).await.unwrap();
    assert!(
        warnings(&dry_run(&rig, &renamed).await).is_empty(),
        "what was never released does nothing"
    );
    rig.push(&[]).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let told = "test.pvn.yaml has no service `web` of application `app` any more, and it goes on \
                as it was released: files take nothing away without `--prune`";
    let looked = dry_run(&rig, &renamed).await;
    assert_eq!(warnings(&looked), [told]);
    let help = looked.warnings[0].help.as_deref().unwrap_or_default();
    assert!(
        help.contains("`website`") && help.contains("`pvnctl services delete app/web` ends it"),
        "{help}"
    );
    assert_eq!(warnings(&rig.apply(&renamed).await.unwrap()), [told]);
    // A file of its own that is not given is nobody's slip.
    let file = ConfigFile {
        path: "other.pvn.yaml".into(),
        text: "service: {name: api, application: app}\n".into(),
        ..ConfigFile::default()
    };
    let request = ConfigsRequest { files: vec![file], dry_run: true, ..ConfigsRequest::default() };
    assert!(warnings(&rig.handle.apply_configs(request, caller("root")).await.unwrap()).is_empty());
}
