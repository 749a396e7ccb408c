//! The pages that people open with a browser: each route asks what the API's does, by the same
//! functions, and has the crate `pages` make HTML of the answer. Everything that reads and every
//! form works without script.
//!
//! What always holds: a browser is let in by its session alone, and sends only what its own page
//! had it send; nothing is loaded from elsewhere and nothing runs that is not ours.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Redirect, Response};
use pages::Rendered;
use pages::frame::{Frame, NavEntry, PageReader};
use schema::api::Problem;
use schema::status::Status;

use super::Api;
use super::access::OfBrowser;
use super::error::{Error, Result};
use super::sessions::{SESSION_LASTS, found};
use crate::store::TokenRow;

mod approvals;
mod assets;
mod configs;
mod deploy;
mod door;
mod jobs;
mod live;
mod output;
mod overview;
mod records;
mod rollback;
mod runtimes;
mod service;
mod services;

/// What a page may load and do: our own, and nothing else. Source: W3C CSP 3.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src \
     'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
);

/// Every page.
pub(super) fn routes(api: &Api) -> Router<Api> {
    let families = [
        door::routes,
        overview::routes,
        services::routes,
        service::routes,
        deploy::routes,
        rollback::routes,
        approvals::routes,
        jobs::routes,
        records::routes,
        runtimes::routes,
        configs::routes,
        live::routes,
    ];
    families
        .into_iter()
        .fold(Router::new(), |router, family| router.merge(family()))
        .layer(from_fn_with_state(api.clone(), for_browsers))
        // Their bytes are everybody's, and they are asked for by pages of before signing in.
        .merge(assets::routes())
}

/// Whether a person asked, with a browser, and not a program.
pub(super) fn is_for_people(headers: &HeaderMap) -> bool {
    text_of(headers, header::ACCEPT).is_some_and(|accepted| accepted.contains("text/html"))
}

/// The page for a path that leads nowhere, with ways out.
pub(super) async fn nowhere(api: &Api, path: &str, headers: &HeaderMap) -> Response {
    let title = "Nothing is here";
    let frame = around(api, title, headers).await;
    let detail = format!("There is no page `{path}`: it never was, or its address is mistyped.");
    dressed(page_with(StatusCode::NOT_FOUND, pages::problem(&frame, title, &detail, &[], "/")))
}

/// What every page passes: it is a browser's, errors become pages, and headers say what it may do.
async fn for_browsers(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let asked = BrowserAsked::of(&request);
    request.extensions_mut().insert(OfBrowser);
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Arc<Problem>>() {
        response = instead_of(&problem, &asked, &api).await;
    }
    dressed(response)
}

/// What the answer may do in a browser.
fn dressed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(POLICY);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What is known of a request when its answer is an error.
struct BrowserAsked {
    /// Path and query.
    path: String,
    /// The page that it came from.
    from: String,
    is_get: bool,
    /// Whether a page of others led here, in which case the browser has held the cookie back.
    is_from_elsewhere: bool,
    /// For its session.
    headers: HeaderMap,
}

impl BrowserAsked {
    fn of(request: &Request) -> Self {
        let text = |name: HeaderName| text_of(request.headers(), name);
        let from = text(header::REFERER).and_then(|from| from.split_once("://"));
        let from = from.and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].to_owned()));
        let path = request.uri().path();
        let site = HeaderName::from_static("sec-fetch-site");
        Self {
            path: request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            from: from.or_else(|| form_stands_on(path)).unwrap_or_else(|| "/".to_owned()),
            is_get: request.method() == Method::GET,
            is_from_elsewhere: matches!(text(site), Some("cross-site" | "same-site")),
            headers: request.headers().clone(),
        }
    }
}

/// The page of the service that has the form which sends to this path.
fn form_stands_on(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/applications/")?;
    let parts: Vec<&str> = rest.split('/').collect();
    match parts.as_slice() {
        [application, "services", service, "channels", channel, _] => {
            Some(format!("/applications/{application}/services/{service}?channel={channel}"))
        }
        [application, "services", service, _] => {
            Some(format!("/applications/{application}/services/{service}"))
        }
        _ => None,
    }
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The page that says what the problem does.
async fn instead_of(problem: &Problem, asked: &BrowserAsked, api: &Api) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == StatusCode::UNAUTHORIZED && asked.is_get && asked.is_from_elsewhere {
        // A link in a chat: asked for once more by a page of ours, the browser sends its cookie.
        return again(&asked.path);
    }
    let now = api.clock.now();
    if status == StatusCode::UNAUTHORIZED {
        let to = if asked.is_get { &asked.path } else { &asked.from };
        let frame = Frame::plain("Sign in", now);
        let hours = SESSION_LASTS.as_secs() / 3600;
        // Whoever comes for the first time is not told that they are not signed in.
        return page_with(status, pages::sign_in(&frame, None, to, hours));
    }
    let frame = around(api, &problem.title, &asked.headers).await;
    let problems: Vec<String> = problem
        .problems
        .iter()
        .map(|one| match one.help.as_deref() {
            Some(help) => format!("{}: {}\n{help}", one.path, one.message),
            None => format!("{}: {}", one.path, one.message),
        })
        .collect();
    let back = if asked.is_get { "/" } else { &asked.from };
    page_with(status, pages::problem(&frame, &problem.title, &problem.detail, &problems, back))
}

/// Has the browser ask for the same path once more, as of a page of ours.
fn again(path: &str) -> Response {
    let refresh = HeaderValue::from_str(&format!("0; url={path}"));
    let refresh = refresh.unwrap_or(HeaderValue::from_static("0; url=/"));
    ([(HeaderName::from_static("refresh"), refresh)], Html("")).into_response()
}

/// A page as an answer.
fn page(rendered: Rendered) -> Result<Response> {
    Ok(Html(rendered.map_err(Error::internal)?).into_response())
}

fn page_with(status: StatusCode, rendered: Rendered) -> Response {
    match page(rendered) {
        Ok(page) => (status, page).into_response(),
        Err(error) => error.into_response(),
    }
}

/// What a form's field says, where it says something.
fn given(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty()).then_some(text)
}

/// A word of a closed set, where one is given.
fn word<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<Option<T>> {
    let read = given(text).map(|text| text.parse().map_err(|error: T::Err| error.to_string()));
    read.transpose().map_err(Error::bad_request)
}

/// On to another page, by GET.
fn on_to(path: &str) -> Response {
    Redirect::to(path).into_response()
}

/// What stands around a page that says what is wrong: as around every other one for whoever has
/// signed in, so that they find on.
async fn around(api: &Api, title: &str, headers: &HeaderMap) -> Frame {
    let plain = || Frame::plain(title, api.clock.now());
    let Some(session) = found(headers, api) else { return plain() };
    let token = api.store.token_named(&session.token).await.ok().flatten();
    match token.filter(|token| token.is_valid(api.clock.now())) {
        Some(token) => {
            frame(api, &token, title, NavEntry::Elsewhere).await.unwrap_or_else(|_| plain())
        }
        None => plain(),
    }
}

/// What stands around a page for whoever asked. To be asked for before what the page shows is read,
/// so that what happens meanwhile is looked at again.
async fn frame(api: &Api, token: &TokenRow, title: &str, entry: NavEntry) -> Result<Frame> {
    let revision = api.driver.revisions().newest();
    let store = api.store.clone();
    let count = async move { Ok(store.count_in(Status::WaitingManualApproval).await?) };
    let waiting = api.together.approvals.get(revision, count).await?;
    Ok(Frame {
        title: title.to_owned(),
        entry,
        reader: Some(PageReader { name: token.name.clone(), rights: token.rights.clone() }),
        waiting,
        live: None,
        revision,
        now: api.clock.now(),
    })
}
