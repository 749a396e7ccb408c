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
    let server =
        Server::answering([get("CONVERGING", "applying").times(2), get("CONVERGED", "as desired")]);
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
      help: see `pvnctl services explain shop/web@eu`, and the output with `pvnctl jobs list shop/web` and `pvnctl jobs logs ID`
    ");
}

#[test]
fn the_timeout_ends_with_3_and_says_what_is_open() {
    let ran = run(
        &Server::answering([get("WAITING_MANUAL_APPROVAL", "0 of 1 said yes")]),
        &[&WAIT[..], &["--timeout", "300ms"]].concat(),
    );
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(ran.stderr, @r"
    shop/web in eu: WAITING_MANUAL_APPROVAL: 0 of 1 said yes
    error: timeout after 300ms: shop/web in eu is WAITING_MANUAL_APPROVAL: 0 of 1 said yes
      help: see what it waits for with `pvnctl services explain shop/web@eu`, or give it longer with --timeout
    ");
}

#[test]
fn a_lost_server_is_borne() {
    let server = Server::answering([
        get("CONVERGING", "applying").times(1),
        gone(3),
        get("CONVERGED", "as desired"),
    ]);
    let ran = run(&server, &WAIT);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("still trying") && ran.stderr.contains("is back"),
        "{}",
        ran.stderr
    );
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

fn id(number: u8) -> String {
    format!("rel-{}", number.to_string().repeat(32))
}

const PUSH: [&str; 6] = ["services", "push", "web", "--app", "shop", "--wait"];

/// The answer to a push: release `number`, of this version.
fn pushed(number: u8, version: &str) -> Answer {
    answer(
        "POST /v1/applications/shop/services/web/push",
        200,
        json!({"release": id(number), "version": version}),
    )
}

/// Release `number` of this version, in these channels with how it stands there.
fn release(number: u8, version: &str, channels: &[(&str, &str)], by: &str) -> Answer {
    let shown: Vec<Value> = channels
        .iter()
        .map(|(channel, status)| json!({"channel": channel, "status": status}))
        .collect();
    let body = json!({
        "release": id(number), "version": version, "application": "shop", "service": "web", "status": channels[0].1, "createdAt": "2026-01-01T00:00:00.000Z",
        "by": by, "channels": shown, "params": {},
    });
    answer(&format!("GET /v1/releases/{}", id(number)), 200, body)
}

/// The service with these channels: name, status, the number of the release that it pursues, its
/// version.
fn channels(channels: &[(&str, &str, u8, &str)]) -> Value {
    let mut whole = service("CONVERGED", "");
    let template = whole["channels"][0].take();
    let shown = channels.iter().map(|(channel, status, number, version)| {
        let mut shown = template.clone();
        (shown["channel"], shown["status"], shown["message"]) =
            (json!(channel), json!(status), json!(format!("so is {version}")));
        (shown["release"], shown["desiredVersion"]) = (json!(id(*number)), json!(version));
        shown
    });
    whole["channels"] = shown.collect();
    whole
}

fn look(body: Value) -> Answer {
    answer("GET /v1/applications/shop/services/web", 200, body)
}

#[test]
fn a_push_waits_for_its_own_release() {
    let server = Server::answering([
        pushed(1, "web-1"),
        release(1, "web-1", &[("eu", "CONVERGING")], "ann"),
        look(channels(&[("eu", "CONVERGING", 1, "web-1")])).times(2),
        look(channels(&[("eu", "CONVERGED", 1, "web-1")])),
    ]);
    let ran = run(&server, &[&PUSH[..], &["-o", "json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap(),
        json!({"release": id(1), "version": "web-1"})
    );
    let asked =
        |part: &str| server.seen().iter().filter(|request| request.starts_with(part)).count();
    assert_eq!((asked("GET /v1/releases/"), asked("GET /v1/applications")), (1, 3));
}

#[test]
fn a_push_to_one_channel_is_not_disturbed_by_a_newer_one_to_another() {
    let beside = |status| {
        let mut whole = channels(&[("eu", status, 1, "web-1"), ("us", "FAILED", 2, "web-2")]);
        whole["version"] = json!("web-2");
        look(whole)
    };
    let server = Server::answering([
        pushed(1, "web-1"),
        release(1, "web-1", &[("eu", "CONVERGING")], "ann"),
        beside("CONVERGING").times(1),
        beside("CONVERGED"),
    ]);
    let ran = run(&server, &[&PUSH[..], &["--channels", "eu"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains(" us"), "{}", ran.stderr);
}

#[test]
fn a_rollback_waits_only_for_the_channels_that_it_goes_to() {
    let server = Server::answering([
        answer(
            "POST /v1/applications/shop/services/web/rollback",
            200,
            json!({"release": id(3), "version": "web-1"}),
        ),
        release(3, "web-1", &[("eu", "CONVERGING")], "ann"),
        look(channels(&[("eu", "CONVERGED", 3, "web-1"), ("prod", "FAILED", 1, "web-1")])),
    ]);
    let ran = run(
        &server,
        &["services", "rollback", "web", "--app", "shop", "--wait", "--timeout", "10s"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr, "shop/web in eu: CONVERGED: so is web-1\n");
}

#[test]
fn a_channel_that_is_taken_away_meanwhile_is_told_once() {
    let server = Server::answering([
        pushed(1, "web-1"),
        release(1, "web-1", &[("eu", "CONVERGED"), ("us", "CONVERGING")], "ann"),
        look(channels(&[("eu", "CONVERGING", 1, "web-1"), ("us", "CONVERGING", 1, "web-1")]))
            .times(1),
        look(channels(&[("eu", "CONVERGING", 1, "web-1")])).times(2),
        look(channels(&[("eu", "CONVERGED", 1, "web-1")])),
    ]);
    let ran = run(&server, &PUSH);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr, @r"
    shop/web in eu: CONVERGING: so is web-1
    shop/web in us: CONVERGING: so is web-1
    shop/web in us: a config took the release channel away; it is not waited for any more
    shop/web in eu: CONVERGED: so is web-1
    ");
}

#[test]
fn what_autorollback_took_back_ends_with_2_also_where_it_stands_well() {
    let taken_back = || {
        let mut whole = channels(&[("eu", "CONVERGED", 3, "web-1")]);
        whole["channels"][0]["takenBackVersion"] = json!("web-2");
        look(whole)
    };
    let waited = run(&Server::answering([taken_back()]), &WAIT);
    assert_eq!(waited.code, 2);
    insta::assert_snapshot!(waited.stderr, @r"
    shop/web in eu: CONVERGED: so is web-1
    error: shop/web in eu FAILED: web-2 was taken back to web-1, because it did not converge within its progress deadline
      help: see `pvnctl services explain shop/web@eu`, and the output with `pvnctl jobs list shop/web` and `pvnctl jobs logs ID`
    ");
    let server = Server::answering([
        pushed(2, "web-2"),
        release(2, "web-2", &[("eu", "FAILED")], "ann"),
        taken_back(),
    ]);
    let ran = run(&server, &PUSH);
    assert_eq!((ran.code, ran.stderr), (2, waited.stderr));
}

#[test]
fn a_server_that_goes_away_right_after_it_made_the_release_is_borne() {
    let away = |request: &str| answer(request, 0, Value::Null).times(2);
    let server = Server::answering([
        pushed(1, "web-1"),
        away(&format!("GET /v1/releases/{}", id(1))),
        release(1, "web-1", &[("eu", "CONVERGING")], "ann"),
        away("GET /v1/applications/shop/services/web"),
        look(channels(&[("eu", "CONVERGED", 1, "web-1")])),
    ]);
    let ran = run(&server, &PUSH);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("still trying") && ran.stderr.contains("is back"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_server_that_takes_every_connection_and_is_silent_is_waited_for_no_longer_than_the_timeout() {
    // The system takes the connections; nobody ever reads them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let before = std::time::Instant::now();
    let ran = run_with(
        None,
        &[&WAIT[..], &["--timeout", "300ms", "--server", &server]].concat(),
        b"",
        None,
    );
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains(&format!("timeout after 300ms: {server} does not answer\n")),
        "{}",
        ran.stderr
    );
    assert!(
        before.elapsed() < std::time::Duration::from_secs(30),
        "that is the limit of a request: {:?}",
        before.elapsed()
    );
}

#[test]
fn a_terminal_sees_one_table_that_moves() {
    let server =
        Server::answering([get("CONVERGING", "applying").times(2), get("CONVERGED", "as desired")]);
    let ran = run_with(Some(&server), &WAIT, b"", Some(100));
    assert_eq!(ran.code, 0);
    assert_eq!(ran.stderr.matches("\u{1b}[2A\u{1b}[J").count(), 3, "{:?}", ran.stderr);
    assert!(ran.stderr.ends_with("as desired\n"), "{:?}", ran.stderr);
}

/// `push --wait` of `web-2`, in the place of which `web-1` came, when `web-2` stands so in `eu`.
fn replaced(status: &str) -> crate::Ran {
    let warned = json!({"release": id(2), "version": "web-2", "warnings": ["`eu` waits until `test` is converged at web-2"]});
    let server = Server::answering([
        answer("POST /v1/applications/shop/services/web/push", 200, warned),
        release(2, "web-2", &[("eu", status)], "ann"),
        look(channels(&[("eu", "CONVERGING", 3, "web-1")])),
        release(3, "web-1", &[("eu", "CONVERGING")], "pvn"),
    ]);
    run(&server, &PUSH)
}

#[test]
fn a_pushed_release_that_failed_and_was_replaced_before_anybody_looked_ends_with_2() {
    let ran = replaced("FAILED");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr, @r"
    warning: `eu` waits until `test` is converged at web-2
    error: web-2 of shop/web FAILED in eu and was replaced by web-1, which pvn released
      help: see what became of it with `pvnctl jobs list shop/web` and `pvnctl jobs logs ID`
    ");
}

#[test]
fn a_pushed_release_that_another_one_replaced_on_its_way_ends_with_1() {
    let ran = replaced("REPLACED");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("web-2 was replaced by web-1 in eu"), "{}", ran.stderr);
}

#[test]
fn a_terminal_sees_what_runs_and_who_is_asked_below_the_table() {
    let told = |channel: &str, status: &str, job: Value| {
        json!({
            "application": "shop", "service": "web", "channel": channel, "status": status, "reason": null, "message": "",
            "desiredVersion": "web-1", "since": "2026-01-01T00:00:00.000Z", "nextActionAt": null, "approvals": [], "job": job,
        })
    };
    let job = json!({
        "id": format!("job-{}", "44b5ba11".repeat(4)), "kind": "apply", "status": "RUNNING", "attempt": 1,
        "startedAt": "2026-01-01T00:00:00.000Z", "usualMs": 10_000, "lastLine": "copying 3 of 7",
    });
    let overview = json!({
        "at": "2026-01-01T00:00:20.000Z", "counts": {"CONVERGING": 1}, "more": 0,
        "instances": [told("eu", "CONVERGING", job), told("us", "WAITING_MANUAL_APPROVAL", Value::Null)],
    });
    let server = Server::answering([
        get("CONVERGING", "applying").times(3),
        get("CONVERGED", "as desired"),
        answer("GET /v1/status", 200, overview),
    ]);
    let ran = run_with(Some(&server), &WAIT, b"", Some(100));
    let below = "  shop/web@eu\n    apply job-44b5ba11 runs for 20s, usually 10s\n    \u{2502} copying 3 of 7\n";
    assert!(ran.stderr.contains(below), "{:?}", ran.stderr);
    assert!(!ran.stderr.contains("shop/web@us"), "not waited for: {:?}", ran.stderr);
    assert!(ran.stderr.ends_with("as desired\n"), "{:?}", ran.stderr);
    assert_eq!(
        server.seen().iter().filter(|request| request.contains("/v1/status")).count(),
        1,
        "once a second"
    );
}
