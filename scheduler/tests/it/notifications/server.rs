//! A real server over a socket that answers what the test says, request by request, and keeps what
//! it was sent.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// What it answers.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// This status line and these headers, each with its line end, and this body.
    Says(&'static str, &'static str, &'static str),
    /// Nothing, and the connection stays.
    Hangs,
    /// Nothing, and the connection ends.
    Closes,
    /// A refusal whose body never ends.
    Endless,
}

pub(super) const OK: Answer = Answer::Says("200 OK", "", "ok");

/// What it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Received {
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }
}

/// The server; it ends with this.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    /// One that gives these answers, one a request, and then takes everything.
    pub(super) async fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: VecDeque<Answer> = answers.into_iter().collect();
        let answers = Arc::new(Mutex::new(answers));
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let kept = received.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((connection, _)) = listener.accept().await {
                connections.spawn(serve(connection, answers.clone(), kept.clone()));
            }
        });
        Self { address, received, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve(
    connection: TcpStream,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    kept: Arc<Mutex<Vec<Received>>>,
) {
    let mut connection = BufReader::new(connection);
    while let Some(request) = read(&mut connection).await {
        let answer = answers.lock().unwrap().pop_front().unwrap_or(OK);
        kept.lock().unwrap().push(request);
        match answer {
            Answer::Says(status, headers, body) => {
                let length = body.len();
                let text =
                    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
                if connection.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Answer::Hangs => std::future::pending().await,
            Answer::Closes => return,
            Answer::Endless => {
                let head = "HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n";
                let _ = connection.write_all(head.as_bytes()).await;
                while connection.write_all(b"4\r\nmore\r\n").await.is_ok() {}
                return;
            }
        }
    }
}

async fn read(connection: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    connection.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    connection.read_exact(&mut body).await.ok()?;
    Some(Received { path, headers, body: String::from_utf8(body).ok()? })
}
