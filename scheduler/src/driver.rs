//! The loop: event -> step -> commit -> perform. One task owns every instance's state; everybody
//! else asks through [`Handle`]. What is asked together is committed together.
//!
//! ```text
//!  http ──▶ Handle ──▶ planner ──▶ calls ──┐
//!              └───────────────────▶ calls ─┤
//!  runners ──▶ news ──▶ intake ──▶ arrivals ┼──▶ run (world, batch) ──▶ store, then perform
//!                                   timers ─┘
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use engine::limiter::Limits;
use schema::api::{
    AcknowledgeRequest, DecisionRequest, Diagnostic, ObserveRequest, OpenWindowRequest,
    PauseRequest, RefreshRequest,
};
use schema::id::InstanceId;
use schema::log_kind::LogKind;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::compile::Options;
use crate::perform::Performer;
use crate::runner::registry::Runners;
use crate::runner::{ClusterQuestions, RunnerEvent};
use crate::secrets::Sealer;
use crate::store::{Store, StoreError};

mod arrivals;
mod batch;
mod breakers;
mod broken;
mod caller;
mod calls;
mod checks;
mod credentials;
mod degraded;
mod going_back;
mod hand_over;
mod handle;
mod intake;
mod metrics;
mod notices;
mod once;
mod outcome;
mod planner;
mod recover;
mod revisions;
mod run;
mod shown;
mod steps;
mod timers;
mod together;
mod upcoming;
mod words;
mod world;

use checks::CheckSources;
pub use checks::CheckedInstances;

pub use crate::names::InstanceNames;
pub use caller::Caller;
pub use handle::Handle;
pub use metrics::LoopMetrics;
pub(crate) use planner::diff::{diff as document_diff, masked_document};
pub use planner::new_token;
pub use revisions::{CommitRevisions, RevisionFollower, ServiceOfApplication};
pub use run::Fatal;
pub use upcoming::UpcomingAction;

/// News of the log that a slow reader may fall behind before it misses some.
const LOG_LIMIT: usize = 1024;

/// A service instance as people name it; each part a name or an id.
#[derive(Debug, Clone)]
pub struct InstanceTarget {
    pub application: String,
    pub service: String,
    pub channel: String,
}

/// Something that changed nothing and that people should be able to find in the log.
#[derive(Debug, Clone)]
pub struct Remark {
    /// The instance that it is about.
    pub instance: InstanceId,
    /// What happened.
    pub kind: LogKind,
    /// A sentence for people.
    pub message: String,
    /// More, for programs.
    pub data: serde_json::Value,
}

/// What a person can ask of one instance.
#[derive(Debug, Clone)]
pub enum Ask {
    /// Say yes to an approval.
    Approve(DecisionRequest),
    /// Say no to an approval.
    Reject(DecisionRequest),
    /// Stop fetch and apply.
    Pause(PauseRequest),
    /// Stop apply alone.
    Observe(ObserveRequest),
    /// Undo `Pause` and `Observe`.
    Resume,
    /// Look at it now.
    Refresh(RefreshRequest),
    /// Try again now.
    Retry,
    /// Leave the drift that there is as it is, or end that.
    Acknowledge(AcknowledgeRequest),
    /// Let what is desired start outside its window, or end that.
    OpenWindow(OpenWindowRequest),
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
    /// Whoever asks may not change this. 403.
    #[error("{0}")]
    Forbidden(String),
    /// The config documents or parameter values are wrong. 422.
    #[error("{} in the config", problems(.0.len()))]
    Config(Vec<Diagnostic>),
    /// A row of the database is what no program of ours wrote: its place and the reason. 500, as
    /// where it is only shown.
    #[error("a row of the database cannot be read: {0}")]
    Unreadable(String),
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

/// What the driver is built from.
#[derive(Debug)]
pub struct DriverParts {
    /// The database.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// For raw secrets.
    pub sealer: Sealer,
    /// What jobs left.
    pub blobs: Blobs,
    /// Where jobs run.
    pub runners: Runners,
    /// For what is asked about clusters and is about no job.
    pub clusters: Arc<dyn ClusterQuestions>,
    /// What the runners tell.
    pub news: mpsc::Receiver<RunnerEvent>,
    /// Where local jobs start from.
    pub root: PathBuf,
    /// Of the lanes.
    pub limits: Limits,
    /// Look only, never apply.
    pub observer: bool,
    /// No apply starts before [`Handle::let_applies_start`].
    pub holds_applies: bool,
    /// How documents are understood.
    pub options: Options,
}

/// The driver's tasks, under way.
#[derive(Debug)]
pub struct Driver {
    /// The way in.
    pub handle: Handle,
    /// Counts the commits that had messages to people in them.
    pub notified: watch::Receiver<u64>,
    /// Ends when the driver was stopped, or must stop.
    pub done: tokio::task::JoinHandle<Result<(), Fatal>>,
}

impl Driver {
    /// Loads what the database has, takes up what was pending, and runs until `stop`.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be read.
    pub async fn start(parts: DriverParts, stop: CancellationToken) -> Result<Self, StoreError> {
        let DriverParts { store, clock, sealer, options, runners, observer, .. } = parts;
        let (inbox, calls, arrivals) = run::Inbox::new();
        let (planner, requests) = planner::Queue::new();
        let (log, _) = broadcast::channel(LOG_LIMIT);
        let revisions = revisions::CommitRevisions::beginning(clock.now());
        let (health, health_out) = watch::channel(Health::Ready);
        let (broken, broken_out) = watch::channel(Vec::new());
        let mut recovered =
            recover::recover(&store, &runners, parts.limits, observer, clock.now()).await?;
        recovered.world.lanes.hold_applies(parts.holds_applies);
        let handle = Handle {
            calls: calls.clone(),
            planner: planner.clone(),
            store: store.clone(),
            log: log.clone(),
            revisions: revisions.clone(),
            health: health_out,
            broken: broken_out,
            checks: CheckSources::of(parts.clusters, &runners, &parts.root, &parts.blobs),
            lost: recovered.lost.as_slice().into(),
            is_observer: observer,
        };
        let notices = notices::Notices::stored(&store).await?;
        let notified = notices.written();
        let release_seq = recovered.world.counters.release;
        let releases_above = store.releases_above().await?;
        let performer =
            Performer::new(store.clone(), clock.clone(), sealer.clone(), runners, parts.root);
        let performer = Arc::new(performer);
        let handed_at = tokio::time::Instant::now();
        let driver = run::DriverLoop {
            late: recovered.unstarted,
            performer: performer.clone(),
            planner,
            world: recovered.world,
            inbox,
            log,
            revisions,
            health,
            stop: stop.clone(),
            numbers: LoopMetrics::default(),
            notices,
            waiting: recovered.tasks,
            going_back: going_back::GoingBack::default(),
            deferred: Vec::new(),
            jobs_noted: recovered.handed.into_iter().map(|job| (job, handed_at)).collect(),
            performed: Vec::new(),
            held: recovered.ended,
            retry: None,
            turned_at: clock.now(),
            told_to_observe: false,
            broken_at_start: recovered.broken,
            again_at_start: recovered.again,
            once_until: BTreeMap::new(),
            steps: steps::Steps::since_last_run(&store, &clock).await?,
            broken,
            observer,
            store: store.clone(),
            clock: clock.clone(),
        };
        let planner =
            planner::Planner { store, clock, sealer, options, calls, release_seq, releases_above };
        let (news, blobs) = (parts.news, parts.blobs);
        let done = tokio::spawn(with_helpers(driver, stop, move |helpers, stop| {
            helpers.spawn(planner.run(requests, stop.clone()));
            helpers.spawn(intake::run(news, arrivals, blobs, performer, stop));
        }));
        Ok(Self { handle, notified, done })
    }
}

/// Runs the loop beside its helpers, which end with it: nothing is left that nobody waits for.
async fn with_helpers(
    driver: run::DriverLoop,
    stop: CancellationToken,
    start: impl FnOnce(&mut JoinSet<()>, CancellationToken),
) -> Result<(), Fatal> {
    let helpers_stop = stop.child_token();
    let mut helpers = JoinSet::new();
    start(&mut helpers, helpers_stop.clone());
    let result = driver.run().await;
    helpers_stop.cancel();
    helpers.shutdown().await;
    result
}
