//! Who asks, and whether they may, for the API and for pages alike. A handler names the
//! [`Capability`] that it needs by taking [`Viewer`], [`DryRunner`], [`Deployer`], [`Approver`],
//! [`Operator`], [`WindowOpener`] or [`Admin`]; in which applications and channels the caller has
//! it is decided where rows are found, by [`Caller`]. The API takes a bearer token, pages the
//! session of a browser, which stands for a token; neither takes the other's.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header;
use axum::http::request::Parts;
use schema::access::{Capability, TokenScope, list};

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

/// The caller, when their token may do this.
pub(super) async fn caller(parts: &Parts, api: &Api, needed: Capability) -> Result<Caller> {
    let TokenRow { name, rights, .. } = token(parts, api, needed).await?;
    Ok(Caller { who: name, origin: origin(parts), scope: rights.scope })
}

/// Marks a request for a page: it comes from a browser.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfBrowser;

/// The caller's token, when it is valid and may do this.
async fn token(parts: &Parts, api: &Api, needed: Capability) -> Result<TokenRow> {
    let found = if parts.extensions.get::<OfBrowser>().is_some() {
        api.store.token_named(&session(parts, api)?.token).await?
    } else {
        api.store.token(bearer(parts, HOW)?).await?
    };
    let row = admitted(found, api)?;
    may(&row, needed)?;
    Ok(row)
}

/// Whether a token may do this.
pub(super) fn may(row: &TokenRow, needed: Capability) -> Result<()> {
    if row.rights.may(needed) {
        return Ok(());
    }
    let limited = match row.rights.scope.is_everything() {
        true => String::new(),
        false => format!(" and is limited to {}", row.rights.scope.in_words()),
    };
    let roles: Vec<&str> = needed.roles().map(|role| role.as_str()).collect();
    Err(Error::forbidden(format!(
        "the token `{}` has {}{limited}, and {} needs the role {}; use a token with that role, \
         which an admin makes (`auth token create NAME --role {}`)",
        row.name,
        row.rights.roles.in_words(),
        needed.in_words(),
        list(&roles, "or"),
        needed.least_role()
    )))
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

/// What an operation of the document says that it needs: a word of [`Capability`].
const NEEDS: &str = "x-needs";

/// Says what an operation needs.
pub(super) fn describe_needed(operation: &mut Operation<'_>, needed: Capability) {
    let roles: Vec<String> = needed.roles().map(|role| format!("`{role}`")).collect();
    let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
    operation.members.insert("security".to_owned(), serde_json::json!([{"bearer": []}]));
    operation.members.insert(NEEDS.to_owned(), needed.as_str().into());
    operation.explain(&format!("Needs a token with the role {}.", list(&roles, "or")));
}

macro_rules! needs {
    ($type:ident, $capability:ident, $keep:ident) => {
        impl FromRequestParts<Api> for $type {
            type Rejection = Error;

            async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
                Ok(Self($keep(parts, api, Capability::$capability).await?))
            }
        }

        impl HandlerInput for $type {
            fn describe(operation: &mut Operation<'_>) {
                describe_needed(operation, Capability::$capability);
            }
        }
    };
}

/// Somebody who may read, by this token.
pub(super) struct Viewer(pub(super) TokenRow);

/// Somebody who may run a command that changes nothing.
pub(super) struct DryRunner(pub(super) Caller);

/// Somebody who may release.
pub(super) struct Deployer(pub(super) Caller);

/// Somebody who may approve and reject.
pub(super) struct Approver(pub(super) Caller);

/// Somebody who may pause, observe, retry, cancel.
pub(super) struct Operator(pub(super) Caller);

/// Somebody who may let a release start outside its window.
pub(super) struct WindowOpener(pub(super) Caller);

/// Somebody who may change configs, secrets and tokens.
pub(super) struct Admin(pub(super) Caller);

needs!(Viewer, Read, token);
needs!(DryRunner, DryRun, caller);
needs!(Deployer, Push, caller);
needs!(Approver, Approve, caller);
needs!(Operator, Operate, caller);
needs!(WindowOpener, OpenWindow, caller);
needs!(Admin, Administer, caller);

/// Somebody who sends configs: whoever may read compares them with what is stored, and who may
/// change them is asked once it is read whether they are to be.
pub(super) struct ConfigSender {
    token: TokenRow,
    origin: String,
}

impl FromRequestParts<Api> for ConfigSender {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let token = token(parts, api, Capability::Read).await?;
        Ok(Self { token, origin: origin(parts) })
    }
}

impl HandlerInput for ConfigSender {
    fn describe(operation: &mut Operation<'_>) {
        describe_needed(operation, Capability::Administer);
        operation.explain("With `dryRun` any role will do.");
    }
}

impl ConfigSender {
    /// The caller, who may store configs or only compares them.
    pub(super) fn caller(self, is_dry_run: bool) -> Result<Caller> {
        if !is_dry_run {
            may(&self.token, Capability::Administer)?;
        }
        // What only compares changes nothing, within limits or beyond.
        Ok(Caller { who: self.token.name, origin: self.origin, scope: TokenScope::default() })
    }
}
