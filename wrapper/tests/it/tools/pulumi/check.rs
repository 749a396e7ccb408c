//! `pvn-wrapper pulumi check`: what is missing is told, one thing at a time.

use super::*;

/// One with a stack that can be read.
fn world() -> World {
    let world = World::new();
    world.write("history", "[]");
    world.write("outputs", "{\"token\": \"[secret]\"}");
    world
}

#[test]
fn a_check_tries_program_login_and_stack() {
    let world = world();
    let run = world.run("check");
    let (short, findings) = found(&run);
    assert_eq!(short, "tool ., credentials ., target ., target .", "{findings:#?}");
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages[..3],
        ["`pulumi` is v3.260.0", "logged in as `somebody`", "the stack `dev` is there"]
    );
    let calls = world.read("calls");
    assert_eq!(
        calls.lines().collect::<Vec<_>>(),
        [
            "version",
            "whoami --non-interactive",
            "stack history --json --page-size 1 --stack dev",
            "stack output --json --stack dev",
        ]
    );
    assert!(run.stderr.contains("+ pulumi whoami --non-interactive\n"), "{}", run.stderr);
    let left: Vec<_> = std::fs::read_dir(world.path("instance")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_check_tells_what_is_missing_one_thing_at_a_time() {
    let world = world();
    let check = |more: &[&str]| world.wrapper("check", more).run();
    let no_stack = "tool ., credentials ., target FAILED";
    finds(&check(&["--stack", "prod"]), no_stack, "there is no stack `prod` in this backend");
    let sealed = "error: passphrase must be set with PULUMI_CONFIG_PASSPHRASE\n";
    world.write("sealed", sealed);
    let is_sealed = "tool ., credentials ., target ., target FAILED";
    finds(&check(&[]), is_sealed, "the passphrase of the stack's secrets is missing");

    let no_login = "tool ., credentials FAILED, target -";
    let said = "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive sessions\n";
    world.write("logged-out", said);
    finds(&check(&[]), no_login, "Pulumi is not logged in: set PULUMI_ACCESS_TOKEN");
    world.write("logged-out", "error: dial tcp 127.0.0.1:1: connect: connection refused\n");
    finds(&check(&[]), no_login, "Pulumi's backend could not be reached");

    let no_tool = "tool FAILED, credentials -, target -";
    world.write("version", "v2.25.2\n");
    finds(&check(&[]), no_tool, "`pulumi` is v2.25.2, which is too old");
    finds(&check(&["--command-prefix", "poetry-of-nobody run"]), no_tool, "was not found");
}
