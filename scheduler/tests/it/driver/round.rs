//! The whole round: config, release, fetch, apply, fetch, CONVERGED.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::store::{JobFilter, PageRequest};
use schema::status::{JobKind, JobStatus, Status};

use super::{Rig, TWO_CHANNELS, target};

/// A world that is as desired once an apply was made in the channel.
pub(crate) fn tidy_world() -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    let done: Arc<std::sync::Mutex<std::collections::BTreeSet<String>>> = Arc::default();
    move |spec| {
        let channel = variable(spec, "PVN_RELEASE_CHANNEL");
        let mut done = done.lock().unwrap();
        match spec.kind {
            JobKind::Fetch => Some(if done.contains(&channel) { 0 } else { 2 }),
            JobKind::Apply => {
                done.insert(channel);
                Some(0)
            }
            JobKind::GetInfo => Some(0),
        }
    }
}

pub(crate) fn variable(spec: &JobSpec, key: &str) -> String {
    spec.env
        .iter()
        .rev()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value.clone())
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_goes_through_fetch_and_apply_to_converged() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let staging = rig.until_status("staging", Status::Converged).await;
    let production = rig.until_status("production", Status::Converged).await;
    assert_eq!(staging.desired_version.as_deref(), Some("web-1"));
    assert_eq!(production.converged_version.as_deref(), Some("web-1"));
    assert_eq!(rig.runner.applies(), 2);

    let release = rig.until("the release being CONVERGED", async || {
        let page = rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap();
        page.items.into_iter().find(|release| release.status == Status::Converged)
    });
    assert_eq!(release.await.channels.len(), 2);

    let jobs = rig.store.jobs(&JobFilter::default(), &PageRequest::default()).await.unwrap();
    assert!(jobs.items.iter().all(|job| job.status == JobStatus::Succeeded), "{jobs:?}");
    assert!(jobs.items.iter().all(|job| job.started_at.is_some() && job.ended_at.is_some()));
    let forgotten = rig.until("every job being forgotten by the runner", async || {
        let forgotten = rig.runner.forgotten.lock().unwrap().len() as u64;
        (forgotten >= jobs.total).then_some(forgotten)
    });
    assert_eq!(forgotten.await, jobs.total);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn environment_of_every_job_reaches_the_runner() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    let seen = rig.runner.seen.lock().unwrap().clone();
    let apply = seen.iter().find(|spec| spec.kind == JobKind::Apply).unwrap();
    for (key, value) in [
        ("PVN_APPLICATION", "app"),
        ("PVN_SERVICE", "web"),
        ("PVN_RELEASE_CHANNEL", "staging"),
        ("PVN_SERVICE_VERSION", "web-1"),
        ("PVN_JOB_KIND", "apply"),
        ("PVN_ATTEMPT", "1"),
    ] {
        assert_eq!(variable(apply, key), value, "{key}");
    }
    assert_eq!(variable(apply, "PVN_JOB_ID"), apply.job.to_string());
    assert_eq!(apply.command.argv, ["do", "medium"]);
    assert_eq!(variable(&seen[0], "PVN_FETCH_MODE"), "EXIT_CODE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_03_fetch_runs_while_preconditions_are_unmet() {
    let rig = Rig::start(|spec| (spec.kind == JobKind::Fetch).then_some(2)).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let production = rig.until_status("production", Status::WaitingPreconditions).await;
    assert!(production.message.contains("staging"), "{}", production.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_found_and_repaired() {
    let drifted = Arc::new(AtomicBool::new(false));
    let world = tidy_world();
    let drift = drifted.clone();
    let rig = Rig::start(move |spec| match spec.kind {
        JobKind::Fetch if drift.load(Ordering::Relaxed) => Some(2),
        JobKind::Apply => {
            drift.store(false, Ordering::Relaxed);
            world(spec)
        }
        _ => world(spec),
    })
    .await;
    rig.request(&TWO_CHANNELS.replace("3600s", "1s"), true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let before = rig.runner.applies();
    drifted.store(true, Ordering::Relaxed);
    rig.until("the repair", async || (rig.runner.applies() > before).then_some(())).await;
    rig.until_status("staging", Status::Converged).await;
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test]
async fn what_waits_for_a_person_alone_has_no_next_action() {
    let rig = Rig::start(|_| Some(1)).await;
    let (head, rest) = TWO_CHANNELS.split_once("    fetch:").unwrap();
    let (_, tail) = rest.split_once("    apply:").unwrap();
    rig.apply(&format!("{head}    apply:{tail}")).await.unwrap();
    rig.push(&[]).await.unwrap();
    let instance = rig.until_status("staging", Status::Failed).await;
    assert_eq!(
        (instance.next_action_at, rig.handle.explain(target("staging")).await.unwrap().next),
        (None, Vec::new())
    );
}
