//! What goes back to an earlier version passes the gates of today and runs what is configured
//! today.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_rollback_by_hand_passes_the_gates_of_today_and_runs_the_commands_of_today() {
    let rig = Rig::start(sick("none", "none")).await;
    let (head, rest) = TWO_CHANNELS.split_once("  - name: production").unwrap();
    let text = format!("{head}---{}", rest.split_once("---").unwrap().1);
    rig.request(&text, true).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    rig.push(&[("size", "large")]).await.unwrap();
    rig.until("web-2", async || {
        (rig.instance("staging").await.converged_version.as_deref() == Some("web-2")).then_some(())
    })
    .await;
    let today = text
        .replace("  custom:\n", "  custom:\n    requireApprovalBeforeApply: true\n")
        .replace("    apply:\n", &format!("    apply:\n      window: {WINDOW}\n"))
        .replace("entrypoint: [do, ", "entrypoint: [do, anew, ")
        .replace(
            "runtimes: [{runtime: tool}]",
            "runtimes: [{runtime: tool}]\n    preconditions: [{manualApproval: {name: cab, \
             minApprovers: 2}}]",
        );
    rig.apply(&today).await.unwrap();
    let applies = rig.runner.applies();

    assert_eq!(rig.back(to("web-1", None)).await.unwrap().version, "web-1");
    rig.until_status("staging", Status::WaitingManualApproval).await;
    for who in ["ann", "bob", "cat"] {
        rig.handle.ask(target("staging"), Ask::Approve(any_plan()), caller(who)).await.unwrap();
    }
    let shut = rig.until_status("staging", Status::WaitingPreconditions).await;
    assert_eq!(shut.reason, Some(Reason::OutsideWindow));
    assert_eq!(rig.runner.applies(), applies, "nothing runs before every gate of today is open");

    rig.apply(&today.replace(&format!("      window: {WINDOW}\n"), "")).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
    assert_eq!(
        rig.last_apply().command.argv,
        ["do", "anew", "medium"],
        "the command of today with the values of web-1"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_an_automatic_rollback_passes_the_gates_of_today_in_the_runtime_of_today() {
    let rig = Rig::start(sick("web-2", "staging")).await;
    rig.request(&goes_back(TWO_CHANNELS), true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until("web-2 failing", async || {
        (rig.instance("staging").await.reason == Some(Reason::ApplyFailed)).then_some(())
    })
    .await;
    let (tool, rest) = TWO_CHANNELS.split_once("---\n").unwrap();
    let today = format!("{tool}---{}---\n{rest}", tool.replace("name: tool\n", "name: other\n"));
    let today = today.replacen(
        "  - name: staging\n    runtimes: [{runtime: tool}]\n",
        "  - name: staging\n    runtimes: [{runtime: other}]\n    preconditions: \
         [{manualApproval: {name: cab}}]\n",
        1,
    );
    rig.apply(&goes_back(&today)).await.unwrap();
    rig.until("the release that goes back", async || (rig.releases().await == 3).then_some(()))
        .await;
    let staging = rig.until_status("staging", Status::WaitingManualApproval).await;
    assert_eq!(
        (staging.runtime.as_str(), staging.desired_version.as_deref()),
        ("other", Some("web-1")),
        "{staging:?}"
    );
    let seen = rig.runner.seen.lock().unwrap().clone();
    let applied: Vec<_> = seen
        .iter()
        .filter(|spec| spec.kind == JobKind::Apply)
        .map(|spec| variable(spec, "PVN_SERVICE_VERSION"))
        .collect();
    assert_eq!(
        applied.iter().filter(|version| *version == "web-1").count(),
        2,
        "nothing goes back before its yes: {applied:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_rollback_by_hand_that_does_not_compile_today_is_refused_with_what_to_do() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(&with_w(false, false), true).await.unwrap();
    rig.request(&with_w(false, true), true).await.unwrap();
    rig.apply(&with_w(true, true)).await.unwrap();
    let refused = rig.back(to("web-1", None)).await.unwrap_err();
    let Refusal::Config(problems) = &refused else { panic!("{refused:?}") };
    assert_eq!(problems.len(), 1, "once, not for each channel: {problems:?}");
    let (message, help) = (&problems[0].message, &problems[0].snippet);
    assert!(
        message.contains("parameter `w` is required") && message.contains("web-1"),
        "{message}"
    );
    assert!(help.contains("pvnctl services push web --app app"), "{help}");
    assert_eq!(rig.releases().await, 2, "nothing is stored");
    assert_eq!(rig.back(to("web-2", None)).await.unwrap().version, "web-2");

    let secret = with_w(true, true)
        .replace("name: do, ", "name: do, env: {TOKEN: {secret: {key: token}}}, ");
    rig.apply(&secret).await.unwrap();
    let refused = rig.back(to("web-2", None)).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Config(problems) if problems[0].message.contains("secret `token` does not exist")),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_an_automatic_rollback_that_does_not_compile_today_is_not_done_and_says_so() {
    let rig = Rig::start(sick("web-2", "staging")).await;
    rig.request(&goes_back(&with_w(false, false)), true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.request(&goes_back(&with_w(false, true)), true).await.unwrap();
    rig.apply(&goes_back(&with_w(true, true))).await.unwrap();
    let staging = rig.until("staging saying why it does not go back", async || {
        Some(rig.instance("staging").await)
            .filter(|staging| staging.message.contains("parameter `w` is required"))
    });
    let staging = staging.await;
    assert_eq!((staging.status, staging.reason), (Status::Failed, Some(Reason::Stuck)));
    let told = rig.handle.explain(target("staging")).await.unwrap();
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::RollbackRefused).unwrap();
    assert!(
        cause.message.contains("web-1") && cause.message.contains("pvnctl services"),
        "{}",
        cause.message
    );
    let filter =
        EventFilter { kind: Some("release.rollback_refused".into()), ..Default::default() };
    assert_eq!(rig.store.events(&filter, &PageRequest::default()).await.unwrap().total, 1);
    assert_eq!(rig.releases().await, 2);
}
