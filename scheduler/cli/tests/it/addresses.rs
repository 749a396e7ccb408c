//! Services, jobs and releases as people say them, and what is asked for what they leave out.

use serde_json::{Value, json};

use crate::server::{Answer, Server, json as answer};
use crate::{Ran, run};

const WEB: &str = "GET /v1/applications/shop/services/web";

/// The services of this name.
fn named(name: &str, applications: &[&str]) -> Answer {
    let one = |application: &&str| {
        json!({
            "id": format!("svc-{}", "0".repeat(32)), "name": name, "application": application, "version": "web-3", "channels": [],
        })
    };
    let items: Vec<_> = applications.iter().map(one).collect();
    answer(
        &format!("GET /v1/services?named={name}&limit=6"),
        200,
        json!({"items": items, "total": items.len()}),
    )
}

fn instance(channel: &str) -> Value {
    json!({
        "channel": channel, "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": "CONVERGED", "reason": null,
        "message": "as desired", "desiredVersion": "web-3", "convergedVersion": null, "since": "2026-01-01T00:00:00.000Z", "nextActionAt": null,
        "lastFetchAt": null, "objects": [], "info": [], "paused": false, "observer": false, "approvals": [],
    })
}

fn service(channels: &[&str]) -> Answer {
    let channels: Vec<_> = channels.iter().map(|channel| instance(channel)).collect();
    answer(
        WEB,
        200,
        json!({"id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": "web-3", "channels": channels}),
    )
}

/// An answer to `explain` of the service in this channel.
fn explained(channel: &str) -> Answer {
    answer(
        &format!("{WEB}/channels/{channel}/explain"),
        200,
        json!({"status": "CONVERGED", "reason": null, "message": "", "causes": [], "next": []}),
    )
}

fn explain(server: &Server, words: &[&str]) -> Ran {
    run(server, &[&["services", "explain"], words].concat())
}

#[test]
fn an_instance_is_said_in_one_word_or_by_flags() {
    for words in [
        &["shop/web@eu"][..],
        &["web@eu", "--app", "shop"],
        &["shop/web", "--channel", "eu"],
        &["web", "--app", "shop", "--channel", "eu"],
        &["shop/web@eu", "--app", "shop", "--channel", "eu"],
    ] {
        let server = Server::answering([explained("eu")]);
        let ran = explain(&server, words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        assert_eq!(server.seen()[0], format!("{WEB}/channels/eu/explain"), "nothing is asked for");
    }
}

#[test]
fn a_service_that_is_nowhere_is_told_with_the_nearest_name() {
    let all = json!({"id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": null, "channels": []});
    let all = json!({"items": [all], "total": 1});
    let names = answer("GET /v1/services?limit=200", 200, all);
    let server = Server::answering([named("wbe", &[]), names]);
    let ran = explain(&server, &["wbe"]);
    let said = "error: there is no service `wbe` in any application\n  help: did you mean `web`? \
                `pvnctl services list` shows those there are\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (1, said), "{:?}", server.seen());
}

#[test]
fn the_first_digits_of_an_id_are_one_where_no_service_is_called_so() {
    let job = "GET /v1/jobs/job-44b5";
    let problem = json!({"type": "/problems/not-found", "title": "Not found", "status": 404, "detail": "no such job", "problems": []});
    let server = Server::answering([
        answer("GET /v1/services?named=44b5&limit=1", 200, json!({"items": [], "total": 0})),
        answer(job, 404, problem),
    ]);
    let ran = run(&server, &["get", "job", "44b5"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "error: no such job\n"), "{:?}", server.seen());
    assert_eq!(server.seen()[1], job);
}

#[test]
fn what_is_left_out_is_found_where_there_is_only_one() {
    let server = Server::answering([named("web", &["shop"]), service(&["eu"]), explained("eu")]);
    let ran = explain(&server, &["web"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("shop/web in eu is CONVERGED"), "{}", ran.stdout);
    let server = Server::answering([named("web", &["shop"]), explained("us")]);
    assert_eq!(explain(&server, &["web@us"]).code, 0);
}

#[test]
fn where_there_are_more_they_are_told_to_choose_from() {
    let refused = |answers: Vec<Answer>, words: &[&str], parts: &[&str]| {
        let ran = explain(&Server::answering(answers), words);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{words:?}");
        for part in parts {
            assert!(ran.stderr.contains(part), "{words:?}: {}", ran.stderr);
        }
    };
    refused(
        vec![named("web", &["blog", "shop"])],
        &["web@eu"],
        &["more than one application has a service `web`", "`blog/web@eu`, `shop/web@eu`"],
    );
    refused(
        vec![named("web", &["a", "b", "c", "d", "e", "f"])],
        &["web"],
        &["`a/web`, `b/web`, `c/web`, `d/web`, `e/web`, more"],
    );
    refused(vec![named("web", &[])], &["web"], &["no service `web` in any", "services list"]);
    refused(
        vec![service(&["eu", "us"])],
        &["shop/web"],
        &["has 2 release channels", "`shop/web@eu` (CONVERGED), `shop/web@us` (CONVERGED)"],
    );
    refused(vec![], &["shop/web@eu", "--app", "blog"], &["`shop`, and --app `blog`"]);
    refused(vec![], &["shop/web@eu", "--channel", "us"], &["`eu`, and --channel `us`"]);
    refused(vec![], &["shop/web/x"], &["[APPLICATION/]SERVICE[@CHANNEL]"]);
}

#[test]
fn a_channel_in_the_address_is_the_one_that_is_released_waited_for_and_shown() {
    let push = "POST /v1/applications/shop/services/web/push";
    let pushed = json!({"release": format!("rel-{}", "0".repeat(32)), "version": "web-1"});
    let server = Server::answering([answer(push, 200, pushed)]);
    let ran = run(&server, &["services", "push", "shop/web@eu"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(server.seen()[0].ends_with(r#""channels":["eu"]}"#), "{:?}", server.seen());
    let ran = run(&server, &["services", "push", "shop/web@eu", "--channels", "eu,us"]);
    assert_eq!((ran.code, server.seen().len()), (1, 1), "{}", ran.stderr);

    let server = Server::answering([service(&["eu", "us"])]);
    let ran = run(&server, &["services", "get", "shop/web@us", "-o", "json"]);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        shown["channels"],
        json!([instance("us")]).as_array().map(|_| shown["channels"].clone()).unwrap()
    );
    assert_eq!(shown["channels"].as_array().unwrap().len(), 1);
    assert_eq!(shown["channels"][0]["channel"], "us");
    let ran = run(&server, &["services", "get", "shop/web@xx"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no release channel `xx`") && ran.stderr.contains("eu, us"));
    let ran = run(&server, &["services", "wait", "shop/web@xx"]);
    assert!(ran.stderr.contains("has no channel `xx`"), "{}", ran.stderr);
}

#[test]
fn a_list_is_narrowed_by_an_address_or_by_flags() {
    let query = "GET /v1/jobs?application=shop&service=web&channel=eu&limit=200";
    for words in [
        &["shop/web@eu"][..],
        &["web@eu"],
        &["--app", "shop", "--service", "web", "--channel", "eu"],
        &["--service", "web", "--channel", "eu"],
    ] {
        let server = Server::answering([
            named("web", &["shop"]),
            answer("GET /v1/jobs", 200, json!({"items": [], "total": 0})),
        ]);
        let ran = run(&server, &[&["jobs", "list"], words].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        assert!(server.seen().iter().any(|seen| seen == query), "{words:?}: {:?}", server.seen());
    }
    let ran = run(&Server::answering([]), &["jobs", "list", "--channel", "eu"]);
    assert!(ran.code == 1 && ran.stderr.contains("name it with --app"), "{}", ran.stderr);
}
