//! What people look with: `get`, `describe`, `explain`, `logs`, `history`, `events`, `version`.

use serde_json::{Value, json};

use crate::server::{Answer, Server, bytes, json as answer};
use crate::{run, run_with};

const DIGITS: &str = "44b5ba1144b5ba1144b5ba1144b5ba11";

fn job(kind: &str, status: &str) -> Value {
    json!({
        "id": format!("job-{DIGITS}"), "kind": kind, "application": "shop", "service": "web", "channel": "eu", "runtime": "vm",
        "version": "web-1", "attempt": 1, "status": status, "exitCode": 1, "message": "", "createdAt": "2026-01-01T00:00:00.000Z",
        "startedAt": "2026-01-01T00:00:00.000Z", "endedAt": "2026-01-01T00:00:01.500Z",
    })
}

fn page(request: &str, items: &[Value]) -> Answer {
    answer(request, 200, json!({"items": items, "total": items.len()}))
}

/// The jobs of this kind, and the output of the one there is.
fn jobs_of(kind: &str, items: &[Value], limit: usize) -> Answer {
    let scope = "application=shop&service=web&channel=eu";
    page(&format!("GET /v1/jobs?{scope}&kind={kind}&limit={limit}"), items)
}

fn output(text: &str) -> Answer {
    let end = json!({"status": "FAILED", "exitCode": 1});
    let chunk = json!({"stream": "stdout", "offset": 0, "data": base64(text)});
    let body = format!("event: chunk\ndata: {chunk}\n\nevent: end\ndata: {end}\n\n");
    bytes(
        &format!("GET /v1/jobs/job-{DIGITS}/logs?stdoutOffset=0&stderrOffset=0"),
        "text/event-stream",
        body.as_bytes(),
    )
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn logs_of_an_address_are_those_of_the_newest_apply_else_of_the_newest_fetch() {
    let one = job("apply", "FAILED");
    let server = Server::answering([jobs_of("apply", &[one], 1), output("boom\n")]);
    let ran = run(&server, &["logs", "shop/web@eu"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "boom\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("apply job-44b5ba11 of shop/web@eu, web-1: FAILED (exit code 1), "),
        "{}",
        ran.stderr
    );
    let one = job("fetch", "FAILED");
    let server = Server::answering([
        jobs_of("apply", &[], 1),
        jobs_of("fetch", &[one], 1),
        output("looked\n"),
    ]);
    assert_eq!(run(&server, &["logs", "shop/web@eu"]).stdout, "looked\n");
}

#[test]
fn logs_of_a_kind_and_of_the_one_before() {
    let (mut newest, before) = (job("getInfo", "FAILED"), job("getInfo", "FAILED"));
    newest["id"] = json!(format!("job-{}", "1".repeat(32)));
    let server = Server::answering([jobs_of("getInfo", &[newest, before], 2), output("hello\n")]);
    let ran = run(&server, &["logs", "shop/web@eu", "--info", "--previous"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{}", ran.stderr);
    let server = Server::answering([jobs_of("fetch", &[], 1)]);
    let ran = run(&server, &["logs", "shop/web@eu", "--fetch"]);
    assert_eq!(ran.code, 1);
    for part in ["shop/web in eu has had no fetch yet", "`pvnctl explain shop/web@eu` says why"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let ran = run(&server, &["logs", "shop/web@eu", "--fetch", "--apply"]);
    assert!(ran.code == 1 && ran.stderr.contains("cannot be used with"), "{}", ran.stderr);
}

#[test]
fn an_id_in_the_place_of_an_address_is_a_job() {
    let path = "GET /v1/jobs/job-44b5";
    let server = Server::answering([
        bytes(
            &format!("{path}/logs?stdoutOffset=0&stderrOffset=0"),
            "text/event-stream",
            b"event: end\ndata: {\"status\": \"FAILED\", \"exitCode\": 1}\n\n",
        ),
        answer(path, 200, job("apply", "FAILED")),
    ]);
    let ran = run(&server, &["logs", "job-44b5"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let ran = run(&server, &["get", "job", "job-44b5"]);
    assert!(ran.stdout.contains("job-44b5ba11  apply"), "{}", ran.stdout);
    // With its application it is a service.
    let server = Server::answering([]);
    run(&server, &["logs", "shop/job-44b5@eu"]);
    assert!(server.seen()[0].contains("service=job-44b5"), "{:?}", server.seen());
}

#[test]
fn ids_are_short_for_people_and_whole_for_programs() {
    let server = Server::answering([page("GET /v1/jobs", &[job("apply", "FAILED")])]);
    let whole = format!("job-{DIGITS}");
    for (format, is_whole) in
        [("table", false), ("wide", true), ("name", true), ("json", true), ("yaml", true)]
    {
        let ran = run(&server, &["get", "jobs", "-o", format]);
        assert_eq!(ran.stdout.contains(&whole), is_whole, "{format}: {}", ran.stdout);
        assert!(ran.stdout.contains("job-44b5ba11"), "{format}: {}", ran.stdout);
        assert_eq!(ran.stdout.contains("RUNTIME"), format == "wide", "{}", ran.stdout);
    }
    assert_eq!(run(&server, &["get", "jobs", "-o", "name"]).stdout, format!("{whole}\n"));
}

#[test]
fn nouns_are_singular_plural_or_short() {
    let service = json!({"id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": null, "channels": []});
    let server = Server::answering([page("GET /v1/services", &[service])]);
    for noun in ["services", "service", "svc"] {
        let ran = run(&server, &["get", noun, "-o", "name"]);
        assert_eq!(ran.stdout, "shop/web\n", "{noun}: {}", ran.stderr);
    }
    let asked = |words: &[&str]| {
        let server = Server::answering([]);
        run(&server, words);
        server.seen().first().cloned().unwrap_or_default()
    };
    for (words, request) in [
        (&["get", "app", "shop"][..], "GET /v1/applications/shop"),
        (&["get", "rt"], "GET /v1/runtimes?limit=200"),
        (&["get", "rel", "rel-44"], "GET /v1/releases/rel-44"),
        (
            &["get", "releases", "shop/web"],
            "GET /v1/releases?application=shop&service=web&limit=200",
        ),
        (&["get", "secrets"], "GET /v1/secrets?limit=200"),
        (&["get", "tokens"], "GET /v1/tokens?limit=200"),
        (&["get", "svc", "web", "--app", "shop"], "GET /v1/applications/shop/services/web"),
        (&["describe", "job", "job-1"], "GET /v1/jobs/job-1"),
        (&["explain", "shop/web@eu"], "GET /v1/applications/shop/services/web/channels/eu/explain"),
        (&["pause", "shop/web@eu"], "POST /v1/applications/shop/services/web/channels/eu/pause {}"),
        (&["cancel", "job-44"], "POST /v1/jobs/job-44/cancel {}"),
        (
            &["history", "shop/web@eu"],
            "GET /v1/releases?application=shop&service=web&channel=eu&limit=20",
        ),
    ] {
        assert_eq!(asked(words), request, "{words:?}");
    }
}

fn entry(seq: u64, message: &str) -> Value {
    json!({
        "seq": seq, "at": "2026-01-01T00:00:00.000Z", "kind": "release.made", "actor": "eve", "origin": "::1", "application": "shop",
        "service": "web", "channel": null, "message": message, "data": {},
    })
}

#[test]
fn the_log_is_read_from_the_oldest_to_the_newest() {
    let server =
        Server::answering([page("GET /v1/events", &[entry(2, "second"), entry(1, "first")])]);
    let ran = run(&server, &["events", "shop/web", "--audit", "--kind", "release"]);
    let query = "application=shop&service=web&kind=release&audit=true&limit=50";
    assert_eq!(server.seen(), [format!("GET /v1/events?{query}")]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert!(lines[1].ends_with("shop/web  eve  first"), "{}", ran.stdout);
    assert!(lines[2].ends_with("second"), "{}", ran.stdout);
}

#[test]
fn a_log_that_is_followed_goes_on_after_its_last_entry_when_the_stream_ends() {
    let stream = |seq: u64| {
        let entry = entry(seq, &format!("entry {seq}"));
        let body = format!("id: {seq}\nevent: release.made\ndata: {entry}\n\n");
        bytes("GET /v1/events", "text/event-stream", body.as_bytes()).times(1)
    };
    let over = json!({"type": "/problems/forbidden", "title": "Forbidden", "status": 403, "detail": "over"});
    let server = Server::answering([
        page("GET /v1/events?limit=1", &[entry(3, "entry 3")]),
        page("GET /v1/events?limit=10", &[entry(4, "entry 4"), entry(3, "entry 3")]),
        stream(4),
        // A server that hangs up, and one that is back.
        answer("GET /v1/events", 0, json!({})).times(1),
        stream(5),
        answer("GET /v1/events", 403, over),
    ]);
    let ran = run(&server, &["events", "-f"]);
    let said: Vec<_> = ran.stdout.lines().filter_map(|line| line.split("entry ").nth(1)).collect();
    assert_eq!(said, ["3 (by eve)", "4 (by eve)", "5 (by eve)"], "{}", ran.stdout);
    assert_eq!(ran.code, 1);
    let said: Vec<_> = ran.stderr.lines().collect();
    assert!(said[0].contains("trying again for 300 s"), "{}", ran.stderr);
    assert!(said[1].ends_with(" is back"), "{}", ran.stderr);
    assert_eq!(said[2..], ["error: over"], "{}", ran.stderr);
}

#[test]
fn versions_are_told_of_both_and_of_one_alone_without_asking() {
    let own = env!("CARGO_PKG_VERSION");
    let server =
        Server::answering([answer("GET /healthz", 200, json!({"status": "ok", "version": "9.9"}))]);
    let ran = run(&server, &["version"]);
    assert_eq!(ran.stdout, format!("pvnctl {own}\npvn-scheduler 9.9 at {}\n", server.url()));
    assert!(ran.stderr.contains("different versions"), "{}", ran.stderr);
    let ran = run_with(None, &["version", "--client", "-o", "json"], b"", None);
    assert_eq!(
        ran.stdout.split_whitespace().collect::<String>(),
        format!("{{\"client\":\"{own}\"}}")
    );
    let ran = run_with(None, &["version"], b"", None);
    assert_eq!((ran.code, ran.stdout), (1, format!("pvnctl {own}\n")));
}

#[test]
fn whoami_says_whose_token_it_is() {
    let token = json!({"name": "ci", "role": "approver", "createdAt": "2026-01-01T00:00:00.000Z", "expiresAt": null, "revokedAt": null});
    let server = Server::answering([answer("GET /v1/whoami", 200, token)]);
    let ran = run(&server, &["auth", "whoami"]);
    assert!(ran.stdout.starts_with("ci (approver) at http://127."), "{}", ran.stdout);
    assert!(ran.stdout.contains("valid: until revoked"), "{}", ran.stdout);
    let may = "may: read, dry-run, approve; may change: everything\n";
    assert!(ran.stdout.contains(may), "{}", ran.stdout);
    assert_eq!(run(&server, &["auth", "whoami", "-o", "name"]).stdout, "ci\n");
}

#[test]
fn tokens_are_listed_with_their_roles_and_what_they_may_change() {
    let token = |name: &str, rights: Value| {
        let mut token = json!({"name": name, "createdAt": "2026-01-01T00:00:00.000Z", "expiresAt": null, "revokedAt": null});
        token.as_object_mut().unwrap().extend(rights.as_object().unwrap().clone());
        token
    };
    let tokens = [
        token("ann", json!({"roles": ["deployer", "operator"]})),
        token(
            "ci",
            json!({"role": "deployer", "roles": ["deployer"], "applications": ["shop"], "channels": ["staging"]}),
        ),
        token("old", json!({"role": "viewer"})),
    ];
    let server = Server::answering([page("GET /v1/tokens", &tokens)]);
    let ran = run(&server, &["auth", "token", "list"]);
    for parts in [
        ["NAME", "ROLES", "MAY CHANGE"],
        ["ann", "deployer, operator", "everything"],
        ["ci", "deployer", "channel staging of application shop"],
        ["old", "viewer", "nothing"],
    ] {
        let is_it = |line: &&str| parts.iter().all(|part| line.contains(part));
        assert!(ran.stdout.lines().any(|line| is_it(&line)), "{parts:?}: {}", ran.stdout);
    }
}

#[test]
fn help_has_the_commands_in_groups() {
    let ran = run_with(None, &["--help"], b"", None);
    for part in
        ["\nSee:\n", "\nRelease:\n", "\nBy noun:\n", "  explain        Say why", "\nOptions:\n"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let (groups, _) = ran.stdout.split_once("Options:").unwrap();
    let wide: Vec<_> = groups.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "a terminal has 80 columns: {wide:?}");
}
