//! Who asks, and whether they may. A handler names the role it needs by taking [`Viewer`], [`Approver`] or [`Admin`].

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header;
use axum::http::request::Parts;
use schema::status::Role;

use super::Api;
use super::error::{Error, Result};
use super::openapi::{Input, Operation};
use crate::driver::Caller;

const HOW: &str = "send one as `Authorization: Bearer TOKEN`; the first one is in the file `admin-token` in the scheduler's data directory";

/// The text of the bearer token; `how` says how to get one.
pub(super) fn bearer<'a>(parts: &'a Parts, how: &str) -> Result<&'a str> {
    let Some(value) = parts.headers.get(header::AUTHORIZATION) else {
        return Err(Error::unauthorized(format!("this needs a token: {how}")));
    };
    let text = value.to_str().unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(Error::unauthorized(format!("the Authorization header is not a bearer token: {how}"))),
    }
}

/// Where a request comes from.
pub(super) fn origin(parts: &Parts) -> String {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map_or_else(|| "local".to_owned(), |peer| peer.0.ip().to_string())
}

/// The caller, when their token has at least this role.
pub(super) async fn caller(parts: &Parts, api: &Api, needed: Role) -> Result<Caller> {
    let token = bearer(parts, HOW)?;
    let Some(row) = api.store.token(token).await? else {
        return Err(Error::unauthorized(format!("the token is not one of this scheduler's: {HOW}")));
    };
    if !row.is_valid(api.clock.now()) {
        let end = if row.revoked_at.is_some() { "was revoked" } else { "has expired" };
        return Err(Error::unauthorized(format!("the token `{}` {end}; ask an admin for a new one: `pvnctl auth token create`", row.name)));
    }
    if row.role < needed {
        return Err(Error::forbidden(format!(
            "the token `{}` has the role {} and this needs {needed}; use a token with that role, which an admin makes with `pvnctl auth token create`",
            row.name, row.role
        )));
    }
    Ok(Caller { who: row.name, origin: origin(parts) })
}

macro_rules! role {
    ($type:ident, $role:ident, |$caller:ident| $keep:expr) => {
        impl FromRequestParts<Api> for $type {
            type Rejection = Error;

            async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
                let $caller = caller(parts, api, Role::$role).await?;
                Ok($keep)
            }
        }

        impl Input for $type {
            fn describe(operation: &mut Operation<'_>) {
                operation.members.insert("security".to_owned(), serde_json::json!([{"bearer": []}]));
                operation.explain(&format!("Needs a token with the role `{}` or a higher one.", Role::$role));
            }
        }
    };
}

/// Somebody who may read.
pub(super) struct Viewer;

/// Somebody who may also approve and reject.
pub(super) struct Approver(pub(super) Caller);

/// Somebody who may do everything.
pub(super) struct Admin(pub(super) Caller);

role!(Viewer, Viewer, |_caller| Self);
role!(Approver, Approver, |caller| Self(caller));
role!(Admin, Admin, |caller| Self(caller));
