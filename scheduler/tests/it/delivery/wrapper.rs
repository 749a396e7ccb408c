//! End to end: a scheduler in process that listens, and the real `pvn-wrapper exec` that finds it
//! by its environment alone.

mod away;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::runner::evidence::OutcomeEvidence;
use pvn_scheduler::runner::local::find_wrapper;
use schema::api::Job;
use schema::id::JobId;
use schema::status::{JobKind, Status};

use super::{Launch, Listening, ONE, World};
use crate::driver::caller;

/// What each command is: the wrapper's flags, and a script.
type Script = fn(JobKind) -> (&'static [&'static str], &'static str);

/// A scheduler that listens, and the wrappers that it started.
struct Remote {
    world: World,
    port: TcpListener,
    listening: Listening,
    wrappers: Wrappers,
}

/// Wrappers by job. None outlives its test.
#[derive(Clone, Default)]
struct Wrappers(Arc<Mutex<Vec<(JobId, Child)>>>);

/// The process groups that a wrapper has started.
fn commands_of(wrapper: u32) -> Vec<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{wrapper}/task/{wrapper}/children"))
        .unwrap_or_default();
    children.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

impl Drop for Wrappers {
    fn drop(&mut self) {
        // The last clone: the launcher has one as well.
        let Some(wrappers) = Arc::get_mut(&mut self.0) else { return };
        for (_, child) in wrappers.get_mut().unwrap().iter_mut() {
            // One that has ended needs none. A killed wrapper would leave its command to run on.
            for command in commands_of(child.id()) {
                let _ = killpg(command, Signal::SIGKILL);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Remote {
    async fn start(script: Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", port.local_addr().unwrap());
        let wrappers = Wrappers::default();
        let launch = launch(script, dir.path().to_owned(), wrappers.clone());
        let world = World::open(dir, &url, launch).await;
        let listening = Listening::on(&world, port.try_clone().unwrap());
        world.push(ONE).await;
        Self { world, port, listening, wrappers }
    }

    /// The newest job of this kind that is over.
    async fn ended(&self, kind: JobKind) -> Job {
        let world = &self.world;
        let what = format!("the end of a {kind}");
        world
            .until(&what, async || {
                let jobs =
                    world.store.jobs(&Default::default(), &Default::default()).await.unwrap().items;
                let job =
                    jobs.into_iter().find(|job| job.kind == kind && job.ended_at.is_some())?;
                world.store.job(job.id).await.unwrap()
            })
            .await
    }

    /// How the wrapper of a job ended.
    async fn exited(&self, job: JobId) -> ExitStatus {
        let wrapper = || {
            let mut wrappers = self.wrappers.0.lock().unwrap();
            wrappers
                .iter_mut()
                .find(|(of, _)| *of == job)
                .and_then(|(_, child)| child.try_wait().unwrap())
        };
        self.world.until("the wrapper's end", async || wrapper()).await
    }

    /// `kill -9` of the scheduler, and another one on the same port.
    async fn crash(self) -> Self {
        self.listening.stop.cancel();
        let url = self.listening.url.clone();
        let (dir, launch) = self.world.take_down().await;
        let world = World::open(dir, &url, launch).await;
        let listening = Listening::on(&world, self.port.try_clone().unwrap());
        Self { world, port: self.port, listening, wrappers: self.wrappers }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.world.dir.path().join(name)
    }
}

fn launch(script: Script, directory: PathBuf, wrappers: Wrappers) -> Launch {
    Arc::new(move |spec: &JobSpec, environment: &[(String, String)]| {
        if wrappers.0.lock().unwrap().iter().any(|(job, _)| *job == spec.job) {
            // Started again after a crash: as in a cluster, the name is taken and the first one is
            // found.
            return;
        }
        let (flags, text) = script(spec.kind);
        let child = Command::new(find_wrapper(None).expect("`cargo build -p pvn-wrapper` was run"))
            .arg("exec")
            .args(flags)
            .args(["--", "sh", "-c", text])
            .current_dir(&directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("PVN_SPOOL_DIR", spool_of(&directory, spec.job))
            .envs(spec.env.iter().chain(environment).map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wrappers.0.lock().unwrap().push((spec.job, child));
    })
}

/// Where the wrapper of a job keeps what is not delivered yet.
fn spool_of(directory: &Path, job: JobId) -> PathBuf {
    directory.join("spools-of-wrappers").join(job.to_string())
}

fn kept(remote: &Remote, job: &Job) -> (Vec<u8>, Vec<u8>) {
    let report = job.report.as_ref().unwrap();
    let blob = |id: Option<_>| id.map(|id| remote.world.blob(Some(id))).unwrap_or_default();
    (blob(report.stdout_blob_id), blob(report.stderr_blob_id))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_converges_by_jobs_that_only_upload() {
    let remote = Remote::start(|kind| match kind {
        JobKind::Fetch => (
            &["--out", "plan=tf.plan"],
            "test -e done && echo clean > tf.plan && exit 0; echo work; echo the plan > tf.plan; \
             exit 2",
        ),
        _ => (
            &["--in", "got.plan=fetch:plan"],
            "cat got.plan; test -z \"${PVN_TOKEN-}\" || exit 9; touch done",
        ),
    })
    .await;
    let apply = remote.ended(JobKind::Apply).await;
    assert_eq!(
        (apply.exit_code, kept(&remote, &apply).0.as_slice()),
        (Some(0), b"the plan\n".as_slice()),
        "{apply:?}"
    );
    let converged = async || {
        let service = remote.world.store.service("app", "web").await.unwrap().unwrap();
        service.channels.into_iter().find(|instance| instance.status == Status::Converged)
    };
    remote.world.until("the service CONVERGED", converged).await;
    assert_eq!(remote.exited(apply.id).await.code(), Some(0));
    remote
        .world
        .until("nothing being kept twice", async || (remote.world.staged() == 0).then_some(()))
        .await;
    assert!(
        remote.world.logged("job.late_report").await.is_empty()
            && remote.world.logged("job.late_upload").await.is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn large_streams_arrive_apart_and_whole() {
    let remote = Remote::start(|_| (&[], "seq 1 400000 & seq 400000 -1 1 >&2; wait; exit 3")).await;
    let fetch = remote.ended(JobKind::Fetch).await;
    assert_eq!(fetch.exit_code, Some(3));
    let up: String = (1..=400_000).map(|number| format!("{number}\n")).collect();
    let down: String = (1..=400_000).rev().map(|number| format!("{number}\n")).collect();
    let (stdout, stderr) = kept(&remote, &fetch);
    assert!(stdout == up.as_bytes() && stderr == down.as_bytes());
    assert_eq!(remote.exited(fetch.id).await.code(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_a_scheduler_that_is_killed_and_back_has_the_whole_job_once() {
    let remote = Remote::start(|_| {
        (&[], "echo before; until test -e go; do sleep 0.02; done; echo after; exit 2")
    })
    .await;
    let job = remote.world.fetch().await.job;
    remote
        .world
        .until("the first bytes being here", async || {
            let bytes =
                remote.world.delivery.tail(job, schema::spool::Stream::Stdout, 0, 100).unwrap()?;
            (bytes == b"before\n").then_some(())
        })
        .await;
    let remote = remote.crash().await;
    std::fs::write(remote.file("go"), "").unwrap();
    let fetch = remote.ended(JobKind::Fetch).await;
    assert_eq!(
        (fetch.id, fetch.exit_code, kept(&remote, &fetch).0.as_slice()),
        (job, Some(2), b"before\nafter\n".as_slice())
    );
    assert_eq!(remote.exited(job).await.code(), Some(2));
    assert!(remote.world.logged("job.late_report").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn p7_a_cancel_reaches_the_command_by_the_answers() {
    let remote = Remote::start(|_| {
        (&[], "trap 'echo asked; exit 7' TERM; while :; do echo tick; sleep 0.05; done")
    })
    .await;
    let job = remote.world.fetch().await.job;
    remote
        .world
        .until("the job RUNNING", async || {
            (remote.world.status(job).await == "RUNNING").then_some(())
        })
        .await;
    remote.world.handle.cancel_job(job, caller("eve")).await.unwrap();
    let fetch = remote.ended(JobKind::Fetch).await;
    assert_eq!((fetch.status.to_string().as_str(), fetch.exit_code), ("CANCELLED", Some(7)));
    assert!(kept(&remote, &fetch).0.ends_with(b"asked\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_comes_after_the_place_gave_the_job_up_changes_nothing_and_the_command_keeps_its_code()
 {
    let remote = Remote::start(|_| (&[], "until test -e go; do sleep 0.02; done; exit 2")).await;
    let job = remote.world.fetch().await.job;
    remote.world.delivery.settle(job, OutcomeEvidence::default(), true).await;
    assert_eq!(remote.ended(JobKind::Fetch).await.status.to_string(), "UNKNOWN");
    std::fs::write(remote.file("go"), "").unwrap();
    assert_eq!(remote.exited(job).await.code(), Some(2));
    assert_eq!(remote.world.status(job).await, "UNKNOWN");
    let is_late = |entry: &schema::api::LogEntry| entry.kind.starts_with("job.late_");
    remote
        .world
        .until("it being on record", async || {
            remote.world.logged("job").await.into_iter().find(is_late)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_output_that_was_checked_elsewhere_counts() {
    let remote = Remote::start(|_| (&["--expect", "fetch"], r#"echo '{"objects": []}'"#)).await;
    let fetch = remote.ended(JobKind::Fetch).await;
    let structured = fetch.report.unwrap().structured.unwrap();
    assert_eq!(structured.value.unwrap(), serde_json::json!({"objects": []}));
}
