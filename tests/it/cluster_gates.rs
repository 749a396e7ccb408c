//! Jobs that were made on a real cluster, and not let go, when a gate shut (promise P2) or another
//! daemon took the database (promise P1): until a command may run there, everything is asked again
//! that was asked when it was decided.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::cluster_world::World;

/// The apply's Job is made and noted, and suspended. There is no fetch, so it is the first.
const MADE: &str = "after-recorded:1";

/// Notes which job ran.
const APPLY: &str = "echo $PVN_JOB_ID >> ledger";

fn commands(world: &World<'_>, settings: &str) -> String {
    format!("    apply: {{kubernetesConfig: {}{settings}}}", world.script(APPLY))
}

/// The first apply, once there is one.
fn decided(world: &World<'_>) -> String {
    wait::until("an apply to be decided", || {
        world.jobs("apply").last()?["id"].as_str().map(str::to_owned)
    })
}

/// That the job is over, and that it never ran although its Job was there.
fn check_never_ran(world: &World<'_>, job: &str, what: &str) {
    let ended = wait::until(&format!("{what}: the end of the start"), || {
        let job = world.scheduler.json(&["jobs", "get", job]);
        (!job["endedAt"].is_null()).then_some(job)
    });
    assert_eq!(ended["status"], "CANCELLED", "{what}: {ended:#}");
    wait::until(&format!("{what}: its Job to be gone"), || {
        (!world.jobs_there().contains(job)).then_some(())
    });
    let ledger = std::fs::read_to_string(world.shared().join("ledger")).unwrap_or_default();
    assert!(!ledger.contains(job), "{what}: it ran behind a gate that is shut: {ledger}");
    world.check_created_once();
}

#[test]
fn p2_a_job_that_was_made_and_not_let_go_passes_its_gates_again_after_a_restart() {
    let Some(cluster) = Cluster::get(
        "p2_a_job_that_was_made_and_not_let_go_passes_its_gates_again_after_a_restart",
    ) else {
        return;
    };
    for (what, arguments, status) in
        [("observer", &["--observer"][..], "CONVERGING"), ("nothing changed", &[], "CONVERGED")]
    {
        let mut world = World::new(&cluster, "made");
        world.apply(&json!({}), &commands(&world, ""));
        world.scheduler.stop();
        world.scheduler.spawn(&Start { crash_at: Some(MADE), ..Start::default() });
        wait::until("the daemon to take the push", || world.pushes().then_some(()));
        wait::until("the daemon to die beside a Job that is made", || world.scheduler.exited());
        assert_eq!(
            world.jobs_there().matches("\"suspend\": true").count(),
            1,
            "it is there, suspended"
        );

        world.scheduler.run(&Start { arguments, ..Start::default() });
        let job = decided(&world);
        world.scheduler.channel_becomes("s", "c", status);
        if status == "CONVERGED" {
            world.check_ran(1);
        } else {
            check_never_ran(&world, &job, what);
        }
    }
}

/// Something that happens while a Job is made and not let go, in a daemon that runs on.
fn check_meanwhile(cluster: &Cluster, what: &str, meanwhile: impl FnOnce(&World<'_>, &str)) {
    let mut scheduler = Scheduler::stopped_at(ADDRESS);
    let held = scheduler.home().join("held");
    std::fs::write(&held, "").expect("a file can be written");
    let hold_at = format!("{MADE}:{}", held.display());
    scheduler.run(&Start { hold_at: Some(&hold_at), ..Start::default() });
    let world = World::of(cluster, "meanwhile", scheduler);
    world.release(&json!({}), &commands(&world, ""));
    wait::until("its Job to be made", || {
        world.jobs_there().contains("\"suspend\": true").then_some(())
    });
    let job = decided(&world);
    meanwhile(&world, &job);
    std::fs::remove_file(&held).expect("it is held");
    check_never_ran(&world, &job, what);
}

#[test]
fn p2_whoever_shuts_a_gate_before_a_job_on_a_cluster_is_let_go_is_obeyed() {
    let Some(cluster) =
        Cluster::get("p2_whoever_shuts_a_gate_before_a_job_on_a_cluster_is_let_go_is_obeyed")
    else {
        return;
    };
    check_meanwhile(&cluster, "pause", |world, _| {
        world.scheduler.ok(&["services", "pause", "s", "--app", "app", "--channel", "c"]);
    });
    check_meanwhile(&cluster, "another release", |world, _| {
        world.scheduler.ok(&["services", "push", "s", "--app", "app"]);
    });
    check_meanwhile(&cluster, "config changed", |world, _| {
        let other = world.script(&format!("true; {APPLY}"));
        world.apply(&json!({}), &format!("    apply: {{kubernetesConfig: {other}}}"));
    });
    check_meanwhile(&cluster, "window shut", |world, _| {
        world.apply(
            &json!({}),
            &commands(world, ", window: {schedule: \"0 0 0 29 2 *\", duration: 1s}"),
        );
    });
    check_meanwhile(&cluster, "cancelled", |world, job| {
        world.scheduler.ok(&["jobs", "cancel", job]);
    });
}

#[test]
fn p1_a_daemon_that_slept_beside_a_job_that_was_made_does_not_let_it_go_when_another_has_the_database()
 {
    let test = "p1_a_daemon_that_slept_beside_a_job_that_was_made_does_not_let_it_go_when_another_has_the_database";
    let Some(cluster) = Cluster::get(test) else { return };
    let outside = tempfile::tempdir().expect("a directory can be made");
    let database = format!("sqlite:{}", outside.path().join("pvn.db").display());
    let key = outside.path().join("key").display().to_string();
    let arguments = ["--database-url", &database, "--secret-key-file", &key];
    let mut first = Scheduler::stopped_at(ADDRESS);
    first.run(&Start { arguments: &arguments, ..Start::default() });
    let mut world = World::of(&cluster, "slept", first);
    world.apply(&json!({}), &commands(&world, ""));
    world.scheduler.stop();
    let held = outside.path().join("held");
    std::fs::write(&held, "").expect("a file can be written");
    let hold_at = format!("{MADE}:{}", held.display());
    world.scheduler.run(&Start {
        arguments: &arguments,
        hold_at: Some(&hold_at),
        ..Start::default()
    });
    world.scheduler.ok(&["services", "push", "s", "--app", "app"]);
    // Nothing is being stored any more then, or the database would be locked for as long as it
    // sleeps.
    wait::until("its Job to be made, and that to be noted", || {
        let is_noted = world.jobs("apply").first().is_some_and(|job| job["status"] == "STARTING");
        (is_noted && world.jobs_there().contains("\"suspend\": true")).then_some(())
    });
    let first = Pid::from_raw(i32::try_from(world.scheduler.pid()).expect("process ids fit"));
    kill(first, Signal::SIGSTOP).expect("it can be put to sleep");
    wait::until("it to sleep", || {
        let status = std::fs::read_to_string(format!("/proc/{first}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:") && line.contains('T')).then_some(())
    });
    std::fs::remove_file(&held).expect("it is held");

    let mut second = Scheduler::stopped_at(ADDRESS);
    std::fs::create_dir(second.data()).expect("a directory can be made");
    std::fs::copy(world.scheduler.data().join("admin-token"), second.data().join("admin-token"))
        .expect("the token can be copied");
    second.run(&Start { arguments: &arguments, ..Start::default() });
    kill(first, Signal::SIGCONT).expect("it can be woken");
    wait::until_within(wait::PATIENCE * 2, "the first daemon to end", || world.scheduler.exited());
    let jobs = world.jobs_there();
    assert!(!jobs.contains("\"suspend\": false"), "what it had made it let go: {jobs}");
    assert_eq!(std::fs::read_to_string(world.shared().join("ledger")).unwrap_or_default(), "");
    let shown: Value =
        second.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", "apply"]);
    assert_ne!(shown[0]["status"], "SUCCEEDED", "{shown:#}");
}
