//! Config files on their way: what is refused before anything is sent, what is asked, what is sent.

use serde_json::{Value, json};

use crate::server::{Answer, Server, json as answer};
use crate::{run, run_with};

const CONFIGS: &str = "POST /v1/configs";

/// A directory with one good config file, and the path of that file.
fn good() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.pvn.yaml");
    std::fs::write(
        &path,
        "application:\n  name: shop\n  releaseChannels:\n  - name: eu\n    runtimes: [{runtime: \
         local}]\n",
    )
    .unwrap();
    (dir, path.display().to_string())
}

fn result(change: &str, pushed: bool) -> Value {
    let release = json!({"application": "shop", "service": "web", "release": format!("rel-{}", "0".repeat(32)), "version": "web-1"});
    json!({
        "documents": [{"kind": "application", "name": "shop", "application": null, "change": change, "version": 1, "diff": "+name: shop\n"}],
        "pushed": if pushed { vec![release] } else { vec![] },
    })
}

fn would(change: &str) -> Answer {
    answer(CONFIGS, 200, result(change, false))
}

/// The bodies sent, less their files.
fn sent(server: &Server) -> Vec<Value> {
    let bodies = server.seen().into_iter().map(|request| {
        serde_json::from_str::<Value>(request.strip_prefix(CONFIGS).unwrap().trim()).unwrap()
    });
    bodies
        .map(|mut body| {
            assert_eq!(body["files"].as_array().unwrap().len(), 1);
            body.as_object_mut().unwrap().remove("files");
            body
        })
        .collect()
}

#[test]
fn apply_without_a_terminal_refuses_unless_told_not_to_ask() {
    let (_dir, path) = good();
    let server = Server::answering([would("created")]);
    let ran = run(&server, &["configs", "apply", &path]);
    assert_eq!((ran.code, ran.stdout.as_str(), server.seen().len()), (1, "", 0));
    insta::assert_snapshot!(ran.stderr, @r"
    error: refusing to apply: there is no terminal to ask on
      help: give --no-prompt to apply without asking, or --dry-run to only look
    ");
    let ran = run(&server, &["configs", "apply", &path, "--no-prompt"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "applied: 1 created, 0 unchanged\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(sent(&server), [json!({"dryRun": false, "push": false, "params": {}})]);
}

#[test]
fn apply_on_a_terminal_shows_the_diff_and_asks() {
    for (reply, requests) in [("y\n", 2), ("yes\n", 2), ("n\n", 1), ("\n", 1), ("", 1)] {
        let (_dir, path) = good();
        let server = Server::answering([would("changed")]);
        let ran =
            run_with(Some(&server), &["configs", "apply", &path], reply.as_bytes(), Some(100));
        // A script that goes on after it must not take a no for a yes.
        assert_eq!(ran.code, if requests == 2 { 0 } else { 1 }, "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with(
                "~ application shop (changed, config version 1)\n  +name: shop\n1 to change, 0 \
                 unchanged\n"
            ),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("Apply these changes? [y/N] "), "{}", ran.stderr);
        assert_eq!(sent(&server).len(), requests, "{reply:?}");
        assert_eq!(ran.stderr.contains("nothing was changed"), requests == 1, "{reply:?}");
    }
}

#[test]
fn what_somebody_else_applied_while_the_question_stood_is_shown_and_asked_about() {
    let (_dir, path) = good();
    let of = |change: &str, basis: char| {
        let mut body = result(change, false);
        body["basis"] = json!(format!("sha256:{}", basis.to_string().repeat(64)));
        answer(CONFIGS, 200, body)
    };
    let problem = json!({"type": "/problems/conflict", "title": "Conflict", "status": 409, "detail": "somebody has applied some of these"});
    let server = Server::answering([
        of("changed", 'a').times(1),
        answer(CONFIGS, 409, problem).times(1),
        of("created", 'b'),
    ]);
    let ran = run_with(Some(&server), &["configs", "apply", &path], b"y\ny\n", Some(100));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let parts =
        ["1 to change", "[y/N]", "somebody has applied some of these", "1 to create", "[y/N]"];
    let mut rest = ran.stderr.as_str();
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part}: {}", ran.stderr)).1;
    }
    let bases: Vec<_> = sent(&server)
        .iter()
        .map(|body| body["basis"].as_str().and_then(|basis| basis.chars().nth(7)))
        .collect();
    assert_eq!(bases, [None, Some('a'), None, Some('b')]);
}

#[test]
fn what_only_the_releases_are_warned_of_is_told_after_the_question_and_nothing_twice() {
    let (_dir, path) = good();
    let warning = |message: &str| {
        let snippet = format!("warning: {message}\n");
        json!({"file": "", "line": 0, "column": 0, "snippet": snippet, "path": "shop/web", "message": message, "help": null})
    };
    let with = |pushed, warnings: &[&str]| {
        let mut body = result("changed", pushed);
        body["warnings"] = warnings.iter().map(|message| warning(message)).collect();
        answer(CONFIGS, 200, body)
    };
    let server = Server::answering([
        with(false, &["of the config"]).times(1),
        with(true, &["of the config", "of the release"]),
    ]);
    let ran = run_with(Some(&server), &["configs", "apply", &path, "--push"], b"y\n", Some(100));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (asked, done) = ran.stderr.split_once("[y/N]").unwrap();
    assert!(
        asked.contains("warning: of the config") && !asked.contains("of the release"),
        "{asked}"
    );
    assert!(done.contains("warning: of the release") && !done.contains("of the config"), "{done}");
}

#[test]
fn diff_and_dry_run_end_with_0_and_with_2_only_when_asked() {
    let (_dir, path) = good();
    for words in [&["configs", "diff", &path][..], &["configs", "apply", "--dry-run", &path]] {
        for (change, code) in [("created", 2), ("unchanged", 0)] {
            let server = Server::answering([would(change)]);
            assert_eq!(run(&server, words).code, 0, "{words:?}");
            assert_eq!(
                run(&server, &[words, &["--exit-code"]].concat()).code,
                code,
                "{words:?} {change}"
            );
            assert!(sent(&server).iter().all(|body| body["dryRun"] == true));
        }
    }
}

#[test]
fn a_push_goes_along_in_the_same_request() {
    let (_dir, path) = good();
    let server = Server::answering([answer(CONFIGS, 200, result("unchanged", true))]);
    let ran =
        run(&server, &["configs", "apply", &path, "--no-prompt", "--push", "--param", "image=a=b"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(sent(&server), [json!({"dryRun": false, "push": true, "params": {"image": "a=b"}})]);
    assert!(ran.stdout.contains("released web-1 of shop/web as rel-"), "{}", ran.stdout);
    assert_eq!(
        run(&server, &["configs", "apply", &path, "--no-prompt", "--param", "image=a"]).code,
        1,
        "a value without a push goes nowhere"
    );
}

#[test]
fn broken_files_are_all_told_and_nothing_is_sent() {
    let (dir, path) = good();
    std::fs::write(dir.path().join("b.pvn.yaml"), "runtime:\n  nmae: x\n").unwrap();
    std::fs::write(dir.path().join("c.pvn.yaml"), "service: [\n").unwrap();
    let server = Server::answering([would("created")]);
    let dir = dir.path().display().to_string();
    for words in [
        &["configs", "apply", "--no-prompt", &dir][..],
        &["configs", "diff", &dir],
        &["configs", "validate", &dir],
    ] {
        let ran = run(&server, words);
        assert_eq!((ran.code, ran.stdout.as_str(), server.seen().len()), (1, "", 0), "{words:?}");
        for part in ["b.pvn.yaml:2:3", "did you mean `name`", "c.pvn.yaml:"] {
            assert!(ran.stderr.contains(part), "{words:?} {part}: {}", ran.stderr);
        }
        assert!(
            ran.stderr.trim_end().lines().last().unwrap().contains("problems in the config files"),
            "{}",
            ran.stderr
        );
    }
    let ran = run(&server, &["configs", "validate", &path]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1 file is in order\n"), "{}", ran.stderr);
}

#[test]
fn the_schema_is_json() {
    let ran = run_with(None, &["configs", "schema"], b"", None);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(schema.is_object() && ran.code == 0);
}

#[test]
fn a_service_that_is_left_out_is_said_with_the_row_and_ends_with_1_after_all_else_is_done() {
    let (_dir, path) = good();
    let mut answered = result("changed", true);
    answered["leftOut"] = json!([{"application": "shop", "service": "desk", "why": "table releases, row id = \"7\": column params"}]);
    let server = Server::answering([answer(CONFIGS, 200, answered)]);
    let ran = run(&server, &["configs", "apply", &path, "--no-prompt", "--push"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("released web-1 of shop/web"), "{}", ran.stdout);
    let said = [
        "shop/desk is left out: table releases, row id = \"7\": column params",
        "sqlite3",
        "`pvnctl push SERVICE`",
    ];
    assert!(said.iter().all(|said| ran.stderr.contains(said)), "{}", ran.stderr);
    let ran = run(&server, &["configs", "diff", &path]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("shop/desk is left out"), "{}", ran.stderr);
}
