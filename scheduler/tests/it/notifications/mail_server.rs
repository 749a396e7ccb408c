//! A real mail server over a socket: keeps what it took, lets people in, and does at a command what
//! the test says.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// What it does instead of saying yes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Says(&'static str),
    Hangs,
    /// It goes on with a line that never ends.
    NeverEnds,
    /// The connection ends: at `.` after the mail is taken.
    Closes,
}

/// What it took and heard.
#[derive(Debug, Default)]
struct Kept {
    mails: Vec<TakenMail>,
    commands: Vec<String>,
}

/// A mail with whom it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TakenMail {
    pub(super) to: Vec<String>,
    pub(super) text: String,
}

impl TakenMail {
    pub(super) fn header(&self, name: &str) -> &str {
        let start = format!("{name}: ");
        self.text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default()
    }
}

/// The server; it ends with this.
#[derive(Debug)]
pub(super) struct MailServer {
    pub(super) address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
    _task: AbortOnDropHandle<()>,
}

/// How it is spoken to.
#[derive(Clone)]
pub(super) enum ServerTls {
    Never,
    FromTheStart(TlsAcceptor),
    Offered(TlsAcceptor),
}

/// What a server shows who it is, and who vouches for that.
pub(super) struct Identity {
    pub(super) acceptor: TlsAcceptor,
    /// The authority, in PEM.
    pub(super) authority: String,
}

impl Identity {
    /// One for this name, by an authority of its own.
    pub(super) fn of(name: &str) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let pem = authority.self_signed(&authority_key).unwrap().pem();
        let (key, issuer) = (KeyPair::generate().unwrap(), Issuer::new(authority, authority_key));
        let own = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = own.signed_by(&key, &issuer).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), authority: pem }
    }
}

type Faults = Arc<Mutex<VecDeque<(&'static str, Fault)>>>;

impl MailServer {
    /// One that does these at the next command that begins so, each once. A mail's end is `.`.
    pub(super) async fn with(faults: impl IntoIterator<Item = (&'static str, Fault)>) -> Self {
        Self::over(ServerTls::Never, faults).await
    }

    /// The same that is spoken to so.
    pub(super) async fn over(
        tls: ServerTls,
        faults: impl IntoIterator<Item = (&'static str, Fault)>,
    ) -> Self {
        let faults: Faults = Arc::new(Mutex::new(faults.into_iter().collect()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let keeps = kept.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((connection, _)) = listener.accept().await {
                connections.spawn(meet(connection, tls.clone(), faults.clone(), keeps.clone()));
            }
        });
        Self { address, kept, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn mails(&self) -> Vec<TakenMail> {
        self.kept.lock().unwrap().mails.clone()
    }

    pub(super) fn commands(&self) -> Vec<String> {
        self.kept.lock().unwrap().commands.clone()
    }
}

/// `None` when the connection is over.
async fn meet(
    connection: TcpStream,
    tls: ServerTls,
    faults: Faults,
    kept: Arc<Mutex<Kept>>,
) -> Option<()> {
    match tls {
        ServerTls::Never => greet(connection, faults, kept).await,
        ServerTls::FromTheStart(acceptor) => {
            greet(acceptor.accept(connection).await.ok()?, faults, kept).await
        }
        ServerTls::Offered(acceptor) => {
            let mut connection = BufReader::new(connection);
            say(&mut connection, "220 mail.test").await?;
            loop {
                let line = command(&mut connection, &faults, &kept).await?;
                match line.get(..4).unwrap_or(&line) {
                    "EHLO" => say(&mut connection, "250-mail.test\r\n250 STARTTLS").await?,
                    "STAR" => break say(&mut connection, "220 go on").await?,
                    _ => say(&mut connection, "530 not before STARTTLS").await?,
                }
            }
            let encrypted = acceptor.accept(connection.into_inner()).await.ok()?;
            serve(BufReader::new(encrypted), faults, kept).await
        }
    }
}

async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    connection: S,
    faults: Faults,
    kept: Arc<Mutex<Kept>>,
) -> Option<()> {
    let mut connection = BufReader::new(connection);
    match fault(&faults, "") {
        Some(fault) => act(&mut connection, fault).await?,
        None => say(&mut connection, "220 mail.test").await?,
    }
    serve(connection, faults, kept).await
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut connection: BufReader<S>,
    faults: Faults,
    kept: Arc<Mutex<Kept>>,
) -> Option<()> {
    let mut to = Vec::new();
    loop {
        let line = command(&mut connection, &faults, &kept).await?;
        match line.get(..4).unwrap_or(&line) {
            "EHLO" => say(&mut connection, "250-mail.test\r\n250 AUTH PLAIN LOGIN").await?,
            "AUTH" => say(&mut connection, "235 come in").await?,
            "MAIL" => {
                to.clear();
                say(&mut connection, "250 ok").await?;
            }
            "RCPT" => {
                to.push(line["RCPT TO:<".len()..].trim_end_matches('>').to_owned());
                say(&mut connection, "250 ok").await?;
            }
            "DATA" => {
                say(&mut connection, "354 go on").await?;
                let text = mail(&mut connection).await?;
                let fault = fault(&faults, ".");
                if !matches!(fault, Some(Fault::Says(_))) {
                    kept.lock().unwrap().mails.push(TakenMail { to: to.clone(), text });
                }
                act(&mut connection, fault.unwrap_or(Fault::Says("250 taken"))).await?;
            }
            "QUIT" => return say(&mut connection, "221 bye").await,
            _ => say(&mut connection, "502 what").await?,
        }
    }
}

/// The next command that no fault answers.
async fn command<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut BufReader<S>,
    faults: &Faults,
    kept: &Mutex<Kept>,
) -> Option<String> {
    loop {
        let line = line(connection).await?;
        kept.lock().unwrap().commands.push(line.clone());
        match fault(faults, &line) {
            Some(fault) => act(connection, fault).await?,
            None => return Some(line),
        }
    }
}

fn fault(faults: &Faults, line: &str) -> Option<Fault> {
    let mut faults = faults.lock().unwrap();
    // The greeting is what comes at no command.
    let is_next = |at: &str| at.is_empty() == line.is_empty() && line.starts_with(at);
    let is_next = faults.front().is_some_and(|(at, _)| is_next(at));
    is_next.then(|| faults.pop_front().unwrap().1)
}

async fn act<S: AsyncWrite + Unpin>(connection: &mut S, fault: Fault) -> Option<()> {
    match fault {
        Fault::Says(text) => say(connection, text).await,
        Fault::NeverEnds => loop {
            connection.write_all(&[b'5'; 1 << 10]).await.ok()?;
        },
        Fault::Hangs => std::future::pending().await,
        Fault::Closes => None,
    }
}

async fn say<S: AsyncWrite + Unpin>(connection: &mut S, text: &str) -> Option<()> {
    connection.write_all(format!("{text}\r\n").as_bytes()).await.ok()?;
    connection.flush().await.ok()
}

async fn line<S: AsyncRead + Unpin>(connection: &mut BufReader<S>) -> Option<String> {
    let mut line = String::new();
    connection.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    Some(line.trim_end().to_owned())
}

async fn mail<S: AsyncRead + Unpin>(connection: &mut BufReader<S>) -> Option<String> {
    let mut text = String::new();
    loop {
        let line = line(connection).await?;
        if line == "." {
            return Some(text);
        }
        text.push_str(&line);
        text.push('\n');
    }
}
