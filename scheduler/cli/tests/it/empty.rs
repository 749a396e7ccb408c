//! Lists in which nothing is: why, and ids of which there are several.

use serde_json::{Value, json};

use crate::server::{Server, json as answer};
use crate::{run, run_with};

fn page(items: &[Value], total: u64) -> Value {
    json!({"items": items, "nextCursor": null, "total": total})
}

#[test]
fn a_list_that_filters_leave_empty_says_which_and_how_many_there_are_without() {
    let said = |all: Option<u64>| {
        let filtered = "GET /v1/jobs?application=shop&status=FAILED&limit=200";
        let mut answers = vec![answer(filtered, 200, page(&[], 0))];
        answers.extend(all.map(|all| answer("GET /v1/jobs?limit=1", 200, page(&[], all))));
        let server = Server::answering(answers);
        let ran = run(&server, &["jobs", "list", "--app", "shop", "--status", "failed"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
        ran.stderr
    };
    let narrowed = "no jobs with application shop, status FAILED";
    assert_eq!(said(Some(12)), format!("{narrowed}; without that there are 12\n"));
    assert_eq!(said(Some(1)), format!("{narrowed}; without that there is 1\n"));
    assert_eq!(said(Some(0)), format!("{narrowed}, nor without that\n"));
    assert_eq!(said(Some(10_000)), format!("{narrowed}; without that there are 10000 at least\n"));
    assert_eq!(said(None), format!("{narrowed}\n"), "a number that cannot be had");
}

#[test]
fn a_list_without_filters_says_what_to_do_and_programs_get_an_empty_one() {
    let server = Server::answering([
        answer("GET /v1/services?limit=200", 200, page(&[], 0)),
        answer("GET /readyz", 200, json!({})),
    ]);
    let ran = run(&server, &["services", "list"]);
    assert_eq!(ran.stderr, "no services; make some with `pvnctl configs apply PATH`\n");
    let server = Server::answering([
        answer("GET /v1/jobs?limit=200&status=FAILED", 200, page(&[], 0)),
        answer("GET /v1/jobs?status=FAILED&limit=200", 200, page(&[], 0)),
    ]);
    let ran = run(&server, &["jobs", "list", "--status", "FAILED", "-o", "json"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("[]\n", ""));
    assert_eq!(server.seen().len(), 1, "a program asks for no reason");
}

#[test]
fn the_beginning_of_several_notifications_names_them() {
    let of = |digit: &str| {
        json!({
            "id": format!("ntf-44{}", digit.repeat(30)), "kind": "FAILED", "status": "DEAD",
            "application": "shop", "service": null, "channel": null, "target": "chat", "text": "",
            "why": "", "attempts": 3, "error": null, "digest": null,
            "createdAt": "2026-01-01T00:00:00.000Z", "nextAttemptAt": null, "endedAt": null
        })
    };
    let two = page(&[of("1"), of("2")], 2);
    let server = Server::answering([answer("GET /v1/notifications?limit=200", 200, two)]);
    let ran = run_with(Some(&server), &["notifications", "resend", "ntf-44"], b"", None);
    assert_eq!(ran.code, 1);
    for digit in ["1", "2"] {
        let id = format!("`ntf-44{}`", digit.repeat(30));
        assert!(ran.stderr.contains(&id), "{}", ran.stderr);
    }
}

#[test]
fn the_overview_of_an_application_without_services_says_that_others_have_some() {
    let overview = json!({
        "at": "2026-01-01T00:00:00.000Z", "counts": {}, "instances": [], "more": 0
    });
    let server = Server::answering([
        answer("GET /v1/status?limit=50&application=shop", 200, overview),
        answer("GET /v1/services?limit=1", 200, page(&[], 7)),
        answer("GET /readyz", 200, json!({})),
    ]);
    let ran = run(&server, &["status", "--app", "shop"]);
    let said = "no services with application shop; without that there are 7\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (0, said));
}
