//! Commands as Jobs on a real cluster: the whole path from a release to what the cluster ran, with
//! and without the wrapper.

use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster, TOOLS};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::cluster_world::{TOOLS_AND_LIBRARIES, UNTIL_GO, World, check_delivered, injected};

#[test]
fn a_service_converges_on_a_cluster_by_exit_codes() {
    let Some(cluster) = Cluster::get("a_service_converges_on_a_cluster_by_exit_codes") else {
        return;
    };
    let world = World::new(&cluster, "plain");
    let fetch =
        world.script("echo looking; [ \"$(cat state)\" = \"$PVN_SERVICE_VERSION\" ] || exit 2");
    let apply = world.script("echo doing; echo aside >&2; echo $PVN_SERVICE_VERSION > state");
    world.release(
        &json!({}),
        &format!(
            "    fetch: {{kubernetesConfig: {fetch}}}\n    apply: {{kubernetesConfig: {apply}}}"
        ),
    );
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    let apply = world.ended("apply");
    assert_eq!((&apply["status"], &apply["exitCode"]), (&json!("SUCCEEDED"), &json!(0)));
    let (stdout, stderr) = world.log(&apply);
    let mut lines: Vec<_> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        (lines, stderr.as_str()),
        (vec!["aside", "doing"], ""),
        "without a wrapper the log is one"
    );
    assert!(
        world.jobs("fetch").iter().any(|job| job["exitCode"] == 2),
        "the first fetch found work"
    );
    world.check_created_once();
}

#[test]
fn an_injected_wrapper_reports_with_streams_apart_and_structured_output() {
    let Some(cluster) =
        Cluster::get("an_injected_wrapper_reports_with_streams_apart_and_structured_output")
    else {
        return;
    };
    let world = World::new(&cluster, "wrapped");
    let object = r#"{"objects": [{"name": "o", "objectType": "T", "status": "SUCCEEDED", "versions": [{"version": "'$(cat state)'", "active": true}]}]}"#;
    let fetch = world.script_in(
        TOOLS_AND_LIBRARIES,
        &format!("[ -e state ] || echo none > state; echo '{object}'"),
    );
    let apply = world.script_in(
        TOOLS_AND_LIBRARIES,
        "echo out; echo err >&2; echo $PVN_SERVICE_VERSION > state",
    );
    world.release(
        &injected(&cluster),
        &format!(
            "    fetch: {{fetchMode: STRUCTURED_OUTPUT, kubernetesConfig: {fetch}}}\n    apply: \
             {{kubernetesConfig: {apply}}}"
        ),
    );
    let channel = world.scheduler.channel_becomes("s", "c", "CONVERGED");
    assert_eq!(channel["objects"][0]["name"], "o");
    let apply = world.ended("apply");
    assert_eq!(world.log(&apply), ("out\n".to_owned(), "err\n".to_owned()));
    world.check_created_once();
}

#[test]
fn an_injected_wrapper_delivers_over_tls_to_a_scheduler_of_a_given_authority() {
    let Some(cluster) =
        Cluster::get("an_injected_wrapper_delivers_over_tls_to_a_scheduler_of_a_given_authority")
    else {
        return;
    };
    let (mut scheduler, arguments) = Scheduler::stopped_with_tls_at(ADDRESS);
    let certificate = scheduler.home().join("cert.pem");
    let ca = ["--advertise-ca-file", certificate.to_str().expect("its path is plain")];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(ca).collect();
    scheduler.run(&Start { arguments: &arguments, ..Start::default() });
    let world = World::of(&cluster, "tls", scheduler);
    let apply = world.script_in(TOOLS_AND_LIBRARIES, "echo out; echo err >&2");
    world.release(&injected(&cluster), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    assert_eq!(world.log(&world.ended("apply")), ("out\n".to_owned(), "err\n".to_owned()));
    check_delivered(&cluster, &world.namespace());
}

#[test]
fn an_image_that_is_not_there_is_told_in_the_clusters_own_words() {
    let Some(cluster) =
        Cluster::get("an_image_that_is_not_there_is_told_in_the_clusters_own_words")
    else {
        return;
    };
    let world = World::new(&cluster, "absent");
    world.release(
        &json!({}),
        "    apply: {timeout: 60s, taskConfig: {program: {image: 'pvn.test/absent:1'}}}",
    );
    let cause = wait::until("what it waits for to be told", || {
        let told =
            world.scheduler.json(&["services", "explain", "s", "--app", "app", "--channel", "c"]);
        told["causes"].as_array()?.iter().find(|cause| cause["code"] == "JOB_WAITS").cloned()
    });
    assert!(
        cause["message"]
            .as_str()
            .is_some_and(|said| said.contains("pvn.test/absent:1") && said.contains("ends when")),
        "{cause:#}"
    );
    assert!(cause["until"].is_string(), "its own deadline: {cause:#}");
    let shown = world.jobs("apply").remove(0);
    let detail =
        world.scheduler.json(&["jobs", "get", shown["id"].as_str().expect("a job has an id")]);
    assert!(
        detail["message"]
            .as_str()
            .is_some_and(|said| said.starts_with("waits until ") && said.contains("Pull")),
        "{detail:#}"
    );
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert_eq!(channel["reason"], "APPLY_FAILED");
    let message = channel["message"].as_str().expect("it has a message");
    assert!(message.contains("pvn.test/absent:1") && message.contains("Pull"), "{channel:#}");
    assert_eq!(world.ended("apply")["exitCode"], Value::Null);
}

#[test]
fn a_command_that_is_not_there_is_told() {
    let Some(cluster) = Cluster::get("a_command_that_is_not_there_is_told") else { return };
    let world = World::new(&cluster, "nocommand");
    world.release(
        &json!({}),
        &format!(
            "    apply: {{taskConfig: {{program: {{image: '{TOOLS}', entrypoint: \
             [no-such-command]}}}}}}"
        ),
    );
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert!(
        channel["message"].as_str().is_some_and(|message| message.contains("no-such-command")),
        "{channel:#}"
    );
}

#[test]
fn p6_a_job_goes_on_without_the_scheduler_and_is_taken_up_again() {
    let Some(cluster) =
        Cluster::get("p6_a_job_goes_on_without_the_scheduler_and_is_taken_up_again")
    else {
        return;
    };
    let mut world = World::new(&cluster, "restart");
    let apply = world
        .script("echo $PVN_JOB_ID >> ledger; while [ ! -e go ]; do sleep 0.1; done; echo done");
    world.release(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    let ledger = world.shared().join("ledger");
    wait::until("the apply to run", || ledger.exists().then_some(()));
    world.scheduler.kill();
    std::fs::write(world.shared().join("go"), "").expect("a file can be written");
    world.scheduler.run(&Start::default());
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    let runs = std::fs::read_to_string(ledger).expect("the ledger can be read");
    assert_eq!(runs.lines().count(), 1, "it ran once: {runs}");
    world.check_created_once();
}

/// Where nobody takes its report the wrapper ends by itself before the cluster ends the Job, which
/// takes the log away.
#[test]
fn p6_a_result_that_nobody_takes_until_the_deadline_of_its_job_is_still_there() {
    let Some(cluster) =
        Cluster::get("p6_a_result_that_nobody_takes_until_the_deadline_of_its_job_is_still_there")
    else {
        return;
    };
    let wrapped = injected(&cluster);
    let mut world = World::new(&cluster, "late");
    let apply = world.script_in(TOOLS_AND_LIBRARIES, &format!("{UNTIL_GO}; echo what it did"));
    world.release(&wrapped, &format!("    apply: {{timeout: 30s, kubernetesConfig: {apply}}}"));
    world.runs();
    world.scheduler.kill();
    world.go();
    cluster.kubectl(
        &[
            "wait",
            "--for",
            "condition=Complete",
            "--timeout",
            "180s",
            "--namespace",
            &world.namespace(),
            "jobs",
            "--all",
        ],
        "",
    );
    world.scheduler.run(&Start::default());
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    world.check_ran(1);
    assert_eq!(world.log(&world.ended("apply")).0, "what it did\n");
}

#[test]
fn p7_a_job_that_is_cancelled_is_gone_from_the_cluster() {
    let Some(cluster) = Cluster::get("p7_a_job_that_is_cancelled_is_gone_from_the_cluster") else {
        return;
    };
    let world = World::new(&cluster, "cancel");
    let apply = world.script(
        "trap 'echo stopped > stopped; exit 3' TERM; echo > started; while :; do sleep 0.1; done",
    );
    world.release(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    let started = world.shared().join("started");
    wait::until("the apply to run", || started.exists().then_some(()));
    let job = world.jobs("apply").remove(0);
    world.scheduler.ok(&["jobs", "cancel", job["id"].as_str().expect("a job has an id")]);
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert_eq!(channel["reason"], "CANCELLED");
    assert_eq!(world.ended("apply")["status"], "CANCELLED");
    assert!(world.shared().join("stopped").exists(), "it was asked to stop");
    world.check_created_once();
}

/// Points at which the daemon kills itself, in the order in which a job on a cluster passes them.
/// `pvn_scheduler::crash` documents each.
const POINTS: &[&str] = &[
    "before-start",
    "after-start",
    "after-made",
    "after-recorded",
    "after-let-go",
    "after-started",
    "after-report",
    "before-ack",
    "after-ack",
];

/// How many of them are tried at the same time.
const LANES: usize = 3;

#[test]
fn p1_p5_killed_at_every_named_point_with_jobs_on_a_cluster_each_runs_once() {
    let Some(cluster) =
        Cluster::get("p1_p5_killed_at_every_named_point_with_jobs_on_a_cluster_each_runs_once")
    else {
        return;
    };
    std::thread::scope(|scope| {
        for points in POINTS.chunks(POINTS.len().div_ceil(LANES)) {
            scope.spawn(|| points.iter().for_each(|point| killed_at(&cluster, point)));
        }
    });
}

fn killed_at(cluster: &Cluster, point: &str) {
    let mut world = World::new(cluster, "kill");
    let fetch = world.script("[ \"$(cat state)\" = \"$PVN_SERVICE_VERSION\" ] || exit 2");
    let apply = world.script(&format!("{UNTIL_GO}; echo $PVN_SERVICE_VERSION > state"));
    let commands = format!(
        "    fetch: {{pollInterval: 2s, kubernetesConfig: {fetch}}}\n    apply: \
         {{kubernetesConfig: {apply}}}\n    convergenceGracePeriod: 2s"
    );
    world.apply(&json!({}), &commands);
    world.scheduler.stop();
    // The second time: the apply, after the fetch. That a fetch runs may be seen or not; the apply
    // runs until it is.
    let is_about_running = point == "after-started";
    let crash_at = if is_about_running { format!("{point}:1") } else { format!("{point}:2") };
    if !is_about_running {
        world.go();
    }
    world.scheduler.spawn(&Start { crash_at: Some(&crash_at), ..Start::default() });
    let mut pushed = false;
    wait::until(&format!("the daemon to die at {crash_at}"), || {
        pushed |= pushed || world.pushes();
        world.scheduler.exited()
    });
    world.go();
    world.scheduler.run(&Start::default());
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    let ledger = std::fs::read_to_string(world.shared().join("ledger")).expect("an apply ran");
    let mut jobs: Vec<_> = ledger.lines().collect();
    let runs = jobs.len();
    jobs.sort_unstable();
    jobs.dedup();
    assert_eq!(jobs.len(), runs, "after a death at {crash_at} a job ran twice: {ledger}");
    world.check_created_once();
}

#[test]
fn p7_killed_while_it_stops_a_job_on_a_cluster_it_stops_it_all_the_same() {
    let Some(cluster) =
        Cluster::get("p7_killed_while_it_stops_a_job_on_a_cluster_it_stops_it_all_the_same")
    else {
        return;
    };
    std::thread::scope(|scope| {
        for point in ["before-stopping", "after-stopping"] {
            let cluster = &cluster;
            scope.spawn(move || killed_while_stopping(cluster, point));
        }
    });
}

fn killed_while_stopping(cluster: &Cluster, point: &str) {
    let mut world = World::new(cluster, "killstop");
    let apply = world.script(
        "trap 'echo > stopped; exit 3' TERM; echo $PVN_JOB_ID >> ledger; while :; do sleep 0.1; \
         done",
    );
    world.apply(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    world.scheduler.stop();
    world.scheduler.spawn(&Start { crash_at: Some(point), ..Start::default() });
    wait::until("the daemon to take the push", || world.pushes().then_some(()));
    world.runs();
    let job = world.jobs("apply").remove(0);
    // The daemon may be dead before it answers.
    world.scheduler.pvnctl(["jobs", "cancel", job["id"].as_str().expect("a job has an id")]);
    wait::until(&format!("the daemon to die at {point}"), || world.scheduler.exited());
    world.scheduler.run(&Start::default());
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert_eq!(channel["reason"], "CANCELLED", "after a death at {point}");
    assert_eq!(world.ended("apply")["status"], "CANCELLED", "after a death at {point}");
    assert!(
        world.shared().join("stopped").exists(),
        "after a death at {point} nobody asked it to stop"
    );
    world.check_ran(1);
}
