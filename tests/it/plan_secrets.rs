//! The secrets of a fetch in the plan that it hands over: nothing that the apply prints shows them,
//! whatever became of them since.

use tests::scheduler::Scheduler;
use tests::wait;

/// As the fetch that made the plan had them, and as `rotate` makes them.
const OLD: &str = "old-token-of-the-fetch";
const NEW: &str = "new-token-after-that";
const RAW: &str = "raw-secret-of-the-fetch";

/// A fetch with secrets that writes them into its plan, and an apply without, which prints the plan
/// and all that it can see. The world is as desired once `done` is there.
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
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("a shell can be started");
    String::from_utf8(output.stdout).expect("base64 is ASCII")
}

/// Both streams of the newest job of a kind.
fn printed(scheduler: &Scheduler, kind: &str) -> String {
    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", kind]);
    let output =
        scheduler.pvnctl(["jobs", "logs", jobs[0]["id"].as_str().expect("a job has an id")]);
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
    let seen = shown
        .lines()
        .filter(|line| line.starts_with("PVN_HIDDEN_"))
        .filter(|line| !line.trim_end_matches('\0').ends_with('='));
    assert_eq!(seen.count(), 0, "the command does not see what it is not given: {shown}");
    let job =
        &scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", "apply"])[0];
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

/// A fetch that prints what is live beside what is wanted, as tools that compare do: by the wrapper
/// as its command, and by one within its command. What is live is what `TOKEN` was at the last
/// apply. Nobody but the config names `TOKEN`'s value.
const COMPARES: &str = r#"
runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    parameters: [{name: token, secret: {}}]
    fetch:
      pollInterval: 1s
      steadyStatePollInterval: 1s
      env: {TOKEN: VALUE}
      taskConfig:
        program:
          name: look
          entrypoint: [sh, -c]
          cmd: ['exec pvn-wrapper exec --success-exit-codes=0,2 --out=plan=the.plan --out=plan-explanation=the.txt -- sh look.sh']
    apply:
      env: {TOKEN: VALUE}
      taskConfig: {program: {name: do, cmd: [sh, -c, 'echo "it was $(cat live)"; env; printf %s "$TOKEN" >live']}}
    getInfo:
      pollInterval: 1s
      taskConfig: {program: {name: info, cmd: [sh, -c, 'echo "it is $(cat live)"; env; exit 1']}}
---
application: {name: app, releaseChannels: [{name: c, runtimes: [{runtime: r}]}]}
---
service:
  name: s
  application: app
  PARAMETERS
"#;

const LOOK: &str = r#"
env | grep PVN_HIDDEN_.*=
[ "$(cat live 2>/dev/null)" = "$TOKEN" ] && { echo same | tee the.txt >the.plan; exit 0; }
printf -- '- token = %s\n+ token = %s\n' "$(cat live 2>/dev/null)" "$TOKEN" | tee the.txt the.plan
exit 2
"#;

/// Sets the secret first, then anew; nothing that people can read shows its old value while that is
/// live.
fn rotates(
    value: &str,
    parameters: &str,
    first: impl FnOnce(&Scheduler, &str),
    anew: impl FnOnce(&Scheduler, &str),
) -> Scheduler {
    let scheduler = Scheduler::start();
    std::fs::write(scheduler.home().join("look.sh"), LOOK).expect("a file can be written");
    let config = COMPARES.replace("VALUE", value).replace("PARAMETERS", parameters);
    let approve = || {
        scheduler.channel_becomes("s", "c", "WAITING_MANUAL_APPROVAL");
        scheduler.ok(&["services", "approve", "s", "--app", "app", "--channel", "c", "--yes"]);
        scheduler.channel_becomes("s", "c", "CONVERGED");
    };
    first(&scheduler, &config);
    approve();
    anew(&scheduler, &config);
    scheduler.channel_becomes("s", "c", "WAITING_MANUAL_APPROVAL");
    let get = |path: &str| {
        let answer = scheduler
            .http(reqwest::Method::GET, path)
            .bearer_auth(scheduler.token())
            .send()
            .expect("it answers");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.text().expect("it is text")
    };
    let jobs =
        scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", "fetch"]);
    let jobs = jobs.as_array().expect("it is a list");
    let found = jobs.iter().find(|job| job["exitCode"] == 2).expect("a fetch found work");
    let fetch = found["id"].as_str().expect("a job has an id");
    let instance = get("/v1/applications/app/services/s/channels/c");
    let explanation = get(&format!("/v1/jobs/{fetch}/files/plan-explanation?offset=0"));
    assert_eq!(explanation, "- token = ***\n+ token = ***\n");
    let log = printed(&scheduler, "fetch");
    assert!(log.contains("- token = ***\n+ token = ***\n"), "{log}");
    let info = wait::until("a getInfo that failed after that", || {
        let shown = printed(&scheduler, "get-info");
        shown.contains("it is ***").then_some(shown)
    });
    approve();
    let apply = printed(&scheduler, "apply");
    assert!(apply.contains("it was ***"), "{apply}");
    for shown in [
        &instance,
        &log,
        &info,
        &apply,
        &get("/v1/events?limit=1000"),
        &get(&format!("/v1/jobs/{fetch}")),
    ] {
        assert!(!shown.contains(OLD) && !shown.contains(NEW), "{shown}");
        assert!(!shown.contains("PVN_HIDDEN_0="), "a command sees none of it: {shown}");
    }
    scheduler
}

fn pushed(scheduler: &Scheduler, config: &str) {
    scheduler.apply(config);
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
}

#[test]
fn the_old_value_of_a_secret_that_was_set_anew_is_masked_while_it_is_live() {
    let first = |scheduler: &Scheduler, config: &str| {
        set(scheduler, OLD);
        pushed(scheduler, config);
    };
    rotates("{secret: {key: token}}", "", first, |scheduler, _| set(scheduler, NEW));
}

#[test]
fn the_old_value_of_a_secret_parameter_is_masked_while_it_is_live() {
    let push = |scheduler: &Scheduler, value: &str| {
        let body = serde_json::json!({"params": {"token": value}});
        let path = "/v1/applications/app/services/s/push";
        let answer = scheduler
            .http(reqwest::Method::POST, path)
            .bearer_auth(scheduler.token())
            .json(&body)
            .send();
        assert!(answer.expect("it answers").status().is_success());
    };
    let parameters = "parameters: [{name: token, secret: {}}]\n  customRuntime: {parameterValues: \
                      [{name: token, string: '{{.Params.token}}'}]}";
    let first = |scheduler: &Scheduler, config: &str| {
        scheduler.apply(config);
        push(scheduler, OLD);
    };
    rotates("{value: '{{.Params.token}}'}", parameters, first, |scheduler, _| push(scheduler, NEW));
}

#[test]
fn the_old_value_of_a_raw_secret_is_masked_while_it_is_live() {
    let first =
        |scheduler: &Scheduler, config: &str| pushed(scheduler, &config.replace("RAW", OLD));
    rotates("{rawSecret: RAW}", "", first, |scheduler, config| {
        drop(scheduler.apply(&config.replace("RAW", NEW)))
    });
}

#[test]
fn a_secret_that_is_live_cannot_be_deleted_until_an_apply_without_it_has_run() {
    let first = |scheduler: &Scheduler, config: &str| {
        set(scheduler, OLD);
        pushed(scheduler, config);
    };
    let delete = ["secrets", "delete", "token"];
    let scheduler = rotates("{secret: {key: token}}", "", first, |scheduler, config| {
        scheduler
            .apply(&config.replace("{secret: {key: token}}", &format!("{{rawSecret: {NEW}}}")));
        let refused = scheduler.pvnctl(delete);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            refused.status.code() == Some(1) && said.contains("may be live at service `app/s`"),
            "{said}"
        );
    });
    scheduler.ok(&delete);
}

#[test]
fn a_secret_whose_value_another_has_by_now_can_be_deleted_once_fetch_has_seen_that() {
    let scheduler = Scheduler::start();
    std::fs::write(scheduler.home().join("look.sh"), LOOK).expect("a file can be written");
    set(&scheduler, OLD);
    let config = COMPARES.replace("PARAMETERS", "").replace("VALUE", "{secret: {key: token}}");
    pushed(&scheduler, &config);
    scheduler.channel_becomes("s", "c", "WAITING_MANUAL_APPROVAL");
    scheduler.ok(&["services", "approve", "s", "--app", "app", "--channel", "c", "--yes"]);
    scheduler.channel_becomes("s", "c", "CONVERGED");
    scheduler.apply(&config.replace("{secret: {key: token}}", &format!("{{rawSecret: {OLD}}}")));
    wait::until("the secret to be free", || {
        scheduler.pvnctl(["secrets", "delete", "token"]).status.success().then_some(())
    });
    scheduler.channel_becomes("s", "c", "CONVERGED");
}
