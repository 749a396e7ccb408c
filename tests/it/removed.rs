//! The database is taken away under a daemon: it ends with words, and accepts nothing that would be lost.

use std::path::Path;

use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// Takes something away under a daemon; what it is asked then is refused, and it ends with words by itself.
fn check(take_away: impl FnOnce(&Path)) {
    let mut scheduler = Scheduler::stopped();
    let _files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    // Read before, because it may be what is taken away.
    let token = std::fs::read_to_string(scheduler.data().join("admin-token")).expect("it is there");
    take_away(&scheduler.data());
    let mut push = scheduler.client(["services", "push", "s0", "--app", "app"]);
    let push = push.env("PVN_AUTH_TOKEN", token.trim()).output().expect("pvnctl can be started");
    assert!(!push.status.success(), "a release is not accepted: {}", String::from_utf8_lossy(&push.stdout));
    let status = wait::until("the daemon to end", || scheduler.exited());
    assert_eq!(status.code(), Some(1));
    let log = scheduler.log();
    assert!(log.contains("was removed or replaced while this daemon used it"), "{log}");
    assert!(!scheduler.data().join("pvn.db").exists(), "no other database takes its place");
}

#[test]
fn p5_a_daemon_whose_database_is_removed_accepts_nothing_and_ends_with_words() {
    check(|data| {
        for name in ["pvn.db", "pvn.db-wal", "pvn.db-shm"] {
            std::fs::remove_file(data.join(name)).expect("it is there");
        }
    });
}

#[test]
fn p5_a_daemon_whose_data_directory_is_moved_away_accepts_nothing_and_ends_with_words() {
    check(|data| std::fs::rename(data, data.with_file_name("aside")).expect("it can be moved"));
}
