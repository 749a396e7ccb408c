//! A copy of a data directory that somebody made with `cp` (promise P1): beside its original, which
//! is in use, it starts nothing; where nobody can tell of the original, it says that there may be
//! one.

use std::path::Path;
use std::process::Command;

use tests::files::Files;
use tests::scheduler::{Scheduler, Start};

/// What is said of a database whose path is new to it.
const MOVED: &str = "was moved there, or is a copy";

fn copy(from: &Scheduler, to: &Scheduler) {
    let copied = Command::new("cp")
        .arg("-a")
        .arg(from.data())
        .arg(to.data())
        .status()
        .expect("cp can be started");
    assert!(copied.success());
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// The copy is refused with words about the original.
fn is_refused_beside(original: &Scheduler, copy: &mut Scheduler) {
    let said = copy.is_refused(&Start::default());
    let pid = format!("pid {}", original.pid());
    for part in [
        "is a copy of",
        text(&original.data()),
        text(&copy.data()),
        &pid,
        "pvn-scheduler backup",
        "pvn-scheduler restore",
    ] {
        assert!(said.contains(part), "no {part}: {said}");
    }
}

#[test]
fn p1_a_copy_of_a_data_directory_in_use_is_refused_whenever_it_was_made() {
    let mut original = Scheduler::stopped();
    let files = Files::new(original.home());
    original.run(&Start::default());
    original.apply(&Files::configs(1, 1));
    original.ok(&["services", "push", "s0", "--app", "app"]);
    original.channel_becomes("s0", "c0", "CONVERGED");
    let mut while_it_ran = Scheduler::stopped();
    copy(&original, &while_it_ran);
    is_refused_beside(&original, &mut while_it_ran);
    original.stop();
    let mut while_it_was_stopped = Scheduler::stopped();
    copy(&original, &while_it_was_stopped);
    original.run(&Start::default());
    is_refused_beside(&original, &mut while_it_ran);
    is_refused_beside(&original, &mut while_it_was_stopped);

    // The database alone, with a data directory of its own.
    let mut database_alone = Scheduler::stopped();
    let database = format!("sqlite:{}", while_it_ran.data().join("pvn.db").display());
    let key = text(&original.data().join("secret.key")).to_owned();
    let arguments = ["--database-url", &database, "--secret-key-file", &key];
    let said = database_alone.is_refused(&Start { arguments: &arguments, ..Start::default() });
    assert!(said.contains("is a copy of"), "{said}");

    // The same path starts as ever, and nobody speaks of copies.
    original.kill();
    original.run(&Start::default());
    assert!(
        !original.log().contains(MOVED) && !original.log().contains("waiting to see"),
        "{}",
        original.log()
    );
    assert_eq!((files.ledger().len(), files.overlaps()), (1, String::new()));
}

#[test]
fn a_data_directory_that_was_moved_or_whose_original_is_gone_goes_on_and_says_that_it_may_be_a_copy()
 {
    let mut original = Scheduler::start();
    let mut copied = Scheduler::stopped();
    copy(&original, &copied);
    original.kill();
    copied.run(&Start::default());
    assert!(
        copied.log().contains(MOVED)
            && copied.log().contains(text(&original.data().join("pvn.db"))),
        "{}",
        copied.log()
    );

    copied.stop();
    let mut moved = Scheduler::stopped();
    std::fs::rename(copied.data(), moved.data()).expect("a directory can be renamed");
    moved.run(&Start::default());
    assert!(
        moved.log().contains(MOVED) && !moved.log().contains("waiting to see"),
        "{}",
        moved.log()
    );
    // Said once.
    moved.stop();
    let before = moved.log().len();
    moved.run(&Start::default());
    assert!(!moved.log()[before..].contains(MOVED), "{}", moved.log());
}

/// One place has many names: a link, or a way through a directory that is replaced with each
/// release of whatever lies in it.
#[test]
fn a_database_is_where_it_was_by_whatever_path_and_stays_there_when_a_directory_on_the_way_goes() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    let release = scheduler.home().join("release");
    std::fs::create_dir(&release).expect("a directory can be made");
    let name = scheduler.data().file_name().expect("the data directory has a name").to_owned();
    let link = scheduler.home().join("link");
    std::os::unix::fs::symlink(&name, &link).expect("a link can be made");
    let through = Path::new("..").join(&name);
    scheduler.run(&Start::default());
    for path in [through.as_path(), &link, &through] {
        scheduler.stop();
        scheduler.run(&Start { root: Some(&release), data_dir: Some(path), ..Start::default() });
    }
    assert!(!scheduler.log().contains(MOVED), "{}", scheduler.log());

    std::fs::rename(&release, scheduler.home().join("release.old"))
        .expect("a directory can be renamed");
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(files.ledger().len(), 1);
}
