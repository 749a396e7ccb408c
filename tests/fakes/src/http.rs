//! As much of HTTP/1.1 as a wrapper speaks: one request after the other on a connection, bodies
//! with their length.

use std::io::{Read, Write};

/// Largest head of a request, bytes.
const HEAD_LIMIT_BYTES: usize = 16 << 10;

pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    /// Whether it is this method on a path that ends so.
    pub fn is(&self, method: &str, end: &str) -> bool {
        self.method == method && self.path.ends_with(end)
    }
}

pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub framing: Framing,
}

/// How an answer tells where its body ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// By its length.
    Right,
    /// By a length that is not its own; then the connection ends.
    Declared(usize),
    /// By the end of the connection alone.
    Close,
    /// There is no answer: nothing is sent until whoever asked has gone.
    Never,
}

impl Reply {
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), framing: Framing::Right }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// An input as it is sent.
    pub fn input(body: &[u8]) -> Self {
        Self {
            body: body.to_owned(),
            ..Self::empty(200).with("Content-Type", "application/octet-stream")
        }
    }

    pub fn framed(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            body: body.to_string().into_bytes(),
            ..Self::empty(status).with("Content-Type", "application/json")
        }
    }

    pub fn problem(status: u16, detail: &str) -> Self {
        let body = serde_json::json!({ "title": "refused", "status": status, "detail": detail });
        Self {
            body: body.to_string().into_bytes(),
            ..Self::empty(status).with("Content-Type", schema::wire::PROBLEM_CONTENT_TYPE)
        }
    }
}

/// Answers until the other side goes, or `answer` says to break the connection.
pub fn serve(mut stream: impl Read + Write, mut answer: impl FnMut(&Request) -> Option<Reply>) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer) {
        let Some(reply) = answer(&request) else { return };
        if reply.framing == Framing::Never {
            while fill(&mut stream, &mut buffer).is_some() {}
            return;
        }
        let mut head = format!("HTTP/1.1 {} x\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match reply.framing {
            Framing::Right if reply.status == 204 => {}
            Framing::Right => head.push_str(&format!("Content-Length: {}\r\n", reply.body.len())),
            Framing::Declared(length) => head.push_str(&format!("Content-Length: {length}\r\n")),
            Framing::Close => head.push_str("Connection: close\r\n"),
            Framing::Never => unreachable!("nothing is sent"),
        }
        head.push_str("\r\n");
        let body = if request.method == "HEAD" { &[][..] } else { &reply.body };
        if stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body))
            .and_then(|()| stream.flush())
            .is_err()
            || reply.framing != Framing::Right
        {
            return;
        }
    }
}

fn read(stream: &mut impl Read, buffer: &mut Vec<u8>) -> Option<Request> {
    let (mut request, head, length) = loop {
        if let Some(found) = parse(buffer) {
            break found;
        }
        assert!(buffer.len() < HEAD_LIMIT_BYTES, "a head that does not end");
        fill(stream, buffer)?;
    };
    while buffer.len() < head + length {
        fill(stream, buffer)?;
    }
    let rest = buffer.split_off(head + length);
    request.body = buffer.split_off(head);
    *buffer = rest;
    Some(request)
}

fn fill(stream: &mut impl Read, buffer: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 64 << 10];
    match stream.read(&mut piece) {
        Ok(0) | Err(_) => None,
        Ok(count) => {
            buffer.extend_from_slice(&piece[..count]);
            Some(())
        }
    }
}

fn parse(buffer: &[u8]) -> Option<(Request, usize, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = parsed.parse(buffer).expect("HTTP/1.1") else {
        return None;
    };
    let headers = parsed
        .headers
        .iter()
        .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()));
    let request = Request {
        method: parsed.method.unwrap().to_owned(),
        path: parsed.path.unwrap().to_owned(),
        headers: headers.collect(),
        body: Vec::new(),
    };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    Some((request, head, length))
}
