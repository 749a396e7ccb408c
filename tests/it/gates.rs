//! Gates, as people meet them through `pvnctl`: approvals, preconditions, pause, limits; and what
//! `services explain` says while they are shut.

use serde_json::{Value, json};
use tests::files::{Files, task};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

fn start(application: &str, runtime_extra: &str) -> (Scheduler, Files) {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    let base = Files::configs(1, 1);
    let runtime = base.split("---\n").next().expect("the runtime comes first");
    scheduler.apply(&format!(
        "{runtime}{runtime_extra}---\n{application}---\nservice: {{name: s0, application: app}}\n"
    ));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    (scheduler, files)
}

fn codes(scheduler: &Scheduler, channel: &str) -> (Vec<String>, Value) {
    let explained =
        scheduler.json(&["services", "explain", "s0", "--app", "app", "--channel", channel]);
    let causes = explained["causes"].as_array().expect("a list").iter();
    (causes.map(|cause| cause["code"].as_str().expect("a code").to_owned()).collect(), explained)
}

const PIPELINE: &str = "application:\n  name: app\n  releaseChannels:\n  - {name: staging, \
                        runtimes: [{runtime: files}]}\n  - name: production\n    runtimes: \
                        [{runtime: files}]\n    preconditions:\n    - releaseChannelStable: \
                        {releaseChannel: staging}\n    - manualApproval: {name: qa, minApprovers: \
                        1}\n";

#[test]
fn rule_07_production_waits_for_a_stable_staging_and_then_for_a_person() {
    let (scheduler, files) = start(PIPELINE, "");
    scheduler.channel_becomes("s0", "staging", "CONVERGED");
    let waiting = scheduler.channel_becomes("s0", "production", "WAITING_MANUAL_APPROVAL");
    assert_eq!(waiting["approvals"][0]["kind"], "manual");
    assert_eq!(waiting["approvals"][0]["status"], "PENDING");
    assert_eq!(waiting["approvals"][0]["needed"], 1);
    assert_eq!(files.state("s0", "production"), None, "nothing runs before the approval");
    let (causes, explained) = codes(&scheduler, "production");
    assert!(causes.iter().any(|code| code.contains("APPROVAL")), "{explained:#}");
    let text =
        scheduler.ok(&["services", "explain", "s0", "--app", "app", "--channel", "production"]);
    assert!(text.contains("qa") && text.contains("approve"), "it says who must do what: {text}");

    scheduler.ok(&[
        "services",
        "approve",
        "s0",
        "--app",
        "app",
        "--channel",
        "production",
        "--yes",
        "--reason",
        "looks good",
    ]);
    let done = scheduler.channel_becomes("s0", "production", "CONVERGED");
    let approval = &done["approvals"][0];
    assert_eq!(
        (&approval["status"], &approval["by"][0]["reason"]),
        (&json!("APPROVED"), &json!("looks good"))
    );

    // Drift after convergence asks nobody: the approval was for the release.
    files.drift("s0", "production");
    wait::until("the drift to be repaired", || files.state("s0", "production"));
}

#[test]
fn rule_07_a_rejection_fails_the_release_until_a_new_one() {
    let (scheduler, files) = start(PIPELINE, "");
    scheduler.channel_becomes("s0", "production", "WAITING_MANUAL_APPROVAL");
    scheduler.ok(&[
        "services",
        "reject",
        "s0",
        "--app",
        "app",
        "--channel",
        "production",
        "--reason",
        "not today",
    ]);
    let failed = scheduler.channel_becomes("s0", "production", "FAILED");
    assert_eq!(failed["reason"], "MANUAL_APPROVAL_REJECTED");
    assert!(
        failed["message"].as_str().is_some_and(|message| message.contains("not today")),
        "{failed:#}"
    );
    assert_eq!(files.state("s0", "production"), None);
    let again = scheduler.pvnctl([
        "services",
        "approve",
        "s0",
        "--app",
        "app",
        "--channel",
        "production",
        "--yes",
    ]);
    assert_eq!(again.status.code(), Some(1), "what was rejected is not approved afterwards");
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "production", "WAITING_MANUAL_APPROVAL");
}

const TWO: &str = "application:\n  name: app\n  releaseChannels:\n  - {name: a, runtimes: \
                   [{runtime: files}]}\n  - {name: b, runtimes: [{runtime: files}]}\n";

#[test]
fn rule_08_the_one_that_waits_for_a_limit_names_who_holds_it() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    files.hold();
    scheduler.run(&Start::default());
    let base =
        Files::configs(1, 1).replace("    apply:\n", "    apply:\n      maxConcurrency: 1\n");
    let runtime = base.split("---\n").next().expect("the runtime comes first");
    scheduler.apply(&format!("{runtime}---\n{TWO}---\nservice: {{name: s0, application: app}}\n"));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let (holder, waiter) = wait::until("one to apply and the other to wait", || {
        let statuses = ["a", "b"].map(|channel| {
            scheduler.channel("s0", channel)["reason"] == "CONCURRENCY_LIMIT_EXCEEDED"
        });
        match statuses {
            [false, true] => Some(("a", "b")),
            [true, false] => Some(("b", "a")),
            _ => None,
        }
    });
    assert_eq!(scheduler.channel("s0", waiter)["status"], "WAITING_PRECONDITIONS");
    let jobs =
        scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
    let job = jobs[0]["id"].as_str().expect("a job has an id");
    let (_, explained) = codes(&scheduler, waiter);
    let said = explained["causes"].to_string();
    assert!(said.contains(&format!("s0/{holder}")) && said.contains(job), "{explained:#}");
    // A person ends the holder's job: the waiting one goes on.
    scheduler.ok(&["jobs", "cancel", job]);
    files.let_go();
    scheduler.channel_becomes("s0", waiter, "CONVERGED");
    assert_eq!(scheduler.channel("s0", holder)["reason"], "CANCELLED");
    scheduler.ok(&["services", "retry", "s0", "--app", "app", "--channel", holder]);
    scheduler.channel_becomes("s0", holder, "CONVERGED");
}

#[test]
fn rule_10_a_paused_instance_neither_looks_nor_acts_and_says_so() {
    let (scheduler, files) = start(TWO, "");
    scheduler.channel_becomes("s0", "a", "CONVERGED");
    scheduler.ok(&["services", "pause", "s0", "--app", "app", "--channel", "a"]);
    scheduler.channel_becomes("s0", "a", "PAUSED");
    files.drift("s0", "a");
    files.drift("s0", "b");
    wait::until("the other channel to be repaired", || files.state("s0", "b"));
    assert_eq!(files.state("s0", "a"), None);
    let (_, explained) = codes(&scheduler, "a");
    assert!(
        explained["causes"].to_string().contains("resume"),
        "it says what would end it: {explained:#}"
    );
    scheduler.ok(&["services", "resume", "s0", "--app", "app", "--channel", "a"]);
    wait::until("the paused channel to be repaired", || files.state("s0", "a"));
}

#[test]
fn rule_10_an_observed_instance_shows_its_drift_over_a_restart_and_is_repaired_after_resume() {
    let (mut scheduler, files) = start(TWO, "");
    scheduler.channel_becomes("s0", "a", "CONVERGED");
    scheduler.channel_becomes("s0", "b", "CONVERGED");
    let done = scheduler.ok(&["observe", "app/s0@a", "--reason", "disk swap"]);
    assert!(done.is_empty(), "what was done goes to stderr: {done}");
    files.drift("s0", "a");
    files.drift("s0", "b");
    wait::until("the other channel to be repaired", || files.state("s0", "b"));
    let drifted = scheduler.channel_becomes("s0", "a", "CONVERGING");
    assert_eq!(drifted["reason"], "RUNTIME_OBJECT_APPLY_NEEDED");
    assert_eq!(drifted["observed"]["reason"], "disk swap");
    let since = drifted["observed"]["since"].clone();
    let (causes, explained) = codes(&scheduler, "a");
    assert!(causes.iter().any(|code| code == "OBSERVER"), "{explained:#}");
    let text = scheduler.ok(&["explain", "app/s0@a"]).replace(char::is_whitespace, " ");
    assert!(text.contains("observed by admin (disk swap)"), "{text}");
    assert!(text.contains("pvnctl services resume app/s0@a"), "how it ends: {text}");
    let status = scheduler.ok(&["status"]);
    let held_back = status.split("held back").nth(1).unwrap_or_default();
    assert!(held_back.contains("pvnctl resume app/s0@a"), "{status}");

    scheduler.stop();
    scheduler.run(&Start::default());
    let fetches = || jobs(&scheduler, "fetch");
    let seen = fetches();
    wait::until("two more fetches", || (fetches() >= seen + 2).then_some(()));
    let still = scheduler.channel("s0", "a");
    assert_eq!((&still["status"], &still["observed"]["since"]), (&json!("CONVERGING"), &since));
    assert_eq!(files.state("s0", "a"), None, "nothing is repaired");
    scheduler.ok(&["resume", "app/s0@a"]);
    wait::until("the drift to be repaired", || files.state("s0", "a"));
    let repaired = scheduler.channel_becomes("s0", "a", "CONVERGED");
    assert_eq!(repaired.get("observed"), None, "{repaired:#}");
}

#[test]
fn rule_04_an_apply_outside_its_window_waits_and_says_when_it_opens() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    // Open for one second each 1 January: shut now, but for the worst luck.
    let shut = "    apply:\n      window: {schedule: \"0 0 0 1 1 *\", duration: 1s}\n";
    let runtime = Files::configs(1, 1).replace("    apply:\n", shut);
    scheduler.apply(&runtime);
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let waiting = scheduler.channel_becomes("s0", "c0", "WAITING_PRECONDITIONS");
    assert_eq!(waiting["reason"], "OUTSIDE_WINDOW");
    let (_, explained) = codes(&scheduler, "c0");
    assert!(explained["causes"].to_string().contains("-01-01T00:00:00"), "{explained:#}");
    assert_eq!(files.state("s0", "c0"), None);
}

#[test]
fn rule_06_a_retryable_exit_is_tried_again_as_a_job_of_its_own() {
    let scheduler = Scheduler::start();
    let script = r#"echo "$PVN_ATTEMPT" >> attempts; [ "$PVN_ATTEMPT" -ge 3 ] || exit 75"#;
    scheduler.apply(&format!(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n    apply:\n{}      retryableExitCodes: [75]\n      retryPolicy: \
         {{baseInterval: 0.2s, maxInterval: 1s}}\n---\napplication: {{name: app, releaseChannels: [{{name: c0, runtimes: [{{runtime: r}}]}}]}}\n---\nservice: \
         {{name: s0, application: app}}\n",
        task("apply", script)
    ));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    let jobs =
        scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
    let told: Vec<_> = jobs
        .as_array()
        .expect("a list")
        .iter()
        .map(|job| (job["attempt"].as_u64(), job["exitCode"].as_i64()))
        .collect();
    assert_eq!(told, [(Some(3), Some(0)), (Some(2), Some(75)), (Some(1), Some(75))]);
    let attempts =
        std::fs::read_to_string(scheduler.home().join("attempts")).expect("the command ran");
    assert_eq!(attempts, "1\n2\n3\n");
}

#[test]
fn rule_10_an_observer_shows_what_it_would_do_and_does_nothing_until_told_otherwise() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start { arguments: &["--observer"], ..Start::default() });
    let (code, ready) = scheduler.get("/readyz").expect("it answers");
    assert!(
        code == 200 && ready.contains("observer mode: it looks, and applies nothing"),
        "{ready}"
    );
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let told = wait::until("the work to be seen", || {
        let channel = scheduler.channel("s0", "c0");
        (channel["reason"] == "RUNTIME_OBJECT_APPLY_NEEDED").then_some(channel)
    });
    assert!(
        told["message"].as_str().is_some_and(|message| message.contains("would apply s0-1")),
        "{told:#}"
    );
    let fetches = || jobs(&scheduler, "fetch");
    let seen = fetches();
    wait::until("two more fetches", || (fetches() >= seen + 2).then_some(()));
    assert_eq!((jobs(&scheduler, "apply"), files.ledger()), (0, Vec::new()));

    scheduler.stop();
    scheduler.run(&Start::default());
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    scheduler.stop();
    scheduler.run(&Start { arguments: &["--observer"], ..Start::default() });
    files.drift("s0", "c0");
    wait::until("the drift to be seen", || {
        (scheduler.channel("s0", "c0")["status"] == "CONVERGING").then_some(())
    });
    assert_eq!(files.ledger().len(), 1, "an instance of the last run observes too");
}

fn jobs(scheduler: &Scheduler, kind: &str) -> usize {
    scheduler
        .json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", kind])
        .as_array()
        .map_or(0, Vec::len)
}
