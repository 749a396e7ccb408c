//! What a pass removes and what it leaves, over a real database and real files, with a clock that
//! is moved by hand.

use std::sync::Arc;
use std::time::Duration;

use pvn_scheduler::blobs::{Blobs, Keep};
use pvn_scheduler::clock::{Clock, Manual};
use pvn_scheduler::retention::{Policy, Retention, reserve};
use pvn_scheduler::store::{
    Change, Commit, JobFilter, JobRow, PageRequest, ReleaseRow, ServiceRow,
};
use schema::api::LogEntry;
use schema::id::{BlobId, ChannelId, InstanceId, JobId, ReleaseId};
use schema::report::{Report, Structured, StructuredKind};
use schema::status::{JobKind, JobStatus, Status};
use schema::time::Timestamp;

use crate::store::{Fresh, estate, instance};

mod blobs;
mod leap;
mod spool;

const DAY_MS: i64 = 24 * 3_600_000;

/// The present of these tests: the time of the file system, so that a blob put now is put now.
fn today() -> Timestamp {
    Clock::System.now()
}

struct Rig {
    fresh: Fresh,
    blobs: Blobs,
    clock: Manual,
    service: ServiceRow,
    channel: ChannelId,
    seq: i64,
}

impl Rig {
    async fn open() -> Self {
        let fresh = Fresh::open().await;
        let blobs = Blobs::open(&fresh.dir.path().join("blobs")).unwrap();
        let (commit, service, channel) = estate();
        fresh.store.commit(&commit).await.unwrap();
        Self {
            fresh,
            blobs,
            clock: Manual::starting_at(today()),
            service,
            channel: channel.id,
            seq: 0,
        }
    }

    fn retention(&self) -> Retention {
        Retention {
            store: self.fresh.store.clone(),
            blobs: self.blobs.clone(),
            policy: Policy::default(),
            clock: Clock::Manual(self.clock.clone()),
            spool: None,
            reserve: reserve::beside(&self.fresh.dir.path().join("pvn.db")),
            numbers: self.fresh.store.pruned(),
            pause: Duration::ZERO,
            leap: None,
            grace: Duration::from_secs(24 * 3600),
        }
    }

    async fn pass(&self) {
        self.retention().pass().await.unwrap();
    }

    /// A job that was decided this long ago.
    fn job(&mut self, kind: JobKind, days_ago: i64, report: Report) -> JobRow {
        self.seq += 1;
        let when = today().plus_ms(-days_ago * DAY_MS);
        JobRow {
            id: JobId::derive(&[&self.seq.to_le_bytes()]),
            seq: self.seq,
            instance: InstanceId::of(self.service.id, self.channel),
            service: self.service.id,
            channel: self.channel,
            release: ReleaseId::derive(&[b"r"]),
            kind,
            version: "web-1".to_owned(),
            runtime: "local".parse().unwrap(),
            target: None,
            attempt: 1,
            status: JobStatus::Succeeded,
            exit_code: Some(0),
            message: String::new(),
            created_at: when,
            started_at: Some(when),
            ended_at: Some(when),
            report: Some(Box::new(report)),
            start: None,
            stop: None,
            once: false,
        }
    }

    async fn commit(&self, jobs: Vec<JobRow>) {
        self.fresh.store.commit(&Commit { jobs, ..Commit::default() }).await.unwrap();
    }

    async fn there(&self, job: &JobRow) -> bool {
        self.fresh.store.job_row(job.id).await.unwrap().is_some()
    }

    async fn count(&self, kind: JobKind) -> u64 {
        let filter = JobFilter { kind: Some(kind), ..JobFilter::default() };
        self.fresh.store.jobs(&filter, &PageRequest::default()).await.unwrap().total
    }

    fn blob(&self, text: &str) -> BlobId {
        self.blobs.put(text.as_bytes(), Keep::Lazy).unwrap()
    }
}

fn printed(blob: BlobId) -> Report {
    Report { stdout_blob_id: Some(blob), ..Report::default() }
}

#[tokio::test]
async fn old_jobs_go_and_what_people_ask_for_stays() {
    let mut rig = Rig::open().await;
    let failed =
        JobRow { status: JobStatus::Failed, ..rig.job(JobKind::Fetch, 300, Report::default()) };
    let mut jobs = vec![failed.clone()];
    let applies: Vec<_> =
        [500, 400, 300].map(|days| rig.job(JobKind::Apply, days, Report::default())).into();
    // Ten a day, for a hundred days.
    let polls: Vec<_> = (0..1000)
        .map(|number| rig.job(JobKind::Fetch, 100 - number / 10, Report::default()))
        .collect();
    jobs.extend(applies.clone());
    jobs.extend(polls.clone());
    for piece in jobs.chunks(200) {
        rig.commit(piece.to_vec()).await;
    }
    rig.pass().await;
    // The last seven days, today among them, and the newest failure.
    assert_eq!(rig.count(JobKind::Fetch).await, 71, "of 1001");
    assert!(rig.there(&failed).await, "the last that failed");
    assert!(rig.there(polls.last().unwrap()).await);
    assert_eq!(rig.count(JobKind::Apply).await, 3, "fewer than are kept whatever their age");

    rig.clock.advance_ms(100 * DAY_MS);
    rig.pass().await;
    assert_eq!(
        rig.count(JobKind::Fetch).await,
        51,
        "the newest 50 of a kind, and the last that failed"
    );
    assert!(rig.fresh.store.pruned().to_string().contains("jobs"), "it says what it did");
}

#[tokio::test]
async fn what_a_state_names_stays_whatever_its_age() {
    let mut rig = Rig::open().await;
    let plan = rig.blob("a plan that waits for its approval");
    let named = rig.job(JobKind::Fetch, 90, printed(plan));
    let other = rig.job(JobKind::Fetch, 90, Report::default());
    let rest: Vec<_> = (0..60).map(|_| rig.job(JobKind::Fetch, 0, Report::default())).collect();
    let mut row = instance(&rig.service, &estate().2, 2, Status::WaitingManualApproval);
    // Where in a state a name stands is the engine's business.
    row.state = row.state.replacen('{', &format!("{{\"note\":\"{} {plan}\",", named.id), 1);
    let commit = Commit {
        instances: vec![row],
        jobs: [vec![named.clone(), other.clone()], rest].concat(),
        ..Commit::default()
    };
    rig.fresh.store.commit(&commit).await.unwrap();
    rig.clock.advance_ms(60 * DAY_MS);
    rig.pass().await;
    assert!(rig.there(&named).await && rig.blobs.has(plan));
    assert!(!rig.there(&other).await);
}

fn entry(seq: u64, days_ago: i64, kind: &str, actor: Option<&str>) -> LogEntry {
    LogEntry {
        seq,
        at: today().plus_ms(-days_ago * DAY_MS),
        kind: kind.to_owned(),
        actor: actor.map(str::to_owned),
        origin: None,
        application: None,
        service: None,
        channel: None,
        message: String::new(),
        data: serde_json::json!({}),
    }
}

#[tokio::test]
async fn the_log_forgets_machines_first_then_people_and_approvals_never() {
    let rig = Rig::open().await;
    let events = vec![
        entry(1, 500, "approval.decided", Some("eve")),
        entry(2, 400, "instance.pause", Some("eve")),
        entry(3, 100, "instance.pause", Some("eve")),
        entry(4, 100, "release.created", None),
        entry(5, 100, "job.ended", None),
        entry(6, 5, "job.ended", None),
        entry(7, 400, "job.ended", None),
    ];
    rig.fresh.store.commit(&Commit { events, ..Commit::default() }).await.unwrap();
    let left = async || -> Vec<u64> {
        let page =
            rig.fresh.store.events(&Default::default(), &PageRequest::default()).await.unwrap();
        page.items.iter().map(|entry| entry.seq).rev().collect()
    };
    rig.pass().await;
    assert_eq!(left().await, [1, 3, 4, 6, 7]);
    rig.clock.advance_ms(300 * DAY_MS);
    rig.pass().await;
    assert_eq!(left().await, [1, 7], "and the newest, which the next number follows");
}

#[tokio::test]
async fn releases_stay_a_year_and_the_last_that_converged_longer() {
    let rig = Rig::open().await;
    // A restored database leaves out some thousands of numbers.
    let after_the_gap = |number: u64| if number > 30 { number + 5_000 } else { number };
    let release = |number: u64, days_ago: i64| ReleaseRow {
        id: ReleaseId::derive(&[&number.to_le_bytes()]),
        service: rig.service.id,
        seq: number.cast_signed(),
        number: after_the_gap(number),
        version: format!("web-{number}"),
        params: Default::default(),
        service_version: 1,
        created_at: today().plus_ms(-days_ago * DAY_MS),
        created_by: "eve".to_owned(),
        rolled_back_to: None,
    };
    let mut changes: Vec<Change> = vec![Change::Service(ServiceRow {
        release_count: after_the_gap(60),
        ..rig.service.clone()
    })];
    changes.extend((1..=60).map(|number| Change::Release(Box::new(release(number, 400)))));
    rig.fresh.store.commit(&Commit { changes, ..Commit::default() }).await.unwrap();
    rig.pass().await;
    let all = rig
        .fresh
        .store
        .releases(&Default::default(), &PageRequest { limit: Some(100), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(all.total, 50, "the newest of a service stay whatever their age");
    assert_eq!(all.items.last().unwrap().version, "web-11");
}

#[tokio::test]
async fn p5_rows_that_cannot_be_read_are_skipped_and_counted_and_the_others_go() {
    let mut rig = Rig::open().await;
    // More than one step of them, so that a whole step cannot be read.
    let old: Vec<_> = (0..450).map(|_| rig.job(JobKind::Fetch, 300, Report::default())).collect();
    let new: Vec<_> = (0..60).map(|_| rig.job(JobKind::Fetch, 0, Report::default())).collect();
    let next: Vec<_> = (0..52).map(|_| rig.job(JobKind::GetInfo, 300, Report::default())).collect();
    for piece in [old.clone(), new, next].concat().chunks(200) {
        rig.commit(piece.to_vec()).await;
    }
    let bad = rig
        .fresh
        .edit("UPDATE jobs SET status = 'dance' WHERE kind = 'fetch' AND seq BETWEEN 1 AND 399")
        .await;
    assert_eq!(bad, 399);
    rig.fresh.edit("UPDATE jobs SET kind = 'prance' WHERE seq = 400").await;
    rig.pass().await;
    assert!(!rig.there(old.last().unwrap()).await, "what lies behind goes");
    assert_eq!(rig.count(JobKind::GetInfo).await, 50, "and so does what is of another kind");
    let metrics = rig.fresh.store.pruned().metrics();
    assert_eq!(metrics.get("pvn_prune_unreadable_rows").copied(), Some(400.0), "{metrics:?}");
    rig.pass().await;
    let metrics = rig.fresh.store.pruned().metrics();
    assert_eq!(
        metrics.get("pvn_prune_unreadable_rows").copied(),
        Some(400.0),
        "of the last pass: {metrics:?}"
    );
}
