//! Serves the router: limits on connections and waits, faults turned into problems, a soft stop and then a hard one.

use std::any::Any;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{AddExtension, Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsAcceptor;
use futures::future::{Ready, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

use super::error::Error;
use super::limits::{BODY_SILENCE, CONNECTIONS, HEAD_TIMEOUT, REQUEST_TIMEOUT, STOP_WITHIN};
use super::unread::read_to_the_end;
use super::{Api, Tls};

/// Serves until `stop`, then finishes what is under way for a while. `listener` must be non-blocking. Without `tls` in the
/// clear.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, api: Api, stop: CancellationToken) -> io::Result<()> {
    let limited = Limited(Arc::new(Semaphore::new(CONNECTIONS)));
    match tls {
        None => serve_by(limited, listener, api, stop).await,
        Some(tls) => {
            let acceptor = RustlsAcceptor::new(tls.config.clone()).handshake_timeout(HEAD_TIMEOUT).acceptor(limited);
            tokio::select! {
                ended = serve_by(acceptor, listener, api, stop) => ended,
                () = tls.keep_fresh() => Ok(()),
            }
        }
    }
}

/// What answers on one connection: the router, and who is at the other end.
type OfConnection = AddExtension<Router, ConnectInfo<SocketAddr>>;

async fn serve_by<A>(acceptor: A, listener: TcpListener, api: Api, stop: CancellationToken) -> io::Result<()>
where
    A: Accept<TcpStream, OfConnection, Service = OfConnection> + Clone + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
    A::Future: Send,
{
    let handle = axum_server::Handle::new();
    let mut server = axum_server::from_tcp(listener)?.acceptor(acceptor).handle(handle.clone());
    server.http_builder().http1().timer(hyper_util::rt::TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let service = super::router(api).into_make_service_with_connect_info::<SocketAddr>();
    let stopping = async {
        stop.cancelled().await;
        handle.graceful_shutdown(Some(STOP_WITHIN));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = server.serve(service) => ended,
        () = stopping => Ok(()),
    }
}

/// The router with what every request passes: panics, timeouts and unknown paths become problems.
pub(super) fn guarded(router: Router<Api>) -> Router<Api> {
    router
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn(read_to_the_end))
        .layer(from_fn(in_time))
        .layer(RequestBodyTimeoutLayer::new(BODY_SILENCE))
        .layer(CatchPanicLayer::custom(after_panic))
}

async fn no_such_path(uri: Uri) -> Error {
    Error::not_found(format!("there is no `{}` here; /openapi.json lists every path", uri.path()))
}

async fn no_such_method(method: Method, uri: Uri) -> Error {
    Error::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        format!("`{}` does not take {method}; the Allow header lists what it takes", uri.path()),
    )
}

async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Error::unavailable(format!(
            "there was no answer within {} s; look whether it was done before you ask again",
            REQUEST_TIMEOUT.as_secs()
        ))
        .into_response(),
    }
}

fn after_panic(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Error::internal(format!("a handler panicked: {}", text.unwrap_or("without words"))).into_response()
}

/// Accepts as many connections as there is room for, and closes the rest at once.
#[derive(Clone)]
struct Limited(Arc<Semaphore>);

impl<S> Accept<TcpStream, S> for Limited {
    type Stream = Held;
    type Service = S;
    type Future = Ready<io::Result<(Held, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        ready(match Arc::clone(&self.0).try_acquire_owned() {
            Ok(permit) => stream.set_nodelay(true).map(|()| (Held { stream, _permit: permit }, service)),
            Err(_) => Err(io::Error::other("too many connections")),
        })
    }
}

/// A connection that counts until it is dropped.
struct Held {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Held {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Held {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    #[test]
    fn a_panic_is_a_problem_that_does_not_show_its_cause() {
        let response = after_panic(Box::new("the secret is hunter2".to_owned()));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[header::CONTENT_TYPE], super::super::error::PROBLEM);
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_and_make_room_when_they_end() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = Limited(Arc::new(Semaphore::new(1)));
        let connect = async || {
            let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
            (client.unwrap(), server.unwrap().0)
        };
        let (_first, server) = connect().await;
        let held = acceptor.accept(server, ()).await.unwrap();
        let (_second, server) = connect().await;
        assert!(acceptor.accept(server, ()).await.is_err());
        drop(held);
        let (_third, server) = connect().await;
        assert!(acceptor.accept(server, ()).await.is_ok());
    }
}
