//! What people ask: approve, reject, pause, cancel, dry runs, secrets, tokens.

use pvn_scheduler::clock::Clock;
use pvn_scheduler::driver::{Ask, Refusal};
use pvn_scheduler::runner::{End, Leave, RunnerEvent};
use pvn_scheduler::store::{EventFilter, JobFilter, PageRequest};
use schema::api::{DecisionRequest, Instance, PushRequest, TokenRequest};
use schema::status::{ApprovalStatus, JobKind, JobStatus, Role, Status};

use super::faults::silent_apply;
use super::round::tidy_world;
use super::{APPROVAL, Rig, TWO_CHANNELS, any_plan, caller, target, with_shared_approval};

mod limits;
mod tokens;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_07_an_apply_waits_for_its_approval_and_the_audit_knows_who_gave_it() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(APPROVAL, true).await.unwrap();
    let waiting = rig.until_status("only", Status::WaitingManualApproval).await;
    assert_eq!(waiting.approvals[0].status, ApprovalStatus::Pending);
    assert_eq!(rig.runner.applies(), 0);

    let other =
        DecisionRequest { plan_digest: Some("sha256:00".into()), ..DecisionRequest::default() };
    let refused =
        rig.handle.ask(target("only"), Ask::Approve(other), caller("eve")).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Conflict(why) if why.contains("look at it again")),
        "{refused}"
    );

    rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("eve")).await.unwrap();
    rig.until_status("only", Status::Converged).await;
    let filter =
        EventFilter { kind: Some("approval.decided".into()), audit: true, ..Default::default() };
    let entry = rig.store.events(&filter, &PageRequest::default()).await.unwrap().items.remove(0);
    assert_eq!((entry.actor.as_deref(), entry.origin.as_deref()), (Some("eve"), Some("127.0.0.1")));

    let late =
        rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("eve")).await.unwrap_err();
    assert!(
        matches!(&late, Refusal::Conflict(why) if why.contains("no approval is pending for app/web in only")),
        "{late}"
    );
}

/// It may have been asked for after somebody looked and saw that nothing was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_yes_without_a_plan_names_the_very_approval_that_was_seen() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(APPROVAL, true).await.unwrap();
    let asked = rig.until_status("only", Status::WaitingManualApproval).await.approvals.remove(0);
    assert_eq!(asked.plan_digest, None);
    let yes = async |approval: Option<String>| {
        let request = DecisionRequest { approval, ..DecisionRequest::default() };
        rig.handle.ask(target("only"), Ask::Approve(request), caller("eve")).await
    };
    for unseen in [None, asked.name.clone()] {
        let refused = yes(unseen).await.unwrap_err();
        let says = format!(
            "`approval` is missing: say which question of app/web in only you have \
                            seen (it is {} now)",
            asked.id
        );
        assert!(matches!(&refused, Refusal::Invalid(why) if why.contains(&says)), "{refused}");
    }
    assert_eq!(rig.runner.applies(), 0);
    yes(Some(asked.id.to_string())).await.unwrap();
    rig.until_status("only", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_10_pause_stops_fetch_and_apply_until_resume() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(APPROVAL).await.unwrap();
    rig.handle.ask(target("only"), Ask::Pause(Default::default()), caller("eve")).await.unwrap();
    rig.push(&[]).await.unwrap();
    rig.until_status("only", Status::Paused).await;
    assert!(rig.runner.kinds().is_empty());
    rig.handle.ask(target("only"), Ask::Resume, caller("eve")).await.unwrap();
    rig.until_status("only", Status::WaitingManualApproval).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reason_that_nobody_would_read_is_refused_whatever_it_is_for() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(APPROVAL, true).await.unwrap();
    rig.until_status("only", Status::WaitingManualApproval).await;
    let because = |length: usize| Some("ä".repeat(length));
    let asks = |length| {
        let decision = DecisionRequest { reason: because(length), ..any_plan() };
        let pause = schema::api::PauseRequest { reason: because(length) };
        let drift =
            schema::api::AcknowledgeRequest { reason: because(length), ..Default::default() };
        let window =
            schema::api::OpenWindowRequest { reason: because(length), ..Default::default() };
        [
            Ask::Approve(decision.clone()),
            Ask::Reject(decision),
            Ask::Acknowledge(drift),
            Ask::OpenWindow(window),
            Ask::Pause(pause),
        ]
    };
    for ask in asks(1_001) {
        let refused = rig.handle.ask(target("only"), ask, caller("eve")).await.unwrap_err();
        let says = "`reason` has 1001 characters, and 1000 at most are kept";
        assert!(matches!(&refused, Refusal::Invalid(why) if why.contains(says)), "{refused}");
    }
    let [.., pause] = asks(1_000);
    rig.handle.ask(target("only"), pause, caller("eve")).await.unwrap();
}

/// Its wrapper says so before its Pod is seen to run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_pause_takes_back_what_has_not_begun_and_nothing_that_runs() {
    let rig = Rig::start(|_| None).await;
    let job = silent_apply(&rig).await;
    rig.handle.ask(target("staging"), Ask::Pause(Default::default()), caller("eve")).await.unwrap();
    let has_leave = async || {
        let (leave, mut answer) = Leave::ask();
        rig.runner.tell(RunnerEvent::Asks { job, leave });
        answer.recv().await.unwrap()
    };
    assert_eq!(has_leave().await.unwrap_err().why, "it was paused");
    rig.runner.tell(RunnerEvent::Started { job, at: Clock::System.now() });
    assert_eq!(has_leave().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_what_is_to_be_observed_only_takes_back_what_has_not_begun_and_nothing_that_runs() {
    let rig = Rig::start(|_| None).await;
    let job = silent_apply(&rig).await;
    let observe = Ask::Observe(Default::default());
    rig.handle.ask(target("staging"), observe, caller("eve")).await.unwrap();
    let has_leave = async || {
        let (leave, mut answer) = Leave::ask();
        rig.runner.tell(RunnerEvent::Asks { job, leave });
        answer.recv().await.unwrap()
    };
    assert_eq!(has_leave().await.unwrap_err().why, "a person wants it to be observed only");
    rig.runner.tell(RunnerEvent::Started { job, at: Clock::System.now() });
    assert_eq!(has_leave().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_is_on_record_and_changes_nothing() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let before = rig.instance("staging").await;
    let job = rig.handle.run_once(target("staging"), JobKind::Fetch, caller("eve")).await.unwrap();
    let ended = rig.until("the dry run's end", async || {
        rig.store.job(job).await.unwrap().filter(|job| job.status.is_final())
    });
    assert_eq!(ended.await.status, JobStatus::Succeeded);
    assert_eq!(rig.instance("staging").await, before);
    let refused =
        rig.handle.run_once(target("staging"), JobKind::Apply, caller("eve")).await.unwrap_err();
    assert!(refused.to_string().contains("cannot be run dry"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_that_would_do_nothing_is_refused_with_what_to_do() {
    let rig = Rig::start(|spec| (spec.kind == JobKind::Fetch).then_some(2)).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let filter = JobFilter { kind: Some(JobKind::Apply), ..JobFilter::default() };
    let apply = rig.until("the apply being RUNNING", async || {
        let page = rig.store.jobs(&filter, &PageRequest::default()).await.unwrap();
        page.items.into_iter().find(|job| job.status == JobStatus::Running).map(|job| job.id)
    });
    let apply = apply.await;
    let retry =
        async |channel: &str| rig.handle.ask(target(channel), Ask::Retry, caller("eve")).await;
    let refused = retry("staging").await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Conflict(why) if why.contains(&format!("jobs cancel {apply}"))),
        "{refused:?}"
    );
    rig.handle.cancel_job(apply, caller("eve")).await.unwrap();
    rig.until_status("staging", Status::Failed).await;
    retry("staging").await.unwrap();
    let (head, rest) = TWO_CHANNELS.split_once("  - name: production").unwrap();
    rig.apply(&format!("{head}---{}", rest.split_once("---").unwrap().1)).await.unwrap();
    let refused = retry("production").await.unwrap_err();
    assert!(matches!(refused, Refusal::NotFound(_) | Refusal::Conflict(_)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_over_or_unknown_cannot_be_cancelled() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let job = rig
        .store
        .jobs(&JobFilter::default(), &PageRequest::default())
        .await
        .unwrap()
        .items
        .remove(0)
        .id;
    let over = rig.handle.cancel_job(job, caller("eve")).await.unwrap_err();
    assert!(
        matches!(&over, Refusal::Conflict(why) if why.contains("is over (SUCCEEDED)")),
        "{over}"
    );
    let unknown = rig
        .handle
        .cancel_job(schema::id::JobId::from_bytes([9; 16]), caller("eve"))
        .await
        .unwrap_err();
    assert!(matches!(unknown, Refusal::NotFound(_)), "{unknown}");
}

/// Three channels that each ask a person, on a runtime that only applies: nothing moves by itself.
const THREE_GATES: &str = r#"
runtime:
  name: tool
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {name: do, entrypoint: [do]}}
---
application:
  name: app
  releaseChannels:
  - {name: one, runtimes: [{runtime: tool}], preconditions: [{manualApproval: {name: first}}]}
  - {name: two, runtimes: [{runtime: tool}], preconditions: [{manualApproval: {name: second}}]}
  - {name: three, runtimes: [{runtime: tool}], preconditions: [{manualApproval: {name: third}}]}
---
service: {name: web, application: app}
"#;

/// How often the row of each channel was written, in the order of their names.
async fn revisions(rig: &Rig) -> Vec<(String, i64)> {
    let loaded = rig.store.load_instances().await.unwrap();
    let mut revisions: Vec<_> = loaded
        .0
        .iter()
        .map(|instance| (instance.channel.1.to_string(), instance.revision))
        .collect();
    revisions.sort();
    revisions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_writes_the_row_of_its_channel_and_of_no_other() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(THREE_GATES, true).await.unwrap();
    for channel in ["one", "two", "three"] {
        rig.until_status(channel, Status::WaitingManualApproval).await;
    }
    let before = revisions(&rig).await;
    rig.handle.ask(target("one"), Ask::Approve(any_plan()), caller("eve")).await.unwrap();
    rig.until_status("one", Status::Converged).await;
    rig.handle
        .ask(target("three"), Ask::Reject(DecisionRequest::default()), caller("eve"))
        .await
        .unwrap();
    rig.until_status("three", Status::Failed).await;
    let after = revisions(&rig).await;
    let written: Vec<_> = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after)
        .map(|(_, (name, _))| name.as_str())
        .collect();
    assert_eq!(written, ["one", "three"], "{before:?} became {after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_to_one_channel_writes_no_other() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(THREE_GATES, true).await.unwrap();
    rig.until_status("three", Status::WaitingManualApproval).await;
    let before = revisions(&rig).await;
    let request = PushRequest { channels: Some(vec!["two".into()]), ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    rig.until("the release in `two`", async || {
        Some(rig.instance("two").await)
            .filter(|instance| instance.desired_version.as_deref() == Some("web-2"))
    })
    .await;
    let after = revisions(&rig).await;
    let written: Vec<_> = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after)
        .map(|(_, (name, _))| name.as_str())
        .collect();
    assert_eq!(written, ["two"], "{before:?} became {after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_07_a_second_yes_of_the_same_person_says_that_another_has_to() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(&THREE_GATES.replace("{name: first}", "{name: first, minApprovers: 2}"), true)
        .await
        .unwrap();
    rig.until_status("one", Status::WaitingManualApproval).await;
    rig.handle.ask(target("one"), Ask::Approve(any_plan()), caller("eve")).await.unwrap();
    let again =
        rig.handle.ask(target("one"), Ask::Approve(any_plan()), caller("eve")).await.unwrap_err();
    assert!(
        matches!(&again, Refusal::Conflict(why) if why.contains("eve has said yes") && why.contains("1 of 2 people") && why.contains("somebody else")),
        "{again}"
    );
    rig.handle.ask(target("one"), Ask::Approve(any_plan()), caller("adam")).await.unwrap();
    rig.until_status("one", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_an_apply_that_was_given_up_is_stopped_once_more_when_somebody_cancels_it() {
    let rig = Rig::start(|spec| (spec.kind != JobKind::Apply).then_some(2)).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let applies = || {
        rig.runner
            .seen
            .lock()
            .unwrap()
            .iter()
            .find(|spec| spec.kind == JobKind::Apply)
            .map(|spec| spec.job)
    };
    let job = rig.until("an apply that runs", async || applies()).await;
    rig.runner.tell(RunnerEvent::Ended {
        job,
        end: End::Unknown { why: "its wrapper does not answer".into(), report: None },
        gone: false,
    });
    let given_up = rig.until_status("staging", Status::Failed).await;
    assert!(
        given_up.message.contains(&format!("`pvnctl jobs cancel {job}` stops it once more")),
        "{}",
        given_up.message
    );
    // Its runner takes it up again, as after a restart: it stays what it was told to be.
    rig.runner.tell(RunnerEvent::Started {
        job,
        at: rig.store.job(job).await.unwrap().unwrap().created_at,
    });
    rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
    assert_eq!(rig.store.job(job).await.unwrap().unwrap().status, JobStatus::Unknown);
    rig.handle.cancel_job(job, caller("eve")).await.unwrap();
    rig.until("its runner to be asked", async || {
        (!rig.runner.running.lock().unwrap().contains_key(&job)).then_some(())
    })
    .await;
    let filter = EventFilter { kind: Some("job.cancel".into()), audit: true, ..Default::default() };
    let told = async || {
        rig.store.events(&filter, &PageRequest::default()).await.unwrap().items.into_iter().next()
    };
    assert_eq!(rig.until("it to be in the audit log", told).await.actor.as_deref(), Some("eve"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_a_yes_is_taken_back_by_a_no_also_while_its_apply_runs() {
    let rig = Rig::start(|spec| (spec.kind != JobKind::Apply).then_some(2)).await;
    rig.request(APPROVAL, true).await.unwrap();
    rig.until_status("only", Status::WaitingManualApproval).await;
    rig.handle.ask(target("only"), Ask::Pause(Default::default()), caller("eve")).await.unwrap();
    rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("eve")).await.unwrap();
    rig.handle
        .ask(target("only"), Ask::Reject(DecisionRequest::default()), caller("ann"))
        .await
        .unwrap();
    rig.handle.ask(target("only"), Ask::Resume, caller("eve")).await.unwrap();
    rig.until_status("only", Status::Failed).await;
    assert_eq!(rig.runner.applies(), 0);
    rig.handle.ask(target("only"), Ask::Retry, caller("eve")).await.unwrap();
    rig.until_status("only", Status::WaitingManualApproval).await;
    rig.handle.ask(target("only"), Ask::Approve(any_plan()), caller("eve")).await.unwrap();
    rig.until("its apply", async || (rig.runner.applies() > 0).then_some(())).await;
    // It goes on, and nothing follows it.
    rig.handle
        .ask(target("only"), Ask::Reject(DecisionRequest::default()), caller("ann"))
        .await
        .unwrap();
    let follows_no_other =
        |shown: &Instance| shown.message.contains("and no other follows: ann rejected");
    let told = async || Some(rig.instance("only").await).filter(follows_no_other);
    rig.until("that to be told", told).await;
}
