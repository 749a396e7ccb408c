//! Who asks, and whether they may, for the API and for pages alike. A handler names the role it
//! needs by taking [`Viewer`], [`Approver`] or [`Admin`]. The API takes a bearer token, pages the
//! session of a browser, which stands for a token; neither takes the other's.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header;
use axum::http::request::Parts;
use schema::status::Role;

use super::Api;
use super::error::{Error, Result};
use super::limits::SIGN_OF_LIFE;
use super::openapi::{HandlerInput, Operation};
use super::sessions::session;
use crate::driver::Caller;
use crate::store::TokenRow;

const HOW: &str = "send one as `Authorization: Bearer TOKEN`; the first one is in the file \
                   `admin-token` in the scheduler's data directory";

/// The text of the bearer token; `how` says how to get one.
pub(super) fn bearer<'a>(parts: &'a Parts, how: &str) -> Result<&'a str> {
    let Some(value) = parts.headers.get(header::AUTHORIZATION) else {
        return Err(Error::unauthorized(format!("this needs a token: {how}")));
    };
    let text = value.to_str().unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(Error::unauthorized(format!(
            "the Authorization header is not a bearer token: {how}"
        ))),
    }
}

/// Where a request comes from.
pub(super) fn origin(parts: &Parts) -> String {
    parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or_else(|| "local".to_owned(), |peer| peer.0.ip().to_string())
}

/// The caller, when their token has at least this role.
pub(super) async fn caller(parts: &Parts, api: &Api, needed: Role) -> Result<Caller> {
    token(parts, api, needed).await.map(|row| Caller { who: row.name, origin: origin(parts) })
}

/// Marks a request for a page: it comes from a browser.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfBrowser;

/// The caller's token, when it is valid and has at least this role.
async fn token(parts: &Parts, api: &Api, needed: Role) -> Result<TokenRow> {
    let found = if parts.extensions.get::<OfBrowser>().is_some() {
        api.store.token_named(&session(parts, api)?.token).await?
    } else {
        api.store.token(bearer(parts, HOW)?).await?
    };
    let row = admitted(found, api)?;
    if row.role < needed {
        return Err(Error::forbidden(format!(
            "the token `{}` has the role {} and this needs {needed}; use a token with that role, \
             which an admin makes (`auth token create`)",
            row.name, row.role
        )));
    }
    Ok(row)
}

/// A token as it was found, when it opens the door.
pub(super) fn admitted(found: Option<TokenRow>, api: &Api) -> Result<TokenRow> {
    let Some(row) = found else {
        return Err(Error::unauthorized(format!(
            "the token is not one of this scheduler's: {HOW}"
        )));
    };
    if !row.is_valid(api.clock.now()) {
        let end = if row.revoked_at.is_some() { "was revoked" } else { "has expired" };
        return Err(Error::unauthorized(format!(
            "the token `{}` {end}; ask an admin for a new one (`auth token create`)",
            row.name
        )));
    }
    Ok(row)
}

/// Ends when the token does: expired, or revoked. What goes on after a request was let in, a
/// stream, ends with it.
pub(super) async fn until_over(api: Api, mut token: TokenRow) {
    let mut revoked = api.driver.revisions().of_tokens();
    loop {
        match api.store.token_named(&token.name).await {
            Ok(Some(row)) if row.is_valid(api.clock.now()) => token = row,
            Ok(_) => return,
            // The database is away for a moment: what was known last holds on.
            Err(_) if token.is_valid(api.clock.now()) => {}
            Err(_) => return,
        }
        let expired = async {
            match token.expires_at {
                Some(expires_at) => api.clock.sleep_until(expires_at).await,
                None => std::future::pending().await,
            }
        };
        let revoked = async {
            if revoked.changed().await.is_err() {
                std::future::pending().await
            }
        };
        tokio::select! {
            () = expired => {}
            () = revoked => {}
            // Whatever was missed is seen with the next sign of life.
            () = tokio::time::sleep(SIGN_OF_LIFE) => {}
        }
    }
}

macro_rules! role {
    ($type:ident, $role:ident, $keep:ident) => {
        impl FromRequestParts<Api> for $type {
            type Rejection = Error;

            async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
                Ok(Self($keep(parts, api, Role::$role).await?))
            }
        }

        impl HandlerInput for $type {
            fn describe(operation: &mut Operation<'_>) {
                let bearer = serde_json::json!([{"bearer": []}]);
                operation.members.insert("security".to_owned(), bearer);
                operation.explain(&format!(
                    "Needs a token with the role `{}` or a higher one.",
                    Role::$role
                ));
            }
        }
    };
}

/// Somebody who may read, by this token.
pub(super) struct Viewer(pub(super) TokenRow);

/// Somebody who may also approve and reject.
pub(super) struct Approver(pub(super) Caller);

/// Somebody who may do everything.
pub(super) struct Admin(pub(super) Caller);

role!(Viewer, Viewer, token);
role!(Approver, Approver, caller);
role!(Admin, Admin, caller);
