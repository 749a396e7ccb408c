//! Versions: counted, carried over, taken back, replaced.

use pvn_scheduler::driver::{Ask, Refusal};
use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::store::PageRequest;
use schema::api::{Instance, PushRequest, RollbackRequest};
use schema::cause::CauseCode;
use schema::status::{JobKind, Status};

use super::round::{tidy_world, variable};
use super::{Rig, TWO_CHANNELS, caller, target, with_shared_approval};

mod waits;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_counts_a_version_also_when_nothing_differs_and_keeps_the_last_values() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    assert_eq!(rig.push(&[("size", "large")]).await.unwrap().version, "web-1");
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-2");
    let page = rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap();
    let sizes: Vec<_> = page
        .items
        .iter()
        .map(|release| release.params.get("size").cloned().unwrap_or_default())
        .collect();
    assert_eq!(sizes, ["large", "large"]);
    let unknown = rig.push(&[("colour", "red")]).await.unwrap_err();
    assert!(
        matches!(&unknown, Refusal::Config(problems) if problems[0].message.contains("colour")),
        "{unknown:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_release_in_progress_becomes_replaced() {
    let rig = Rig::start(|spec| (spec.kind == JobKind::Fetch).then_some(2)).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    rig.push(&[]).await.unwrap();
    rig.push(&[]).await.unwrap();
    let page = rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap();
    assert_eq!(page.items[1].status, Status::Replaced, "{page:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_release_that_arrived_before_a_person_paused_it_is_converged_and_one_that_did_not_is_replaced()
 {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let of = async |at: usize| {
        rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap().items[at]
            .status
    };
    rig.push(&[]).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    for channel in ["staging", "production"] {
        rig.handle
            .ask(target(channel), Ask::Pause(Default::default()), caller("eve"))
            .await
            .unwrap();
    }
    rig.push(&[]).await.unwrap();
    assert_eq!(of(1).await, Status::Converged);
    rig.push(&[]).await.unwrap();
    assert_eq!(of(1).await, Status::Replaced, "it never began");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollback_goes_back_to_the_last_converged_version_as_it_was() {
    let world = tidy_world();
    let rig = Rig::start(move |spec: &JobSpec| {
        if variable(spec, "PVN_SERVICE_VERSION") == "web-2" && spec.kind == JobKind::Apply {
            return Some(1);
        }
        if variable(spec, "PVN_SERVICE_VERSION") == "web-2" { Some(2) } else { world(spec) }
    })
    .await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let nothing = rig
        .handle
        .rollback("app".into(), "web".into(), RollbackRequest::default(), caller("eve"))
        .await
        .unwrap_err();
    assert!(
        nothing.to_string().contains("there is no version to take app/web back to"),
        "{nothing}"
    );

    rig.push(&[("size", "small")]).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig.push(&[("size", "huge")]).await.unwrap();
    rig.until_status("staging", Status::Failed).await;
    let back = rig
        .handle
        .rollback("app".into(), "web".into(), RollbackRequest::default(), caller("eve"))
        .await
        .unwrap();
    assert_eq!(back.version, "web-1");
    let staging = rig.until_status("staging", Status::Converged).await;
    assert_eq!(staging.desired_version.as_deref(), Some("web-1"));
    rig.until_status("production", Status::Converged).await;
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-4", "versions count on");
    let newest = rig
        .store
        .releases(&Default::default(), &PageRequest::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!(newest.params["size"], "small", "values carry over from what was gone back to");
}

/// What a channel tells of the cause with this code.
async fn cause_of(rig: &Rig, channel: &str, code: &str) -> String {
    let told = rig.handle.explain(super::target(channel)).await.unwrap();
    let found = told.causes.into_iter().find(|cause| cause.code.as_str() == code);
    found.unwrap_or_else(|| panic!("{channel} tells no {code}")).message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_a_release_past_its_deadline_goes_back_by_itself() {
    let world = tidy_world();
    let rig = Rig::start(move |spec: &JobSpec| {
        if variable(spec, "PVN_SERVICE_VERSION") == "web-2" { Some(2) } else { world(spec) }
    })
    .await;
    let policy = "progressDeadline: 1s\n  autoRollback: {disabled: false}";
    let with_policy = format!("  application: app\n  {policy}\n  parameters");
    let text = TWO_CHANNELS.replace("  application: app\n  parameters", &with_policy);
    rig.request(&text, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig.push(&[]).await.unwrap();
    let page = rig.until("the release that goes back", async || {
        let page = rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap();
        (page.total >= 3).then_some(page)
    });
    let newest = page.await.items.remove(0);
    assert_eq!((newest.version.as_str(), newest.by.as_str()), ("web-1", "pvn"));
    let is_back = |staging: &Instance| {
        staging.status == Status::Converged && staging.desired_version.as_deref() == Some("web-1")
    };
    let staging = rig.until("staging being back at web-1", async || {
        Some(rig.instance("staging").await).filter(is_back)
    });
    let staging = staging.await;
    assert_eq!(
        (staging.release, staging.taken_back_version.as_deref()),
        (Some(newest.release), Some("web-2"))
    );
    let waiting = rig.instance("production").await;
    assert_eq!(
        (waiting.desired_version.as_deref(), waiting.taken_back_version),
        (Some("web-2"), None),
        "nothing went back here"
    );
    let back = cause_of(&rig, "staging", "ROLLED_BACK").await;
    assert!(
        back.contains("web-2 did not converge within its progress deadline of 1s")
            && back.contains("back to web-1"),
        "{back}"
    );
    let behind = cause_of(&rig, "production", "UPSTREAM_UNSTABLE").await;
    assert!(
        behind.contains("web-2 did not converge there") && behind.contains("a new release"),
        "{behind}"
    );
    assert!(!behind.contains("was released there"), "{behind}");
    let shown = rig.instance("production").await.message;
    assert!(shown.contains("web-2 got stuck there and was taken back"), "{shown}");
    let back_by_hand =
        RollbackRequest { version: Some("web-1".into()), channels: Some(vec!["staging".into()]) };
    let by_hand =
        rig.handle.rollback("app".into(), "web".into(), back_by_hand, caller("eve")).await.unwrap();
    let staging = rig.instance("staging").await;
    assert_eq!(
        (staging.release, staging.taken_back_version),
        (Some(by_hand.release), None),
        "who releases after it knows of it"
    );
    rig.push(&[]).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let told = rig.handle.explain(super::target("staging")).await.unwrap();
    let is_told = told.causes.iter().any(|cause| cause.code == CauseCode::RolledBack);
    assert!(!is_told, "another release: {told:#?}");
    rig.until("the rollback being noted as done", async || {
        rig.store.pending_actions().await.unwrap().0.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_approval_is_decided_once_for_every_channel_of_the_release() {
    let rig = Rig::start(tidy_world()).await;
    let text = with_shared_approval("tool");
    let pushed = rig.request(&text, true).await.unwrap().pushed;
    rig.until_status("staging", Status::WaitingManualApproval).await;
    rig.until_status("production", Status::WaitingManualApproval).await;
    let application = rig.store.application("app").await.unwrap().unwrap();
    let gates: Vec<_> = application
        .release_channels
        .iter()
        .map(|channel| &channel.preconditions[0]["sharedManualApproval"]["name"])
        .collect();
    assert_eq!(gates, ["launch", "launch"], "by this the client knows which channels it lets go");
    let approval = rig.instance("production").await.approvals.remove(0);
    assert_eq!(
        (approval.version.as_deref(), approval.release),
        (Some("web-1"), Some(pushed[0].release))
    );
    let ask = pvn_scheduler::driver::Ask::Approve(super::any_plan());
    rig.handle.ask(super::target("staging"), ask, caller("eve")).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_shared_approval_is_asked_anew_in_all_channels_when_the_commands_of_one_change() {
    let rig = Rig::start(tidy_world()).await;
    let (tool, _) = TWO_CHANNELS.split_once("---").unwrap();
    let text = with_shared_approval("other")
        + "---"
        + &tool.replace("name: tool", "name: other").replace("[do, ", "[make, ");
    rig.request(&text, true).await.unwrap();
    let asked = async |old: &str| {
        let mut ids = Vec::new();
        for channel in ["staging", "production"] {
            let what = format!("{channel} asking");
            let id = rig.until(&what, async || {
                let approvals = rig.instance(channel).await.approvals;
                let pending = approvals
                    .into_iter()
                    .find(|approval| approval.status == schema::status::ApprovalStatus::Pending);
                pending.map(|approval| approval.id.to_string()).filter(|id| id != old)
            });
            ids.push(id.await);
        }
        assert_eq!(ids[0], ids[1], "one question for both channels");
        ids.remove(0)
    };
    let approve = async |channel: &str, approval: &str| {
        let request = schema::api::DecisionRequest {
            approval: Some(approval.to_owned()),
            ..super::any_plan()
        };
        rig.handle
            .ask(
                super::target(channel),
                pvn_scheduler::driver::Ask::Approve(request),
                caller("eve"),
            )
            .await
    };
    let first = asked("").await;
    // Back and forth: no question comes twice.
    rig.apply(&text.replace("[make, ", "[rm, ")).await.unwrap();
    let second = asked(&first).await;
    rig.apply(&text).await.unwrap();
    let third = asked(&second).await;
    assert_ne!(third, first);
    for channel in ["staging", "production"] {
        for old in [&first, &second] {
            let refused = approve(channel, old).await.unwrap_err();
            assert!(
                matches!(&refused, Refusal::Conflict(why) if why.contains(&third)),
                "{refused:?}"
            );
        }
    }
    approve("production", &third).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_reference_to_nothing_a_release_is_refused_over_a_secret_that_nobody_has_set() {
    let rig = Rig::start(tidy_world()).await;
    let with = |reference: &str| {
        TWO_CHANNELS
            .replace("name: do, ", &format!("name: do, env: {{TOKEN: {{secret: {reference}}}}}, "))
    };
    rig.apply(&with("{key: token}")).await.unwrap();
    let refused = rig.push(&[]).await.unwrap_err();
    let Refusal::Config(problems) = &refused else { panic!("{refused:?}") };
    assert_eq!(problems.len(), 1, "once, not for each channel: {problems:?}");
    assert_eq!(problems[0].message, "secret `token` does not exist");
    assert_eq!(problems[0].help.as_deref(), Some("set it with `pvnctl secrets set token`"));
    rig.handle.set_secret("token".into(), b"one-two-three".to_vec(), caller("root")).await.unwrap();
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-1");
    rig.apply(&with("{key: token, version: 2}")).await.unwrap();
    let refused = rig.push(&[]).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Config(problems) if problems[0].message == "secret `token` has no version 2"),
        "{refused:?}"
    );
}
