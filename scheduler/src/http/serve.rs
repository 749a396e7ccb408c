//! Serves the router: limits on connections and waits, faults turned into problems, a soft stop and
//! then a hard one.

use std::any::Any;
use std::io;
use std::net::{SocketAddr, TcpListener};

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::{AddExtension, Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsAcceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

use super::connections::Connections;
use super::error::{Error, ErrorKind};
use super::limits::{BODY_SILENCE, ConnectionLimits, REQUEST_TIMEOUT, STOP_WITHIN};
use super::pages::{is_for_people, nowhere};
use super::unread::read_to_the_end;
use super::{Api, Tls};

/// Serves until `stop`, then finishes what is under way for a while. `listener` must be
/// non-blocking. Without `tls` in the clear.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    api: Api,
    stop: CancellationToken,
) -> io::Result<()> {
    serve_with(api.limits, listener, tls, super::router(api), stop).await
}

async fn serve_with(
    limits: ConnectionLimits,
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    let connections = Connections::new(limits);
    match tls {
        None => serve_by(connections, limits, listener, router, stop).await,
        Some(tls) => {
            let acceptor = RustlsAcceptor::new(tls.config.clone())
                .handshake_timeout(limits.head)
                .acceptor(connections);
            tokio::select! {
                ended = serve_by(acceptor, limits, listener, router, stop) => ended,
                () = tls.keep_fresh() => Ok(()),
            }
        }
    }
}

/// What answers on one connection: the router, and who is at the other end.
type OfConnection = AddExtension<Router, ConnectInfo<SocketAddr>>;

async fn serve_by<A>(
    acceptor: A,
    limits: ConnectionLimits,
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()>
where
    A: Accept<TcpStream, OfConnection, Service = OfConnection> + Clone + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
    A::Future: Send,
{
    let handle = axum_server::Handle::new();
    // Finding out which HTTP is spoken waits without a limit, and nobody speaks HTTP/2 with us: TLS
    // does not offer it.
    let mut server =
        axum_server::from_tcp(listener)?.acceptor(acceptor).handle(handle.clone()).http1_only();
    server
        .http_builder()
        .http1()
        .timer(hyper_util::rt::TokioTimer::new())
        .header_read_timeout(limits.head);
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
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

async fn no_such_path(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Response {
    let way = match uri.path().starts_with("/v1/v1/") {
        // An address that was given with the path that clients add.
        true => "leave `/v1` out of the scheduler's address",
        false => "/openapi.json lists every path",
    };
    let error = Error::not_found(format!("there is no `{}` here; {way}", uri.path()));
    match is_for_people(&headers) {
        true => nowhere(&api, uri.path(), &headers).await,
        false => error.into_response(),
    }
}

async fn no_such_method(method: Method, uri: Uri) -> Error {
    Error::new(
        ErrorKind::MethodNotAllowed,
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
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    Error::internal(format!("a handler panicked: {}", text.unwrap_or("without words")))
        .into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::{StatusCode, header};

    use super::*;

    #[test]
    fn a_panic_is_a_problem_that_does_not_show_its_cause() {
        let response = after_panic(Box::new("the secret is hunter2".to_owned()));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[header::CONTENT_TYPE], super::super::error::PROBLEM);
    }

    /// A server on a port of its own that answers `GET /` and takes bodies of at most 1 KiB,
    /// hanging up after half a second.
    async fn listen(tls: Option<Tls>) -> (SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let small = axum::extract::DefaultBodyLimit::max(1024);
        let router = Router::new()
            .route(
                "/",
                axum::routing::get(async || "hello")
                    .post(async |body: axum::body::Bytes| body.len().to_string()),
            )
            .layer(small)
            .layer(from_fn(read_to_the_end))
            .layer(RequestBodyTimeoutLayer::new(BODY_SILENCE));
        let half_a_second = std::time::Duration::from_millis(500);
        let limits = ConnectionLimits {
            all: 8,
            of_one_address: 8,
            kept_for_this_machine: 0,
            head: half_a_second,
            ..ConnectionLimits::default()
        };
        let stop = CancellationToken::new();
        tokio::spawn(serve_with(limits, listener, tls, router, stop.clone()));
        (address, stop)
    }

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.unwrap()
    }

    /// What comes until the other side hangs up, within ten seconds.
    async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
        let mut bytes = Vec::new();
        let read = tokio::io::AsyncReadExt::read_to_end(stream, &mut bytes);
        // A connection that was broken says the same as one that was closed.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(10), read)
            .await
            .expect("the server hangs up");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn send(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
        tokio::io::AsyncWriteExt::write_all(stream, text.as_bytes()).await.unwrap();
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    #[tokio::test]
    async fn who_says_nothing_or_not_enough_is_hung_up_on() {
        let (address, _stop) = listen(None).await;
        for said in [
            "",
            "P",
            "PRI * HTTP/2.0\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            let mut stream = connect(address).await;
            send(&mut stream, said).await;
            let told = rest(&mut stream).await;
            assert_eq!(told.contains("hello"), said.ends_with("\r\n\r\n"), "{said:?}: {told}");
        }
    }

    #[tokio::test]
    async fn http_2_is_not_spoken() {
        let (address, _stop) = listen(None).await;
        let mut stream = connect(address).await;
        send(&mut stream, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0").await;
        rest(&mut stream).await;
    }

    #[tokio::test]
    async fn silent_connections_shut_nobody_out() {
        let (address, _stop) = listen(None).await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(connect(address).await);
            let mut asks = connect(address).await;
            send(&mut asks, GET).await;
            assert!(rest(&mut asks).await.contains("hello"));
        }
    }

    #[tokio::test]
    async fn silence_is_no_longer_over_tls() {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let files = crate::http::TlsFiles {
            certificate: directory.path().join("cert.pem"),
            key: directory.path().join("key.pem"),
        };
        std::fs::write(&files.certificate, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        let (address, _stop) = listen(Some(Tls::open(files).unwrap())).await;
        // Neither before the handshake nor within it.
        for said in ["", "\u{16}\u{3}\u{1}"] {
            let mut stream = connect(address).await;
            send(&mut stream, said).await;
            rest(&mut stream).await;
        }
    }

    #[tokio::test]
    async fn a_body_over_its_limit_is_answered_while_its_sender_pauses() {
        let (address, _stop) = listen(None).await;
        for head in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
            let mut stream = connect(address).await;
            let piece = if head.starts_with('T') {
                format!("7D0\r\n{}\r\n", "x".repeat(2000))
            } else {
                "x".repeat(2000)
            };
            send(&mut stream, &format!("POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{piece}"))
                .await;
            let mut told = [0; 12];
            let read = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut told);
            // Far below the silence after which a body is given up.
            tokio::time::timeout(BODY_SILENCE / 4, read).await.expect("an answer at once").unwrap();
            assert_eq!(std::str::from_utf8(&told).unwrap(), "HTTP/1.1 413", "{head}");
            // Whoever goes on sending is listened to, so that the answer is not lost in a broken
            // connection.
            send(&mut stream, &piece.repeat(200)).await;
        }
    }
}
