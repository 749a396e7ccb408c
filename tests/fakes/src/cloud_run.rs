//! As much of Cloud Run as `gcloud run services` asks for: it keeps services, makes revisions,
//! rolls them out look by look, and fails as it is told to. gcloud reaches it as its proxy,
//! since it puts the region before the host whatever that is.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::listen;
use crate::turnstile::{Moment, Turnstile};

/// A project of others, where nothing is allowed.
pub const FOREIGN_PROJECT: &str = "another";

/// What is done with the next request of a method, instead of the usual.
pub enum Trouble {
    /// An error of Google's: code, status, message.
    Refuse(u16, &'static str, &'static str),
    /// The usual, and its answer is lost.
    LoseAnswer,
    /// The usual, once the server's turnstile was opened.
    Wait(Moment),
    /// An error, after somebody else has deployed this image.
    Overtake(&'static str),
}

/// A running server.
pub struct CloudRunServer {
    pub address: SocketAddr,
    pub turnstile: Turnstile,
    state: Arc<Mutex<State>>,
}

/// What it has, and what a test wants of it.
#[derive(Default)]
pub struct State {
    /// By name, as they are printed.
    pub services: BTreeMap<String, Value>,
    /// By name: their annotations.
    pub revisions: BTreeMap<String, Value>,
    /// What was asked: `PUT services/web`.
    pub calls: Vec<String>,
    /// How often a roll-out is looked at before it has ended.
    pub looks: usize,
    /// Why revisions that are made now fail, if they do.
    pub broken: Option<&'static str>,
    /// The only token that is good, if not all are.
    pub token: Option<&'static str>,
    /// What happens next, by method.
    pub troubles: VecDeque<(&'static str, Trouble)>,
    /// Why revisions failed, by name.
    fates: BTreeMap<String, &'static str>,
    /// The look in which the roll-out is, by service.
    looked: BTreeMap<String, usize>,
}

impl CloudRunServer {
    /// On the loopback address.
    pub fn start() -> Self {
        Self::listening("127.0.0.1:0")
    }

    /// At this address, `HOST:PORT`.
    pub fn listening(address: &str) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let (shared, turnstile) = (Arc::clone(&state), Turnstile::default());
        let gate = turnstile.clone();
        let address = listen(address, move |request| {
            let what = match shared.lock().unwrap().asked(request) {
                Ok(what) => what,
                Err(reply) => return Some(reply),
            };
            let trouble = shared.lock().unwrap().trouble(&request.method);
            let waits = |moment| matches!(trouble, Some(Trouble::Wait(at)) if at == moment);
            if waits(Moment::Before) {
                gate.pass();
            }
            let reply = shared.lock().unwrap().answer(request, &what, trouble.as_ref());
            if waits(Moment::After) {
                gate.pass();
            }
            reply
        });
        Self { address, turnstile, state }
    }

    /// What is there now, for as long as the guard lives.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The calls since this was asked last.
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }
}

impl State {
    /// Takes a call down and tells what it asks for; or the answer, where that is the same always.
    fn asked(&mut self, request: &Request) -> Result<String, Reply> {
        let path = request.path.split('?').next().unwrap();
        if path.ends_with("/token") {
            let token =
                json!({"access_token": "key's", "expires_in": 3600, "token_type": "Bearer"});
            return Err(Reply::json(200, &token));
        }
        // `/apis/serving.knative.dev/v1/namespaces/PROJECT/services/NAME`.
        let below = path.split_once("/namespaces/").and_then(|(_, rest)| rest.split_once('/'));
        let what = below.map_or(path, |(_, what)| what).to_owned();
        self.calls.push(format!("{} {what}", request.method));
        let good = self.token.map(|token| format!("Bearer {token}"));
        if good.is_some() && request.header("authorization") != good.as_deref() {
            let why = "Request had invalid authentication credentials.";
            return Err(error(401, "UNAUTHENTICATED", why));
        }
        if path.contains(&format!("/namespaces/{FOREIGN_PROJECT}/")) {
            let why = "Permission 'run.services.list' denied on resource (or it may not exist).";
            return Err(error(403, "PERMISSION_DENIED", why));
        }
        Ok(what)
    }

    fn trouble(&mut self, method: &str) -> Option<Trouble> {
        let at = self.troubles.iter().position(|(of, _)| *of == method)?;
        self.troubles.remove(at).map(|(_, trouble)| trouble)
    }

    fn answer(
        &mut self,
        request: &Request,
        what: &str,
        trouble: Option<&Trouble>,
    ) -> Option<Reply> {
        match trouble {
            Some(Trouble::Refuse(code, status, message)) => Some(error(*code, status, message)),
            Some(Trouble::LoseAnswer) => {
                self.usual(request, what);
                None
            }
            Some(Trouble::Overtake(image)) => {
                self.deploy_by_hand("web", image);
                Some(self.usual(request, what))
            }
            Some(Trouble::Wait(_)) | None => Some(self.usual(request, what)),
        }
    }

    fn usual(&mut self, request: &Request, what: &str) -> Reply {
        let body = || serde_json::from_slice(&request.body).unwrap();
        match (request.method.as_str(), what.split_once('/')) {
            ("GET", None) => {
                let items: Vec<&Value> = self.services.values().collect();
                Reply::json(200, &json!({"kind": "ServiceList", "items": items}))
            }
            ("GET", Some(("services", name))) => match self.look_at(name) {
                Some(service) => Reply::json(200, &service),
                None => error(404, "NOT_FOUND", "Resource does not exist"),
            },
            ("GET", Some(("revisions", name))) => match self.revisions.get(name) {
                Some(annotations) => Reply::json(
                    200,
                    &json!({
                        "apiVersion": "serving.knative.dev/v1", "kind": "Revision",
                        "metadata": {"name": name, "namespace": "1", "annotations": annotations}
                    }),
                ),
                None => error(404, "NOT_FOUND", "Resource does not exist"),
            },
            ("POST", None) => self.put(body()),
            ("PUT", Some(("services", _))) => self.put(body()),
            // Who waits for a roll-out is told of its end.
            ("POST", _) if what.ends_with(":wait") => {
                let names: Vec<String> = self.services.keys().cloned().collect();
                let mut last = None;
                for name in names {
                    last = (0..=self.looks).filter_map(|_| self.look_at(&name)).last();
                }
                Reply::json(200, &json!({"name": what, "done": true, "response": last}))
            }
            (method, _) => {
                error(400, "INVALID_ARGUMENT", &format!("nobody asks for {method} {what}"))
            }
        }
    }

    /// Takes a service over, with what the server fills in.
    pub fn put(&mut self, mut service: Value) -> Reply {
        let name = service["metadata"]["name"].as_str().unwrap().to_owned();
        let old = self.services.get(&name).cloned().unwrap_or_default();
        let given = service["metadata"]["resourceVersion"].clone();
        if given != old["metadata"]["resourceVersion"] {
            let why = format!("Conflict for resource '{name}': version {given} was specified");
            return error(409, "ABORTED", &why);
        }
        let image = &service["spec"]["template"]["spec"]["containers"][0]["image"];
        if !image.is_string() {
            return error(400, "INVALID_ARGUMENT", "spec.template.spec.containers[0].image: empty");
        }
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        let metadata = &mut service["metadata"];
        metadata["generation"] = generation.into();
        metadata["resourceVersion"] = format!("v{generation}").into();
        metadata["annotations"]["run.googleapis.com/operation-id"] = generation.to_string().into();
        let template = &mut service["spec"]["template"];
        template["spec"]["containerConcurrency"] = 80.into();
        let container = &mut template["spec"]["containers"][0];
        container["resources"]["limits"]["cpu"] = "1000m".into();
        let template = template.clone();
        if !service["spec"]["traffic"].is_array() {
            service["spec"]["traffic"] = json!([{"percent": 100, "latestRevision": true}]);
        }
        service["status"] = old["status"].clone();
        service["status"]["url"] = format!("https://{name}-x.a.run.app").into();
        // Only another template makes another revision.
        if old["spec"]["template"] != template {
            let revision = match template["metadata"]["name"].as_str() {
                Some(revision) if self.revisions.contains_key(revision) => {
                    let why = format!(
                        "Revision named '{revision}' with different configuration already exists."
                    );
                    return error(409, "ALREADY_EXISTS", &why);
                }
                Some(revision) => revision.to_owned(),
                None => format!("{name}-{:05}-abc", self.revisions.len() + 1),
            };
            if let Some(message) = self.broken {
                self.fates.insert(revision.clone(), message);
            }
            self.revisions.insert(revision.clone(), template["metadata"]["annotations"].clone());
            service["status"]["latestCreatedRevisionName"] = revision.into();
        }
        self.looked.insert(name.clone(), 0);
        self.services.insert(name, service.clone());
        Reply::json(200, &service)
    }

    /// A service after one more look at it, which brings its roll-out on: not seen, under way,
    /// done.
    fn look_at(&mut self, name: &str) -> Option<Value> {
        let service = self.services.get_mut(name)?;
        let looked = self.looked.entry(name.to_owned()).or_default();
        *looked += 1;
        if *looked == 1 && self.looks > 0 {
            return Some(service.clone());
        }
        let (generation, mut traffic) =
            (service["metadata"]["generation"].clone(), service["spec"]["traffic"].clone());
        let status = &mut service["status"];
        status["observedGeneration"] = generation;
        let created = status["latestCreatedRevisionName"].clone();
        let fate = self.fates.get(created.as_str().unwrap_or_default());
        let (ready, reason, message) = match fate {
            _ if *looked <= self.looks => ("Unknown", "Deploying", "Deploying revision."),
            Some(message) => ("False", "HealthCheckContainerError", *message),
            None => {
                for target in traffic.as_array_mut().unwrap() {
                    if target["latestRevision"] == true {
                        target["revisionName"] = created.clone();
                    }
                }
                status["traffic"] = traffic;
                status["latestReadyRevisionName"] = created;
                ("True", "", "")
            }
        };
        status["conditions"] = json!([{
            "type": "Ready", "status": ready, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-31T03:00:00.000000Z"
        }]);
        Some(service.clone())
    }

    /// What `gcloud run services update --image` does: all else stays, also whose it is.
    pub fn deploy_by_hand(&mut self, name: &str, image: &str) {
        let mut service = self.services[name].clone();
        service["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        assert_eq!(self.put(service).status, 200);
    }
}

fn error(code: u16, status: &str, message: &str) -> Reply {
    let body = json!({"error": {"code": code, "status": status, "message": message}});
    Reply::json(code, &body)
}
