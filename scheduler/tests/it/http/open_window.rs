//! Break-glass over HTTP: who may let a version start outside its window, what is refused, and that
//! nothing but that starts it.

use axum::body::Body;
use axum::http::StatusCode;
use pvn_scheduler::store::Commit;
use schema::access::{RoleSet, TokenRights, TokenScope};
use schema::status::{Role, Status};
use serde_json::json;

use super::{Answer, Service, request, token_with};

/// A service in two channels whose window never opens by itself.
const WINDOWED: &str = r#"
runtime:
  name: guarded
  custom:
    proxyRuntime: {runtime: local}
    apply:
      window: {schedule: "0 0 9 1 1 * 2020", duration: 1h}
      taskConfig: {program: {name: do, entrypoint: [do]}}
---
application:
  name: app
  releaseChannels:
  - name: staging
    runtimes: [{runtime: guarded}]
  - name: production
    runtimes: [{runtime: guarded}]
---
service:
  name: web
  application: app
"#;

const CHANNELS: &str = "/v1/applications/app/services/web/channels";

async fn open(service: &Service, token: &str, channel: &str, body: &str) -> Answer {
    let path = format!("{CHANNELS}/{channel}/open-window");
    service.ask(request("POST", &path, Some(token), Body::from(body.to_owned()))).await
}

/// It is released, and waits.
async fn waiting() -> Service {
    let service = Service::start().await;
    service.rig.apply(WINDOWED).await.unwrap();
    let pushed = service.post("/v1/applications/app/services/web/push", "{}").await;
    assert_eq!(pushed.status, StatusCode::OK, "{}", String::from_utf8_lossy(&pushed.body));
    for channel in ["staging", "production"] {
        service.rig.until_status(channel, Status::WaitingPreconditions).await;
    }
    service
}

#[tokio::test]
async fn p2_only_a_lifted_window_lets_an_apply_start_outside_it_and_only_there() {
    let service = waiting().await;
    let body = r#"{"version": "web-1", "reason": " INC-311 ", "forSeconds": 600}"#;
    let lifted = open(&service, "break-glass", "production", body).await;
    assert_eq!(lifted.status, StatusCode::OK, "{}", String::from_utf8_lossy(&lifted.body));
    service.rig.until_status("production", Status::Converged).await;
    let arrived = service.get(&format!("{CHANNELS}/production")).await.json();
    assert!(arrived.get("windowLift").is_none(), "it was for what has arrived: {arrived}");
    let staging = service.get(&format!("{CHANNELS}/staging")).await.json();
    assert_eq!(staging["reason"], "OUTSIDE_WINDOW", "{staging}");
    let log = service.get("/v1/events?limit=1000").await.json();
    let entries: Vec<_> = log["items"].as_array().unwrap().iter().collect();
    let of = |kind: &str| entries.iter().find(|entry| entry["kind"] == kind).unwrap();
    let told = of("window.lifted");
    assert_eq!(
        (&told["actor"], &told["data"]["reason"]),
        (&json!("break-glass"), &json!("INC-311"))
    );
    assert!(of("window.lift_ended")["message"].as_str().unwrap().ends_with("has arrived"));
    let jobs = service.get("/v1/jobs?kind=apply&application=app&channel=staging").await.json();
    assert_eq!(jobs["total"], 0, "{jobs}");
}

#[tokio::test]
async fn an_open_window_that_means_nothing_is_refused_with_what_to_do() {
    let service = waiting().await;
    let longest = "z".repeat(1_001);
    for (body, status, why) in [
        ("{}".to_owned(), 400, "`reason` is missing"),
        (r#"{"reason": "  "}"#.to_owned(), 400, "`reason` is missing"),
        (json!({"reason": longest}).to_string(), 400, "1000 at most"),
        (r#"{"reason": "x", "forSeconds": 0}"#.to_owned(), 400, "1 to 86400 seconds"),
        (r#"{"reason": "x", "forSeconds": 86401}"#.to_owned(), 400, "1 to 86400 seconds"),
        (r#"{"reason": "x", "version": "web-9"}"#.to_owned(), 409, "is to be web-1 by now"),
        (r#"{"end": true}"#.to_owned(), 409, "nobody has lifted"),
    ] {
        let refused = open(&service, "admin", "staging", &body).await;
        assert_eq!(refused.status.as_u16(), status, "{body}: {}", refused.detail());
        assert!(refused.detail().contains(why), "{body}: {}", refused.detail());
    }
    service.post(&format!("{CHANNELS}/staging/pause"), "{}").await;
    let lifted = open(&service, "admin", "staging", r#"{"reason": "x"}"#).await;
    assert_eq!(lifted.json()["windowLift"]["who"], "admin");
    assert_eq!(lifted.json()["status"], "PAUSED", "no other gate opens by it");
    let ended = open(&service, "admin", "staging", r#"{"end": true}"#).await;
    assert!(ended.status == StatusCode::OK && ended.json().get("windowLift").is_none());
    let lifted = open(&service, "admin", "production", r#"{"reason": "x"}"#).await;
    assert_eq!(lifted.status, StatusCode::OK);
    service.rig.until_status("production", Status::Converged).await;
    let late = open(&service, "admin", "production", r#"{"reason": "x"}"#).await;
    assert!(late.status == StatusCode::CONFLICT && late.detail().contains("nothing waits"));
}

#[tokio::test]
async fn a_window_is_opened_by_the_role_for_it_within_the_limits_of_the_token() {
    let service = waiting().await;
    let rights = TokenRights {
        roles: RoleSet::new([Role::Operator, Role::BreakGlass]).unwrap(),
        scope: TokenScope {
            applications: ["app".parse().unwrap()].into(),
            channels: ["staging".parse().unwrap()].into(),
        },
    };
    let changes = vec![token_with("oncall", rights)];
    service.rig.store.commit(&Commit { changes, ..Commit::default() }).await.unwrap();
    let body = r#"{"reason": "down"}"#;
    for role in ["viewer", "deployer", "approver", "operator"] {
        let refused = open(&service, role, "staging", body).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{role}");
        assert!(refused.detail().contains("--role break-glass"), "{}", refused.detail());
    }
    let beyond = open(&service, "oncall", "production", body).await;
    assert_eq!(beyond.status, StatusCode::FORBIDDEN);
    assert!(beyond.detail().contains("may change only channel staging of application app"));
    let untouched = service.get(&format!("{CHANNELS}/production")).await.json();
    assert_eq!(untouched["reason"], "OUTSIDE_WINDOW");
    assert_eq!(open(&service, "oncall", "staging", body).await.status, StatusCode::OK);
    service.rig.until_status("staging", Status::Converged).await;
}
