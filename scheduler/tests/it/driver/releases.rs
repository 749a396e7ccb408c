//! Versions: counted, carried over, taken back, replaced.

use pvn_scheduler::driver::{Ask, Refusal};
use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::store::PageRequest;
use schema::api::{PushRequest, RollbackRequest};
use schema::cause::CauseCode;
use schema::status::{JobKind, Status};

use super::round::{tidy_world, variable};
use super::{Rig, TWO_CHANNELS, caller, target};

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
        rig.handle.ask(target(channel), Ask::Pause, caller("eve")).await.unwrap();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_12_a_release_past_its_deadline_goes_back_by_itself() {
    let world = tidy_world();
    let rig = Rig::start(move |spec: &JobSpec| {
        if variable(spec, "PVN_SERVICE_VERSION") == "web-2" { Some(2) } else { world(spec) }
    })
    .await;
    let text = TWO_CHANNELS.replace(
        "  application: app\n  parameters",
        "  application: app\n  progressDeadline: 1s\n  autoRollback: {disabled: false}\n  \
         parameters",
    );
    rig.request(&text, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig.push(&[]).await.unwrap();
    let page = rig.until("the release that goes back", async || {
        let page = rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap();
        (page.total >= 3).then_some(page)
    });
    let newest = page.await.items.remove(0);
    assert_eq!((newest.version.as_str(), newest.by.as_str()), ("web-1", "pvn"));
    let staging = rig.until("staging being back at web-1", async || {
        Some(rig.instance("staging").await).filter(|staging| {
            staging.status == Status::Converged
                && staging.desired_version.as_deref() == Some("web-1")
        })
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
    let causes = async |channel: &str, code: &str| {
        let told = rig.handle.explain(super::target(channel)).await.unwrap();
        told.causes
            .into_iter()
            .find(|cause| cause.code.as_str() == code)
            .unwrap_or_else(|| panic!("{channel} tells no {code}"))
            .message
    };
    let back = causes("staging", "ROLLED_BACK").await;
    assert!(
        back.contains("web-2 did not converge within its progress deadline of 1s")
            && back.contains("back to web-1"),
        "{back}"
    );
    let behind = causes("production", "UPSTREAM_UNSTABLE").await;
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
    assert!(
        told.causes.iter().all(|cause| cause.code != CauseCode::RolledBack),
        "another release: {told:#?}"
    );
    rig.until("the rollback being noted as done", async || {
        rig.store.pending_actions().await.unwrap().0.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_approval_is_decided_once_for_every_channel_of_the_release() {
    let rig = Rig::start(tidy_world()).await;
    let gate = "preconditions:\n    - sharedManualApproval: {name: launch}";
    let text = TWO_CHANNELS
        .replace(
            "  - name: staging\n    runtimes: [{runtime: tool}]",
            &format!("  - name: staging\n    runtimes: [{{runtime: tool}}]\n    {gate}"),
        )
        .replace("preconditions:\n    - releaseChannelStable: {releaseChannel: staging}", gate);
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
    let gate = "preconditions:\n    - sharedManualApproval: {name: launch}";
    let (tool, _) = TWO_CHANNELS.split_once("---").unwrap();
    let text = TWO_CHANNELS
        .replace(
            "  - name: staging\n    runtimes: [{runtime: tool}]",
            &format!("  - name: staging\n    runtimes: [{{runtime: other}}]\n    {gate}"),
        )
        .replace("preconditions:\n    - releaseChannelStable: {releaseChannel: staging}", gate)
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

/// Two channels that wait for a third would be released in turns for ever, each with the third and
/// without the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_channel_waits_for_is_told_and_a_release_that_takes_it_away_says_so() {
    let rig = Rig::start(|spec| match (spec.kind, variable(spec, "PVN_RELEASE_CHANNEL")) {
        (JobKind::Fetch, _) => Some(2),
        (_, channel) => (channel != "staging").then_some(0),
    })
    .await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::WaitingPreconditions).await;
    let way_out = async || {
        let told = rig.handle.explain(super::target("production")).await.unwrap();
        told.causes
            .into_iter()
            .find(|cause| cause.code == CauseCode::UpstreamUnstable)
            .map(|cause| cause.message)
            .unwrap()
    };
    let told = way_out().await;
    assert!(
        told.contains(
            "`pvnctl services explain web --app app --channel staging` says what that waits for"
        ),
        "{told}"
    );
    assert!(!told.contains("push"), "it was released there: {told}");
    let only = |channel: &str| PushRequest {
        channels: Some(vec![channel.to_owned()]),
        ..PushRequest::default()
    };
    let pushed =
        rig.handle.push("app".into(), "web".into(), only("staging"), caller("eve")).await.unwrap();
    let warning = "`production` waits until `staging` is converged at web-1, which this release \
                   takes from it: release to all of them with `pvnctl services push web --app app \
                   --channels staging,production`";
    assert_eq!(pushed.warnings, [warning]);
    let told = way_out().await;
    assert!(
        told.contains("web-2 is what was released there last: release to all of them with"),
        "{told}"
    );
    let again =
        rig.handle.push("app".into(), "web".into(), only("staging"), caller("eve")).await.unwrap();
    assert!(again.warnings.is_empty(), "this one takes nothing from it: {:?}", again.warnings);
}

/// A world in which each channel has work until this very version was applied there.
fn versioned_world() -> impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static {
    let done = std::sync::Mutex::new(std::collections::BTreeSet::new());
    move |spec| {
        let mut done = done.lock().unwrap();
        let is_done =
            (variable(spec, "PVN_RELEASE_CHANNEL"), variable(spec, "PVN_SERVICE_VERSION"));
        match spec.kind {
            JobKind::Fetch => Some(if done.contains(&is_done) { 0 } else { 2 }),
            JobKind::Apply => Some(i32::from(!done.insert(is_done))),
            JobKind::GetInfo => Some(0),
        }
    }
}

/// Each step that is suggested would leave another channel at a version that does not come, round
/// and round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_suggested_for_a_channel_at_the_end_of_a_chain_goes_to_the_whole_chain() {
    let rig = Rig::start(versioned_world()).await;
    let production = "  - name: production\n";
    let last = "  - name: last\n    runtimes: [{runtime: tool}]\n    preconditions:\n    - \
                releaseChannelStable: {releaseChannel: production}\n";
    rig.request(&TWO_CHANNELS.replace(production, &format!("{last}{production}")), true)
        .await
        .unwrap();
    rig.until_status("last", Status::Converged).await;
    let only_last = PushRequest {
        params: [("size".to_owned(), "large".to_owned())].into(),
        channels: Some(vec!["last".to_owned()]),
        ..PushRequest::default()
    };
    let pushed =
        rig.handle.push("app".into(), "web".into(), only_last, caller("eve")).await.unwrap();
    let way = "`pvnctl services push web --app app --channels staging,production,last`";
    assert!(pushed.warnings[0].contains(way), "{:?}", pushed.warnings);
    rig.until_status("last", Status::WaitingPreconditions).await;
    let told = rig.handle.explain(super::target("last")).await.unwrap();
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::UpstreamUnstable).unwrap();
    assert!(cause.message.contains(way), "{}", cause.message);
    // Of the first two alone the third is told.
    let two = PushRequest {
        channels: Some(vec!["staging".to_owned(), "production".to_owned()]),
        ..PushRequest::default()
    };
    let pushed = rig.handle.push("app".into(), "web".into(), two, caller("eve")).await.unwrap();
    assert!(
        pushed.warnings.iter().all(|warning| !warning.contains("last")),
        "it waited for another version before: {:?}",
        pushed.warnings
    );
    let all = ["staging", "production", "last"].map(str::to_owned).to_vec();
    let whole = PushRequest { channels: Some(all), ..PushRequest::default() };
    let pushed = rig.handle.push("app".into(), "web".into(), whole, caller("eve")).await.unwrap();
    assert!(pushed.warnings.is_empty(), "{:?}", pushed.warnings);
    rig.until_status("last", Status::Converged).await;
}

/// A push alone would apply again what somebody has just taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_channel_that_was_taken_back_the_first_way_out_is_to_go_back_too() {
    let rig = Rig::start(|spec| {
        Some(
            i32::from(
                spec.kind == JobKind::Fetch && variable(spec, "PVN_SERVICE_VERSION") == "web-2",
            ) * 2,
        )
    })
    .await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    rig.push(&[]).await.unwrap();
    rig.until_status("production", Status::WaitingPreconditions).await;
    let back =
        RollbackRequest { version: Some("web-1".into()), channels: Some(vec!["staging".into()]) };
    rig.handle.rollback("app".into(), "web".into(), back, caller("eve")).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    let told = rig.handle.explain(super::target("production")).await.unwrap();
    let cause = told
        .causes
        .iter()
        .find(|cause| cause.code == CauseCode::UpstreamUnstable)
        .unwrap()
        .message
        .clone();
    let first = "it was taken back to web-1; `pvnctl services rollback web --app app --to web-1 \
                 --channels production` takes this one back too";
    assert!(cause.contains(first), "{cause}");
    let mended = cause.find("once what was wrong is mended").unwrap();
    assert!(cause.find("services push").is_some_and(|push| mended < push), "{cause}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_past_the_channel_that_must_be_stable_first_is_warned_of_and_says_the_way() {
    let rig = Rig::start(tidy_world()).await;
    let first = rig.request(TWO_CHANNELS, true).await.unwrap();
    assert!(first.warnings.is_empty(), "{first:?}");
    rig.until_converged("web-1").await;
    let request =
        PushRequest { channels: Some(vec!["production".to_owned()]), ..PushRequest::default() };
    let pushed =
        rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    let warnings = serde_json::to_value(pushed).unwrap()["warnings"].clone();
    let way = "pvnctl services push web --app app --channels staging,production";
    let warning = warnings[0].as_str().unwrap_or_default();
    assert!(
        warning.contains("`production` waits until `staging` is converged at web-2")
            && warning.contains(way),
        "{warnings}"
    );
    assert_eq!(warnings.as_array().unwrap().len(), 1);
    let both = serde_json::to_value(rig.push(&[]).await.unwrap()).unwrap();
    assert!(both.get("warnings").is_none(), "nothing to warn of: {both}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_was_put_into_a_row_names_the_push_that_moves_the_whole_row() {
    let rig = Rig::start(versioned_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_converged("web-1").await;
    let production = "  - name: production\n";
    let middle = "  - name: middle\n    runtimes: [{runtime: tool}]\n    preconditions:\n    - \
                  releaseChannelStable: {releaseChannel: staging}\n";
    let (before, after) = TWO_CHANNELS.split_once(production).unwrap();
    let after = after.replace("{releaseChannel: staging}", "{releaseChannel: middle}");
    rig.apply(&format!("{before}{middle}{production}{after}")).await.unwrap();
    let told = async |channel: &str| {
        let told = rig.handle.explain(super::target(channel)).await.unwrap();
        told.causes
            .into_iter()
            .map(|cause| format!("{}: {}", cause.code, cause.message))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let middle = told("middle").await;
    assert!(
        middle.contains(
            "NO_RELEASE: there is no release yet; `pvnctl services push web --app app --channels \
             staging,middle` makes one"
        ),
        "{middle}"
    );
    let request =
        PushRequest { channels: Some(vec!["production".to_owned()]), ..PushRequest::default() };
    rig.handle.push("app".into(), "web".into(), request, caller("root")).await.unwrap();
    rig.until_status("production", Status::WaitingPreconditions).await;
    let production = told("production").await;
    assert!(
        production
            .contains("`pvnctl services push web --app app --channels staging,middle,production`"),
        "{production}"
    );
}
