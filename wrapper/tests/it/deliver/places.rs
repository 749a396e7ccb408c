//! Disks that are absent or shared.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use schema::report::Report;
use schema::spool::Stream;

use super::{check, shell};
use crate::kernel::{NAMESPACE, no_namespaces};
use crate::run::{SOON, Wrapper};
use crate::scheduler::{JOB, Scheduler};

/// More than memory keeps of a stream without a disk.
const MEGABYTES: &str = "head -c 3000000 /dev/urandom | tee bytes";

#[test]
fn no_writable_directory() {
    let scheduler = Scheduler::start();
    let run = shell(&scheduler, &[], MEGABYTES).env("TMPDIR", "/proc/nowhere").run();
    assert_eq!((run.code, run.stdout.len()), (0, 3_000_000));
    assert!(run.stderr.contains("no spool in /proc/nowhere/pvn"), "{}", run.stderr);
    check(&scheduler, &run);
    let bytes = std::fs::read(run.path("bytes")).unwrap();
    let head = usize::try_from(run.report.stdout_head_bytes.unwrap()).unwrap();
    let kept = scheduler.bytes(Stream::Stdout);
    assert!(
        kept[..head] == bytes[..head] && kept[head..] == bytes[bytes.len() - (kept.len() - head)..]
    );
    assert_eq!(kept.len() as u64 + run.report.lost_bytes, 3_000_000);
}

#[test]
fn without_a_disk_output_arrives_while_the_command_runs_and_once_only() {
    let scheduler = Scheduler::start();
    let running =
        shell(&scheduler, &[], "echo first; until [ -e go ]; do sleep 0.01; done; echo second")
            .env("TMPDIR", "/proc/nowhere")
            .spawn();
    scheduler.until_arrived(Stream::Stdout, "first\n");
    std::fs::write(running.path("go"), "").unwrap();
    check(&scheduler, &running.wait());
    assert_eq!(scheduler.bytes(Stream::Stdout), b"first\nsecond\n");
}

#[test]
fn that_it_is_the_first_process_of_its_container_stands_in_the_termination_message_too() {
    if let Some(why) = no_namespaces() {
        return crate::skipped(
            "that_it_is_the_first_process_of_its_container_stands_in_the_termination_message_too",
            &why,
        );
    }
    let scheduler = Scheduler::start();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("termination-log");
    for is_first in [true, false] {
        std::fs::write(&log, "").unwrap();
        let wrapper = shell(&scheduler, &[], "true").env("PVN_TERMINATION_LOG", &log);
        let run = if is_first { wrapper.through("unshare", NAMESPACE) } else { wrapper }.run();
        assert_eq!(run.code, 0, "{}", run.stderr);
        let told: Report = serde_json::from_slice(&std::fs::read(&log).unwrap()).unwrap();
        assert_eq!(told.first_process, is_first);
    }
}

#[test]
fn read_only_root_and_no_tmp() {
    let scheduler = Scheduler::start();
    let wrapper = shell(&scheduler, &[], "echo x; echo y >&2; exit 3").env("TMPDIR", "/");
    let mut command = std::process::Command::new("unshare");
    // The report of the test itself goes to standard output: there is no other place.
    command.args([
        "--mount",
        "sh",
        "-c",
        "mount --make-rprivate / && mount -o remount,ro,bind / && exec \"$@\"",
        "sh",
    ]);
    command
        .arg(wrapper.command.get_program())
        .args(["exec", "--report", "-"])
        .args(wrapper.command.get_args().skip(3));
    command.envs(wrapper.command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let Ok(output) = command.output() else {
        return crate::skipped("read_only_root_and_no_tmp", "there is no `unshare`");
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unshare:") || stderr.contains("mount:") {
        return crate::skipped("read_only_root_and_no_tmp", stderr.trim());
    }
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("no spool in /pvn") && stderr.contains("Read-only"), "{stderr}");
    let told = scheduler.check();
    assert_eq!(
        (told.exit_code, scheduler.bytes(Stream::Stdout), scheduler.bytes(Stream::Stderr)),
        (Some(3), b"x\n".to_vec(), b"y\n".to_vec())
    );
}

/// Every file below a directory, with its bytes.
fn files_below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| {
        if path.is_dir() {
            files_below(&path)
        } else {
            [(path.clone(), std::fs::read(path).unwrap())].into()
        }
    });
    below.collect()
}

#[test]
fn a_spool_that_is_named_is_used_and_left_without_a_trace() {
    let scheduler = Scheduler::start();
    let directory = tempfile::tempdir().unwrap();
    // What a file system of its own has in it from the beginning.
    std::fs::create_dir(directory.path().join("lost+found")).unwrap();
    let spool = directory.path().to_str().unwrap();
    let running =
        shell(&scheduler, &["--spool", spool], "echo first; until [ -e go ]; do sleep 0.01; done")
            .spawn();
    scheduler.until_arrived(Stream::Stdout, "first\n");
    assert_eq!(std::fs::read(directory.path().join("stdout")).unwrap(), b"first\n");
    std::fs::write(running.path("go"), "").unwrap();
    check(&scheduler, &running.wait());
    let left: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["lost+found"]);
}

#[test]
fn a_directory_of_somebody_elses_files_loses_none_of_them_as_a_spool() {
    let mine = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(mine.path().join("files/deep")).unwrap();
    for name in [
        "files/deep/main.c",
        "stdout",
        "stderr",
        "stdout.ordered",
        "report.json",
        "report.json.new",
        "run.json",
        "lock",
    ] {
        std::fs::write(mine.path().join(name), format!("mine: {name}")).unwrap();
    }
    let before = files_below(mine.path());
    let flags = ["--spool", mine.path().to_str().unwrap(), "--out", "plan=plan"];
    let large = "echo x > plan; head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2";
    let scheduler = Scheduler::start();
    let running = shell(
        &scheduler,
        &flags,
        &format!("echo first; until [ -e go ]; do sleep 0.01; done; {large}"),
    )
    .spawn();
    scheduler.until_arrived(Stream::Stdout, "first\n");
    assert_eq!(
        std::fs::read(mine.path().join("pvn-spool/stdout")).unwrap(),
        b"first\n",
        "in a place of its own"
    );
    std::fs::write(running.path("go"), "").unwrap();
    let run = running.wait();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr.contains(&format!("{} holds other files", mine.path().display())),
        "{}",
        run.stderr
    );
    check(&scheduler, &run);
    assert_eq!(files_below(mine.path()), before, "delivered");
    let run = Wrapper::new(&flags, &["sh", "-c", large]).run();
    assert_eq!(
        (run.code, run.report.stdout_bytes, run.report.lost_bytes),
        (0, 100_000, 0),
        "{}",
        run.stderr
    );
    assert_eq!(files_below(mine.path()), before, "a dry run");
    // The same where it stands in that very directory.
    let scheduler = Scheduler::start();
    let mut here = shell(&scheduler, &["--spool", "."], "true");
    here.command.current_dir(mine.path());
    check(&scheduler, &here.run());
    assert_eq!(files_below(mine.path()), before, "by a relative path");
}

/// Runs with a directory for whatever is temporary in which `pvn` is somebody else's: nothing is
/// put there.
fn elsewhere_than(what: &str, make: impl FnOnce(&Path), found_at: &Path) {
    let scheduler = Scheduler::start();
    let script =
        "echo first; until [ -e go ]; do sleep 0.01; done; head -c 100000 /dev/zero; echo x > plan";
    let wrapper = shell(&scheduler, &["--out", "plan=plan"], script);
    make(wrapper.directory.path());
    let running = wrapper.spawn();
    scheduler.until_arrived(Stream::Stdout, "first\n");
    let found = running.path("").join(found_at);
    let inside: Vec<_> =
        std::fs::read_dir(&found).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(inside.is_empty(), "{what}: {inside:?}");
    std::fs::write(running.path("go"), "").unwrap();
    let run = running.wait();
    assert_eq!(run.code, 0, "{what}: {}", run.stderr);
    assert!(run.stderr.contains("not ours alone"), "{what}: {}", run.stderr);
    check(&scheduler, &run);
    // One that is not delivered makes its files there just the same.
    let dry = Wrapper::new(&[], &["sh", "-c", "head -c 100000 /dev/zero"])
        .env("TMPDIR", run.path(""))
        .run();
    assert!(dry.stderr.contains("not ours alone"), "{what}: {}", dry.stderr);
    assert_eq!((dry.code, dry.report.lost_bytes), (0, 0), "{what}");
}

#[test]
fn what_another_user_made_of_the_usual_place_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let link = |directory: &Path| {
        std::fs::create_dir(directory.join("theirs")).unwrap();
        std::os::unix::fs::symlink("theirs", directory.join("pvn")).unwrap();
    };
    elsewhere_than("a symlink", link, Path::new("theirs"));
    let open_to_all = |directory: &Path| {
        std::fs::create_dir(directory.join("pvn")).unwrap();
        std::fs::set_permissions(directory.join("pvn"), std::fs::Permissions::from_mode(0o777))
            .unwrap();
    };
    elsewhere_than("one that all may write to", open_to_all, Path::new("pvn"));
    if !nix::unistd::geteuid().is_root() {
        return crate::skipped(
            "what_another_user_made_of_the_usual_place_is_not_used",
            "only root can make another user's directory",
        );
    }
    let anothers = |directory: &Path| {
        std::fs::create_dir(directory.join("pvn")).unwrap();
        std::os::unix::fs::chown(directory.join("pvn"), Some(65_534), Some(65_534)).unwrap();
    };
    elsewhere_than("another user's", anothers, Path::new("pvn"));
}

#[test]
fn variables_that_are_empty_stand_for_no_flag() {
    let scheduler = Scheduler::start();
    let run = shell(&scheduler, &[], "echo x")
        .env("PVN_SPOOL_DIR", "")
        .env("PVN_DELIVERY_TIMEOUT", "")
        .run();
    assert_eq!((run.code, run.text().as_str()), (0, "x\n"), "{}", run.stderr);
    check(&scheduler, &run);
    // The same for arguments that clap has to read.
    let run = Wrapper::new(&["--drain", "1s"], &["true"])
        .env("PVN_SPOOL_DIR", "")
        .env("PVN_DELIVERY_TIMEOUT", "")
        .run();
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn wrapper_inside_wrapper() {
    let scheduler = Scheduler::start();
    let inner = format!(
        "{} exec --out plan=plan -- sh -c 'echo inner; echo x > plan; sleep 0.3'",
        env!("CARGO_BIN_EXE_pvn-wrapper")
    );
    let run =
        shell(&scheduler, &[], &format!("echo outer; {inner}; head -c 100000 /dev/zero")).run();
    assert_eq!(run.code, 0);
    check(&scheduler, &run);
    assert_eq!(run.stdout.len(), 12 + 100_000);
    // The inner one has no token: it says so and keeps out of the outer one's way, with a named
    // spool too.
    assert!(run.stderr.contains("nothing is delivered"), "{}", run.stderr);
    // So it can fetch nothing either, runs nothing, and says who could.
    let scheduler = Scheduler::start();
    let inputs =
        format!("{} exec --in tf.plan=fetch:plan -- touch ran", env!("CARGO_BIN_EXE_pvn-wrapper"));
    let run = shell(&scheduler, &[], &inputs).run();
    check(&scheduler, &run);
    assert!(
        run.code == 125
            && run.stderr.contains("give the flag to that one")
            && !run.path("ran").exists(),
        "{}",
        run.stderr
    );
    let scheduler = Scheduler::start();
    let directory = tempfile::tempdir().unwrap();
    let script = format!("head -c 100000 /dev/zero; {inner} | head -c 90000; {inner}");
    let run = shell(&scheduler, &[], &script).env("PVN_SPOOL_DIR", directory.path()).run();
    assert_eq!(run.code, 0);
    check(&scheduler, &run);
}

#[test]
fn a_second_run_of_the_same_job_takes_the_spool_over() {
    let scheduler = Scheduler::start();
    let directory = tempfile::tempdir().unwrap();
    let spool = directory.path().join("spool");
    let flags = ["--spool", spool.to_str().unwrap()];
    let mut first = shell(
        &scheduler,
        &flags,
        "echo $$ > pid; echo of the first run; echo ready > ready; exec sleep 60",
    )
    .spawn();
    first.until_written("ready");
    scheduler.until_arrived(Stream::Stdout, "of the first run\n");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let pid = nix::unistd::Pid::from_raw(
        std::fs::read_to_string(first.path("pid")).unwrap().trim().parse().unwrap(),
    );
    nix::sys::signal::killpg(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    // As the kubelet starts a container again: the scheduler holds what the first one sent, and
    // gives way to the report.
    let run = shell(&scheduler, &flags, "echo x; sleep 0.3").run();
    assert_eq!(run.code, 0);
    scheduler.check();
    assert_eq!(scheduler.bytes(Stream::Stdout), b"x\n");
    assert!(!spool.exists());
}

#[test]
fn head_live_and_tail_at_the_end() {
    let scheduler = Scheduler::start();
    let script = "head -c 200000 /dev/urandom | tee bytes; until [ -e go ]; do sleep 0.01; done; \
                  head -c 200000 /dev/urandom | tee more";
    let running = shell(&scheduler, &["--max-output", "100000"], script).spawn();
    crate::run::until("the head arrived", || {
        (scheduler.state().streams[0].length == 50_000).then_some(())
    });
    std::fs::write(running.path("go"), "").unwrap();
    let run = running.wait();
    check(&scheduler, &run);
    let bytes =
        [std::fs::read(run.path("bytes")).unwrap(), std::fs::read(run.path("more")).unwrap()]
            .concat();
    assert!(scheduler.bytes(Stream::Stdout) == [&bytes[..50_000], &bytes[350_000..]].concat());
    assert_eq!(
        (run.report.stdout_bytes, run.report.stdout_head_bytes, run.report.truncated),
        (400_000, Some(50_000), true)
    );
}

#[test]
fn a_run_without_an_address_touches_no_scheduler_and_leaves_nothing() {
    let mut wrapper = Wrapper::new(&[], &["sh", "-c", "head -c 100000 /dev/zero"]);
    wrapper.command.env("PVN_JOB_ID", JOB).process_group(0);
    let run = wrapper.run();
    assert!(run.took < SOON);
    assert!(run.path("pvn").read_dir().unwrap().next().is_none());
}
