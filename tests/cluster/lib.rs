//! A real Kubernetes cluster of one node on this machine: Kubernetes' own API server, controllers,
//! scheduler and kubelet, with etcd, containerd and runc from Debian. Used by the end-to-end tests,
//! and by people through `tests/cluster/up` and `down`.
//!
//! ```text
//! test program ──shared lock on `users`──▶ `pvn-test-cluster keep` ──▶ etcd, kube-apiserver, containerd, kubelet, …
//! ```
//!
//! What always holds:
//! - One cluster for all test programs of this machine: whoever needs it first starts the keeper,
//!   the next ones find it. Each test has a namespace of its own, and a turn: tests share the
//!   cluster, but one that stops a part of it has it alone.
//! - The keeper ends the cluster when nobody has used it for a while, or when it is told to, and
//!   nothing is left: no process, mount, bridge, cgroup or file, logs excepted. After a keeper that
//!   was killed the next one, or `down`, removes the rest.
//! - Nothing of it touches what the machine runs itself: directories, sockets, bridge and addresses
//!   are its own. Everything listens on the bridge's address, where nobody else does, so that no
//!   port is ever guessed.

mod account;
mod audit;
mod configs;
mod images;
mod keeper;
mod layout;
mod names;
mod outage;
mod parts;
mod service;
mod sweep;
mod turn;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

pub use account::{Account, TakenAway, published};
pub use images::{Image, TOOLS};
pub use keeper::keep;
pub use layout::{ADDRESS, SERVER};
pub use outage::{Outage, Part};
pub use service::ServiceAddress;

use crate::{skip, wait};
use layout::Layout;
use turn::{Kind, Turn};

/// Longest start: a busy machine of two cores takes half a minute.
const START_PATIENCE: Duration = Duration::from_secs(180);

/// Longest end: everything has deadlines of its own that are shorter.
const END_PATIENCE: Duration = Duration::from_secs(90);

/// The running cluster. It goes on at least as long as this is held.
#[derive(Debug)]
pub struct Cluster {
    layout: Layout,
    account: OnceLock<Account>,
    _used: File,
}

/// The cluster while a test uses it beside others.
#[derive(Debug)]
pub struct Shared {
    cluster: &'static Cluster,
    _turn: Turn,
}

impl std::ops::Deref for Shared {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.cluster
    }
}

/// The cluster while a test has it to itself.
#[derive(Debug)]
pub struct Alone(Shared);

impl std::ops::Deref for Alone {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.0
    }
}

impl Alone {
    /// Kills a part of the cluster; it comes back at the latest when what is returned is dropped.
    ///
    /// # Panics
    /// When it cannot be stopped.
    pub fn stop(&self, part: Part) -> Outage<'_> {
        Outage::begin(self, part).unwrap_or_else(|why| panic!("{why}"))
    }
}

impl Cluster {
    /// The cluster for the test of this name, beside others, started when it does not run; the turn
    /// lasts as long as what is returned, so that one test asks once. `None`, said and counted,
    /// where the machine has no cluster.
    ///
    /// # Panics
    /// When it does not start, when another test has it alone for too long, or when
    /// `PVN_REQUIRE_CLUSTER` is set and the machine has none.
    pub fn get(test: &str) -> Option<Shared> {
        Self::turn(test, Kind::Shared)
    }

    /// The same for a test that stops a part of it: nobody else uses it meanwhile.
    ///
    /// # Panics
    /// As [`Cluster::get`].
    pub fn alone(test: &str) -> Option<Alone> {
        Self::turn(test, Kind::Alone).map(Alone)
    }

    fn turn(test: &str, kind: Kind) -> Option<Shared> {
        let cluster = Self::find(test)?;
        let turn = Turn::take(&cluster.layout, test, kind).unwrap_or_else(|why| panic!("{why}"));
        Some(Shared { cluster, _turn: turn })
    }

    fn find(test: &str) -> Option<&'static Self> {
        static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
        let found = CLUSTER.get_or_init(|| {
            parts::find()?;
            Ok(Self::start(&crate::programs::program("pvn-test-cluster"), false)
                .unwrap_or_else(|why| panic!("the cluster does not start: {why}")))
        });
        match found {
            Ok(cluster) => Some(cluster),
            Err(missing) => {
                assert!(
                    std::env::var_os("PVN_REQUIRE_CLUSTER").is_none(),
                    "{test} needs a cluster: {missing}"
                );
                skip::skipped(test, &format!("no cluster: {missing}"));
                None
            }
        }
    }

    /// The cluster for people: it stays until [`end`].
    ///
    /// # Errors
    /// What is missing on this machine, or why it does not start.
    pub fn for_people() -> Result<Self, String> {
        parts::find()?;
        let own = std::env::current_exe().map_err(failed("this program cannot be found"))?;
        Self::start(&own, true)
    }

    fn start(keeper: &Path, stay: bool) -> Result<Self, String> {
        let layout = Layout::default();
        std::fs::create_dir_all(layout.cache()).map_err(failed("the cache cannot be made"))?;
        let used = layout
            .lock_file(layout::USERS)
            .map_err(failed("the lock of its users cannot be opened"))?;
        // Waits while a keeper clears away.
        used.lock_shared().map_err(failed("the lock of its users cannot be taken"))?;
        let starting = layout
            .lock_file(layout::STARTING)
            .map_err(failed("the lock of starters cannot be opened"))?;
        starting.lock().map_err(failed("the lock of starters cannot be taken"))?;
        let cluster = Self { layout, account: OnceLock::new(), _used: used };
        if stay {
            std::fs::write(cluster.layout.cache().join(layout::STAYS), "")
                .map_err(failed("the cluster cannot be told to stay"))?;
        }
        if !cluster.layout.is_kept().map_err(failed("the keeper's lock cannot be looked at"))? {
            cluster.spawn_keeper(keeper)?;
        }
        Ok(cluster)
    }

    fn spawn_keeper(&self, keeper: &Path) -> Result<(), String> {
        // Of a keeper that was killed.
        let _gone_or_never_there = std::fs::remove_file(self.layout.ready());
        let log = self
            .layout
            .log("keeper")
            .map_err(|error| format!("the keeper's log cannot be written: {error}"))?;
        let shared = log
            .try_clone()
            .map_err(|error| format!("the keeper's log cannot be shared: {error}"))?;
        let mut keeper = Command::new("setsid")
            .arg(keeper)
            .arg("keep")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(shared)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("its keeper cannot be started: {error}"))?;
        let mut ended = None;
        wait::until_within(START_PATIENCE, "the cluster to be ready", || {
            if self.layout.ready().exists() {
                return Some(());
            }
            ended = keeper.try_wait().expect("a child can be asked");
            ended.map(drop)
        });
        match ended {
            Some(status) => {
                Err(format!("its keeper ended with {status}:\n{}", self.layout.read_log("keeper")))
            }
            None => Ok(()),
        }
    }

    /// Path of a kubeconfig whose user may do everything.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.admin_kubeconfig()
    }

    /// A client that may do everything. To be called inside a tokio runtime.
    ///
    /// # Panics
    /// When the kubeconfig cannot be used.
    pub async fn client(&self) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::read_from(self.kubeconfig())
            .expect("the keeper wrote a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
            .await
            .expect("the kubeconfig is whole");
        kube::Client::try_from(config).expect("a client can be made")
    }

    /// Brings an image onto the node, under its name; harmless when repeated.
    ///
    /// # Panics
    /// When containerd does not take it.
    pub fn import(&self, image: &Image) {
        image.import(&self.layout).unwrap_or_else(|why| panic!("{why}"));
    }

    /// What the API server wrote down: every request that was not from a part of Kubernetes itself,
    /// oldest first, as `audit.k8s.io/v1` events.
    ///
    /// # Panics
    /// When there is no audit log.
    pub fn audit(&self) -> Vec<serde_json::Value> {
        // The last line may be in the middle of being written.
        self.audit_text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// How often each Job of a namespace was created, by name, as the audit log says. More than
    /// once is a broken promise.
    pub fn creations(&self, namespace: &str) -> std::collections::BTreeMap<String, usize> {
        let mut creations = std::collections::BTreeMap::new();
        for (_, name) in audit::creations(&self.audit_text())
            .into_iter()
            .filter(|(created_in, _)| created_in == namespace)
        {
            *creations.entry(name).or_default() += 1;
        }
        creations
    }

    fn audit_text(&self) -> String {
        std::fs::read_to_string(self.layout.audit_log())
            .expect("the API server writes an audit log")
    }
}

/// Ends the cluster, if one runs, and removes what an earlier one left. Looks at all that ran since
/// the last end: how many jobs of ours the API server created a Job for.
///
/// # Errors
/// What could not be removed, or the jobs for which it created more than one.
pub fn end() -> Result<usize, String> {
    let layout = Layout::default();
    let failed = failed("failed to end the cluster");
    match std::fs::remove_file(layout.cache().join(layout::STAYS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if !layout.cache().exists() {
        return Ok(0);
    }
    if layout.is_kept().map_err(failed)? {
        let pid = std::fs::read_to_string(layout.pid()).map_err(failed)?;
        let status = Command::new("kill").arg(pid.trim()).status().map_err(failed)?;
        if !status.success() {
            return Err(format!("its keeper (pid {}) cannot be asked to end", pid.trim()));
        }
        wait::until_within(END_PATIENCE, "the cluster to end", || {
            (!layout.is_kept().expect("the lock can be looked at")).then_some(())
        });
    }
    sweep::sweep(&layout)?;
    audit::check(&layout)
}

/// What was tried, before what the system said.
fn failed(what: &str) -> impl Fn(io::Error) -> String + Copy + '_ {
    move |error| format!("{what}: {error}")
}
