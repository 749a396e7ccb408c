//! The keeper: one process that starts the parts in order, watches over them, and ends everything
//! when nobody uses the cluster any more, when it is asked to, or when a part dies. The parts end
//! with it, however it ends.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::images::{Image, TOOLS};
use super::layout::{self, ADDRESS, ETCD, ETCD_PEERS, Layout, NODE, SERVICES};
use super::outage::Part;
use super::{configs, failed, parts, sweep};

mod ready;

use ready::{answers, can_run_pods, runtime, sign_of_life};

/// How long nobody uses the cluster before it ends: longer than from one test program to the next.
const IDLE: Duration = Duration::from_secs(60);
/// How often the keeper looks around.
const LOOK: Duration = Duration::from_millis(500);
/// Longest wait for one part to be ready.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// Time between two looks whether a part is ready.
const READY_LOOK: Duration = Duration::from_millis(50);
/// Longest graceful end of one part. The API server takes some seconds to let go of its port.
const END_WITHIN: Duration = Duration::from_secs(15);

/// Keeps a cluster until its end.
///
/// # Errors
/// Why it did not start, which part died, or what could not be removed.
pub fn keep() -> Result<(), String> {
    let mut asked = SigSet::empty();
    asked.add(Signal::SIGTERM);
    asked.add(Signal::SIGINT);
    asked.thread_block().map_err(|error| format!("signals cannot be blocked: {error}"))?;
    let asked = SignalFd::with_flags(&asked, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(|error| format!("signals cannot be received: {error}"))?;

    let layout = Layout::default();
    let lock =
        layout.lock_file(layout::KEEPER).map_err(failed("the keeper's lock cannot be opened"))?;
    // Whoever only looked lets go of it at once.
    lock.lock().map_err(failed("the keeper's lock cannot be taken"))?;
    sweep::sweep(&layout)?;
    sweep::check_free()?;
    fs::create_dir_all(layout.state()).map_err(failed("its directory cannot be made"))?;
    fs::write(layout.pid(), std::process::id().to_string())
        .map_err(failed("its directory cannot be written"))?;

    let mut keeper = Keeper { layout, children: Vec::new(), down: Vec::new() };
    let kept = keeper.start().and_then(|()| keeper.watch(&asked));
    keeper.end();
    let swept = sweep::sweep(&keeper.layout);
    drop(lock);
    kept.and(swept)
}

struct Keeper {
    layout: Layout,
    /// In the order in which they were started first.
    children: Vec<(&'static str, Child)>,
    /// The parts that a test stopped, until everything works again.
    down: Vec<Down>,
}

struct Down {
    part: Part,
    /// Whether it was started again.
    is_back: bool,
    /// The kubelet's sign of life that was seen first after that.
    first_heard: Option<String>,
}

impl Keeper {
    fn start(&mut self) -> Result<(), String> {
        let runtime = runtime()?;
        sweep::make_bridge()?;
        configs::write(&self.layout)
            .map_err(|error| format!("its settings cannot be written: {error}"))?;
        self.spawn_etcd()?;
        self.spawn_containerd()?;
        self.spawn_apiserver()?;
        self.wait("containerd", |layout| layout.containerd_socket().exists().then_some(()))?;
        for image in [Image::pause(), Image::with_tools(TOOLS)] {
            // The socket is there a moment before anybody answers.
            self.wait("containerd", |layout| image.import(layout).ok())?;
        }
        self.wait("kube-apiserver", |layout| runtime.block_on(answers(layout)).then_some(()))?;
        self.spawn_controllers()?;
        self.spawn_kubelet()?;
        self.wait("kubelet", |layout| runtime.block_on(can_run_pods(layout)).then_some(()))?;
        fs::write(self.layout.ready(), "").map_err(failed("its directory cannot be written"))
    }

    /// Returns when the cluster is to end.
    fn watch(&mut self, asked: &SignalFd) -> Result<(), String> {
        let users = self
            .layout
            .lock_file(layout::USERS)
            .map_err(|error| format!("the lock of its users cannot be opened: {error}"))?;
        let runtime = runtime()?;
        let mut unused_since = Instant::now();
        loop {
            if matches!(asked.read_signal(), Ok(Some(_))) {
                return Ok(());
            }
            self.check_alive()?;
            self.mind_outages(&runtime)?;
            if self.layout.cache().join(layout::STAYS).exists() || users.try_lock().is_err() {
                unused_since = Instant::now();
            } else if unused_since.elapsed() > IDLE {
                // Held on to until this process ends: who comes now waits until everything is
                // cleared away.
                std::mem::forget(users);
                return Ok(());
            } else {
                users
                    .unlock()
                    .map_err(|error| format!("the lock of its users cannot be let go: {error}"))?;
            }
            std::thread::park_timeout(LOOK);
        }
    }

    /// Stops the parts that tests want stopped, and starts those again that they do not.
    fn mind_outages(&mut self, runtime: &tokio::runtime::Runtime) -> Result<(), String> {
        for part in Part::ALL {
            let is_to_stop = part
                .is_to_stop(&self.layout)
                .map_err(failed("the lock of a part cannot be looked at"))?;
            match self.down.iter().position(|down| down.part == part) {
                None if is_to_stop => {
                    self.kill(part.name())?;
                    self.down.push(Down { part, is_back: false, first_heard: None });
                    // Tells the test.
                    fs::write(self.layout.down(part.name()), "")
                        .map_err(failed("its directory cannot be written"))?;
                }
                Some(at) if !self.down[at].is_back && !is_to_stop => {
                    self.down[at].is_back = true;
                    match part {
                        Part::ApiServer => self.spawn_apiserver()?,
                        Part::Kubelet => self.spawn_kubelet()?,
                    }
                }
                Some(at) if self.down[at].is_back => {
                    let Some(heard) = runtime.block_on(sign_of_life(&self.layout)) else {
                        continue;
                    };
                    let first = self.down[at].first_heard.get_or_insert_with(|| heard.clone());
                    if *first != heard {
                        self.down.swap_remove(at);
                        fs::remove_file(self.layout.down(part.name()))
                            .map_err(failed("its directory cannot be written"))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// As a machine does that loses power: the part has no say.
    fn kill(&mut self, name: &str) -> Result<(), String> {
        let (_, child) = self
            .children
            .iter_mut()
            .find(|(child, _)| *child == name)
            .ok_or_else(|| format!("there is no {name}"))?;
        child
            .kill()
            .and_then(|()| child.wait())
            .map(drop)
            .map_err(failed("a part cannot be killed"))
    }

    fn check_alive(&mut self) -> Result<(), String> {
        for (name, child) in &mut self.children {
            if self.down.iter().any(|down| down.part.name() == *name && !down.is_back) {
                continue;
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("{name} ended with {status}:\n{}", self.layout.read_log(name)));
            }
        }
        Ok(())
    }

    fn wait<T>(
        &mut self,
        part: &str,
        mut ask: impl FnMut(&Layout) -> Option<T>,
    ) -> Result<T, String> {
        let start = Instant::now();
        loop {
            self.check_alive()?;
            if let Some(answer) = ask(&self.layout) {
                return Ok(answer);
            }
            if start.elapsed() > READY_WITHIN {
                return Err(format!(
                    "{part} is not ready after {} s:\n{}",
                    READY_WITHIN.as_secs(),
                    self.layout.read_log(part)
                ));
            }
            std::thread::park_timeout(READY_LOOK);
        }
    }

    /// Ends the parts in the order in which they need each other; containers are the sweeper's.
    fn end(&mut self) {
        for (_, child) in self.children.iter_mut().rev() {
            let pid = Pid::from_raw(child.id().cast_signed());
            let _gone = kill(pid, Signal::SIGTERM);
            let start = Instant::now();
            while matches!(child.try_wait(), Ok(None)) {
                if start.elapsed() > END_WITHIN {
                    let _gone = child.kill();
                    let _gone = child.wait();
                    break;
                }
                std::thread::park_timeout(READY_LOOK);
            }
        }
    }

    fn spawn(
        &mut self,
        name: &'static str,
        program: &Path,
        arguments: &[String],
    ) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{name} cannot be started: {error}");
        let log = self.layout.log(name).map_err(failed)?;
        let output = |file: &File| file.try_clone().map(Stdio::from);
        // setpriv: killed when the keeper is.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .current_dir(self.layout.state())
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .stdout(output(&log).map_err(failed)?)
            .stderr(output(&log).map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        match self.children.iter_mut().find(|(other, _)| *other == name) {
            Some((_, before)) => *before = child,
            None => self.children.push((name, child)),
        }
        Ok(())
    }

    fn packaged(&mut self, name: &'static str, arguments: &[String]) -> Result<(), String> {
        let program = parts::program(name).ok_or_else(|| format!("{name} is missing"))?;
        self.spawn(name, &program, arguments)
    }

    fn built(&mut self, name: &'static str, arguments: &[String]) -> Result<(), String> {
        self.spawn(name, &layout::kubernetes().join(name), arguments)
    }

    fn spawn_etcd(&mut self) -> Result<(), String> {
        let data = self.layout.state().join("etcd");
        self.packaged(
            "etcd",
            &flags(&[
                ("name", "pvn-test"),
                ("data-dir", &data.to_string_lossy()),
                ("listen-client-urls", ETCD),
                ("advertise-client-urls", ETCD),
                ("listen-peer-urls", ETCD_PEERS),
                ("initial-advertise-peer-urls", ETCD_PEERS),
                ("initial-cluster", &format!("pvn-test={ETCD_PEERS}")),
                // Nothing of it outlives the machine.
                ("unsafe-no-fsync", "true"),
            ]),
        )
    }

    fn spawn_containerd(&mut self) -> Result<(), String> {
        let config = self.layout.state().join("containerd.toml");
        self.packaged("containerd", &flags(&[("config", &config.to_string_lossy())]))
    }

    fn spawn_apiserver(&mut self) -> Result<(), String> {
        let state = self.layout.state().to_string_lossy().into_owned();
        self.built(
            "kube-apiserver",
            &flags(&[
                ("etcd-servers", ETCD),
                ("bind-address", ADDRESS),
                ("advertise-address", ADDRESS),
                ("secure-port", "443"),
                ("cert-dir", &format!("{state}/apiserver")),
                ("token-auth-file", &format!("{state}/tokens.csv")),
                ("authorization-mode", "RBAC"),
                ("service-account-issuer", "https://kubernetes.default.svc"),
                ("service-account-key-file", &format!("{state}/accounts.pub")),
                ("service-account-signing-key-file", &format!("{state}/accounts.key")),
                ("service-cluster-ip-range", SERVICES),
                ("allow-privileged", "true"),
                // Otherwise logs and exec look for the node by its name.
                ("kubelet-preferred-address-types", "InternalIP"),
                ("audit-policy-file", &format!("{state}/audit.yaml")),
                ("audit-log-path", &self.layout.audit_log().to_string_lossy()),
                // Never begun anew: what was created is counted over all that ran. Megabytes.
                ("audit-log-maxsize", "10000"),
                ("profiling", "false"),
            ]),
        )
    }

    fn spawn_controllers(&mut self) -> Result<(), String> {
        let state = self.layout.state().to_string_lossy().into_owned();
        self.built(
            "kube-controller-manager",
            &flags(&[
                ("kubeconfig", &format!("{state}/controller-manager.kubeconfig")),
                ("service-account-private-key-file", &format!("{state}/accounts.key")),
                ("root-ca-file", &format!("{state}/apiserver/apiserver.crt")),
                ("use-service-account-credentials", "true"),
                ("leader-elect", "false"),
                ("secure-port", "0"),
            ]),
        )?;
        self.built(
            "kube-scheduler",
            &flags(&[
                ("kubeconfig", &format!("{state}/scheduler.kubeconfig")),
                ("leader-elect", "false"),
                ("secure-port", "0"),
            ]),
        )
    }

    fn spawn_kubelet(&mut self) -> Result<(), String> {
        let state = self.layout.state().to_string_lossy().into_owned();
        self.built(
            "kubelet",
            &flags(&[
                ("config", &format!("{state}/kubelet.yaml")),
                ("kubeconfig", &format!("{state}/kubelet.kubeconfig")),
                ("root-dir", &format!("{state}/kubelet")),
                ("cert-dir", &format!("{state}/kubelet/pki")),
                ("hostname-override", NODE),
                ("node-ip", ADDRESS),
            ]),
        )
    }
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}
