//! Turns what people ask of documents, releases, secrets and tokens into plans: rows, log entries
//! and events that the loop commits as one. One task, one request at a time, so a plan is always
//! made from what is in force; the loop is not held up by reading and compiling.

use std::sync::Arc;

use schema::api::{
    ConfigsRequest, ConfigsResult, Diagnostic, LogEntry, NewToken, PushRequest, Pushed,
    RollbackRequest, TokenRequest,
};
use schema::id::NotificationId;
use schema::log_kind::LogKind;
use schema::status::Role;
use schema::time::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::calls::{Call, Plan, Reply};
use super::checks::CheckedRuntime;
use super::going_back::Rollback;
use super::together::ConfiguredUpstream;
use super::{Caller, Refusal};
use crate::clock::Clock;
use crate::compile::{ClusterPlace, Options, Seal};
use crate::perform::RAW_SECRET;
use crate::secrets::Sealer;
use crate::store::{Store, StoreError, TokenRow};

mod back;
mod compared;
mod configs;
mod deletions;
pub(crate) mod diff;
mod earlier;
mod gates;
mod gone;
mod had;
mod kept;
mod keys;
mod notifications;
mod pieces;
mod places;
mod preview;
mod pushes;
mod recompile;
mod release;
mod snapshot;
mod stays;
mod tokens;
mod tried;

/// Requests that wait for the planner. Each is a person's or an instance's whole request; more
/// callers wait to be queued.
const QUEUE_LIMIT: usize = 64;

/// What can be asked.
#[derive(Debug)]
pub(super) enum Request {
    Configs {
        request: Arc<ConfigsRequest>,
        asked: ClusterAnswers,
        caller: Caller,
        reply: Reply<Planned>,
    },
    Push {
        application: String,
        service: String,
        request: PushRequest,
        caller: Caller,
        reply: Reply<Pushed>,
    },
    Rollback {
        application: String,
        service: String,
        request: RollbackRequest,
        caller: Caller,
        reply: Reply<Pushed>,
    },
    AutoRollback {
        rollback: Rollback,
        reply: oneshot::Sender<bool>,
    },
    SetSecret {
        key: String,
        value: Vec<u8>,
        if_changed: bool,
        caller: Caller,
        reply: Reply<u64>,
    },
    DeleteSecret {
        key: String,
        caller: Caller,
        reply: Reply<()>,
    },
    CreateToken {
        request: TokenRequest,
        caller: Caller,
        reply: Reply<NewToken>,
    },
    RevokeToken {
        name: String,
        caller: Caller,
        reply: Reply<()>,
    },
    ResendNotification {
        id: NotificationId,
        caller: Caller,
        reply: Reply<()>,
    },
    Upstream {
        application: String,
        service: String,
        reply: Reply<ConfiguredUpstream>,
    },
    Places {
        runtime: String,
        caller: Caller,
        reply: Reply<CheckedRuntime>,
    },
}

/// What came of configs.
#[derive(Debug)]
pub(super) enum Planned {
    Done(Box<ConfigsResult>),
    /// Nothing yet: whether these places are there has to be asked first. Clusters may not answer,
    /// so the planner does not ask them.
    Ask(Vec<ClusterPlace>),
}

/// What clusters said of places.
#[derive(Debug, Clone, Default)]
pub(super) struct ClusterAnswers {
    pub(super) places: Vec<ClusterPlace>,
    /// Those of them that are known not to be there.
    pub(super) absent: Vec<ClusterPlace>,
}

/// The way to the planner.
#[derive(Debug, Clone)]
pub(super) struct Queue(pub(super) mpsc::Sender<Request>);

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(QUEUE_LIMIT);
        (Self(sender), receiver)
    }

    /// An instance goes back to an earlier release. Returns whether what came of it is stored; a
    /// planner that is gone stores nothing.
    pub(super) async fn roll_back(&self, rollback: Rollback) -> bool {
        let (reply, done) = oneshot::channel();
        self.0.send(Request::AutoRollback { rollback, reply }).await.is_ok()
            && done.await.unwrap_or(false)
    }
}

pub(super) struct Planner {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) sealer: Sealer,
    pub(super) options: Options,
    pub(super) calls: mpsc::Sender<Call>,
    /// The number of the newest release over all services.
    pub(super) release_seq: i64,
    /// Above which number the releases of each service begin.
    pub(super) releases_above: u64,
}

/// Seals raw secrets of documents and parameters, so that they are nowhere in the clear.
struct RawSeal<'a>(&'a Sealer);

impl Seal for RawSeal<'_> {
    fn seal(&self, clear: &str) -> String {
        self.0.seal_stable(RAW_SECRET, clear.as_bytes())
    }
}

impl Planner {
    /// Serves requests until it is stopped or nobody can ask any more.
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::Receiver<Request>,
        stop: CancellationToken,
    ) {
        loop {
            let request = tokio::select! {
                () = stop.cancelled() => return,
                request = requests.recv() => request,
            };
            let Some(request) = request else { return };
            self.serve(request).await;
        }
    }

    async fn serve(&mut self, request: Request) {
        // A caller that no longer waits is no error.
        match request {
            Request::Configs { request, asked, caller, reply } => {
                drop(reply.send(self.apply_configs(&request, &asked, &caller).await));
            }
            Request::Push { application, service, request, caller, reply } => {
                drop(reply.send(self.push(&application, &service, &request, &caller).await));
            }
            Request::Rollback { application, service, request, caller, reply } => {
                drop(reply.send(self.rollback(&application, &service, &request, &caller).await));
            }
            Request::AutoRollback { rollback, reply } => {
                let _ = reply.send(self.auto_rollback(&rollback).await);
            }
            Request::SetSecret { key, value, if_changed, caller, reply } => {
                drop(reply.send(self.set_secret(key, value, if_changed, &caller).await));
            }
            Request::DeleteSecret { key, caller, reply } => {
                drop(reply.send(self.delete_secret(key, &caller).await))
            }
            Request::CreateToken { request, caller, reply } => {
                drop(reply.send(self.create_token(request, &caller).await))
            }
            Request::RevokeToken { name, caller, reply } => {
                drop(reply.send(self.revoke_token(name, &caller).await))
            }
            Request::ResendNotification { id, caller, reply } => {
                drop(reply.send(self.resend_notification(id, &caller).await))
            }
            Request::Upstream { application, service, reply } => {
                drop(reply.send(self.upstream(&application, &service).await))
            }
            Request::Places { runtime, caller, reply } => {
                drop(reply.send(self.places(&runtime, &caller).await))
            }
        }
    }

    /// Has the loop commit a plan.
    async fn commit(&self, plan: Plan) -> Result<(), Refusal> {
        let (reply, answer) = oneshot::channel();
        self.calls
            .send(Call::Plan { plan: Box::new(plan), reply })
            .await
            .map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// A fresh token that is valid until it is revoked: its text, and the row to store.
pub fn new_token(name: &str, role: Role, now: Timestamp) -> (String, TokenRow) {
    tokens::token(name, role.into(), now, None)
}

/// The daemon stops while somebody asks.
pub(super) fn stopping() -> Refusal {
    Refusal::Unavailable("the scheduler is stopping; ask again when it is back".to_owned())
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(why) => Self::Conflict(why),
            StoreError::Invalid(why) => Self::Invalid(why),
            // Trying again helps nobody; whoever mends it has to know the row.
            StoreError::Corrupt(why) => Self::Unreadable(why),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

/// What is allowed and probably not meant, about something that has no line in a file.
fn warning(path: String, message: String, help: String) -> Diagnostic {
    Diagnostic {
        file: String::new(),
        line: 0,
        column: 0,
        snippet: format!("warning: {message}\n  help: {help}"),
        path,
        message,
        help: Some(help),
    }
}

/// A log entry about what a person did; number and time come with the commit.
fn entry(kind: LogKind, caller: &Caller, message: String, data: serde_json::Value) -> LogEntry {
    LogEntry {
        seq: 0,
        at: Timestamp::from_millis(0),
        kind: kind.to_string(),
        actor: Some(caller.who.clone()),
        origin: Some(caller.origin.clone()),
        application: None,
        service: None,
        channel: None,
        message,
        data,
    }
}
