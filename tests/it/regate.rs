//! What was decided and not yet handed over when a gate shut (promise P2): the daemon is killed
//! between commit and perform and comes back to another world, or a person comes in between.

use tests::clock::Clock;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// The apply's is the second start, after that of the fetch that finds the work.
const APPLY_DECIDED: &str = "before-start:2";

/// 2031-05-07T09:30:00Z, a Wednesday.
const HALF_PAST_NINE: i64 = 1_935_912_600;

/// A gate that shuts while the daemon is down.
struct Shut<'a> {
    name: &'a str,
    /// What the line `apply:` of the runtime becomes.
    apply: &'a str,
    /// Whether a person has to let it through first.
    asks: bool,
    /// Arguments of the second start.
    arguments: &'a [&'a str],
    /// How the instance then stands.
    status: &'a str,
}

/// The daemon dies at half past nine with a decided apply, and is started again two hours later by
/// its clock.
fn check(clock: &Clock, shut: &Shut<'_>) {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    let variables = clock.variables();
    clock.shows(HALF_PAST_NINE);
    scheduler.spawn(&Start {
        crash_at: Some(APPLY_DECIDED),
        variables: &variables,
        ..Start::default()
    });
    wait::until("the scheduler to be ready", || {
        scheduler.pvnctl(["runtimes", "list", "-o", "json"]).status.success().then_some(())
    });
    // One fetch, whose start is the first.
    let configs = Files::configs(1, 1)
        .replace("      pollInterval: 1s\n", "      pollInterval: 1h\n")
        .replace("    apply:\n", shut.apply);
    scheduler.apply(&configs);
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    if shut.asks {
        scheduler.channel_becomes("s0", "c0", "WAITING_MANUAL_APPROVAL");
        // The daemon may die before it answers.
        let _yes = scheduler.pvnctl([
            "services",
            "approve",
            "s0",
            "--app",
            "app",
            "--channel",
            "c0",
            "--yes",
        ]);
    }
    wait::until("the daemon to die with a decided apply", || scheduler.exited());

    clock.shows(HALF_PAST_NINE + 2 * 3600);
    scheduler.run(&Start { arguments: shut.arguments, variables: &variables, ..Start::default() });
    let applies = wait::until(&format!("{}: the end of the decided apply", shut.name), || {
        let applies =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
        (!applies[0]["endedAt"].is_null()).then_some(applies)
    });
    assert_eq!(files.ledger(), [], "{}: nothing was applied behind a gate that is shut", shut.name);
    assert_eq!(applies[0]["status"], "CANCELLED", "{}: {applies:#}", shut.name);
    scheduler.channel_becomes("s0", "c0", shut.status);
    assert_eq!(files.ledger(), [], "{}: nothing was applied behind a gate that is shut", shut.name);
}

#[test]
fn p2_a_start_that_was_decided_passes_its_gates_again_after_a_restart() {
    let Some(clock) =
        Clock::new("p2_a_start_that_was_decided_passes_its_gates_again_after_a_restart")
    else {
        return;
    };
    let open = "    apply:\n";
    let window = "    apply:\n      window: {schedule: \"0 0 9 * * *\", duration: 1h}\n";
    let approval = "    requireApprovalBeforeApply: true\n    approvalTimeout: 3600s\n    apply:\n";
    for shut in [
        Shut {
            name: "observer",
            apply: open,
            asks: false,
            arguments: &["--observer"],
            status: "CONVERGING",
        },
        Shut {
            name: "window shut",
            apply: window,
            asks: false,
            arguments: &[],
            status: "WAITING_PRECONDITIONS",
        },
        Shut {
            name: "approval expired",
            apply: approval,
            asks: true,
            arguments: &[],
            status: "WAITING_MANUAL_APPROVAL",
        },
    ] {
        check(&clock, &shut);
    }
}

#[test]
fn p2_a_start_that_was_decided_runs_once_when_every_gate_is_still_open() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.spawn(&Start { crash_at: Some(APPLY_DECIDED), ..Start::default() });
    wait::until("the scheduler to be ready", || {
        scheduler.pvnctl(["runtimes", "list", "-o", "json"]).status.success().then_some(())
    });
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the daemon to die with a decided apply", || scheduler.exited());
    scheduler.run(&Start::default());
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(files.ledger().len(), 1);
}

/// Something that happens between commit and hand-over: in a daemon that runs on, and in one that
/// is killed right after it.
fn check_meanwhile(name: &str, meanwhile: impl Fn(&Scheduler)) {
    for dies in [false, true] {
        check_meanwhile_in(name, &meanwhile, dies);
    }
}

fn check_meanwhile_in(name: &str, meanwhile: &dyn Fn(&Scheduler), dies: bool) {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    let held = scheduler.home().join("held");
    std::fs::write(&held, "").expect("a file can be written");
    let hold_at = format!("{APPLY_DECIDED}:{}", held.display());
    scheduler.run(&Start { hold_at: Some(&hold_at), ..Start::default() });
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let job = wait::until("an apply to be decided", || {
        let applies =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
        applies[0]["id"].as_str().map(str::to_owned)
    });
    meanwhile(&scheduler);
    if dies {
        scheduler.kill();
        scheduler.run(&Start::default());
    } else {
        std::fs::remove_file(&held).expect("it is held");
    }
    let first = wait::until(&format!("{name}: the end of the start"), || {
        let job = scheduler.json(&["jobs", "get", &job]);
        ["SUCCEEDED", "FAILED", "CANCELLED", "UNKNOWN"]
            .iter()
            .any(|end| job["status"] == *end)
            .then_some(job)
    });
    assert_eq!(first["status"], "CANCELLED", "{name}: {first:#}");
    assert!(
        files.ledger().iter().all(|applied| applied.job != job),
        "{name}: what was answered first counts: {:?}",
        files.ledger()
    );
}

#[test]
fn p2_whoever_shuts_a_gate_before_the_hand_over_is_obeyed() {
    check_meanwhile("pause", |scheduler| {
        scheduler.ok(&["services", "pause", "s0", "--app", "app", "--channel", "c0"]);
    });
    check_meanwhile("another release", |scheduler| {
        scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    });
    check_meanwhile("config changed", |scheduler| {
        scheduler.apply(&Files::configs(1, 1).replace("[ ! -e slow ]", "true; [ ! -e slow ]"));
    });
    check_meanwhile("channel removed", |scheduler| {
        scheduler.apply(&Files::configs(1, 2).replace("name: c0", "name: c2"));
    });
    check_meanwhile("cancelled", |scheduler| {
        let applies =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
        scheduler.ok(&["jobs", "cancel", applies[0]["id"].as_str().expect("an id")]);
    });
}

#[test]
fn p2_an_apply_that_waits_for_the_file_of_another_passes_its_gates_again_before_it_runs() {
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    let here = |name: &str| scheduler.home().join(name);
    let (held, go, ran) = (here("held"), here("go"), here("ran"));
    let script = format!(
        "if [ $PVN_SERVICE = first ]; then echo >{}; until [ -e {} ]; do sleep 0.1; done; else \
         echo >{}; fi; echo >{1}.tf",
        held.display(),
        go.display(),
        ran.display()
    );
    let runtime = format!(
        "runtime:\n  name: tool\n  custom:\n    proxyRuntime: {{runtime: local}}\n    apply:\n      taskConfig:\n        program:\n          name: apply\n          \
         entrypoint: [pvn-wrapper, exec, --out, '1={}.tf', --, sh, -c]\n          cmd:\n          - |\n            {script}\n",
        go.display()
    );
    scheduler.apply(&format!(
        "{runtime}---\napplication: {{name: app, releaseChannels: [{{name: c0, runtimes: \
         [{{runtime: tool}}]}}]}}\n---\nservice: {{name: first, application: app}}\n---\nservice: \
         {{name: second, application: app}}\n"
    ));
    scheduler.ok(&["services", "push", "first", "--app", "app"]);
    wait::until("the first to have the file", || held.exists().then_some(()));
    scheduler.ok(&["services", "push", "second", "--app", "app"]);
    let told = wait::until("the second to give its turn back", || {
        let second = scheduler.channel("second", "c0");
        second["message"]
            .as_str()
            .filter(|message| message.contains("still uses"))
            .map(str::to_owned)
    });
    scheduler.ok(&["services", "pause", "second", "--app", "app", "--channel", "c0"]);
    scheduler.channel_becomes("second", "c0", "PAUSED");
    std::fs::write(&go, "").expect("a file can be written");
    scheduler.channel_becomes("first", "c0", "CONVERGED");
    wait::until("every try of the second to be over", || {
        let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "second"]);
        jobs.as_array().expect("a list").iter().all(|job| !job["endedAt"].is_null()).then_some(())
    });
    assert!(!ran.exists(), "it was paused while it waited ({told})");
    scheduler.ok(&["services", "resume", "second", "--app", "app", "--channel", "c0"]);
    scheduler.channel_becomes("second", "c0", "CONVERGED");
    assert!(ran.exists());
}
