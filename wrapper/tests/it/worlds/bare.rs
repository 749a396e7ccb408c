//! Bare surroundings: nothing of the environment but the job's variables, no /proc, no /tmp, a root
//! that is read-only, and none of the three standard descriptors.

use std::process::Command;

use schema::id::BlobId;
use schema::spool::Stream;

use crate::deliver::shell;
use crate::run::until;
use crate::scheduler::{JOB, Scheduler, TOKEN};
use crate::skipped;

/// Leaves one directory in which anything can be written; then the rest of the arguments.
const BARE: &str = "mount --make-rprivate / && mount -t tmpfs none \"$1\" && mount -o \
                    remount,ro,bind / && mount -t tmpfs -o ro none /proc && cd \"$1\" && shift && \
                    exec \"$@\" <&- >&- 2>&-";

#[test]
fn p8_in_bare_surroundings_everything_is_delivered_all_the_same() {
    let test = "p8_in_bare_surroundings_everything_is_delivered_all_the_same";
    let scheduler = Scheduler::start();
    scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan\n".to_vec());
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", BARE, "sh"]).arg(place.path());
    command.args(["env", "-i"]).arg(format!("PVN_API_URL={}", scheduler.url()));
    command.args([
        format!("PVN_JOB_ID={JOB}"),
        format!("PVN_TOKEN={TOKEN}"),
        "TMPDIR=/nowhere".to_owned(),
    ]);
    command.args([
        env!("CARGO_BIN_EXE_pvn-wrapper"),
        "exec",
        "--in",
        "got=fetch:plan",
        "--out",
        "plan=tf.plan",
        "--",
    ]);
    command.args(["/bin/sh", "-c", "cat got > tf.plan; echo out; echo err >&2; exit 0"]);
    let Ok(output) = command.output() else { return skipped(test, "there is no `unshare`") };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare:") || said.contains("mount:") {
        return skipped(test, said.trim());
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let told = scheduler.check();
    assert_eq!((told.exit_code, told.exec_error), (Some(0), None));
    assert_eq!(
        (scheduler.bytes(Stream::Stdout), scheduler.bytes(Stream::Stderr)),
        (b"out\n".to_vec(), b"err\n".to_vec())
    );
    assert_eq!(scheduler.state().files["plan"], BlobId::of(b"the plan\n"));
}

/// As builds do that begin in a clean /tmp.
#[test]
fn p8_a_command_that_clears_the_directory_of_the_spool_loses_no_output() {
    let scheduler = Scheduler::start();
    let script =
        "echo first; sleep 0.5; rm -rf pvn; head -c 3000000 /dev/zero | tr '\\0' x; echo err >&2";
    let running = shell(&scheduler, &[], script).spawn();
    let spool = running.path("pvn");
    until("the spool is there", || spool.exists().then_some(()));
    let run = running.wait();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let told = scheduler.check();
    assert_eq!((told.exit_code, told.lost_bytes, told.stdout_bytes), (Some(0), 0, 3_000_006));
    let expected = [b"first\n".as_slice(), &vec![b'x'; 3_000_000]].concat();
    assert!(
        scheduler.bytes(Stream::Stdout) == expected,
        "{} bytes",
        scheduler.bytes(Stream::Stdout).len()
    );
    assert_eq!(scheduler.bytes(Stream::Stderr), b"err\n");
    assert!(!run.stderr.contains("not delivered"), "{}", run.stderr);
}
