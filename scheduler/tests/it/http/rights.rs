//! What each route needs, and who has it: every route of the API and every form of a page, tried
//! with every role (and by `token_limits` from beyond a token's limits). A route that is not here
//! fails.

use std::collections::BTreeSet;
use std::path::Path;

use axum::body::Body;
use axum::http::StatusCode;
use schema::access::Capability;
use schema::status::Role;
use serde_json::{Value, json};

use super::pages::browser;
use super::token_limits::limited;
use super::{Service, request, token_with};

/// What `~` stands for in a path below.
const SERVICE: &str = "/applications/{application}/services/{service}";

/// Each operation of the API with what it needs: a capability, the token of a `job`, or `nothing`.
/// `@` is a channel.
pub(super) const OPERATIONS: &[(&str, &str, &str)] = &[
    ("GET", "/healthz", "nothing"),
    ("GET", "/metrics", "nothing"),
    ("GET", "/readyz", "nothing"),
    ("GET", "/schemas/", "nothing"),
    ("GET", "/schemas/{name}", "nothing"),
    ("GET", "/v1/applications", "read"),
    ("GET", "/v1/applications/{application}", "read"),
    ("GET", "/v1~", "read"),
    ("GET", "/v1~/@", "read"),
    ("GET", "/v1~/@/explain", "read"),
    ("GET", "/v1/configs", "read"),
    ("GET", "/v1/configs/{kind}/{name}", "read"),
    ("GET", "/v1/events", "read"),
    ("GET", "/v1/jobs", "read"),
    ("GET", "/v1/jobs/{job}", "read"),
    ("GET", "/v1/jobs/{job}/files/{name}", "read"),
    ("GET", "/v1/jobs/{job}/inputs/{reference}", "job"),
    ("GET", "/v1/jobs/{job}/logs", "read"),
    ("GET", "/v1/notifications", "read"),
    ("GET", "/v1/releases", "read"),
    ("GET", "/v1/releases/{release}", "read"),
    ("GET", "/v1/runtimes", "read"),
    ("GET", "/v1/runtimes/{runtime}", "read"),
    ("GET", "/v1/runtimes/{runtime}/custom", "read"),
    ("GET", "/v1/secrets", "read"),
    ("GET", "/v1/services", "read"),
    ("GET", "/v1/status", "read"),
    ("GET", "/v1/tokens", "administer"),
    ("GET", "/v1/whoami", "read"),
    ("HEAD", "/v1/jobs/{job}/streams/{stream}", "job"),
    ("POST", "/v1~/@/acknowledge", "operate"),
    ("POST", "/v1~/@/approve", "approve"),
    ("POST", "/v1~/@/observe", "operate"),
    ("POST", "/v1~/@/open-window", "open-window"),
    ("POST", "/v1~/@/pause", "operate"),
    ("POST", "/v1~/@/refresh", "operate"),
    ("POST", "/v1~/@/reject", "approve"),
    ("POST", "/v1~/@/resume", "operate"),
    ("POST", "/v1~/@/retry", "operate"),
    ("POST", "/v1~/@/run", "dry-run"),
    ("POST", "/v1~/push", "push"),
    ("POST", "/v1~/rollback", "push"),
    ("POST", "/v1/configs", "administer"),
    ("POST", "/v1/jobs/{job}/cancel", "operate"),
    ("POST", "/v1/jobs/{job}/heartbeat", "job"),
    ("POST", "/v1/notifications/{id}/resend", "operate"),
    ("POST", "/v1/runtimes/{runtime}/check", "operate"),
    ("POST", "/v1/runtimes/{runtime}/resume", "operate"),
    ("POST", "/v1/sign-in", "nothing"),
    ("POST", "/v1/tokens", "administer"),
    ("PUT", "/v1/jobs/{job}/files/{name}", "job"),
    ("PUT", "/v1/jobs/{job}/report", "job"),
    ("PUT", "/v1/secrets/{key}", "administer"),
    ("DELETE", "/v1/secrets/{key}", "administer"),
    ("DELETE", "/v1/tokens/{name}", "administer"),
    ("PATCH", "/v1/jobs/{job}/streams/{stream}", "job"),
];

/// Each form of a page with what it needs. Those of signing in and out need nothing.
pub(super) const FORMS: &[(&str, Capability)] = &[
    ("~/@/acknowledge", Capability::Operate),
    ("~/@/approve", Capability::Approve),
    ("~/@/observe", Capability::Operate),
    ("~/@/open-window", Capability::OpenWindow),
    ("~/@/pause", Capability::Operate),
    ("~/@/refresh", Capability::Operate),
    ("~/@/reject", Capability::Approve),
    ("~/@/resume", Capability::Operate),
    ("~/@/retry", Capability::Operate),
    ("~/@/run", Capability::DryRun),
    ("~/deploy", Capability::Push),
    ("~/rollback", Capability::Push),
    ("/jobs/{job}/cancel", Capability::Operate),
    ("/runtimes/{runtime}/check", Capability::Operate),
];

/// The path that a line above stands for.
fn spelled(path: &str) -> String {
    path.replace('~', SERVICE).replace('@', "channels/{channel}")
}

/// The same with these in the place of its parameters, and `x` in that of others.
pub(super) fn filled(path: &str, values: &[(&str, &str)]) -> String {
    let value = |name: &str| {
        let found = values.iter().find(|(known, _)| *known == name);
        found.map_or("x", |(_, value)| value).to_owned()
    };
    let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => value(name),
        None => part.to_owned(),
    };
    spelled(path).split('/').map(part).collect::<Vec<_>>().join("/")
}

/// What the document says that an operation needs.
fn documented(operation: &Value) -> &str {
    match (operation["x-needs"].as_str(), &operation["security"][0]) {
        (Some(capability), security) if security["bearer"].is_array() => capability,
        (None, security) if security["job"].is_array() => "job",
        (None, Value::Null) => "nothing",
        (found, security) => panic!("{found:?} with {security}"),
    }
}

#[tokio::test]
async fn every_operation_says_what_it_needs_and_no_other_is_served() {
    let service = Service::start().await;
    let document = service.get("/openapi.json").await.json();
    let mut found = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            found.insert((method.to_uppercase(), path.clone(), documented(operation).to_owned()));
        }
    }
    let own = |(method, path, needs): &(&str, &str, &str)| {
        ((*method).to_owned(), spelled(path), (*needs).to_owned())
    };
    let expected: BTreeSet<_> = OPERATIONS.iter().map(own).collect();
    assert_eq!(found.difference(&expected).collect::<Vec<_>>(), Vec::<&_>::new(), "are new");
    assert_eq!(expected.difference(&found).collect::<Vec<_>>(), Vec::<&_>::new(), "are gone");
}

#[tokio::test]
async fn each_role_may_do_what_the_table_says_and_nothing_more() {
    let service = Service::start().await;
    for (method, path, needs) in OPERATIONS {
        let Ok(needed) = needs.parse::<Capability>() else { continue };
        let path = filled(path, &[]);
        let answer = service.ask(request(method, &path, None, Body::empty())).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path} without token");
        for role in Role::ALL {
            let answer =
                service.ask(request(method, &path, Some(role.as_str()), Body::empty())).await;
            let refused = answer.status == StatusCode::FORBIDDEN;
            assert_eq!(refused, !role.may(needed), "{method} {path} as {role}: {}", answer.status);
            if refused {
                let said = answer.detail();
                let least = needed.least_role();
                assert!(
                    said.starts_with(&format!("the token `{role}` has the role {role}, and "))
                        && said.contains("which an admin makes")
                        && said.contains(&format!("--role {least}`")),
                    "{said}"
                );
            }
        }
    }
}

/// The docs have the table that is enforced, and no other.
#[test]
fn the_docs_have_the_table() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/access.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for role in Role::ALL {
        let cells = Capability::ALL.iter().map(|one| if role.may(*one) { "yes" } else { "" });
        let row = format!("| `{role}` | {} |", cells.collect::<Vec<_>>().join(" | "));
        assert!(docs.contains(&row), "docs/access.md has no line {row}");
    }
    let heads: Vec<String> = Capability::ALL.iter().map(|one| format!("`{one}`")).collect();
    let head = format!("| role | {} |", heads.join(" | "));
    assert!(docs.contains(&head), "docs/access.md has no line {head}");
}

/// What `pvnctl` calls the operation that changes something, by the end of its path; `None` where
/// that is the word itself.
fn called(path: &str) -> &str {
    match path {
        "/v1/configs" => "configs apply",
        "/v1/jobs/{job}/cancel" => "jobs cancel",
        "/v1/notifications/{id}/resend" => "notifications resend",
        "/v1/runtimes/{runtime}/check" => "runtimes check",
        "/v1/runtimes/{runtime}/resume" => "runtimes resume",
        other => other.rsplit('/').next().unwrap_or(other),
    }
}

/// The docs name each thing that can be done beside the capability that it needs, and say of no
/// operation that it needs another role.
#[test]
fn the_docs_name_what_each_operation_needs() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = |name: &str| std::fs::read_to_string(docs.join(name)).unwrap();
    let (access, api, client) = (page("access.md"), page("api.md"), page("pvnctl.md"));
    for (method, path, needs) in OPERATIONS {
        let Some(needed) = Capability::ALL.iter().find(|one| one.as_str() == *needs) else {
            continue;
        };
        let word = called(path);
        let is_named = |line: &&str| line.starts_with(&format!("| `{needs}` | "));
        let is_change = *method == "POST" && !word.contains('{') && word != "tokens";
        if is_change {
            let line = access.lines().find(is_named).unwrap_or_default();
            let word = if word == "run" { "`run`" } else { word };
            assert!(line.contains(word), "docs/access.md: `{needs}` does not name {word}");
        }
        // A paragraph of the reference, and the section of a command.
        let of_api = api.split("\n\n").filter(|text| text.contains(&format!("`{method} {path}`")));
        let section = client.split("\n## ").find(|text| text.starts_with(&format!("{word}\n")));
        for text in of_api.chain(section) {
            for other in Role::ALL.iter().filter(|role| **role != needed.least_role()) {
                for says in [format!("needs an {other}"), format!("needs the role {other}")] {
                    assert!(!text.contains(&says), "{method} {path} needs `{needs}`, not: {says}");
                }
            }
        }
    }
}

/// The names of handlers that a page's file gives to `post(…)`.
fn posted(source: &str) -> Vec<&str> {
    let after = source.split("post(").skip(1);
    after.filter_map(|rest| rest.split_once(')')).map(|(name, _)| name).collect()
}

#[test]
fn every_form_of_a_page_is_tried_and_its_handler_names_what_it_needs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/pages");
    let mut found = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let handlers = posted(&source);
        if path.ends_with("door.rs") {
            assert_eq!(handlers, ["sign_in", "sign_out"]);
            continue;
        }
        for handler in handlers {
            let (_, rest) = source.split_once(&format!("async fn {handler}(")).unwrap();
            let (arguments, _) = rest.split_once("->").unwrap();
            let needs =
                ["DryRunner(", "Deployer(", "Approver(", "Operator(", "WindowOpener(", "Admin("];
            assert!(
                needs.iter().any(|extractor| arguments.contains(extractor)),
                "{}: {handler}",
                path.display()
            );
            found += 1;
        }
        let others = [".put(", ", put(", ".delete(", ", delete(", ".patch("];
        assert!(others.iter().all(|other| !source.contains(other)), "{}", path.display());
    }
    assert_eq!(found, FORMS.len(), "forms that are tried below");
}

#[tokio::test]
async fn a_form_needs_what_the_api_asks_for() {
    let service = Service::start().await;
    for (path, needed) in FORMS {
        let path = filled(path, &[]);
        for role in Role::ALL {
            let cookie = service.sign_in(role.as_str()).await;
            let answer = service.ask(browser("POST", &path, &cookie, "approval=apr-x")).await;
            let refused = answer.status == StatusCode::FORBIDDEN;
            assert_eq!(refused, !role.may(*needed), "{path} as {role}: {}", answer.status);
            assert!(!refused || answer.html().contains("has the role"), "{path} as {role}");
        }
    }
}

#[tokio::test]
async fn configs_are_compared_by_whoever_reads_and_stored_by_an_admin() {
    let service = Service::start().await;
    let runtime = "runtime: {name: new, fake: {}}\n";
    let send = async |token: &str, is_dry_run: bool| {
        let files = json!([{"path": "a.pvn.yaml", "text": runtime}]);
        let body = json!({"files": files, "dryRun": is_dry_run}).to_string();
        service.ask(request("POST", "/v1/configs", Some(token), body.into())).await
    };
    for role in Role::ALL {
        let compared = send(role.as_str(), true).await;
        assert_eq!(compared.status, StatusCode::OK, "{role}: {:?}", compared.json());
        let stored = send(role.as_str(), false).await;
        let expected = if *role == Role::Admin { StatusCode::OK } else { StatusCode::FORBIDDEN };
        assert_eq!(stored.status, expected, "{role}");
    }
}

#[tokio::test]
async fn a_page_offers_what_its_reader_may_do_and_says_why_not_the_rest() {
    let service = Service::start().await;
    let pushed = service.post("/v1/applications/app/services/web/push", "{}").await;
    assert_eq!(pushed.status, StatusCode::OK);
    service.add(vec![token_with("ci", limited(&[], &["staging"]))]).await;
    let page = "/applications/app/services/web";
    let shown = async |token: &str, path: &str| {
        let cookie = service.sign_in(token).await;
        service.open(&format!("{page}{path}"), &cookie).await.html()
    };
    let (pause, deploy) = ("/pause\"><button>", "/deploy\">Deploy</a>");
    let html = shown("operator", "?channel=staging").await;
    assert!(html.contains(pause) && !html.contains(deploy), "{html}");
    let html = shown("deployer", "?channel=staging").await;
    assert!(!html.contains(pause) && html.contains(deploy));
    assert!(html.contains("Your token has the role deployer, and pausing,"), "{html}");
    assert!(shown("viewer", "?channel=staging").await.contains("Fetch dry"));
    let html = shown("ci", "?channel=staging").await;
    assert!(html.contains(pause) && html.contains(deploy));
    assert!(html.contains("(deployer, approver, operator, break-glass, limited)"), "{html}");
    let html = shown("ci", "?channel=production").await;
    assert!(!html.contains(pause) && html.contains("may change only channel staging"));
    let html = shown("ci", "/deploy").await;
    assert!(html.contains("name=\"c.staging\" checked>"), "{html}");
    assert!(html.contains("name=\"c.production\" disabled>"), "{html}");
    assert!(shown("operator", "/deploy").await.contains("needs the role deployer"));
}
