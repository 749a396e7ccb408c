//! A healthy scheduler.

use schema::spool::Stream;

use super::{check, shell, wrapper};
use crate::run::{Wrapper, until};
use crate::scheduler::{Do, JOB, Reply, Scheduler, TOKEN};

#[test]
fn a_short_run_is_one_request() {
    let scheduler = Scheduler::start();
    let run = shell(&scheduler, &[], "echo out; echo err >&2; exit 3").run();
    assert_eq!((run.code, run.text().as_str(), run.stderr.as_str()), (3, "out\n", "err\n"));
    check(&scheduler, &run);
    assert_eq!(scheduler.bytes(Stream::Stdout), b"out\n");
    let names: Vec<String> =
        scheduler.state().requests.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, ["PUT /report"]);
}

#[test]
fn output_arrives_while_the_command_runs() {
    let scheduler = Scheduler::start();
    let running = shell(
        &scheduler,
        &[],
        "echo first; until [ -e go ]; do sleep 0.01; done; echo second; echo err >&2",
    )
    .spawn();
    scheduler.until_arrived(Stream::Stdout, "first\n");
    assert!(scheduler.state().report.is_none());
    std::fs::write(running.path("go"), "").unwrap();
    check(&scheduler, &running.wait());
    assert_eq!(scheduler.bytes(Stream::Stdout), b"first\nsecond\n");
    assert_eq!(scheduler.bytes(Stream::Stderr), b"err\n");
}

#[test]
fn what_could_not_be_started_is_reported() {
    let scheduler = Scheduler::start();
    let run = wrapper(&scheduler, &[], &["/nowhere/tool"]).run();
    assert_eq!(run.code, 127);
    check(&scheduler, &run);
    assert!(scheduler.check().exec_error.unwrap().contains("/nowhere/tool"));
}

#[test]
fn wrong_arguments_are_reported() {
    let scheduler = Scheduler::start();
    let output = wrapper(&scheduler, &["--nonsense"], &["true"]).command.output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(scheduler.check().exec_error.unwrap().contains("--nonsense"));
}

#[test]
fn a_sign_of_life_comes_while_the_command_runs_and_a_cancel_stops_it() {
    let scheduler = Scheduler::start();
    let running = shell(
        &scheduler,
        &[],
        "trap 'echo stopped; exit 7' TERM; echo ready > ready; while :; do sleep 0.01; done",
    )
    .spawn();
    running.until_written("ready");
    scheduler.until_asked("POST /heartbeat", 1);
    scheduler.state().cancel = true;
    let run = running.wait();
    assert_eq!(
        (run.code, run.text().as_str(), run.report.killed_after_grace),
        (7, "stopped\n", false)
    );
    check(&scheduler, &run);
}

#[test]
fn any_answer_can_carry_the_cancel() {
    // Any but those that are there for it.
    let scheduler = Scheduler::start().with(|request, _| match request.is("POST", "/heartbeat") {
        true => Do::Answer(Reply::json(200, &serde_json::json!({ "cancel": false }))),
        false => Do::Usual,
    });
    let script = "trap 'exit 7' TERM; echo ready > ready; until [ -e go ]; do sleep 0.01; done; \
                  echo x; while :; do sleep 0.01; done";
    let running = shell(&scheduler, &[], script).spawn();
    running.until_written("ready");
    scheduler.until_asked("POST /heartbeat", 1);
    scheduler.state().cancel = true;
    std::fs::write(running.path("go"), "").unwrap();
    let run = running.wait();
    assert_eq!(run.code, 7);
    check(&scheduler, &run);
}

#[test]
fn inputs_are_fetched_and_one_that_is_missing_keeps_the_command_from_running() {
    let scheduler = Scheduler::start();
    let blob = schema::id::BlobId::of(b"blob");
    scheduler.state().inputs.insert("fetch:plan".into(), b"the plan".to_vec());
    scheduler.state().inputs.insert(blob.to_string(), b"blob".to_vec());
    let run = shell(
        &scheduler,
        &["--in", "a/tf.plan=fetch:plan", "--in", &format!("b={blob}")],
        "cat a/tf.plan b",
    )
    .run();
    assert_eq!((run.code, run.text().as_str()), (0, "the planblob"));
    check(&scheduler, &run);

    let scheduler = Scheduler::start();
    let run = shell(&scheduler, &["--in", "tf.plan=fetch:plan"], "echo ran").run();
    assert_eq!((run.code, run.text().as_str()), (125, ""));
    check(&scheduler, &run);
    assert!(run.report.exec_error.unwrap().contains("`fetch:plan`"));
    assert!(!run.directory.path().join("tf.plan").exists());
}

#[test]
fn an_address_without_a_token_is_a_dry_run_with_a_warning() {
    let scheduler = Scheduler::start();
    let run = Wrapper::new(&[], &["echo", "x"])
        .env("PVN_API_URL", scheduler.url())
        .env("PVN_JOB_ID", JOB)
        .run();
    assert_eq!((run.code, run.text().as_str()), (0, "x\n"));
    assert!(
        run.stderr.contains("nothing is delivered") && run.stderr.contains("PVN_TOKEN"),
        "{}",
        run.stderr
    );
    assert!(scheduler.state().requests.is_empty());
}

#[test]
fn token_never_in_logs_argv_or_the_childs_environment() {
    let scheduler = Scheduler::start().with(|request, number| match number {
        0 if request.is("PUT", "/report") => Do::Answer(Reply::problem(401, "not valid")),
        _ => Do::Usual,
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), TOKEN).unwrap();
    let script =
        "env; cat /proc/$PPID/cmdline; echo ready > ready; until [ -e go ]; do sleep 0.01; done";
    let running = shell(&scheduler, &[], script).env("PVN_TOKEN_FILE", file.path()).spawn();
    running.until_written("ready");
    let spool = running.path("pvn").join(JOB);
    let left = until("the spool is there", || std::fs::read(spool.join("run.json")).ok());
    assert!(!String::from_utf8_lossy(&left).contains(TOKEN));
    std::fs::write(running.path("go"), "").unwrap();
    let run = running.wait();
    check(&scheduler, &run);
    assert!(run.text().contains("PVN_JOB_ID="), "{}", run.text());
    for text in [run.text(), run.stderr.clone(), serde_json::to_string(&run.report).unwrap()] {
        assert!(!text.contains(TOKEN) && !text.contains("PVN_TOKEN"), "{text}");
    }
}

#[test]
fn ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return crate::skipped("ipv6", "this machine has no IPv6 loopback address");
    }
    let scheduler = Scheduler::listening("[::1]:0", None);
    check(&scheduler, &shell(&scheduler, &[], "echo x; sleep 0.3; echo y").run());
}
