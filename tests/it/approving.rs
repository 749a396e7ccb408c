//! Approving as people do it: with the command that was printed to them, or asked on a terminal. A
//! yes is for the plan that was seen, and no other.

use std::os::unix::process::ExitStatusExt;

use nix::libc::SIGINT;
use serde_json::{Value, json};
use tests::scheduler::Scheduler;
use tests::terminal::Terminal;
use tests::wait;

const TYPED: &[&str] = &["services", "approve", "s", "--app", "app", "--channel", "c"];

/// A service whose plan is what the file `plan` holds, and which waits for a person.
fn waiting() -> (Scheduler, Value) {
    waiting_for("[ -e done ] || { cat plan; exit 2; }")
}

/// The same with another fetch.
fn waiting_for(fetch: &str) -> (Scheduler, Value) {
    let scheduler = Scheduler::start();
    std::fs::write(scheduler.home().join("plan"), "one bucket more\n")
        .expect("a file can be written");
    let command = json!({"program": {"name": "look", "entrypoint": ["sh", "-c"], "cmd": [fetch]}});
    scheduler.apply(&format!(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
         requireApprovalBeforeApply: true\n    fetch: {{pollInterval: 1s, taskConfig: \
         {command}}}\n    apply:\n      taskConfig: {{program: {{name: do, entrypoint: [sh, -c], \
         cmd: ['touch done']}}}}\n---\napplication: {{name: app, releaseChannels: [{{name: c, \
         runtimes: [{{runtime: r}}]}}]}}\n---\nservice: {{name: s, application: app}}\n"
    ));
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    let waiting = scheduler.channel_becomes("s", "c", "WAITING_MANUAL_APPROVAL");
    (scheduler, waiting["approvals"][0].clone())
}

/// The world changes, and with it the plan that people are asked about.
fn another_plan(scheduler: &Scheduler, old: &Value) -> Value {
    std::fs::write(scheduler.home().join("plan"), "every bucket less\n")
        .expect("a file can be written");
    wait::until("another plan to be asked about", || {
        let newest = scheduler.channel("s", "c")["approvals"][0].clone();
        (newest["status"] == "PENDING" && newest["planDigest"] != old["planDigest"])
            .then_some(newest)
    })
}

/// The command after `approve it: ` in what `services get` prints, as words.
fn printed(scheduler: &Scheduler) -> Vec<String> {
    let shown = scheduler.ok(&["services", "get", "s", "--app", "app"]);
    let line = shown
        .lines()
        .find_map(|line| line.strip_prefix("approve it: pvnctl "))
        .unwrap_or_else(|| panic!("no command in {shown}"));
    line.split(' ').map(str::to_owned).collect()
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn p2_the_command_that_was_printed_approves_the_plan_that_was_shown_and_no_other() {
    let (scheduler, first) = waiting();
    let old = printed(&scheduler);
    let explained = scheduler.json(&["services", "explain", "s", "--app", "app", "--channel", "c"]);
    // For programs the names stand apart, and the rest is word for word the same.
    let [_, verb, address, flags @ ..] = old.as_slice() else { panic!("{old:?}") };
    assert_eq!(address, "app/s@c");
    let whole = format!("services {verb} s --app app --channel c {}`", flags.join(" "));
    assert!(
        explained["causes"].to_string().contains(&whole),
        "explain says the same: {explained:#}"
    );
    let second = another_plan(&scheduler, &first);
    let refused = scheduler.pvnctl(&old);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(
        said(&refused).contains("pvnctl services"),
        "it says what to look at: {}",
        said(&refused)
    );

    // Who names the plan alone is refused by it.
    let by_digest =
        [TYPED, &["--plan-digest", first["planDigest"].as_str().expect("it has a digest")]]
            .concat();
    let refused = scheduler.pvnctl(&by_digest);
    for digest in [&first["planDigest"], &second["planDigest"]] {
        assert!(
            said(&refused).contains(digest.as_str().expect("it has a digest")),
            "both are named: {}",
            said(&refused)
        );
    }
    // Neither does the API take a yes to a plan that nobody names.
    let path = "/v1/applications/app/services/s/channels/c/approve";
    let answer = scheduler
        .http(reqwest::Method::POST, path)
        .bearer_auth(scheduler.token())
        .json(&json!({}))
        .send()
        .expect("it answers");
    let (status, body) = (answer.status().as_u16(), answer.text().expect("it has a body"));
    assert!(
        status == 400 && body.contains("planDigest") && body.contains("anyPlan"),
        "{status}: {body}"
    );
    assert!(!scheduler.home().join("done").exists(), "nothing was applied");

    let agreed = scheduler.pvnctl(printed(&scheduler));
    let digest = second["planDigest"].as_str().expect("it has a digest");
    assert!(
        agreed.status.success() && said(&agreed).contains(digest),
        "the answer names the plan: {}",
        said(&agreed)
    );
    scheduler.channel_becomes("s", "c", "CONVERGED");
    let shown = scheduler.ok(&["services", "get", "s", "--app", "app"]);
    assert!(shown.contains(&format!("of plan {digest} in c is APPROVED by ")), "{shown}");
    let (_, events) = scheduler.get("/v1/events?kind=approval.decided").expect("it answers");
    let events: Value = serde_json::from_str(&events).expect("the events are JSON");
    let entry = &events["items"][0];
    assert_eq!(entry["data"]["planDigest"], digest, "{events:#}");
    assert!(
        entry["message"].as_str().is_some_and(|message| message.contains(digest)),
        "{events:#}"
    );
}

/// Types `approve` on a terminal and these keys at its question; how it ended, and what was shown.
fn asked(scheduler: &Scheduler, keys: &str) -> (std::process::ExitStatus, String) {
    let mut terminal = Terminal::start(&scheduler.client(TYPED));
    terminal.shows("Approve this? [y/N]");
    terminal.types(keys);
    let status = terminal.ends();
    (status, terminal.text())
}

#[test]
fn p2_on_a_terminal_approve_shows_the_plan_and_only_a_yes_lets_it_through() {
    let (scheduler, approval) = waiting();
    for keys in ["n\n", "\n", "\x04"] {
        let (status, shown) = asked(&scheduler, keys);
        assert_eq!(status.code(), Some(1), "{keys:?}: {shown}");
        for part in [
            "s-1",
            "one bucket more",
            approval["planDigest"].as_str().expect("it has a digest"),
            "nothing was approved",
        ] {
            assert!(shown.contains(part), "{keys:?}: {part} is shown: {shown}");
        }
    }
    let (status, shown) = asked(&scheduler, "\x03");
    assert_eq!(status.signal(), Some(SIGINT), "Ctrl-C ends it: {shown}");
    assert_eq!(scheduler.channel("s", "c")["approvals"][0]["status"], "PENDING");

    let (status, shown) = asked(&scheduler, "y\n");
    assert!(status.success(), "{shown}");
    scheduler.channel_becomes("s", "c", "CONVERGED");
}

#[test]
fn p2_a_plan_that_came_while_the_question_stood_on_the_terminal_is_not_approved() {
    let (scheduler, first) = waiting();
    let mut terminal = Terminal::start(&scheduler.client(TYPED));
    terminal.shows("Approve this? [y/N]");
    another_plan(&scheduler, &first);
    terminal.types("y\n");
    // That one is shown, and asked about.
    terminal.shows("fetch has found another plan meanwhile");
    terminal.shows("every bucket less");
    terminal.types("n\n");
    assert_eq!(terminal.ends().code(), Some(1), "{}", terminal.text());
    assert_eq!(scheduler.channel("s", "c")["approvals"][0]["status"], "PENDING");
    assert!(!scheduler.home().join("done").exists(), "nothing was applied");
}

#[test]
fn a_plan_that_differs_at_each_look_is_told_with_what_differs() {
    let (scheduler, first) = waiting_for(
        "[ -e done ] && exit 0; echo x >>looks; exec pvn-wrapper exec --success-exit-codes 2 \
         --out plan-explanation=words -- sh -c 'echo --- look $(wc -l <looks) >words; exit 2'",
    );
    let told = wait::until("the third plan", || {
        let channel = scheduler.channel("s", "c");
        let message = channel["message"].as_str().unwrap_or_default();
        message.contains("times another plan has taken the place").then(|| message.to_owned())
    });
    assert!(told.contains("in line 1: `--- look "), "{told}");
    assert!(told.contains("leave out of `plan-explanation`"), "{told}");
    let id = first["id"].as_str().expect("it has an id");
    let refused = scheduler.pvnctl([TYPED, &["--approval", id, "--yes"]].concat());
    assert!(said(&refused).contains("fetch has found another plan for"), "{}", said(&refused));
    scheduler.ok(&[TYPED, &["--yes"]].concat());
}

/// A service whose channel waits for `gate`, with a plan that is the same whatever its apply does.
fn gated(gate: &str) -> (Scheduler, impl Fn(&Scheduler, &str) -> String) {
    let configs = format!(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n    fetch:\n      \
         pollInterval: 1s\n      taskConfig: {{program: {{name: look, entrypoint: [sh, -c], cmd: \
         ['[ -e done ] || {{ echo one bucket more; exit 2; }}']}}}}\n    apply:\n      \
         taskConfig: {{program: {{name: do, entrypoint: [sh, -c], cmd: \
         ['COMMAND']}}}}\n---\napplication: {{name: app, releaseChannels: [{{name: c, runtimes: \
         [{{runtime: r}}], preconditions: [{gate}]}}]}}\n---\nservice: {{name: s, application: \
         app}}\n"
    );
    let apply = move |scheduler: &Scheduler, command: &str| {
        scheduler.apply(&configs.replace("COMMAND", command))
    };
    let scheduler = Scheduler::start();
    apply(&scheduler, "touch done");
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    scheduler.channel_becomes("s", "c", "WAITING_MANUAL_APPROVAL");
    (scheduler, apply)
}

#[test]
fn p2_commands_that_came_while_the_question_stood_on_the_terminal_are_not_approved() {
    for gate in ["{manualApproval: {name: qa}}", "{sharedManualApproval: {name: qa}}"] {
        let (scheduler, apply) = gated(gate);
        let (old, first) =
            (printed(&scheduler), scheduler.channel("s", "c")["approvals"][0].clone());
        let mut terminal = Terminal::start(&scheduler.client(TYPED));
        terminal.shows("Approve this? [y/N]");
        apply(&scheduler, "touch everything.gone done");
        let second = wait::until("what is asked anew", || {
            let newest = scheduler.channel("s", "c")["approvals"][0].clone();
            (newest["status"] == "PENDING" && newest["id"] != first["id"]).then_some(newest)
        });
        assert_eq!(second["planDigest"], first["planDigest"], "{gate}: the plan does not tell");
        terminal.types("y\n");
        assert_eq!(terminal.ends().code(), Some(1), "{gate}: {}", terminal.text());
        let refused = scheduler.pvnctl(&old);
        assert_eq!(refused.status.code(), Some(1), "{gate}: {}", said(&refused));
        assert!(
            said(&refused).contains("pvnctl services get"),
            "{gate}: it says what to look at: {}",
            said(&refused)
        );
        let by_digest =
            [TYPED, &["--plan-digest", first["planDigest"].as_str().expect("it has a digest")]]
                .concat();
        let refused = scheduler.pvnctl(&by_digest);
        assert!(
            refused.status.code() == Some(1) && said(&refused).contains("other commands"),
            "{gate}: {}",
            said(&refused)
        );
        assert_eq!(scheduler.channel("s", "c")["approvals"][0]["status"], "PENDING", "{gate}");
        assert!(!scheduler.home().join("done").exists(), "{gate}: nothing was applied");
        scheduler.ok(&printed(&scheduler).iter().map(String::as_str).collect::<Vec<_>>());
        scheduler.channel_becomes("s", "c", "CONVERGED");
        assert!(
            scheduler.home().join("everything.gone").exists(),
            "{gate}: what was shown last runs"
        );
    }
}

#[test]
fn p2_a_digest_that_was_asked_about_for_another_release_is_no_yes_without_the_approval() {
    for gate in ["{manualApproval: {name: qa}}", "{sharedManualApproval: {name: qa}}"] {
        let (scheduler, _apply) = gated(gate);
        let first = scheduler.channel("s", "c")["approvals"][0].clone();
        scheduler.ok(&["services", "push", "s", "--app", "app"]);
        let second = wait::until("the next release to be asked about", || {
            let newest = scheduler.channel("s", "c")["approvals"][0].clone();
            (newest["status"] == "PENDING"
                && newest["version"] == "s-2"
                && newest["planDigest"].is_string())
            .then_some(newest)
        });
        assert_eq!(second["planDigest"], first["planDigest"], "{gate}: the plan does not tell");
        let (digest, id) = (
            second["planDigest"].as_str().expect("it has a digest"),
            second["id"].as_str().expect("it has an id"),
        );
        // The approval's name says no more: it is the same in every release.
        for named in
            [&["--plan-digest", digest][..], &["--approval", "qa", "--plan-digest", digest]]
        {
            let refused = scheduler.pvnctl([TYPED, named].concat());
            assert_eq!(refused.status.code(), Some(1), "{gate}: {}", said(&refused));
            for part in [
                "s-1",
                "s-2",
                "plan-explanation",
                "pvnctl services get app/s`",
                &format!("--approval {id} --plan-digest {digest}`"),
            ] {
                assert!(
                    said(&refused).contains(part),
                    "{gate}: {named:?}: {part}: {}",
                    said(&refused)
                );
            }
        }
        assert_eq!(scheduler.channel("s", "c")["approvals"][0]["status"], "PENDING", "{gate}");
        let agreed =
            scheduler.pvnctl([TYPED, &["--approval", id, "--plan-digest", digest]].concat());
        assert!(
            agreed.status.success() && said(&agreed).contains("approved app/s s-2 in c: "),
            "{gate}: {}",
            said(&agreed)
        );
        scheduler.channel_becomes("s", "c", "CONVERGED");
    }
}

#[test]
fn p2_nor_is_one_whose_plan_explanation_says_the_same_of_another_release() {
    for (custom, gate) in
        [("", "{manualApproval: {name: qa}}"), ("requireApprovalBeforeApply: true", "")]
    {
        let scheduler = Scheduler::start();
        scheduler.apply(&format!(
            "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
                 {custom}\n    fetch:\n      pollInterval: 1s\n      taskConfig: {{program: \
                 {{name: look, entrypoint: [pvn-wrapper, exec, --out, plan-explanation=plan.txt, \
                 --success-exit-codes, '2', --, sh, -c], cmd: ['[ -e done ] && exit 0; echo one \
                 bucket more > plan.txt; exit 2']}}}}\n    apply:\n      taskConfig: {{program: \
                 {{name: do, entrypoint: [sh, -c], cmd: ['touch done']}}}}\n---\napplication: \
                 {{name: app, releaseChannels: [{{name: c, runtimes: [{{runtime: r}}], \
                 preconditions: [{gate}]}}]}}\n---\nservice: {{name: s, application: app}}\n"
        ));
        let asked = |version: &str| {
            scheduler.ok(&["services", "push", "s", "--app", "app"]);
            wait::until("the release to be asked about", || {
                let newest = scheduler.channel("s", "c")["approvals"][0].clone();
                (newest["status"] == "PENDING"
                    && newest["version"] == version
                    && newest["explanation"].is_string())
                .then_some(newest)
            })
        };
        let (first, second) = (asked("s-1"), asked("s-2"));
        assert_eq!(second["planDigest"], first["planDigest"], "{gate}: the plan does not tell");
        let (digest, id) = (
            second["planDigest"].as_str().expect("it has a digest"),
            second["id"].as_str().expect("it has an id"),
        );
        let refused = scheduler.pvnctl([TYPED, &["--plan-digest", digest]].concat());
        assert_eq!(refused.status.code(), Some(1), "{gate}: {}", said(&refused));
        for part in [
            "s-1",
            "s-2",
            "says the same of both",
            &format!("--approval {id} --plan-digest {digest}`"),
        ] {
            assert!(said(&refused).contains(part), "{gate}: {part}: {}", said(&refused));
        }
        assert!(!scheduler.home().join("done").exists(), "{gate}: nothing was applied");
        scheduler.ok(&[TYPED, &["--approval", id, "--plan-digest", digest]].concat());
        scheduler.channel_becomes("s", "c", "CONVERGED");
    }
}
