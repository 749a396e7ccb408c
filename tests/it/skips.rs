//! What is left out for want of something: it passes, and it is counted. The other user is one of a
//! user namespace, so that the build directory may be anywhere.

use std::process::{Command, Stdio};

use tests::skip;

/// Tests that need root each in a way of their own: a mount, another user, an image.
const NEED_ROOT: &[&str] = &[
    "retention::p9_a_disk_that_pvn_filled_is_mended_by_prune",
    "private_files::another_user_reads_nothing_of_a_database_elsewhere",
    "wrapper::the_image_of_the_wrapper_is_built_and_runs_with_nothing_else_in_it",
];

/// These test programs again, as somebody who is not root and in a session without a terminal.
fn as_another_user(list: &std::path::Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-user=65534", "--map-group=65534", "--", "setsid", "--wait"]);
    command
        .arg(std::env::current_exe().expect("a running program has a path"))
        .env("PVN_SKIPPED_LIST", list)
        .stdin(Stdio::null());
    command.env_remove("PVN_REQUIRE_ALL");
    command
}

#[test]
fn what_needs_root_passes_for_another_user_and_is_counted() {
    let test = "what_needs_root_passes_for_another_user_and_is_counted";
    let home = tempfile::tempdir().expect("a directory can be made");
    let list = home.path().join("skipped");
    let can =
        as_another_user(&list).arg("--list").output().is_ok_and(|output| output.status.success());
    if !can {
        return skip::skipped(test, "user namespaces cannot be made here (unshare --map-user)");
    }
    let output =
        as_another_user(&list).arg("--exact").args(NEED_ROOT).output().expect("it can be started");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success() && said.contains(&format!("{} passed; 0 failed", NEED_ROOT.len())),
        "{said}"
    );
    let told = skip::told(&std::fs::read_to_string(&list).expect("what is skipped is on the list"));
    for name in NEED_ROOT {
        let name = name.rsplit("::").next().expect("a test has a name");
        assert!(told.contains(&format!("skipped: {name}: ")), "{told}");
    }
    assert!(
        told.ends_with(&format!(
            "{} tests were skipped for want of something\n\n",
            NEED_ROOT.len()
        )),
        "{told}"
    );
}
