//! Deadlines follow elapsed time, also those of dry runs, and over a restart.

use pvn_scheduler::clock::{Clock, Manual};
use pvn_scheduler::runner::JobSpec;
use pvn_scheduler::store::{JobFilter, PageRequest};
use schema::id::JobId;
use schema::status::{JobKind, JobStatus, Status};
use schema::time::Timestamp;

use super::{Rig, TWO_CHANNELS, caller, target};

const HOUR_MS: i64 = 3_600_000;

fn manual() -> Manual {
    Manual::starting_at(Timestamp::from_millis(1_900_000_000_000))
}

/// Fetch sees work, apply runs until it is stopped, and so does getInfo and whatever is run dry.
fn applying(spec: &JobSpec) -> Option<i32> {
    (spec.kind == JobKind::Fetch).then_some(2)
}

async fn job(rig: &Rig, kind: JobKind, status: JobStatus) -> JobId {
    let filter = JobFilter { kind: Some(kind), status: Some(status), ..JobFilter::default() };
    let look = async || {
        rig.store
            .jobs(&filter, &PageRequest::default())
            .await
            .unwrap()
            .items
            .first()
            .map(|job| job.id)
    };
    rig.until(&format!("a {kind} that is {status}"), look).await
}

fn with_timeout() -> String {
    TWO_CHANNELS.replace("    apply:\n", "    apply:\n      timeout: 1h\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p3_a_clock_set_ahead_kills_no_apply_and_elapsed_time_does() {
    let clock = manual();
    let rig = Rig::start_at(Clock::Manual(clock.clone()), applying).await;
    rig.request(&with_timeout(), true).await.unwrap();
    let apply = job(&rig, JobKind::Apply, JobStatus::Running).await;
    clock.set(Clock::Manual(clock.clone()).now().plus_ms(7 * HOUR_MS));
    // The loop has looked at the time: it answers with what it has committed.
    rig.handle.explain(target("staging")).await.unwrap();
    let rig = rig.restart(applying).await;
    // It jumps once more while the daemon is down, which the boot's clock tells.
    clock.set(Clock::Manual(clock.clone()).now().plus_ms(-24 * HOUR_MS));
    let rig = rig.restart(applying).await;
    rig.handle.explain(target("staging")).await.unwrap();
    assert_eq!(rig.store.job(apply).await.unwrap().unwrap().status, JobStatus::Running);
    clock.advance_ms(HOUR_MS + 120_000);
    assert_eq!(job(&rig, JobKind::Apply, JobStatus::Failed).await, apply);
}

/// On one thread, so that the clock is set before the daemon's loop has looked at it and after it
/// knows how it stood.
#[tokio::test]
async fn p3_a_clock_set_back_while_the_daemon_starts_kills_no_apply() {
    let clock = manual();
    let rig = Rig::start_at(Clock::Manual(clock.clone()), applying).await;
    rig.request(&with_timeout(), true).await.unwrap();
    let apply = job(&rig, JobKind::Apply, JobStatus::Running).await;
    let rig = rig.restart(applying).await;
    clock.set(Clock::Manual(clock.clone()).now().plus_ms(-24 * HOUR_MS));
    for minutes in [0, 30] {
        clock.advance_ms(minutes * 60_000);
        rig.handle.explain(target("staging")).await.unwrap();
        let row = rig.store.job_row(apply).await.unwrap().unwrap();
        assert!(
            row.status == JobStatus::Running && row.stop.is_none(),
            "after {minutes} minutes of its hour: {row:?}"
        );
    }
    clock.advance_ms(HOUR_MS);
    assert_eq!(job(&rig, JobKind::Apply, JobStatus::Failed).await, apply);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_clock_set_back_over_a_restart_does_not_stop_polling() {
    let clock = manual();
    let rig = Rig::start_at(Clock::Manual(clock.clone()), |_| Some(0)).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    clock.set(Clock::Manual(clock.clone()).now().plus_ms(-24 * HOUR_MS));
    let rig = rig.restart(|_| Some(0)).await;
    rig.handle.explain(target("staging")).await.unwrap();
    clock.advance_ms(HOUR_MS * 2);
    rig.until("a look", async || rig.runner.kinds().contains(&JobKind::Fetch).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p3_a_dry_run_ends_within_its_deadlines() {
    for silent in [false, true] {
        let clock = manual();
        let rig = Rig::start_at(Clock::Manual(clock.clone()), |_| Some(0)).await;
        rig.request(TWO_CHANNELS, true).await.unwrap();
        rig.until_status("production", Status::Converged).await;
        // From now on commands run until they are stopped, or are never heard of.
        let rig = rig.restart(|_| None).await;
        rig.runner.silent.store(silent, std::sync::atomic::Ordering::SeqCst);
        let dry =
            rig.handle.run_once(target("staging"), JobKind::Fetch, caller("eve")).await.unwrap();
        rig.until("the dry run to be started", async || {
            rig.runner.seen.lock().unwrap().iter().any(|spec| spec.job == dry).then_some(())
        })
        .await;
        if !silent {
            rig.until("the dry run to run", async || {
                rig.store.job(dry).await.unwrap().filter(|job| job.status == JobStatus::Running)
            })
            .await;
        }
        clock.advance_ms(700_000);
        if silent {
            rig.until("its stop", async || {
                rig.store.job_row(dry).await.unwrap().filter(|row| row.stop.is_some())
            })
            .await;
            clock.advance_ms(130_000);
        }
        let ended = rig
            .until("its end", async || {
                rig.store.job(dry).await.unwrap().filter(|job| job.status.is_final())
            })
            .await;
        assert_eq!(
            ended.status,
            if silent { JobStatus::Unknown } else { JobStatus::Failed },
            "{ended:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_a_dry_run_was_stopped_is_known_after_a_restart() {
    let rig = Rig::start(|_| Some(0)).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    let rig = rig.restart(|_| None).await;
    rig.runner.silent.store(true, std::sync::atomic::Ordering::SeqCst);
    let dry = rig.handle.run_once(target("staging"), JobKind::Fetch, caller("eve")).await.unwrap();
    rig.until("the dry run to be started", async || {
        rig.runner.seen.lock().unwrap().iter().any(|spec| spec.job == dry).then_some(())
    })
    .await;
    rig.handle.cancel_job(dry, caller("eve")).await.unwrap();
    // Nobody has it after the crash, and what was stopped is not started.
    let rig = rig.crash(|_| Some(0)).await;
    let ended = rig
        .until("its end", async || {
            rig.store.job(dry).await.unwrap().filter(|job| job.status.is_final())
        })
        .await;
    assert_eq!((ended.status, ended.message.as_str()), (JobStatus::Cancelled, "cancelled by eve"));
}
