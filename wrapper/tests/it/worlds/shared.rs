//! Two jobs in one directory, and what earlier ones left there.

use std::path::Path;

use schema::id::BlobId;

use crate::deliver;
use crate::run::{Run, Running, Wrapper, until};
use crate::scheduler::Scheduler;
use crate::skipped;

/// Runs a script with `plan` declared at `tf.plan`, in a directory where `before` has made what it
/// wants.
fn collected(before: impl FnOnce(&Path), script: &str) -> Run {
    collected_at("tf.plan", before, script)
}

fn collected_at(path: &str, before: impl FnOnce(&Path), script: &str) -> Run {
    let wrapper = Wrapper::new(&["--out", &format!("plan={path}")], &["sh", "-c", script]);
    before(wrapper.directory.path());
    wrapper.run()
}

fn old(bytes: &str) -> impl FnOnce(&Path) {
    move |directory| std::fs::write(directory.join("tf.plan"), bytes).unwrap()
}

#[test]
fn what_lay_there_before_is_no_output_of_this_run() {
    let stale = |before: &dyn Fn(&Path), script: &str| {
        let run = collected(before, script);
        assert_eq!(run.code, 65, "{script}: {}", run.stderr);
        let file = &run.report.files[0];
        assert!(
            file.content_blob_id.is_none() && file.error.as_ref().unwrap().contains("before"),
            "{script}: {file:?}"
        );
    };
    let write =
        |directory: &Path| std::fs::write(directory.join("tf.plan"), "another job's plan").unwrap();
    stale(&write, "true");
    stale(&write, "cat tf.plan");
    stale(&|directory| std::fs::write(directory.join("tf.plan"), "").unwrap(), "true");
    let linked = |directory: &Path| {
        std::fs::write(directory.join("real"), "another job's plan").unwrap();
        std::os::unix::fs::symlink("real", directory.join("tf.plan")).unwrap();
    };
    stale(&linked, "true");
    // A new link to an old file.
    stale(&linked, "ln -sfn real tf.plan.new && mv -T tf.plan.new tf.plan");
    // A second name for one, and for the declared one.
    let other =
        |directory: &Path| std::fs::write(directory.join("old"), "another job's plan").unwrap();
    stale(&other, "ln old tf.plan");
    stale(&write, "ln tf.plan tf.plan.bak");
    stale(
        &|directory| [&write as &dyn Fn(&Path), &other].iter().for_each(|make| make(directory)),
        "ln -f old tf.plan",
    );
}

#[test]
fn a_way_to_what_an_earlier_run_left_makes_no_output_of_it() {
    let releases = |directory: &Path| {
        for release in ["1", "2"] {
            std::fs::create_dir_all(directory.join("releases").join(release)).unwrap();
            std::fs::write(directory.join("releases").join(release).join("tf.plan"), release)
                .unwrap();
        }
        std::os::unix::fs::symlink("releases/1", directory.join("current")).unwrap();
    };
    let point_to = |release: &str| format!("ln -sfn releases/{release} new && mv -T new current");
    let run = collected_at("current/tf.plan", releases, &point_to("2"));
    assert_eq!(run.code, 65, "{}", run.stderr);
    assert!(
        run.report.files[0].error.as_ref().unwrap().contains("before"),
        "{:?}",
        run.report.files
    );
    let run = collected_at(
        "current/tf.plan",
        releases,
        &format!("mkdir releases/3 && printf 3 > releases/3/tf.plan && {}", point_to("3")),
    );
    assert_eq!(
        (run.code, run.report.files[0].content_blob_id),
        (0, Some(BlobId::of(b"3"))),
        "{}",
        run.stderr
    );
}

#[test]
fn what_this_run_wrote_is_its_output_however_it_was_written() {
    let fresh = |before: &str, script: &str, expected: &str| {
        let run = collected(old(before), script);
        assert_eq!(run.code, 0, "{script}: {}", run.stderr);
        assert_eq!(
            run.report.files[0].content_blob_id,
            Some(BlobId::of(expected.as_bytes())),
            "{script}"
        );
        assert!(run.path("tf.plan").exists(), "{script}: it stays");
    };
    fresh("old", "printf new > tf.plan", "new");
    fresh("old", ": > tf.plan", "");
    fresh("", ": > tf.plan", "");
    fresh("same", "printf same > tf.plan", "same");
    fresh("same", "printf same > x; touch -r tf.plan x; cp -p x tf.plan", "same");
    fresh("same", "printf same > x; touch -r tf.plan x; mv x tf.plan", "same");
    fresh("a", "printf b >> tf.plan", "ab");
    fresh("old", "sed -i s/old/new/ tf.plan", "new");
    fresh("old", "printf new > real; ln -sf real tf.plan", "new");
    fresh("old", "printf new > x; ln -f x tf.plan", "new");
    fresh("old", "printf new > x; ln -f x tf.plan; ln x y", "new");
    fresh("old", "ln tf.plan tf.plan.bak; printf new > tf.plan", "new");
    let made = tempfile::tempfile().unwrap().metadata().unwrap().created();
    if made.is_ok() {
        fresh("same", "printf same > x; touch -r tf.plan x; ln -f x tf.plan", "same");
    }
}

/// A wrapper in a directory that it shares with others.
pub(super) fn beside(directory: &Path, flags: &[&str], script: &str) -> Running {
    let mut wrapper = Wrapper::new(flags, &["sh", "-c", script]);
    wrapper.command.current_dir(directory);
    wrapper.spawn()
}

pub(super) fn until_there(path: &Path) {
    until(&format!("{} is there", path.display()), || path.exists().then_some(()));
}

/// Waits until the wrapper has said this on standard error.
pub(super) fn until_said(running: &mut Running, text: &str) {
    use std::io::BufRead;
    let mut stderr = std::io::BufReader::new(running.child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it never said `{text}`");
    }
}

const HELD: &str = "echo mine > tf.plan; echo > held; until [ -e go ]; do sleep 0.01; done";

#[test]
fn p1_two_jobs_that_declare_the_same_file_exclude_each_other() {
    let shared = tempfile::tempdir().unwrap();
    // Each leaves what only it wrote; whoever finds another inside says so.
    let script = "[ ! -e inside ] || exit 9; echo > inside; echo $$ > tf.plan; sleep 0.05; cat \
                  tf.plan; [ \"$(cat tf.plan)\" = $$ ] || exit 8; rm inside";
    let all: Vec<_> =
        (0..6).map(|_| beside(shared.path(), &["--out", "plan=tf.plan"], script)).collect();
    for running in all {
        let run = running.wait();
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(
            run.report.files[0].content_blob_id,
            Some(BlobId::of(&run.stdout)),
            "it hands over what it wrote itself"
        );
    }
    let left: Vec<_> =
        std::fs::read_dir(shared.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["tf.plan"], "no lock file is left");
}

#[test]
fn a_job_that_waits_says_for_whom_and_hears_term_and_its_timeout() {
    let shared = tempfile::tempdir().unwrap();
    let holder = beside(shared.path(), &["--out", "plan=tf.plan"], HELD);
    until_there(&shared.path().join("held"));
    let mut waiting = beside(shared.path(), &["--out", "plan=./tf.plan"], "echo > ran");
    until_said(&mut waiting, "waits for process");
    waiting.signal(15);
    let run = waiting.wait();
    assert_eq!(run.code, 125);
    assert!(run.report.exec_error.unwrap().contains("asked to stop"));
    let run = beside(shared.path(), &["--timeout", "300ms", "--out", "plan=tf.plan"], "echo > ran")
        .wait();
    assert_eq!(run.code, 125);
    assert!(
        run.report.exec_error.unwrap().contains("still uses tf.plan") && run.report.surroundings
    );
    std::fs::write(shared.path().join("go"), "").unwrap();
    assert_eq!(holder.wait().code, 0);
    assert!(!shared.path().join("ran").exists());
}

#[test]
fn p2_an_apply_waits_for_no_other_job_longer_than_its_gates_may_be_trusted() {
    let shared = tempfile::tempdir().unwrap();
    let holder = beside(shared.path(), &["--out", "plan=tf.plan"], HELD);
    until_there(&shared.path().join("held"));
    let scheduler = Scheduler::start();
    let mut of_an_apply = deliver::shell(&scheduler, &["--out", "plan=tf.plan"], "echo > ran")
        .env("PVN_JOB_KIND", "apply");
    of_an_apply.command.current_dir(shared.path());
    let began = std::time::Instant::now();
    let run = of_an_apply.run();
    assert_eq!(run.code, 125, "{}", run.stderr);
    assert!(
        began.elapsed() < std::time::Duration::from_secs(60),
        "nowhere near the quarter of an hour of a fetch"
    );
    assert!(
        run.report.exec_error.unwrap().contains("still uses tf.plan") && run.report.surroundings,
        "it is tried again"
    );
    std::fs::write(shared.path().join("go"), "").unwrap();
    assert_eq!(holder.wait().code, 0);
    assert!(!shared.path().join("ran").exists());
}

#[test]
fn a_lock_ends_with_a_wrapper_that_is_killed() {
    let shared = tempfile::tempdir().unwrap();
    let mut holder = beside(
        shared.path(),
        &["--out", "plan=tf.plan"],
        "echo $$ > pid; echo > held; exec sleep 60",
    );
    until_there(&shared.path().join("held"));
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    let run =
        beside(shared.path(), &["--out", "plan=tf.plan"], "kill -9 $(cat pid); echo new > tf.plan")
            .wait();
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_wrapper_within_the_command_does_not_wait_for_its_own_job() {
    let wrapper = env!("CARGO_BIN_EXE_pvn-wrapper");
    let script =
        format!("'{wrapper}' exec --out plan=tf.plan --timeout 20s -- sh -c 'echo x > tf.plan'");
    let run = Wrapper::new(&["--out", "plan=tf.plan"], &["sh", "-c", &script]).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let scheduler = Scheduler::start();
    let run = deliver::shell(&scheduler, &["--out", "plan=tf.plan"], &script).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    scheduler.check();
}

#[test]
fn an_input_is_gone_afterwards_and_what_lay_there_is_back() {
    for (before, command, code) in
        [(None, "cat tf.plan", 0), (Some("mine"), "cat tf.plan", 0), (Some("mine"), "exit 3", 3)]
    {
        let scheduler = Scheduler::start();
        scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan".to_vec());
        let wrapper = deliver::shell(&scheduler, &["--in", "tf.plan=fetch:plan"], command);
        if let Some(before) = before {
            std::fs::write(wrapper.path("tf.plan"), before).unwrap();
        }
        let run = wrapper.run();
        assert_eq!(run.code, code, "{}", run.stderr);
        assert!(code != 0 || run.text() == "the plan");
        assert_eq!(std::fs::read_to_string(run.path("tf.plan")).ok().as_deref(), before);
        assert!(
            !run.path(".tf.plan.pvn-before").exists() && !run.path(".tf.plan.pvn-lock").exists()
        );
    }
    // A command that was not found is no reason to leave it.
    let scheduler = Scheduler::start();
    scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan".to_vec());
    let run =
        deliver::wrapper(&scheduler, &["--in", "tf.plan=fetch:plan"], &["no-such-command"]).run();
    assert_eq!(run.code, 127);
    assert!(!run.path("tf.plan").exists());
}

#[test]
fn a_plan_of_0_bytes_is_handed_over_and_put_in_place() {
    let scheduler = Scheduler::start();
    let run = deliver::shell(&scheduler, &["--out", "plan=tf.plan"], ": > tf.plan").run();
    deliver::check(&scheduler, &run);
    assert_eq!(scheduler.state().files["plan"], BlobId::of(b""));
    let scheduler = Scheduler::start();
    scheduler.state().inputs.insert("fetch:plan".to_owned(), Vec::new());
    let run =
        deliver::shell(&scheduler, &["--in", "tf.plan=fetch:plan"], "stat -c %s tf.plan").run();
    assert_eq!((run.code, run.text().as_str()), (0, "0\n"), "{}", run.stderr);
}

#[test]
fn where_no_lock_can_be_made_it_says_so_and_goes_on() {
    let test = "where_no_lock_can_be_made_it_says_so_and_goes_on";
    if !rustix::process::geteuid().is_root() {
        return skipped(test, "only root can become another user");
    }
    let mut wrapper =
        Wrapper::new(&["--out", "plan=given/tf.plan"], &["sh", "-c", "echo x > given/tf.plan"]);
    let given = wrapper.path("given");
    std::fs::create_dir(&given).unwrap();
    std::fs::write(given.join("tf.plan"), "").unwrap();
    std::os::unix::fs::chown(given.join("tf.plan"), Some(65534), None).unwrap();
    std::os::unix::fs::chown(wrapper.directory.path(), Some(65534), None).unwrap();
    wrapper = wrapper.through("setpriv", ["--reuid", "65534", "--clear-groups", "--"]);
    let run = wrapper.run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("given/tf.plan is not locked"), "{}", run.stderr);
}

#[test]
fn what_a_killed_run_left_costs_the_owner_of_a_file_nothing() {
    let with_input = || {
        let scheduler = Scheduler::start();
        scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan".to_vec());
        let wrapper = deliver::shell(&scheduler, &["--in", "tf.plan=fetch:plan"], "cat tf.plan");
        (scheduler, wrapper)
    };
    let text = |path: std::path::PathBuf| std::fs::read_to_string(path).ok();
    // Somebody wrote the file anew after the run that moved the old one away was killed.
    let (_scheduler, wrapper) = with_input();
    std::fs::write(wrapper.path(".tf.plan.pvn-before"), "v1").unwrap();
    std::fs::write(wrapper.path("tf.plan"), "v2").unwrap();
    let run = wrapper.run();
    assert_eq!((run.code, run.text().as_str()), (0, "the plan"), "{}", run.stderr);
    assert_eq!(text(run.path("tf.plan")).as_deref(), Some("v2"));
    assert_eq!(text(run.path(".tf.plan.pvn-before.1")).as_deref(), Some("v1"));
    // The input of the killed run is what lies there: it goes, and what lay there before comes
    // back.
    let (_scheduler, wrapper) = with_input();
    std::fs::write(wrapper.path(".tf.plan.pvn-before"), "mine").unwrap();
    std::fs::write(wrapper.path("tf.plan"), "a dead job's plan").unwrap();
    std::fs::write(wrapper.path(".tf.plan.pvn-placed"), noted(&wrapper.path("tf.plan"))).unwrap();
    let run = wrapper.run();
    assert_eq!((run.code, run.text().as_str()), (0, "the plan"), "{}", run.stderr);
    assert_eq!(text(run.path("tf.plan")).as_deref(), Some("mine"));
    assert!(!run.path(".tf.plan.pvn-before").exists() && !run.path(".tf.plan.pvn-placed").exists());
    // And where its owner wrote into that very file since, it is the owner's.
    let (_scheduler, wrapper) = with_input();
    std::fs::write(wrapper.path("tf.plan"), "a dead job's plan").unwrap();
    let before = noted(&wrapper.path("tf.plan"));
    std::fs::write(wrapper.path(".tf.plan.pvn-placed"), &before).unwrap();
    until("the clock of files to go on", || {
        std::fs::write(wrapper.path("tf.plan"), "v2").unwrap();
        (noted(&wrapper.path("tf.plan")) != before).then_some(())
    });
    let run = wrapper.run();
    assert_eq!((run.code, run.text().as_str()), (0, "the plan"), "{}", run.stderr);
    assert_eq!(text(run.path("tf.plan")).as_deref(), Some("v2"));
}

/// A file as a wrapper notes it beside the input that it placed.
fn noted(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let there = std::fs::metadata(path).unwrap();
    format!("{} {} {} {}\n", there.dev(), there.ino(), there.ctime(), there.ctime_nsec())
}
