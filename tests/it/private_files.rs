//! What a daemon keeps is its owner's alone, whatever the umask and whatever was there before.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::skip;

/// Somebody else.
const NOBODY: u32 = 65534;

/// Everything below that others may use in any way.
fn open_to_others(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        let mode = metadata.permissions().mode() & 0o7777;
        if !metadata.is_symlink() && mode & 0o077 != 0 {
            found.push((path.clone(), mode));
        }
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory can be listed");
            left.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        }
    }
    found
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .expect("the mode can be set");
}

fn with_a_job(scheduler: &Scheduler, files: &Files) {
    files.hold();
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    tests::wait::until("the apply to run", || (!files.ledger().is_empty()).then_some(()));
}

#[test]
fn a_data_directory_that_was_open_is_its_owners_alone_after_a_start() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    std::fs::create_dir(scheduler.data()).unwrap();
    set_mode(&scheduler.data(), 0o755);
    scheduler.run(&Start::default());
    with_a_job(&scheduler, &files);
    assert_eq!(open_to_others(&scheduler.data()), [], "while a job runs");
    scheduler.kill();

    // As an older pvn left it, or somebody's `chmod -R`.
    let opened = Command::new("chmod")
        .args(["-R", "a+rX"])
        .arg(scheduler.data())
        .status()
        .expect("chmod can be started");
    assert!(opened.success());
    set_mode(&scheduler.data().join("secret.key"), 0o600);
    scheduler.run(&Start::default());
    files.let_go();
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    let left: Vec<_> = open_to_others(&scheduler.data())
        .into_iter()
        .filter(|(path, _)| reached(path, &scheduler.data()))
        .collect();
    assert_eq!(left, [], "after the next start");
}

/// Whether others get there at all.
fn reached(path: &Path, top: &Path) -> bool {
    let above = path.ancestors().skip(1).take_while(|above| above.starts_with(top));
    above.into_iter().all(|above| {
        std::fs::metadata(above).is_ok_and(|metadata| metadata.permissions().mode() & 0o011 != 0)
    })
}

#[test]
fn another_user_reads_nothing_of_a_database_elsewhere() {
    if !nix::unistd::geteuid().is_root() {
        return skip::skipped(
            "another_user_reads_nothing_of_a_database_elsewhere",
            "becoming another user needs root",
        );
    }
    let mut scheduler = Scheduler::stopped();
    set_mode(scheduler.home(), 0o755);
    let shared = scheduler.home().join("shared");
    std::fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o755);
    let database = shared.join("pvn.db");
    let url = format!("sqlite:{}", database.display());
    scheduler.run(&Start { arguments: &["--database-url", &url], ..Start::default() });
    scheduler.apply(&Files::configs(1, 1));
    let files = [
        database.clone(),
        shared.join("pvn.db-wal"),
        shared.join("pvn.db-shm"),
        scheduler.data().join("admin-token"),
    ];
    for file in files {
        assert!(file.exists(), "{}", file.display());
        let read = Command::new("cat")
            .arg(&file)
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .expect("cat can be started");
        assert!(!read.status.success(), "{} is readable for others", file.display());
    }
}
