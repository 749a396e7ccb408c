//! `/assets/{name}`: style, script and icon.

use axum::Router;
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::http::Api;
use crate::http::error::{Error, Result};

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/assets/{name}", get(asset))
}

async fn asset(Path(name): Path<String>) -> Result<Response> {
    let asset = pages::assets::asset(&name).ok_or_else(|| {
        Error::not_found(format!("there is no `{name}` here; reload the page that names it"))
    })?;
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        // Another text has another name.
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, asset.text).into_response())
}
