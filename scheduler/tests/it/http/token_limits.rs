//! Tokens that are limited to applications and channels: nothing is changed beyond that, whatever
//! route is tried, and what is within is done.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::StatusCode;
use pvn_scheduler::store::{Change, Commit};
use schema::access::{Capability, RoleSet, TokenRights, TokenScope};
use schema::status::Role;
use serde_json::json;

use super::pages::browser;
use super::rights::{FORMS, OPERATIONS, filled};
use super::{Service, request, token_with};

/// The roles that change something, limited.
pub(super) fn limited(applications: &[&str], channels: &[&str]) -> TokenRights {
    let roles = [Role::Deployer, Role::Approver, Role::Operator, Role::BreakGlass];
    TokenRights {
        roles: RoleSet::new(roles).unwrap(),
        scope: TokenScope {
            applications: applications.iter().map(|name| name.parse().unwrap()).collect(),
            channels: channels.iter().map(|name| name.parse().unwrap()).collect(),
        },
    }
}

impl Service {
    pub(super) async fn add(&self, tokens: Vec<Change>) {
        self.rig.store.commit(&Commit { changes: tokens, ..Commit::default() }).await.unwrap();
    }

    /// Who did something, as the log has it.
    async fn actors(&self) -> BTreeSet<String> {
        let log = self.get("/v1/events?limit=1000").await.json();
        let entries = log["items"].as_array().unwrap().iter();
        entries.filter_map(|entry| entry["actor"].as_str().map(str::to_owned)).collect()
    }
}

#[tokio::test]
async fn nothing_is_changed_beyond_the_limits_of_a_token_by_any_route() {
    // Its jobs never end, so that there is one to cancel.
    let service = Service::hanging().await;
    let pushed = service.post("/v1/applications/app/services/web/push", "{}").await;
    assert_eq!(pushed.status, StatusCode::OK, "{}", String::from_utf8_lossy(&pushed.body));
    let path = "/v1/jobs?application=app&channel=production";
    let job = service
        .rig
        .until("a job in production", async || {
            let found = service.get(path).await.json();
            found["items"][0]["id"].as_str().map(str::to_owned)
        })
        .await;
    service
        .add(vec![
            token_with("other-app", limited(&["elsewhere"], &[])),
            token_with("other-channel", limited(&[], &["staging"])),
            token_with("neither", limited(&["app"], &["staging"])),
        ])
        .await;
    let values = [
        ("application", "app"),
        ("service", "web"),
        ("channel", "production"),
        ("runtime", "tool"),
        ("job", job.as_str()),
    ];
    let changing = [
        Capability::DryRun,
        Capability::Push,
        Capability::Approve,
        Capability::Operate,
        Capability::OpenWindow,
    ];
    let mut tried = 0;
    for name in ["other-app", "other-channel", "neither"] {
        let cookie = service.sign_in(name).await;
        for (method, path, needs) in OPERATIONS {
            if !needs.parse().is_ok_and(|needed| changing.contains(&needed)) {
                continue;
            }
            let path = filled(path, &values);
            let answer = service.ask(request(method, &path, Some(name), Body::empty())).await;
            // Which channels go back, or whose message it is, is known only where there is one.
            let is_moot = path.ends_with("/rollback") && answer.status == StatusCode::CONFLICT
                || path.ends_with("/resend") && answer.status == StatusCode::NOT_FOUND;
            assert!(answer.status == StatusCode::FORBIDDEN || is_moot, "{path}: {}", answer.status);
            assert!(is_moot || answer.detail().contains("may change only"), "{}", answer.detail());
            tried += 1;
        }
        for (path, _) in FORMS {
            let path = filled(path, &values);
            let answer = service.ask(browser("POST", &path, &cookie, "approval=apr-x")).await;
            let is_moot = path.ends_with("/rollback") && answer.status == StatusCode::CONFLICT;
            assert!(answer.status == StatusCode::FORBIDDEN || is_moot, "{path}: {}", answer.status);
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
    let actors = service.actors().await;
    assert!(actors.contains("admin") && actors.iter().all(|name| !name.contains("other")));
    assert!(!actors.contains("neither"), "{actors:?}");
    let shown = service.get("/v1/applications/app/services/web/channels/production").await.json();
    assert_eq!((&shown["paused"], &shown["desiredVersion"]), (&json!(false), &json!("web-1")));
}

#[tokio::test]
async fn a_limited_token_does_within_its_limits_what_its_roles_do_and_reads_everywhere() {
    let service = Service::start().await;
    service.add(vec![token_with("ci", limited(&["app"], &["staging"]))]).await;
    let post = async |path: &str, body: &str| {
        let path = format!("/v1/applications/app/services/web/{path}");
        service.ask(request("POST", &path, Some("ci"), body.to_owned().into())).await
    };
    // All channels are more than one that it may.
    let refused = post("push", "{}").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(
        refused.detail().starts_with(
            "the token `ci` may change only channel staging of application app, and this is about \
             channel production of application app, so nothing was done"
        ),
        "{}",
        refused.detail()
    );
    // Values of a channel are kept for the next release there, whoever makes it.
    let elsewhere =
        r#"{"channels": ["staging"], "paramsForChannel": {"production": {"image": "evil"}}}"#;
    for body in [elsewhere.to_owned(), elsewhere.replace("{\"ch", "{\"dryRun\": true, \"ch")] {
        let refused = post("push", &body).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{body}");
        assert!(refused.detail().contains("about channel production"), "{}", refused.detail());
    }
    assert_eq!(service.get("/v1/releases").await.json()["total"], 0);
    let done = post("push", r#"{"channels": ["staging"]}"#).await;
    assert_eq!(done.status, StatusCode::OK, "{}", String::from_utf8_lossy(&done.body));
    assert_eq!(post("channels/staging/pause", "{}").await.status, StatusCode::OK);
    for path in ["/v1/applications/app/services/web/channels/production", "/v1/releases"] {
        let read = service.ask(request("GET", path, Some("ci"), Body::empty())).await;
        assert_eq!(read.status, StatusCode::OK, "{path}");
    }
    let own = service.ask(request("GET", "/v1/whoami", Some("ci"), Body::empty())).await.json();
    assert_eq!(own["roles"], json!(["deployer", "approver", "operator", "break-glass"]));
    assert_eq!((&own["applications"], &own["channels"]), (&json!(["app"]), &json!(["staging"])));
    assert!(own.get("role").is_none(), "there is none that it has alone: {own}");
}
