//! Output of jobs as people read it in a shell.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use tests::scheduler::Scheduler;
use tests::wait;

#[test]
fn following_a_log_ends_when_nobody_reads_it_any_more() {
    let scheduler = Scheduler::start();
    // It says one thing and then runs until the test lets it go on.
    scheduler.apply(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply:\n      \
         taskConfig: {program: {name: do, entrypoint: [sh, -c], cmd: ['echo begun; until [ -e go \
         ]; do sleep 0.1; done']}}\n---\napplication: {name: app, releaseChannels: [{name: c, \
         runtimes: [{runtime: r}]}]}\n---\nservice: {name: s, application: app}\n",
    );
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    let job = wait::until("the apply", || {
        let jobs =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", "apply"]);
        jobs[0]["id"].as_str().map(str::to_owned)
    });
    let mut follower = scheduler
        .client(["jobs", "logs", "-f", &job])
        .stdout(Stdio::piped())
        .spawn()
        .expect("pvnctl can be started");
    let mut stdout = BufReader::new(follower.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("the log can be read");
    assert_eq!(line, "begun\n");
    drop(stdout);
    let status =
        wait::until("the follower to end", || follower.try_wait().expect("a child can be asked"));
    assert!(status.success(), "a closed pipe is no error: {status}");
    let running = scheduler.json(&["jobs", "get", &job]);
    assert_eq!(running["status"], "RUNNING", "the job goes on: {running:#}");
    std::fs::write(scheduler.home().join("go"), "").expect("a file can be written");
    scheduler.channel_becomes("s", "c", "CONVERGED");
}

/// What is told on stderr where stdout cannot be written.
fn said_on_a_full_disk(scheduler: &Scheduler, arguments: &[&str]) -> String {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let told =
        scheduler.client(arguments.iter()).stdout(full).output().expect("pvnctl can be started");
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(
        told.status.code() == Some(1)
            && said.contains("cannot write the output: No space left on device"),
        "{said}"
    );
    said
}

#[test]
fn a_command_whose_exit_code_is_the_answer_goes_on_when_nobody_reads_it() {
    let scheduler = Scheduler::start();
    let configs = "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    \
                   apply:\n      taskConfig: {program: {name: do, entrypoint: [sh, -c], cmd: \
                   ['exit 1']}}\n---\napplication: {name: app, releaseChannels: [{name: c, \
                   runtimes: [{runtime: r}]}]}\n---\nservice: {name: s, application: app}\n";
    scheduler.apply(configs);
    let file = scheduler.home().join("s.pvn.yaml");
    std::fs::write(&file, configs.replace("exit 1", "exit 3")).expect("a file can be written");
    let file = file.to_str().expect("it is text");
    let unread = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let errors = writer.try_clone().expect("a pipe can be shared");
        scheduler
            .client(arguments.iter())
            .stdout(writer)
            .stderr(errors)
            .status()
            .expect("pvnctl can be started")
            .code()
    };
    assert_eq!(unread(&["services", "push", "s", "--app", "app", "--wait"]), Some(2));
    assert_eq!(unread(&["services", "wait", "s", "--app", "app"]), Some(2));
    assert_eq!(unread(&["configs", "diff", file, "--exit-code"]), Some(2));
    assert_eq!(unread(&["configs", "apply", file, "--no-prompt", "--push", "--wait"]), Some(2));
    assert_eq!(
        unread(&["services", "list"]),
        Some(0),
        "whose output is the answer needs no reader"
    );
    // On a full disk what was done is told on stderr: who tries again does it twice.
    let full = |arguments: &[&str]| said_on_a_full_disk(&scheduler, arguments);
    let version = || {
        let channel = scheduler.channel("s", "c");
        channel["desiredVersion"].as_str().expect("it has a version").to_owned()
    };
    let said = full(&["services", "list"]);
    assert!(!said.contains("all the same"), "{said}");
    for arguments in [
        &["services", "push", "s", "--app", "app"][..],
        &["services", "push", "s", "--app", "app", "--wait", "-o", "json"],
    ] {
        let said = full(arguments);
        assert!(said.contains(&format!("{} is released all the same", version())), "{said}");
    }
    let said = full(&["configs", "apply", file, "--no-prompt", "--push"]);
    let version = version();
    assert!(
        said.contains(&format!("it is applied all the same, and {version} of app/s is released")),
        "{said}"
    );
    let said = full(&["auth", "token", "create", "ff", "--role", "viewer"]);
    assert!(
        said.contains("token `ff` is made all the same")
            && said.contains("`pvnctl auth token revoke ff`"),
        "{said}"
    );
}
