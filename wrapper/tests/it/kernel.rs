//! What needs the kernel's help to be shown: pid namespaces, memory cgroups, other users. What is
//! not permitted here is skipped and counted.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use schema::report::Report;

use crate::run::{Run, Wrapper, is_alive, run, until, write_program};

pub(crate) const NAMESPACE: [&str; 3] = ["--fork", "--pid", "--mount-proc"];

/// Why there are no pid namespaces here, if so.
pub(crate) fn no_namespaces() -> Option<String> {
    match Command::new("unshare").args(NAMESPACE).arg("true").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// Forks them twice; they live until the command, which alone holds a pipe, ends.
const ORPHANS: &str = "pipe(R, W); pipe(S, T); for (1..2000) { if (fork() == 0) { if (fork() == \
                       0) { close W; close S; syswrite T, 'x'; close T; sysread R, $x, 1; exit } \
                       exit } } wait for 1..2000; for (1..2000) { sysread S, $x, 1 } print qq(pid \
                       $$ of ), getppid(), qq(\\n);";

#[test]
fn pid_1_with_2000_double_forked_orphans() {
    if let Some(why) = no_namespaces() {
        return crate::skipped("pid_1_with_2000_double_forked_orphans", &why);
    }
    let run = Wrapper::new(&["--drain", "60s"], &["perl", "-e", ORPHANS])
        .through("unshare", NAMESPACE)
        .run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.text().ends_with("of 1\n"), "the wrapper is the first process: {}", run.text());
    assert_eq!((run.report.leaked.len(), run.report.output_incomplete), (0, false));
}

#[test]
fn pid_1_hears_term_and_ends_with_everything() {
    if let Some(why) = no_namespaces() {
        return crate::skipped("pid_1_hears_term", &why);
    }
    let script = "setsid sleep 60 & trap 'echo bye; exit 3' TERM; echo > ready; while :; do sleep \
                  0.01; done";
    let running = Wrapper::new(&[], &["sh", "-c", script]).through("unshare", NAMESPACE).spawn();
    running.until_written("ready");
    let children = format!("/proc/{0}/task/{0}/children", running.child.id());
    let first = std::fs::read_to_string(children).unwrap().trim().to_owned();
    assert!(Command::new("kill").args(["-TERM", &first]).status().unwrap().success());
    let run = running.wait();
    assert_eq!((run.code, run.text().as_str()), (3, "bye\n"));
}

/// With a copy of the program in a directory that anybody may use: where this was built may be
/// nobody else's to enter.
fn for_anybody(mut wrapper: Wrapper) -> Wrapper {
    let copy = wrapper.path("pvn-wrapper");
    write_program(&copy, &std::fs::read(env!("CARGO_BIN_EXE_pvn-wrapper")).unwrap(), 0o755);
    std::fs::set_permissions(wrapper.directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new(copy);
    command
        .args(wrapper.command.get_args())
        .envs(wrapper.command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    wrapper.command = command;
    wrapper
}

#[test]
fn any_uid_no_capabilities() {
    let user = [
        "--reuid=54321",
        "--regid=54321",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ];
    let possible = Command::new("setpriv").args(user).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return crate::skipped(
            "any_uid_no_capabilities",
            "setpriv is not there or may not change the user",
        );
    }
    let wrapper =
        for_anybody(Wrapper::new(&[], &["sh", "-c", "id -u; grep CapEff /proc/self/status"]));
    let run = wrapper.through("setpriv", user).run();
    assert_eq!(
        (run.code, run.text().as_str()),
        (0, "54321\nCapEff:\t0000000000000000\n"),
        "{}",
        run.stderr
    );
}

/// A memory cgroup of this test's own, if it may make one. Goes away with it.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make(test: &str, limit_bytes: u64) -> std::io::Result<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let of = |line: &str| Some(line.splitn(3, ':').nth(2)?.trim_start_matches('/').to_owned());
        let (root, path, limits) = match own.lines().find(|line| line.contains(":memory:")) {
            Some(line) => (
                "/sys/fs/cgroup/memory",
                of(line),
                ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
            ),
            None => ("/sys/fs/cgroup", own.lines().find_map(of), ["memory.max", "memory.swap.max"]),
        };
        let directory = PathBuf::from(root)
            .join(path.unwrap_or_default())
            .join(format!("wrapper-test-{test}-{}", std::process::id()));
        std::fs::create_dir(&directory)?;
        let made = Self(directory);
        std::fs::write(made.0.join(limits[0]), limit_bytes.to_string())?;
        let swap = if limits[1] == "memory.swap.max" { 0 } else { limit_bytes };
        // Not everywhere is swap accounted for, nor is there any.
        let _ = std::fs::write(made.0.join(limits[1]), swap.to_string());
        Ok(made)
    }

    /// One of 64 MiB; `None`, counted as skipped, where none can be made.
    fn get(test: &str) -> Option<Self> {
        match Self::make(test, 64 << 20) {
            Ok(cgroup) => Some(cgroup),
            Err(error) => {
                crate::skipped(test, &format!("no memory cgroup can be made: {error}"));
                None
            }
        }
    }

    /// Runs a wrapper within it.
    fn run(&self, wrapper: Wrapper) -> Run {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", self.0.display());
        wrapper.through("sh", ["-c", &enter]).run()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel takes a moment to see that it is empty.
        until("the cgroup goes away", || std::fs::remove_dir(&self.0).ok());
    }
}

#[test]
fn only_the_child_oom_killed() {
    let Some(cgroup) = Cgroup::get("only_the_child_oom_killed") else { return };
    // Once the wrapper has seen to it that the command goes first, which is after it has looked at
    // the kernel's count.
    let hungry = "sub score { open my $file, '<', qq(/proc/$_[0]/oom_score_adj); <$file> + 0 } $| \
                  = 1; print qq(hungry\\n); my $own = score(getppid()); select undef, undef, \
                  undef, 0.01 until score($$) > $own || $own == 1000; push @all, 'x' x 1000000 \
                  while 1";
    let run = cgroup.run(Wrapper::new(&[], &["perl", "-e", hungry]));
    assert_eq!(
        (run.code, run.report.signal.as_deref(), run.report.oom_killed),
        (137, Some("SIGKILL"), true),
        "{}",
        run.stderr
    );
    assert_eq!(run.text(), "hungry\n");
}

#[test]
fn a_tool_that_is_killed_for_memory_is_told_as_that() {
    let Some(cgroup) = Cgroup::get("a_tool_that_is_killed_for_memory") else { return };
    let bin = tempfile::tempdir().unwrap();
    let hungry = "#!/usr/bin/perl\npush @all, 'x' x 1000000 while 1\n";
    write_program(&bin.path().join("terraform"), hungry.as_bytes(), 0o755);
    let mut path = vec![bin.path().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let wrapper = Wrapper::new(&[], &["pvn-wrapper", "terraform", "plan"])
        .env("PATH", std::env::join_paths(path).unwrap());
    let run = cgroup.run(wrapper);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let said = "pvn-wrapper: `terraform init` was killed by SIGKILL (out of memory): ";
    assert!(run.stderr.lines().last().unwrap().starts_with(said), "{}", run.stderr);
}

#[test]
fn killed_by_somebody_is_not_killed_for_memory() {
    assert!(!run(&[], &["sh", "-c", "sleep 0.05; kill -9 $$"]).report.oom_killed);
}

#[test]
fn the_command_goes_before_us_when_memory_runs_out() {
    let running =
        Wrapper::new(&[], &["sh", "-c", "echo > ready; read x"]).stdin(Stdio::piped()).spawn();
    running.until_written("ready");
    let score = |pid: u32| {
        std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))
            .unwrap()
            .trim()
            .parse::<i32>()
            .unwrap()
    };
    let children = format!("/proc/{0}/task/{0}/children", running.child.id());
    let child: u32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    let own = score(running.child.id());
    until("its score is raised", || (score(child) > own || own == 1000).then_some(()));
    assert_eq!(running.wait().code, 1);
}

/// Most memory that a wrapper of a debug build may ever have held: the static one, which the
/// benchmark measures, has half.
const PEAK_KIB: u64 = 16 << 10;

#[test]
fn ten_gb_with_a_cap_memory_measured() {
    let total = crate::sized(1_000_000_000_u64, 10_000_000_000);
    let mut wrapper = Wrapper::new(&[], &["head", "-c", &total.to_string(), "/dev/zero"]);
    wrapper.command.stdout(Stdio::null());
    let mut running = wrapper.spawn();
    let status = format!("/proc/{}/status", running.child.id());
    let mut peak = 0;
    while running.child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(line.unwrap_or(0));
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let report: Report = running.wait().report;
    assert_eq!(
        (report.stdout_bytes, report.stdout_head_bytes, report.truncated),
        (total, Some(32 << 20), true)
    );
    assert_eq!((report.lost_bytes, report.output_incomplete), (0, false));
    assert_eq!(report.stdout_blob_id, Some(schema::id::BlobId::of(&vec![0; 64 << 20])));
    assert!((1..PEAK_KIB).contains(&peak), "{peak} KiB");
}

#[test]
fn nothing_stays_of_a_wrapper_that_a_namespace_ends_with() {
    if let Some(why) = no_namespaces() {
        return crate::skipped("nothing_stays_of_a_wrapper_that_a_namespace_ends_with", &why);
    }
    let run = Wrapper::new(&["--drain", "0s"], &["sh", "-c", "setsid sleep 60 & echo left"])
        .through("unshare", NAMESPACE)
        .run();
    assert_eq!((run.code, run.text().as_str()), (0, "left\n"));
    assert!(!run.report.leaked.iter().any(|left| left.alive && is_alive(left.pid)));
}

/// Runs it as another user where `/proc` is what `mount` makes of it, beside a `rootsleep` that has
/// root's rights. `None`, and noted as skipped, where that is not permitted.
fn where_proc_is(test: &str, mount: &str, options: &[&str], script: &str) -> Option<Run> {
    let inner =
        format!("{mount} && exec setpriv --reuid=54321 --regid=54321 --clear-groups \"$@\"");
    let namespaces = [NAMESPACE.as_slice(), &["--mount", "sh", "-c", &inner, "sh"]].concat();
    let why = match Command::new("unshare").args(&namespaces).arg("true").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    };
    if let Some(why) = why {
        crate::skipped(test, &why);
        return None;
    }
    let wrapper = for_anybody(Wrapper::new(options, &["sh", "-c", script]));
    write_program(&wrapper.path("rootsleep"), &std::fs::read("/bin/sleep").unwrap(), 0o4755);
    Some(wrapper.through("unshare", namespaces).run())
}

/// The number of each left-over, and whether it lived on.
fn left(run: &Run) -> Vec<(i32, bool)> {
    run.report.leaked.iter().map(|left| (left.pid, left.alive)).collect()
}

#[test]
fn p7_a_left_over_of_another_user_that_proc_hides_is_stopped_and_told() {
    let test = "p7_a_left_over_of_another_user_that_proc_hides_is_stopped_and_told";
    let hidden = "mount -t proc -o hidepid=2 proc /proc";
    for (options, then) in [
        (["--drain", "100ms"].as_slice(), ":"),
        (&["--timeout", "1s", "--drain", "100ms"], "sleep 61"),
    ] {
        let script = format!("./rootsleep 60 </dev/null >/dev/null 2>&1 & {then}");
        let Some(run) = where_proc_is(test, hidden, options, &script) else { return };
        let hidden =
            run.report.leaked.iter().filter(|left| left.argv[0] == "[not shown by /proc]").count();
        assert!(
            hidden == 1 && left(&run).iter().all(|(pid, alive)| *pid > 0 && !alive),
            "{:?}",
            run.report.leaked
        );
    }
}

#[test]
fn p7_without_proc_a_left_over_is_stopped_where_it_can_be_and_told() {
    let test = "p7_without_proc_a_left_over_is_stopped_where_it_can_be_and_told";
    // The second is the proc of another namespace, whose numbers mean others here.
    for proc in ["mount -t tmpfs none /proc", "umount /proc"] {
        // In the command's own group a signal reaches it all the same.
        let Some(run) = where_proc_is(
            test,
            proc,
            &["--drain", "100ms"],
            "sleep 60 </dev/null >/dev/null 2>&1 &",
        ) else {
            return;
        };
        assert_eq!(left(&run), [(0, false)], "{proc}: {:?}", run.report.leaked);
        // In a session of its own nobody knows its number; but that there is something.
        let away = "setsid sleep 60 </dev/null >/dev/null 2>&1 & sleep 0.5";
        let Some(run) = where_proc_is(test, proc, &["--drain", "100ms"], away) else { return };
        assert_eq!(left(&run), [(0, true)], "{proc}: {:?}", run.report.leaked);
    }
}
