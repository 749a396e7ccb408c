//! The scheduler away while a job runs, and killed at any moment of it: each job ends with exactly
//! one accepted report, and what is kept of it is what it wrote.
//!
//! The wrapper reaches the scheduler through a [`Line`], which is where a test counts what passes
//! and cuts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::wait;

/// An address that stays while schedulers come and go behind it. With nobody behind it a connection
/// ends at once.
struct Line {
    address: SocketAddr,
    inner: Arc<Behind>,
}

#[derive(Default)]
struct Behind {
    to: Mutex<Option<SocketAddr>>,
    /// Pieces that have passed, in both directions.
    passed: AtomicUsize,
    /// After so many pieces the scheduler is killed.
    moment: AtomicUsize,
    cut: CancellationToken,
}

impl Line {
    /// To nobody yet; the moment is that of the cut.
    async fn start(moment: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Behind { moment: AtomicUsize::new(moment), ..Behind::default() });
        let behind = Arc::clone(&inner);
        tokio::spawn(async move {
            while let Ok((wrapper, _)) = listener.accept().await {
                let behind = Arc::clone(&behind);
                tokio::spawn(async move { behind.connect(wrapper).await });
            }
        });
        Self { address, inner }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on this scheduler answers.
    fn lead_to(&self, listening: &Listening) {
        let address = listening.url.strip_prefix("http://").unwrap().parse().unwrap();
        *self.inner.to.lock().unwrap() = Some(address);
    }
}

impl Behind {
    async fn connect(&self, wrapper: TcpStream) {
        let to = *self.to.lock().unwrap();
        let Some(to) = to else { return };
        let Ok(scheduler) = TcpStream::connect(to).await else { return };
        let was_cut = self.cut.is_cancelled();
        let (from_wrapper, to_wrapper) = wrapper.into_split();
        let (from_scheduler, to_scheduler) = scheduler.into_split();
        tokio::select! {
            () = self.pass(from_wrapper, to_scheduler) => {}
            () = self.pass(from_scheduler, to_wrapper) => {}
            () = self.cut.cancelled(), if !was_cut => {}
        }
    }

    async fn pass(&self, mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin) {
        let mut piece = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            if to.write_all(&piece[..count]).await.is_err() {
                return;
            }
            if self.passed.fetch_add(1, Ordering::SeqCst) + 1 == self.moment.load(Ordering::SeqCst)
            {
                *self.to.lock().unwrap() = None;
                self.cut.cancel();
            }
        }
    }
}

/// Output that does not fit into one piece, on both streams, and a file.
fn work(_: JobKind) -> (&'static [&'static str], &'static str) {
    (
        &["--out", "plan=tf.plan"],
        "seq 1 40000 & seq 40000 -1 1 >&2; wait; echo the plan > tf.plan; echo > ran; until test \
         -e go; do sleep 0.02; done; exit 2",
    )
}

/// The scheduler, dead or alive, and the line to it.
struct Away {
    line: Line,
    wrappers: Wrappers,
    directory: PathBuf,
}

impl Away {
    async fn begin(moment: usize) -> (Self, World) {
        let dir = tempfile::tempdir().unwrap();
        let line = Line::start(moment).await;
        let wrappers = Wrappers::default();
        let directory = dir.path().to_owned();
        let launch = launch(work, directory.clone(), wrappers.clone());
        let world = World::open(dir, &line.url(), launch).await;
        (Self { line, wrappers, directory }, world)
    }

    /// `kill -9`, and another one behind the line.
    async fn next(&self, world: World) -> (World, Listening) {
        let (dir, launch) = world.take_down().await;
        let world = World::open(dir, &self.line.url(), launch).await;
        let listening = Listening::start(&world);
        self.line.lead_to(&listening);
        (world, listening)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// What must be so in the end, whatever happened: the job's outcome and bytes, once, and nothing
/// kept for a second time.
async fn check_whole_and_once(away: Away, world: World, listening: Listening, what: &str) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let Away { wrappers, directory, .. } = away;
    let remote = Remote { world, port, listening, wrappers };
    let fetch = remote.ended(JobKind::Fetch).await;
    assert_eq!(
        (fetch.exit_code, fetch.status.to_string().as_str()),
        (Some(2), "SUCCEEDED"),
        "{what}: {fetch:?}"
    );
    let up: String = (1..=40_000).map(|number| format!("{number}\n")).collect();
    let down: String = (1..=40_000).rev().map(|number| format!("{number}\n")).collect();
    let (stdout, stderr) = kept(&remote, &fetch);
    assert!(
        stdout == up.as_bytes() && stderr == down.as_bytes(),
        "{what}: {} and {} bytes are kept",
        stdout.len(),
        stderr.len()
    );
    let report = fetch.report.as_ref().unwrap();
    assert_eq!(remote.world.blob(report.files[0].content_blob_id), b"the plan\n", "{what}");
    // Its code is the command's, and nothing is left to be resumed: it knows that it was heard.
    assert_eq!(remote.exited(fetch.id).await.code(), Some(2), "{what}");
    assert!(!spool_of(&directory, fetch.id).exists(), "{what}: the spool is kept");
    assert_eq!(
        remote.wrappers.0.lock().unwrap().iter().filter(|(job, _)| *job == fetch.id).count(),
        1,
        "{what}: one wrapper"
    );
    for kind in ["job.late_report", "job.late_upload", "job.refused_upload"] {
        let noted = remote.world.logged(kind).await;
        assert!(noted.is_empty(), "{what}: {noted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_a_scheduler_that_is_away_for_the_whole_run_has_the_whole_job_once_when_it_is_back() {
    // Nobody is behind the line from before the start on.
    let (away, world) = Away::begin(usize::MAX).await;
    world.push(ONE).await;
    let job = world.fetch().await.job;
    world
        .until("the command having worked", async || away.file("ran").exists().then_some(()))
        .await;
    let (dir, launch) = world.take_down().await;
    std::fs::write(away.file("go"), "").unwrap();
    let left = spool_of(&away.directory, job).join("report.json");
    let until = wait::until(super::super::PATIENCE, async || left.exists().then_some(()));
    until.await.expect("the run ends without a scheduler and keeps its report");
    let world = World::open(dir, &away.line.url(), launch).await;
    assert_ne!(world.status(job).await, "SUCCEEDED", "nobody can know yet");
    let listening = Listening::start(&world);
    away.line.lead_to(&listening);
    check_whole_and_once(away, world, listening, "away").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_a_scheduler_that_is_killed_at_any_moment_has_the_whole_job_once() {
    // Some 40 pieces pass in such a run; the last moments are after its end. Each world by itself,
    // all at once.
    let moments = (1..=43).step_by(3);
    let killed = futures::future::join_all(moments.map(killed_at)).await;
    assert!(
        killed.iter().filter(|killed| **killed).count() >= 8,
        "most of the kills came before the end: {killed:?}"
    );
}

/// A run during which the scheduler is killed after so many pieces, and comes back; whether that
/// was before the end.
async fn killed_at(moment: usize) -> bool {
    let (away, world) = Away::begin(moment).await;
    let listening = Listening::start(&world);
    away.line.lead_to(&listening);
    std::fs::write(away.file("go"), "").unwrap();
    world.push(ONE).await;
    let killed = tokio::select! {
        () = away.line.inner.cut.cancelled() => true,
        () = ended(&world) => false,
    };
    let (world, listening) = if killed {
        drop(listening);
        away.next(world).await
    } else {
        (world, listening)
    };
    check_whole_and_once(away, world, listening, &format!("killed after piece {moment}")).await;
    killed
}

/// The fetch being over.
async fn ended(world: &World) {
    let job = world.fetch().await.job;
    world.until("the end of the fetch", async || world.job(job).await.ended_at.map(drop)).await;
}
