//! Two jobs that declare the same file, whatever the command does to the directory in which it
//! lies.

use std::path::Path;

use super::shared::{until_said, until_there};
use crate::deliver;
use crate::run::{Running, Wrapper, until};
use crate::scheduler::Scheduler;
use crate::skipped;

/// A wrapper in `directory/work`, whose place for locks is in `directory/PLACE`.
fn within(directory: &Path, place: &str, flags: &[&str], script: &str) -> Running {
    let work = directory.join("work");
    std::fs::create_dir_all(work.join("build")).unwrap();
    std::fs::create_dir_all(directory.join(place)).unwrap();
    let mut wrapper =
        Wrapper::new(flags, &["sh", "-c", script]).env("TMPDIR", directory.join(place));
    wrapper.command.current_dir(work);
    wrapper.spawn()
}

const DECLARED: &[&str] = &["--out", "plan=tf.plan"];

const DECLARES: &[&str] = &["--out", "plan=build/tf.plan"];

/// Fails when another ran beside it.
const UNTIL_GO: &str = "echo > held; until [ -e go ]; do sleep 0.01; done; [ ! -e ran ] || exit \
                        9; mkdir -p build; echo mine > build/tf.plan";

/// Another one waits until the first is through, which `script` and then [`UNTIL_GO`] are of.
fn excludes(places: [&str; 2], script: &str) {
    let shared = tempfile::tempdir().unwrap();
    excludes_with(shared.path(), places, [DECLARES, DECLARES], script);
}

fn excludes_with(shared: &Path, places: [&str; 2], flags: [&[&str]; 2], script: &str) {
    let work = shared.join("work");
    let holder = within(shared, places[0], flags[0], &format!("{script}; {UNTIL_GO}"));
    until_there(&work.join("held"));
    let mut waiting = within(shared, places[1], flags[1], "echo > ran; echo other > build/tf.plan");
    until_said(&mut waiting, "waits for process");
    std::fs::write(work.join("go"), "").unwrap();
    let run = holder.wait();
    assert_eq!(run.code, 0, "{script}: {}", run.stderr);
    assert_eq!(waiting.wait().code, 0, "{script}");
    assert_eq!(std::fs::read_to_string(work.join("build/tf.plan")).unwrap(), "other\n");
}

#[test]
fn p1_a_command_that_removes_its_directory_excludes_others_all_the_same() {
    excludes(["tmp", "tmp"], "rm -rf build");
    excludes(["tmp", "tmp"], "rm -rf build; mkdir build");
    excludes(["tmp", "tmp"], "rm -rf build .*.pvn-lock; mkdir build");
}

#[test]
fn p1_the_jobs_of_one_daemon_exclude_each_other_whatever_their_commands_remove() {
    let shared = tempfile::tempdir().unwrap();
    let jobs = ["a", "b"].map(|job| shared.path().join("spool").join(job));
    jobs.iter().for_each(|job| std::fs::create_dir_all(job).unwrap());
    let flags =
        jobs.each_ref().map(|job| ["--job", job.to_str().unwrap(), DECLARES[0], DECLARES[1]]);
    excludes_with(
        shared.path(),
        ["one", "two"],
        flags.each_ref().map(|flags| flags.as_slice()),
        "rm -rf build",
    );
    let left: Vec<_> = std::fs::read_dir(shared.path().join("spool"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn p1_a_lock_that_the_command_removed_is_made_again_for_those_who_share_nothing_else() {
    excludes(
        ["one", "two"],
        "rm -rf build; mkdir build; until [ -e build/.tf.plan.pvn-lock ]; do sleep 0.01; done",
    );
}

#[test]
fn p1_who_waits_goes_on_waiting_when_the_directory_goes_away() {
    let shared = tempfile::tempdir().unwrap();
    let work = shared.path().join("work");
    let script =
        format!("echo > begun; until [ -e remove ]; do sleep 0.01; done; rm -rf build; {UNTIL_GO}");
    let holder = within(shared.path(), "tmp", DECLARES, &script);
    until_there(&work.join("begun"));
    let mut waiting = within(
        shared.path(),
        "tmp",
        DECLARES,
        "echo > ran; mkdir -p build; echo other > build/tf.plan",
    );
    until_said(&mut waiting, "waits for process");
    std::fs::write(work.join("remove"), "").unwrap();
    until_there(&work.join("held"));
    // It has looked again some times since.
    let turns = || turns(waiting.child.id());
    let before = turns().expect("it runs");
    until("it looked again", || turns().is_none_or(|now| now > before + 5).then_some(()));
    std::fs::write(work.join("go"), "").unwrap();
    let run = holder.wait();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(waiting.wait().code, 0);
}

/// How often a process has gone to sleep by itself; `None` when it is gone.
fn turns(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?
        .trim()
        .parse()
        .ok()
}

#[test]
fn p1_a_symlink_and_what_it_leads_to_are_one_file() {
    let shared = tempfile::tempdir().unwrap();
    let work = shared.path().join("work");
    std::fs::create_dir_all(work.join("build")).unwrap();
    std::os::unix::fs::symlink("build/tf.plan", work.join("link")).unwrap();
    let holder = within(shared.path(), "one", &["--out", "plan=link"], UNTIL_GO);
    until_there(&work.join("held"));
    let mut waiting =
        within(shared.path(), "two", DECLARES, "echo > ran; echo other > build/tf.plan");
    until_said(&mut waiting, "waits for process");
    std::fs::write(work.join("go"), "").unwrap();
    assert_eq!([holder.wait().code, waiting.wait().code], [0, 0]);
}

#[test]
fn p1_wrappers_side_by_side_in_one_job_exclude_each_other_too() {
    let wrapper = env!("CARGO_BIN_EXE_pvn-wrapper");
    let part = format!(
        "'{wrapper}' exec --out plan=tf.plan -- sh -c '[ ! -e inside ] || exit 9; echo > inside; \
         sleep 0.1; echo x > tf.plan; rm inside'"
    );
    let script = format!(
        "for i in 1 2 3 4; do {part} & all=\"$all $!\"; done; for pid in $all; do wait $pid || \
         exit; done"
    );
    let scheduler = Scheduler::start();
    let run = deliver::shell(&scheduler, &[], &script).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    scheduler.check();
}

#[test]
fn p1_wrappers_side_by_side_exclude_each_other_also_where_the_one_around_them_declares_the_file() {
    let wrapper = env!("CARGO_BIN_EXE_pvn-wrapper");
    let part = |script: &str| format!("'{wrapper}' exec --out plan=tf.plan -- sh -c '{script}'");
    let again = part("echo y > tf.plan").replace('\'', "'\\''");
    // The second one is started while the first is inside, and is seen to wait, or to be inside
    // too.
    let script = format!(
        "{} & first=$!; until [ -e inside ]; do sleep 0.01; done; {} 2> said & second=$!; until \
         grep -q waits said || [ -e both ]; do sleep 0.01; done; echo > go; wait $first && wait \
         $second && [ ! -e both ]",
        part("echo > inside; until [ -e go ]; do sleep 0.01; done; echo x > tf.plan; rm inside"),
        part(&format!("[ ! -e inside ] || echo > both; {again}; echo z > tf.plan")),
    );
    let run = Wrapper::new(DECLARED, &["sh", "-c", &script]).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let scheduler = Scheduler::start();
    let run = deliver::shell(&scheduler, DECLARED, &script).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    scheduler.check();
    let left = std::fs::read_dir(run.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        left.filter(|name| name.contains("pvn-lock")).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

#[test]
fn p1_another_user_waits_for_a_lock_whatever_its_makers_umask() {
    let test = "p1_another_user_waits_for_a_lock_whatever_its_makers_umask";
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "only root can become another user");
    }
    let shared = tempfile::tempdir().unwrap();
    let work = shared.path().join("work");
    std::fs::create_dir(&work).unwrap();
    for open in [shared.path(), &work] {
        std::fs::set_permissions(open, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
    }
    let mut holder = Wrapper::new(
        &["--out", "plan=tf.plan"],
        &["sh", "-c", "echo > held; until [ -e go ]; do sleep 0.01; done; echo x > tf.plan"],
    );
    holder = holder.through("sh", ["-c", "umask 077; exec \"$@\"", "sh"]);
    holder.command.current_dir(&work);
    let holder = holder.spawn();
    until_there(&work.join("held"));
    let mut waiting = Wrapper::new(
        &["--out", "plan=tf.plan"],
        &["sh", "-c", "cat .tf.plan.pvn-lock; rm -f tf.plan; echo y > tf.plan"],
    );
    std::os::unix::fs::chown(waiting.directory.path(), Some(65534), None).unwrap();
    waiting = waiting.through("setpriv", ["--reuid", "65534", "--clear-groups", "--"]);
    waiting.command.current_dir(&work);
    let mut waiting = waiting.spawn();
    until_said(&mut waiting, "waits for process");
    std::fs::write(work.join("go"), "").unwrap();
    assert_eq!(holder.wait().code, 0);
    let pid = waiting.child.id();
    let run = waiting.wait();
    assert_eq!(run.code, 0);
    assert!(run.text().contains(&format!(" {pid} ")), "it names its holder: {}", run.text());
}

#[test]
fn p1_a_lock_file_that_another_user_left_names_who_has_it_now() {
    let test = "p1_a_lock_file_that_another_user_left_names_who_has_it_now";
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "only root can become another user");
    }
    let mut wrapper = Wrapper::new(
        &["--out", "plan=tf.plan"],
        &["sh", "-c", "cat .tf.plan.pvn-lock; echo y > tf.plan"],
    );
    std::fs::write(wrapper.path(".tf.plan.pvn-lock"), "job-1 4711 elsewhere\n").unwrap();
    std::os::unix::fs::chown(wrapper.directory.path(), Some(65534), None).unwrap();
    wrapper = wrapper.through("setpriv", ["--reuid", "65534", "--clear-groups", "--"]);
    let run = wrapper.run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.text().contains("4711"), "{}", run.text());
}

#[test]
fn what_lay_where_an_input_goes_survives_a_command_that_clears_its_directory() {
    for (clear, code) in [("rm -rf .t* tf.plan", 0), ("git init -q . && git clean -fdxq", 0)] {
        if clear.starts_with("git")
            && std::process::Command::new("git").arg("--version").output().is_err()
        {
            skipped(
                "what_lay_where_an_input_goes_survives_a_command_that_clears_its_directory",
                "there is no git",
            );
            continue;
        }
        for link in [false, true] {
            let scheduler = Scheduler::start();
            scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan".to_vec());
            let wrapper = deliver::shell(
                &scheduler,
                &["--in", "work/tf.plan=fetch:plan"],
                &format!("cd work && cat tf.plan && {clear} && ls -A"),
            );
            let plan = wrapper.path("work/tf.plan");
            std::fs::create_dir(wrapper.path("work")).unwrap();
            match link {
                false => {
                    std::fs::write(&plan, "mine").unwrap();
                    std::fs::set_permissions(
                        &plan,
                        std::os::unix::fs::PermissionsExt::from_mode(0o640),
                    )
                    .unwrap();
                }
                true => std::os::unix::fs::symlink("nowhere", &plan).unwrap(),
            }
            let run = wrapper.run();
            assert_eq!(run.code, code, "{clear}: {}", run.stderr);
            assert!(!run.text().contains("pvn-before"), "it is removed: {}", run.text());
            match link {
                false => {
                    assert_eq!(
                        std::fs::read_to_string(run.path("work/tf.plan")).unwrap(),
                        "mine",
                        "{}",
                        run.stderr
                    );
                    let mode = std::os::unix::fs::PermissionsExt::mode(
                        &std::fs::metadata(run.path("work/tf.plan")).unwrap().permissions(),
                    );
                    assert_eq!(mode & 0o777, 0o640);
                }
                true => assert_eq!(
                    std::fs::read_link(run.path("work/tf.plan")).unwrap(),
                    Path::new("nowhere")
                ),
            }
            assert!(!run.path("work/.tf.plan.pvn-before").exists());
        }
    }
}
