//! Tables, JSON, YAML and bytes.

use serde_json::{Value, json};

use crate::server::{Server, bytes, json as answer};
use crate::{run, run_with};

mod logs;

fn job(number: u8) -> Value {
    json!({
        "id": format!("job-{number:032x}"), "kind": "fetch", "application": "shop", "service": "web", "channel": "eu", "runtime": "vm",
        "version": "web-1", "attempt": 1, "status": "SUCCEEDED", "exitCode": 2, "message": "", "createdAt": "2026-01-01T00:00:00.000Z",
        "startedAt": "2026-01-01T00:00:00.000Z", "endedAt": "2026-01-01T00:00:01.500Z",
    })
}

#[test]
fn lists_are_a_bare_array_joined_from_their_pages() {
    let page = |number, next: Option<&str>| {
        let query = if number == 1 { "" } else { "&cursor=c1" };
        answer(
            &format!("GET /v1/jobs?application=shop&limit=200{query}"),
            200,
            json!({"items": [job(number)], "nextCursor": next, "total": 2}),
        )
    };
    let server = Server::answering([page(1, Some("c1")), page(2, None)]);
    let ran = run(&server, &["jobs", "list", "--app", "shop", "-o", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(printed, json!([job(1), job(2)]));
}

#[test]
fn a_limit_asks_for_no_more_than_it_prints() {
    let server = Server::answering([answer(
        "GET /v1/jobs?limit=1",
        200,
        json!({"items": [job(1)], "nextCursor": "c", "total": 9}),
    )]);
    let ran = run(&server, &["jobs", "list", "--limit", "1", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap().as_array().unwrap().len(), 1);
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_file_of_a_job_is_written_byte_for_byte_and_its_files_are_listed() {
    let file = |offset: usize, body: &[u8]| {
        bytes(
            &format!("GET /v1/jobs/job-1/files/plan-explanation?offset={offset}&limit=1048576"),
            "application/octet-stream",
            body,
        )
    };
    let mut one = job(1);
    one["report"] = json!({
        "exitCode": 2, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0",
        "files": [{"name": "plan-explanation", "contentBlobId": format!("sha256:{}", "1".repeat(64))}, {"name": "plan", "error": "it is not there"}],
    });
    let server = Server::answering([
        file(0, b"\xff\x1b[1m+ a\n"),
        file(9, b"DESTROY"),
        file(16, b""),
        answer("GET /v1/jobs/job-1", 200, one),
    ]);
    let ran = run(&server, &["jobs", "files", "job-1", "plan-explanation"]);
    assert_eq!(
        (ran.code, ran.stdout_bytes.as_slice()),
        (0, &b"\xff\x1b[1m+ a\nDESTROY"[..]),
        "{}",
        ran.stderr
    );
    let ran = run(&server, &["jobs", "files", "job-1"]);
    let lines: Vec<_> = ran
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "FILE CONTENT ERROR",
            &format!("plan-explanation sha256:{}", "1".repeat(64)),
            "plan it is not there"
        ],
        "{}",
        ran.stderr
    );
    let ran = run(&server, &["jobs", "files", "job-1", "-o", "json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).unwrap()[1],
        json!({"name": "plan", "error": "it is not there"})
    );
}

#[test]
fn why_the_output_of_a_job_is_not_whole_is_told_as_far_as_it_is_known() {
    let told = |report: Value| {
        let mut one = job(1);
        let blob = format!("sha256:{}", "1".repeat(64));
        one["report"] = json!({
            "exitCode": 2, "stdoutBytes": 9, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0",
            "stdoutBlobId": blob, "outputIncomplete": true,
        });
        one["report"].as_object_mut().unwrap().extend(report.as_object().unwrap().clone());
        let ran = run(
            &Server::answering([answer("GET /v1/jobs/job-1", 200, one)]),
            &["jobs", "get", "job-1"],
        );
        ["held its output open", "not what it printed", "no wrapper counted"]
            .map(|words| ran.stdout.contains(words))
    };
    assert_eq!(told(json!({"leaked": [{"pid": 7, "argv": ["sleep"]}]})), [true, false, false]);
    assert_eq!(told(json!({})), [false, true, false], "it was not delivered to its end");
    assert_eq!(told(json!({"stdoutBytes": 0})), [false, false, true], "it is its container's log");
    assert_eq!(told(json!({"outputIncomplete": false})), [false; 3]);
}

#[test]
fn an_empty_list_is_an_empty_array_and_a_word_to_people() {
    let server = Server::answering([answer("GET /v1/jobs", 200, json!({"items": [], "total": 0}))]);
    assert_eq!(run(&server, &["jobs", "list", "-o", "json"]).stdout, "[]\n");
    let ran = run(&server, &["jobs", "list"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "no jobs\n"));
}

#[test]
fn yaml_keeps_strings_that_look_like_something_else() {
    let service = json!({
        "id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "1.10",
        "channels": [{"channel": "eu", "status": "CONVERGED"}],
    });
    let server = Server::answering([answer(
        "GET /v1/services",
        200,
        json!({"items": [service], "total": 1}),
    )]);
    let ran = run(&server, &["services", "list", "-o", "yaml"]);
    insta::assert_snapshot!(ran.stdout, @r#"
    - id: svc-00000000000000000000000000000000
      name: web
      application: shop
      version: "1.10"
      channels:
      - channel: eu
        status: CONVERGED
    "#);
}

#[test]
fn a_list_of_services_names_the_version_of_a_channel_that_is_at_another_one() {
    let channel = |name: &str, status: &str, version: Value| json!({"channel": name, "status": status, "version": version});
    let service = |name: &str, channels: Value| json!({"id": format!("svc-{}", "0".repeat(32)), "name": name, "application": "shop", "version": "web-2", "channels": channels});
    let mixed = json!([
        channel("dev", "CONVERGED", json!("web-7")),
        channel("eu", "CONVERGED", json!("web-2")),
        channel("us", "CONVERGING", Value::Null),
        // As a server of before tells it.
        {"channel": "ap", "status": "FAILED"},
    ]);
    let server = Server::answering([answer(
        "GET /v1/services",
        200,
        json!({"items": [service("web", mixed)], "total": 1}),
    )]);
    let ran = run(&server, &["services", "list"]);
    let line = ran.stdout.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        line, "shop web web-2 dev CONVERGED web-7, eu CONVERGED, us CONVERGING, ap FAILED",
        "{}",
        ran.stderr
    );
    let listed: Value =
        serde_json::from_str(&run(&server, &["services", "list", "-o", "json"]).stdout).unwrap();
    let told: Vec<_> = listed[0]["channels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|channel| &channel["version"])
        .collect();
    assert_eq!(told, [&json!("web-7"), &json!("web-2"), &Value::Null, &Value::Null]);
}

#[test]
fn an_explanation_reads_from_what_is_to_what_would_end_it() {
    let explanation = json!({
        "status": "WAITING_MANUAL_APPROVAL", "reason": null, "message": "waits for people",
        "causes": [{"code": "APPROVAL_PENDING", "message": "1 of 2 said yes", "since": null, "until": null}],
        "next": [],
    });
    let server = Server::answering([answer(
        "GET /v1/applications/shop/services/web/channels/eu/explain",
        200,
        explanation,
    )]);
    let ran = run(&server, &["services", "explain", "web", "--app", "shop", "--channel", "eu"]);
    insta::assert_snapshot!(ran.stdout, @r"
    shop/web in eu is WAITING_MANUAL_APPROVAL
    waits for people

    BECAUSE
    APPROVAL_PENDING  1 of 2 said yes

    nothing happens next by itself
    ");
}

#[test]
fn what_a_job_says_cannot_steer_the_terminal() {
    let mut job = job(1);
    job["version"] = json!("\u{1b}[2Jweb\r\nx");
    let server =
        Server::answering([answer("GET /v1/jobs", 200, json!({"items": [job], "total": 1}))]);
    let ran = run_with(Some(&server), &["jobs", "list"], b"", Some(200));
    assert!(!ran.stdout.contains('\u{1b}') && ran.stdout.lines().count() == 2, "{}", ran.stdout);
}

#[test]
fn what_was_done_is_said_to_people_and_answered_to_programs() {
    let instance = json!({
        "channel": "eu", "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": "PAUSED", "reason": null, "message": "paused",
        "desiredVersion": "web-1", "convergedVersion": null, "since": "2026-01-01T00:00:00.000Z", "nextActionAt": null, "lastFetchAt": null,
        "objects": [], "info": [], "approvals": [], "paused": true, "observer": false, "outdated": false,
    });
    let of_channel = ["web", "--app", "shop", "--channel", "eu"];
    for what in ["reject", "pause", "resume", "retry"] {
        let path = format!("POST /v1/applications/shop/services/web/channels/eu/{what}");
        check_done(&path, &instance, &[&["services", what], &of_channel[..]].concat());
    }
    let id = job(1)["id"].as_str().unwrap().to_owned();
    check_done(&format!("POST /v1/jobs/{id}/cancel"), &job(1), &["jobs", "cancel", &id]);
}

fn check_done(request: &str, body: &Value, arguments: &[&str]) {
    let server = Server::answering([answer(request, 200, body.clone())]);
    let ran = run(&server, arguments);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.lines().count()),
        (0, "", 1),
        "{request}"
    );
    let ran = run(&server, &[arguments, &["-o", "json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), *body, "{request}");
    assert_eq!((ran.code, ran.stderr.lines().count()), (0, 1), "{request}");
}

/// Each list of `pvnctl`: its words, and what it asks for.
const LISTS: &[(&[&str], &str)] = &[
    (&["jobs", "list"], "GET /v1/jobs"),
    (&["services", "list"], "GET /v1/services"),
    (&["releases", "list"], "GET /v1/releases"),
    (&["runtimes", "list"], "GET /v1/runtimes"),
    (&["applications", "list"], "GET /v1/applications"),
    (&["secrets", "list"], "GET /v1/secrets"),
    (&["auth", "token", "list"], "GET /v1/tokens"),
];

#[test]
fn every_list_says_which_rows_of_the_database_cannot_be_read_and_what_to_do() {
    let row = "table things, row id = \"7\": column kind holds \"dance\": no such kind";
    for (words, request) in LISTS {
        let server = Server::answering([answer(
            request,
            200,
            json!({"items": [], "total": 2, "unreadable": [row]}),
        )]);
        for format in ["table", "json", "yaml"] {
            let ran = run(&server, &[words, &["-o", format][..]].concat());
            let stdout = if format == "table" { "" } else { "[]\n" };
            assert_eq!((ran.code, ran.stdout.as_str()), (0, stdout), "{words:?} {format}");
            let said = [
                "1 row of the database cannot be read",
                row,
                "help: stop pvn-scheduler",
                "sqlite3",
            ];
            assert!(
                said.iter().all(|said| ran.stderr.contains(said)),
                "{words:?} {format}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn rows_that_cannot_be_read_are_said_after_the_table_over_all_pages_and_not_without_end() {
    let rows = |from: usize| -> Vec<String> {
        (from..from + 12).map(|row| format!("table jobs, row id = \"{row}\": \u{1b}[2J")).collect()
    };
    let page = |from, more: &str, next: Option<&str>| {
        let body =
            json!({"items": [job(1)], "nextCursor": next, "total": 26, "unreadable": rows(from)});
        answer(&format!("GET /v1/jobs?limit=200{more}"), 200, body)
    };
    let server = Server::answering([page(100, "", Some("c1")), page(200, "&cursor=c1", None)]);
    let ran = run(&server, &["jobs", "list"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 3), "{}", ran.stdout);
    assert!(
        ran.stderr.starts_with("warning: 24 rows of the database cannot be read"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("row id = \"100\"") && ran.stderr.contains("\n  and 4 more\n"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
}

#[test]
fn a_dry_run_that_could_not_start_says_why() {
    let mut job = job(1);
    (job["status"], job["exitCode"], job["message"]) =
        (json!("FAILED"), Value::Null, json!("the directory /mnt cannot be entered"));
    let id = job["id"].as_str().unwrap().to_owned();
    let end = json!({"status": "FAILED", "exitCode": null});
    let logs = format!("GET /v1/jobs/{id}/logs?stdoutOffset=0&stderrOffset=0");
    let server = Server::answering([
        answer("POST /v1/applications/shop/services/web/channels/eu/run", 200, json!({"job": id})),
        bytes(&logs, "text/event-stream", format!("event: end\ndata: {end}\n\n").as_bytes()),
        answer(&format!("GET /v1/jobs/{id}"), 200, job),
    ]);
    let ran = run(&server, &["run", "web", "--app", "shop", "--channel", "eu"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains(
            "error: fetch of shop/web in eu FAILED: the directory /mnt cannot be entered\n"
        ),
        "{}",
        ran.stderr
    );
}
