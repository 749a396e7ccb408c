//! Errors say what is wrong, where, and what to do next.

use axum::body::Body;
use axum::http::StatusCode;

use super::{Service, request};

async fn check(service: &Service, method: &str, path: &str, body: &str, status: u16, detail: &str) {
    let answer = service.ask(request(method, path, Some("admin"), body.to_owned().into())).await;
    assert_eq!(answer.status.as_u16(), status, "{method} {path}: {}", answer.detail());
    assert_eq!(answer.detail(), detail, "{method} {path}");
}

#[tokio::test]
async fn what_is_not_there_is_named_with_the_way_to_what_is() {
    let service = Service::start().await;
    for (path, detail) in [
        ("/v1/nothing", "there is no `/v1/nothing` here; /openapi.json lists every path"),
        (
            "/v1/v1/services",
            "there is no `/v1/v1/services` here; leave `/v1` out of the scheduler's address",
        ),
        (
            "/v1/applications/x",
            "there is no application `x`; `pvnctl applications list` shows those there are",
        ),
        (
            "/v1/applications/app/services/x",
            "there is no service `x` in application `app`; `pvnctl services list --app app` shows \
             those there are",
        ),
        (
            "/v1/applications/x/services/web",
            "there is no application `x`; `pvnctl applications list` shows those there are",
        ),
        (
            "/v1/applications/app/services/web/channels/x",
            "there is no release channel `x` in application `app`; `pvnctl applications get app` \
             shows those there are",
        ),
        ("/v1/jobs/job-1", "there is no job `job-1`; `pvnctl jobs list` shows those there are"),
        (
            "/v1/jobs/job-00000000000000000000000000000000/logs?stream=stdout",
            "there is no job `job-00000000000000000000000000000000`; `pvnctl jobs list` shows \
             those there are",
        ),
        ("/v1/releases/x", "there is no release `x`; `pvnctl releases list` shows those there are"),
        ("/v1/runtimes/x", "there is no runtime `x`; `pvnctl runtimes list` shows those there are"),
        ("/schemas/x", "there is no schema `x`; /schemas/ lists those there are"),
        (
            "/v1/services?application=x",
            "there is no application `x`; `pvnctl applications list` shows those there are",
        ),
    ] {
        check(&service, "GET", path, "", 404, detail).await;
    }
}

#[tokio::test]
async fn a_wrong_query_is_named() {
    let service = Service::start().await;
    let long = "the filter `service` needs the filter `application` beside it, because names \
                repeat between applications";
    check(&service, "GET", "/v1/jobs?service=web", "", 400, long).await;
    check(
        &service,
        "GET",
        "/v1/jobs?cursor=x",
        "",
        400,
        "cursor `x` is not one that a page of this list gave out",
    )
    .await;
    for (path, part) in [
        ("/v1/jobs?kind=nonsense", "kind: unknown variant `nonsense`"),
        ("/v1/jobs?nonsense=1", "unknown field `nonsense`, expected one of"),
        ("/v1/jobs?limit=-1", "limit: invalid digit"),
        ("/v1/jobs?limit=0", "`limit` is 1 to 1000"),
        ("/v1/services?limit=0", "`limit` is 1 to 1000"),
        ("/v1/tokens?limit=0", "`limit` is 1 to 1000"),
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert!(answer.detail().contains(part), "{}", answer.detail());
    }
}

#[tokio::test]
async fn malformed_json_unknown_field_and_wrong_type_are_named_with_their_path() {
    let service = Service::start().await;
    let path = "/v1/applications/app/services/web/push";
    for (body, part) in [
        ("{", "the body cannot be read: EOF while parsing an object at line 1 column 1"),
        (r#"{"parms": {}}"#, "unknown field `parms`, expected one of `params`"),
        (
            r#"{"paramsForChannel": {"eu": {"a": 1}}}"#,
            "at `paramsForChannel.eu.a`: invalid type: integer `1`, expected a string",
        ),
        (r#"{"params": {"n": "1", "n": "2"}}"#, "at `params`: the key `n` is there twice"),
        (
            r#"{"paramsForChannel": {"eu": {"a": "1"}, "eu": {}}}"#,
            "at `paramsForChannel`: the key `eu` is there twice",
        ),
        (r#"{} {}"#, "the body goes on after its JSON value"),
        ("[]", "the body cannot be read: expected an object, found an array"),
    ] {
        let answer = service.post(path, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(answer.detail().contains(part), "{body}: {}", answer.detail());
    }
}

#[tokio::test]
async fn other_methods_and_media_types_are_refused() {
    let service = Service::start().await;
    let answer = service.ask(request("PATCH", "/v1/services", Some("admin"), Body::empty())).await;
    assert_eq!(
        (answer.status, &answer.headers["allow"]),
        (StatusCode::METHOD_NOT_ALLOWED, &"GET,HEAD".parse().unwrap())
    );
    assert_eq!(
        answer.detail(),
        "`/v1/services` does not take PATCH; the Allow header lists what it takes"
    );
    let mut yaml = request("POST", "/v1/configs", Some("admin"), "a: b".into());
    yaml.headers_mut().insert("content-type", "application/yaml".parse().unwrap());
    let answer = service.ask(yaml).await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(
        answer.detail(),
        "the body is `application/yaml`; send JSON with `Content-Type: application/json`"
    );
    let mut large = request("POST", "/v1/tokens", Some("admin"), "x".repeat((1 << 20) + 1).into());
    large
        .headers_mut()
        .insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
    assert_eq!(
        service.ask(large).await.status,
        StatusCode::PAYLOAD_TOO_LARGE,
        "what is too long is not read to be of the wrong kind"
    );
}

#[tokio::test]
async fn a_secret_that_is_not_base64_is_refused_without_repeating_it() {
    let service = Service::start().await;
    let answer = service
        .ask(request("PUT", "/v1/secrets/x", Some("admin"), r#"{"value": "hunter2!"}"#.into()))
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(!answer.detail().contains("hunter2"), "{}", answer.detail());
}

#[tokio::test]
async fn a_secret_that_is_too_short_to_be_masked_is_set_with_a_warning() {
    let service = Service::start().await;
    // Base64 of `12345` and of `123456`.
    for (value, expected) in [("MTIzNDU=", true), ("MTIzNDU2", false)] {
        let answer = service
            .ask(request(
                "PUT",
                "/v1/secrets/x",
                Some("admin"),
                format!(r#"{{"value": "{value}"}}"#).into(),
            ))
            .await;
        assert_eq!(answer.status, StatusCode::OK);
        let warning = answer.json()["warning"].as_str().map(str::to_owned);
        assert_eq!(
            warning.is_some_and(
                |warning| warning.starts_with("secret `x` is not masked in what jobs print: ")
            ),
            expected,
            "{value}"
        );
    }
}
