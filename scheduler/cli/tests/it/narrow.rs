//! Every list on a terminal of 40 and of 80 columns: it fits, and no id, name or status is broken.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::run_with;
use crate::server::{Server, json as answer};

const THEN: &str = "2026-01-01T00:00:00.000Z";

/// A list: what is typed, what is asked for it, one entry, and the words that must be whole.
#[derive(Clone)]
struct ListCommand {
    typed: &'static [&'static str],
    asked: &'static str,
    entry: Value,
    whole: &'static [&'static str],
}

fn id(kind: &str) -> String {
    format!("{kind}-{}", "5".repeat(32))
}

/// What is about a channel, with the longest words that are usual.
fn of_channel(more: Value) -> Value {
    let mut of = json!({
        "application": "storefront", "service": "orders-db", "channel": "production"
    });
    of.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    of
}

fn list(
    typed: &'static [&'static str],
    asked: &'static str,
    entry: Value,
    whole: &'static [&'static str],
) -> ListCommand {
    ListCommand { typed, asked, entry, whole }
}

fn channels() -> Value {
    json!([
        {"channel": "staging", "status": "CONVERGED", "version": "orders-db-112"},
        {"channel": "production", "status": "WAITING_MANUAL_APPROVAL"}
    ])
}

/// What is released, and runs.
fn of_services() -> Vec<ListCommand> {
    let release = json!({
        "release": id("rel"), "version": "orders-db-112", "application": "storefront",
        "service": "orders-db", "status": "WAITING_MANUAL_APPROVAL", "createdAt": THEN,
        "by": "continuous-integration", "channels": channels(), "params": {"image": "v112"}
    });
    let job = of_channel(json!({
        "id": id("job"), "kind": "getInfo", "runtime": "my-kubernetes",
        "version": "orders-db-112", "attempt": 12, "status": "SUCCEEDED", "exitCode": 127,
        "message": "", "createdAt": THEN, "startedAt": THEN, "endedAt": THEN
    }));
    let service = json!({
        "id": id("svc"), "name": "orders-db", "application": "storefront",
        "version": "orders-db-112", "channels": channels()
    });
    let names = &["orders-db", "CONVERGED", "WAITING_MANUAL_APPROVAL"];
    let versions = &["orders-db-112", "WAITING_MANUAL_APPROVAL"];
    let history = "releases?application=storefront&service=orders-db&limit=20";
    vec![
        list(&["jobs", "list"], "jobs?limit=200", job, &["job-55555555", "SUCCEEDED"]),
        list(&["services", "list"], "services?limit=200", service, names),
        list(&["releases", "list"], "releases?limit=200", release.clone(), versions),
        list(&["history", "storefront/orders-db"], history, release, versions),
    ]
}

/// What is in configs.
fn of_configs() -> Vec<ListCommand> {
    let config = |kind: &str, application: Option<&str>| {
        json!({
            "kind": kind, "name": "orders-db", "application": application, "version": 112,
            "createdAt": THEN, "createdBy": "continuous-integration"
        })
    };
    let application = json!({
        "id": id("app"), "name": "storefront", "services": 12,
        "releaseChannels": ["staging", "canary", "production-eu", "production-us"]
    });
    let runtime = json!({
        "id": id("rtm"), "name": "my-custom-runtime", "kind": "googleCloudRun",
        "labels": {"env": "production", "region": "europe-west3"},
        "proxyRuntime": "my-kubernetes", "maxConcurrency": 10, "instances": 1234
    });
    let (typed, asked) = (&["configs", "list"], "configs?limit=200");
    let of_service = config("service", Some("storefront"));
    let names = &["storefront", "production-eu"];
    vec![
        list(typed, asked, config("application", None), &["application", "orders-db"]),
        list(typed, asked, of_service, &["service", "storefront/orders-db"]),
        list(&["applications", "list"], "applications?limit=200", application, names),
        list(&["runtimes", "list"], "runtimes?limit=200", runtime, &["my-custom-runtime"]),
    ]
}

/// What people have, are told, and do.
fn of_people() -> Vec<ListCommand> {
    let notification = of_channel(json!({
        "id": id("ntf"), "kind": "APPROVAL_ASKED", "status": "DIGESTED", "target": "pager",
        "text": "storefront/orders-db@production asks for a yes", "why": "", "attempts": 3,
        "error": "it answered 503 Service Unavailable", "digest": null, "createdAt": THEN,
        "nextAttemptAt": null, "endedAt": null
    }));
    let event = of_channel(json!({
        "seq": 123_456, "at": THEN, "kind": "drift.acknowledgement_ended", "actor": "ann",
        "origin": "127.0.0.1:4711", "message": "the drift counts as drift again", "data": null
    }));
    let secret = json!({
        "key": "storefront/orders-db/database-password", "versions": [1, 2, 3], "createdAt": THEN
    });
    let token = json!({
        "name": "continuous-integration", "roles": ["deployer", "break-glass"],
        "applications": ["storefront"], "channels": ["staging"], "createdAt": THEN,
        "expiresAt": THEN, "revokedAt": null
    });
    let key = &["storefront/orders-db/database-password"];
    let ids = &["ntf-55555555", "DIGESTED"];
    let name = &["continuous-integration"];
    let said = &["storefront/orders-db@production", "again"];
    vec![
        list(&["secrets", "list"], "secrets?limit=200", secret, key),
        list(&["auth", "token", "list"], "tokens?limit=200", token, name),
        list(&["notifications", "list"], "notifications?limit=50", notification, ids),
        list(&["events"], "events?limit=50", event, said),
    ]
}

#[test]
fn lists_fit_the_terminal_and_break_no_id_or_status() {
    let mut problems = Vec::new();
    for ListCommand { typed, asked, entry, whole } in
        [of_services(), of_configs(), of_people()].concat()
    {
        let page = json!({"items": [entry], "nextCursor": null, "total": 1});
        let server = Server::answering([
            answer(&format!("GET /v1/{asked}"), 200, page),
            answer("GET /readyz", 200, json!({})),
        ]);
        for width in [40, 80] {
            let ran = run_with(Some(&server), typed, b"", Some(width));
            let typed = typed.join(" ");
            assert_eq!(ran.code, 0, "{typed}: {}", ran.stderr);
            let is_wide = |line: &&str| line.width() > usize::from(width);
            if ran.stdout.lines().any(|line| is_wide(&line)) {
                problems.push(format!("`{typed}` is wider than {width}:\n{}", ran.stdout));
            }
            for word in whole.iter().filter(|word| !ran.stdout.contains(**word)) {
                problems.push(format!("`{typed}` lost `{word}` at {width}:\n{}", ran.stdout));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_overview_fits_the_terminal() {
    let instance = |status: &str, message: &str| {
        of_channel(json!({
            "status": status, "reason": "RUNTIME_OBJECT_APPLY_NEEDED", "message": message,
            "desiredVersion": "orders-db-112", "since": THEN, "nextActionAt": null,
            "approvals": [], "job": null
        }))
    };
    let overview = json!({
        "at": THEN, "more": 3,
        "counts": {
            "WAITING_MANUAL_APPROVAL": 1, "FAILED": 12, "CONVERGING": 3, "CONVERGED": 1234,
            "WAITING_PRECONDITIONS": 12
        },
        "instances": [
            instance("FAILED", "the apply ended with 1: connection refused by db.example.com"),
            instance("WAITING_PRECONDITIONS", "waits until `staging` is converged"),
            instance("CONVERGED", "")
        ]
    });
    let server = Server::answering([
        answer("GET /v1/status?limit=50", 200, overview),
        answer("GET /readyz", 200, json!({})),
    ]);
    for width in [40, 80] {
        let ran = run_with(Some(&server), &["status"], b"", Some(width));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        // A command is for copying, and takes one line.
        let is_wide =
            |line: &&str| line.width() > usize::from(width) && !line.contains("    pvnctl ");
        let wide: Vec<_> = ran.stdout.lines().filter(is_wide).collect();
        assert!(wide.is_empty(), "{width}: {wide:#?}\n{}", ran.stdout);
        for word in ["storefront/orders-db@production", "WAITING_PRECONDITIONS", "FAILED"] {
            assert!(ran.stdout.contains(word), "{width}: {word}\n{}", ran.stdout);
        }
    }
}
