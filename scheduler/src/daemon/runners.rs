//! What runs jobs: on this machine, on clusters, and what takes in what comes of jobs elsewhere.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use schema::report::Report;
use schema::spool::ORDER_LIMIT_BYTES;
use schema::target::PlacedJob;
use tokio::sync::mpsc;

use super::error::StartError;
use super::io_error;
use super::owned::spool_directory;
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::delivery::{Delivery, DeliverySettings, TokenSigner};
use crate::http::{OutputRange, ReadOrder, ReadOutput};
use crate::local_root;
use crate::runner::cluster::{ClusterRunner, Owns};
use crate::runner::local::{self, LocalRunner};
use crate::runner::registry::Runners;
use crate::runner::{News, OutputPiece, RunnerEvent};
use crate::secrets::Sealer;
use crate::settings::{Settings, SettingsError};
use crate::store::Store;

/// News of the runner that wait for the driver; a runner that is ahead waits, its spools keep the
/// rest.
const NEWS_LIMIT: usize = 256;

/// Where what is elsewhere finds this daemon, and by whose word it is the right one.
pub(super) struct Reached<'a> {
    /// Where it listens.
    pub(super) url: &'a str,
    pub(super) authorities: Option<String>,
}

pub(super) struct JobRunners {
    /// What they tell.
    pub(super) news: mpsc::Receiver<RunnerEvent>,
    /// Where local commands start.
    pub(super) root: PathBuf,
    pub(super) runner: LocalRunner,
    pub(super) delivery: Delivery,
    pub(super) cluster: ClusterRunner,
}

impl JobRunners {
    pub(super) async fn open(
        settings: &Settings,
        store: &Store,
        sealer: &Sealer,
        blobs: &Blobs,
        clock: &Clock,
        reached: Reached<'_>,
    ) -> Result<Self, StartError> {
        let data = &settings.data_dir;
        let (tell, news) = mpsc::channel(NEWS_LIMIT);
        let root = settings.local_root.clone().expect("absolute settings say where");
        let root = local_root::of(store, clock, root, settings.local_root_given).await?;
        let runner = local_runner(settings, root.clone(), store, blobs, tell.clone())?;
        let url = settings.advertise_url.as_deref().unwrap_or(reached.url);
        let uploads = DeliverySettings {
            directory: data.join("uploads"),
            url: url.trim_end_matches('/').to_owned(),
        };
        let tokens = TokenSigner::new(sealer).of_lineage(&store.lineage().await?);
        let delivery = Delivery::open(uploads, blobs.clone(), tokens, clock.clone())
            .map_err(io_error(format!("open the uploads in {}", data.display())))?;
        let cluster = ClusterRunner::open(
            data.join("cluster"),
            delivery.clone(),
            reached.authorities,
            sealer.clone(),
            clock.clone(),
            tell,
            owns(store.clone()),
        )
        .map_err(io_error(format!("open what is known of clusters in {}", data.display())))?;
        Ok(Self { news, root, runner, delivery, cluster })
    }
}

/// What runs local jobs, while the database is ours.
fn local_runner(
    settings: &Settings,
    started_in: PathBuf,
    store: &Store,
    blobs: &Blobs,
    news: News,
) -> Result<LocalRunner, StartError> {
    let data = &settings.data_dir;
    let local = local::LocalSettings {
        spool: spool_directory(data),
        instances: data.join("instances"),
        cache: data.join("cache"),
        wrapper: wrapper(settings)?,
        started_in,
        environment: std::env::vars_os().collect(),
    };
    let owned = store.clone();
    LocalRunner::open_while(local, blobs.clone(), news, move || owned.is_held())
        .map_err(io_error(format!("open the spool in {}", data.display())))
}

fn wrapper(settings: &Settings) -> Result<PathBuf, StartError> {
    local::find_wrapper(settings.wrapper.as_deref())
        .map_err(|why| StartError::Settings(SettingsError::Wrong(why)))
}

/// Whether the database is still this daemon's, for the runner of clusters.
fn owns(store: Store) -> Owns {
    Box::new(move || {
        let store = store.clone();
        async move { store.ensure_held().await.map_err(|error| error.to_string()) }.boxed()
    })
}

/// Reads jobs' output and its order: of one that ended from the blobs, of one that runs where it
/// runs.
pub(super) fn output(runners: Runners, blobs: Blobs) -> (ReadOutput, ReadOrder) {
    (streams(runners.clone(), blobs.clone()), order(runners, blobs))
}

fn streams(runners: Runners, blobs: Blobs) -> ReadOutput {
    Arc::new(move |range: OutputRange| {
        let (runners, blobs) = (runners.clone(), blobs.clone());
        async move {
            let OutputRange { placed, report, stream, offset, limit } = range;
            let blob = report.map(|report| match stream {
                schema::spool::Stream::Stdout => report.stdout_blob_id,
                schema::spool::Stream::Stderr => report.stderr_blob_id,
            });
            match blob {
                Some(Some(id)) => {
                    let read = move || blobs.read(id, offset, limit);
                    Ok(tokio::task::spawn_blocking(read)
                        .await
                        .map_err(io::Error::other)??
                        .unwrap_or_default())
                }
                Some(None) => Ok(Vec::new()),
                None => {
                    runners
                        .tail(placed.target, OutputPiece { job: placed.job, stream, offset, limit })
                        .await
                }
            }
        }
        .boxed()
    })
}

fn order(runners: Runners, blobs: Blobs) -> ReadOrder {
    Arc::new(move |placed: PlacedJob, report: Option<Box<Report>>, offset: u64| {
        let (runners, blobs) = (runners.clone(), blobs.clone());
        async move {
            let Some(report) = report else { return runners.order(&placed, offset).await };
            let Some(id) = report.order_blob_id else { return Ok(Vec::new()) };
            let most = usize::try_from(ORDER_LIMIT_BYTES).unwrap_or(usize::MAX);
            let read = tokio::task::spawn_blocking(move || blobs.read(id, offset, most)).await;
            Ok(read.map_err(io::Error::other)??.unwrap_or_default())
        }
        .boxed()
    })
}
