//! The surroundings fail, or clients misbehave (promise P9 and the table of bad input): always a
//! clear answer, never a crash, nothing lost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tests::disk::{DatabaseLock, SmallDisk};
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{skip, wait};

fn converged(scheduler: &Scheduler) {
    wait::until("s0 to converge", || {
        (scheduler.channel("s0", "c0")["status"] == "CONVERGED").then_some(())
    });
}

fn running() -> (Scheduler, Files) {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    converged(&scheduler);
    (scheduler, files)
}

fn readiness(scheduler: &Scheduler, wanted: u16) {
    wait::until(&format!("/readyz to answer {wanted}"), || {
        (scheduler.get("/readyz")?.0 == wanted).then_some(())
    });
}

#[test]
fn p9_database_locked_starts_nothing_new_visibly_and_reading_goes_on() {
    if skip::tool("python3").is_none() {
        return skip::skipped("p9_database_locked", "python3 is not on PATH");
    }
    let (scheduler, files) = running();
    let lock = DatabaseLock::take(&scheduler.data().join("pvn.db"));
    files.drift("s0", "c0");
    readiness(&scheduler, 503);
    let applies = files.ledger().len();
    assert_eq!(scheduler.channel("s0", "c0")["channel"], "c0", "reading goes on");
    let refused = scheduler.pvnctl(["services", "push", "s0", "--app", "app"]);
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr).to_lowercase();
    assert!(message.contains("database") && message.contains("lock"), "{message}");
    assert_eq!(files.ledger().len(), applies, "nothing new is started");
    drop(lock);
    readiness(&scheduler, 200);
    wait::until("the drift to be repaired after all", || files.state("s0", "c0"));
}

#[test]
fn p9_readiness_is_red_while_the_database_is_locked_also_when_nothing_is_due() {
    if skip::tool("python3").is_none() {
        return skip::skipped(
            "p9_readiness_is_red_while_the_database_is_locked",
            "python3 is not on PATH",
        );
    }
    let scheduler = Scheduler::start();
    let _files = Files::new(scheduler.home());
    let quiet = Files::configs(1, 1)
        .replace("steadyStatePollInterval: 2s", "steadyStatePollInterval: 3600s");
    scheduler.apply(&quiet);
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    converged(&scheduler);
    readiness(&scheduler, 200);
    let lock = DatabaseLock::take(&scheduler.data().join("pvn.db"));
    readiness(&scheduler, 503);
    let (_, why) = scheduler.get("/readyz").expect("it answers");
    assert!(why.contains("nothing new is started since") && why.contains("locked"), "{why}");
    let told = scheduler
        .json(&["services", "explain", "s0", "--app", "app", "--channel", "c0"])
        .to_string();
    assert!(told.contains("NOTHING_STORED") && !told.contains("\"action\":\"fetch\""), "{told}");
    drop(lock);
    readiness(&scheduler, 200);
}

#[test]
fn p9_a_full_disk_under_the_data_directory_is_red_also_where_the_database_has_room() {
    let test = "p9_a_full_disk_under_the_data_directory_is_red_also_where_the_database_has_room";
    let mut scheduler = Scheduler::stopped();
    let Some(disk) = SmallDisk::mount(&scheduler.data(), "16m") else {
        return skip::skipped(test, "mounting a small file system needs root");
    };
    let files = Files::new(scheduler.home());
    let elsewhere = format!("sqlite:{}", scheduler.home().join("elsewhere.db").display());
    scheduler.run(&Start { arguments: &["--database-url", &elsewhere], ..Start::default() });
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    converged(&scheduler);
    disk.fill();
    readiness(&scheduler, 503);
    let (_, why) = scheduler.get("/readyz").expect("it answers");
    assert!(
        why.contains(&scheduler.data().display().to_string()) && why.contains("make room"),
        "{why}"
    );
    assert!(why.contains("may need 1024 KiB") && why.contains("`pvn-scheduler prune`"), "{why}");
    disk.free();
    files.drift("s0", "c0");
    readiness(&scheduler, 200);
    wait::until("the drift to be repaired after all", || files.state("s0", "c0"));
    assert_eq!(files.overlaps(), "");
}

#[test]
fn p9_disk_full_starts_nothing_new_visibly_and_recovers() {
    let mut scheduler = Scheduler::stopped();
    let data = scheduler.data();
    let Some(disk) = SmallDisk::mount(&data, "16m") else {
        return skip::skipped("p9_disk_full", "mounting a small file system needs root");
    };
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    converged(&scheduler);

    disk.fill();
    files.drift("s0", "c0");
    readiness(&scheduler, 503);
    let applies = files.ledger().len();
    assert_eq!(scheduler.channel("s0", "c0")["channel"], "c0", "reading goes on");
    assert!(scheduler.exited().is_none(), "it does not crash");
    assert_eq!(files.ledger().len(), applies, "nothing new is started");

    disk.free();
    readiness(&scheduler, 200);
    wait::until("the drift to be repaired after all", || files.state("s0", "c0"));
    assert_eq!(files.overlaps(), "");
    scheduler.kill();
}

#[test]
fn p9_a_disk_without_room_for_files_starts_nothing_new_visibly_and_recovers() {
    let test = "p9_a_disk_without_room_for_files_starts_nothing_new_visibly_and_recovers";
    let mut scheduler = Scheduler::stopped();
    let Some(disk) = SmallDisk::mount_for_files(&scheduler.data(), "100m", 800) else {
        return skip::skipped(test, "mounting a small file system needs root");
    };
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    converged(&scheduler);

    disk.fill_files();
    files.drift("s0", "c0");
    let applies = files.ledger().len();
    readiness(&scheduler, 503);
    let (_, why) = scheduler.get("/readyz").expect("it answers");
    assert!(
        why.contains("no room for more files (inodes)")
            || why.contains("more files (inodes) and a change"),
        "{why}"
    );
    assert!(
        why.contains(&scheduler.data().display().to_string())
            && why.contains("`pvn-scheduler prune`"),
        "{why}"
    );
    let told = scheduler
        .json(&["services", "explain", "s0", "--app", "app", "--channel", "c0"])
        .to_string();
    assert!(told.contains("NOTHING_STORED") && told.contains("(inodes)"), "{told}");
    assert_eq!(files.ledger().len(), applies, "nothing new is started");

    disk.free_files();
    readiness(&scheduler, 200);
    wait::until("the drift to be repaired after all", || files.state("s0", "c0"));
    assert_eq!(files.overlaps(), "");
    scheduler.kill();
}

fn problem(answer: reqwest::blocking::Response, status: u16) -> Value {
    assert_eq!(answer.status().as_u16(), status);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let body: Value =
        serde_json::from_str(&answer.text().expect("a body")).expect("a problem is JSON");
    assert_eq!(body["status"], status);
    assert!(
        body["title"].is_string() && body["type"].is_string() && body["detail"].is_string(),
        "{body}"
    );
    body
}

#[test]
fn wrong_or_missing_token_is_401_and_says_where_to_find_one() {
    let scheduler = Scheduler::start();
    for path in ["/v1/services", "/v1/jobs", "/v1/events", "/metrics"] {
        problem(scheduler.http(Method::GET, path).send().expect("an answer"), 401);
        problem(
            scheduler.http(Method::GET, path).bearer_auth("pvn_wrong").send().expect("an answer"),
            401,
        );
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/schemas/fetch-output.json"] {
        assert_eq!(
            scheduler.http(Method::GET, path).send().expect("an answer").status().as_u16(),
            200,
            "{path} is open"
        );
    }
    let mut client = scheduler.client(["services", "list"]);
    let output = client.env("PVN_AUTH_TOKEN", "pvn_wrong").output().expect("pvnctl can be started");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("token"));
}

#[test]
fn body_over_the_limit_is_413() {
    let scheduler = Scheduler::start();
    let big = vec![b' '; (1 << 20) + 1];
    let answer = scheduler
        .http(Method::POST, "/v1/applications/app/services/s0/push")
        .bearer_auth(scheduler.token())
        .body(big)
        .send();
    problem(answer.expect("an answer"), 413);
    let big = vec![b' '; (64 << 20) + 1];
    let answer =
        scheduler.http(Method::POST, "/v1/configs").bearer_auth(scheduler.token()).body(big).send();
    problem(answer.expect("an answer"), 413);
    assert_eq!(scheduler.get("/healthz").expect("an answer").0, 200);
}

#[test]
fn malformed_json_is_a_problem_that_says_where() {
    let scheduler = Scheduler::start();
    let post = |body: &'static str| {
        let request = scheduler.http(Method::POST, "/v1/configs").bearer_auth(scheduler.token());
        request.header("content-type", "application/json").body(body).send().expect("an answer")
    };
    let answer = post("{\"files\": [}");
    assert!(answer.status().is_client_error());
    let status = answer.status().as_u16();
    let body = problem(answer, status);
    assert!(body["detail"].as_str().is_some_and(|detail| detail.contains("column")), "{body}");
    let answer = post("{\"fils\": []}");
    let status = answer.status().as_u16();
    assert!((400..500).contains(&status));
    assert!(
        problem(answer, status)["detail"].as_str().is_some_and(|detail| detail.contains("fils"))
    );
}

#[test]
fn slow_client_is_cut_off_and_hinders_nobody() {
    let scheduler = Scheduler::start();
    let address = scheduler.url().trim_start_matches("http://").to_owned();
    let mut slow: Vec<_> =
        (0..50).map(|_| TcpStream::connect(&address).expect("a connection")).collect();
    for stream in &mut slow {
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            .expect("half a request can be sent");
    }
    assert_eq!(scheduler.get("/healthz").expect("an answer").0, 200, "others are served");
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out can be set");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("it is closed, at most with an answer that says why");
    }
}

#[test]
fn a_second_daemon_on_the_same_data_is_refused_with_the_first_ones_pid() {
    let scheduler = Scheduler::start();
    let output = Command::new(tests::programs::program("pvn-scheduler"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(scheduler.data())
        .stdin(Stdio::null())
        .output()
        .expect("the scheduler can be started");
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains(&scheduler.pid().to_string()), "{message}");
    assert_eq!(scheduler.get("/healthz").expect("an answer").0, 200);
}

#[test]
fn stop_is_graceful_within_10_seconds_and_leaves_jobs_running() {
    let (mut scheduler, files) = running();
    files.hold();
    files.drift("s0", "c0");
    let applies = files.ledger().len();
    wait::until("the apply to run", || (files.ledger().len() > applies).then_some(()));
    let start = std::time::Instant::now();
    let status = scheduler.stop();
    assert!(status.success(), "{status}");
    assert!(start.elapsed() < Duration::from_secs(10));
    files.let_go();
    wait::until("the apply to end without a daemon", || files.state("s0", "c0"));
}
