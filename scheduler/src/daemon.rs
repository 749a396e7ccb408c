//! Builds the parts, starts them, stops them in order. Alone knows all of them. Called by `main`,
//! by `dev` and by tests, which run whole daemons in process.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::limiter::{Limit, Limits};
use schema::time::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::compile::Options;
use crate::delivery::Delivery;
use crate::driver::{self, Driver, DriverParts, Handle};
use crate::handles::{self, HandleNeeds};
use crate::http::{self, Api, BrowserSessions, ConnectionLimits, Tls};
use crate::notifications::NotificationSender;
use crate::retention::{Policy, Retention};
use crate::runner::cluster::ClusterRunner;
use crate::runner::local::LocalRunner;
use crate::runner::registry::Runners;
use crate::settings::Settings;
use crate::store::{DataDirLock, Store, StoreError};

pub use error::{RunError, StartError};

use owned::OwnedPlaces;
use places::OpenedDirectories;
use runners::{JobRunners, Reached, output};

mod error;
mod full;
mod owned;
mod places;
mod prepare;
mod runners;

/// Name of the file in the data directory with the first admin token.
pub const TOKEN_FILE: &str = "admin-token";

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
    notifications: AbortOnDropHandle<()>,
    sessions: BrowserSessions,
    /// The first admin token's file.
    token_file: PathBuf,
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
        // What is named last is dropped first.
        let OwnedPlaces { lock, reserve, listener, address, refused, store, sealer, blobs } =
            OwnedPlaces::open(settings, &clock).await?;
        let url = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
        let reached = Reached { url: &url, authorities };
        let runs = JobRunners::open(settings, &store, &sealer, &blobs, &clock, reached).await?;
        let JobRunners { news, root, runner, delivery, cluster } = runs;
        let is_restored = is_restored(&store, settings).await?;
        let runners = Runners::new(Arc::new(runner.clone()), Arc::new(cluster.clone()));
        let stop = CancellationToken::new();
        let parts = DriverParts {
            store: store.clone(),
            clock: clock.clone(),
            sealer,
            blobs: blobs.clone(),
            runners: runners.clone(),
            clusters: Arc::new(cluster.clone()),
            news,
            root,
            limits: limits(settings),
            observer: settings.observer || is_restored,
            holds_applies: settings.holds_applies,
            options: Options { everything_local: settings.all_local },
        };
        // Before anything is started that would use them.
        let reserve = reserve.take_back();
        let opened = OpenedDirectories::of(data, refused);
        let Driver { handle, notified, done: driver } =
            Driver::start(parts, stop.child_token()).await?;
        let notifications = sent((settings, &url), (&store, &clock), (&handle, notified), &stop);
        let of = (store.clone(), blobs.clone(), clock.clone());
        let retention = pruned(of, settings.retain, runner.clone(), reserve, stop.child_token());
        let api = Api::new(
            store.clone(),
            handle.clone(),
            output(runners, blobs),
            delivery.clone(),
            clock.clone(),
            settings.open_metrics,
            stop.child_token(),
        );
        let api = api.within(connections(settings.handles())).over_tls(tls.is_some());
        let sessions = api.sessions.clone();
        let http = tokio::spawn(http::serve(listener, tls, api, stop.child_token()));
        let lease = renewed(store.clone());
        let places = AbortOnDropHandle::new(tokio::spawn(opened.gone()));
        tell_ready(&url, data);
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
            notifications,
            sessions,
            token_file: data.join(TOKEN_FILE),
            _lock: lock,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path of a link that signs in once, within an hour, as the first admin: for whoever
    /// started the daemon and sits at its terminal. `None` where that token does not open the door
    /// any more.
    pub async fn sign_in_path(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.token_file).ok()?;
        let (row, now) = (self.store.token(text.trim()).await.ok()??, self.clock.now());
        row.is_valid(now)
            .then(|| format!("/sign-in/once?code={}", self.sessions.link(&row.name, now)))
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
            notifications,
            sessions: _,
            token_file: _,
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
            // Ends with the others; what it could not send is sent after the next start.
            let _ = notifications.await;
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

/// A client elsewhere is told where to find what opens the door.
fn tell_ready(url: &str, data: &Path) {
    let token = Some(data.join(TOKEN_FILE)).filter(|file| file.is_file());
    let token = token.as_ref().map(|file| tracing::field::display(file.display()));
    tracing::info!(%url, data = %data.display(), token_file = token, "ready");
}

/// How many connections there may be, by the files that we may open.
fn connections(needs: HandleNeeds) -> ConnectionLimits {
    let limits = ConnectionLimits::of(needs.raise());
    tracing::info!(connections = limits.all(), open_pages = limits.streams(), "has room");
    if limits.all() < needs.connections {
        tracing::warn!(
            "the hard limit of open files, {}, leaves room for {} connections at a time instead \
             of {}, and so for {} open pages; raise it with LimitNOFILE= in the unit, with \
             --ulimit nofile= for a container, or with ulimit -Hn",
            handles::most(),
            limits.all(),
            needs.connections,
            limits.streams()
        );
    }
    limits
}

/// Whether it was restored from a backup and not activated since; why it applies nothing is said.
async fn is_restored(store: &Store, settings: &Settings) -> Result<bool, StartError> {
    let restored = store.restored_at().await?;
    match &restored {
        Some(at) => tracing::warn!(
            "restored from a backup at {at}: it observes and applies nothing; \
             `pvn-scheduler activate` lets it act"
        ),
        None if settings.observer => tracing::warn!("observer mode: it looks, and applies nothing"),
        None => {}
    }
    Ok(restored.is_some())
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

/// Keeps the database for as long as it can; ends with why it could not.
fn renewed(store: Store) -> AbortOnDropHandle<StoreError> {
    AbortOnDropHandle::new(tokio::spawn(async move { store.keep_lease().await }))
}

/// Removes what is not kept any more, now and then.
fn pruned(
    (store, blobs, clock): (Store, Blobs, Clock),
    kept: Policy,
    runs: LocalRunner,
    reserve: PathBuf,
    stop: CancellationToken,
) -> AbortOnDropHandle<()> {
    let retention = Retention::of_daemon(store, blobs, kept, clock, runs, reserve);
    AbortOnDropHandle::new(tokio::spawn(retention.run(stop)))
}

/// Sends what people are told. Who only looks tells nobody: whoever acts on the same, or did until
/// the backup was made, does.
fn sent(
    (settings, url): (&Settings, &str),
    (store, clock): (&Store, &Clock),
    (handle, notified): (&Handle, watch::Receiver<u64>),
    stop: &CancellationToken,
) -> AbortOnDropHandle<()> {
    let url = settings.advertise_url.as_deref().unwrap_or(url);
    let sender = NotificationSender::new(store.clone(), clock.clone(), url);
    let (is_observer, stop) = (handle.is_observer(), stop.child_token());
    AbortOnDropHandle::new(tokio::spawn(async move {
        if !is_observer {
            sender.run(notified, stop).await;
        }
    }))
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
