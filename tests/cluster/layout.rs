//! Where everything of the cluster is: directories, addresses, names, versions. All of it is its
//! own.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Version of Kubernetes. The newest minor version that a machine with control groups v1 and
/// containerd 1.6 may run: from 1.35 on the kubelet refuses the former by default.
pub(super) const KUBERNETES: &str = "v1.34.4";

/// The bridge's name. No other program makes one that is called so.
pub(super) const BRIDGE: &str = "pvntest0";
/// The bridge's own hardware address. Fixed, as it would otherwise be the lowest of its ports',
/// change as Pods come and go, and leave running Pods talking to nobody.
pub(super) const BRIDGE_HARDWARE_ADDRESS: &str = "02:70:76:6e:00:01";

/// Address of the bridge, and so of everything that Pods can reach on this machine.
pub const ADDRESS: &str = "10.217.0.1";
/// All addresses of the cluster.
pub(super) const NETWORK: &str = "10.217.0.0/16";
/// Addresses of Services. The first one is the Service `kubernetes`, and is the bridge's: Pods
/// reach the API server there without anybody who would translate addresses.
pub(super) const SERVICES: &str = "10.217.0.0/24";
/// First address of Pods.
pub(super) const FIRST_POD: &str = "10.217.1.1";

/// Address of the API server, for people, tests and Pods alike.
pub const SERVER: &str = "https://10.217.0.1:443";
/// Address of etcd.
pub(super) const ETCD: &str = "http://10.217.0.1:2379";
/// Address of etcd's peers, of which there are none.
pub(super) const ETCD_PEERS: &str = "http://10.217.0.1:2380";

/// Name of the node.
pub(super) const NODE: &str = "pvn-test";

/// Lock held by the keeper for its whole life.
pub(super) const KEEPER: &str = "keeper.lock";
/// Lock shared by all who use the cluster; exclusive while it is cleared away.
pub(super) const USERS: &str = "users.lock";
/// Lock of the one who is about to start a keeper.
pub(super) const STARTING: &str = "starting.lock";
/// Lock of the one whose turn is next.
pub(super) const QUEUE: &str = "queue.lock";
/// Lock shared by the tests that run, exclusive for one that has the cluster alone.
pub(super) const TURNS: &str = "turns.lock";
/// Directory of files that are named after the tests that have a turn, each locked by its test.
pub(super) const HOLDERS: &str = "turns";
/// File that says that the cluster stays although nobody uses it.
pub(super) const STAYS: &str = "stays";

/// The directories. `state` is gone when no cluster runs; `cache` stays, with locks and the last
/// run's logs.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    state: PathBuf,
    cache: PathBuf,
}

impl Default for Layout {
    fn default() -> Self {
        // Short, because paths of sockets have at most 107 bytes; on a disk, because images are
        // unpacked there.
        Self { state: "/var/tmp/pvn-test-cluster".into(), cache: ci_cache().join("cluster") }
    }
}

/// Where the check script keeps what it built.
fn ci_cache() -> PathBuf {
    let cache =
        std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    cache
        .or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))
        .unwrap_or_else(|| "/var/cache".into())
        .join("pvn-ci")
}

/// The parts of Kubernetes that `tests/cluster/build` built.
pub(super) fn kubernetes() -> PathBuf {
    ci_cache().join(format!("kubernetes-{KUBERNETES}"))
}

impl Layout {
    /// Everything below one directory.
    #[cfg(test)]
    pub(super) fn at(directory: &Path) -> Self {
        Self { state: directory.join("state"), cache: directory.join("cache") }
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn cache(&self) -> &Path {
        &self.cache
    }

    pub(super) fn admin_kubeconfig(&self) -> PathBuf {
        self.state.join("admin.kubeconfig")
    }

    /// Appears when the cluster can be used.
    pub(super) fn ready(&self) -> PathBuf {
        self.state.join("ready")
    }

    /// There while a part is stopped for a test, until everything works again.
    pub(super) fn down(&self, part: &str) -> PathBuf {
        self.state.join(format!("{part}.down"))
    }

    /// Process id of the keeper; good while it holds its lock.
    pub(super) fn pid(&self) -> PathBuf {
        self.state.join("keeper.pid")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.state.join("audit.log")
    }

    pub(super) fn containerd_socket(&self) -> PathBuf {
        self.state.join("containerd.sock")
    }

    pub(super) fn lock_file(&self, name: &str) -> io::Result<File> {
        File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(self.cache.join(name))
    }

    /// Whether a keeper lives.
    pub(super) fn is_kept(&self) -> io::Result<bool> {
        match self.lock_file(KEEPER)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(std::fs::TryLockError::WouldBlock) => Ok(true),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// A new log for one of the parts.
    pub(super) fn log(&self, part: &str) -> io::Result<File> {
        File::create(self.log_path(part))
    }

    pub(super) fn read_log(&self, part: &str) -> String {
        let text = std::fs::read(self.log_path(part)).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_SHOWN_BYTES)..]).into_owned()
    }

    fn log_path(&self, part: &str) -> PathBuf {
        self.cache.join(format!("{part}.log"))
    }
}

/// As much of a log's end as a person reads.
const LOG_SHOWN_BYTES: usize = 4000;
