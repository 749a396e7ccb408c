//! What is taken away under a daemon, and what it takes away: where its database goes it ends with
//! words, and accepts nothing that would be lost; where an instance goes, nothing goes that is not
//! the instance's.

use std::path::Path;

use tests::disk::MountsBelow;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{skip, wait};

/// Takes something away under a daemon; what it is asked then is refused, and it ends with words by
/// itself.
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
    assert!(
        !push.status.success(),
        "a release is not accepted: {}",
        String::from_utf8_lossy(&push.stdout)
    );
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

#[test]
fn p1_a_daemon_whose_spool_is_moved_away_ends_with_words_and_starts_anew_without_it() {
    let mut scheduler = Scheduler::stopped();
    let _files = Files::new(scheduler.home());
    for directory in ["spool", "instances", "blobs"] {
        scheduler.run(&Start::default());
        scheduler.apply(&Files::configs(1, 1));
        let directory = scheduler.data().join(directory);
        std::fs::rename(&directory, scheduler.home().join("aside")).expect("it can be moved");
        let status = wait::until("the daemon to end", || scheduler.exited());
        let said =
            format!("{} was removed or replaced while this daemon used it", directory.display());
        assert!(status.code() == Some(1) && scheduler.log().contains(&said), "{}", scheduler.log());
        scheduler.run(&Start::default());
        scheduler.ok(&["services", "push", "s0", "--app", "app"]);
        scheduler.channel_becomes("s0", "c0", "CONVERGED");
        scheduler.stop();
        std::fs::remove_dir_all(scheduler.home().join("aside")).expect("it can be removed");
    }
}

#[test]
fn p5_what_is_mounted_in_the_directory_of_an_instance_stays_when_the_instance_goes() {
    let config = |channels: &str| {
        let apply = "'echo $PVN_INSTANCE_DIR > at; mkdir $PVN_INSTANCE_DIR/share; echo > \
                     $PVN_INSTANCE_DIR/own'";
        format!(
            "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: local}}\n    apply: \
             {{taskConfig: {{program: {{entrypoint: [sh, -c], cmd: \
             [{apply}]}}}}}}\n---\napplication: {{name: app, releaseChannels: [{channels}{{name: \
             kept, runtimes: [{{runtime: r}}]}}]}}\n---\nservice: {{name: web, application: \
             app}}\n"
        )
    };
    let mut scheduler = Scheduler::start();
    scheduler.apply(&config("{name: dev, runtimes: [{runtime: r}]}, "));
    scheduler.ok(&["services", "push", "web", "--app", "app", "--channels", "dev", "--wait"]);
    let theirs = scheduler.home().join("theirs");
    std::fs::create_dir(&theirs).expect("a directory can be made");
    std::fs::write(theirs.join("precious"), "").expect("a file can be written");
    let directory =
        std::fs::read_to_string(scheduler.home().join("at")).expect("the apply wrote it");
    let Some(mounts) =
        MountsBelow::bind(scheduler.home(), &theirs, &Path::new(directory.trim()).join("share"))
    else {
        let test =
            "p5_what_is_mounted_in_the_directory_of_an_instance_stays_when_the_instance_goes";
        return skip::skipped(test, "mounting a directory at another one needs root");
    };
    scheduler.apply(&config(""));
    wait::until("the daemon to say what it cannot remove", || {
        scheduler.log().contains("share is a mount point").then_some(())
    });
    assert!(theirs.join("precious").exists(), "what is mounted there is not the instance's");
    let left = || {
        std::fs::read_dir(scheduler.data().join("instances"))
            .expect("it is there")
            .map(|entry| entry.expect("it can be read").path())
    };
    let gone = left().find(|path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"gone-"))
    });
    assert!(!gone.expect("it was set aside").join("own").exists(), "all else is removed");

    // Once it is unmounted the next start removes the rest.
    drop(mounts);
    scheduler.stop();
    scheduler.run(&Start::default());
    let left = scheduler.data().join("instances");
    wait::until("the rest to be removed", || {
        std::fs::read_dir(&left).is_ok_and(|mut left| left.next().is_none()).then_some(())
    });
    assert!(theirs.join("precious").exists());
}
