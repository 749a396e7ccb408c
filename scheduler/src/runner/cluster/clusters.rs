//! The connections to clusters, one for each kubeconfig and context. Called by the jobs' tasks.
//!
//! What always holds: credentials that the cluster does not accept any more, or an address where
//! nobody answers, are read again from where they came ([`ClusterConnection`]), for everything that
//! goes over the connection, watches too. Whoever asks tries again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use schema::time::Timestamp;
use tokio::time::Instant;

use super::not_kubernetes::of_kubernetes;
use super::{faults, plugin};
use crate::clock::Clock;
use crate::compile::ClusterPlace;

mod throttle;

use throttle::Throttle;

/// Requests a second that one cluster is asked in the long run. Source: what `kubectl` and
/// Kubernetes' own controllers allow themselves by default lies between 5 and 50; a job takes some
/// six.
const REQUESTS_PER_SECOND: f64 = 40.0;
/// Requests that may come at once after a quiet time.
const BURST: f64 = 80.0;
/// Longest wait for an answer. Source: the API server ends requests after 60 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(65);
/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Shortest time between two looks at the same kubeconfig because of failures: it is a small file,
/// and a cluster that is away makes every request fail.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// How long before the end of its credentials a request takes new ones. Source: that of kube.
const CREDENTIALS_MARGIN_MS: i64 = 60_000;

/// How long after a request without an answer a cluster that forbids something may not know its
/// roles yet: an API server answers before it has read them. Measured: some seconds.
const AWAY_LATELY: Duration = Duration::from_secs(30);

/// What the cluster answers to credentials that it does not accept.
const UNAUTHORIZED: u16 = 401;

/// All clusters that are known. Cloned freely.
#[derive(Debug, Clone, Default)]
pub(super) struct Clusters {
    known: Arc<Mutex<HashMap<Key, Cluster>>>,
}

/// Which cluster: kubeconfig and context.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key(Option<String>, Option<String>);

impl Key {
    pub(super) fn of(place: &ClusterPlace) -> Self {
        Self(place.kubeconfig.clone(), place.context.clone())
    }
}

#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) client: kube::Client,
    /// For streams, which may be silent for long.
    pub(super) patient: kube::Client,
    pub(super) throttle: Arc<Throttle>,
    /// Namespaces in which all that is needed is known to be permitted.
    pub(super) permitted: Arc<Mutex<HashSet<String>>>,
    connection: Arc<ClusterConnection>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cluster")
    }
}

impl Clusters {
    /// The cluster of a place. Nothing is asked of it.
    ///
    /// # Errors
    /// What is wrong with its kubeconfig, for people.
    pub(super) async fn get(&self, place: &ClusterPlace) -> Result<Cluster, String> {
        let key = Key::of(place);
        if let Some(cluster) = self.known.lock().expect("nobody panics with the lock").get(&key) {
            return Ok(cluster.clone());
        }
        let cluster = Cluster::new(ClusterConnection::open(place).await?);
        Ok(self
            .known
            .lock()
            .expect("nobody panics with the lock")
            .entry(key)
            .or_insert(cluster)
            .clone())
    }

    /// Reads the kubeconfig anew, and forgets what was permitted: either may have been changed.
    pub(super) async fn renew(&self, place: &ClusterPlace) {
        let known =
            self.known.lock().expect("nobody panics with the lock").get(&Key::of(place)).cloned();
        if let Some(cluster) = known {
            cluster.permitted.lock().expect("nobody panics with the lock").clear();
            cluster.connection.renew().await;
        }
    }
}

impl Cluster {
    /// Whether a request of the last moments had no answer, so that what the cluster forbids it may
    /// permit soon.
    pub(super) fn was_away_lately(&self) -> bool {
        let failed_at = *self.connection.failed_at.lock().expect("nobody panics with the lock");
        failed_at.is_some_and(|at| at.elapsed() < AWAY_LATELY)
    }

    /// Has credentials that last for the next request, so that their plugin does not run between
    /// what is asked before the request and the request itself. That there are none the request
    /// tells.
    pub(super) async fn prepare(&self) {
        let _told_by_the_request = self.connection.fresh().await;
    }

    fn new(connection: ClusterConnection) -> Self {
        let connection = Arc::new(connection);
        Self {
            client: through(&connection, |clients| &clients.hasty),
            patient: through(&connection, |clients| &clients.patient),
            throttle: Arc::new(Throttle::new(REQUESTS_PER_SECOND, BURST)),
            permitted: Arc::default(),
            connection,
        }
    }
}

/// A client that sends each request with the newest credentials, and has them read again when they
/// do not do.
fn through(
    connection: &Arc<ClusterConnection>,
    which: fn(&Clients) -> &kube::Client,
) -> kube::Client {
    let (connection, namespace) =
        (connection.clone(), which(&connection.clients()).default_namespace().to_owned());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let connection = connection.clone();
        let is_log = request.uri().path().ends_with("/log");
        async move {
            let clients = connection.fresh().await.map_err(faults::no_credentials)?;
            let answer = match which(&clients).send(request).await {
                Ok(answer) => of_kubernetes(answer, is_log)
                    .await
                    .map_err(|other| kube::Error::Service(Box::new(other))),
                Err(error) => Err(faults::of_request(error)),
            };
            if answer.is_err() {
                *connection.failed_at.lock().expect("nobody panics with the lock") =
                    Some(Instant::now());
            }
            let is_refused =
                answer.as_ref().map_or(true, |answer| answer.status().as_u16() == UNAUTHORIZED);
            if is_refused {
                connection.renew().await;
            }
            answer
        }
    });
    kube::Client::new(service, namespace)
}

/// Where a cluster is and who we are there, as the kubeconfig last said.
struct ClusterConnection {
    place: ClusterPlace,
    clients: RwLock<Clients>,
    /// How it was read last; held while it is.
    last: tokio::sync::Mutex<KubeconfigReading>,
    /// When a request last had no answer.
    failed_at: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct Clients {
    /// Waits for an answer no longer than the API server itself would.
    hasty: kube::Client,
    patient: kube::Client,
    /// When the credentials that a plugin gave end.
    until: Option<Timestamp>,
}

impl Clients {
    fn end_soon(&self) -> bool {
        self.until.is_some_and(|until| Clock::System.now().plus_ms(CREDENTIALS_MARGIN_MS) >= until)
    }
}

/// A look at the kubeconfig, and at what its plugin gives.
struct KubeconfigReading {
    ended_at: Instant,
    /// Why it cannot be used.
    why: Option<String>,
}

impl ClusterConnection {
    async fn open(place: &ClusterPlace) -> Result<Self, String> {
        let clients = connect(place).await?;
        let last =
            tokio::sync::Mutex::new(KubeconfigReading { ended_at: Instant::now(), why: None });
        Ok(Self {
            place: place.clone(),
            clients: RwLock::new(clients),
            last,
            failed_at: Mutex::default(),
        })
    }

    fn clients(&self) -> Clients {
        self.clients.read().expect("nobody panics with the lock").clone()
    }

    /// The clients, with credentials that last for a request.
    ///
    /// # Errors
    /// Why there are none, for people.
    async fn fresh(&self) -> Result<Clients, String> {
        let clients = self.clients();
        if !clients.end_soon() {
            return Ok(clients);
        }
        let mut last = self.last.lock().await;
        let clients = self.clients();
        if !clients.end_soon() {
            return Ok(clients);
        }
        // A plugin that fails, or whose tokens end at once, is not run for each of those who wait
        // for it.
        if last.ended_at.elapsed() < RENEW_EVERY {
            return last.why.clone().map_or(Ok(clients), Err);
        }
        self.read(&mut last).await.map(|()| self.clients())
    }

    /// Reads the kubeconfig again, unless that was just done. What was there stays while it cannot
    /// be used: it may be being written.
    async fn renew(&self) {
        let mut last = self.last.lock().await;
        if last.ended_at.elapsed() >= RENEW_EVERY {
            let _told = self.read(&mut last).await;
        }
    }

    async fn read(&self, last: &mut KubeconfigReading) -> Result<(), String> {
        let read = connect(&self.place).await;
        let read = read
            .map(|clients| *self.clients.write().expect("nobody panics with the lock") = clients);
        *last = KubeconfigReading { ended_at: Instant::now(), why: read.as_ref().err().cloned() };
        if let Err(why) = &read {
            tracing::warn!(why, "the credentials of a cluster cannot be read again");
        }
        read
    }
}

/// The clients of a place. Where kube blocks, as it does while it reads files, it holds up nobody;
/// and where it panics it is a kubeconfig that cannot be used, which may be mended, and no end of
/// the task of a job that runs.
async fn connect(place: &ClusterPlace) -> Result<Clients, String> {
    let wanted = place.clone();
    // The runtime is around it: a client has a task of its own.
    let made = tokio::task::spawn_blocking(move || {
        tokio::runtime::Handle::current().block_on(clients(&wanted))
    })
    .await;
    made.unwrap_or_else(|died| match died.is_panic() {
        true => Err(faults::PANICKED.to_owned()),
        false => Err("the scheduler is stopping".to_owned()),
    })
    .map_err(|why| {
        let which = place
            .kubeconfig
            .as_ref()
            .map_or_else(|| "default kubeconfig".to_owned(), |path| format!("kubeconfig {path}"));
        format!("the {which} of runtime `{}` cannot be used: {why}", place.cluster)
    })
}

async fn clients(place: &ClusterPlace) -> Result<Clients, String> {
    // ring, as everywhere; whoever came before set the same.
    let _set_already = rustls::crypto::ring::default_provider().install_default();
    let mut config = read(place)
        .await
        .map_err(|error| faults::of_kubeconfig(&error, place.context.as_deref()))?;
    let until = plugin::credentials(&mut config.auth_info).await?;
    if has_unsendable_token(&config.auth_info) {
        return Err(faults::TOKEN.to_owned());
    }
    config.connect_timeout = Some(CONNECT_WITHIN);
    // Each request is made by those who know whether it may still be made, and in our time (`ask`).
    config.default_retry = false;
    // Streams are silent for as long as kube lets them be, which is a little longer than the API
    // server does.
    let patient = config.clone();
    config.read_timeout = Some(ANSWER_WITHIN);
    let client = |config| kube::Client::try_from(config).map_err(|error| faults::of_client(&error));
    Ok(Clients { hasty: client(config)?, patient: client(patient)?, until })
}

/// The kubeconfig of a place, or what the cluster around us gives to its Pods.
async fn read(place: &ClusterPlace) -> Result<kube::Config, KubeconfigError> {
    let options =
        KubeConfigOptions { context: place.context.clone(), ..KubeConfigOptions::default() };
    match &place.kubeconfig {
        Some(path) => {
            kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await
        }
        None if place.context.is_some() => kube::Config::from_kubeconfig(&options).await,
        None => match kube::Config::incluster() {
            Ok(config) => Ok(config),
            Err(_) => kube::Config::from_kubeconfig(&options).await,
        },
    }
}

/// Whether the token is one that no header takes, as `token: |` makes it: kube panics there. Only
/// its JSON shows it to us.
fn has_unsendable_token(user: &AuthInfo) -> bool {
    let user = serde_json::to_value(user).unwrap_or_default();
    let token = user["token"].as_str().unwrap_or_default();
    token.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t')
}
