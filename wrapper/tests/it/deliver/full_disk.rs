//! Disks that are full, or become so.

use schema::report::Report;

use super::{check, shell};
use crate::scheduler::{JOB, Scheduler, TOKEN};

#[test]
fn spool_disk_full() {
    let scheduler = Scheduler::start();
    // Larger files are refused to the wrapper, as a full disk would; the command itself writes
    // none.
    let mut limited = shell(&scheduler, &[], "head -c 3000000 /dev/zero");
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "ulimit -f 1000; trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(limited.command.get_program())
        .args(limited.command.get_args());
    command
        .envs(limited.command.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .current_dir(limited.directory.path());
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    limited.command = command;
    let run = limited.run();
    assert_eq!(
        (run.code, run.stdout.len(), run.report.stdout_bytes),
        (0, 3_000_000, 3_000_000),
        "{}",
        run.stderr
    );
    assert!(run.report.lost_bytes > 0 && !run.report.truncated);
    check(&scheduler, &run);
    let stored = scheduler.state().streams[0].length;
    assert_eq!(stored + run.report.lost_bytes, 3_000_000);
}

/// What fills a file system of 1 MiB.
const FLOOD: &str = "head -c 20000000 /dev/zero";

/// A run of `script` on a file system of 1 MiB, where its spool is too, that nobody takes, after
/// `prepare`; and what `resume` delivers of it then: what was said, and what arrived. `$PLAN` is a
/// declared output elsewhere. `None` where no file system can be made.
fn resumed_from_a_full_disk(
    test: &str,
    scheduler: &Scheduler,
    prepare: &str,
    script: &str,
) -> Option<(String, Report)> {
    let elsewhere = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let run = r#"mount -t tmpfs -o size=1m none "$1" && cd "$1" || exit 99
        eval "$3"
        PVN_API_URL=http://127.0.0.1:1 "$2" exec --spool "$1/s" --deliver-for 1s --out plan="$PLAN" -- sh -c "$4; exit 4" > /dev/null
        echo "ended with $?" >&2
        exec "$2" resume "$1/s""#;
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", run, "sh"])
        .arg(place.path())
        .arg(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args([prepare, script]);
    command
        .env("PVN_API_URL", scheduler.url())
        .env("PVN_TOKEN", TOKEN)
        .env("PVN_JOB_ID", JOB)
        .env("PLAN", elsewhere.path().join("plan"));
    let output = command.output();
    let said = output.as_ref().map_or_else(ToString::to_string, |output| {
        String::from_utf8_lossy(&output.stderr).into_owned()
    });
    let Some(output) =
        output.ok().filter(|_| !said.contains("unshare:") && !said.contains("mount:"))
    else {
        crate::skipped(test, said.trim());
        return None;
    };
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("ended with 4"), "{said}");
    Some((said, scheduler.check()))
}

#[test]
fn a_report_is_kept_where_the_output_fills_the_disk() {
    let scheduler = Scheduler::start();
    let test = "a_report_is_kept_where_the_output_fills_the_disk";
    let Some((said, told)) = resumed_from_a_full_disk(test, &scheduler, "", FLOOD) else { return };
    assert!(said.contains("it is kept: `pvn-wrapper resume"), "{said}");
    assert_eq!((told.exit_code, told.stdout_bytes), (Some(4), 20_000_000), "{said}");
    assert!(
        told.lost_bytes > 0 && scheduler.state().streams[0].length + told.lost_bytes == 20_000_000,
        "{told:?}"
    );
}

#[test]
fn a_report_too_large_for_the_room_that_was_kept_goes_without_its_streams() {
    let scheduler = Scheduler::start();
    let test = "a_report_too_large_for_the_room_that_was_kept_goes_without_its_streams";
    // All that is left but the room, taken by somebody else before the command's little output has
    // to be kept.
    let script = "head -c 2000000 /dev/zero > fill 2>/dev/null; head -c 40000 /dev/zero";
    let Some((said, told)) = resumed_from_a_full_disk(test, &scheduler, "", script) else { return };
    assert!(said.contains("it is kept: `pvn-wrapper resume"), "{said}");
    assert_eq!(
        (told.exit_code, told.stdout_bytes, told.lost_bytes, told.stdout_blob_id),
        (Some(4), 40_000, 40_000, None),
        "{said}"
    );
}

#[test]
fn a_report_that_could_not_be_kept_is_not_said_to_be() {
    let scheduler = Scheduler::start();
    let test = "a_report_that_could_not_be_kept_is_not_said_to_be";
    // Room for `run.json` and a page of output.
    let fill = "head -c 2000000 /dev/zero > fill 2>/dev/null; truncate -s -8192 fill";
    let Some((said, told)) = resumed_from_a_full_disk(test, &scheduler, fill, FLOOD) else {
        return;
    };
    assert!(said.contains("nor could it be kept") && !said.contains("it is kept"), "{said}");
    assert!(said.contains("is not known, and the last of its output may be missing"), "{said}");
    assert_eq!((told.exit_code, told.output_incomplete), (None, true));
}

#[test]
fn what_a_command_says_after_it_filled_the_disk_of_the_spool_arrives() {
    let test = "what_a_command_says_after_it_filled_the_disk_of_the_spool_arrives";
    let scheduler = Scheduler::start();
    let place = tempfile::tempdir().unwrap();
    let run = r#"mount -t tmpfs -o size=1m none "$1" && cd "$1" || exit 99
        exec "$2" exec --spool "$1/s" -- sh -c 'sleep 1; head -c 2000000 /dev/zero > fill 2>/dev/null
            for i in $(seq 20000); do echo $i; done; echo no room >&2; exit 4' > /dev/null"#;
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", run, "sh"])
        .arg(place.path())
        .arg(env!("CARGO_BIN_EXE_pvn-wrapper"));
    command.env("PVN_API_URL", scheduler.url()).env("PVN_TOKEN", TOKEN).env("PVN_JOB_ID", JOB);
    let output = command.output().expect("unshare can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("unshare:") || said.contains("mount:") {
        return crate::skipped(test, said.trim());
    }
    let told = scheduler.check();
    assert_eq!(
        (told.exit_code, told.stdout_bytes, told.stderr_bytes, told.lost_bytes),
        (Some(4), 108_894, 8, 0),
        "{said} {told:?}"
    );
}

#[test]
fn a_plan_for_which_there_is_no_room_is_said_to_be_lost_and_the_rest_is_delivered() {
    let scheduler = Scheduler::start();
    let test = "a_plan_for_which_there_is_no_room_is_said_to_be_lost_and_the_rest_is_delivered";
    let Some((said, told)) = resumed_from_a_full_disk(
        test,
        &scheduler,
        "",
        "echo out; head -c 3000000 /dev/urandom > $PLAN",
    ) else {
        return;
    };
    assert!(
        said.contains("output `plan` could not be kept")
            && said.contains("it is kept: `pvn-wrapper resume"),
        "{said}"
    );
    assert_eq!((told.exit_code, told.stdout_bytes, told.lost_bytes), (Some(4), 4, 0), "{said}");
    assert!(told.files[0].content_blob_id.is_none() && told.files_lost.is_some(), "{told:?}");
}
