//! How what a killed wrapper left is ended: as the wrapper would have, with the time that the job's
//! command was given for it.

use pvn_scheduler::runner::JobWait;

use super::*;

/// A command that ends well in its own time once it is asked to, and below it one that must not be
/// asked before it.
const ENDS_WELL: &str = "\
    sh -c 'trap \"echo > below-asked\" TERM; while :; do sleep 0.02; done' & \
    trap 'echo > asked; until [ -e go ]; do sleep 0.02; done; kill -9 $!; echo > saved; exit 0' TERM; \
    echo $PPID > wrapper; echo $$ > began; while :; do sleep 0.02; done";

/// It runs, its wrapper is killed, and it has been asked to end. An hour is its to do so.
async fn asked(world: &mut World) -> JobId {
    let mut job = shell("a", &format!("cd {}; {ENDS_WELL}", world.file("").display()));
    job.command.stop_grace_ms = Some(3_600_000);
    let id = job.job;
    world.runner.start(job);
    number(world, &world.file("began")).await;
    kill(number(world, &world.file("wrapper")).await);
    world.until_written(&world.file("asked")).await;
    id
}

async fn wait_of(world: &mut World) -> JobWait {
    loop {
        if let RunnerEvent::Waits { wait: Some(wait), .. } = world.next().await {
            return wait;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_wrapper_left_ends_well_in_its_own_time_and_that_is_said_meanwhile() {
    let _alone = ORPHANS.lock().await;
    for restarted in [false, true] {
        let mut world = World::new().await;
        let job = asked(&mut world).await;
        let wait = wait_of(&mut world).await;
        assert!(wait.why.contains("was asked to stop and still runs: process "), "{wait:?}");
        assert!(wait.is_unseen && wait.ends_when.contains("is killed at 2"), "{wait:?}");
        if restarted {
            std::fs::remove_file(world.file("asked")).unwrap();
            world.runner.detach().await;
            assert_eq!(world.restart(&[job]).await, []);
            world.until_written(&world.file("asked")).await;
        }
        assert!(!world.file("below-asked").exists(), "who started it ends it");
        std::fs::write(world.file("go"), "").unwrap();
        let (_, end, gone) = world.ended().await;
        let End::Unknown { why, .. } = end else { panic!("{end:?}") };
        assert!(world.file("saved").exists(), "it was killed: {why}");
        assert!(is_gone(gone, restarted, &why) && why.contains("it left"), "{why}");
        assert!(!why.contains("SIGKILL"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_wrapper_left_is_killed_at_once_when_somebody_asks_twice() {
    let _alone = ORPHANS.lock().await;
    let mut world = World::new().await;
    let job = asked(&mut world).await;
    assert!(world.runner.stop(job));
    wait_of(&mut world).await;
    assert!(world.runner.stop(job));
    let (_, end, gone) = world.ended().await;
    let End::Unknown { why, .. } = end else { panic!("{end:?}") };
    assert!(gone && why.contains("by SIGKILL, so what was being done may be half done"), "{why}");
    assert!(!world.file("saved").exists());
}
