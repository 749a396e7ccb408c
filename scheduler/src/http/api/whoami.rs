//! `/v1/whoami`: whose token it is that asks.

use axum::Json;
use schema::api::Token;

use crate::http::access::Viewer;
use crate::http::openapi::{Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    routes.get(
        "/v1/whoami",
        whoami,
        about("whoami", "tokens", "The token that asks: its name, what it may, its validity"),
    )
}

async fn whoami(Viewer(token): Viewer) -> Json<Token> {
    Json(token.shown())
}
