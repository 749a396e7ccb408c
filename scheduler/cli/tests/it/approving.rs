//! A yes is for what was seen: what is suggested, shown, asked and sent.

use serde_json::{Value, json};

use crate::server::{Server, json as answer};
use crate::{Ran, run_with};

const ID: &str = "apr-00000000000000000000000000000007";
const PLAN: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
const INSTANCE: &str = "GET /v1/applications/shop/services/web/channels/eu";
const APPROVE: &str = "POST /v1/applications/shop/services/web/channels/eu/approve";
const TYPED: &[&str] = &["services", "approve", "web", "--app", "shop", "--channel", "eu"];

/// A channel that waits for a person, or that one has answered.
fn instance(status: &str, plan: Option<&str>) -> Value {
    let by = json!([{"who": "eve", "when": "2026-01-01T00:00:00.000Z", "decision": "APPROVE", "reason": "looked"}]);
    json!({
        "channel": "eu", "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": "WAITING_MANUAL_APPROVAL", "reason": null,
        "message": "1 to add", "desiredVersion": "web-3", "convergedVersion": null, "since": "2026-01-01T00:00:00.000Z", "nextActionAt": null,
        "lastFetchAt": null, "objects": [], "info": [], "paused": false, "observer": false,
        "approvals": [{
            "id": ID, "kind": "apply", "name": "qa", "description": "Look at the\u{202e} quota first", "status": status, "planDigest": plan, "explanation": plan.map(|_| "+ one bucket\n"),
            "needed": 1, "by": if status == "PENDING" { json!([]) } else { by }, "requestedAt": "2026-01-01T00:00:00.000Z", "expiresAt": null,
        }],
    })
}

fn server(plan: Option<&str>) -> Server {
    Server::answering([
        answer(APPROVE, 200, instance("APPROVED", plan)),
        answer(INSTANCE, 200, instance("PENDING", plan)),
    ])
}

/// The body of the decision that was sent, if one was.
fn sent(server: &Server) -> Option<Value> {
    let seen = server.seen();
    let body = seen.iter().find_map(|request| request.strip_prefix(APPROVE))?;
    Some(serde_json::from_str(body.trim()).unwrap())
}

/// Types `approve` with these words more.
fn approve(server: &Server, more: &[&str], input: &[u8], width: Option<u16>) -> Ran {
    run_with(Some(server), &[TYPED, more].concat(), input, width)
}

fn bound(plan: Option<&str>) -> Option<Value> {
    Some(json!({"approval": ID, "reason": null, "planDigest": plan, "anyPlan": false}))
}

#[test]
fn p2_the_commands_that_services_get_prints_mean_this_approval_and_this_plan() {
    for (plan, flags) in [
        (Some(PLAN), format!("--approval {ID} --plan-digest {PLAN}")),
        (None, format!("--approval {ID}")),
    ] {
        let service = json!({
            "id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-3", "channels": [instance("PENDING", plan)],
        });
        let server =
            Server::answering([answer("GET /v1/applications/shop/services/web", 200, service)]);
        let ran = run_with(Some(&server), &["services", "get", "web", "--app", "shop"], b"", None);
        for what in ["approve", "reject"] {
            let command = format!("pvnctl services {what} shop/web@eu {flags}\n");
            assert!(ran.stdout.contains(&command), "{}", ran.stdout);
            let typed = command.replace("pvnctl", &format!("pvnctl --server {}", server.url()));
            assert!(
                String::from_utf8_lossy(&ran.stdout_bytes).contains(&typed),
                "they would act on another scheduler: {typed}"
            );
        }
    }
}

#[test]
fn services_get_shows_what_the_config_tells_the_people_who_are_asked() {
    let service = json!({
        "id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-3",
        "channels": [instance("PENDING", Some(PLAN))],
    });
    let server =
        Server::answering([answer("GET /v1/applications/shop/services/web", 200, service)]);
    let ran = run_with(Some(&server), &["services", "get", "web", "--app", "shop"], b"", None);
    assert!(
        ran.stdout.contains("0 of 1 said yes\nLook at the quota first\n+ one bucket\n"),
        "{}",
        ran.stdout
    );
    let ran = run_with(
        Some(&server),
        &["services", "get", "web", "--app", "shop", "-o", "json"],
        b"",
        None,
    );
    assert!(ran.stdout.contains("\"description\": \"Look at the"), "{}", ran.stdout);
}

#[test]
fn services_get_says_who_approved_which_plan() {
    let service = json!({
        "id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-3",
        "channels": [instance("APPROVED", Some(PLAN))],
    });
    let server =
        Server::answering([answer("GET /v1/applications/shop/services/web", 200, service)]);
    let ran = run_with(Some(&server), &["services", "get", "web", "--app", "shop"], b"", None);
    assert!(
        ran.stdout.contains(&format!("approval `qa` of plan {PLAN} in eu is APPROVED by eve ")),
        "{}",
        ran.stdout
    );
}

#[test]
fn p2_without_a_terminal_a_yes_names_its_plan_or_says_that_it_takes_any() {
    let refused = server(Some(PLAN));
    let ran = approve(&refused, &[], b"y\n", None);
    assert_eq!((ran.code, sent(&refused)), (1, None), "{}", ran.stderr);
    for part in [
        "no terminal",
        "pvnctl services get shop/web`",
        &format!("--approval {ID} --plan-digest {PLAN}`"),
        "--yes",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let any = server(Some(PLAN));
    assert_eq!((approve(&any, &["--yes"], b"", None).code, sent(&any)), (0, bound(Some(PLAN))));
    let named = server(Some(PLAN));
    let ran = approve(&named, &["--plan-digest", PLAN], b"", None);
    assert_eq!(
        sent(&named),
        Some(json!({"approval": null, "reason": null, "planDigest": PLAN, "anyPlan": false}))
    );
    assert!(
        ran.stderr
            .contains(&format!("approved shop/web in eu: approval `qa` of plan {PLAN}; it is ")),
        "{}",
        ran.stderr
    );
    // Where there is no plan, the id is all that there is to name.
    let planless = server(None);
    assert_eq!(
        (approve(&planless, &["--approval", ID], b"", None).code, sent(&planless)),
        (0, bound(None))
    );
}

#[test]
fn p2_on_a_terminal_the_plan_is_shown_and_the_yes_is_for_it_alone() {
    for (typed, yes) in [
        (&b"y\n"[..], true),
        (b"YES\n", true),
        (b"n\n", false),
        (b"\n", false),
        (b"", false),
        (b"yup\n", false),
    ] {
        let server = server(Some(PLAN));
        let ran = approve(&server, &[], typed, Some(100));
        assert_eq!(
            (ran.code == 0, sent(&server)),
            (yes, bound(Some(PLAN)).filter(|_| yes)),
            "{typed:?}: {}",
            ran.stderr
        );
        let (head, rest) = ran.stderr.split_once(":\n").unwrap();
        let age = head.strip_prefix("shop/web in eu asks for approval `qa` of web-3, since ");
        assert!(age.is_some_and(|age| age.ends_with('d')), "{head}");
        let shown = format!(
            "Look at the quota first\n+ one bucket\nplan {PLAN}, 1 line: 1 with +\nApprove this? \
             [y/N] "
        );
        assert!(rest.starts_with(&shown), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("error: nothing was approved"), !yes, "{}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_shown_is_left_for_the_server_to_refuse() {
    let problem = json!({"type": "/problems/conflict", "title": "Conflict", "status": 409, "detail": "no approval is pending", "problems": []});
    let server = Server::answering([
        answer(APPROVE, 409, problem),
        answer(INSTANCE, 200, instance("APPROVED", None)),
    ]);
    let ran = approve(&server, &[], b"", None);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "error: no approval is pending\n"));
}

/// `eu` and `us` behind one approval of one version, `asia` behind it at another, and `home` behind
/// none. `counts`: whether the answer counts in `us`, too.
fn shared(counts: bool) -> [crate::server::Answer; 5] {
    let channel = |name: &str, version: &str| {
        let mut instance = instance("PENDING", None);
        (instance["channel"], instance["desiredVersion"]) = (json!(name), json!(version));
        (instance["approvals"][0]["kind"], instance["approvals"][0]["name"]) =
            (json!("shared"), json!("go"));
        instance
    };
    let channels = [
        channel("home", "web-3"),
        channel("eu", "web-3"),
        channel("us", "web-3"),
        channel("asia", "web-2"),
    ];
    let service = json!({"id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-3", "channels": channels});
    let behind = |name: &str, preconditions: Value| {
        let id = format!("rch-{}", "0".repeat(32));
        json!({"id": id, "name": name, "group": null, "runtimes": [], "preconditions": preconditions, "labels": {}})
    };
    let gate = json!([{"sharedManualApproval": {"name": "go", "minApprovers": 1}}]);
    let release_channels = [
        behind("home", json!([])),
        behind("eu", gate.clone()),
        behind("us", gate.clone()),
        behind("asia", gate),
    ];
    let application = json!({"id": format!("app-{}", "0".repeat(32)), "name": "shop", "releaseChannels": release_channels, "services": ["web"]});
    let mut answered = channels[1].clone();
    answered["approvals"][0]["by"] = instance("APPROVED", None)["approvals"][0]["by"].clone();
    let mut later = service.clone();
    if counts {
        later["channels"][2]["approvals"][0]["by"] = answered["approvals"][0]["by"].clone();
    }
    [
        answer(APPROVE, 200, answered),
        answer(INSTANCE, 200, channels[1].clone()),
        answer("GET /v1/applications/shop/services/web", 200, service).times(1),
        answer("GET /v1/applications/shop/services/web", 200, later),
        answer("GET /v1/applications/shop", 200, application),
    ]
}

#[test]
fn a_shared_approval_says_which_other_channels_it_lets_go_before_and_after() {
    let server = Server::answering(shared(true));
    let ran = approve(&server, &[], b"y\n", Some(100));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (question, answer) = ran.stderr.split_once("[y/N]").unwrap();
    assert!(question.contains("`go` is shared: a yes also lets `us` go"), "{question}");
    assert!(answer.contains("approved shop/web in eu and us: approval `go`"), "{answer}");
    let server = Server::answering(shared(false));
    let ran = approve(&server, &[], b"y\n", Some(100));
    assert!(
        ran.stderr.contains("approved shop/web in eu: approval `go`"),
        "what counted nowhere else is not told so: {}",
        ran.stderr
    );
}

#[test]
fn an_approval_of_an_earlier_version_is_not_shown_as_if_it_were_of_this_one() {
    let shown = |version: &str| {
        let mut instance = instance("APPROVED", Some(PLAN));
        instance["approvals"][0]["version"] = json!(version);
        let service = json!({
            "id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-3", "channels": [instance],
        });
        let server =
            Server::answering([answer("GET /v1/applications/shop/services/web", 200, service)]);
        run_with(Some(&server), &["services", "get", "web", "--app", "shop"], b"", None).stdout
    };
    let earlier = shown("web-2");
    assert!(
        earlier.contains(&format!(
            "approval `qa` of plan {PLAN} for web-2, not for web-3, in eu is APPROVED by eve "
        )),
        "{earlier}"
    );
    let present = shown("web-3");
    assert!(
        present.contains(&format!("approval `qa` of plan {PLAN} in eu is APPROVED by eve ")),
        "{present}"
    );
}

#[test]
fn a_no_asks_why_on_a_terminal_alone() {
    const REJECT: &str = "POST /v1/applications/shop/services/web/channels/eu/reject";
    let reject = |more: &[&str], input: &[u8], width| {
        let server = Server::answering([answer(REJECT, 200, instance("REJECTED", None))]);
        let ran =
            run_with(Some(&server), &[&["reject", "shop/web@eu"], more].concat(), input, width);
        let seen = server.seen();
        let body = seen.first().and_then(|request| request.strip_prefix(REJECT));
        (
            ran.code,
            body.map(|body| serde_json::from_str::<Value>(body.trim()).unwrap()["reason"].clone()),
        )
    };
    let because = Some(json!("too much"));
    assert_eq!(reject(&[], b" too much \n", Some(80)), (0, because.clone()));
    assert_eq!(reject(&[], b"\n", Some(80)), (0, Some(Value::Null)), "none is given");
    assert_eq!(reject(&[], b"", Some(80)), (1, None), "whoever asked went away");
    assert_eq!(reject(&["--reason", "too much"], b"x\n", Some(80)), (0, because));
    assert_eq!(reject(&[], b"x\n", None), (0, Some(Value::Null)), "there is nobody to ask");
}

#[test]
fn all_of_a_release_are_asked_about_one_after_the_other() {
    let channel = |name: &str, version: &str, status: &str| {
        let mut instance = instance(status, Some(PLAN));
        (instance["channel"], instance["desiredVersion"]) = (json!(name), json!(version));
        instance
    };
    // `old` waits with another release, `done` for nothing.
    let channels = [
        channel("eu", "web-3", "PENDING"),
        channel("us", "web-3", "PENDING"),
        channel("old", "web-2", "PENDING"),
        channel("done", "web-3", "APPROVED"),
    ];
    let web = "/v1/applications/shop/services/web";
    let mut answers = vec![];
    for one in &channels {
        let path = format!("{web}/channels/{}", one["channel"].as_str().unwrap());
        let name = one["channel"].as_str().unwrap();
        answers.push(answer(
            &format!("POST {path}/approve"),
            200,
            channel(name, "web-3", "APPROVED"),
        ));
        answers.push(answer(&format!("GET {path}"), 200, one.clone()));
    }
    answers.push(answer(
        &format!("GET {web}"),
        200,
        json!({"id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-3", "channels": channels}),
    ));
    let approve = |more: &[&str], input: &[u8], width| {
        let server = Server::answering(answers.clone());
        let words = [&["approve", "--all-of-release"], more].concat();
        let ran = run_with(Some(&server), &words, input, width);
        let seen = server.seen();
        let sent = seen.iter().filter_map(|request| request.strip_prefix("POST "));
        let sent: Vec<_> =
            sent.map(|request| request.split('/').nth(7).unwrap().to_owned()).collect();
        (ran.code, sent, ran.stderr)
    };
    let both = vec!["eu".to_owned(), "us".to_owned()];
    let (code, sent, said) = approve(&["shop/web"], b"y\ny\n", Some(80));
    assert_eq!((code, sent), (0, both.clone()), "{said}");
    let (code, sent, said) = approve(&["shop/web"], b"n\ny\n", Some(80));
    assert_eq!((code, sent), (1, vec!["us".to_owned()]), "{said}");
    assert!(said.contains("nothing was approved in eu"), "{said}");
    let (code, sent, said) = approve(&["shop/web", "--yes"], b"", None);
    assert_eq!((code, sent), (0, both), "{said}");
    let (code, sent, said) = approve(&["shop/web"], b"", None);
    assert_eq!((code, sent.len()), (1, 0), "{said}");
    let (code, sent, said) = approve(&["shop/web@eu", "--yes"], b"", None);
    assert_eq!((code, sent.len()), (1, 0), "{said}");
}
