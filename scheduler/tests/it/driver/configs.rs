//! Applying configs: all or nothing, versions only for what changed, recompiles.

use pvn_scheduler::driver::Refusal;
use pvn_scheduler::store::{DocumentKind, EventFilter, PageRequest, StoredDocumentKey};
use schema::api::{ConfigFile, ConfigsRequest};
use schema::status::{JobKind, Status};

use super::round::tidy_world;
use super::{Rig, TWO_CHANNELS, caller};

mod many;

fn changes(result: &schema::api::ConfigsResult) -> Vec<(&str, &str, u64)> {
    result
        .documents
        .iter()
        .map(|document| (document.name.as_str(), document.change.as_str(), document.version))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_config_makes_no_new_version() {
    let rig = Rig::start(tidy_world()).await;
    let first = rig.apply(TWO_CHANNELS).await.unwrap();
    assert_eq!(
        changes(&first),
        [("tool", "created", 1), ("app", "created", 1), ("web", "created", 1)]
    );
    let again = rig.apply(&format!("# a comment\n{TWO_CHANNELS}")).await.unwrap();
    assert_eq!(
        changes(&again),
        [("tool", "unchanged", 1), ("app", "unchanged", 1), ("web", "unchanged", 1)]
    );
    let changed = rig
        .apply(&TWO_CHANNELS.replace("defaultValue: medium", "defaultValue: large"))
        .await
        .unwrap();
    assert_eq!(changes(&changed)[2], ("web", "changed", 2));
    assert!(
        changed.documents[2]
            .diff
            .contains("-    string: {defaultValue: medium}\n+    string: {defaultValue: large}"),
        "{}",
        changed.documents[2].diff
    );
    let filter = EventFilter { kind: Some("config.applied".into()), ..Default::default() };
    assert_eq!(rig.store.events(&filter, &PageRequest::default()).await.unwrap().total, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_reference_to_nothing_stores_nothing_of_all_files() {
    let rig = Rig::start(tidy_world()).await;
    let refused =
        rig.apply(&TWO_CHANNELS.replace(
            "[{runtime: tool}]\n    preconditions",
            "[{runtime: tol}]\n    preconditions",
        ))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, Refusal::Config(problems) if problems.iter().any(|problem| problem.message.contains("tol"))),
        "{refused:?}"
    );
    assert!(rig.store.find_application("app").await.unwrap().is_none());
    assert!(rig.store.find_runtime("tool").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_of_configs_says_what_would_change_and_changes_nothing() {
    let rig = Rig::start(tidy_world()).await;
    let file = ConfigFile {
        path: "a.pvn.yaml".into(),
        text: TWO_CHANNELS.into(),
        ..ConfigFile::default()
    };
    let request = ConfigsRequest {
        files: vec![file],
        dry_run: true,
        push: true,
        ..ConfigsRequest::default()
    };
    let result = rig.handle.apply_configs(request, caller("root")).await.unwrap();
    assert_eq!(changes(&result)[0], ("tool", "created", 1));
    assert!(result.pushed.is_empty());
    assert!(rig.store.find_application("app").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_given_namespace_that_is_not_there_is_refused_with_its_line() {
    let rig = Rig::start(tidy_world()).await;
    let text = TWO_CHANNELS
        .replace(
            "{runtime: local}",
            "{runtime: k8s, containerOrchestration: {k8s: {namespace: mine}}}",
        )
        .replace("program: {name: ", "program: {image: i, name: ")
        + "---\nruntime: {name: k8s, kubernetes: {}}\n";
    let refused = async |text: &str| match rig.apply(text).await.unwrap_err() {
        Refusal::Config(problems) => problems
            .into_iter()
            .map(|problem| (problem.line, problem.message, problem.help.unwrap_or_default()))
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let expected = [(
        5,
        "there is no namespace `mine` on the cluster `k8s`".to_owned(),
        "create it, or leave `containerOrchestration` out and pvn makes one".to_owned(),
    )];
    rig.runner.absent.lock().unwrap().insert("mine".to_owned());
    assert_eq!(refused(&text).await, expected);
    assert!(rig.store.find_runtime("tool").await.unwrap().is_none(), "nothing is stored");
    rig.runner.absent.lock().unwrap().clear();
    rig.apply(&text).await.unwrap();
    rig.runner.absent.lock().unwrap().insert("mine".to_owned());
    rig.apply(&text.replace("defaultValue: medium", "defaultValue: large"))
        .await
        .expect("no runtime changes");
    assert_eq!(
        refused(&text.replace("kubernetes: {}", "kubernetes: {context: other}")).await,
        expected,
        "another cluster may not have it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_runtime_makes_no_new_version_and_fetches_again() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let looks = || {
        rig.runner
            .seen
            .lock()
            .unwrap()
            .iter()
            .filter(|spec| spec.kind == JobKind::Fetch && spec.command.argv.len() == 2)
            .count()
    };
    assert_eq!(looks(), 0);
    rig.apply(&TWO_CHANNELS.replace("entrypoint: [look]", "entrypoint: [look, harder]"))
        .await
        .unwrap();
    rig.until("both channels being looked at with the new command", async || {
        (looks() >= 2).then_some(())
    })
    .await;
    assert_eq!(
        rig.until_status("staging", Status::Converged).await.desired_version.as_deref(),
        Some("web-1")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shorter_interval_counts_at_once() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let looks = || {
        rig.runner.seen.lock().unwrap().iter().filter(|spec| spec.kind == JobKind::Fetch).count()
    };
    let before = looks();
    rig.apply(
        &TWO_CHANNELS.replace("steadyStatePollInterval: 3600s", "steadyStatePollInterval: 1s"),
    )
    .await
    .unwrap();
    rig.until("both channels being looked at again and again", async || {
        (looks() >= before + 6).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_is_taken_out_takes_its_instances_with_it_and_may_come_back() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig.apply(&without_production()).await.unwrap();
    let service = rig.store.service("app", "web").await.unwrap().unwrap();
    assert_eq!(service.channels.len(), 1);
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raw_secrets_of_configs_are_nowhere_in_the_clear_and_reach_the_job() {
    let rig = Rig::start(tidy_world()).await;
    let text = TWO_CHANNELS.replace(
        "program: {name: do, ",
        "program: {name: do, env: {KEY: {rawSecret: hunter2-in-the-clear}}, ",
    );
    let result = rig.request(&text, true).await.unwrap();
    assert!(!result.documents[0].diff.contains("hunter2"), "{}", result.documents[0].diff);
    rig.until_status("production", Status::Converged).await;
    let seen = rig.runner.seen.lock().unwrap().clone();
    let apply = seen.iter().find(|spec| spec.kind == JobKind::Apply).unwrap();
    assert_eq!(super::round::variable(apply, "KEY"), "hunter2-in-the-clear");
    assert_eq!(apply.secret_keys, ["KEY"]);
    for file in std::fs::read_dir(rig.dir.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(
                !bytes.windows(12).any(|window| window == b"in-the-clear"),
                "{} holds the secret in the clear",
                path.display()
            );
        }
    }
    let key = StoredDocumentKey {
        kind: DocumentKind::Runtime,
        application: String::new(),
        name: "tool".into(),
    };
    assert!(
        rig.store.document(&key).await.unwrap().unwrap().source.text.contains("hunter2"),
        "who has the key can read it again"
    );
}

fn without_production() -> String {
    let (before, after) = TWO_CHANNELS.split_once("  - name: production\n").unwrap();
    format!("{before}---\n{}", after.split_once("---\n").unwrap().1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_is_put_back_stays_deleted_until_a_push() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig.apply(&without_production()).await.unwrap();
    let applies = rig.runner.applies();
    rig.apply(TWO_CHANNELS).await.unwrap();
    assert_eq!(
        rig.instance("production").await.status,
        Status::Deleted,
        "a config is no order to apply"
    );
    // Another change of the config compiles what is released again, and is none either.
    rig.apply(&TWO_CHANNELS.replace("pollInterval: 1s", "pollInterval: 2s")).await.unwrap();
    assert_eq!(rig.instance("production").await.status, Status::Deleted);
    assert_eq!(rig.runner.applies(), applies);
    rig.push(&[]).await.unwrap();
    rig.until_status("production", Status::Converged).await;
}

/// `app` with services `web` and so many others.
fn services(others: usize) -> String {
    let (estate, service) = TWO_CHANNELS.split_once("---\nservice:").unwrap();
    let service = format!("---\nservice:{service}");
    let others =
        (0..others).map(|number| service.replace("name: web", &format!("name: other{number}")));
    std::iter::once(service.clone())
        .chain(others)
        .fold(estate.to_owned(), |text, service| text + &service)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_service_whose_newest_release_cannot_be_read_is_left_out_of_an_apply_and_the_others_go_on()
 {
    // Few services are read one by one, many in one go.
    for others in [1, 20] {
        let rig = Rig::start(tidy_world()).await;
        rig.request(&services(others), true).await.unwrap();
        let rig = rig
            .edited(
                "UPDATE releases SET params = 'dance' WHERE service_id = (SELECT id FROM services \
                 WHERE name = 'web')",
                tidy_world(),
            )
            .await;
        // What changes is of all services, so each is compiled again and released.
        let changed = services(others)
            .replace("string: {defaultValue: small}", "string: {defaultValue: tiny}");
        let changed = changed.replace("entrypoint: [do, ", "entrypoint: [do, anew, ");
        let result = rig.request(&changed, true).await.expect("the others are not refused");
        assert_eq!(changes(&result)[0], ("tool", "changed", 2));
        let pushed: Vec<_> = result.pushed.iter().map(|pushed| pushed.service.as_str()).collect();
        assert_eq!(pushed.len(), others, "{pushed:?}");
        assert!(!pushed.contains(&"web"), "{pushed:?}");
        let told = serde_json::to_value(&result).unwrap()["leftOut"].clone();
        let told = told.as_array().unwrap();
        assert!(
            told.iter()
                .all(|left_out| left_out["application"] == "app" && left_out["service"] == "web"),
            "{told:?}"
        );
        let whys: Vec<_> = told.iter().filter_map(|left_out| left_out["why"].as_str()).collect();
        assert_eq!(
            whys.len(),
            2,
            "what is in force is not compiled again, and there is no new release: {whys:?}"
        );
        assert!(
            whys.iter().all(|why| why.contains("table releases") && why.contains("column params")),
            "{whys:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p9_a_cluster_that_does_not_answer_holds_up_only_the_configs_that_name_it() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    rig.runner.unanswered.lock().unwrap().insert("mine".to_owned());
    let text = TWO_CHANNELS
        .replace(
            "{runtime: local}",
            "{runtime: k8s, containerOrchestration: {k8s: {namespace: mine}}}",
        )
        .replace("program: {name: ", "program: {image: i, name: ")
        + "---\nruntime: {name: k8s, kubernetes: {}}\n";
    let waits = std::pin::pin!(rig.apply(&text));
    let others = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        rig.push(&[]).await.unwrap();
        rig.until_status("production", Status::Converged).await;
    };
    tokio::select! {
        done = waits => panic!("{done:?}"),
        done = tokio::time::timeout(super::PATIENCE, others) => done.expect("others are not held up"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_compared_is_stored_only_against_what_it_was_compared_with() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let mine = TWO_CHANNELS.replace("entrypoint: [look]", "entrypoint: [look, mine]");
    let theirs = TWO_CHANNELS.replace("entrypoint: [look]", "entrypoint: [look, theirs]");
    let ask = async |text: &str, dry_run, basis| {
        let files = vec![schema::api::ConfigFile {
            path: "a.pvn.yaml".to_owned(),
            text: text.to_owned(),
            ..Default::default()
        }];
        let request = ConfigsRequest { files, dry_run, basis, ..ConfigsRequest::default() };
        rig.handle.apply_configs(request, caller("ann")).await
    };
    let shown = ask(&mine, true, None).await.unwrap().basis;
    rig.apply(&theirs).await.unwrap();
    let refused = ask(&mine, false, shown).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Conflict(why) if why.contains("nothing was changed")),
        "{refused:?}"
    );
    let again = ask(&mine, true, None).await.unwrap();
    assert_eq!(again.documents[0].change, "changed", "theirs is what is stored");
    ask(&mine, false, again.basis).await.expect("nobody came between");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_goes_only_with_what_was_shown_to_go_with_it() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let one = without_production();
    let ask = async |dry_run, basis| {
        let files = vec![schema::api::ConfigFile {
            path: "a.pvn.yaml".to_owned(),
            text: one.clone(),
            ..Default::default()
        }];
        let request = ConfigsRequest { files, dry_run, basis, ..ConfigsRequest::default() };
        rig.handle.apply_configs(request, caller("ann")).await
    };
    let shown = ask(true, None).await.unwrap();
    assert!(
        !shown.warnings.iter().any(|warning| warning.message.contains("goes")),
        "{:?}",
        shown.warnings
    );
    rig.push(&[]).await.unwrap();
    let refused = ask(false, shown.basis).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Conflict(why) if why.contains("released to a channel that goes")),
        "{refused:?}"
    );
    let again = ask(true, None).await.unwrap();
    assert!(
        again.warnings.iter().any(|warning| warning.message.contains("goes")),
        "{:?}",
        again.warnings
    );
    ask(false, again.basis).await.expect("nobody came between");
}
