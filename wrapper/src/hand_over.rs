//! Where a run's output and report go: to nobody (a dry run), into the spool directory of a local
//! job, or to a scheduler over HTTP. Called by `main` and `run`; all differences between the three
//! are here.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use schema::mask::Secrets;
use schema::report::Report;
use schema::spool;
use schema::wire::ENDED_BY_VARIABLE;

use crate::args::{self, DeclaredInput, ExecArguments};
use crate::deliver::DeliveryThreads;
use crate::deliver::spool::{Spool, SpoolAddress};
use crate::deliver::target::DeliveryTarget;
use crate::job::JobSlot;
use crate::locks::LockOwner;
use crate::outputs::OutputReceiver;
use crate::report::Began;
use crate::spawn::{Environment, SpawnRefusal, variable};
use crate::store::{Home, KeptBytes, KeptStream, LazyDirectory, temporary};
use crate::writer::say;
use crate::{inputs, last_words, report};

use self::http::Http;

mod http;

/// Name of the directory of locks.
const LOCKS: &str = "pvn-locks";

/// Who gets what a run leaves.
pub(crate) enum ReportSink {
    /// Nobody. `part_of`: the spool directory of the local job that our command is a part of.
    Dry { home: LazyDirectory, part_of: Option<PathBuf> },
    /// The daemon that shares the disk.
    Job(JobSlot),
    /// A scheduler over HTTP.
    Http(Box<Http>),
}

/// What a run leaves, to be handed over.
pub(crate) struct Ended {
    pub(crate) report: Report,
    /// What the wrapper ends with.
    pub(crate) code: u8,
    pub(crate) streams: [KeptStream; 2],
    /// Whether what was shown of a stream ends within a line. The two may be one log, so either
    /// counts.
    pub(crate) is_within_a_line: bool,
    /// Declared outputs for the scheduler, and where they are.
    pub(crate) to_send: Vec<(String, std::path::PathBuf)>,
}

impl Ended {
    /// Nothing ran.
    pub(crate) fn refused(began: &Began, refusal: &SpawnRefusal) -> Self {
        let streams = [KeptStream::nothing(), KeptStream::nothing()];
        Self {
            report: began.refused(refusal),
            code: refusal.code,
            streams,
            is_within_a_line: false,
            to_send: Vec::new(),
        }
    }
}

impl ReportSink {
    /// What flags and environment say. Warns when they say half.
    pub(crate) fn of(
        options: &ExecArguments,
        job: Option<JobSlot>,
        environment: &Environment,
        began: &Began,
    ) -> Self {
        if let Some(job) = job {
            return Self::Job(job);
        }
        let part_of = variable(environment, spool::DIRECTORY_VARIABLE).map(PathBuf::from);
        let target = match DeliveryTarget::of_environment(environment) {
            Ok(target) => target,
            Err(warning) => {
                say(&warning);
                None
            }
        };
        let Some(target) = target else {
            return Self::dry(options.spool.as_deref(), part_of, environment);
        };
        let directory = options
            .spool
            .clone()
            .map_or_else(|| default_directory(environment, &target), LazyDirectory::At);
        Self::http((target, options.deliver_for), environment, directory, options.max_output, began)
    }

    /// The same for arguments that make no sense.
    pub(crate) fn of_usage_error(
        raw: &[OsString],
        environment: &Environment,
        began: Began,
    ) -> Self {
        if let Some(directory) = args::job_of(raw)
            && let Ok(job) = JobSlot::claim(&directory, began.timestamp(), Duration::ZERO)
        {
            return Self::Job(job);
        }
        match DeliveryTarget::of_environment(environment) {
            Ok(Some(target)) => {
                let directory = default_directory(environment, &target);
                let deliver_for = args::delivery_timeout(environment);
                Self::http(
                    (target, deliver_for),
                    environment,
                    directory,
                    args::MAX_OUTPUT_BYTES,
                    &began,
                )
            }
            _ => Self::dry(None, None, environment),
        }
    }

    fn http(
        (target, deliver_for): (DeliveryTarget, Duration),
        environment: &Environment,
        directory: LazyDirectory,
        max_output_bytes: u64,
        began: &Began,
    ) -> Self {
        let ended_by_ms =
            variable(environment, ENDED_BY_VARIABLE).and_then(|text| text.to_str()?.parse().ok());
        let about = SpoolAddress {
            url: target.url.clone(),
            job: target.job.clone(),
            max_output_bytes,
            start_timestamp_ns: began.nanoseconds(),
        };
        Self::Http(Box::new(Http {
            delivery: DeliveryThreads::new(target),
            deliver_for,
            ended_by_ms,
            directory,
            about,
            spool: None,
        }))
    }

    fn dry(spool: Option<&Path>, part_of: Option<PathBuf>, environment: &Environment) -> Self {
        let home = match (spool, &part_of) {
            // A wrapper around us may use the directory that the environment names for both, and an
            // earlier one may have left there what it could not deliver.
            (Some(spool), _) if Spool::is_free(spool) => LazyDirectory::At(spool.to_owned()),
            (_, Some(job)) => LazyDirectory::Own(job.clone()),
            (_, None) => LazyDirectory::Temporary {
                under: variable(environment, "TMPDIR").map(OsStr::to_owned),
                name: None,
            },
        };
        Self::Dry { home, part_of }
    }

    /// Puts the inputs in place, within so long if it is given.
    pub(crate) fn place(
        &self,
        wanted: &[DeclaredInput],
        environment: &Environment,
        most: Option<Duration>,
    ) -> Result<(), SpawnRefusal> {
        match self {
            Self::Dry { part_of, .. } => inputs::place(wanted, part_of.as_deref(), environment),
            Self::Job(job) => inputs::place(wanted, Some(job.directory()), environment),
            Self::Http(http) => {
                let most = most.map_or(http.deliver_for, |most| most.min(http.deliver_for));
                inputs::fetch(wanted, &http.delivery, environment, most)
            }
        }
    }

    /// Just before the start: from now on somebody else can deliver what we leave.
    pub(crate) fn prepare(&mut self) {
        if let Self::Http(http) = self {
            match http.make_spool() {
                Ok(spool) => http.spool = Some(spool),
                Err(error) => say(&format!(
                    "no spool in {}: {error}; output waits for its delivery in memory, which \
                     keeps the ends of long streams only",
                    http.directory.usual().display()
                )),
            }
        }
    }

    /// Where large streams go.
    pub(crate) fn home(&self) -> Home {
        let live_after = Some(Duration::from_millis(spool::LIVE_AFTER_MS));
        match self {
            Self::Dry { home, .. } => {
                Home { directory: Some(home.clone()), live_after: None, live: None }
            }
            Self::Job(job) => Home {
                directory: Some(LazyDirectory::At(job.directory().to_owned())),
                live_after,
                live: None,
            },
            Self::Http(http) => {
                let directory = http
                    .spool
                    .as_ref()
                    .map(|spool| LazyDirectory::At(spool.directory().to_owned()));
                Home { directory, live_after, live: Some(http.delivery.live.clone()) }
            }
        }
    }

    /// Where the order of the streams' pieces is written down: for the daemon, which shows them
    /// together.
    pub(crate) fn order(&self) -> Option<PathBuf> {
        match self {
            Self::Job(job) => Some(job.directory().to_owned()),
            Self::Dry { .. } | Self::Http(_) => None,
        }
    }

    /// Where declared outputs go.
    pub(crate) fn outputs(&self) -> OutputReceiver<'_> {
        match self {
            Self::Dry { part_of, .. } => {
                part_of.as_deref().map_or(OutputReceiver::Nobody, OutputReceiver::Job)
            }
            Self::Job(job) => OutputReceiver::Job(job.directory()),
            Self::Http(http) => OutputReceiver::Scheduler(http.spool.as_ref()),
        }
    }

    /// Whether the termination log is ours: a local job runs in no container of its own.
    pub(crate) fn tells_kubelet(&self) -> bool {
        !matches!(self, Self::Job(_) | Self::Dry { part_of: Some(_), .. })
    }

    /// Writes the short form of a report, without secrets, into the termination log if that is
    /// ours.
    pub(crate) fn tell_kubelet(&self, report: &Report, environment: &Environment) {
        let signer = match self {
            Self::Http(http) => http
                .delivery
                .target
                .tokens
                .current()
                .ok()
                .map(|token| (http.delivery.target.job.as_str(), token)),
            Self::Dry { part_of: None, .. } => None,
            Self::Job(_) | Self::Dry { part_of: Some(_), .. } => return,
        };
        last_words::termination_log(
            report,
            environment,
            signer.as_ref().map(|(job, token)| (*job, token.as_str())),
        );
    }

    /// Hands everything over. Failing to do so never changes the code of a command that ran.
    pub(crate) fn hand_over(
        self,
        ended: Ended,
        to: Option<&Path>,
        environment: &Environment,
        secrets: Option<&Secrets>,
    ) {
        let Ended { mut report, streams, is_within_a_line, to_send, .. } = ended;
        if let Some(secrets) = secrets {
            report.hide(secrets);
        }
        report.first_process = matches!(self, Self::Http(_)) && std::process::id() == 1;
        self.tell_kubelet(&report, environment);
        if let Some(to) = to
            && let Err(error) = report::write(&report, to)
        {
            say(&format!("cannot write the report to {}: {error}", to.display()));
        }
        match self {
            Self::Job(mut job) => {
                if let Err(error) = job.report(&report, &streams) {
                    say(&format!(
                        "cannot write the report into {}: {error}",
                        job.directory().display()
                    ));
                }
            }
            Self::Dry { home: LazyDirectory::At(_), .. } => {}
            Self::Dry { home, .. } => {
                // It is made for a large stream only. Nothing else is in it, and what cannot be
                // removed has nobody else to remove it.
                if streams
                    .iter()
                    .any(|kept| matches!(kept.place, KeptBytes::File(_)) || kept.lost > 0)
                {
                    let _ = home.path().and_then(std::fs::remove_dir_all);
                }
            }
            Self::Http(http) => http.hand_over(report, streams, is_within_a_line, to_send),
        }
    }
}

impl LockOwner for ReportSink {
    fn lock_place(&self, environment: &Environment) -> Option<PathBuf> {
        match self {
            Self::Job(job) => Some(job.directory().parent()?.join(LOCKS)),
            Self::Dry { part_of: Some(job), .. } => Some(job.parent()?.join(LOCKS)),
            Self::Dry { part_of: None, .. } | Self::Http(_) => {
                Some(temporary(variable(environment, "TMPDIR")).ok()?.join(LOCKS))
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Http(http) if http.delivery.live.is_cancelled())
    }

    fn start(&mut self) {
        if let Self::Http(http) = self {
            http.delivery.start();
        }
    }

    fn is_of_the_job(&self) -> bool {
        matches!(self, Self::Job(_) | Self::Http(_))
    }
}

fn default_directory(environment: &Environment, target: &DeliveryTarget) -> LazyDirectory {
    LazyDirectory::Temporary {
        under: variable(environment, "TMPDIR").map(OsStr::to_owned),
        name: Some(target.job.clone()),
    }
}
