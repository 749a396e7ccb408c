//! What a push says: everything that is wrong in one go, and what is probably not meant.

use pvn_scheduler::driver::{Ask, Refusal};
use schema::api::{ConfigFile, ConfigsRequest, PushRequest};
use schema::cause::CauseCode;
use schema::status::Status;

use super::round::tidy_world;
use super::{Rig, TWO_CHANNELS, caller, target};

/// Two services of one application: the first lacks a value and a secret, the second a value in one
/// channel and another secret.
const LACKING: &str = r#"
runtime:
  name: tool
  custom:
    proxyRuntime: {runtime: local}
    apply: {taskConfig: {program: {entrypoint: [do]}}}
---
application:
  name: app
  releaseChannels:
  - {name: staging, runtimes: [{runtime: tool}]}
  - {name: production, runtimes: [{runtime: tool}]}
---
service:
  name: one
  application: app
  bundleName: "v-{{.Params.p}}"
  parameters:
  - {name: p, required: true, string: {}}
  - {name: q, required: true, string: {}}
  - {name: n, int: {}}
  env: {A: {secret: {key: miss-one}}}
---
service:
  name: two
  application: app
  parameters: [{name: i, dockerImage: {}}]
  perReleaseChannel: [{releaseChannel: production, env: {B: {secret: {key: miss-two}}}}]
"#;

fn told(refused: Refusal) -> Vec<String> {
    match refused {
        Refusal::Config(problems) => {
            problems.into_iter().map(|one| format!("{}: {}", one.path, one.message)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_what_is_wrong_with_all_services_of_a_push_is_told_in_one_go_and_nothing_is_stored()
 {
    let rig = Rig::start(tidy_world()).await;
    let file =
        ConfigFile { path: "test.pvn.yaml".into(), text: LACKING.into(), ..ConfigFile::default() };
    let params = [("n", "many"), ("i", ""), ("unknown", "x")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let request = ConfigsRequest {
        files: vec![file],
        push: true,
        params: params.into(),
        ..ConfigsRequest::default()
    };
    let refused = told(rig.handle.apply_configs(request, caller("root")).await.unwrap_err());
    assert_eq!(
        refused,
        [
            "params.unknown: no service in the given files has a parameter `unknown`",
            "params.n: parameter `n`: `many` is not a whole number of 64 bits (for service \
             `app/one`)",
            "params.p: parameter `p` is required and has no value (for service `app/one`)",
            "params.q: parameter `q` is required and has no value (for service `app/one`)",
            "secrets.miss-one: secret `miss-one` does not exist (for service `app/one`)",
            "params.i: parameter `i`: an empty text is not a tag of an image (for service \
             `app/two`)",
            "secrets.miss-two: secret `miss-two` does not exist (for service `app/two` in channel \
             `production`)",
        ]
    );
    assert!(rig.store.find_application("app").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_a_push_of_one_service_names_the_channel_where_it_is_not_all() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(LACKING).await.unwrap();
    let push = async |params: PushRequest| {
        told(rig.handle.push("app".into(), "one".into(), params, caller("root")).await.unwrap_err())
    };
    let all = [("p".to_owned(), "1".to_owned())].into();
    let q = [("q".to_owned(), "1".to_owned())].into();
    let refused = push(PushRequest {
        params: all,
        params_for_channel: [("staging".to_owned(), q)].into(),
        ..PushRequest::default()
    })
    .await;
    assert_eq!(
        refused,
        [
            "params.q: parameter `q` is required and has no value (in channel `production`)",
            "secrets.miss-one: secret `miss-one` does not exist",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_given_to_a_release_that_is_too_short_to_be_masked_is_warned_of() {
    let rig = Rig::start(tidy_world()).await;
    let text = TWO_CHANNELS.replace(
        "  - name: size\n    string: {defaultValue: medium}",
        "  - name: size\n    string: {defaultValue: medium}\n  - name: token\n    secret: {}",
    );
    rig.apply(&text).await.unwrap();
    let push = async |all: &[(&str, &str)], own: &[(&str, &str)]| {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let params_for_channel =
            if own.is_empty() { [].into() } else { [("staging".to_owned(), map(own))].into() };
        let request =
            PushRequest { params: map(all), params_for_channel, ..PushRequest::default() };
        rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap().warnings
    };
    let said = "parameter `token` is not masked in what jobs print: it is shorter than 6 bytes; \
                give a longer one";
    assert_eq!(push(&[("token", "abc")], &[]).await, [said]);
    assert_eq!(push(&[("token", "long enough")], &[("token", "ab")]).await, [said]);
    let own = push(&[("token", "long enough")], &[]).await;
    assert!(matches!(&own[..], [one] if one.contains("that `staging` had of its own")), "{own:?}");
    assert!(push(&[("token", "long enough")], &[]).await.is_empty());
    assert!(push(&[("token", "")], &[]).await.is_empty(), "there is nothing to mask");
    let file = ConfigFile { path: "test.pvn.yaml".into(), text, ..ConfigFile::default() };
    let params = [("token".to_owned(), "abc".to_owned())].into();
    let request =
        ConfigsRequest { files: vec![file], push: true, params, ..ConfigsRequest::default() };
    let warned = rig.handle.apply_configs(request, caller("root")).await.unwrap().warnings;
    assert!(
        warned.iter().any(|warning| warning.message == format!("app/web: {said}")),
        "{warned:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_for_a_channel_that_the_release_does_not_go_to_is_warned_of() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let size = [("size".to_owned(), "x".to_owned())].into();
    let request = PushRequest {
        channels: Some(vec!["staging".to_owned()]),
        params_for_channel: [("production".to_owned(), size)].into(),
        ..PushRequest::default()
    };
    let warned = rig
        .handle
        .push("app".into(), "web".into(), request, caller("root"))
        .await
        .unwrap()
        .warnings;
    assert_eq!(
        warned,
        ["this release does not go to `production`: the values that are given for it count from \
          the next release there"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_services_says_which_version_each_channel_is_at() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let request =
        PushRequest { channels: Some(vec!["staging".to_owned()]), ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    let listed = rig.store.services(&Default::default(), &Default::default()).await.unwrap();
    let of: Vec<_> = listed.items[0]
        .channels
        .iter()
        .map(|one| (one.channel.as_str(), one.version.as_deref()))
        .collect();
    assert_eq!(of, [("staging", Some("web-2")), ("production", Some("web-1"))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_of_a_push_says_what_would_change_in_each_channel_and_releases_nothing() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let push = async |dry_run: bool, size: &str| {
        let params = [("size".to_owned(), size.to_owned())].into();
        let request = PushRequest { params, dry_run, ..PushRequest::default() };
        rig.handle.push("app".into(), "web".into(), request, caller("ann")).await.unwrap()
    };
    let first = push(true, "large").await;
    assert_eq!(first.version, "web-1");
    assert!(first.preview.iter().all(|one| one.before.is_none()), "{first:#?}");
    push(false, "large").await;
    // What an apply that runs holds up is another story.
    rig.until_status("production", Status::Converged).await;
    let releases = async || rig.store.service("app", "web").await.unwrap().unwrap().version;

    let next = push(true, "huge").await;
    assert_eq!(next.version, "web-2");
    let told: Vec<_> = next
        .preview
        .iter()
        .map(|one| {
            let change = &one.params[0];
            (
                one.channel.as_str(),
                one.runtime.as_str(),
                one.before.as_deref(),
                (change.name.as_str(), change.before.as_deref(), change.after.as_deref()),
                one.waits_for.join(", "),
            )
        })
        .collect();
    let size = ("size", Some("large"), Some("huge"));
    assert_eq!(
        told,
        [
            ("staging", "tool", Some("web-1"), size, String::new()),
            (
                "production",
                "tool",
                Some("web-1"),
                size,
                "waits until `staging` is converged at web-2".to_owned()
            ),
        ]
    );
    assert!(push(true, "large").await.preview.iter().all(|one| one.params.is_empty()));
    assert_eq!(releases().await.as_deref(), Some("web-1"), "nothing is stored");
    assert_eq!(push(false, "huge").await.version, "web-2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_of_a_push_says_what_holds_it_up_and_which_commands_the_config_changes() {
    let rig = Rig::start(tidy_world()).await;
    let windowed = TWO_CHANNELS.replace(
        "    apply:\n",
        "    apply:\n      window: {schedule: \"0 0 9 1 1 * 2099\", duration: 1h}\n",
    );
    rig.request(&windowed, true).await.unwrap();
    let pause = Ask::Pause(Default::default());
    rig.handle.ask(target("production"), pause, caller("eve")).await.unwrap();
    let other = windowed.replace("string: \"{{.Params.size}}\"", "string: \"x{{.Params.size}}\"");
    rig.apply(&other).await.unwrap();
    let dry_run = async |size: Option<&str>| {
        let params = size.map(|size| ("size".to_owned(), size.to_owned())).into_iter().collect();
        let request = PushRequest { params, dry_run: true, ..PushRequest::default() };
        let made = rig.handle.push("app".into(), "web".into(), request, caller("ann")).await;
        made.unwrap().preview
    };
    let told = dry_run(None).await;
    let codes =
        |at: usize| -> Vec<_> { told[at].held_up_by.iter().map(|hold| hold.code).collect() };
    assert_eq!(codes(0), [CauseCode::WindowShut], "{told:#?}");
    assert_eq!(
        codes(1),
        [CauseCode::Paused, CauseCode::UpstreamUnstable, CauseCode::WindowShut],
        "{told:#?}"
    );
    assert_eq!(
        told[0].next,
        "fetch looks at once, and apply follows if there is work and nothing keeps it back"
    );
    assert!(told[1].next.starts_with("nothing: it stays paused by "), "{}", told[1].next);
    assert!(told.iter().all(|one| one.commands == ["apply (arguments)"]), "{told:#?}");
    assert!(told.iter().all(|one| one.params.is_empty()), "{told:#?}");
    // A value makes other commands too, which is told by the value.
    let told = dry_run(Some("huge")).await;
    assert!(told.iter().all(|one| one.commands == ["apply (arguments)"]), "{told:#?}");
    rig.apply(&windowed).await.unwrap();
    let told = dry_run(Some("huge")).await;
    assert!(told.iter().all(|one| one.commands.is_empty() && one.params.len() == 1), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_of_a_push_says_which_values_come_from_another_channel() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let push = async |channel: &str, size: Option<&str>, dry_run: bool| {
        let params = size.map(|size| ("size".to_owned(), size.to_owned())).into_iter().collect();
        let channels = Some(vec![channel.to_owned()]);
        let request = PushRequest { params, channels, dry_run, ..PushRequest::default() };
        let made = rig.handle.push("app".into(), "web".into(), request, caller("ann")).await;
        made.unwrap().preview
    };
    push("staging", Some("huge"), false).await;
    let told = push("production", None, true).await;
    let [change] = &told[0].params[..] else { panic!("{told:#?}") };
    assert_eq!(
        (change.name.as_str(), change.after.as_deref(), change.kept_from.as_deref()),
        ("size", Some("huge"), Some("web-2"))
    );
    let told = push("production", Some("huge"), true).await;
    assert_eq!(told[0].params[0].kept_from, None, "it is given here");
}
