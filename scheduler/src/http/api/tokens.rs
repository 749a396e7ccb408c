//! `/v1/tokens`: who may use the API.

use axum::Json;
use axum::extract::State;
use axum::response::NoContent;
use schema::api::{NewToken, Page, Token, TokenRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::Admin;
use crate::http::error::Result;
use crate::http::extract::{JsonBody, Paging, PathParams, Query, page};
use crate::http::openapi::{RouteDescription, Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "The value is in this answer and nowhere else.";
    routes
        .get(
            "/v1/tokens",
            list,
            about("listTokens", "tokens", "Tokens with what each may do and where, never values"),
        )
        .post(
            "/v1/tokens",
            create,
            RouteDescription { description, ..about("createToken", "tokens", "Make a token") },
        )
        .delete("/v1/tokens/{name}", revoke, about("revokeToken", "tokens", "End a token at once"))
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The token's name.
    name: String,
}

async fn list(
    State(api): State<Api>,
    _: Admin,
    Query(paging): Query<Paging>,
) -> Result<Json<Page<Token>>> {
    Ok(Json(api.store.tokens(&page(paging.cursor, paging.limit)?).await?))
}

async fn create(
    State(api): State<Api>,
    Admin(caller): Admin,
    JsonBody(request): JsonBody<TokenRequest>,
) -> Result<Json<NewToken>> {
    Ok(Json(api.driver.create_token(request, caller).await?))
}

async fn revoke(
    State(api): State<Api>,
    Admin(caller): Admin,
    PathParams(which): PathParams<Which>,
) -> Result<NoContent> {
    api.driver.revoke_token(which.name, caller).await?;
    Ok(NoContent)
}
