//! The secrets of a fetch in the plan that it hands over: nothing that the apply prints shows them, whatever became of them since.

use tests::scheduler::Scheduler;
use tests::wait;

/// As the fetch that made the plan had them, and as `rotate` makes them.
const OLD: &str = "old-token-of-the-fetch";
const NEW: &str = "new-token-after-that";
const RAW: &str = "raw-secret-of-the-fetch";

/// A fetch with secrets that writes them into its plan, and an apply without, which prints the plan and all that it can see. The
/// world is as desired once `done` is there.
const CONFIG: &str = r#"
runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    fetch:
      pollInterval: 1s
      env: {TOKEN: {secret: {key: token}}, RAW: {rawSecret: raw-secret-of-the-fetch}}
      taskConfig:
        program:
          name: look
          cmd:
          - pvn-wrapper
          - exec
          - --success-exit-codes=0,2
          - --out=plan=the.plan
          - --out=plan-explanation=the.txt
          - --
          - sh
          - -c
          - '[ -e done ] && { : >the.plan; : >the.txt; exit 0; }; echo "$TOKEN $RAW" >the.plan; echo one change >the.txt; exit 2'
    apply:
      taskConfig:
        program:
          name: do
          cmd:
          - pvn-wrapper
          - exec
          - --in=handed=fetch:plan
          - --
          - sh
          - -c
          - 'echo "plan: $(cat handed)"; base64 -w0 handed >&2; env; tr "\\0" "\\n" </proc/$PPID/environ; touch done'
---
application: {name: app, releaseChannels: [{name: c, runtimes: [{runtime: r}]}]}
---
service: {name: s, application: app}
"#;

fn set(scheduler: &Scheduler, value: &str) {
    let answer = scheduler
        .http(reqwest::Method::PUT, "/v1/secrets/token")
        .bearer_auth(scheduler.token())
        .json(&serde_json::json!({"value": base64(value)}))
        .send();
    assert!(answer.expect("it answers").status().is_success());
}

/// Base64 of a short text, by the tool that people have.
fn base64(text: &str) -> String {
    let script = format!("printf %s '{text}' | base64 -w0");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell can be started");
    String::from_utf8(output.stdout).expect("base64 is ASCII")
}

/// Both streams of the newest job of a kind.
fn printed(scheduler: &Scheduler, kind: &str) -> String {
    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", kind]);
    let output = scheduler.pvnctl(["jobs", "logs", jobs[0]["id"].as_str().expect("a job has an id")]);
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn check(meanwhile: impl FnOnce(&Scheduler)) {
    let scheduler = Scheduler::start();
    set(&scheduler, OLD);
    scheduler.apply(CONFIG);
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    scheduler.channel_becomes("s", "c", "WAITING_MANUAL_APPROVAL");
    meanwhile(&scheduler);
    scheduler.ok(&["services", "approve", "s", "--app", "app", "--channel", "c", "--yes"]);
    scheduler.channel_becomes("s", "c", "CONVERGED");
    let handed = std::fs::read_to_string(scheduler.home().join("handed")).unwrap_or_default();
    assert!(handed.is_empty(), "the input is gone afterwards");
    let shown = printed(&scheduler, "apply");
    assert!(shown.contains("plan: *** ***"), "the plan is masked: {shown}");
    for secret in [OLD, NEW, RAW] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
        // The head of its base64, as far as it does not depend on what follows.
        let head = base64(secret);
        assert!(!shown.contains(&head[..head.len() - 4]), "{secret} in base64: {shown}");
    }
    let seen = shown.lines().filter(|line| line.starts_with("PVN_HIDDEN_")).filter(|line| !line.trim_end_matches('\0').ends_with('='));
    assert_eq!(seen.count(), 0, "the command does not see what it is not given: {shown}");
    let job = &scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", "apply"])[0];
    assert!(!job.to_string().contains(OLD), "{job}");
}

#[test]
fn a_secret_that_only_the_fetch_had_is_masked_in_what_the_apply_prints_of_its_plan() {
    check(|_| {});
}

#[test]
fn a_secret_that_was_set_anew_while_the_plan_waited_is_masked_as_the_fetch_had_it() {
    check(|scheduler| set(scheduler, NEW));
}

#[test]
fn a_secret_in_a_plan_that_waits_cannot_be_deleted_and_made_again() {
    check(|scheduler| {
        let refused = scheduler.pvnctl(["secrets", "delete", "token"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && said.contains("app/s"), "{said}");
        set(scheduler, NEW);
        wait::until("the new version", || {
            let secrets = scheduler.json(&["secrets", "list"]);
            (secrets[0]["versions"] == serde_json::json!([1, 2])).then_some(())
        });
    });
}
