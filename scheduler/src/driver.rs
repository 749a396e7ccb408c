//! The loop: event -> step -> commit -> perform. One task owns every instance's state; everybody else asks through
//! [`Handle`]. What is asked together is committed together.

use std::collections::BTreeMap;

use schema::api::{ConfigsRequest, ConfigsResult, DecisionRequest, Diagnostic, Explanation, PushRequest, Pushed, RollbackRequest};
use schema::id::JobId;

/// Who asks, for the audit log.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Name of the token.
    pub who: String,
    /// Address, or `local`.
    pub origin: String,
}

/// A service instance as people name it; each part a name or an id.
#[derive(Debug, Clone)]
pub struct Target {
    /// The application.
    pub application: String,
    /// The service.
    pub service: String,
    /// The channel.
    pub channel: String,
}

/// What a person can ask of one instance.
#[derive(Debug, Clone)]
pub enum Ask {
    /// Say yes to an approval.
    Approve(DecisionRequest),
    /// Say no to an approval.
    Reject(DecisionRequest),
    /// Stop fetch and apply.
    Pause,
    /// Undo `Pause`.
    Resume,
    /// Try again now.
    Retry,
}

/// Why the driver does not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such thing. 404.
    #[error("{0}")]
    NotFound(String),
    /// It is there, and in no state for this. 409.
    #[error("{0}")]
    Conflict(String),
    /// The request is wrong. 400.
    #[error("{0}")]
    Invalid(String),
    /// The config documents or parameter values are wrong. 422.
    #[error("{} in the config", problems(.0.len()))]
    Config(Vec<Diagnostic>),
    /// Nothing can be stored at present: disk full, database locked or away. 503.
    #[error("{0}")]
    Unavailable(String),
}

fn problems(count: usize) -> String {
    if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") }
}

/// Whether decisions can be stored at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// They can.
    Ready,
    /// The last commit failed: nothing new is started until one succeeds. Reading goes on.
    Degraded {
        /// Why, for people.
        why: String,
        /// Since when.
        since: schema::time::Timestamp,
    },
}

/// The way into the driver's queue. Cloned freely; the queue is bounded, so asking waits when the driver is behind.
#[derive(Debug, Clone)]
pub struct Handle {}

#[expect(unused_variables, clippy::unimplemented, reason = "the driver is not written yet")]
impl Handle {
    /// Checks, compares and (unless `dry_run`) stores config documents; all or nothing. With `push` also releases.
    ///
    /// # Errors
    /// [`Refusal::Config`] with every problem; [`Refusal::Unavailable`].
    pub async fn apply_configs(&self, request: ConfigsRequest, caller: Caller) -> Result<ConfigsResult, Refusal> {
        unimplemented!()
    }

    /// Makes a release of a service.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn push(&self, application: String, service: String, request: PushRequest, caller: Caller) -> Result<Pushed, Refusal> {
        unimplemented!()
    }

    /// Makes a release that goes back to an earlier version.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn rollback(
        &self,
        application: String,
        service: String,
        request: RollbackRequest,
        caller: Caller,
    ) -> Result<Pushed, Refusal> {
        unimplemented!()
    }

    /// Does to one instance what a person asks.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn ask(&self, target: Target, ask: Ask, caller: Caller) -> Result<(), Refusal> {
        unimplemented!()
    }

    /// Stops a job.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn cancel_job(&self, job: JobId, caller: Caller) -> Result<(), Refusal> {
        unimplemented!()
    }

    /// Why an instance stands where it stands.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub async fn explain(&self, target: Target) -> Result<Explanation, Refusal> {
        unimplemented!()
    }

    /// Runs one command of one instance now, changing nothing: the dry run.
    ///
    /// # Errors
    /// Any [`Refusal`].
    pub async fn run_once(&self, target: Target, kind: schema::status::JobKind, caller: Caller) -> Result<JobId, Refusal> {
        unimplemented!()
    }

    /// Stores a secret's next version and returns its number.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], [`Refusal::Unavailable`].
    pub async fn set_secret(&self, key: String, value: Vec<u8>, caller: Caller) -> Result<u64, Refusal> {
        unimplemented!()
    }

    /// Removes all versions of a secret.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`] when a service in force names it.
    pub async fn delete_secret(&self, key: String, caller: Caller) -> Result<(), Refusal> {
        unimplemented!()
    }

    /// Makes a token; its value is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] when the name was ever used, [`Refusal::Invalid`], [`Refusal::Unavailable`].
    pub async fn create_token(&self, request: schema::api::TokenRequest, caller: Caller) -> Result<schema::api::NewToken, Refusal> {
        unimplemented!()
    }

    /// Ends a token.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`] when it is the last admin token that is valid, [`Refusal::Unavailable`].
    pub async fn revoke_token(&self, name: String, caller: Caller) -> Result<(), Refusal> {
        unimplemented!()
    }

    /// Whether decisions can be stored at present: what `/readyz` shows.
    pub fn health(&self) -> tokio::sync::watch::Receiver<Health> {
        unimplemented!()
    }

    /// Log entries as they are committed, for server-sent events and `dev`; slow readers miss some and are told.
    pub fn watch(&self) -> tokio::sync::broadcast::Receiver<std::sync::Arc<schema::api::LogEntry>> {
        unimplemented!()
    }

    /// Numbers for `/metrics`, by metric name with labels.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn metrics(&self) -> Result<BTreeMap<String, f64>, Refusal> {
        unimplemented!()
    }
}
