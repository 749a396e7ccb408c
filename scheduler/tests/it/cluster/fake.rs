//! A fake Kubernetes API server for what a real one does not do on demand: conflicts, overload,
//! requests that are done and not answered, watches that end or are too old. It knows Jobs, Pods,
//! Secrets and namespaces as far as the runner asks for them; a Job that is let go has a Pod at
//! once, which ends with the exit code that the test says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use pvn_scheduler::clock::Clock;
use serde_json::{Value, json};
use tokio::sync::broadcast;

mod answers;
mod deletions;
mod pods;
mod watches;

use answers::{answer, list_of, merge, pod_of};

/// What the server does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Answers with this status and does nothing.
    Refuse(u16),
    /// Answers with this status and these words, and does nothing.
    Say(u16, &'static str),
    /// Answers as a proxy in its place does, with this status and a page.
    Page(u16),
    /// Does it, and answers 504.
    DoneButTimedOut,
    /// Never answers, and does nothing.
    Hang,
    /// Cuts the connection, and does nothing.
    Cut,
    /// Does nothing wrong: the next one is meant.
    Pass,
    /// Answers when somebody lets it ([`Fake::release`]).
    Hold,
    /// Does it, and once more when somebody lets it: a proxy sent it twice.
    AgainLater,
}

/// The server. Ends with the test.
#[derive(Clone)]
pub(super) struct Fake {
    world: Arc<Mutex<World>>,
    changes: broadcast::Sender<Change>,
    held: Arc<tokio::sync::Semaphore>,
    address: std::net::SocketAddr,
}

/// What a watch is told: the list that it is about, and the event.
#[derive(Debug, Clone)]
enum Change {
    Event(&'static str, Value),
    /// Every watch ends.
    End,
}

#[derive(Debug, Default)]
struct World {
    objects: BTreeMap<String, Value>,
    version: u64,
    exit_code: i32,
    /// Whether a Job that is let go gets a Pod.
    runs: bool,
    faults: VecDeque<(Method, &'static str, Fault)>,
    requests: Vec<String>,
    /// Every request but a watch is refused with these.
    refuses: Option<(u16, &'static str)>,
    /// Watches that start now are told that they are too old.
    too_old: u32,
    /// Verbs and resources that are not permitted, as far as somebody asks.
    forbidden: Vec<(&'static str, &'static str)>,
    /// The token that is accepted; empty = any.
    token: &'static str,
    /// The log of every container.
    log: String,
    /// What a webhook makes of new Jobs.
    admits: Option<Value>,
}

impl Fake {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let world = World { runs: true, log: "from the log\n".to_owned(), ..World::default() };
        let fake = Self {
            world: Arc::new(Mutex::new(world)),
            changes: broadcast::channel(64).0,
            held: Arc::new(tokio::sync::Semaphore::new(0)),
            address,
        };
        let router = Router::new().fallback(answer).with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        fake
    }

    pub(super) fn kubeconfig(&self) -> String {
        self.kubeconfig_with("t")
    }

    /// The same with this token.
    pub(super) fn kubeconfig_with(&self, token: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\nusers: [{{name: u, user: {{token: {token}}}}}]\n\
             contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n",
            self.address
        )
    }

    /// The next request of this method whose path holds this text fails so.
    pub(super) fn fail(&self, method: Method, path: &'static str, fault: Fault) {
        self.world.lock().unwrap().faults.push_back((method, path, fault));
    }

    /// From now on every request but a watch is refused with this status and these words; `None`
    /// ends it.
    pub(super) fn refuse_all(&self, with: Option<(u16, &'static str)>) {
        self.world.lock().unwrap().refuses = with;
    }

    /// From now on only this token is accepted; whoever has another hears 401, and its watches end.
    pub(super) fn accept_only(&self, token: &'static str) {
        self.world.lock().unwrap().token = token;
        // Nobody may be watching.
        let _ = self.changes.send(Change::End);
    }

    /// Lets requests be answered that are held.
    pub(super) fn release(&self) {
        self.held.add_permits(1000);
    }

    /// What every container has printed.
    pub(super) fn log(&self, text: &str) {
        self.world.lock().unwrap().log = text.to_owned();
    }

    /// New Jobs are changed so.
    pub(super) fn admit_jobs_with(&self, change: Value) {
        self.world.lock().unwrap().admits = Some(change);
    }

    /// Changes the only Job.
    pub(super) fn job(&self, change: impl FnOnce(&mut Value)) {
        let mut job = self.object("/jobs/").expect("a Job was made");
        change(&mut job);
        self.put(
            &format!(
                "/apis/batch/v1/namespaces/n/jobs/{}",
                job["metadata"]["name"].as_str().unwrap()
            ),
            job,
        );
    }

    /// Puts an object there, or in the place of the one with its name.
    pub(super) fn put(&self, path: &str, object: Value) {
        self.change(&mut self.world.lock().unwrap(), path, object);
    }

    pub(super) fn exit_with(&self, code: i32) {
        self.world.lock().unwrap().exit_code = code;
    }

    /// Jobs that are let go have no Pod from now on, or have one again; the ones that wait get
    /// theirs.
    pub(super) fn set_runs(&self, runs: bool) {
        let mut world = self.world.lock().unwrap();
        world.runs = runs;
        let jobs: Vec<Value> = world
            .objects
            .iter()
            .filter(|(path, _)| path.contains("/jobs/"))
            .map(|(_, job)| job.clone())
            .collect();
        for job in jobs {
            self.run(&mut world, &job);
        }
    }

    /// Whoever asks from now on hears that this is not permitted.
    pub(super) fn forbid(&self, verb: &'static str, resource: &'static str) {
        self.world.lock().unwrap().forbidden.push((verb, resource));
    }

    /// What an access review says.
    fn review(&self, mut review: Value) -> Value {
        let asked = &review["spec"]["resourceAttributes"];
        let world = self.world.lock().unwrap();
        let allowed = !world
            .forbidden
            .iter()
            .any(|(verb, resource)| asked["verb"] == *verb && asked["resource"] == *resource);
        review["status"] =
            json!({"allowed": allowed, "reason": if allowed { "" } else { "no role" }});
        review
    }

    /// How many requests had this method and a path with this text.
    pub(super) fn count(&self, method: &str, path: &str) -> usize {
        let world = self.world.lock().unwrap();
        world
            .requests
            .iter()
            .filter(|request| request.starts_with(method) && request.contains(path))
            .count()
    }

    /// All requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.world.lock().unwrap().requests.clone()
    }

    /// An object, by what its path ends with.
    pub(super) fn object(&self, kind: &str) -> Option<Value> {
        let world = self.world.lock().unwrap();
        world.objects.iter().find(|(path, _)| path.contains(kind)).map(|(_, object)| object.clone())
    }

    /// Whether the Job was told to end its Pod now.
    pub(super) fn is_job_told_to_end(&self) -> bool {
        self.object("/jobs/").is_some_and(|job| job["spec"]["activeDeadlineSeconds"] == 1)
    }

    fn change(&self, world: &mut World, path: &str, mut object: Value) -> Value {
        world.version += 1;
        if path.contains("/jobs/") && object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = Clock::System.now().to_string().into();
        }
        object["metadata"]["resourceVersion"] = world.version.to_string().into();
        world.objects.insert(path.to_owned(), object.clone());
        // Nobody may be watching.
        let _ = self
            .changes
            .send(Change::Event(list_of(path), json!({"type": "MODIFIED", "object": object})));
        object
    }

    /// Gives a Job that is let go its Pod.
    fn run(&self, world: &mut World, job: &Value) {
        let name = job["metadata"]["name"].as_str().unwrap();
        let path = format!(
            "/api/v1/namespaces/{}/pods/{name}-x",
            job["metadata"]["namespace"].as_str().unwrap()
        );
        if !world.runs || job["spec"]["suspend"] != false || world.objects.contains_key(&path) {
            return;
        }
        let container = &job["spec"]["template"]["spec"]["containers"][0]["name"];
        let ended = json!({"exitCode": world.exit_code, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": pod_of(job, &format!("{name}-x"), "p"),
            "status": {"phase": "Failed", "containerStatuses": [{
                "name": container, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": ended},
            }]},
        });
        self.change(world, &path, pod);
    }

    /// The same, unless that is an apply without force of a Job that was let go since: whether it
    /// is suspended is somebody else's then.
    fn apply(&self, path: &str, patch: Value, is_by_force: bool) -> (StatusCode, Value) {
        let was_let_go = || {
            let world = self.world.lock().unwrap();
            world.objects.get(path).is_some_and(|job| job["spec"]["suspend"] == false)
        };
        if !is_by_force && patch["spec"]["suspend"] == true && was_let_go() {
            return (StatusCode::CONFLICT, Value::Null);
        }
        self.patch(path, patch)
    }

    /// Creates or changes an object as a patch says, mappings merged.
    fn patch(&self, path: &str, patch: Value) -> (StatusCode, Value) {
        let mut world = self.world.lock().unwrap();
        let is_new = !world.objects.contains_key(path);
        let namespace = path
            .split("/namespaces/")
            .nth(1)
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_default();
        if path.contains("/jobs/")
            && !world.objects.contains_key(&format!("/api/v1/namespaces/{namespace}"))
        {
            return (StatusCode::NOT_FOUND, Value::Null);
        }
        let mut object = world
            .objects
            .get(path)
            .cloned()
            .unwrap_or_else(|| json!({"metadata": {"uid": format!("uid-{}", world.version)}}));
        merge(&mut object, patch);
        if let Some(change) = world.admits.clone().filter(|_| is_new && path.contains("/jobs/")) {
            merge(&mut object, change);
        }
        let object = self.change(&mut world, path, object);
        if path.contains("/jobs/") {
            self.run(&mut world, &object);
        }
        (if is_new { StatusCode::CREATED } else { StatusCode::OK }, object)
    }

    /// Creates an object, unless there is one of its name.
    fn create(&self, path: &str, object: Value) -> (StatusCode, Value) {
        let path = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
        let mut world = self.world.lock().unwrap();
        if world.objects.contains_key(&path) {
            return (StatusCode::CONFLICT, Value::Null);
        }
        (StatusCode::CREATED, self.change(&mut world, &path, object))
    }

    fn list(&self, path: &str, uri: &Uri) -> Value {
        let world = self.world.lock().unwrap();
        let below = format!("{path}/");
        let Query(asked) = Query::<BTreeMap<String, String>>::try_from_uri(uri).unwrap();
        let selector = asked.get("labelSelector").map(String::as_str).unwrap_or_default();
        let is_wanted = |object: &Value| {
            let mut labels = selector.split(',').filter_map(|label| label.split_once('='));
            labels.all(|(key, value)| object["metadata"]["labels"][key] == value)
        };
        let all = world
            .objects
            .iter()
            .filter(|(name, _)| name.starts_with(&below))
            .map(|(_, object)| object);
        let items: Vec<&Value> = all.filter(|object| is_wanted(object)).collect();
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": world.version.to_string()}, "items": items})
    }
}
