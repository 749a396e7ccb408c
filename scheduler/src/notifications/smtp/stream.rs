//! The connection to a mail server, of which only so much is read: `lettre` reads a line as long as
//! the server makes it, and TLS frames below that. What goes over it is `smtp`'s business.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::io::{AsyncRead as PlainRead, AsyncWrite as PlainWrite};
#[expect(
    deprecated,
    reason = "nothing else of lettre begins TLS on a connection that is there"
)]
use lettre::transport::smtp::client::AsyncNetworkStream;
use lettre::transport::smtp::client::{AsyncTokioStream, TlsParameters};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How long one address of a server may take to be connected to: it may have others.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Bytes that are read of a server for one message. Its certificates are some KiB; an answer is at
/// most 512 bytes a line (RFC 5321, 4.5.3.1.5), and for 20 recipients there are some 30 of them.
pub(super) const READ_LIMIT_BYTES: usize = 256 << 10;

/// A connection that is read no further than that.
#[derive(Debug)]
pub(super) struct BoundedStream {
    stream: TcpStream,
    left: usize,
}

impl BoundedStream {
    /// To the first address of the server that answers.
    ///
    /// # Errors
    /// It has none, or none answers.
    pub(super) async fn connect(host: &str, port: u16) -> io::Result<Self> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in tokio::net::lookup_host((host, port)).await? {
            match tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(Self { stream, left: READ_LIMIT_BYTES }),
                Ok(Err(error)) => failed = error,
                Err(_) => {
                    let why = format!("no connection within {CONNECT_WITHIN:?}");
                    failed = io::Error::new(io::ErrorKind::TimedOut, why);
                }
            }
        }
        Err(failed)
    }

    /// The same encrypted from here on.
    ///
    /// # Errors
    /// TLS does not come about, as with a certificate that nobody vouches for.
    pub(super) async fn encrypted(
        self,
        tls: TlsParameters,
    ) -> Result<EncryptedStream, lettre::transport::smtp::Error> {
        #[expect(deprecated, reason = "as above")]
        let mut stream = AsyncNetworkStream::use_existing_tokio1(Box::new(self));
        stream.upgrade_tls(tls).await?;
        Ok(EncryptedStream(stream))
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::Error::other(format!(
                "it says more than {} KiB, which no mail server has to say",
                READ_LIMIT_BYTES >> 10
            ))));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        let read = into.filled().len() - before;
        self.left = self.left.saturating_sub(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncTokioStream for BoundedStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

/// TLS over a [`BoundedStream`].
#[derive(Debug)]
#[expect(deprecated, reason = "as above")]
pub(super) struct EncryptedStream(AsyncNetworkStream);

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = Pin::new(&mut self.0);
        let read = ready!(PlainRead::poll_read(stream, context, into.initialize_unfilled()))?;
        into.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        PlainWrite::poll_write(Pin::new(&mut self.0), context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        PlainWrite::poll_flush(Pin::new(&mut self.0), context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        PlainWrite::poll_close(Pin::new(&mut self.0), context)
    }
}

impl AsyncTokioStream for EncryptedStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}
