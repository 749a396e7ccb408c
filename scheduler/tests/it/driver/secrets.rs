//! Secrets as people set and delete them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex};

use pvn_scheduler::driver::Ask;
use pvn_scheduler::runner::JobSpec;
use schema::status::{JobKind, Status};

use super::round::variable;
use super::{Rig, caller, target};

#[tokio::test]
async fn versions_of_a_secret_count_up_for_ever() {
    let rig = Rig::start(|_| Some(0)).await;
    let set = async |value: &str| {
        rig.handle.set_secret("token".to_owned(), value.into(), caller("eve")).await.unwrap()
    };
    assert_eq!([set("a").await, set("b").await], [1, 2]);
    rig.handle.delete_secret("token".to_owned(), caller("eve")).await.unwrap();
    assert!(
        rig.handle.delete_secret("token".to_owned(), caller("eve")).await.is_err(),
        "it is gone"
    );
    assert_eq!(set("c").await, 3, "version 1 never means another value");
    rig.handle.delete_secret("token".to_owned(), caller("eve")).await.unwrap();
    assert_eq!(set("d").await, 4);
    assert!(rig.store.secret("token", 3).await.unwrap().is_none());
    let set_if_changed = async |value: &str| {
        rig.handle
            .set_secret_if_changed("token".to_owned(), value.into(), caller("eve"))
            .await
            .unwrap()
    };
    assert_eq!([set_if_changed("d").await, set_if_changed("a").await, set("a").await], [4, 5, 6]);
}

#[tokio::test]
async fn a_secret_that_a_notification_target_needs_is_not_deleted_before_the_target_has_another() {
    let rig = Rig::start(|_| Some(0)).await;
    let told = |key: &str| {
        format!(
            "application:\n  name: app\n  releaseChannels: [{{name: staging, runtimes: [{{runtime: \
             local}}]}}]\n  notifications:\n  - {{name: chat, slack: {{url: {{secret: {{key: \
             {key}}}}}}}}}\n  - {{name: mail, email: {{to: [a@h], from: b@h, server: {{host: h, user: \
             {{value: u}}, password: {{secret: {{key: password}}}}}}}}}}\n"
        )
    };
    for key in ["hook", "other", "password"] {
        let value = "https://hooks.slack.com/x".into();
        rig.handle.set_secret(key.to_owned(), value, caller("eve")).await.unwrap();
    }
    rig.apply(&told("hook")).await.unwrap();
    let delete = async |key: &str| rig.handle.delete_secret(key.to_owned(), caller("eve")).await;
    for (key, target) in [("hook", "chat"), ("password", "mail")] {
        let refused = delete(key).await.unwrap_err().to_string();
        let named = format!("in use by the notification target `{target}` of application `app`");
        assert!(refused.contains(&named), "{refused}");
    }
    rig.apply(&told("other")).await.unwrap();
    delete("hook").await.unwrap();
}

/// All three commands; fetch and apply have the secret.
const WITH_A_SECRET: &str = "
runtime:
  name: tool
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      taskConfig: {program: {name: look, cmd: [look], env: {TOKEN: {secret: {key: token}}}}}
      pollInterval: 1s
      steadyStatePollInterval: 1s
    apply: {taskConfig: {program: {name: do, cmd: [do], env: {TOKEN: {secret: {key: token}}}}}}
    getInfo: {taskConfig: {program: {name: info, cmd: [info]}}, pollInterval: 1s}
---
application: {name: app, releaseChannels: [{name: staging, runtimes: [{runtime: tool}]}]}
---
service: {name: web, application: app}
";

/// A world that has the token of the last apply; an apply with one that ends with `-bad` fails.
fn world() -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    world_with("")
}

/// The same, where somebody else has set a token before.
fn world_with(token: &str) -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    let live = Arc::new(Mutex::new(token.to_owned()));
    move |spec| {
        let token = variable(spec, "TOKEN");
        let mut live = live.lock().unwrap();
        match spec.kind {
            JobKind::GetInfo => Some(0),
            JobKind::Fetch => Some(if *live == token { 0 } else { 2 }),
            JobKind::Apply if token.ends_with("-bad") => Some(1),
            JobKind::Apply => {
                *live = token;
                Some(0)
            }
        }
    }
}

/// What is masked for the newest job of a kind that has this token, beside what it was given.
fn former(rig: &Rig, kind: JobKind, token: &str) -> Option<BTreeSet<String>> {
    let seen = rig.runner.seen.lock().unwrap();
    let newest =
        seen.iter().rev().find(|spec| spec.kind == kind && variable(spec, "TOKEN") == token)?;
    assert!(
        newest.env.iter().all(|(key, _)| !key.starts_with("PVN_HIDDEN_")),
        "a command is given none of them"
    );
    Some(newest.former.iter().map(|value| OsStr::to_string_lossy(value).into_owned()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_live_is_masked_beside_what_a_job_is_given() {
    let rig = Rig::start(world()).await;
    let set = async |value: &str| {
        rig.handle.set_secret("token".to_owned(), value.into(), caller("eve")).await.unwrap()
    };
    let set_of = |values: &[&str]| -> BTreeSet<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    };
    let masked = async |kind, token: &str, expected: &[&str]| {
        let what = format!("{expected:?} masked for {kind} with {token}");
        rig.until(&what, async || (former(&rig, kind, token)? == set_of(expected)).then_some(()))
            .await;
    };
    set("value-one").await;
    rig.request(WITH_A_SECRET, true).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    masked(JobKind::Fetch, "value-one", &[]).await;
    masked(JobKind::GetInfo, "", &["value-one"]).await;

    set("value-two-bad").await;
    masked(JobKind::Apply, "value-two-bad", &["value-one"]).await;
    masked(JobKind::Fetch, "value-two-bad", &["value-one"]).await;
    masked(JobKind::GetInfo, "", &["value-one", "value-two-bad"]).await;

    set("value-three").await;
    rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
    masked(JobKind::Apply, "value-three", &["value-one", "value-two-bad"]).await;
    masked(JobKind::Fetch, "value-three", &["value-one", "value-two-bad"]).await;
    // It is looked at no sooner than its time comes.
    rig.handle.run_once(target("staging"), JobKind::GetInfo, caller("eve")).await.unwrap();
    masked(JobKind::GetInfo, "", &["value-one", "value-two-bad", "value-three"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_live_before_any_apply_is_masked_however_often_it_was_set_since() {
    let rig = Rig::start(world_with("value-one")).await;
    let set = async |value: &str| {
        rig.handle.set_secret("token".to_owned(), value.into(), caller("eve")).await.unwrap()
    };
    set("value-one").await;
    rig.request(WITH_A_SECRET, true).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    assert!(former(&rig, JobKind::Apply, "value-one").is_none(), "there was nothing to do");
    for number in 0..30 {
        set(&format!("value-{number}-bad")).await;
    }
    for kind in [JobKind::Fetch, JobKind::Apply, JobKind::GetInfo] {
        let token = if kind == JobKind::GetInfo { "" } else { "value-29-bad" };
        let what = format!("the live value to be masked for {kind}");
        rig.until(&what, async || former(&rig, kind, token)?.contains("value-one").then_some(()))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_is_masked_that_only_jobs_had_which_changed_nothing() {
    let env = ", env: {TOKEN: {secret: {key: token}}}";
    let waits = WITH_A_SECRET.replace(
        "runtimes: [{runtime: tool}]",
        "runtimes: [{runtime: tool}], preconditions: [{manualApproval: {}}]",
    );
    let of_info =
        WITH_A_SECRET.replace(env, "").replace("cmd: [info]", &format!("cmd: [info]{env}"));
    let renamed = waits.replace("name: staging", "name: other");
    let raw = |text: &str, value: &str| {
        text.replace("{secret: {key: token}}", &format!("{{rawSecret: {value}}}"))
    };
    let (raw_before, raw_renamed) = (raw(&waits, "value-one"), raw(&renamed, "value-two"));
    for (what, first, then, kind) in [
        ("fetch found work with it", &waits, &waits, JobKind::Fetch),
        ("getInfo alone is given it", &of_info, &of_info, JobKind::GetInfo),
        ("another channel had it", &waits, &renamed, JobKind::Fetch),
        ("a channel that is gone had it, in its config", &raw_before, &raw_renamed, JobKind::Fetch),
    ] {
        let rig = Rig::start(world()).await;
        let set = async |value: &str| {
            rig.handle.set_secret("token".to_owned(), value.into(), caller("eve")).await.unwrap()
        };
        set("value-one").await;
        rig.request(first, true).await.unwrap();
        rig.until(what, async || former(&rig, kind, "value-one")).await;
        set("value-two").await;
        if first != then {
            rig.request(then, true).await.unwrap();
        }
        rig.until(what, async || {
            former(&rig, kind, "value-two")?.contains("value-one").then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_value_that_cannot_be_opened_any_more_keeps_no_job_from_its_start() {
    let rig = Rig::start(world()).await;
    let set = async |rig: &Rig, value: &str| {
        rig.handle.set_secret("token".to_owned(), value.into(), caller("eve")).await.unwrap()
    };
    set(&rig, "value-one").await;
    rig.request(WITH_A_SECRET, true).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    let rig = rig.edited("UPDATE secrets SET sealed = 'AAAA'", world()).await;
    set(&rig, "value-two").await;
    rig.until("an apply", async || former(&rig, JobKind::Apply, "value-two")).await;
    rig.until_status("staging", Status::Converged).await;
}
