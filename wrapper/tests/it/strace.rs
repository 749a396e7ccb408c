//! What the wrapper asks of the kernel before its command runs.

use std::process::Command;

use crate::run::Wrapper;
use crate::scheduler::{JOB, Scheduler, TOKEN};
use crate::skipped;

/// The system calls of a run of `true`, in order; `None` when they cannot be seen here.
fn trace(test: &str, wrapper: &Wrapper) -> Option<Vec<String>> {
    let file = wrapper.path("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-o"]).arg(&file).arg(wrapper.command.get_program()).args(wrapper.command.get_args());
    command.envs(wrapper.command.get_envs().filter_map(|(key, value)| Some((key, value?)))).current_dir(wrapper.directory.path());
    let Ok(output) = command.output() else {
        skipped(test, "there is no `strace`");
        return None;
    };
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    if !text.contains("execve(") || !text.contains("+++ exited") {
        skipped(test, &format!("strace may not trace here: {}", String::from_utf8_lossy(&output.stderr).trim()));
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // Each line begins with the pid.
    Some(text.lines().filter_map(|line| line.split_once(' ')).map(|(_, call)| call.trim_start().to_owned()).collect())
}

/// Sockets, threads, certificates and name lookups.
fn networked(call: &str) -> bool {
    let thread = call.starts_with("clone") && call.contains("CLONE_THREAD");
    let file = call.starts_with("open")
        && ["resolv.conf", "/etc/hosts", "nsswitch", ".pem", ".crt", "/ssl/"].iter().any(|name| call.contains(name));
    thread || file || call.starts_with("socket(") || call.starts_with("connect(")
}

#[test]
fn no_socket_tls_file_or_thread_is_made_before_the_child_runs() {
    let scheduler = Scheduler::start();
    let name = "no_socket_tls_file_or_thread_is_made_before_the_child_runs";
    let ca = tempfile::NamedTempFile::with_suffix(".pem").unwrap();
    let wrapper = Wrapper::new(&[], &["/usr/bin/env", "true"]).env("PVN_API_URL", scheduler.url()).env("PVN_TOKEN", TOKEN);
    let Some(calls) = trace(name, &wrapper.env("PVN_JOB_ID", JOB).env("SSL_CERT_FILE", ca.path())) else { return };
    let started = calls.iter().position(|call| call.starts_with("execve(\"/usr/bin/env\"")).expect("the command is executed");
    assert_eq!(calls[..started].iter().filter(|call| networked(call)).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(calls[started..].iter().any(|call| call.starts_with("socket(")), "afterwards it is delivered");
    scheduler.check();
}

#[test]
fn a_dry_run_makes_no_socket_and_no_thread_at_all() {
    let wrapper = Wrapper::new(&[], &["true"]);
    let Some(calls) = trace("a_dry_run_makes_no_socket_and_no_thread_at_all", &wrapper) else { return };
    assert_eq!(calls.iter().filter(|call| networked(call)).collect::<Vec<_>>(), Vec::<&String>::new());
}
