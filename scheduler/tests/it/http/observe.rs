//! Observing one instance over HTTP: who may ask for it, what is told of it, and that nothing is
//! applied until somebody resumes.

use axum::body::Body;
use axum::http::StatusCode;
use schema::status::Status;
use serde_json::{Value, json};

use super::token_limits::limited;
use super::{Answer, Service, request, token_with};

/// A service that is only applied, in two channels.
const ALONE: &str = r#"
runtime:
  name: hand
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {name: do, entrypoint: [do]}}
---
application:
  name: app
  releaseChannels:
  - name: staging
    runtimes: [{runtime: hand}]
  - name: production
    runtimes: [{runtime: hand}]
---
service:
  name: web
  application: app
"#;

const CHANNELS: &str = "/v1/applications/app/services/web/channels";

async fn send(service: &Service, token: &str, what: &str, body: &str) -> Answer {
    let path = format!("{CHANNELS}/production/{what}");
    service.ask(request("POST", &path, Some(token), Body::from(body.to_owned()))).await
}

async fn started() -> Service {
    let service = Service::start().await;
    service.rig.apply(ALONE).await.unwrap();
    service
}

async fn entries(service: &Service, kind: &str) -> Vec<Value> {
    let log = service.get("/v1/events?limit=1000").await.json();
    let entries = log["items"].as_array().unwrap().iter();
    entries.filter(|entry| entry["kind"] == kind).cloned().collect()
}

#[tokio::test]
async fn rule_10_what_is_observed_is_not_applied_until_somebody_resumes() {
    let service = started().await;
    let body = r#"{"reason": " disk swap "}"#;
    let told = send(&service, "operator", "observe", body).await;
    assert_eq!(told.status, StatusCode::OK, "{}", String::from_utf8_lossy(&told.body));
    assert_eq!(told.json()["observed"]["who"], "operator");
    let pushed = service.post("/v1/applications/app/services/web/push", "{}").await;
    assert_eq!(pushed.status, StatusCode::OK);
    service.rig.until_status("staging", Status::Converged).await;
    let shown = service.get(&format!("{CHANNELS}/production")).await.json();
    assert_eq!(shown["status"], "CONVERGING", "{shown}");
    assert_eq!((&shown["paused"], &shown["observer"]), (&json!(false), &json!(true)));
    assert_eq!(shown["observed"]["reason"], "disk swap");
    let gate = json!({"kind": "observe", "words": "observed by operator"});
    assert_eq!(shown["waitsFor"], json!([gate]));
    let message = shown["message"].as_str().unwrap();
    assert!(message.starts_with("observed by operator (disk swap): it would apply"), "{message}");
    let explained = service.get(&format!("{CHANNELS}/production/explain")).await.json();
    let causes = explained["causes"].as_array().unwrap();
    let cause = causes.iter().find(|cause| cause["code"] == "OBSERVER").unwrap();
    assert_eq!(cause["since"], shown["observed"]["since"]);
    let glance = service.get("/v1/status").await.json();
    let seen = glance["instances"].as_array().unwrap();
    let seen = seen.iter().find(|one| one["channel"] == "production").unwrap();
    assert_eq!(seen["observed"]["who"], "operator", "{glance}");
    // A retry asks for another try, and not for the end of this.
    assert_eq!(send(&service, "operator", "retry", "{}").await.status, StatusCode::OK);
    let jobs = service.get("/v1/jobs?kind=apply&application=app&channel=production").await.json();
    assert_eq!(jobs["total"], 0, "{jobs}");
    let logged = entries(&service, "instance.observe").await;
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert_eq!(logged[0]["actor"], "operator");
    assert!(logged[0]["message"].as_str().unwrap().ends_with(": disk swap"), "{logged:?}");

    let resumed = send(&service, "operator", "resume", "{}").await;
    assert!(resumed.json().get("observed").is_none());
    service.rig.until_status("production", Status::Converged).await;
    assert_eq!(entries(&service, "instance.resume").await.len(), 1);
}

#[tokio::test]
async fn observing_and_pausing_take_each_others_place() {
    let service = started().await;
    send(&service, "operator", "pause", r#"{"reason": "freeze"}"#).await;
    let observed = send(&service, "admin", "observe", "{}").await.json();
    assert_eq!(
        (&observed["paused"], &observed["observed"]["who"]),
        (&json!(false), &json!("admin"))
    );
    let paused = send(&service, "operator", "pause", "{}").await.json();
    assert!(paused["paused"] == true && paused.get("observed").is_none(), "{paused}");
    assert_eq!(entries(&service, "instance.pause").await.len(), 2);
    assert_eq!(entries(&service, "instance.observe").await.len(), 1);
}

#[tokio::test]
async fn it_is_for_whoever_may_pause_and_within_the_limits_of_the_token() {
    let service = started().await;
    service.add(vec![token_with("oncall", limited(&["app"], &["staging"]))]).await;
    for role in ["viewer", "deployer", "approver", "break-glass", "oncall"] {
        let refused = send(&service, role, "observe", "{}").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{role}");
    }
    let wrong = send(&service, "operator", "observe", r#"{"until": "tomorrow"}"#).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    let shown = service.get(&format!("{CHANNELS}/production")).await.json();
    assert!(shown.get("observed").is_none(), "{shown}");
    assert_eq!(entries(&service, "instance.observe").await.len(), 0);
}
