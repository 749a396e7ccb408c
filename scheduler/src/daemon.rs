//! Builds the parts, starts them, stops them in order. Alone knows all of them. Called by `main`,
//! by `dev` and by tests, which run whole daemons in process.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::limiter::{Limit, Limits};
use futures::FutureExt;
use schema::time::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::belongs;
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::compile::Options;
use crate::delivery::{self, Delivery, TokenSigner};
use crate::driver::{self, Driver, DriverParts, Handle};
use crate::http::{self, Api, OutputRange, ReadOutput, Tls};
use crate::identity;
use crate::key;
use crate::local_root;
use crate::private;
use crate::retention::Retention;
use crate::retention::reserve::ReserveAtOpen;
use crate::runner::cluster::{ClusterRunner, Owns};
use crate::runner::local::{self, LocalRunner};
use crate::runner::registry::Runners;
use crate::runner::{News, OutputPiece};
use crate::secrets::{KEY_FILE, Sealer};
use crate::settings::{Settings, SettingsError};
use crate::spools;
use crate::store::{DataDirLock, LeaseHolder, Store, StoreError};

pub use error::{RunError, StartError};

use places::OpenedDirectories;

mod error;
mod full;
mod places;
mod prepare;

/// Name of the file in the data directory with the first admin token.
pub const TOKEN_FILE: &str = "admin-token";

/// News of the runner that wait for the driver; a runner that is ahead waits, its spools keep the
/// rest.
const NEWS_LIMIT: usize = 256;

/// The first instant that a date in HTTP can name.
const EPOCH: Timestamp = Timestamp::from_millis(0);

/// How often the clock is looked at: what an HTTP connection can break on until then is one
/// second's.
const CLOCK_EVERY: Duration = Duration::from_secs(1);

/// Longest graceful stop. Jobs go on without the daemon, so nothing needs longer.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    address: SocketAddr,
    handle: Handle,
    store: Store,
    runner: LocalRunner,
    cluster: ClusterRunner,
    delivery: Delivery,
    stop: CancellationToken,
    driver: JoinHandle<Result<(), driver::Fatal>>,
    http: JoinHandle<io::Result<()>>,
    lease: AbortOnDropHandle<StoreError>,
    places: AbortOnDropHandle<PathBuf>,
    clock: Clock,
    retention: AbortOnDropHandle<()>,
    _lock: DataDirLock,
}

impl Daemon {
    /// Starts everything; returns once it listens.
    ///
    /// # Errors
    /// [`StartError`] with what to do.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        Self::start_at(settings, Clock::System).await
    }

    /// The same by another clock, for tests.
    ///
    /// # Errors
    /// [`StartError`] with what to do.
    pub async fn start_at(settings: Settings, clock: Clock) -> Result<Self, StartError> {
        settings.check()?;
        if clock.now() < EPOCH {
            return Err(StartError::Clock(clock.now()));
        }
        let settings = settings.absolute().map_err(io_error(
            "find the present directory and the paths in the settings".to_owned(),
        ))?;
        Self::start_absolute(&settings, clock)
            .await
            .map_err(|error| full::explain(error, &settings))
    }

    async fn start_absolute(settings: &Settings, clock: Clock) -> Result<Self, StartError> {
        let tls = settings.tls()?.map(Tls::open).transpose()?;
        let authorities =
            settings.advertise_ca_file.as_deref().map(http::authorities).transpose()?;
        let data = &settings.data_dir;
        let database = settings.database_file()?;
        private::data_directory(data, &database)
            .map_err(io_error(format!("use the data directory {}", data.display())))?;
        let lock = DataDirLock::take(data).await?;
        let way = ReserveAtOpen::make(&database);
        belongs::check(data, &database).await?;
        let (listener, address) = listen(settings.listen)?;

        let refused = watch::Sender::new(None);
        let (store, sealer) = open_store(settings, &database, &clock, refused.subscribe()).await?;
        let blobs = Blobs::open(&data.join("blobs"))
            .map_err(io_error(format!("open the blobs in {}", data.display())))?;
        full::prune(&way, &store, &blobs, settings.retain, &clock).await;
        let (news, news_in) = mpsc::channel(NEWS_LIMIT);
        let root = settings.local_root.clone().expect("absolute settings say where");
        let root = local_root::of(&store, &clock, root, settings.local_root_given).await?;
        let runner = local_runner(settings, root.clone(), &store, &blobs, news.clone())?;

        let url = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
        let uploads = delivery::DeliverySettings {
            directory: data.join("uploads"),
            url: settings
                .advertise_url
                .clone()
                .unwrap_or_else(|| url.clone())
                .trim_end_matches('/')
                .to_owned(),
        };
        let delivery = Delivery::open(
            uploads,
            blobs.clone(),
            TokenSigner::new(&sealer).of_lineage(&store.lineage().await?),
            clock.clone(),
        )
        .map_err(io_error(format!("open the uploads in {}", data.display())))?;
        let owns = owns(store.clone());
        let cluster = ClusterRunner::open(
            data.join("cluster"),
            delivery.clone(),
            authorities,
            sealer.clone(),
            clock.clone(),
            news,
            owns,
        )
        .map_err(io_error(format!("open what is known of clusters in {}", data.display())))?;

        let restored = store.restored_at().await?;
        match &restored {
            Some(at) => {
                tracing::warn!(
                    "restored from a backup at {at}: it observes and applies nothing; \
                     `pvn-scheduler activate` lets it act"
                )
            }
            None if settings.observer => {
                tracing::warn!("observer mode: it looks, and applies nothing")
            }
            None => {}
        }
        let runners = Runners::new(Arc::new(runner.clone()), Arc::new(cluster.clone()));
        let stop = CancellationToken::new();
        let parts = DriverParts {
            store: store.clone(),
            clock: clock.clone(),
            sealer,
            blobs: blobs.clone(),
            runners: runners.clone(),
            clusters: Arc::new(cluster.clone()),
            news: news_in,
            root,
            limits: limits(settings),
            observer: settings.observer || restored.is_some(),
            holds_applies: settings.holds_applies,
            options: Options { everything_local: settings.all_local },
        };
        // Before anything is started that would use them.
        let reserve = way.take_back();
        let opened = OpenedDirectories::of(data, refused);
        let Driver { handle, done: driver } = Driver::start(parts, stop.child_token()).await?;
        let retention = Retention::of_daemon(
            store.clone(),
            blobs.clone(),
            settings.retain,
            clock.clone(),
            runner.clone(),
            reserve,
        );
        let retention = AbortOnDropHandle::new(tokio::spawn(retention.run(stop.child_token())));
        let output = output(runners, blobs);
        let api = Api::new(
            store.clone(),
            handle.clone(),
            output,
            delivery.clone(),
            clock.clone(),
            settings.open_metrics,
            stop.child_token(),
        );
        let http = tokio::spawn(http::serve(listener, tls, api, stop.child_token()));
        let owned = store.clone();
        let lease = AbortOnDropHandle::new(tokio::spawn(async move { owned.keep_lease().await }));
        let places = AbortOnDropHandle::new(tokio::spawn(opened.gone()));
        tracing::info!(%url, data = %data.display(), "ready");
        Ok(Self {
            address,
            handle,
            store,
            runner,
            cluster,
            delivery,
            stop,
            driver,
            http,
            lease,
            places,
            clock,
            retention,
            _lock: lock,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The way to change something.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The way to read.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns when a part ended although nobody asked it to: then the daemon must be stopped.
    pub async fn broken(&mut self) -> RunError {
        tokio::select! {
            ended = &mut self.driver => match ended {
                Ok(Ok(())) => RunError::Died("the driver ended".to_owned()),
                Ok(Err(fatal)) => fatal.into(),
                Err(died) => RunError::Died(format!("the driver: {died}")),
            },
            ended = &mut self.http => match ended {
                Ok(Ok(())) => RunError::Died("the HTTP server ended".to_owned()),
                Ok(Err(source)) => RunError::Http { address: self.address, source },
                Err(died) => RunError::Died(format!("the HTTP server: {died}")),
            },
            shown = before_epoch(&self.clock) => RunError::Clock(shown),
            lost = &mut self.lease => match lost {
                Ok(lost) => RunError::Lease(lost),
                Err(died) => RunError::Died(format!("the lease: {died}")),
            },
            gone = &mut self.places => match gone {
                Ok(path) => RunError::Removed(path),
                Err(died) => RunError::Died(format!("the look at its directories: {died}")),
            },
        }
    }

    /// Stops in order: no new requests, what is decided is committed, jobs are let go of and run
    /// on, files are closed. Returns within 10 s, whatever hangs.
    ///
    /// # Errors
    /// When the driver could not write its last notes; they are made again at the next start.
    pub async fn stop(self) -> Result<(), RunError> {
        let Self {
            address: _,
            handle: _,
            stop,
            driver,
            http,
            runner,
            cluster,
            delivery,
            store,
            lease,
            places: _,
            clock: _,
            retention,
            _lock,
        } = self;
        stop.cancel();
        // Held long enough for an orderly end; a task that renews would keep the database open.
        lease.abort();
        retention.abort();
        let orderly = async {
            let driven = if driver.is_finished() { Ok(Ok(())) } else { driver.await };
            // Whoever waits for a report to be stored hears that it is not.
            delivery.detach().await;
            if !http.is_finished() {
                // Its requests were cut off or answered; there is nothing left to tell.
                let _ = http.await;
            }
            runner.detach().await;
            cluster.detach().await;
            store.close().await;
            match driven {
                Ok(result) => result.map_err(RunError::from),
                Err(died) => Err(RunError::Died(format!("the driver: {died}"))),
            }
        };
        match tokio::time::timeout(STOP_WITHIN, orderly).await {
            Ok(result) => result,
            Err(_) => {
                tracing::warn!(
                    "not everything stopped within {} s; the rest is cut off, which loses nothing",
                    STOP_WITHIN.as_secs()
                );
                Ok(())
            }
        }
    }
}

/// Listens, so that nothing is made for a daemon whose address is taken.
fn listen(at: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::Taken(at),
        _ => io_error(format!("listen on {at}"))(error),
    };
    let listener = TcpListener::bind(at).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

/// Opens the database as its owner, or makes it, with the key that seals what is secret in it; both
/// know each other then, and the directory.
async fn open_store(
    settings: &Settings,
    database: &Path,
    clock: &Clock,
    refused: watch::Receiver<Option<String>>,
) -> Result<(Store, Sealer), StartError> {
    let data = &settings.data_dir;
    let key_file = settings.secret_key_file.clone().unwrap_or_else(|| data.join(KEY_FILE));
    let sealer = key::open(&key_file, database).await?;
    private::database(database)
        .map_err(io_error(format!("make the database {}", database.display())))?;
    let id = identity::of(data)
        .map_err(io_error(format!("tell the data directory {}", data.display())))?;
    let owner = LeaseHolder::here(id, data, clock.now());
    let store = Store::open_as(database, sealer.clone(), &owner).await?.beside(
        data,
        places::in_data(data),
        refused,
    );
    key::note(&store, &key_file, database).await?;
    belongs::note(data, database, &store).await?;
    prepare::prepare(&store, clock, data).await?;
    let spool = spool_directory(data);
    let id = identity::of(&spool)
        .map_err(io_error(format!("tell the spool directory {}", spool.display())))?;
    spools::note(&store, clock, &id, &spool).await?;
    Ok((store, sealer))
}

fn spool_directory(data: &Path) -> PathBuf {
    data.join("spool")
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
        wrapper: wrapper(settings)?,
        started_in,
        environment: std::env::vars_os().collect(),
    };
    let owned = store.clone();
    LocalRunner::open_while(local, blobs.clone(), news, move || owned.is_held())
        .map_err(io_error(format!("open the spool in {}", data.display())))
}

/// Returns once the clock shows an instant before 1970: which.
async fn before_epoch(clock: &Clock) -> Timestamp {
    let mut look = tokio::time::interval(CLOCK_EVERY);
    loop {
        look.tick().await;
        let shown = clock.now();
        if shown < EPOCH {
            return shown;
        }
    }
}

fn io_error(what: String) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::Io { what, source }
}

fn limits(settings: &Settings) -> Limits {
    let look = Limit { total: settings.max_fetches, per_runtime: settings.max_fetches_per_runtime };
    Limits {
        fetch: look,
        get_info: look,
        apply: Limit { total: settings.max_applies, per_runtime: settings.max_applies_per_runtime },
    }
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

/// Reads jobs' output: of one that ended from the blobs, of one that runs where it runs.
fn output(runners: Runners, blobs: Blobs) -> ReadOutput {
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
