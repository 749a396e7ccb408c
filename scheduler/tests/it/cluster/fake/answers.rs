//! What it answers to each request.

use std::ops::ControlFlow;

use super::*;

/// Which watch is told of what has this path.
pub(super) fn list_of(path: &str) -> &'static str {
    ["pods", "jobs"]
        .into_iter()
        .find(|list| path.contains(&format!("/{list}/")))
        .unwrap_or("others")
}

pub(super) fn merge(object: &mut Value, patch: Value) {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, patch) => *object = patch,
    }
}

pub(super) async fn answer(State(fake): State<Fake>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (method, path) = (parts.method, parts.uri.path().to_owned());
    let query = parts.uri.query().unwrap_or_default();
    let fault = {
        let mut world = fake.world.lock().unwrap();
        world.requests.push(format!("{method} {path}?{query}"));
        let at = world.faults.iter().position(|(of, part, _)| *of == method && path.contains(part));
        at.and_then(|at| world.faults.remove(at)).map(|(_, _, fault)| fault)
    };
    let is_watch = asks_to_watch(query);
    let token = fake.world.lock().unwrap().token;
    let authorization = parts
        .headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if !token.is_empty() && authorization != format!("Bearer {token}") {
        return said(401, "Unauthorized");
    }
    let refused = fake.world.lock().unwrap().refuses.filter(|_| !is_watch);
    match fault.or(refused.map(|(code, words)| Fault::Say(code, words))) {
        Some(Fault::Refuse(code)) => return status(code),
        Some(Fault::Say(code, words)) => return said(code, words),
        Some(Fault::Page(code)) => {
            return (
                StatusCode::from_u16(code).unwrap(),
                axum::response::Html("<html><h1>hello</h1></html>"),
            )
                .into_response();
        }
        // The connection ends with its task.
        Some(Fault::Cut) => std::panic::resume_unwind(Box::new(())),
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Hold) => drop(fake.held.acquire().await),
        _ => {}
    }
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    // Only server-side apply makes what is not there.
    let is_applied = parts
        .headers
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply-patch"));
    let done = if is_applied && !query.contains("dryRun") {
        ControlFlow::Continue(applied(&fake, fault, &parts.uri, &bytes))
    } else {
        act(&fake, &method, &parts.uri, &bytes)
    };
    let (code, answer) = match done {
        ControlFlow::Continue(done) => done,
        ControlFlow::Break(answer) => return answer,
    };
    match (fault, code) {
        (Some(Fault::DoneButTimedOut), _) => status(504),
        (_, StatusCode::NOT_FOUND) => status(404),
        (_, StatusCode::CONFLICT) => status(409),
        _ => (code, axum::Json(answer)).into_response(),
    }
}

fn asks_to_watch(query: &str) -> bool {
    query.contains("watch=true") || query.contains("watch=1")
}

fn applied(fake: &Fake, fault: Option<Fault>, uri: &Uri, bytes: &[u8]) -> (StatusCode, Value) {
    let patch: Value = serde_json::from_slice(bytes).unwrap();
    let is_by_force = uri.query().unwrap_or_default().contains("force=true");
    if fault == Some(Fault::AgainLater) {
        let (fake, path, patch) = (fake.clone(), uri.path().to_owned(), patch.clone());
        tokio::spawn(async move {
            drop(fake.held.acquire().await);
            fake.apply(&path, patch, is_by_force);
            fake.world.lock().unwrap().requests.push(format!("LATE {path}"));
        });
    }
    fake.apply(uri.path(), patch, is_by_force)
}

/// What comes of a request that nothing goes wrong with; an answer that is no object is the other
/// way out.
fn act(
    fake: &Fake,
    method: &Method,
    uri: &Uri,
    bytes: &[u8],
) -> ControlFlow<Response, (StatusCode, Value)> {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let is_watch = asks_to_watch(query);
    ControlFlow::Continue(match *method {
        Method::PATCH if query.contains("dryRun") => {
            (StatusCode::OK, serde_json::from_slice(bytes).unwrap())
        }
        Method::PATCH if !fake.world.lock().unwrap().objects.contains_key(path) => {
            return ControlFlow::Break(status(404));
        }
        Method::PATCH => fake.patch(path, serde_json::from_slice(bytes).unwrap()),
        Method::POST if path.ends_with("/selfsubjectaccessreviews") => {
            (StatusCode::CREATED, fake.review(serde_json::from_slice(bytes).unwrap()))
        }
        Method::POST if path.ends_with("/secrets") => {
            fake.create(path, serde_json::from_slice(bytes).unwrap())
        }
        Method::GET if path == "/version" => (StatusCode::OK, version()),
        Method::GET
            if is_watch
                && fake.world.lock().unwrap().forbidden.contains(&("watch", list_of(path))) =>
        {
            return ControlFlow::Break(said(403, "this may not be watched"));
        }
        Method::GET if is_watch => return ControlFlow::Break(fake.watch(path, query)),
        Method::GET if path.ends_with("/log") => {
            return ControlFlow::Break(fake.world.lock().unwrap().log.clone().into_response());
        }
        Method::GET if ["/jobs", "/pods", "/events"].iter().any(|list| path.ends_with(list)) => {
            (StatusCode::OK, fake.list(path, uri))
        }
        Method::GET => match fake.world.lock().unwrap().objects.get(path).cloned() {
            Some(object) => (StatusCode::OK, object),
            None => return ControlFlow::Break(status(404)),
        },
        Method::DELETE if path.ends_with("/pods") => (StatusCode::OK, fake.ask_to_end(uri, bytes)),
        Method::DELETE => {
            match fake.remove(path, &serde_json::from_slice(bytes).unwrap_or_default()) {
                Ok(removed) => (StatusCode::OK, removed),
                Err(code) => return ControlFlow::Break(status(code)),
            }
        }
        _ => return ControlFlow::Break(status(405)),
    })
}

/// The metadata of a Pod that a Job owns.
pub(super) fn pod_of(job: &Value, name: &str, uid: &str) -> Value {
    let job = &job["metadata"];
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": job["name"], "uid": job["uid"], "controller": true});
    json!({"name": name, "namespace": job["namespace"], "labels": job["labels"], "uid": uid, "ownerReferences": [owner]})
}

fn version() -> Value {
    let version = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    version.iter().map(|key| ((*key).to_owned(), Value::from("v1.34.4"))).collect()
}

fn status(code: u16) -> Response {
    said(code, &format!("fault {code}"))
}

fn said(code: u16, words: &str) -> Response {
    let reason = if code == 404 { "NotFound" } else { "Fault" };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": words});
    (StatusCode::from_u16(code).unwrap(), axum::Json(status)).into_response()
}
