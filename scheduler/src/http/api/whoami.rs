//! `/v1/whoami`: whose token it is that asks.

use axum::Json;
use schema::api::Token;

use crate::http::access::Viewer;
use crate::http::openapi::{Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    routes.get(
        "/v1/whoami",
        whoami,
        about("whoami", "tokens", "The token that asks: its name, role and validity"),
    )
}

async fn whoami(Viewer(token): Viewer) -> Json<Token> {
    Json(Token {
        name: token.name,
        role: token.role,
        created_at: token.created_at,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
    })
}
