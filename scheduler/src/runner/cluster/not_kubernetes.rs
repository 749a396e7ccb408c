//! Answers of somebody else in the API server's place: a page of a proxy, of an ingress without a
//! backend, of a portal. What Kubernetes refuses it refuses with a `Status`; whatever else comes
//! with a code of an error says nothing of what was asked. Called by `clusters`, for every answer.

use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use schema::shown::beginning;
use serde::Deserialize;

/// Longest body of an error that is read. A `Status` has some KiB; with a cause for each field of a
/// large object some hundred.
const STATUS_LIMIT_BYTES: usize = 1 << 20;

/// Most bytes of somebody's words that are told.
const WORDS_LIMIT_BYTES: usize = 120;

/// An answer that Kubernetes does not give.
#[derive(Debug, thiserror::Error)]
#[error("somebody else answers in its place: {code}{said}")]
pub(super) struct NotKubernetes {
    code: StatusCode,
    /// Its first words, after a colon and a blank; empty when it has none.
    said: String,
}

/// As far as every `Status` of an API server has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusMark {
    kind: String,
    api_version: String,
}

/// The same answer, whole where it is that of an error. `is_log`: to a request for the log of a
/// container, which is the one that brings no JSON.
///
/// # Errors
/// When it is none of Kubernetes.
pub(super) async fn of_kubernetes(
    answer: Response<Body>,
    is_log: bool,
) -> Result<Response<Body>, NotKubernetes> {
    let code = answer.status();
    if !code.is_client_error() && !code.is_server_error() {
        let kind = answer
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        // What the command printed is plain text to a kubelet, whatever it is; a page would be
        // shown, and approved, in its place.
        let is_page = is_log && !kind.starts_with("text/plain");
        return if is_page {
            Err(NotKubernetes {
                code,
                said: format!(" with `{}`", beginning(kind, WORDS_LIMIT_BYTES)),
            })
        } else {
            Ok(answer)
        };
    }
    let (head, body) = answer.into_parts();
    // One that breaks, or has no end, is none either.
    let read = Limited::new(body, STATUS_LIMIT_BYTES)
        .collect()
        .await
        .map(|whole| whole.to_bytes())
        .unwrap_or_default();
    // These an API server says in plain words too, before it looks at what is asked: full, and none
    // of ours.
    let is_plain = matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED);
    let is_status = serde_json::from_slice::<StatusMark>(&read)
        .is_ok_and(|mark| mark.kind == "Status" && mark.api_version == "v1");
    if is_plain || is_status {
        return Ok(Response::from_parts(head, Body::from(read)));
    }
    let text = String::from_utf8_lossy(&read);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = if words.is_empty() {
        String::new()
    } else {
        format!(": {}", beginning(&words, WORDS_LIMIT_BYTES))
    };
    Err(NotKubernetes { code, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(code: u16, body: &str) -> Result<String, String> {
        let answer =
            Response::builder().status(code).body(Body::from(body.as_bytes().to_vec())).unwrap();
        let kept = of_kubernetes(answer, false).await.map_err(|other| other.to_string())?;
        Ok(String::from_utf8(kept.into_body().collect().await.unwrap().to_bytes().to_vec())
            .unwrap())
    }

    #[tokio::test]
    async fn only_a_status_is_an_error_of_kubernetes() {
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}"#;
        for (code, body) in [
            (404, status),
            (403, status),
            (500, status),
            (200, "<html>"),
            (302, ""),
            (429, "Too many requests"),
            (401, ""),
        ] {
            assert_eq!(told(code, body).await.as_deref(), Ok(body), "{code}");
        }
        let expected = |code: &str, said: &str| {
            Err(format!("somebody else answers in its place: {code}{said}"))
        };
        assert_eq!(
            told(404, "<html>\n <h1>no backend</h1>").await,
            expected("404 Not Found", ": <html> <h1>no backend</h1>")
        );
        assert_eq!(
            told(403, r#"{"error":"blocked"}"#).await,
            expected("403 Forbidden", r#": {"error":"blocked"}"#)
        );
        assert_eq!(told(503, "").await, expected("503 Service Unavailable", ""));
        let long = told(403, &"x".repeat(STATUS_LIMIT_BYTES + 1)).await;
        assert_eq!(long, expected("403 Forbidden", ""), "what has no end is not kept");
        assert!(told(403, &"x".repeat(1000)).await.unwrap_err().len() < 250);
    }

    #[tokio::test]
    async fn a_log_is_plain_text_and_no_page() {
        let told = async |code: u16, kind: &str| {
            let answer = Response::builder()
                .status(code)
                .header(CONTENT_TYPE, kind)
                .body(Body::from(b"real".to_vec()))
                .unwrap();
            of_kubernetes(answer, true).await.map(drop).map_err(|other| other.to_string())
        };
        for kind in ["text/plain", "text/plain; charset=utf-8"] {
            assert_eq!(told(200, kind).await, Ok(()));
        }
        let expected = "somebody else answers in its place: 200 OK with `text/html; charset=utf-8`";
        assert_eq!(told(200, "text/html; charset=utf-8").await, Err(expected.to_owned()));
        assert!(told(302, "").await.is_err(), "a log is nowhere else");
    }
}
