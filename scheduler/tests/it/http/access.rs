//! Who may do what.

use axum::body::Body;
use axum::http::StatusCode;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::store::{Change, Commit};
use schema::status::Role;
use serde_json::json;

use super::{Service, request, token};
use crate::store::at;

#[tokio::test]
async fn health_schemas_and_the_document_are_open() {
    let service = Service::start().await;
    for path in [
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/schemas/",
        "/schemas/config.json",
        "/schemas/fetch-output.json",
    ] {
        let answer = service.ask(request("GET", path, None, Body::empty())).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn wrong_or_expired_token_is_refused_with_the_way_to_a_new_one() {
    let service = Service::start().await;
    let expired = |name: &str, change: fn(&mut pvn_scheduler::store::TokenRow)| match token(
        name,
        Role::Admin,
    ) {
        Change::Token(mut row) => {
            change(&mut row);
            Change::Token(row)
        }
        other => other,
    };
    let changes = vec![
        expired("old", |row| row.expires_at = Some(at(2))),
        expired("ended", |row| row.revoked_at = Some(at(2))),
    ];
    service.rig.store.commit(&Commit { changes, ..Commit::default() }).await.unwrap();
    for (token, part) in [
        ("nobody", "the token is not one of this scheduler's"),
        ("old", "the token `old` has expired; ask an admin for a new one"),
        ("ended", "the token `ended` was revoked; ask an admin for a new one"),
    ] {
        let answer = service.ask(request("GET", "/v1/services", Some(token), Body::empty())).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(answer.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
        assert!(answer.detail().contains(part), "{}", answer.detail());
    }
    let mut basic = request("GET", "/v1/services", None, Body::empty());
    basic.headers_mut().insert("authorization", "Basic YTpi".parse().unwrap());
    assert!(service.ask(basic).await.detail().contains("is not a bearer token"));
}

#[tokio::test]
async fn a_link_makes_one_token_with_its_role_and_an_end() {
    let service = Service::start().await;
    let code = service.sessions.link("viewer", Clock::System.now());
    let sign_in = async |code: &str| {
        let body = Body::from(json!({"code": code}).to_string());
        service.ask(request("POST", "/v1/sign-in", None, body)).await
    };
    let answer = sign_in(&code).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.detail());
    let made = answer.json();
    assert_eq!(made["role"], "viewer");
    assert!(made["name"].as_str().is_some_and(|name| name.starts_with("login-")), "{made}");
    assert!(made["expiresAt"].is_string(), "{made}");
    let token = made["token"].as_str().unwrap();
    let own = service.ask(request("GET", "/v1/whoami", Some(token), Body::empty())).await.json();
    assert_eq!((&own["name"], &own["role"]), (&made["name"], &made["role"]));
    for code in [code.as_str(), "nonsense", ""] {
        let again = sign_in(code).await;
        assert_eq!(again.status, StatusCode::UNAUTHORIZED, "{code}");
        assert!(again.detail().contains("used already"), "{}", again.detail());
    }
}
