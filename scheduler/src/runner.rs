//! Starts, watches and stops jobs, here or in a cluster. Has no opinions: the engine decided, the
//! outcome goes back as an event. Called by `perform`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;

use futures::future::BoxFuture;
use schema::api::Finding;
use schema::id::{
    ApplicationName, BlobId, ChannelName, InstanceId, JobId, RuntimeName, ServiceName,
};
use schema::mask::Secrets;
use schema::report::Report;
use schema::spool::Stream;
use schema::status::JobKind;
use schema::time::Timestamp;
use schema::wire::HIDDEN_PREFIX;
use tokio::sync::mpsc;

use crate::compile::{ClusterPlace, Command};

pub mod cluster;
pub mod evidence;
mod job_tasks;
mod leave;
pub mod local;
pub mod registry;
mod wrapped;

pub use leave::{Leave, LeaveRefusal};

/// One job, complete: whoever has this can run it without asking anybody.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Its id; names everything that is made for it, so that a repeated start finds the first.
    pub job: JobId,
    /// Which command.
    pub kind: JobKind,
    /// From 1; a job that has to authenticate itself does so as this attempt.
    pub attempt: u32,
    /// The command. Secrets are opened in `env`, not here.
    pub command: Command,
    /// What to set on top of what local jobs inherit, `PVN_*` included, secrets opened. A later
    /// entry wins.
    pub env: Vec<(String, String)>,
    /// Inherit only PATH, HOME, USER, LANG and TMPDIR (`local: {env: clean}`) instead of the
    /// daemon's environment less `PVN_*`.
    pub clean_env: bool,
    /// What `command.working_directory` is relative to (`local: {root: DIR}`); `None` = where the
    /// daemon was started.
    pub root: Option<std::path::PathBuf>,
    /// Keys in `env` whose values are secret.
    pub secret_keys: Vec<String>,
    /// Secret values that it is not given and may find in its inputs; what it prints does not show
    /// them.
    pub hidden: Vec<OsString>,
    /// Secret values that applies of its instance were given before and that may be live yet; what
    /// it prints does not show them. Only a wrapper that is surely there is handed them.
    pub former: Vec<OsString>,
    /// Longest run, milliseconds.
    pub timeout_ms: Option<i64>,
    /// Exit codes after which declared output files must exist.
    pub success_exit_codes: Vec<i32>,
    /// Files that `--in PATH=REF` can name: `fetch:NAME` -> blob.
    pub inputs: Vec<(String, BlobId)>,
    /// The service instance that it is for: on this machine it has a private directory of it.
    pub instance: Option<Instance>,
    /// Where on a cluster it runs, and whose it is; `None` = on this machine.
    pub cluster: Option<ClusterJob>,
}

impl JobSpec {
    /// The first attempt of a command that gets nothing and may take its time, on this machine.
    pub fn new(job: JobId, kind: JobKind, command: Command) -> Self {
        Self {
            job,
            kind,
            attempt: 1,
            command,
            env: Vec::new(),
            clean_env: false,
            root: None,
            secret_keys: Vec::new(),
            hidden: Vec::new(),
            former: Vec::new(),
            timeout_ms: None,
            success_exit_codes: vec![0],
            inputs: Vec::new(),
            instance: None,
            cluster: None,
        }
    }
}

impl JobSpec {
    /// The variables in which its wrapper finds the values that are only to be masked.
    pub(crate) fn hidden_variables(&self) -> impl Iterator<Item = (String, &OsString)> {
        let former = if self.is_surely_wrapped() { self.former.as_slice() } else { &[] };
        self.hidden
            .iter()
            .chain(former)
            .enumerate()
            .map(|(number, value)| (format!("{HIDDEN_PREFIX}{number}"), value))
    }

    /// Whether its command runs under a wrapper, which takes away what is not for the command. What
    /// an image starts by itself nobody here knows.
    fn is_surely_wrapped(&self) -> bool {
        let Some(cluster) = &self.cluster else { return true };
        let containers = self
            .command
            .job
            .as_deref()
            .and_then(|job| job.pointer("/spec/template/spec/containers")?.as_array());
        let main = containers
            .into_iter()
            .flatten()
            .find(|container| container["name"] == self.command.name.as_str());
        let program = main.and_then(|container| container.pointer("/command/0")?.as_str());
        cluster.place.wrapper_image.is_some() || program.is_some_and(wrapped::is_wrapper)
    }
}

/// The service instance that a job is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its id in the database of now; an older copy of that may give it another one.
    pub id: InstanceId,
    /// `APPLICATION.SERVICE.CHANNEL`, which stays.
    pub name: String,
}

impl Instance {
    /// The one of these names.
    pub fn new(
        id: InstanceId,
        application: &ApplicationName,
        service: &ServiceName,
        channel: &ChannelName,
    ) -> Self {
        Self { id, name: format!("{application}.{service}.{channel}") }
    }
}

/// What only a job on a cluster needs.
#[derive(Debug, Clone)]
pub struct ClusterJob {
    /// Where.
    pub place: ClusterPlace,
    /// The application, for labels.
    pub application: ApplicationName,
    /// The service, for labels and names.
    pub service: ServiceName,
    /// The channel, for labels.
    pub channel: ChannelName,
}

/// What the runner tells.
#[derive(Debug, Clone)]
pub enum RunnerEvent {
    /// The job's command runs. Not told of a job that is over within some tens of milliseconds: its
    /// end says when it began.
    Started {
        job: JobId,
        /// Since when.
        at: Timestamp,
    },
    /// The runner has all that the job needs and would let its command run now: may it? Only a
    /// runner asks with which a job is some time before it runs. It asks each time before it
    /// tries; nothing was let run so far, as far as it knows.
    Asks {
        job: JobId,
        /// How to tell it.
        leave: Leave,
    },
    /// Something keeps the job from starting, or does so no more. Told again after a restart; of a
    /// job that runs only that its place cannot be looked at.
    Waits {
        job: JobId,
        /// What it waits for; `None` = it is starting.
        wait: Option<JobWait>,
    },
    /// The job is over and this is all that will be known. Told again after a restart until
    /// `forget` is called.
    Ended {
        job: JobId,
        /// How.
        end: End,
        /// Whether every process of it is known to be gone (P7). A job that leaves processes
        /// running on purpose is not gone.
        gone: bool,
    },
}

/// What keeps a job from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWait {
    /// What it is, in the words of the place where the job is to run; bounded.
    pub why: String,
    /// What would end it, as the end of the sentence "it ends when …".
    pub ends_when: String,
    /// When the runner gives up; then the job has not started.
    pub until: Timestamp,
    /// Whether another try makes sense then: room on a node, but not the name of an image.
    pub surroundings: bool,
    /// Whether it is its place that cannot be looked at, so that the job may run, or be over, or
    /// that does not take its stop.
    pub is_unseen: bool,
}

/// How a job ended, as far as the place where it ran can tell. Streams and files are in the blob
/// store by then.
#[derive(Debug, Clone)]
pub enum End {
    /// There is a report. With `exec_error` nothing ran, and `surroundings` says whether another
    /// try makes sense. Streams and files are in the blob store by then, under the ids that the
    /// report names; nothing is inline.
    Reported(Box<Report>),
    /// It is known that the command never started.
    NotStarted {
        /// Why, for people.
        why: String,
        /// Whether another try makes sense: no process slots, disk full.
        surroundings: bool,
    },
    /// The command never started: a gate shut, which its runner was told when it asked for leave,
    /// and it took the job back.
    TakenBack {
        /// Which gate, for people.
        why: String,
    },
    /// The command never started, because a file of the fetch that it is to be given is lost:
    /// another fetch makes it anew.
    InputLost {
        /// What is lost, for people.
        why: String,
    },
    /// Nobody can say.
    Unknown {
        /// What is known, for people.
        why: String,
        /// The output found, if any; without exit code and signal.
        report: Option<Box<Report>>,
    },
}

impl End {
    /// Whether it says anything in words.
    pub fn has_words(&self) -> bool {
        match self {
            Self::Reported(report) => report.has_words(),
            Self::NotStarted { .. }
            | Self::TakenBack { .. }
            | Self::InputLost { .. }
            | Self::Unknown { .. } => true,
        }
    }

    /// Hides secrets in what it says in words.
    pub fn hide(&mut self, secrets: &Secrets) {
        let (why, report) = match self {
            Self::Reported(report) => (None, Some(report)),
            Self::NotStarted { why, .. } | Self::TakenBack { why } | Self::InputLost { why } => {
                (Some(why), None)
            }
            Self::Unknown { why, report } => (Some(why), report.as_mut()),
        };
        if let Some(why) = why {
            *why = secrets.hide(why);
        }
        if let Some(report) = report {
            report.hide(secrets);
        }
    }
}

/// Where the runner's news go. Bounded: a runner that is ahead waits.
pub type News = mpsc::Sender<RunnerEvent>;

/// Which bytes of what a job that runs has printed so far.
#[derive(Debug, Clone, Copy)]
pub struct OutputPiece {
    pub job: JobId,
    pub stream: Stream,
    /// From which byte on.
    pub offset: u64,
    /// At most this many bytes.
    pub limit: usize,
}

/// What is to be looked at on this machine.
#[derive(Debug, Clone)]
pub struct PlaceLook {
    /// The runtime that asks.
    pub runtime: RuntimeName,
    /// The jobs that would run there, without what a secret is.
    pub jobs: Vec<JobSpec>,
}

/// A kind of place where jobs run. One implementation stands for each; tests bring a scripted one.
/// Which of them has a job says its target ([`registry`]).
pub trait Runner: std::fmt::Debug + Send + Sync + 'static {
    /// Starts a job, or takes up the one of this id that was started before. What comes of it is
    /// news. Never asked for a job that was forgotten.
    fn start(&self, spec: JobSpec);

    /// Stops a job: the stop signal, then KILL; the second time KILL at once. Its end is news.
    /// `false` when no such job runs.
    fn stop(&self, job: JobId) -> bool;

    /// Whether a stop of this job reaches anybody.
    fn hears(&self, _job: JobId) -> bool {
        true
    }

    /// Takes up the jobs that were decided and have not ended, after a restart; called once, before
    /// any start. Those that are known never to have been started are returned. What became of
    /// the others is news, as soon as it is known: a place that does not answer yet says
    /// nothing. Whatever else is left here is removed, unless it runs.
    fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>>;

    /// Removes what is kept of jobs whose ends are stored. Harmless when repeated, and for jobs
    /// that it never had.
    fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()>;

    /// What a job that runs has printed so far; `None` when nothing of it is here.
    fn tail(&self, piece: OutputPiece) -> BoxFuture<'_, io::Result<Option<Vec<u8>>>>;

    /// In which order pieces of both streams of a job that runs were read, from this byte of the
    /// [`ORDER`](schema::spool::ORDER) on; nothing where nobody writes that down.
    fn order(&self, _job: JobId, _offset: u64) -> BoxFuture<'_, io::Result<Vec<u8>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Jobs of which it has kept what a restart must know elsewhere than in the spool directory on
    /// this machine, whatever the database says of them.
    fn recorded(&self) -> Vec<JobId> {
        Vec::new()
    }

    /// What commands need where it runs them, looked at without a job; nothing where it cannot.
    fn look(&self, _look: PlaceLook) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// These of the recorded ones the database does not know, as an older copy of it would not:
    /// what runs of them goes on. Called before [`Self::recover`].
    fn spare(&self, _unknown: Vec<JobId>) {}

    /// Removes what is kept for a service instance from job to job: it is deleted for good. Where a
    /// job runs that may use it and is not known, that comes once the job has ended, unless the
    /// instance has jobs again by then.
    fn forget_instance(&self, _instance: Instance) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The same for all instances but these; called once, before any start. Nothing while a job
    /// runs that is not known.
    fn retain_instances(
        &self,
        _kept: HashSet<InstanceId>,
        _known: Vec<JobId>,
    ) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Answers questions about clusters that are about no job.
pub trait ClusterQuestions: std::fmt::Debug + Send + Sync + 'static {
    /// What works and what does not at these places on clusters, found by trying, place by place.
    /// `Err` says why it cannot be tried at present, for people.
    fn check(&self, places: Vec<ClusterPlace>) -> BoxFuture<'_, Result<Vec<Finding>, String>>;

    /// Those of these places whose namespace is known not to be there. A cluster that does not
    /// answer soon says nothing.
    fn absent(&self, places: Vec<ClusterPlace>) -> BoxFuture<'_, Vec<ClusterPlace>>;
}
