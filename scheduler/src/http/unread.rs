//! Reads what a refusal left of a request's body. Called by `serve` around every handler.
//!
//! A server that answers early and closes breaks the connection of a client that is still sending,
//! which then says "broken pipe" where the answer says what to do: that the token has expired, say.
//! The answer does not wait for the rest: who pauses in the middle of a body that is too long is
//! told so at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt, stream};

use super::limits::{DRAIN_BYTES, REQUEST_TIMEOUT};

type Shared = Arc<Mutex<BodyDataStream>>;

/// Answers; after a refusal the rest of the body is read, at most [`DRAIN_BYTES`] of it, and thrown
/// away.
pub(super) async fn read_to_the_end(request: Request, next: Next) -> Response {
    // Who asks first sends nothing before our answer, and must not be told to.
    if request.body().is_end_stream() || request.headers().contains_key(EXPECT) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let shared: Shared = Arc::new(Mutex::new(body.into_data_stream()));
    let pieces = Arc::clone(&shared);
    let body =
        Body::from_stream(stream::poll_fn(move |context| lock(&pieces).poll_next_unpin(context)));
    let response = next.run(Request::from_parts(parts, body)).await;
    if response.status().is_client_error() || response.status().is_server_error() {
        let rest = std::mem::replace(&mut *lock(&shared), Body::empty().into_data_stream());
        // Ends with the connection at the latest, and by itself when a piece of the body is too
        // long in coming.
        tokio::spawn(tokio::time::timeout(REQUEST_TIMEOUT, throw_away(rest)));
    }
    response
}

async fn throw_away(mut rest: BodyDataStream) {
    let mut total = 0;
    while total <= DRAIN_BYTES
        && let Some(Ok(piece)) = rest.next().await
    {
        total += piece.len();
    }
}

/// Nothing panics while it is held; if it did, the stream would be whole all the same.
fn lock(shared: &Shared) -> MutexGuard<'_, BodyDataStream> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
