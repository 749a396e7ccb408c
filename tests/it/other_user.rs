//! A data directory is its user's: a command as another user, root included, is refused before it
//! leaves a file in it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tests::scheduler::{Scheduler, Start};
use tests::{programs, skip};

/// The service's user.
const SERVICE: u32 = 65534;

/// Everything below, with whose it is.
fn owners(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = std::fs::symlink_metadata(&path).expect("it is there");
        if metadata.is_dir() {
            left.extend(
                std::fs::read_dir(&path)
                    .expect("a directory can be listed")
                    .map(|entry| entry.expect("an entry").path()),
            );
        }
        found.push((path, metadata.uid()));
    }
    found.sort();
    found
}

/// The data directory of a daemon that ran as the service's user.
fn of_the_service() -> Scheduler {
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    scheduler.stop();
    for (path, _) in owners(&scheduler.data()) {
        std::os::unix::fs::lchown(&path, Some(SERVICE), Some(SERVICE))
            .expect("root may give it away");
    }
    scheduler
}

/// A copy of one of our programs where the service's user gets to it.
fn within_reach(scheduler: &Scheduler, name: &str) -> PathBuf {
    std::fs::set_permissions(scheduler.home(), PermissionsExt::from_mode(0o755))
        .expect("it is ours");
    let program = scheduler.home().join(name);
    // By another process: what this one holds open for writing a child of another test may hold,
    // too, and then nobody can run it.
    let copied = Command::new("cp").arg(programs::program(name)).arg(&program).status();
    assert!(copied.expect("cp can be started").success());
    program
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn root_is_refused_on_another_users_data_directory_with_the_command_to_use() {
    if !nix::unistd::geteuid().is_root() {
        return skip::skipped(
            "root_is_refused_on_another_users_data_directory_with_the_command_to_use",
            "giving files away needs root",
        );
    }
    let scheduler = of_the_service();
    let configs = scheduler.home().join("configs");
    std::fs::create_dir(&configs).unwrap();
    std::fs::write(
        configs.join("a.pvn.yaml"),
        include_str!("../../examples/quickstart/quickstart.pvn.yaml"),
    )
    .unwrap();
    let backup = scheduler.home().join("backup.tar");
    let empty = scheduler.home().join("empty");
    std::fs::create_dir(&empty).unwrap();
    chown(&empty, Some(SERVICE), Some(SERVICE)).unwrap();
    let [data, configs, backup, empty] =
        [scheduler.data(), configs, backup, empty].map(|path| path.display().to_string());
    let run = |arguments: &[&str]| {
        let program = Command::new(programs::program("pvn-scheduler")).args(arguments).output();
        program.expect("the program can be started")
    };
    let made = run(&["backup", &backup, "--with-key", "--data-dir", &data]);
    assert!(made.status.success(), "it only reads: {}", said(&made));
    let before = owners(&scheduler.data());
    assert!(
        before.iter().all(|(_, owner)| *owner == SERVICE),
        "a backup leaves nothing: {before:?}"
    );
    // A database of its own lets none of them run for long where it is not refused.
    for arguments in [
        &["prune", "--data-dir", &data][..],
        &["activate", "--data-dir", &data],
        &["dev", &configs, "--until-converged", "--data-dir", &data],
        &["dev", &configs, "--until-converged", "--data-dir", &empty],
        &["restore", &backup, "--data-dir", &empty],
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", &data],
    ] {
        let refused = run(arguments);
        let told = said(&refused);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(
            told.contains("belongs to user 65534 and this runs as user 0"),
            "{arguments:?}: {told}"
        );
        assert!(
            told.contains("sudo -u '#65534' pvn-scheduler") && told.contains("setpriv"),
            "{arguments:?}: {told}"
        );
        assert_eq!(owners(&scheduler.data()), before, "{arguments:?} leaves nothing");
    }
    assert_eq!(owners(Path::new(&empty)), [(PathBuf::from(&empty), SERVICE)], "nor there");
}

#[test]
fn a_file_of_another_user_in_the_own_directory_is_named_with_the_way_to_get_it_back() {
    if !nix::unistd::geteuid().is_root() {
        let test =
            "a_file_of_another_user_in_the_own_directory_is_named_with_the_way_to_get_it_back";
        return skip::skipped(test, "becoming another user needs root");
    }
    let scheduler = of_the_service();
    let program = within_reach(&scheduler, "pvn-scheduler");
    for name in ["blobs/new", "pvn.db", "lock", "spool"] {
        let file = scheduler.data().join(name);
        chown(&file, Some(0), Some(0)).unwrap();
        let mut command = Command::new(&program);
        command.args(["prune", "--data-dir"]).arg(scheduler.data()).current_dir(scheduler.home());
        let refused =
            command.uid(SERVICE).gid(SERVICE).output().expect("the program can be started");
        let told = said(&refused);
        assert_eq!(refused.status.code(), Some(1), "{name}: {told}");
        assert!(told.contains(&format!("{} belongs to user 0", file.display())), "{name}: {told}");
        assert!(
            told.contains(&format!("sudo chown -R 65534 {}", file.display())),
            "{name}: {told}"
        );
        chown(&file, Some(SERVICE), Some(SERVICE)).unwrap();
    }
}

#[test]
fn bad_input_a_database_that_its_user_may_not_look_at_is_not_told_as_absent() {
    if !nix::unistd::geteuid().is_root() {
        let test = "bad_input_a_database_that_its_user_may_not_look_at_is_not_told_as_absent";
        return skip::skipped(test, "becoming another user needs root");
    }
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    scheduler.stop();
    let program = within_reach(&scheduler, "pvn-scheduler");
    let backup = scheduler.home().join("backup.tar");
    let refused = |data: &Path| {
        let mut command = Command::new(&program);
        command
            .arg("backup")
            .arg(&backup)
            .arg("--data-dir")
            .arg(data)
            .current_dir(scheduler.home());
        let refused =
            command.uid(SERVICE).gid(SERVICE).output().expect("the program can be started");
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        said(&refused)
    };
    let told = refused(&scheduler.data());
    assert!(
        told.contains(&format!(
            "failed to look at the database {}",
            scheduler.data().join("pvn.db").display()
        )),
        "{told}"
    );
    assert!(
        told.contains("Permission denied")
            && told.contains("belongs to user 0 and this runs as user 65534"),
        "{told}"
    );
    let told = refused(&scheduler.home().join("elsewhere"));
    assert!(told.contains("there is no database"), "{told}");
}

/// A runtime that starts in a directory which its daemon's user may not enter; `ROOT` stands for
/// it.
const SHUT: &str = "runtime: {name: local, local: {root: ROOT}}\n---\nruntime:\n  name: once\n  \
                    custom:\n    proxyRuntime: {runtime: local}\n    apply: {taskConfig: \
                    {program: {name: once, cmd: ['true']}}}\n---\napplication:\n  name: app\n  \
                    releaseChannels:\n  - {name: c0, runtimes: [{runtime: once}]}\n---\nservice: \
                    {name: s0, application: app}\n";

#[test]
fn bad_input_a_root_that_its_user_may_not_enter_is_told_as_such_and_no_fault_of_the_wrapper() {
    if !nix::unistd::geteuid().is_root() {
        let test = "bad_input_a_root_that_its_user_may_not_enter_is_told_as_such_and_no_fault_of_the_wrapper";
        return skip::skipped(test, "becoming another user needs root");
    }
    let scheduler = Scheduler::stopped();
    let program = within_reach(&scheduler, "pvn-scheduler");
    within_reach(&scheduler, "pvn-wrapper");
    let [shut, configs] = ["shut", "configs"].map(|name| scheduler.home().join(name));
    std::fs::create_dir(&shut).unwrap();
    std::fs::set_permissions(&shut, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::create_dir(&configs).unwrap();
    std::fs::write(configs.join("a.pvn.yaml"), SHUT.replace("ROOT", &shut.display().to_string()))
        .unwrap();
    chown(&configs, Some(SERVICE), Some(SERVICE)).unwrap();
    let mut command = Command::new(&program);
    command
        .args(["dev", ".", "--until-converged", "--listen", "127.0.0.1:0"])
        .current_dir(&configs);
    let ended = command.uid(SERVICE).gid(SERVICE).output().expect("the program can be started");
    let told = said(&ended);
    assert_eq!(ended.status.code(), Some(2), "{told}");
    assert!(
        told.contains(&format!(
            "working directory {} cannot be entered: Permission denied",
            shut.display()
        )),
        "{told}"
    );
    assert!(!told.contains("pvn-wrapper"), "{told}");
}
