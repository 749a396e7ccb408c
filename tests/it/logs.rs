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
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply:\n      taskConfig: {program: {name: do, entrypoint: [sh, -c], cmd: \
         ['echo begun; until [ -e go ]; do sleep 0.1; done']}}\n---\napplication: {name: app, releaseChannels: [{name: c, runtimes: [{runtime: \
         r}]}]}\n---\nservice: {name: s, application: app}\n",
    );
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    let job = wait::until("the apply", || {
        let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", "apply"]);
        jobs[0]["id"].as_str().map(str::to_owned)
    });
    let mut follower = scheduler.client(["jobs", "logs", "-f", &job]).stdout(Stdio::piped()).spawn().expect("pvnctl can be started");
    let mut stdout = BufReader::new(follower.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("the log can be read");
    assert_eq!(line, "begun\n");
    drop(stdout);
    let status = wait::until("the follower to end", || follower.try_wait().expect("a child can be asked"));
    assert!(status.success(), "a closed pipe is no error: {status}");
    let running = scheduler.json(&["jobs", "get", &job]);
    assert_eq!(running["status"], "RUNNING", "the job goes on: {running:#}");
    std::fs::write(scheduler.home().join("go"), "").expect("a file can be written");
    scheduler.channel_becomes("s", "c", "CONVERGED");
}
