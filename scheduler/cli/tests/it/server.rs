//! A server that answers each request from a list: the first entry whose method and path fit and
//! that is not used up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One prepared answer.
#[derive(Clone)]
pub(crate) struct Answer {
    request: String,
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
    times: usize,
}

/// A JSON answer to `request`, such as `GET /v1/services`, however often it is asked.
pub(crate) fn json(request: &str, status: u16, body: serde_json::Value) -> Answer {
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    Answer {
        request: request.to_owned(),
        status,
        kind,
        body: body.to_string().into_bytes(),
        times: usize::MAX,
    }
}

pub(crate) fn bytes(request: &str, kind: &'static str, body: &[u8]) -> Answer {
    Answer {
        request: request.to_owned(),
        status: 200,
        kind,
        body: body.to_vec(),
        times: usize::MAX,
    }
}

impl Answer {
    /// Only so many times; then the next entry that fits.
    pub(crate) fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }
}

/// The server; it ends with the test's process.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<Vec<_>>()));
        let record = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &answers, &record);
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far: method, path with query, a space, and the body.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// One request a connection; a broken one is dropped, as a real server would.
fn answer(mut stream: TcpStream, answers: &Mutex<Vec<Answer>>, record: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request = first.rsplit_once(' ').map_or(first.as_str(), |(request, _)| request).to_owned();
    record
        .lock()
        .unwrap()
        .push(format!("{request} {}", String::from_utf8_lossy(&body)).trim().to_owned());
    let mut answers = answers.lock().unwrap();
    let fits = |answer: &Answer| {
        answer.times > 0
            && (request == answer.request || request.starts_with(&format!("{}?", answer.request)))
    };
    let found = answers.iter_mut().find(|answer| fits(answer)).map(|answer| {
        answer.times -= 1;
        answer.clone()
    });
    drop(answers);
    // A status of 0 is a server that hangs up.
    let Answer { status, kind, body, .. } =
        found.unwrap_or_else(|| json(&request, 404, serde_json::json!({"nothing": "prepared"})));
    if status > 0 {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: \
             close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    }
}
