//! As much of Cloud Build as `gcloud builds` asks for: a trigger, the builds that it started, how
//! they get on look by look and end as they are told to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::listen;

/// The only trigger: its name and its id.
pub const TRIGGER: (&str, &str) = ("release-build", "0d1e2f30-0000-4000-8000-000000000001");

/// How builds end that are started now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Succeeds,
    /// With this status (`FAILURE`, `TIMEOUT`, …) and this reason.
    Fails(&'static str, &'static str),
    /// It does not end.
    Lasts,
}

/// What becomes of a request for a build whose answer is lost on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// A build is started, and the connection ends without an answer.
    Answer,
    /// A build is started, and the answer is 503.
    Unavailable,
    /// No build is started, and the connection ends without an answer.
    Request,
}

/// A running server.
pub struct CloudBuildServer {
    pub address: SocketAddr,
    state: Arc<Mutex<Builds>>,
}

/// What it has, and what a test wants of it.
#[derive(Debug)]
pub struct Builds {
    /// In the order in which they were started, as they are printed.
    pub builds: Vec<Value>,
    /// What was asked: `GET builds`.
    pub calls: Vec<String>,
    /// How often a build is looked at before it has ended.
    pub looks: usize,
    /// How builds end that are started now.
    pub ending: Ending,
    /// Whether whoever asks may not.
    pub is_forbidden: bool,
    /// What is lost of the next requests for builds, the last one first.
    pub losses: Vec<Loss>,
    /// By build: how it ends, and how often it was looked at.
    fates: BTreeMap<String, (Ending, usize)>,
}

impl CloudBuildServer {
    /// On the loopback address.
    pub fn start() -> Self {
        Self::listening("127.0.0.1:0")
    }

    /// At this address, `HOST:PORT`.
    pub fn listening(address: &str) -> Self {
        let state = Arc::new(Mutex::new(Builds {
            builds: Vec::new(),
            calls: Vec::new(),
            looks: 2,
            ending: Ending::Succeeds,
            is_forbidden: false,
            losses: Vec::new(),
            fates: BTreeMap::new(),
        }));
        let shared = Arc::clone(&state);
        let address = listen(address, move |request| shared.lock().unwrap().answered(request));
        Self { address, state }
    }

    /// What is there now, for as long as the guard lives.
    pub fn state(&self) -> MutexGuard<'_, Builds> {
        self.state.lock().unwrap()
    }
}

impl Builds {
    /// None where the connection is to end without an answer.
    fn answered(&mut self, request: &Request) -> Option<Reply> {
        let loss = if request.method == "POST" { self.losses.pop() } else { None };
        match loss {
            None => Some(self.answer(request)),
            Some(Loss::Unavailable) => {
                self.answer(request);
                Some(error(503, "UNAVAILABLE", "The service is currently unavailable."))
            }
            Some(Loss::Answer) => {
                self.answer(request);
                None
            }
            Some(Loss::Request) => {
                self.calls.push(format!("{} lost", request.method));
                None
            }
        }
    }

    fn answer(&mut self, request: &Request) -> Reply {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let what = path.split_once("/locations/").and_then(|(_, rest)| rest.split_once('/'));
        let what = what.map_or(path, |(_, what)| what);
        self.calls.push(format!("{} {what}", request.method));
        if self.is_forbidden {
            return error(403, "PERMISSION_DENIED", "The caller does not have permission");
        }
        let (name, id) = TRIGGER;
        match (request.method.as_str(), what.split_once('/')) {
            ("GET", Some(("triggers", asked))) if asked == name || asked == id => {
                Reply::json(200, &json!({"id": id, "name": name}))
            }
            ("POST", Some(("triggers", asked))) if asked == format!("{name}:run") => {
                self.run(&serde_json::from_slice(&request.body).unwrap())
            }
            ("GET", None) if what == "builds" => self.list(query),
            ("GET", Some(("builds", id))) => match self.builds.iter().position(|b| b["id"] == id) {
                Some(at) => Reply::json(200, &self.look_at(at)),
                None => error(404, "NOT_FOUND", "Requested entity was not found."),
            },
            _ => error(404, "NOT_FOUND", "Requested entity was not found."),
        }
    }

    /// Starts a build of the trigger, of what the request names.
    fn run(&mut self, request: &Value) -> Reply {
        let source = &request["source"];
        let commit = source["commitSha"].as_str().unwrap();
        let channel = source["substitutions"]["_CHANNEL"].as_str();
        let metadata = json!({
            "@type":
                "type.googleapis.com/google.devtools.cloudbuild.v1.BuildOperationMetadata",
            "build": self.start_for(commit, channel),
        });
        Reply::json(200, &json!({"name": "operations/build/p/1", "metadata": metadata}))
    }

    /// Starts a build for a channel, whoever asks for it.
    pub fn start(&mut self, commit: &str, channel: &str) -> Value {
        self.start_for(commit, Some(channel))
    }

    /// Starts a build as somebody does who knows of no channels.
    pub fn start_without_channel(&mut self, commit: &str) {
        self.start_for(commit, None);
    }

    /// Starts a build, with the substitution `_CHANNEL` or without it.
    fn start_for(&mut self, commit: &str, channel: Option<&str>) -> Value {
        let id = format!("b-{}", self.builds.len() + 1);
        let log = format!("https://console.cloud.google.com/cloud-build/builds/{id}?project=1");
        let mut build = json!({
            "id": id, "status": "QUEUED", "buildTriggerId": TRIGGER.1, "logUrl": log,
            "createTime": "2026-01-31T03:00:00.000000000Z",
            "substitutions": {"COMMIT_SHA": commit, "TRIGGER_NAME": TRIGGER.0},
        });
        if let Some(channel) = channel {
            build["substitutions"]["_CHANNEL"] = channel.into();
        }
        self.fates.insert(id, (self.ending, 0));
        self.builds.push(build.clone());
        build
    }

    /// The last one first; of the filter only the trigger is known here, as elsewhere.
    fn list(&mut self, query: &str) -> Reply {
        assert!(query.contains(TRIGGER.1), "builds of other triggers are asked for: {query}");
        let builds: Vec<_> = (0..self.builds.len()).rev().map(|at| self.look_at(at)).collect();
        Reply::json(200, &json!({"builds": builds}))
    }

    /// A build after one more look at it, which brings it on: queued, at work, ended.
    fn look_at(&mut self, at: usize) -> Value {
        let build = &mut self.builds[at];
        let id = build["id"].as_str().unwrap();
        let (ending, looked) = self.fates.get_mut(id).unwrap();
        *looked += 1;
        build["status"] = match ending {
            _ if *looked == 1 && self.looks > 0 => "QUEUED",
            _ if *looked <= self.looks => "WORKING",
            Ending::Lasts => "WORKING",
            Ending::Succeeds => "SUCCESS",
            Ending::Fails(status, reason) => {
                build["failureInfo"] = json!({"type": "USER_BUILD_STEP", "detail": reason});
                status
            }
        }
        .into();
        build.clone()
    }
}

fn error(code: u16, status: &str, message: &str) -> Reply {
    let body = json!({"error": {"code": code, "status": status, "message": message}});
    Reply::json(code, &body)
}
