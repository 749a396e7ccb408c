//! What can be typed, and what is sent for it.

use serde_json::json;

use crate::server::{Server, json as answer};
use crate::{run, run_with};

const PUSH: &str = "POST /v1/applications/shop/services/web/push";

fn push_server() -> Server {
    Server::answering([answer(
        PUSH,
        200,
        json!({"release": format!("rel-{}", "0".repeat(32)), "version": "web-1"}),
    )])
}

/// Runs a push with these words and checks the body that was sent.
fn check_push(words: &[&str], expected: serde_json::Value) {
    let server = push_server();
    let ran = run(&server, &[&["services", "push", "web", "--app", "shop"], words].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let seen = server.seen();
    let body: serde_json::Value =
        serde_json::from_str(seen[0].strip_prefix(PUSH).unwrap().trim()).unwrap();
    assert_eq!(body, expected);
}

#[test]
fn a_push_sends_parameters_as_they_were_typed() {
    check_push(&[], json!({"params": {}, "paramsForChannel": {}, "channels": null}));
    check_push(
        &[
            "--param",
            "image=v2=x",
            "--param-for-channel",
            "eu:url=http://h:1/",
            "--channels",
            "eu,us",
        ],
        json!({"params": {"image": "v2=x"}, "paramsForChannel": {"eu": {"url": "http://h:1/"}}, "channels": ["eu", "us"]}),
    );
}

#[test]
fn names_in_paths_are_escaped() {
    let server = Server::answering([]);
    run(&server, &["services", "get", "b?c..", "--app", "x y"]);
    assert_eq!(server.seen(), ["GET /v1/applications/x%20y/services/b%3Fc.."]);
}

#[test]
fn a_wrong_argument_ends_with_1_and_help_with_0() {
    for (words, code) in [
        (&["services", "lisst"][..], 1),
        (&["nonsense"], 1),
        (&[], 1),
        (&["services", "--help"], 0),
        (&["--version"], 0),
    ] {
        let ran = run_with(None, words, b"", None);
        assert_eq!(ran.code, code, "{words:?}: {}", ran.stderr);
        assert_eq!(ran.stdout.is_empty(), code == 1, "{words:?}: help is data, complaints are not");
    }
}

#[test]
fn a_list_of_no_entries_is_refused_with_what_is_allowed() {
    for words in [
        &["jobs", "list"][..],
        &["services", "list"],
        &["releases", "list"],
        &["get", "jobs"],
        &["history", "shop/web"],
        &["events"],
        &["notifications", "list"],
    ] {
        let ran = run_with(None, &[words, &["--limit", "0"]].concat(), b"", None);
        let why = "invalid value '0' for '--limit <N>': it is a whole number from 1 on";
        assert!(ran.code == 1 && ran.stderr.contains(why), "{words:?}: {}", ran.stderr);
    }
    let ran = run_with(None, &["status", "--limit", "201"], b"", None);
    assert!(ran.code == 1 && ran.stderr.contains("1..=200"), "{}", ran.stderr);
}

#[test]
fn a_timeout_of_what_is_not_waited_for_is_refused() {
    for words in [
        &["services", "push", "web", "--app", "shop"][..],
        &["services", "rollback", "web", "--app", "shop"],
        &["configs", "apply", "."],
    ] {
        let ran = run_with(None, &[words, &["--timeout", "5m"]].concat(), b"", None);
        assert_eq!(ran.code, 1, "{words:?}");
        assert!(
            ran.stderr.contains("required arguments were not provided")
                && ran.stderr.contains("--wait"),
            "{words:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_token_is_asked_for_with_roles_and_limits_one_role_as_older_schedulers_know_it() {
    let made = json!({"name": "ci", "roles": ["deployer"], "token": "t", "expiresAt": null});
    let asked = |flags: &[&str]| {
        let server = Server::answering([answer("POST /v1/tokens", 200, made.clone())]);
        let ran = run(&server, &[&["auth", "token", "create", "ci"], flags].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "t\n"), "{flags:?}: {}", ran.stderr);
        let seen = server.seen().remove(0);
        let body = seen.get(seen.find('{').unwrap()..).unwrap().to_owned();
        serde_json::from_str::<serde_json::Value>(&body).unwrap()
    };
    assert_eq!(
        asked(&["--role", "deployer"]),
        json!({"name": "ci", "role": "deployer", "validForSeconds": null})
    );
    let several = [
        &["--role", "deployer,operator", "--app", "shop,web", "--channel", "staging"][..],
        &[
            "--role",
            "deployer",
            "--role",
            "operator",
            "--application",
            "shop",
            "--app",
            "web",
            "--channels",
            "staging",
        ],
    ];
    for flags in several {
        assert_eq!(
            asked(flags),
            json!({
                "name": "ci", "validForSeconds": null, "roles": ["deployer", "operator"],
                "applications": ["shop", "web"], "channels": ["staging"],
            })
        );
    }
    let ran = run_with(None, &["auth", "token", "create", "ci", "--role", "owner"], b"", None);
    assert!(ran.code == 1 && ran.stderr.contains("viewer, deployer, approver"), "{}", ran.stderr);
}

#[test]
fn the_time_that_a_token_is_valid_may_be_called_as_others_call_it() {
    for flag in ["--valid-for", "--expires"] {
        let made = json!({"name": "ci", "role": "viewer", "token": "t", "expiresAt": "2026-01-01T00:00:00.000Z"});
        let server = Server::answering([answer("POST /v1/tokens", 200, made)]);
        let ran = run(&server, &["auth", "token", "create", "ci", "--role", "viewer", flag, "90m"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "t\n"), "{flag}: {}", ran.stderr);
        assert!(
            server.seen()[0].contains("\"validForSeconds\":5400"),
            "{flag}: {:?}",
            server.seen()
        );
    }
}

#[test]
fn a_secret_is_read_from_stdin_less_one_line_end() {
    let request = "PUT /v1/secrets/pass";
    for (words, input, sent) in [
        (&[][..], &b"s3cret\n"[..], "czNjcmV0"),
        (&[], b"s3cret", "czNjcmV0"),
        (&[], b"a\n\n", "YQo="),
        (&["--keep-line-end"], b"a\n", "YQo="),
    ] {
        let server =
            Server::answering([answer(request, 200, json!({"key": "pass", "version": 1}))]);
        let ran =
            run_with(Some(&server), &[&["secrets", "set", "pass"], words].concat(), input, None);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(server.seen(), [format!("{request} {{\"value\":\"{sent}\"}}")]);
    }
    let ran = run_with(None, &["secrets", "set", "pass"], b"\n", None);
    assert_eq!(
        (ran.code, ran.stderr.lines().next()),
        (1, Some("error: the value of secret `pass` is empty"))
    );
}

#[test]
fn a_secret_that_is_too_short_to_be_masked_is_set_with_a_warning() {
    let warning = "secret `pass` is not masked in what jobs print";
    let server = Server::answering([answer(
        "PUT /v1/secrets/pass",
        200,
        json!({"key": "pass", "version": 1, "warning": warning}),
    )]);
    let ran = run_with(Some(&server), &["secrets", "set", "pass"], b"abc", None);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "pass is now at version 1\n"));
    assert!(ran.stderr.ends_with(&format!("warning: {warning}\n")), "{}", ran.stderr);
}

#[test]
fn completions_are_made_for_each_shell() {
    for (shell, sign) in
        [("bash", "-F _clap"), ("zsh", "#compdef pvnctl"), ("fish", "--command pvnctl")]
    {
        let ran = run_with(None, &["completion", shell], b"", None);
        assert!(ran.stdout.contains(sign), "{shell}");
    }
}

#[test]
fn every_command_is_in_the_guide_and_every_command_of_the_guide_is_there() {
    let guide = include_str!("../../../../docs/pvnctl.md");
    // The table before the first heading; later ones are about one command.
    let (table, _) = guide.split_once("\n## ").unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('|').nth(1))
        .collect();
    let words = |row: &str| -> Vec<String> {
        row.split(|character: char| !character.is_ascii_lowercase() && character != '-')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let cli = <pvnctl::command::Cli as clap::CommandFactory>::command();
    let mut commands = Vec::new();
    for group in cli.get_subcommands() {
        let leaves: Vec<_> = group
            .get_subcommands()
            .flat_map(|leaf| leaf.get_subcommands().chain(std::iter::once(leaf)))
            .collect();
        for leaf in leaves.iter().filter(|leaf| !leaf.has_subcommands()) {
            commands.push((group.get_name(), leaf.get_name()));
        }
        if leaves.is_empty() {
            commands.push((group.get_name(), group.get_name()));
        }
    }
    // Commands without sub-commands may share a row.
    let is_alone = |name: &String| commands.contains(&(name.as_str(), name.as_str()));
    for (group, leaf) in &commands {
        let told = rows.iter().any(|row| {
            let words = words(row);
            words.first().is_some_and(|first| first == group || group == leaf && is_alone(first))
                && words.iter().any(|word| word == leaf)
        });
        assert!(told, "docs/pvnctl.md does not tell of `{group} {leaf}`");
    }
    for row in rows {
        let first = words(row).remove(0);
        assert!(
            commands.iter().any(|(group, _)| *group == first),
            "docs/pvnctl.md tells of `{first}`, which is not there"
        );
    }
}

#[test]
fn a_pause_says_what_it_is_for() {
    let path = "POST /v1/applications/shop/services/web/channels/eu/pause";
    let paused = json!({
        "channel": "eu", "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": "PAUSED", "reason": null,
        "message": "paused by ann (disk swap)", "desiredVersion": "web-1", "since": "2026-01-01T00:00:00.000Z", "objects": [],
        "info": [], "approvals": [], "paused": true, "observer": false,
    });
    let server = Server::answering([answer(path, 200, paused)]);
    let ran =
        run_with(Some(&server), &["pause", "shop/web@eu", "--reason", "disk swap"], b"", None);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("paused by ann (disk swap)"), "{}", ran.stderr);
    assert_eq!(server.seen(), [format!(r#"{path} {{"reason":"disk swap"}}"#)]);
}

#[test]
fn what_is_observed_only_says_what_it_is_for() {
    let path = "POST /v1/applications/shop/services/web/channels/eu/observe";
    let observed = json!({
        "channel": "eu", "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": "CONVERGING", "reason": null,
        "message": "observed by ann (disk swap): it would apply web-1 now, but only looks until `pvnctl services resume`; replicas differ",
        "desiredVersion": "web-1", "since": "2026-01-01T00:00:00.000Z", "objects": [],
        "info": [], "approvals": [], "paused": false, "observer": true,
        "observed": {"who": "ann", "since": "2026-01-01T00:00:00.000Z", "reason": "disk swap"},
    });
    let server = Server::answering([answer(path, 200, observed)]);
    let ran = run_with(Some(&server), &["observe", "shop/web@eu", "-r", "disk swap"], b"", None);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("observed only: shop/web in eu"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`pvnctl services resume shop/web@eu`"), "{}", ran.stderr);
    assert_eq!(server.seen(), [format!(r#"{path} {{"reason":"disk swap"}}"#)]);
}

#[test]
fn a_retry_of_what_is_applied_and_never_fetched_says_what_applies_it_again() {
    let path = "POST /v1/applications/shop/services/web/channels/eu/retry";
    let converged = json!({
        "channel": "eu", "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": "CONVERGED", "reason": null,
        "message": "web-1 is as desired", "desiredVersion": "web-1", "since": "2026-01-01T00:00:00.000Z", "objects": [],
        "info": [], "approvals": [], "paused": false, "observer": false,
    });
    let server = Server::answering([answer(path, 200, converged)]);
    let ran = run_with(Some(&server), &["retry", "shop/web@eu"], b"", None);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let words = "nothing to apply again (a release does: `pvnctl services push shop/web@eu`)";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

#[test]
fn a_window_is_opened_for_the_version_that_was_shown_and_not_unasked() {
    let own = "/v1/applications/shop/services/web/channels/eu";
    let lift = json!({
        "who": "ann", "at": "2026-01-01T00:00:00.000Z", "until": "2026-01-01T01:00:00.000Z", "reason": "down",
    });
    let instance = json!({
        "channel": "eu", "channelId": format!("rch-{}", "0".repeat(32)), "runtime": "vm", "status": "CONVERGING", "reason": null,
        "message": "ready to apply", "desiredVersion": "web-7", "since": "2026-01-01T00:00:00.000Z", "objects": [],
        "info": [], "approvals": [], "paused": false, "observer": false, "windowLift": lift,
    });
    let (get, post) = (format!("GET {own}"), format!("POST {own}/open-window"));
    let all = || [answer(&get, 200, instance.clone()), answer(&post, 200, instance.clone())];
    let command = ["open-window", "shop/web@eu", "--reason", "down"];
    let server = Server::answering(all());
    let ran = run_with(Some(&server), &command, b"", None);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("no terminal to ask on") && ran.stderr.contains("--yes"));
    assert!(server.seen().iter().all(|seen| seen.starts_with("GET")), "{:?}", server.seen());
    let server = Server::answering(all());
    let given = [&command[..], &["--for", "90m", "--yes"]].concat();
    let ran = run_with(Some(&server), &given, b"", None);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("the apply window is lifted until"), "{}", ran.stderr);
    let body = r#"{"version":"web-7","reason":"down","forSeconds":5400,"end":false}"#;
    assert_eq!(server.seen().last().unwrap(), &format!("{post} {body}"));
    let ran = run_with(Some(&server), &command[..2], b"", None);
    assert!(ran.code != 0 && ran.stderr.contains("--reason"), "{}", ran.stderr);
}
