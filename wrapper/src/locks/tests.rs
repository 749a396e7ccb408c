//! Who has a declared file, and who waits for it.

use super::*;

fn holder(job: &str) -> LockHolder {
    LockHolder::ourselves(&vec![(schema::wire::JOB_VARIABLE.into(), job.into())], true)
}

fn beside(path: &Path) -> LockFile {
    LockFile { path: path.to_owned(), is: LockPlace::Beside }
}

fn is_held_by(tried: &LockAttempt, job: &str) -> bool {
    matches!(tried, LockAttempt::Held(Some(held)) if held.to_string().starts_with(job))
}

fn locked(tried: LockAttempt) -> PathLock {
    match tried {
        LockAttempt::Locked(lock) => lock,
        _ => panic!("not locked"),
    }
}

#[test]
fn a_directory_that_is_made_meanwhile_makes_no_second_lock() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let declared = base.join("build/out/tf.plan");
    let files =
        || files::of(&[&declared], None).into_iter().map(|(file, _)| file).collect::<Vec<_>>();
    let early = files();
    assert_eq!(early, [beside(&base.join(".build%out%tf.plan.pvn-lock"))]);
    let held = locked(lock(&early[0], &holder("job-1")));
    std::fs::create_dir_all(declared.parent().unwrap()).unwrap();
    let late = files();
    assert_eq!(late, [early[0].clone(), beside(&base.join("build/out/.tf.plan.pvn-lock"))]);
    assert!(is_held_by(&lock(&late[0], &holder("job-2")), "job-1"));
    drop(held);
    assert_eq!(files().len(), 1);
}

#[test]
fn what_a_dead_holder_left_is_taken_over_and_what_is_held_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let at = beside(&directory.path().join(".f.pvn-lock"));
    std::fs::write(&at.path, "job-dead 1 host\n").unwrap();
    let first = locked(lock(&at, &holder("job-1")));
    assert!(is_held_by(&lock(&at, &holder("job-2")), "job-1"));
    drop(first);
    assert!(!at.path.exists());
    locked(lock(&at, &holder("job-2")));
}

#[test]
fn a_lock_that_was_removed_takes_no_other_with_it_and_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = beside(&directory.path().join("build/.f.pvn-lock"));
    assert!(matches!(lock(&at, &holder("job-1")), LockAttempt::Gone));
    std::fs::create_dir(directory.path().join("build")).unwrap();
    let first = locked(lock(&at, &holder("job-1")));
    let mut locks =
        Locks { held: vec![first], own: Some(holder("job-1")), look_at: Some(Instant::now()) };
    std::fs::remove_dir_all(directory.path().join("build")).unwrap();
    let soon = |locks: &Locks| locks.next().unwrap();
    locks.look(soon(&locks));
    std::fs::create_dir(directory.path().join("build")).unwrap();
    locks.look(soon(&locks));
    assert!(is_held_by(&lock(&at, &holder("job-2")), "job-1"), "it is back");
    std::fs::remove_file(&at.path).unwrap();
    let second = locked(lock(&at, &holder("job-2")));
    locks.look(soon(&locks));
    drop(locks);
    assert!(is_held_by(&lock(&at, &holder("job-3")), "job-2"), "the first one leaves it alone");
    drop(second);
    assert!(!at.path.exists());
}

#[test]
fn where_a_directory_is_there_and_takes_no_lock_nobody_waits_for_one() {
    for path in ["/proc/self/fd/.1.pvn-lock", "/proc/.1%fd%1.pvn-lock"] {
        assert!(
            matches!(lock(&beside(Path::new(path)), &holder("job-1")), LockAttempt::Impossible(_)),
            "{path}"
        );
    }
    // A working directory that was removed has no path, so that what is declared in it has none but
    // its name.
    assert!(beside(Path::new(".f.pvn-lock")).has_directory());
}

#[test]
fn a_place_of_ours_is_made_and_goes_with_its_last_lock() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap().join("pvn/locks");
    let files = files::of(&[Path::new("a"), Path::new("b")], Some(&place));
    let files: Vec<_> = files
        .into_iter()
        .map(|(file, _)| file)
        .filter(|file| file.is == LockPlace::Place)
        .collect();
    let [first, second] = [0, 1].map(|which| locked(lock(&files[which], &holder("job-1"))));
    drop(first);
    assert!(is_held_by(&lock(&files[1], &holder("job-2")), "job-1"));
    drop(second);
    assert!(!place.exists());
}

#[test]
fn only_what_is_around_us_is_passed_by() {
    let of = |job: &str, whole| {
        LockHolder::ourselves(&vec![(schema::wire::JOB_VARIABLE.into(), job.into())], whole)
    };
    let read = |text: &str| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        LockHolder::read(&mut file).unwrap()
    };
    let elsewhere = |holder: &LockHolder| {
        read(&holder.line().replacen(&std::process::id().to_string(), "999999999", 1))
    };
    let own = of("job-1", false);
    assert!(
        elsewhere(&of("job-1", true)).is_around(&own),
        "the job's own wrapper, in a container of its own"
    );
    assert!(!elsewhere(&of("job-1", false)).is_around(&own), "one beside us");
    assert!(!elsewhere(&of("job-2", true)).is_around(&own));
    assert!(read(&of("job-1", false).line()).is_around(&own), "above us");
    assert!(read("job-1 999999999 host\n").is_around(&own), "of an earlier version");
}

#[test]
fn of_many_that_take_and_release_one_has_it_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let (at, inside) =
        (beside(&directory.path().join(".f.pvn-lock")), directory.path().join("inside"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let held = loop {
                        if let LockAttempt::Locked(held) = lock(&at, &holder("job-1")) {
                            break held;
                        }
                        std::thread::yield_now();
                    };
                    // Fails when another is inside.
                    File::options().write(true).create_new(true).open(&inside).unwrap();
                    std::fs::remove_file(&inside).unwrap();
                    drop(held);
                }
            });
        }
    });
}
