//! `/sign-in` and `/sign-out`: a token once, then a session; or a link that the daemon printed.

use axum::Router;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use pages::frame::Frame;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{on_to, page, page_with};
use crate::http::Api;
use crate::http::access::admitted;
use crate::http::error::{Error, Result};
use crate::http::extract::{Query, read};
use crate::http::limits::BODY_BYTES;
use crate::http::sessions::{SESSION_LASTS, held, is_own, set_cookie};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/sign-in", get(form).post(sign_in))
        .route("/sign-in/once", get(once))
        .route("/sign-out", post(sign_out))
}

/// What a form sends, at most 1 MiB of it.
pub(super) struct FormBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for FormBody<T> {
    type Rejection = Error;

    async fn from_request(request: Request, api: &Api) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, BODY_BYTES).await?;
        let request = Request::from_parts(parts, bytes.into());
        match axum::Form::from_request(request, api).await {
            Ok(axum::Form(value)) => Ok(Self(value)),
            Err(rejection) => Err(Error::bad_request(format!(
                "the form cannot be read: {}; reload the page and send it again",
                rejection.body_text()
            ))),
        }
    }
}

#[derive(Deserialize)]
struct Destination {
    /// Where to go on to.
    #[serde(default)]
    to: String,
}

#[derive(Deserialize)]
struct SignIn {
    token: String,
    #[serde(default)]
    to: String,
}

#[derive(Deserialize)]
struct OneTimeLink {
    code: String,
    #[serde(default)]
    to: String,
}

/// A path of ours, whatever was given: never an address of others (`//host`, `/\host`).
fn own_path(to: &str) -> &str {
    let is_own = to.starts_with('/')
        && !to[1..].starts_with(['/', '\\'])
        && !to.starts_with("/sign-")
        && to.bytes().all(|byte| byte > b' ' && byte.is_ascii());
    if is_own { to } else { "/" }
}

async fn form(State(api): State<Api>, Query(asked): Query<Destination>) -> Result<Response> {
    let frame = Frame::plain("Sign in", api.clock.now());
    page(pages::sign_in(&frame, None, own_path(&asked.to), SESSION_LASTS.as_secs() / 3600))
}

/// Begins a session and goes on.
fn signed_in(api: &Api, headers: &HeaderMap, token: &str, to: &str) -> Response {
    if let Some(before) = held(headers) {
        api.sessions.end(&before);
    }
    let text = api.sessions.begin(token, api.clock.now());
    let cookie = set_cookie(headers, &text, api.is_tls);
    ([(header::SET_COOKIE, cookie)], on_to(own_path(to))).into_response()
}

async fn sign_in(
    State(api): State<Api>,
    headers: HeaderMap,
    FormBody(form): FormBody<SignIn>,
) -> Result<Response> {
    is_own(&Method::POST, &headers)?;
    let found = api.store.token(form.token.trim()).await?;
    match admitted(found, &api) {
        Ok(row) => Ok(signed_in(&api, &headers, &row.name, &form.to)),
        Err(error) => {
            let frame = Frame::plain("Sign in", api.clock.now());
            let (to, hours) = (own_path(&form.to), SESSION_LASTS.as_secs() / 3600);
            let said = error.detail();
            Ok(page_with(StatusCode::FORBIDDEN, pages::sign_in(&frame, Some(said), to, hours)))
        }
    }
}

async fn once(
    State(api): State<Api>,
    headers: HeaderMap,
    Query(link): Query<OneTimeLink>,
) -> Result<Response> {
    let found = match api.sessions.use_link(&link.code, api.clock.now()) {
        Some(name) => api.store.token_named(&name).await?,
        None => None,
    };
    if let Ok(row) = admitted(found, &api) {
        return Ok(signed_in(&api, &headers, &row.name, &link.to));
    }
    let frame = Frame::plain("Sign in", api.clock.now());
    let said = "this link was used already, or is too old: start the scheduler again for another \
                one, or sign in with a token";
    let (to, hours) = (own_path(&link.to), SESSION_LASTS.as_secs() / 3600);
    Ok(page_with(StatusCode::FORBIDDEN, pages::sign_in(&frame, Some(said), to, hours)))
}

async fn sign_out(State(api): State<Api>, headers: HeaderMap) -> Result<Response> {
    is_own(&Method::POST, &headers)?;
    if let Some(text) = held(&headers) {
        api.sessions.end(&text);
    }
    let cookie = set_cookie(&headers, "", api.is_tls);
    Ok(([(header::SET_COOKIE, cookie)], on_to("/sign-in")).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_to_another_host_or_in_a_circle() {
        for to in ["/services?name=a", "/", "/jobs/x#e1"] {
            assert_eq!(own_path(to), to);
        }
        for to in
            ["", "//evil", "/\\evil", "https://evil", "/a\r\nb", "/sign-in", "/sign-out", "/ä"]
        {
            assert_eq!(own_path(to), "/", "{to}");
        }
    }
}
