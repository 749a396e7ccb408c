//! Crashes between commit and perform, a locked database, a stop that overtakes its start.

use std::sync::atomic::Ordering;

use pvn_scheduler::clock::{Clock, Manual};
use pvn_scheduler::driver::{Ask, Health, Refusal};
use pvn_scheduler::runner::{End, JobSpec, JobWait, RunnerEvent};
use pvn_scheduler::store::{JobFilter, PageRequest};
use schema::cause::CauseCode;
use schema::id::JobId;
use schema::report::Report;
use schema::status::{JobKind, JobStatus, Status};
use schema::time::Timestamp;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use super::round::tidy_world;
use super::{Rig, TWO_CHANNELS, caller, report, target};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_11_a_crash_during_an_apply_starts_no_second_one() {
    let applying = |spec: &pvn_scheduler::runner::JobSpec| match spec.kind {
        JobKind::Fetch => Some(2),
        _ => None,
    };
    let rig = Rig::start(applying).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let filter = JobFilter { kind: Some(JobKind::Apply), ..JobFilter::default() };
    rig.until("the apply being RUNNING", async || {
        let page = rig.store.jobs(&filter, &PageRequest::default()).await.unwrap();
        page.items.into_iter().find(|job| job.status == JobStatus::Running)
    })
    .await;
    let rig = rig.crash(applying).await;
    rig.until("the driver answering again", async || {
        rig.handle.explain(target("staging")).await.ok()
    })
    .await;
    let page = rig.store.jobs(&filter, &PageRequest::default()).await.unwrap();
    assert_eq!(page.total, 1, "{page:?}");
    assert_eq!(rig.runner.applies(), 0, "the apply runs on; nothing was started");
    // Its end still counts.
    let job = page.items[0].id;
    rig.handle.cancel_job(job, caller("eve")).await.unwrap();
    let instance = rig.until_status("staging", Status::Failed).await;
    assert_eq!(instance.reason.map(schema::status::Reason::as_str), Some("CANCELLED"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_goes_on_where_the_last_run_stopped() {
    let rig = Rig::start(|spec| (spec.kind == JobKind::Fetch).then_some(2)).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-1");
    let rig = rig.restart(tidy_world()).await;
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-2");
    let jobs = rig
        .store
        .jobs(
            &JobFilter { status: Some(JobStatus::Running), ..Default::default() },
            &PageRequest::default(),
        )
        .await
        .unwrap();
    for job in jobs.items {
        rig.handle.cancel_job(job.id, caller("root")).await.unwrap();
    }
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_locked_starts_nothing_new_and_reading_goes_on() {
    let rig = Rig::start(tidy_world()).await;
    rig.apply(TWO_CHANNELS).await.unwrap();
    let options = SqliteConnectOptions::new().filename(rig.dir.path().join("pvn.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();

    let refused = rig.push(&[]).await.unwrap_err();
    assert!(
        matches!(&refused, Refusal::Unavailable(why) if why.contains("locked") && why.contains("nothing was changed")),
        "{refused}"
    );
    let mut health = rig.handle.health();
    assert!(matches!(&*health.borrow(), Health::Degraded { .. }));
    assert!(matches!(
        rig.handle.ask(target("staging"), Ask::Pause(Default::default()), caller("eve")).await,
        Err(Refusal::Unavailable(_))
    ));
    let explained = rig.handle.explain(target("staging")).await.unwrap();
    assert_eq!(explained.status, Status::Converging);
    let Health::Degraded { why, since } = health.borrow().clone() else {
        panic!("it stores nothing")
    };
    let first = &explained.causes[0];
    assert_eq!(
        (first.code.as_str(), first.since),
        ("NOTHING_STORED", Some(since)),
        "{explained:#?}"
    );
    assert!(first.message.contains(&why) && first.message.contains("ends"), "{}", first.message);
    let next: Vec<_> = explained.next.iter().map(|next| next.action.as_str()).collect();
    assert_eq!(next, ["store"], "nothing else happens before that");
    assert_eq!(rig.instance("staging").await.desired_version, None);
    assert!(rig.runner.kinds().is_empty(), "nothing is started that was not stored");

    held.rollback().await.unwrap();
    tokio::time::timeout(super::PATIENCE, health.wait_for(|health| *health == Health::Ready))
        .await
        .unwrap()
        .unwrap();
    let explained = rig.handle.explain(target("staging")).await.unwrap();
    assert!(
        explained.causes.iter().all(|cause| cause.code != CauseCode::NothingStored),
        "{explained:#?}"
    );
    assert_eq!(rig.push(&[]).await.unwrap().version, "web-1");
    rig.until_status("production", Status::Converged).await;
}

/// The end of a command that ended well at that time, after a second.
fn ended_at(at: Timestamp) -> End {
    let End::Reported(report) = report(Some(0), None) else { unreachable!("it has a report") };
    let start_timestamp_ns = format!("{}000000", at.plus_ms(-1_000).as_millis());
    End::Reported(Box::new(Report {
        start_timestamp_ns,
        duration_ns: "1000000000".into(),
        ..*report
    }))
}

/// What becomes of an apply without fetch that ends well within its timeout of 5 s while nothing
/// can be stored, and whose deadline passes before anything can. Its end is told `first`, as long
/// as nothing can be stored, or only when that works again.
async fn ended_while_nothing_is_stored(first: bool) {
    let clock = Manual::starting_at(Timestamp::from_millis(1_900_000_000_000));
    let now = || Clock::Manual(clock.clone()).now();
    let rig = Rig::start_at(Clock::Manual(clock.clone()), |_| None).await;
    let (before, rest) = TWO_CHANNELS.split_once("    fetch:").unwrap();
    let text = format!(
        "{before}    apply:\n      timeout: 5s{}",
        rest.split_once("    apply:").unwrap().1
    );
    rig.request(&text, true).await.unwrap();
    let row = async |job: JobId| rig.store.job_row(job).await.unwrap().unwrap();
    let jobs = async || {
        rig.store.jobs(&JobFilter::default(), &PageRequest::default()).await.unwrap().items
    };
    let running = async || {
        jobs().await.into_iter().find(|job| job.status == JobStatus::Running).map(|job| job.id)
    };
    let apply = rig.until("the apply being RUNNING", running).await;

    let options = SqliteConnectOptions::new().filename(rig.dir.path().join("pvn.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    clock.advance_ms(2_000);
    let end = RunnerEvent::Ended { job: apply, end: ended_at(now()), gone: true };
    let mut health = rig.handle.health();
    clock.advance_ms(120_000);
    tokio::time::timeout(super::PATIENCE, health.wait_for(|health| *health != Health::Ready))
        .await
        .unwrap()
        .unwrap();
    if first {
        rig.runner.news.send(end.clone()).await.unwrap();
        tokio::task::yield_now().await;
    }
    held.rollback().await.unwrap();
    tokio::time::timeout(super::PATIENCE, health.wait_for(|health| *health == Health::Ready))
        .await
        .unwrap()
        .unwrap();
    if !first {
        let row = row(apply).await;
        assert!(
            row.status == JobStatus::Running && row.stop.is_none(),
            "it is listened to for a minute: {row:?}"
        );
        rig.handle.explain(target("staging")).await.unwrap();
        assert!(rig.runner.running.lock().unwrap().contains_key(&apply), "nobody stopped it");
        rig.runner.tell(end);
    }
    let over = rig
        .until("its end", async || Some(row(apply).await).filter(|row| row.ended_at.is_some()))
        .await;
    assert_eq!(
        (over.status, over.exit_code, over.message.as_str()),
        (JobStatus::Succeeded, Some(0), "apply web-1")
    );
    rig.until_status("staging", Status::Converged).await;
    assert!(rig.runner.running.lock().unwrap().contains_key(&apply), "nobody stopped it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p9_an_apply_that_ended_well_while_nothing_could_be_stored_succeeded() {
    ended_while_nothing_is_stored(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p9_what_ended_while_nothing_could_be_stored_is_heard_before_a_deadline_ends_it() {
    ended_while_nothing_is_stored(false).await;
}

/// The fetch of `staging`, which was started and is not heard of.
async fn silent_fetch(rig: &Rig) -> JobId {
    rig.runner.silent.store(true, Ordering::SeqCst);
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let staging = |spec: &JobSpec| super::round::variable(spec, "PVN_RELEASE_CHANNEL") == "staging";
    rig.until("a fetch to be started", async || {
        rig.runner.seen.lock().unwrap().iter().find(|spec| staging(spec)).map(|spec| spec.job)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_13_what_keeps_a_job_from_starting_is_shown_until_it_starts_over_a_restart_too() {
    let rig = Rig::start(|_| None).await;
    let job = silent_fetch(&rig).await;
    let until = Clock::System.now().plus_ms(60_000);
    let wait = JobWait {
        why: "ErrImagePull: no x".to_owned(),
        ends_when: "x is there".to_owned(),
        until,
        surroundings: false,
        is_unseen: false,
    };
    rig.runner.tell(RunnerEvent::Waits { job, wait: Some(wait) });
    let shown = async |rig: &Rig| {
        let row = rig.store.job(job).await.unwrap().unwrap();
        let instance = rig.instance("staging").await;
        let words = format!("waits until {until}: ErrImagePull: no x; ends when x is there");
        (
            row.message == words && row.status == JobStatus::Starting,
            instance.message.contains("ErrImagePull: no x"),
        )
    };
    rig.until("it to be shown", async || (shown(&rig).await == (true, true)).then_some(())).await;
    rig.runner.running.lock().unwrap().insert(job, ());
    let rig = rig.restart(|_| None).await;
    assert_eq!(shown(&rig).await, (true, true), "after a restart");
    rig.runner.tell(RunnerEvent::Started { job, at: Clock::System.now() });
    rig.until("it to be over", async || (shown(&rig).await == (false, false)).then_some(())).await;
    assert_eq!(rig.store.job(job).await.unwrap().unwrap().message, "first look at web-1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_13_a_job_that_is_over_does_not_say_that_it_waits() {
    let rig = Rig::start(|_| None).await;
    let job = silent_fetch(&rig).await;
    let until = Clock::System.now().plus_ms(60_000);
    let wait = JobWait {
        why: "its node does not answer".to_owned(),
        ends_when: "it does".to_owned(),
        until,
        surroundings: false,
        is_unseen: true,
    };
    rig.runner.tell(RunnerEvent::Started { job, at: Clock::System.now() });
    rig.runner.tell(RunnerEvent::Waits { job, wait: Some(wait) });
    let row = async || rig.store.job(job).await.unwrap().unwrap();
    rig.until("the wait to be shown", async || {
        row().await.message.starts_with("waits: ").then_some(())
    })
    .await;
    rig.runner.tell(RunnerEvent::Ended { job, end: report(Some(0), None), gone: true });
    let over =
        rig.until("its end", async || Some(row().await).filter(|row| row.ended_at.is_some())).await;
    assert_eq!((over.status, over.message.as_str()), (JobStatus::Succeeded, "first look at web-1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_a_job_that_was_handed_over_and_never_ran_did_not_begin() {
    let rig = Rig::start(|_| None).await;
    let job = silent_fetch(&rig).await;
    rig.runner.tell(RunnerEvent::Started { job, at: Clock::System.now() });
    let row = async || rig.store.job(job).await.unwrap().unwrap();
    rig.until("it to be told as begun", async || row().await.started_at).await;
    let end = End::NotStarted { why: "another job has its file".to_owned(), surroundings: true };
    rig.runner.tell(RunnerEvent::Ended { job, end, gone: true });
    let over =
        rig.until("its end", async || Some(row().await).filter(|row| row.ended_at.is_some())).await;
    assert_eq!(over.started_at, None, "{}", over.message);
}

/// The apply of `staging`, handed over and not heard of.
pub(super) async fn silent_apply(rig: &Rig) -> JobId {
    let fetch = silent_fetch(rig).await;
    rig.runner.tell(RunnerEvent::Ended { job: fetch, end: report(Some(2), None), gone: true });
    rig.until("the apply", async || {
        let seen = rig.runner.seen.lock().unwrap();
        seen.iter().find(|spec| spec.kind == JobKind::Apply).map(|spec| spec.job)
    })
    .await
}

/// A gate that shuts for a moment: by the time at which it is known that nothing of the job ran it
/// is open again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_that_its_runner_took_back_is_withdrawn_although_its_gates_are_open_again() {
    let rig = Rig::start(|_| None).await;
    let apply = silent_apply(&rig).await;
    let end = End::TakenBack { why: "it was paused".to_owned() };
    rig.runner.tell(RunnerEvent::Ended { job: apply, end, gone: true });
    let row = async || rig.store.job(apply).await.unwrap().unwrap();
    let over =
        rig.until("its end", async || Some(row().await).filter(|row| row.ended_at.is_some())).await;
    assert_eq!(
        (over.status, over.message.as_str()),
        (JobStatus::Cancelled, "withdrawn before it started: it was paused")
    );
    let attempt = rig.until("the next one", async || {
        let seen = rig.runner.seen.lock().unwrap();
        let is_next = |spec: &&JobSpec| spec.kind == JobKind::Apply && spec.job != apply;
        seen.iter().find(is_next).map(|spec| spec.attempt)
    });
    assert_eq!(attempt.await, 1, "it was none");
}

/// Of one that somebody cancelled meanwhile that is what is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_an_apply_that_was_cancelled_and_that_its_runner_took_back_is_over() {
    let rig = Rig::start(|_| None).await;
    let apply = silent_apply(&rig).await;
    rig.handle.cancel_job(apply, caller("eve")).await.unwrap();
    let end = End::TakenBack { why: "it was paused".to_owned() };
    rig.runner.tell(RunnerEvent::Ended { job: apply, end, gone: true });
    let instance = rig.until_status("staging", Status::Failed).await;
    assert_eq!(instance.reason.map(schema::status::Reason::as_str), Some("CANCELLED"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_a_job_that_was_stopped_before_it_started_is_not_started_after_a_crash() {
    let rig = Rig::start(|_| None).await;
    let job = silent_fetch(&rig).await;
    rig.handle.cancel_job(job, caller("eve")).await.unwrap();
    let rig = rig.crash(|_| None).await;
    rig.until("it to be over", async || {
        rig.store.job(job).await.unwrap().filter(|job| job.status == JobStatus::Cancelled)
    })
    .await;
    assert!(
        rig.runner.seen.lock().unwrap().iter().all(|spec| spec.job != job),
        "it is not started"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_is_wanted_again_is_not_forgotten_for_what_was_before() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    // So much is to be forgotten that the rest has to wait.
    let held = rig.runner.memory.clone().write_owned().await;
    let before = rig.runner.waiting.load(Ordering::SeqCst);
    rig.until("so many to wait", async || {
        rig.handle.run_once(target("staging"), JobKind::Fetch, caller("eve")).await.ok();
        (rig.runner.waiting.load(Ordering::SeqCst) >= before + 32).then_some(())
    })
    .await;
    let (head, rest) = TWO_CHANNELS.split_once("  - name: production").unwrap();
    let without = format!("{head}---{}", rest.split_once("---").unwrap().1);
    rig.apply(&without).await.unwrap();
    rig.apply(TWO_CHANNELS).await.unwrap();
    rig.push(&[]).await.unwrap();
    drop(held);
    let arrived = async || {
        (rig.instance("production").await.converged_version.as_deref() == Some("web-2"))
            .then_some(())
    };
    rig.until("production being at web-2", arrived).await;
    assert_eq!(*rig.runner.deleted.lock().unwrap(), []);
    rig.apply(&without).await.unwrap();
    rig.until("it to be forgotten", async || {
        (rig.runner.deleted.lock().unwrap().len() == 1).then_some(())
    })
    .await;
}
