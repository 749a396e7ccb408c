//! A place for states as Terraform's backend `http` wants one, and a small world for a
//! configuration to look at, which a provisioner sets and which anybody may change behind its back.
//!
//! `GET`, `POST`, `LOCK` and `UNLOCK` of `/states/NAME`; `GET /world` is the world as the state of
//! another configuration (`terraform_remote_state` reads `content` and `stamp`), `POST /world` with
//! `CONTENT STAMP` sets it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::listen;

/// A running server.
pub struct StateServer {
    /// Where it listens.
    pub address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
}

/// What it has.
#[derive(Debug, Default)]
pub struct Kept {
    /// By name.
    pub states: BTreeMap<String, Vec<u8>>,
    /// Whether no state is taken.
    pub is_full: bool,
    /// Whose they are, by name: what terraform sent with `LOCK`.
    pub locks: BTreeMap<String, Value>,
    /// What the world says now.
    pub content: String,
    /// What the one who said it left.
    pub stamp: String,
    /// How often a provisioner has set the world.
    pub settings: usize,
}

impl StateServer {
    /// At this address, `HOST:PORT`.
    pub fn listening(address: &str) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let shared = Arc::clone(&kept);
        let answer = move |request: &Request| Some(shared.lock().unwrap().answer(request));
        Self { address: listen(address, answer), kept }
    }

    /// What is there now, for as long as the guard lives.
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }
}

impl Kept {
    fn answer(&mut self, request: &Request) -> Reply {
        let path = request.path.split('?').next().unwrap_or_default();
        if path == "/world" {
            return self.world(request);
        }
        let Some(name) = path.strip_prefix("/states/") else { return Reply::empty(404) };
        match request.method.as_str() {
            "GET" => match self.states.get(name) {
                Some(state) => Reply::input(state),
                None => Reply::empty(404),
            },
            "POST" if self.is_full => Reply::problem(507, "there is no room"),
            "POST" => {
                self.states.insert(name.to_owned(), request.body.clone());
                Reply::empty(200)
            }
            "LOCK" => match self.locks.get(name) {
                // 423: with whose it is.
                Some(held) => Reply::json(423, held),
                None => {
                    self.locks.insert(name.to_owned(), lock_in(request));
                    Reply::empty(200)
                }
            },
            "UNLOCK" => match self.locks.get(name) {
                Some(held) if held["ID"] == lock_in(request)["ID"] => {
                    self.locks.remove(name);
                    Reply::empty(200)
                }
                // Somebody else's.
                _ => Reply::empty(409),
            },
            _ => Reply::empty(405),
        }
    }

    fn world(&mut self, request: &Request) -> Reply {
        if request.method == "POST" {
            let said = String::from_utf8_lossy(&request.body).into_owned();
            let (content, stamp) = said.split_once(' ').unwrap_or((&said, ""));
            (self.content, self.stamp) = (content.to_owned(), stamp.to_owned());
            self.settings += 1;
            return Reply::empty(200);
        }
        let text = |value: &str| json!({"type": "string", "value": value});
        Reply::json(
            200,
            &json!({
                "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "the-world",
                "outputs": {"content": text(&self.content), "stamp": text(&self.stamp)},
                "resources": [],
            }),
        )
    }
}

/// The lock that a request is about.
fn lock_in(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}
