//! Exit codes, and why a command cannot be started.

use std::process::Command;

use crate::run::{Wrapper, shell, write_program};

#[test]
fn exit_codes_0_to_255() {
    for code in 0..=255 {
        let run = shell(&[], &format!("exit {code}"));
        assert_eq!((run.code, run.report.exit_code, run.report.signal), (code, Some(code), None));
    }
}

#[test]
fn death_by_each_signal_is_128_and_its_number_and_is_named() {
    // All whose default is to end a process; those of the tracer and of memory faults too, as
    // anybody can send them.
    let names = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT";
    let later = [
        (24, "XCPU"),
        (25, "XFSZ"),
        (26, "VTALRM"),
        (27, "PROF"),
        (29, "IO"),
        (30, "PWR"),
        (31, "SYS"),
    ];
    for (number, name) in (1..).zip(names.split(' ')).chain(later) {
        let script = format!("ulimit -c 0; kill -{number} $$");
        let run = Wrapper::new(&[], &["sh", "-c", &script]).with_default_signals().run();
        assert_eq!((run.code, run.report.exit_code), (128 + number, None));
        assert_eq!(run.report.signal, Some(format!("SIG{name}")));
    }
    let run = shell(&[], "kill -37 $$");
    assert_eq!((run.code, run.report.signal.as_deref()), (165, Some("SIGRTMIN+3")));
}

#[test]
fn an_exit_code_of_137_is_no_signal() {
    let run = shell(&[], "exit 137");
    assert_eq!((run.code, run.report.exit_code, run.report.signal), (137, Some(137), None));
}

/// Runs a command that cannot be started.
fn check_refused(wrapper: Wrapper, code: i32, named: &str) {
    let run = wrapper.run();
    assert_eq!(run.code, code, "{}", run.stderr);
    let why = run.report.exec_error.unwrap();
    assert!(why.contains(named), "{why}");
    assert!(run.stderr.contains(&why), "{}", run.stderr);
    assert_eq!((run.report.exit_code, run.report.surroundings), (None, false));
}

#[test]
fn enoent_is_127() {
    check_refused(
        Wrapper::new(&[], &["no-such-command"]),
        127,
        "`no-such-command` was not found on PATH",
    );
    let wrapper = Wrapper::new(&[], &["./no-such-file"]);
    let named = format!("`./no-such-file` was not found in {}", wrapper.directory.path().display());
    check_refused(wrapper, 127, &named);
    check_refused(Wrapper::new(&[], &["/no/such/file"]), 127, "`/no/such/file` was not found");
    check_refused(Wrapper::new(&[], &[""]), 127, "empty");
}

#[test]
fn a_command_line_in_one_word_is_told_from_a_program() {
    const NAMED: &str = "its name has a blank in it: where that begins an argument";
    let wrapper = Wrapper::new(&[], &["./file --now"]);
    write_program(&wrapper.path("file"), b"#!/bin/sh\n", 0o755);
    check_refused(wrapper, 127, NAMED);
    check_refused(Wrapper::new(&[], &["sh -c true"]), 127, NAMED);
}

#[test]
fn directory_is_126() {
    check_refused(Wrapper::new(&[], &["/"]), 126, "`/` is a directory");
}

/// Runs a file with these bytes and mode.
fn check_file(bytes: &[u8], mode: u32, code: i32, named: &str) {
    let wrapper = Wrapper::new(&[], &["./file"]);
    write_program(&wrapper.path("file"), bytes, mode);
    check_refused(wrapper, code, named);
}

#[test]
fn eacces_is_126() {
    check_file(b"#!/bin/sh\n", 0o644, 126, "`x` permission");
}

#[test]
fn enoexec_is_126_and_no_shell_guesses() {
    check_file(b"exit 3\n", 0o755, 126, "`#!` line");
}

#[test]
fn a_program_for_another_machine_is_126() {
    check_file(
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xff\xff",
        0o755,
        126,
        "wrong architecture",
    );
}

#[test]
fn a_missing_interpreter_is_127_and_named() {
    check_file(b"#!/no/such/interpreter -x\n", 0o755, 127, "`/no/such/interpreter`");
}

#[test]
fn a_script_with_the_line_ends_of_another_system_is_named_as_that() {
    check_file(
        b"#!/bin/sh\r\ntrue\r\n",
        0o755,
        127,
        "the first line of `./file` ends with a carriage return",
    );
    // There it is an argument of the interpreter, which is not there whatever it is given.
    check_file(
        b"#!/no/such/interpreter -x\r\n",
        0o755,
        127,
        "the interpreter `/no/such/interpreter` of `./file` was not found",
    );
}

#[test]
fn a_command_on_path_that_may_not_be_executed_is_126() {
    let wrapper = Wrapper::new(&[], &["file"]);
    std::fs::write(wrapper.path("file"), "").unwrap();
    let path = wrapper.directory.path().to_owned();
    check_refused(wrapper.env("PATH", path), 126, "may not be executed");
}

/// Runs the wrapper with wrong arguments; none of them is 2.
fn check_usage(arguments: &[&str], named: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper")).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{arguments:?}: {stderr}");
    assert!(stderr.contains(named), "{arguments:?}: {stderr}");
}

#[test]
fn every_usage_error_is_125() {
    check_usage(&[], "Usage");
    check_usage(&["exec"], "<CMD>");
    check_usage(&["exec", "--"], "<CMD>");
    check_usage(&["exec", "true"], "true");
    check_usage(&["exec", "--nonsense", "--", "true"], "--nonsense");
    check_usage(&["exec", "--timeout", "5", "--", "true"], "is not a duration");
    check_usage(&["exec", "--timeout", "0s", "--", "true"], "positive");
    check_usage(&["exec", "--in", "x=y", "--", "true"], "neither `fetch:NAME` nor a blob id");
    check_usage(&["exec", "--in", "x", "--", "true"], "has no `=`");
    check_usage(&["exec", "--out", "a/b=c", "--", "true"], "cannot name an output");
    check_usage(&["exec", "--out", "a=", "--", "true"], "names no path");
    check_usage(
        &["exec", "--out", "a=b", "--out", "a=c", "--", "true"],
        "the output `a` is declared twice",
    );
    check_usage(
        &["exec", "--in", "b=fetch:a", "--in", "b=fetch:c", "--", "true"],
        "two inputs go to b",
    );
    check_usage(
        &["exec", "--in", "b=fetch:a", "--in", "./b=fetch:c", "--", "true"],
        "two inputs go to ./b",
    );
    check_usage(
        &["exec", "--in", "x/b=fetch:a", "--in", "x/../x//./b=fetch:c", "--", "true"],
        "two inputs go to x/../x//./b",
    );
    check_usage(
        &[
            "exec",
            "--in",
            "/proc/self/b=fetch:a",
            "--in",
            "/proc/thread-self/../../b=fetch:c",
            "--",
            "true",
        ],
        "two inputs go to",
    );
    check_usage(&["exec", "--success-exit-codes", "256", "--", "true"], "256");
    check_usage(&["exec", "--stop-signal", "NOPE", "--", "true"], "is not a signal");
    check_usage(&["validate", "nonsense", "x"], "nonsense");
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [["--help"].as_slice(), &["--version"], &["exec", "--help"]] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_pvn-wrapper")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn an_input_without_a_scheduler_to_ask_runs_nothing_and_is_125() {
    check_refused(
        Wrapper::new(&["--in", "x=fetch:plan"], &["touch", "ran"]),
        125,
        "no scheduler to ask for `fetch:plan`",
    );
}

#[test]
fn ten_thousand_instant_exits_without_a_hang() {
    let mut wrapper = Wrapper::new(&["--report", "-"], &["false"]);
    for _ in 0..crate::sized(2_000, 10_000) {
        let output = wrapper.command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let report: schema::report::Report = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((report.exit_code, report.stdout_bytes, report.stderr_bytes), (Some(1), 0, 0));
    }
    wrapper.check_nothing_is_left();
}

#[test]
fn a_report_on_standard_output_follows_the_output() {
    let output = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args(["exec", "--report", "-", "--", "echo", "hello"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report: serde_json::Value =
        serde_json::from_str(text.strip_prefix("hello\n").unwrap()).unwrap();
    assert_eq!(report["exitCode"], 0);
    assert_eq!(report["stdoutInline"], "aGVsbG8K");
}

#[test]
fn a_report_that_cannot_be_written_changes_no_exit_code() {
    let output = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args(["exec", "--report", "/no/such/dir/x", "--", "sh", "-c", "exit 4"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/dir/x"));
}

#[test]
fn a_report_can_go_to_a_pipe_or_device() {
    let output = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args(["exec", "--report", "/dev/stdout", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["exitCode"], 0);
}

#[test]
fn a_program_that_is_open_for_writing_for_a_moment_is_tried_again() {
    let wrapper = Wrapper::new(&[], &["./program"]);
    let path = wrapper.path("program");
    write_program(&path, b"#!/bin/sh\necho ran\n", 0o755);
    let writer = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let running = wrapper.spawn();
    // Until it has tried: it sleeps only before it tries again.
    let stat = format!("/proc/{}/stat", running.child.id());
    crate::run::until("it sleeps", || {
        std::fs::read_to_string(&stat).ok().filter(|stat| stat.contains(") S "))
    });
    drop(writer);
    let run = running.wait();
    assert_eq!((run.code, run.text().as_str()), (0, "ran\n"), "{}", run.stderr);
}
