//! Bare surroundings: nothing of the environment but the job's variables, no /proc, no /tmp, a root that is read-only, and none of
//! the three standard descriptors.

use std::process::Command;

use schema::id::BlobId;
use schema::spool::Stream;

use crate::scheduler::{JOB, Scheduler, TOKEN};
use crate::skipped;

/// Leaves one directory in which anything can be written; then the rest of the arguments.
const BARE: &str = "mount --make-rprivate / && mount -t tmpfs none \"$1\" && mount -o remount,ro,bind / && mount -t tmpfs -o ro none /proc \
                    && cd \"$1\" && shift && exec \"$@\" <&- >&- 2>&-";

#[test]
fn p8_in_bare_surroundings_everything_is_delivered_all_the_same() {
    let test = "p8_in_bare_surroundings_everything_is_delivered_all_the_same";
    let scheduler = Scheduler::start();
    scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan\n".to_vec());
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", BARE, "sh"]).arg(place.path());
    command.args(["env", "-i"]).arg(format!("PVN_API_URL={}", scheduler.url()));
    command.args([format!("PVN_JOB_ID={JOB}"), format!("PVN_TOKEN={TOKEN}"), "TMPDIR=/nowhere".to_owned()]);
    command.args([env!("CARGO_BIN_EXE_pvn-wrapper"), "exec", "--in", "got=fetch:plan", "--out", "plan=tf.plan", "--"]);
    command.args(["/bin/sh", "-c", "cat got > tf.plan; echo out; echo err >&2; exit 0"]);
    let Ok(output) = command.output() else { return skipped(test, "there is no `unshare`") };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare:") || said.contains("mount:") {
        return skipped(test, said.trim());
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let told = scheduler.check();
    assert_eq!((told.exit_code, told.exec_error), (Some(0), None));
    assert_eq!((scheduler.bytes(Stream::Stdout), scheduler.bytes(Stream::Stderr)), (b"out\n".to_vec(), b"err\n".to_vec()));
    assert_eq!(scheduler.state().files["plan"], BlobId::of(b"the plan\n"));
}
