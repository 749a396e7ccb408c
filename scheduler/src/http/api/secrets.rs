//! `/v1/secrets`: values go in and never come out.

use axum::Json;
use axum::extract::State;
use axum::response::NoContent;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schema::api::{Page, Secret, SecretRequest, SecretVersion};
use schema::mask::SHORTEST_BYTES;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::{Admin, Viewer};
use crate::http::error::{Error, Result};
use crate::http::extract::{JsonBody, Paging, PathParams, Query, page};
use crate::http::openapi::{Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get(
            "/v1/secrets",
            list,
            about("listSecrets", "secrets", "Keys and versions of secrets, never values"),
        )
        .put("/v1/secrets/{key}", set, about("setSecret", "secrets", "Set a secret's next version"))
        .delete(
            "/v1/secrets/{key}",
            delete,
            about("deleteSecret", "secrets", "Delete all versions of a secret"),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The secret's key, as configs name it.
    key: String,
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(paging): Query<Paging>,
) -> Result<Json<Page<Secret>>> {
    Ok(Json(api.store.secrets(&page(paging.cursor, paging.limit)?).await?))
}

async fn set(
    State(api): State<Api>,
    Admin(caller): Admin,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<SecretRequest>,
) -> Result<Json<SecretVersion>> {
    // What stands around the place may be part of the value, so the decoder's message is not
    // repeated.
    let value = STANDARD.decode(request.value).map_err(|_| {
        Error::bad_request(
            "`value` is not base64 (standard alphabet, padded); `pvnctl secrets set` encodes it",
        )
    })?;
    let warning = (value.len() < SHORTEST_BYTES).then(|| {
        format!(
            "secret `{}` is not masked in what jobs print: it is shorter than {SHORTEST_BYTES} \
             bytes; set a longer one",
            which.key
        )
    });
    let version = match request.if_changed {
        true => api.driver.set_secret_if_changed(which.key.clone(), value, caller).await?,
        false => api.driver.set_secret(which.key.clone(), value, caller).await?,
    };
    Ok(Json(SecretVersion { key: which.key, version, warning }))
}

async fn delete(
    State(api): State<Api>,
    Admin(caller): Admin,
    PathParams(which): PathParams<Which>,
) -> Result<NoContent> {
    api.driver.delete_secret(which.key, caller).await?;
    Ok(NoContent)
}
