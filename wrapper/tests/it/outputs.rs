//! Declared output files, `install` and `validate`.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use schema::id::BlobId;

use crate::run::{Run, shell};

fn check(script: &str, code: i32, error: Option<&str>) -> Run {
    let run = shell(&["--out", "plan=out.bin"], script);
    assert_eq!(run.code, code, "{}", run.stderr);
    let file = &run.report.files[0];
    match error {
        None => assert_eq!(
            (file.content_blob_id, &file.error),
            (Some(BlobId::of(&std::fs::read(run.path("out.bin")).unwrap())), &None)
        ),
        Some(error) => assert!(
            file.error.as_ref().unwrap().contains(error) && file.content_blob_id.is_none(),
            "{file:?}"
        ),
    }
    run
}

#[test]
fn a_declared_file_is_told_by_its_digest() {
    check("printf 'a\\0b' > out.bin", 0, None);
    check(": > out.bin", 0, None);
    check("echo x > real; ln -s real out.bin", 0, None);
}

#[test]
fn a_sparse_gigabyte_is_a_file_like_any_other() {
    let run = shell(&["--out", "plan=out.bin"], "truncate -s 64M out.bin");
    assert_eq!((run.code, run.report.files[0].error.clone()), (0, None));
}

#[test]
fn a_missing_file_is_65_after_a_success_and_the_childs_own_code_is_told() {
    let run = check("true", 65, Some("there is no file out.bin"));
    assert_eq!(run.report.exit_code, Some(0));
    assert!(run.report.bad_output.unwrap().contains("output `plan`"));
}

#[test]
fn a_missing_file_after_a_failure_is_only_noted() {
    let run = check("exit 1", 1, Some("there is no file"));
    assert_eq!(run.report.bad_output, None);
}

#[test]
fn success_exit_codes_say_after_what_files_must_be_there() {
    let run = shell(&["--success-exit-codes", "0,2", "--out", "plan=out.bin"], "exit 2");
    assert_eq!((run.code, run.report.exit_code), (65, Some(2)));
    let run = shell(&["--success-exit-codes", "2", "--out", "plan=out.bin"], "exit 0");
    assert_eq!(run.code, 0);
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    check("mkdir out.bin", 65, Some("no regular file"));
    check("mkfifo out.bin", 65, Some("no regular file"));
    check("ln -s /dev/zero out.bin", 65, Some("no regular file"));
}

#[test]
fn install_copies_the_program_and_makes_it_executable() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("a/b");
    for _ in 0..2 {
        let status = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
            .arg("install")
            .arg(&target)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0));
    }
    assert_eq!(
        std::fs::metadata(target.join("pvn-wrapper")).unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);
    let status = Command::new(target.join("pvn-wrapper"))
        .args(["exec", "--", "sh", "-c", "exit 3"])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    let output = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args(["install", "/proc/no"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/proc/no"));
}
