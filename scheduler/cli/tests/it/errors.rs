//! Errors: one line, what to do next, exit code 1.

use serde_json::json;

use crate::server::{Server, bytes, json as answer};
use crate::{Ran, run, run_with};

fn check(ran: &Ran, expected: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert_eq!(ran.stderr.trim_end(), expected);
}

#[test]
fn a_server_that_is_not_there() {
    check(
        &run_with(None, &["services", "list"], b"", None),
        "error: cannot reach http://127.0.0.1:1: connection refused\n  help: start it with \
         `pvn-scheduler serve`, or say where it listens with --server or PVN_SERVER",
    );
}

#[test]
fn what_the_server_says_is_what_people_read() {
    let problem = json!({"type": "/problems/not-found", "title": "Not Found", "status": 404, "detail": "there is no service `x` in application `a`"});
    let server = Server::answering([answer("GET /v1/applications/a/services/x", 404, problem)]);
    check(
        &run(&server, &["services", "get", "x", "--app", "a"]),
        "error: there is no service `x` in application `a`",
    );
}

#[test]
fn a_missing_token_says_where_tokens_come_from() {
    let problem = json!({"type": "/problems/unauthorized", "title": "Unauthorized", "status": 401, "detail": "this needs a token"});
    let server = Server::answering([answer("GET /v1/services", 401, problem)]);
    check(
        &run(&server, &["services", "list"]),
        "error: this needs a token\n  help: log in with `pvnctl login URL`, or give a token \
         with --token-file FILE or PVN_AUTH_TOKEN; beside the scheduler, PVN_DATA_DIR names the \
         directory that holds `admin-token`",
    );
}

#[test]
fn a_token_that_is_refused_is_named_with_the_server_and_where_it_came_from() {
    let detail = "the token is not one of this scheduler's";
    let problem = json!({"type": "/problems/unauthorized", "title": "Unauthorized", "status": 401, "detail": detail});
    let server = Server::answering([answer("GET /v1/services", 401, problem)]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "wrong").unwrap();
    let path = file.path().to_str().unwrap();
    check(
        &run(&server, &["services", "list", "--token-file", path]),
        &format!(
            "error: {} refuses the token from {path}: {detail}\n  help: another scheduler may \
             listen there: say where the one of this token does with --server or PVN_SERVER; or \
             give another token with --token-file FILE or PVN_AUTH_TOKEN",
            server.url()
        ),
    );
}

#[test]
fn config_problems_are_shown_with_their_lines() {
    let snippet = "error: unknown field `nmae`\n --> a.pvn.yaml:2:3\n  |\n2 |   nmae: x\n  |   \
                   ^^^^\nhelp: did you mean `name`?";
    let problem = json!({
        "type": "/problems/config", "title": "Unprocessable Entity", "status": 422, "detail": "1 problem in what was sent",
        "problems": [
            {"file": "a.pvn.yaml", "line": 2, "column": 3, "path": "runtime.nmae", "message": "unknown field `nmae`", "help": null, "snippet": snippet},
            {"file": "b.pvn.yaml", "line": 0, "column": 0, "path": "", "message": "not UTF-8", "help": "save it as UTF-8", "snippet": ""},
        ],
    });
    let server =
        Server::answering([answer("POST /v1/applications/a/services/x/push", 422, problem)]);
    let ran = run(&server, &["services", "push", "x", "--app", "a"]);
    check(
        &ran,
        &format!(
            "{snippet}\n\nerror: not UTF-8\n --> b.pvn.yaml\n  help: save it as UTF-8\n\nerror: 1 \
             problem in what was sent"
        ),
    );
}

#[test]
fn a_change_whose_answer_is_lost_is_told_as_unknown_and_a_question_as_not_reached() {
    let request = |status, body| {
        Server::answering([answer("POST /v1/applications/a/services/x/push", status, body)])
    };
    let push = ["services", "push", "x", "--app", "a", "--wait"];
    let unknown = |server: &Server, why: &str| {
        format!(
            "error: {} did not answer: {why}; the request was sent, and nobody knows whether it \
             was carried out\n  help: look whether it was before you repeat it: `pvnctl releases \
             list`, `pvnctl services list` and `pvnctl jobs list` show what is there",
            server.url()
        )
    };
    let hangs_up = request(0, json!(null));
    check(
        &run(&hangs_up, &push),
        &unknown(&hangs_up, "connection closed before message completed"),
    );
    for (status, said) in [
        (504, "answered with 504 Gateway Timeout, not in a scheduler's words"),
        (503, "answered with 503 Service Unavailable, not in a scheduler's words"),
        (404, "answered with 404 Not Found, not in a scheduler's words"),
        (401, "answered with 401 Unauthorized, not in a scheduler's words"),
        (302, "answered with 302 Found, not in a scheduler's words"),
        (200, "does not answer as a scheduler does: missing field `release` at line 1 column 32"),
    ] {
        let proxy = request(status, json!({"message": "upstream timed out"}));
        check(
            &run(&proxy, &push),
            &unknown(&proxy, &format!("something else under that address {said}")),
        );
    }
    let looked = Server::answering([answer("POST /v1/runtimes/vm/check", 0, json!(null))]);
    let ran = run(&looked, &["runtimes", "check", "vm"]);
    assert!(ran.code == 1 && ran.stderr.contains("cannot reach"), "{}", ran.stderr);
    let nobody = run_with(None, &push, b"", None);
    assert!(
        nobody.code == 1
            && nobody.stderr.contains("cannot reach http://127.0.0.1:1: connection refused"),
        "{}",
        nobody.stderr
    );
}

#[test]
fn something_else_behind_the_address_is_said() {
    let server = Server::answering([bytes("GET /v1/services", "text/html", b"<html>hello</html>")]);
    let ran = run(&server, &["services", "list"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("does not answer as a scheduler does"), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: check the address"), "{}", ran.stderr);
}

#[test]
fn the_page_of_somebody_else_is_no_output_of_a_job_and_no_proof_that_something_is_gone() {
    let job = format!("job-{}", "0".repeat(32));
    let page =
        |request: &str| bytes(request, "text/html; charset=utf-8", b"<html>please log in</html>");
    let server = Server::answering([
        page(&format!("GET /v1/jobs/{job}/logs")),
        page(&format!("GET /v1/jobs/{job}/files/plan-explanation")),
        page("DELETE /v1/tokens/ann"),
        page("DELETE /v1/secrets/key"),
    ]);
    let says = "answered with 200 OK, not in a scheduler's words";
    let looks: [&[&str]; 3] = [
        &["jobs", "logs", &job],
        &["jobs", "logs", "-f", &job],
        &["jobs", "files", &job, "plan-explanation"],
    ];
    for look in looks {
        let expected = format!(
            "error: {} {says}\n  help: check the address, and that client and scheduler have the \
             same version (`pvnctl --version`)",
            server.url()
        );
        check(&run(&server, look), &expected);
    }
    let changes: [&[&str]; 2] =
        [&["auth", "token", "revoke", "ann"], &["secrets", "delete", "key"]];
    for change in changes {
        let ran = run(&server, change);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
        assert!(
            ran.stderr.contains(says)
                && ran.stderr.contains("nobody knows whether it was carried out"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn the_problem_of_a_gateway_is_not_the_schedulers_word() {
    let timeout = json!({"type": "about:blank", "title": "Gateway Timeout", "status": 504, "detail": "The upstream server is timing out"});
    let server = Server::answering([
        answer("POST /v1/applications/a/services/x/push", 504, timeout.clone()),
        answer("GET /v1/services", 504, timeout),
    ]);
    let says = "answered with 504 Gateway Timeout, not in a scheduler's words";
    let pushed = run(&server, &["services", "push", "x", "--app", "a"]);
    assert_eq!(pushed.code, 1);
    assert!(
        pushed.stderr.contains(says)
            && pushed.stderr.contains("nobody knows whether it was carried out"),
        "{}",
        pushed.stderr
    );
    let looked = run(&server, &["services", "list"]);
    assert!(looked.code == 1 && looked.stderr.contains(says), "{}", looked.stderr);
}
