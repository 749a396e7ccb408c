//! `pvnctl init`: what it writes works at once, in two channels, and repairs what somebody changes.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tests::{programs, skip};

use crate::dev::said;

const KINDS: [&str; 6] = ["script", "sql", "terraform", "helm", "rsync", "systemd"];

fn pvnctl(arguments: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(programs::program("pvnctl"));
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    command.output().expect("pvnctl can be started")
}

fn init(kind: &str, home: &Path) {
    let output = pvnctl(&["init", "demo", "--kind", kind], home);
    assert!(output.status.success(), "{kind}: {}", said(&output));
}

/// Whether a program runs with these arguments.
fn runs(program: &[&str]) -> bool {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn dev(home: &Path) {
    let output = Command::new(programs::program("pvn-scheduler"))
        .args(["dev", "demo", "--listen", "127.0.0.1:0", "--until-converged", "--timeout", "60s"])
        .current_dir(home)
        .stdin(Stdio::null())
        .output()
        .expect("dev can be started");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

/// Writes a directory of this kind and runs it, and once more after somebody changed `file`, which
/// each channel has in a place of its own. `any`: what it needs, one of these.
fn check(test: &str, kind: &str, any: &[&[&str]], file: Option<&str>) {
    if !any.is_empty() && !any.iter().any(|program| runs(program)) {
        let names: Vec<_> = any.iter().map(|program| program.join(" ")).collect();
        return skip::skipped(test, &format!("it needs {}", names.join(" or ")));
    }
    let home = tempfile::tempdir().expect("a directory can be made");
    init(kind, home.path());
    dev(home.path());
    let Some(file) = file else { return };
    let path = |channel: &str| home.path().join("demo/out").join(channel).join(file);
    let text = |channel: &str| {
        std::fs::read_to_string(path(channel)).unwrap_or_else(|error| format!("{channel}: {error}"))
    };
    let (staging, production) = (text("staging"), text("production"));
    assert_eq!(staging, production, "{kind}: each channel has its own");
    std::fs::write(path("production"), "somebody was here").expect("a file can be written");
    dev(home.path());
    assert_eq!(text("production"), production, "{kind}");
}

#[test]
fn a_script_of_init_runs_at_once() {
    check("a_script_of_init_runs_at_once", "script", &[], Some("message.txt"));
}

#[test]
fn migrations_of_init_run_at_once() {
    check("migrations_of_init_run_at_once", "sql", &[&["sqlite3", "-version"]], None);
}

#[test]
fn terraform_of_init_runs_at_once() {
    let any: [&[&str]; 2] = [&["terraform", "version"], &["tofu", "version"]];
    check("terraform_of_init_runs_at_once", "terraform", &any, Some("site.txt"));
}

#[test]
fn files_of_init_are_copied_at_once() {
    check(
        "files_of_init_are_copied_at_once",
        "rsync",
        &[&["rsync", "--version"]],
        Some("index.html"),
    );
}

#[test]
fn a_unit_of_init_runs_at_once() {
    let manager: [&[&str]; 1] = [&["systemctl", "--user", "show-environment"]];
    check("a_unit_of_init_runs_at_once", "systemd", &manager, None);
}

#[test]
fn whatever_init_writes_is_a_valid_config_with_scripts_that_a_shell_can_read() {
    for kind in KINDS {
        let home = tempfile::tempdir().expect("a directory can be made");
        init(kind, home.path());
        let output = pvnctl(&["validate", "demo"], home.path());
        assert!(output.status.success(), "{kind}: {}", said(&output));
        let files = std::fs::read_dir(home.path().join("demo")).expect("it is there");
        let files = files.map(|file| file.expect("it can be read").path());
        let scripts: Vec<_> =
            files.filter(|file| file.extension().is_some_and(|of| of == "sh")).collect();
        assert!(!scripts.is_empty(), "{kind}");
        for script in scripts {
            let script = script.to_str().expect("its name is text");
            assert!(runs(&["sh", "-n", script]), "{script}");
        }
        let again = pvnctl(&["init", "demo", "--kind", kind], home.path());
        let told = said(&again);
        assert!(again.status.code() == Some(1) && told.contains("nothing was written"), "{told}");
    }
}
