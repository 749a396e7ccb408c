//! `services wait`, and `--wait` elsewhere: exit codes 0, 1, 2, 3 and what is said meanwhile.

use serde_json::{Value, json};

use crate::server::{Answer, Server, json as answer};
use crate::{run, run_with};

fn service(status: &str, message: &str) -> Value {
    json!({
        "id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-1",
        "channels": [{
            "channel": "eu", "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": status, "reason": null, "message": message,
            "desiredVersion": "web-1", "since": "2026-01-01T00:00:00.000Z", "objects": [], "info": [], "approvals": [], "paused": false, "observer": false,
        }],
    })
}

fn get(status: &str, message: &str) -> Answer {
    answer("GET /v1/applications/shop/services/web", 200, service(status, message))
}

/// A server that hangs up without a word.
fn gone(times: usize) -> Answer {
    answer("GET /v1/applications/shop/services/web", 0, Value::Null).times(times)
}

const WAIT: [&str; 5] = ["services", "wait", "web", "--app", "shop"];

#[test]
fn converged_ends_with_0() {
    let server = Server::answering([get("CONVERGING", "applying").times(2), get("CONVERGED", "as desired")]);
    let ran = run(&server, &WAIT);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(ran.stderr, @r"
    shop/web in eu: CONVERGING: applying
    shop/web in eu: CONVERGED: as desired
    ");
}

#[test]
fn failed_ends_with_2_and_says_where_to_look() {
    let ran = run(&Server::answering([get("FAILED", "apply ended with 1")]), &WAIT);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stderr, @r"
    shop/web in eu: FAILED: apply ended with 1
    error: shop/web in eu FAILED: apply ended with 1
      help: see `pvnctl services explain web --app shop --channel eu`, and the output with `pvnctl jobs list --app shop --service web` and `pvnctl jobs logs ID`
    ");
}

#[test]
fn the_timeout_ends_with_3_and_says_what_is_open() {
    let ran = run(&Server::answering([get("WAITING_MANUAL_APPROVAL", "0 of 1 said yes")]), &[&WAIT[..], &["--timeout", "300ms"]].concat());
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(ran.stderr, @r"
    shop/web in eu: WAITING_MANUAL_APPROVAL: 0 of 1 said yes
    error: timeout after 300ms: shop/web in eu is WAITING_MANUAL_APPROVAL: 0 of 1 said yes
      help: see what it waits for with `pvnctl services explain web --app shop --channel eu`, or give it longer with --timeout
    ");
}

#[test]
fn a_lost_server_is_borne() {
    let server = Server::answering([get("CONVERGING", "applying").times(1), gone(3), get("CONVERGED", "as desired")]);
    let ran = run(&server, &WAIT);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("still trying") && ran.stderr.contains("is back"), "{}", ran.stderr);
}

#[test]
fn a_lost_server_that_stays_away_is_a_timeout() {
    let server = Server::answering([get("CONVERGING", "applying").times(1), gone(usize::MAX)]);
    let ran = run(&server, &[&WAIT[..], &["--timeout", "500ms"]].concat());
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("does not answer any more"), "{}", ran.stderr);
}

#[test]
fn a_server_that_was_never_reached_ends_with_1() {
    let ran = run_with(None, &[&WAIT[..], &["--timeout", "5s"]].concat(), b"", None);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
}

#[test]
fn a_push_waits_for_its_own_version() {
    let pushed = json!({"release": format!("rel-{}", "0".repeat(32)), "version": "web-1"});
    let older = {
        let mut older = service("CONVERGED", "as desired");
        older["channels"][0]["desiredVersion"] = json!("web-0");
        answer("GET /v1/applications/shop/services/web", 200, older).times(2)
    };
    let server = Server::answering([
        answer("POST /v1/applications/shop/services/web/push", 200, pushed.clone()),
        older,
        get("CONVERGED", "as desired"),
    ]);
    let ran = run(&server, &["services", "push", "web", "--app", "shop", "--wait", "-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), pushed);
    assert_eq!(server.seen().iter().filter(|request| request.starts_with("GET")).count(), 3);
}

#[test]
fn a_terminal_sees_one_table_that_moves() {
    let server = Server::answering([get("CONVERGING", "applying").times(2), get("CONVERGED", "as desired")]);
    let ran = run_with(Some(&server), &WAIT, b"", Some(100));
    assert_eq!(ran.code, 0);
    assert_eq!(ran.stderr.matches("\u{1b}[2A\u{1b}[J").count(), 3, "{:?}", ran.stderr);
    assert!(ran.stderr.ends_with("as desired\n"), "{:?}", ran.stderr);
}

/// `push --wait` of `web-2`, in the place of which `web-1` came, when `web-2` stands so in `eu`.
fn replaced(status: &str) -> crate::Ran {
    let id = |number: u8| format!("rel-{}", number.to_string().repeat(32));
    let release = |number: u8, version: &str, status: &str, by: &str| {
        json!({
            "release": id(number), "version": version, "application": "shop", "service": "web", "status": status, "createdAt": "2026-01-01T00:00:00.000Z",
            "by": by, "channels": [{"channel": "eu", "status": status}], "params": {},
        })
    };
    let list =
        json!({"items": [release(3, "web-1", "CONVERGING", "pvn"), release(2, "web-2", status, "ann")], "nextCursor": null, "total": 2});
    let pushed = json!({"release": id(2), "version": "web-2", "warnings": ["`eu` waits until `test` is converged at web-2"]});
    let server = Server::answering([
        answer("POST /v1/applications/shop/services/web/push", 200, pushed),
        get("CONVERGING", "applying"),
        answer("GET /v1/releases", 200, list),
    ]);
    run(&server, &["services", "push", "web", "--app", "shop", "--wait"])
}

#[test]
fn a_pushed_release_that_failed_and_was_taken_back_before_anybody_looked_ends_with_2() {
    let ran = replaced("FAILED");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr, @r"
    warning: `eu` waits until `test` is converged at web-2
    error: web-2 of shop/web FAILED in eu and was replaced by web-1, which pvn released
      help: see what became of it with `pvnctl jobs list --app shop --service web` and `pvnctl jobs logs ID`
    ");
}

#[test]
fn a_pushed_release_that_another_one_replaced_on_its_way_ends_with_1() {
    let ran = replaced("REPLACED");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("web-2 was replaced by web-1"), "{}", ran.stderr);
}
