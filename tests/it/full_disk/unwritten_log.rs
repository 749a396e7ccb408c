//! Logs that cannot be written, or that nobody reads.

use super::*;

/// Serves with a log of this kind, does a round of work and stops.
fn check_log(make: impl FnOnce(&Path) -> Option<std::fs::File>, is_read: bool, filter: &str) {
    let mut scheduler = Scheduler::stopped();
    let reader = make(&scheduler.home().join("log"));
    scheduler.run(&Start { variables: &[("PVN_LOG", filter)], ..Start::default() });
    let _unread = reader.filter(|_| !is_read);
    let files = Files::new(scheduler.home());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(files.ledger().len(), 1);
    assert!(scheduler.stop().success());
}

#[test]
fn p9_a_log_that_cannot_be_written_or_that_nobody_reads_ends_nothing() {
    use std::os::unix::fs::OpenOptionsExt;
    let pipe = |path: &Path| {
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR)
            .expect("a pipe can be made");
        let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
        Some(
            std::fs::File::options()
                .read(true)
                .custom_flags(flags)
                .open(path)
                .expect("a pipe can be read"),
        )
    };
    let full = |path: &Path| {
        std::os::unix::fs::symlink("/dev/full", path).expect("a link can be made");
        None
    };
    check_log(full, false, "info");
    // Its reader goes away; and one that is there and reads nothing.
    check_log(pipe, true, "info");
    check_log(pipe, false, "trace");
}
