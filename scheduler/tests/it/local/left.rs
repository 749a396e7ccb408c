//! Wrappers killed (`kill -9`) while their command runs, and what they left: found and ended
//! whatever it did to its session, its environment and its parents, in this life of the daemon and
//! in the next.

use super::recovery::is_alive;
use super::*;

mod end;

/// Held by a test that kills a wrapper or leaves processes which do not say whose they are: the
/// daemons of all tests are one process, and so the orphans of one are taken for those of another.
pub(super) static ORPHANS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Whether it was told that all of a job is gone, or by right not: after a restart whatever else
/// begins on this machine at that moment may be of the job.
pub(super) fn is_gone(gone: bool, restarted: bool, why: &str) -> bool {
    gone || restarted && why.contains("may be one that it left")
}

/// A job whose command leads to a process that writes its number and sleeps, started as `detached`
/// says, where `LEFT` stands for that process' command line; and a script for it.
pub(super) fn leaving(world: &World, detached: &str) -> (JobSpec, PathBuf) {
    let (script, ready) = (world.file("left.sh"), world.file("ready"));
    std::fs::write(&script, "echo $$ > \"$1.new\"; mv \"$1.new\" \"$1\"; exec sleep 60\n").unwrap();
    let left = format!("/bin/sh {} {}", script.display(), ready.display());
    (
        shell(
            "a",
            &format!(
                "echo $PPID > {}; {}",
                world.file("wrapper").display(),
                detached.replace("LEFT", &left)
            ),
        ),
        ready,
    )
}

pub(super) fn kill(pid: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
}

pub(super) async fn number(world: &World, path: &Path) -> i32 {
    world.until_written(path).await.trim().parse().unwrap()
}

async fn check(detached: &str) {
    for restarted in [false, true] {
        let mut world = World::new().await;
        let (job, ready) = leaving(&world, detached);
        let id = job.job;
        world.runner.start(job);
        let left = number(&world, &ready).await;
        let wrapper = number(&world, &world.file("wrapper")).await;
        if restarted {
            world.runner.detach().await;
        }
        kill(wrapper);
        if restarted {
            assert_eq!(world.restart(&[id]).await, []);
        }
        let (_, end, gone) = world.ended().await;
        let End::Unknown { why, .. } = end else { panic!("{detached}: {end:?}") };
        assert!(
            !is_alive(left),
            "{detached}, restarted {restarted}: what it left goes on working: {why}"
        );
        assert!(is_gone(gone, restarted, &why), "{detached}, restarted {restarted}: {why}");
        assert!(why.contains("it left"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_what_keeps_neither_the_environment_nor_the_session_nor_the_parent_is_found_all_the_same()
 {
    let _alone = ORPHANS.lock().await;
    check("exec LEFT").await;
    check("exec env -i LEFT").await;
    check("setsid LEFT & wait").await;
    check("setsid env -i LEFT & wait").await;
    check("setsid env -i /bin/sh -c 'LEFT & exit 0'; sleep 60").await;
    check("(setsid env -i /bin/sh -c '(LEFT) & exit 0'); exec env -i sleep 60").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_what_runs_as_another_user_is_found_all_the_same() {
    if !nix::unistd::geteuid().is_root() {
        return tests::skip::skipped(
            "p1_what_runs_as_another_user_is_found_all_the_same",
            "running as another user needs root",
        );
    }
    let _alone = ORPHANS.lock().await;
    let allow = "chmod -R a+rwX .; ";
    check(&format!("{allow}exec setpriv --reuid=65534 --regid=65534 --clear-groups LEFT")).await;
    check(&format!(
        "{allow}setsid env -i setpriv --reuid=65534 --regid=65534 --clear-groups LEFT & wait"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_job_left_running_on_purpose_is_not_taken_for_a_left_over() {
    let _alone = ORPHANS.lock().await;
    let mut world = World::new().await;
    let (mut meant, ready) = leaving(
        &world,
        "setsid env -i LEFT >/dev/null 2>&1 & until [ -s READY ]; do sleep 0.01; done",
    );
    meant.command.argv[2] = meant.command.argv[2].replace("READY", ready.to_str().unwrap());
    meant.command.leave_running = true;
    world.runner.start(meant);
    let (_, end, gone) = world.ended().await;
    let stays = number(&world, &ready).await;
    let End::Reported(report) = end else { panic!("{end:?}") };
    assert!(report.left_running && !gone, "{report:?}");
    std::fs::remove_file(&ready).unwrap();

    let (lost, ready) = leaving(&world, "exec LEFT");
    world.runner.start(lost);
    let left = number(&world, &ready).await;
    kill(number(&world, &world.file("wrapper")).await);
    let (_, end, gone) = world.ended().await;
    assert!(gone && !is_alive(left), "{end:?}");
    assert!(is_alive(stays), "it was meant to stay");
    kill(stays);
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_a_wrapper_that_comes_late_while_its_directory_is_removed_runs_nothing_beside_the_next_one()
 {
    let mut world = World::new().await;
    let ran = world.file("ran");
    let job = shell("a", &format!("echo x >> {}", ran.display()));
    let spool = world.spool(job.job);
    // What takes long to remove: so that there is a time in which some of it is gone.
    std::fs::create_dir_all(spool.join("files")).unwrap();
    for number in 0..20_000 {
        std::fs::write(spool.join("files").join(number.to_string()), "").unwrap();
    }
    let wrapper = find_wrapper(None).unwrap();
    let script = format!(
        "kill -STOP $$; exec {} exec --job {} -- sh -c 'echo x >> {}'",
        wrapper.display(),
        spool.display(),
        ran.display()
    );
    let mut late = std::process::Command::new("sh")
        .args(["-c", &script])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(late.id()).unwrap();
    let is_stopped = async || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| stat.contains(") T"))
            .then_some(())
    };
    wait::until(PATIENCE, is_stopped).await.expect("it stops itself");
    // A daemon before us saw to it that nobody starts the job there.
    assert_eq!(world.restart(&[job.job]).await, [job.job]);
    assert!(spool.join(CLAIM).exists());
    let claim = spool.join(CLAIM);
    let going_on = std::thread::spawn(move || {
        while claim.exists() {
            std::hint::spin_loop();
        }
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGCONT)
            .unwrap();
    });
    world.runner.start(job);
    world.ended().await;
    going_on.join().unwrap();
    late.wait().unwrap();
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "x\n", "it ran once");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_an_instance_find_its_own_directory_and_what_the_last_one_left_there() {
    let mut world = World::new().await;
    let [one, other] = ["one", "two"].map(|name| Instance {
        id: InstanceId::derive(&[name.as_bytes()]),
        name: format!("app.web.{name}"),
    });
    let keep = r#"cat "$PVN_INSTANCE_DIR/kept" 2>/dev/null; stat -c %a "$PVN_INSTANCE_DIR"; echo "$1" > "$PVN_INSTANCE_DIR/kept""#;
    for (instance, expected) in [(&one, "700\n"), (&other, "700\n"), (&one, "mine\n700\n")] {
        let mut job = spec("a", &["sh", "-c", keep, "sh", "mine"]);
        job.instance = Some(instance.clone());
        let report = world.run(job).await;
        assert_eq!(world.text(report.stdout_blob_id), expected);
    }
    world.runner.forget_instance(one.clone()).await;
    world.runner.retain_instances([one.id].into(), &[]).await;
    assert_eq!(std::fs::read_dir(world.file("instances")).unwrap().count(), 0);
}
