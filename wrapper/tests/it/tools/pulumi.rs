//! `pvn-wrapper pulumi preview|up|info` around a program that replays what the real one does, and
//! once around the real one, where there is one.

use std::path::PathBuf;

use fakes::pulumi::{LOCK, PROGRAM, drift, settled};
use serde_json::{Value, json};

use super::{finds, found};
use crate::run::{Run, Running, Wrapper, until, write_program};

mod check;
mod real;

const TERM: i32 = 15;

/// What `up` prints of a resource that fails, on standard output.
const FAILED: &str = "
Diagnostics:
  pulumi:pulumi:Stack (p-dev):
    error: update failed

  a:b:Cmd (web):
    error: quota exceeded

Resources:
    1 unchanged
    1 errored
";

/// A place where `pulumi` is the replay, with the state that it keeps.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    /// One in which a resource has drifted.
    fn new() -> Self {
        let world = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(world.path("bin")).unwrap();
        write_program(&world.path("bin/pulumi"), PROGRAM, 0o755);
        world.write("preview", drift().to_string());
        world.write("settled", settled().to_string());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn wrapper(&self, step: &str, more: &[&str]) -> Wrapper {
        let mut command = vec!["pvn-wrapper", "pulumi", step];
        command.extend(more);
        if !more.contains(&"--stack") {
            command.extend(["--stack", "dev"]);
        }
        let bin = self.path("bin");
        let mut path = vec![bin];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        Wrapper::new(&["--kill-after", "1m"], &command)
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("WORLD", self.directory.path())
            .env("PVN_INSTANCE_DIR", self.path("instance"))
    }

    fn run(&self, step: &str) -> Run {
        self.wrapper(step, &[]).run()
    }

    /// The code, and the last line on standard error, which people see.
    fn fails(&self, step: &str) -> (i32, String) {
        let run = self.run(step);
        (run.code, last_line(&run))
    }

    /// What the last preview handed over.
    fn handed(&self, name: &str) -> String {
        self.read(&format!("instance/pulumi-preview/{name}"))
    }
}

fn last_line(run: &Run) -> String {
    let line = run.stderr.lines().last().unwrap_or_default();
    line.strip_prefix("pvn-wrapper: ").unwrap_or(line).to_owned()
}

#[test]
fn drift_is_previewed_repaired_and_gone() {
    let world = World::new();
    let run = world.run("preview");
    let explanation = "Preview: 1 to update, 1 unchanged\n\nupdate   a:b:Cmd web: zone\n";
    assert_eq!((run.code, run.text().as_str()), (2, explanation), "{}", run.stderr);
    assert_eq!(world.handed("preview.txt"), explanation);
    let names: Vec<&str> = run.report.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["plan-explanation", "plan-json", "plan-destroys"]);
    assert!(run.report.files.iter().all(|file| file.content_blob_id.is_some()));
    let handed = world.handed("preview.json");
    let document: Value = serde_json::from_str(&handed).unwrap();
    assert_eq!(document["steps"][0]["properties"], json!(["zone"]));
    for shown in [&handed, &run.stderr, explanation] {
        assert!(!shown.contains("hunter2") && !shown.contains("plain value"), "{shown}");
    }
    assert!(run.stderr.contains("a word of the program"), "{}", run.stderr);

    // The same drift, seen again: the same text, whatever the time and the order.
    let before = run.report.files[0].content_blob_id;
    let mut again = drift();
    again["duration"] = 1.into();
    again["steps"].as_array_mut().unwrap().reverse();
    world.write("preview", again.to_string());
    assert_eq!(world.run("preview").report.files[0].content_blob_id, before);

    // What can be done once can be done twice.
    for _ in 0..2 {
        let run = world.run("up");
        assert!(run.code == 0 && run.text().contains("Updating (dev):"), "{}", run.stderr);
    }
    let run = world.run("preview");
    assert_eq!((run.code, run.text().as_str()), (0, "Preview: no changes, 2 unchanged\n"));
    assert!(run.report.files.iter().all(|file| file.content_blob_id.is_some()));

    let preview = "preview --json --refresh --non-interactive --stack dev";
    let up = "up --yes --skip-preview --refresh --non-interactive --stack dev";
    let calls = world.read("calls");
    assert_eq!(calls.lines().collect::<Vec<_>>(), [preview, preview, up, up, preview]);
    assert!(run.stderr.contains(&format!("+ pulumi {preview}\n")), "{}", run.stderr);
}

#[test]
fn a_preview_that_is_no_preview_is_an_error_and_never_no_work() {
    let world = World::new();
    let failed = json!({"changeSummary": {"same": 1}, "diagnostics": [
        {"urn": "urn:pulumi:dev::p::a:b:Cmd::web", "message": "error: no such zone\n",
            "severity": "error"},
        {"urn": "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev",
            "message": "error: preview failed\n", "severity": "error"},
    ]});
    let check = |document: &str, code: &str, expected: &str| {
        world.write("preview", document);
        world.write("preview-ends-with", code);
        let (code, line) = world.fails("preview");
        assert!(code == 1 && line.contains(expected), "{code}: {line}");
    };
    let failed = failed.to_string();
    check(&failed, "1", "`pulumi preview` failed with exit code 1: web (a:b:Cmd): no such zone");
    check(&failed, "255", "failed with exit code 255: web (a:b:Cmd): no such zone");
    check(&failed, "0", "the preview found an error: web (a:b:Cmd): no such zone");
    // Called wrongly, as from 3.227 on; and what whoever stands before it may end with.
    check("", "2", "failed with exit code 2");
    check("{}", "75", "failed with exit code 75");
    check("{}", "0", "no `changeSummary`");
    check("Previewing update (dev)", "0", "did not print one JSON document");
    check("{\"sequence\":0}\n{\"sequence\":1}", "0", "PULUMI_ENABLE_STREAMING_JSON_PREVIEW");
}

#[test]
fn a_lock_is_told_and_tried_again_and_never_broken() {
    let world = World::new();
    world.write("lock", LOCK);
    let expected = "the stack `dev` is locked by root@vm (pid 4711) since 2026-11-28T03:00:00Z; it \
                    is free when that run ends; if nothing runs there any more, `pulumi cancel \
                    --stack dev --yes` frees it";
    assert_eq!(world.fails("up"), (75, expected.to_owned()));
    world.write("before-3.227", "");
    assert_eq!(world.fails("up"), (75, expected.to_owned()));
    // A preview needs no lock.
    assert_eq!(world.run("preview").code, 2);
    world.write(
        "lock",
        "error: [409] Conflict: Another update is currently in progress.\nTo learn more about \
         possible reasons and resolution, visit https://www.pulumi.com/docs/\n",
    );
    let (code, line) = world.fails("up");
    assert!(code == 75 && line.contains("is locked by another update"), "{line}");
    assert!(!world.read("calls").contains("cancel"));
}

#[test]
fn what_is_missing_is_told() {
    let world = World::new();
    for before in [false, true] {
        if before {
            world.write("before-3.227", "");
        }
        for step in ["preview", "up", "info"] {
            let run = world.wrapper(step, &["--stack", "prod"]).run();
            assert_eq!(run.code, 1, "{}", run.stderr);
            assert!(last_line(&run).contains("there is no stack `prod`"), "{}", run.stderr);
        }
    }
    std::fs::remove_file(world.path("bin/pulumi")).unwrap();
    let run = world.wrapper("up", &[]).env("PATH", world.path("bin")).run();
    assert!(run.code == 1 && last_line(&run).contains("`pulumi` was not found"), "{}", run.stderr);
    for wrong in [&["--stack", ""][..], &["--stack", "dev", "--command-prefix", "a 'b"]] {
        let output = world.wrapper("up", wrong).command.output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{wrong:?}");
    }
}

#[test]
fn an_up_that_fails_says_why() {
    let world = World::new();
    world.write("up-fails", FAILED);
    assert_eq!(
        world.fails("up"),
        (1, "`pulumi up` failed with exit code 1: web (a:b:Cmd): quota exceeded".to_owned())
    );
    world.write("before-3.227", "");
    let run = world.run("up");
    assert!(run.code == 1 && run.text().contains("Diagnostics:"), "all of it is in the log");
    world.write("lock", "error: problem logging in: dial tcp 10.0.0.1:443: i/o timeout\n");
    let (code, line) = world.fails("up");
    assert!(code == 75 && line.contains("could not be reached"), "{line}");
}

#[test]
fn a_stop_goes_to_pulumi_once_and_ends_by_it() {
    let world = World::new();
    world.write("slow", "");
    let running: Running = world.wrapper("up", &[]).with_default_signals().spawn();
    until("it runs", || world.path("began").exists().then_some(()));
    running.signal(TERM);
    let run = running.wait();
    assert_eq!(
        (run.code, last_line(&run).as_str(), world.read("signals").as_str()),
        (
            1,
            "`pulumi up` was asked to stop, and did: what it has done is in the stack's state, and \
             the next `up` goes on from there",
            "TERM\n"
        ),
        "{}",
        run.stderr
    );
    assert!(run.text().contains("update canceled"), "{}", run.text());
}

#[test]
fn info_tells_the_outputs_and_the_last_update() {
    let world = World::new();
    world.write("outputs", r#"{"url": "https://x", "token": "[secret]", "n": 3}"#);
    world.write(
        "history",
        json!([{"version": 0, "kind": "update", "startTime": "2026-11-28T02:59:00.000Z",
            "message": "", "environment": {}, "config": {"p:zone": {"value": "z", "secret": false}},
            "result": "succeeded", "endTime": "2026-11-28T03:00:00.000Z",
            "resourceChanges": {"create": 1, "same": 1}}])
        .to_string(),
    );
    let run = world.run("info");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        serde_json::from_slice::<Value>(&run.stdout).unwrap(),
        json!({"outputs": [
            {"name": "stack", "text": "dev"},
            {"name": "last update",
                "text": "update succeeded at 2026-11-28T03:00:00.000Z: 1 created, 1 unchanged"},
            {"name": "output n", "text": "3"},
            {"name": "output token", "text": "[secret]"},
            {"name": "output url", "text": "https://x"},
        ]})
    );
    assert_eq!(
        world.read("calls"),
        "stack output --json --stack dev\nstack history --json --page-size 1 --stack dev\n"
    );
    world.write("outputs", "no JSON");
    let (code, line) = world.fails("info");
    assert!(code == 1 && line.contains("printed no JSON"), "{line}");
}

#[test]
fn a_prefix_a_pre_run_and_the_environment_reach_pulumi() {
    let world = World::new();
    let prefix = ["env", "-u HOME 'GREETING=hello world'"];
    let prefix: Vec<&str> =
        prefix.into_iter().flat_map(|words| ["--command-prefix", words]).collect();
    let run = world.wrapper("preview", &prefix).run();
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("+ env -u HOME 'GREETING=hello world' pulumi preview"));
    assert_eq!(world.read("environment"), "hello world,,true\n");
    let before = &["--pre-run", "export GREETING=hi HOME=/h PULUMI_SKIP_UPDATE_CHECK=false"];
    assert_eq!(world.wrapper("preview", before).run().code, 2);
    assert_eq!(world.read("environment"), "hi,/h,false\n");
}
