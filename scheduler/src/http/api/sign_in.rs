//! `/v1/sign-in`: a link that the daemon printed, for a client at a terminal.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use schema::api::{NewToken, SignInRequest, TokenRequest};

use crate::clock;
use crate::driver::Caller;
use crate::http::Api;
use crate::http::access::{admitted, origin};
use crate::http::error::{Error, Result};
use crate::http::extract::JsonBody;
use crate::http::openapi::{HandlerInput, Operation, RouteDescription, Routes, about};
use crate::secrets::hex;
use crate::store::TokenRow;

/// How long a token lasts that a client got by a link: it lies on somebody's laptop, and whoever
/// uses it daily signs in again once a month.
const TOKEN_LASTS: Duration = Duration::from_hours(30 * 24);

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "Needs no token: the code of the link, which is used up, stands for one. \
                       The token that comes of it may do the same, and has a name and an end \
                       of its own.";
    routes.post(
        "/v1/sign-in",
        sign_in,
        RouteDescription {
            description,
            ..about("signIn", "tokens", "Make a token of a one-time link")
        },
    )
}

/// Where a request comes from.
struct CallerOrigin(String);

impl FromRequestParts<Api> for CallerOrigin {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &Api,
    ) -> std::result::Result<Self, Infallible> {
        Ok(Self(origin(parts)))
    }
}

impl HandlerInput for CallerOrigin {
    fn describe(_: &mut Operation<'_>) {}
}

async fn sign_in(
    State(api): State<Api>,
    CallerOrigin(origin): CallerOrigin,
    JsonBody(request): JsonBody<SignInRequest>,
) -> Result<Json<NewToken>> {
    let found = match api.sessions.use_link(&request.code, api.clock.now()) {
        Some(name) => api.store.token_named(&name).await?,
        None => None,
    };
    let row = match found {
        Some(row) => admitted(Some(row), &api)?,
        None => return Err(used_up()),
    };
    let TokenRow { name, rights, .. } = row;
    let texts = |names: Vec<String>| (!names.is_empty()).then_some(names);
    let made = TokenRequest {
        name: format!("login-{}", hex(&clock::random::<8>())),
        valid_for_seconds: Some(TOKEN_LASTS.as_secs()),
        roles: rights.roles.to_vec(),
        applications: texts(rights.scope.applications.iter().map(ToString::to_string).collect()),
        channels: texts(rights.scope.channels.iter().map(ToString::to_string).collect()),
        ..TokenRequest::default()
    };
    Ok(Json(api.driver.create_token(made, Caller::unlimited(name, origin)).await?))
}

fn used_up() -> Error {
    Error::unauthorized(
        "this link was used already, or is too old: start the scheduler again for another one, or \
         sign in with a token"
            .to_owned(),
    )
}
