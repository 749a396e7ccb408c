//! What the driver decides to tell, from what happens to services.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use pvn_scheduler::driver::Ask;
use pvn_scheduler::store::{NotificationFilter, PageRequest};
use schema::api::Notification;
use schema::notification::NotificationStatus;
use schema::status::{JobKind, Status};

use crate::driver::{APPROVAL, Rig, caller, target};

/// With a target for all, and one that wants to know of arrivals alone.
fn with_targets(config: &str) -> String {
    let targets = "application:\n  name: app\n  notifications:\n  - {name: chat, slack: {url: \
                   {value: \"https://hooks.example.com/x\"}}}\n  - {name: log, webhook: {url: \
                   {value: \"https://log.example.com\"}}, events: [CONVERGED]}\n";
    config.replace("application:\n  name: app\n", targets)
}

async fn told(rig: &Rig) -> Vec<Notification> {
    let (filter, page) = (NotificationFilter::default(), PageRequest::default());
    let mut items = rig.store.notifications(&filter, &page).await.unwrap().items;
    items.reverse();
    items
}

fn lines(told: &[Notification]) -> Vec<String> {
    told.iter().map(|one| format!("{} {} {}", one.target, one.kind, one.text)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_a_failure_and_its_end_are_told_once_each_and_kept_over_a_crash() {
    let apply = Arc::new(AtomicI32::new(1));
    let code = apply.clone();
    let play = move |spec: &pvn_scheduler::runner::JobSpec| {
        let is_done = code.load(Ordering::SeqCst) == 2;
        Some(match spec.kind {
            JobKind::Fetch if is_done => 0,
            JobKind::Fetch => 2,
            JobKind::Apply if code.load(Ordering::SeqCst) == 0 => {
                code.store(2, Ordering::SeqCst);
                0
            }
            _ => 1,
        })
    };
    let rig = Rig::start(play.clone()).await;
    rig.request(&with_targets(APPROVAL), true).await.unwrap();
    rig.until_status("only", Status::WaitingManualApproval).await;
    let yes = || Ask::Approve(crate::driver::any_plan());
    rig.handle.ask(target("only"), yes(), caller("ann")).await.unwrap();
    rig.until_status("only", Status::Failed).await;
    let before = told(&rig).await;
    assert_eq!(
        lines(&before),
        [
            "chat APPROVAL_ASKED app/web@only asks for approval (web-1)",
            "chat FAILED app/web@only failed (web-1)",
        ]
    );
    assert!(before[0].why.contains("the approval of this apply is asked for web-1"), "{before:?}");
    let instance = rig.instance("only").await;
    assert_eq!(before[1].why, instance.message, "the words of explain");
    assert!(before.iter().all(|one| one.status == NotificationStatus::Pending));

    // Nobody has sent anything, and nothing is lost or told again.
    let rig = rig.crash(play).await;
    apply.store(0, Ordering::SeqCst);
    rig.handle.ask(target("only"), Ask::Retry, caller("ann")).await.unwrap();
    rig.until_status("only", Status::WaitingManualApproval).await;
    rig.handle.ask(target("only"), yes(), caller("ann")).await.unwrap();
    rig.until_status("only", Status::Converged).await;
    let after = told(&rig).await;
    assert_eq!(after[..2], before[..]);
    assert_eq!(
        lines(&after[2..]),
        [
            "chat APPROVAL_ASKED app/web@only asks for approval (web-1)",
            "chat RECOVERED app/web@only is well again (web-1)",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_with_the_config_that_names_a_target_is_told_to_that_target() {
    let rig = Rig::start(crate::driver::tidy_world()).await;
    let asking = crate::driver::TWO_CHANNELS.replace(
        "name: staging\n",
        "name: staging\n    preconditions: [{manualApproval: {name: qa}}]\n",
    );
    // Without a fetch people are asked in the very commit that brings the config.
    let fetch = "    fetch:\n      pollInterval: 1s\n      steadyStatePollInterval: 3600s\n      \
                 taskConfig: {program: {name: look, entrypoint: [look]}}\n";
    let asking = asking.replace(fetch, "");
    assert!(!asking.contains("fetch") && asking.contains("qa"), "{asking}");
    let config = with_targets(&asking);
    rig.request(&config, true).await.unwrap();
    rig.until_status("staging", Status::WaitingManualApproval).await;
    let first = lines(&told(&rig).await);
    assert_eq!(first, ["chat APPROVAL_ASKED app/web@staging asks for approval (web-1)"]);
    // Another name from the moment that it is stored.
    rig.request(&config.replace("name: chat", "name: talk"), true).await.unwrap();
    rig.until("the second release", async || (told(&rig).await.len() == 2).then_some(())).await;
    let second = lines(&told(&rig).await[1..]);
    assert_eq!(second, ["talk APPROVAL_ASKED app/web@staging asks for approval (web-2)"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_arrivals_is_told_of_them_and_nobody_without_a_target_is() {
    let rig = Rig::start(crate::driver::tidy_world()).await;
    rig.request(crate::driver::TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    assert!(told(&rig).await.is_empty());
    rig.request(&with_targets(crate::driver::TWO_CHANNELS), false).await.unwrap();
    rig.push(&[("size", "large")]).await.unwrap();
    rig.until("arriving", async || (told(&rig).await.len() == 2).then_some(())).await;
    // What has nothing to apply waits for no other channel.
    let mut arrived = lines(&told(&rig).await);
    arrived.sort();
    assert_eq!(
        arrived,
        [
            "log CONVERGED app/web@production is converged (web-2)",
            "log CONVERGED app/web@staging is converged (web-2)",
        ]
    );
}
