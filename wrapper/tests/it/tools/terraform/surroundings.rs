//! What stands around terraform: variables of the user's own, logins that talk, a program that says
//! what nobody knows.

use super::*;

#[test]
fn arguments_of_the_users_own_show_nothing_that_is_sensitive() {
    let Some(world) = World::new("arguments_of_the_users_own_show_nothing") else { return };
    let run = world.wrapper(&["plan"]).env("TF_CLI_ARGS_show", "-json").run();
    assert_eq!(run.code, 2, "{}", run.stderr);
    let text = std::fs::read_to_string(world.path("own/terraform-plan/plan.txt")).unwrap();
    assert!(text.contains("terraform_data.made will be created"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("format_version"), "{text}");
    let run = world.wrapper(&["info"]).env("TF_CLI_ARGS_output", "-raw").run();
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_login_that_fails_ends_the_job_wherever_it_stands_and_what_it_says_is_no_output() {
    let Some(world) = World::new("a_login_that_fails_ends_the_job") else { return };
    for command in ["false && export LOGGED_IN=yes", "! true", "(exit 3)", "true | false"] {
        let run = world.run(&["plan", "--pre-run", command, "--pre-run", "true"]);
        assert_eq!(run.code, 1, "{command}: {}", run.stderr);
        assert!(reason(&run).contains("`preRun` failed with exit code"), "{}", reason(&run));
    }
    let login = "echo Login Succeeded; false || export TF_VAR_slow=0";
    let run = world.run(&["info", "--pre-run", login]);
    assert_eq!(run.text(), r#"{"outputs":[{"name":"state","text":"none yet"}]}"#);
    assert!(run.stderr.contains("Login Succeeded"), "{}", run.stderr);
}

#[test]
fn a_shell_that_is_not_there_is_told_as_that() {
    let Some(world) = World::new("a_shell_that_is_not_there_is_told_as_that") else { return };
    let run = world.run(&["plan", "--pre-run", "true", "--shell", "/nope/sh"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let said = reason(&run);
    assert!(said.contains("`/nope/sh` was not found") && !said.contains("chmod"), "{said}");
}

#[test]
fn a_lock_that_cannot_be_written_is_told_as_that() {
    let Some(world) = World::new("a_lock_that_cannot_be_written_is_told_as_that") else { return };
    std::fs::create_dir(world.path(".terraform.tfstate.lock.info")).unwrap();
    let run = world.run(&["plan"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(reason(&run).contains("the lock of the state cannot be taken: "), "{}", reason(&run));
}

#[test]
fn what_the_program_says_that_nobody_knows_is_never_nothing() {
    let Some(world) = World::new("what_the_program_says_that_nobody_knows") else { return };
    std::fs::create_dir(world.path("bin")).unwrap();
    let stand_in = r#"#!/bin/sh
case $* in
*-json*) cat "$SAYS" ;;
plan*)
    for word; do
        [ "${word#-out=}" = "$word" ] || : >"${word#-out=}"
    done
    exit 2
    ;;
esac
"#;
    crate::run::write_program(&world.path("bin/terraform"), stand_in.as_bytes(), 0o755);
    let mut path = vec![world.path("bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let path = std::env::join_paths(path).unwrap();
    let plan = |says: &str| {
        std::fs::write(world.path("says"), says).unwrap();
        world.wrapper(&["plan"]).env("PATH", &path).env("SAYS", world.path("says")).run()
    };
    let run = plan(r#"{"format_version":"2.0"}"#);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(reason(&run).contains("version 2.0"), "{}", reason(&run));
    for says in [
        r#"{"format_version":"1.2"}"#,
        r#"{"format_version":"1.9","resource_changes":[{"address":"a.b","change":{"actions":["explode"]}}]}"#,
    ] {
        assert_eq!(plan(says).code, 2);
        let destroys = std::fs::read(world.path("own/terraform-plan/destroys.txt")).unwrap();
        assert!(!destroys.is_empty(), "{says}");
    }
}

#[test]
fn a_check_tries_to_write_where_the_state_is_kept() {
    let test = "a_check_tries_to_write_where_the_state_is_kept";
    if let Some(why) = crate::kernel::no_namespaces() {
        return crate::skipped(test, &format!("no namespaces here: {why}"));
    }
    let Some(world) = World::new(test) else { return };
    std::fs::create_dir(world.path("state")).unwrap();
    let backend = "--init-args=-backend-config=path=state/s.tfstate";
    let job = || world.wrapper(&["check", backend]).env("OWN", world.path("state"));
    finds(&job().run(), "tool ., target ., target .", "");
    let script = "mount -t tmpfs -o ro none \"$OWN\" && exec \"$0\" \"$@\"";
    let mut job = job().through("unshare", ["-m", "sh", "-c", script]);
    job.command.current_dir(world.directory.path());
    let run = job.run();
    finds(&run, "tool ., target ., target ., target FAILED", "the state is kept here, and no file");
}
