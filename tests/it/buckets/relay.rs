//! Stands before a server of buckets, so that what somebody does in the middle of an apply comes
//! exactly there; and what an apply asks of the bucket can be read.

use std::sync::{Arc, Mutex};

use fakes::http::{Reply, Request};
use fakes::turnstile::Moment;

/// Headers that are of one connection, or made anew with the body.
const OF_A_CONNECTION: [&str; 5] =
    ["connection", "content-length", "transfer-encoding", "host", "expect"];

/// What the server behind would get wrong: an answer in its place.
pub(super) type Instead = fn(to: &str, request: &Request) -> Option<Reply>;

#[derive(Default)]
struct State {
    meanwhile: Option<(Moment, Box<dyn FnOnce() + Send>)>,
    deletes: Vec<String>,
}

/// One that runs until the process ends.
pub(super) struct Relay {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
}

impl Relay {
    /// Before the server at `to`, `http://HOST:PORT`.
    pub(super) fn start(to: String, instead: Instead) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let address = fakes::listen("127.0.0.1:0", move |request| {
            let is_upload = request.method == "PUT" || request.path.starts_with("/upload/");
            act(&shared, is_upload, Moment::Before);
            if request.method == "DELETE" || request.path.contains("?delete") {
                let body = String::from_utf8_lossy(&request.body);
                shared.lock().expect("no panic").deletes.push(format!("{} {body}", request.path));
            }
            let reply = instead(&to, request).or_else(|| passed_on(&to, request));
            act(&shared, is_upload, Moment::After);
            reply
        });
        Self { url: format!("http://{address}"), state }
    }

    /// Does this before or after the next upload is passed on, once.
    pub(super) fn meanwhile(&self, moment: Moment, does: impl FnOnce() + Send + 'static) {
        self.state.lock().expect("no panic").meanwhile = Some((moment, Box::new(does)));
    }

    /// Whether that has been done.
    pub(super) fn is_done(&self) -> bool {
        self.state.lock().expect("no panic").meanwhile.is_none()
    }

    /// The requests that delete: path and body of each.
    pub(super) fn deletes(&self) -> Vec<String> {
        self.state.lock().expect("no panic").deletes.clone()
    }
}

fn act(state: &Mutex<State>, is_upload: bool, moment: Moment) {
    let mut state = state.lock().expect("no panic");
    if is_upload && let Some((_, does)) = state.meanwhile.take_if(|(when, _)| *when == moment) {
        // Other uploads wait meanwhile.
        does();
    }
}

/// A client for what is done past the relay.
pub(super) fn client() -> reqwest::blocking::Client {
    let _set_already = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::blocking::Client::builder().no_proxy().timeout(tests::wait::PATIENCE);
    client.build().expect("a client can be made")
}

fn passed_on(to: &str, request: &Request) -> Option<Reply> {
    let is_passed = |name: &str| !OF_A_CONNECTION.contains(&name.to_lowercase().as_str());
    let method = request.method.parse().expect("a method");
    let mut asked = client().request(method, format!("{to}{}", request.path));
    for (name, value) in request.headers.iter().filter(|(name, _)| is_passed(name)) {
        asked = asked.header(name, value);
    }
    let answer = asked.body(request.body.clone()).send().ok()?;
    let mut reply = Reply::empty(answer.status().as_u16());
    for (name, value) in answer.headers().iter().filter(|(name, _)| is_passed(name.as_str())) {
        reply = reply.with(name.as_str(), value.to_str().ok()?);
    }
    // The answer to a HEAD has the length of what it does not have.
    let length = answer.headers().get("content-length").filter(|_| request.method == "HEAD");
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let body = answer.bytes().ok()?.to_vec();
    Some(Reply { body: length.map_or(body, |length| vec![0; length]), ..reply })
}
