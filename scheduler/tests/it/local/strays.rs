//! Jobs that run and that the database does not know, as an older copy of it would not: no apply of
//! their instance is started beside them or beside what they left, and nothing is taken from under
//! them (promise P1).

use super::left::{ORPHANS, kill, leaving, number};
use super::recovery::is_alive;
use super::*;

/// The instance as a database of this name knows it.
fn instance(database: &str) -> Instance {
    Instance { id: InstanceId::derive(&[database.as_bytes()]), name: "app.web.prod".to_owned() }
}

fn apply_of(database: &str, job: JobSpec) -> JobSpec {
    JobSpec { kind: JobKind::Apply, instance: Some(instance(database)), ..job }
}

/// A daemon over a database that knows of no job.
async fn forgetful(world: &mut World) {
    world.runner.detach().await;
    (world.runner, world.news) = open_runner(world.directory.path(), &world.blobs);
    assert_eq!(Runner::recover(&world.runner, Vec::new()).await, []);
}

/// Why an apply that is decided now is not started; `None` when it ran.
async fn refused(world: &mut World, database: &str) -> Option<String> {
    let job = apply_of(database, spec("next", &["true"]));
    let id = job.job;
    world.runner.start(job);
    let (_, end, _) = world.ended().await;
    world.runner.forget(vec![id]).await;
    match end {
        End::NotStarted { why, surroundings: true } => Some(why),
        End::Reported(_) => None,
        other => panic!("{other:?}"),
    }
}

async fn starts_in_time(world: &mut World, database: &str) {
    let started =
        wait::until(PATIENCE, async || refused(world, database).await.is_none().then_some(()));
    started.await.expect("the next apply is started in time");
}

fn kept(world: &World) -> bool {
    world.file("instances").join(instance("new").id.to_string()).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_an_apply_is_not_started_beside_one_that_no_database_knows_whatever_id_its_instance_has_now()
 {
    let mut world = World::new().await;
    let (ready, end) = (world.file("ready"), world.file("end"));
    let script = format!(
        "echo x > {}; until [ -e {} ]; do sleep 0.01; done",
        ready.display(),
        end.display()
    );
    world.runner.start(apply_of("new", shell("a", &script)));
    world.until_written(&ready).await;
    forgetful(&mut world).await;
    for database in ["new", "old"] {
        let why = refused(&mut world, database).await.expect("one runs");
        assert!(
            why.contains("an apply of this instance runs already") && why.contains("stops it"),
            "{why}"
        );
    }
    std::fs::write(end, "").unwrap();
    starts_in_time(&mut world, "old").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_what_a_deleted_instance_keeps_stays_while_a_job_runs_that_no_database_knows() {
    for comes_back in [false, true] {
        let mut world = World::new().await;
        let (ready, end) = (world.file("ready"), world.file("end"));
        let script = format!(
            "echo x > {}; until [ -e {} ]; do sleep 0.01; done",
            ready.display(),
            end.display()
        );
        world.runner.start(apply_of("new", shell("a", &script)));
        world.until_written(&ready).await;
        forgetful(&mut world).await;
        tokio::time::timeout(PATIENCE, world.runner.forget_instance(instance("new")))
            .await
            .expect("nothing is waited for");
        assert!(kept(&world), "it is in use");
        if comes_back {
            refused(&mut world, "new").await.expect("one runs");
        }
        std::fs::write(end, "").unwrap();
        if comes_back {
            starts_in_time(&mut world, "new").await;
            assert!(kept(&world), "it has jobs again");
        } else {
            wait::until(PATIENCE, async || (!kept(&world)).then_some(()))
                .await
                .expect("it is removed once that has ended");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_an_apply_is_not_started_beside_what_a_killed_one_left_that_no_database_knows() {
    let _alone = ORPHANS.lock().await;
    for killed_before in [false, true] {
        let mut world = World::new().await;
        // Some of what is left does not end at once.
        let end = world.file("end");
        let stays = format!("until [ -e {} ]; do sleep 0.05; done", end.display());
        let (job, ready) =
            leaving(&world, &format!("exec setsid env -i sh -c 'LEFT & trap \"\" TERM; {stays}'"));
        world.runner.start(apply_of("new", job));
        let left = number(&world, &ready).await;
        let wrapper = number(&world, &world.file("wrapper")).await;
        world.runner.detach().await;
        if killed_before {
            kill(wrapper);
        }
        forgetful(&mut world).await;
        if !killed_before {
            refused(&mut world, "old").await.expect("one runs");
            kill(wrapper);
        }
        let told = wait::until(PATIENCE, async || {
            let why = refused(&mut world, "old").await.expect("what it left is still there");
            why.contains("its wrapper").then_some(why)
        });
        let why = told.await.expect("what is left is told");
        assert!(
            why.contains("an apply of this instance runs already") && why.contains("removes"),
            "{why}"
        );
        world.runner.forget_instance(instance("new")).await;
        assert!(kept(&world), "it is in use");
        std::fs::write(end, "").unwrap();
        starts_in_time(&mut world, "old").await;
        assert!(!is_alive(left), "killed before: {killed_before}");
        wait::until(PATIENCE, async || (!kept(&world)).then_some(()))
            .await
            .expect("it is removed once that has ended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_way_of_an_instances_directory_is_told_as_that() {
    let mut world = World::new().await;
    let instance = instance("database");
    std::fs::write(
        world.directory.path().join("instances").join(instance.id.to_string()),
        "no directory",
    )
    .unwrap();
    world.runner.start(apply_of("database", spec("apply", &["true"])));
    let (_, End::NotStarted { why, surroundings: true }, true) = world.ended().await else {
        panic!("it ran")
    };
    assert!(
        why.starts_with("the directory of its instance in ")
            && why.contains("/instances cannot be made: "),
        "{why}"
    );
}
