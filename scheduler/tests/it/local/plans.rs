//! Files that go from job to job: the plan of a fetch, which its apply is given.

use super::*;

/// Runs fetch and apply of a plan: the fetch writes `plan`, the apply reads what was in it then.
async fn check_plan(fetch: &[&str], apply: &[&str]) {
    let mut world = World::new().await;
    let report = world.run(spec("fetch", fetch)).await;
    assert_eq!(report.exit_code, Some(0), "{report:?}");
    let plan =
        report.files.iter().find(|file| file.name == "plan").unwrap().content_blob_id.unwrap();
    assert_eq!(world.text(Some(plan)), "the plan\n");
    std::fs::write(world.file("tf.plan"), "changed meanwhile").unwrap();
    let mut job = spec("apply", apply);
    job.inputs.push(("fetch:plan".to_owned(), plan));
    let report = world.run(job).await;
    assert_eq!(report.exit_code, Some(0), "{report:?}");
    assert_eq!(world.text(report.stdout_blob_id), "the plan\n");
    assert_eq!(std::fs::metadata(world.blobs.path(plan)).unwrap().permissions().mode() & 0o077, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_goes_from_fetch_to_apply_when_the_command_is_the_wrapper_itself() {
    check_plan(
        &[
            "pvn-wrapper",
            "exec",
            "--out",
            "plan=tf.plan",
            "--",
            "sh",
            "-c",
            "echo the plan > tf.plan",
        ],
        &["pvn-wrapper", "exec", "--in", "tf.plan=fetch:plan", "--", "cat", "tf.plan"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_goes_from_fetch_to_apply_when_the_wrapper_is_inside_the_command() {
    check_plan(
        &["sh", "-c", "pvn-wrapper exec --out plan=tf.plan -- sh -c 'echo the plan > tf.plan'"],
        &["sh", "-c", "set -e; pvn-wrapper exec --in tf.plan=fetch:plan -- cat tf.plan"],
    )
    .await;
}

/// The same directory, from here.
fn relative(path: &Path) -> PathBuf {
    let up =
        std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect::<PathBuf>();
    up.join(path.strip_prefix("/").unwrap())
}

/// Runs an apply with this input; the end is for the caller.
async fn applied(world: &mut World, plan: BlobId) -> End {
    let mut job = spec(
        "apply",
        &["pvn-wrapper", "exec", "--in", "tf.plan=fetch:plan", "--", "cat", "tf.plan"],
    );
    job.inputs.push(("fetch:plan".to_owned(), plan));
    let id = job.job;
    world.runner.start(job);
    let (_, end, gone) = world.ended().await;
    assert!(gone);
    world.runner.forget(vec![id]).await;
    end
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_handed_over_wherever_the_blobs_are_seen_from_and_one_of_no_bytes_too() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&relative(&directory.path().join("blobs"))).unwrap();
    let mut world = World::of(directory, blobs).await;
    for plan in ["the plan", ""] {
        let blob = world.blobs.put(plan.as_bytes(), Keep::Synced).unwrap();
        let End::Reported(report) = applied(&mut world, blob).await else { panic!("it never ran") };
        assert_eq!(
            (report.exit_code, world.text(report.stdout_blob_id)),
            (Some(0), plan.to_owned()),
            "{report:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p2_a_plan_that_the_disk_changed_is_not_applied_and_the_next_fetch_makes_it_anew() {
    let mut world = World::new().await;
    let plan = world.blobs.put(b"the plan", Keep::Synced).unwrap();
    let path = world.blobs.path(plan);
    for damage in [Some(""), Some("the pla"), Some("thE plan"), None] {
        std::fs::remove_file(&path).unwrap();
        if let Some(damage) = damage {
            std::fs::write(&path, damage).unwrap();
        }
        let End::InputLost { why } = applied(&mut world, plan).await else {
            panic!("{damage:?} was applied")
        };
        assert!(
            why.contains("fetch:plan")
                && why.contains(if damage.is_some() { "damaged" } else { "gone" }),
            "{why}"
        );
        let fetch = &[
            "pvn-wrapper",
            "exec",
            "--out",
            "plan=tf.plan",
            "--",
            "sh",
            "-c",
            "printf 'the plan' > tf.plan",
        ];
        let report = world.run(spec("fetch", fetch)).await;
        assert_eq!(report.files[0].content_blob_id, Some(plan));
        let End::Reported(report) = applied(&mut world, plan).await else { panic!("it never ran") };
        assert_eq!(world.text(report.stdout_blob_id), "the plan");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_cannot_be_read_is_told_as_that() {
    let mut world = World::new().await;
    let plan = world.blobs.put(b"the plan", Keep::Synced).unwrap();
    let above = world.blobs.path(plan).parent().unwrap().to_owned();
    std::fs::remove_dir_all(&above).unwrap();
    std::fs::write(&above, "no directory").unwrap();
    let End::NotStarted { why, surroundings: true } = applied(&mut world, plan).await else {
        panic!("it was applied")
    };
    assert!(
        why.starts_with("what it is to be given cannot be put in place: ")
            && why.contains("Not a directory"),
        "{why}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn p2_a_plan_that_changed_after_it_was_handed_over_is_not_applied() {
    let mut world = World::new().await;
    let plan = world.blobs.put(b"the plan", Keep::Synced).unwrap();
    let script = "cd \"$PVN_JOB_DIR/inputs\"; id=$(readlink fetch:plan); rm $id; printf 'the p' > \
                  $id; cd -; exec pvn-wrapper exec --in tf.plan=fetch:plan -- echo applied";
    let mut job = spec("apply", &["sh", "-c", script]);
    job.inputs.push(("fetch:plan".to_owned(), plan));
    let report = world.run(job).await;
    let said = world.text(report.stderr_blob_id);
    assert_eq!(report.exit_code, Some(125), "{said}");
    assert!(said.contains(&plan.to_string()) && said.contains("arrived"), "{said}");
    assert!(!world.text(report.stdout_blob_id).contains("applied"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_nobody_made_runs_nothing_and_is_named() {
    let mut world = World::new().await;
    let ran = world.file("ran");
    let report = world
        .run(spec(
            "a",
            &["pvn-wrapper", "exec", "--in", "x=fetch:plan", "--", "touch", ran.to_str().unwrap()],
        ))
        .await;
    assert!(report.exec_error.unwrap().contains("fetch:plan"));
    assert!(!ran.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_output_that_is_missing_is_told() {
    let mut world = World::new().await;
    let report =
        world.run(spec("a", &["pvn-wrapper", "exec", "--out", "plan=no.plan", "--", "true"])).await;
    assert_eq!(report.exit_code, Some(0));
    assert!(report.bad_output.unwrap().contains("no.plan"));
}
