//! What the wrapper asks of the kernel before its command runs.

use std::collections::BTreeSet;
use std::process::Command;

use crate::run::Wrapper;
use crate::scheduler::{JOB, Scheduler, TOKEN};
use crate::skipped;

/// The system calls of a run, in order; `None` when they cannot be seen here.
fn trace(test: &str, wrapper: &Wrapper) -> Option<Vec<String>> {
    Some(trace_processes(test, wrapper)?.into_iter().map(|(_, call)| call).collect())
}

/// The same, each with the process that made it.
fn trace_processes(test: &str, wrapper: &Wrapper) -> Option<Vec<(String, String)>> {
    let file = wrapper.path("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-o"])
        .arg(&file)
        .arg(wrapper.command.get_program())
        .args(wrapper.command.get_args());
    command
        .envs(wrapper.command.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .current_dir(wrapper.directory.path());
    command.env_remove("PVN_JOB_DIR");
    let Ok(output) = command.output() else {
        skipped(test, "there is no `strace`");
        return None;
    };
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    if !text.contains("execve(") || !text.contains("+++ exited") {
        skipped(
            test,
            &format!(
                "strace may not trace here: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        );
        return None;
    }
    if text.contains("execve(0x") {
        skipped(
            test,
            "only root can see what a program does that keeps others from reading its memory",
        );
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // Each line begins with the pid.
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    Some(lines.map(|(pid, call)| (pid.to_owned(), call.trim_start().to_owned())).collect())
}

/// Sockets, threads, certificates and name lookups.
fn networked(call: &str) -> bool {
    let thread = call.starts_with("clone") && call.contains("CLONE_THREAD");
    let file = call.starts_with("open")
        && ["resolv.conf", "/etc/hosts", "nsswitch", ".pem", ".crt", "/ssl/"]
            .iter()
            .any(|name| call.contains(name));
    thread || file || call.starts_with("socket(") || call.starts_with("connect(")
}

#[test]
fn no_socket_tls_file_or_thread_is_made_before_the_child_runs() {
    let scheduler = Scheduler::start();
    let name = "no_socket_tls_file_or_thread_is_made_before_the_child_runs";
    let ca = tempfile::NamedTempFile::with_suffix(".pem").unwrap();
    let wrapper = Wrapper::new(&[], &["/usr/bin/env", "true"])
        .env("PVN_API_URL", scheduler.url())
        .env("PVN_TOKEN", TOKEN);
    let Some(calls) = trace(name, &wrapper.env("PVN_JOB_ID", JOB).env("SSL_CERT_FILE", ca.path()))
    else {
        return;
    };
    let started = calls
        .iter()
        .position(|call| call.starts_with("execve(\"/usr/bin/env\""))
        .expect("the command is executed");
    assert_eq!(
        calls[..started].iter().filter(|call| networked(call)).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
    assert!(
        calls[started..].iter().any(|call| call.starts_with("socket(")),
        "afterwards it is delivered"
    );
    scheduler.check();
}

#[test]
fn a_dry_run_makes_no_socket_and_no_thread_at_all() {
    let wrapper = Wrapper::new(&[], &["true"]);
    let Some(calls) = trace("a_dry_run_makes_no_socket_and_no_thread_at_all", &wrapper) else {
        return;
    };
    assert_eq!(
        calls.iter().filter(|call| networked(call)).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

/// The names in the first column of the tables of `docs/wrapper.md`: the wrapper's own, and those
/// of the new process.
fn documented() -> [BTreeSet<String>; 2] {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/wrapper.md"))
        .unwrap();
    let (_, section) = docs.split_once("## What it asks of the kernel").unwrap();
    let (own, new) = section.split_once("| in the new process").unwrap();
    [own, new].map(|part| {
        let cells = part.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
        cells
            .flat_map(|cell| cell.split(['`', ' ']))
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    })
}

/// What the loader of a program that is linked dynamically adds, and what other C libraries and
/// machines call the same.
const ELSEWHERE: &[&str] = &[
    "pread64",
    "faccessat",
    "faccessat2",
    "fstat",
    "newfstatat",
    "poll",
    "dup3",
    "clone",
    "vfork",
    "prlimit",
    "getrlimit",
];

#[test]
fn the_system_calls_of_a_trivial_run_are_those_of_the_docs() {
    // Nothing but what it is told here: not even a report to a file.
    let mut wrapper = Wrapper::new(&[], &[]);
    let program = wrapper.command.get_program().to_owned();
    wrapper.command = Command::new(program);
    wrapper.command.args(["exec", "--", "true"]);
    let Some(calls) =
        trace_processes("the_system_calls_of_a_trivial_run_are_those_of_the_docs", &wrapper)
    else {
        return;
    };
    let own = calls[0].0.clone();
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    let mut started = false;
    for (pid, call) in &calls {
        let Some((name, _)) = call.split_once('(').filter(|(name, _)| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        }) else {
            continue;
        };
        if *pid == own {
            seen[0].insert(name.to_owned());
        } else if !started {
            // Up to its `execve`; what follows is the command's.
            seen[1].insert(name.to_owned());
            started = name == "execve";
        }
    }
    for (seen, documented) in seen.into_iter().zip(documented()) {
        let new: Vec<_> = seen
            .difference(&documented)
            .filter(|name| !ELSEWHERE.contains(&name.as_str()))
            .collect();
        assert!(new.is_empty(), "not in docs/wrapper.md: {new:?}");
        // What makes it what it is; the rest is as the C library, the kernel and the moment will
        // have it.
        for needed in
            ["rt_sigprocmask", "prctl", "signalfd4", "pipe2", "ppoll", "wait4", "setpgid", "execve"]
        {
            assert_eq!(seen.contains(needed), documented.contains(needed), "{needed}: {seen:?}");
        }
    }
}
