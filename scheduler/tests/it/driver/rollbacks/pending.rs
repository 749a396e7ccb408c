//! Rollbacks that were decided and are not done yet.

use super::*;

/// The pending action of a rollback in `staging`, from `web-2` to `web-1`, as a daemon that crashed
/// had decided it.
async fn decided(rig: &Rig) -> String {
    let releases =
        rig.store.releases(&Default::default(), &PageRequest::default()).await.unwrap().items;
    let id =
        |version: &str| releases.iter().find(|release| release.version == version).unwrap().release;
    let action =
        serde_json::to_string(&Action::Rollback { from: id("web-2"), to: id("web-1") }).unwrap();
    format!(
        "INSERT INTO pending_actions SELECT 1000000, id, '{action}', 0 FROM instances
         WHERE channel_id = (SELECT id FROM channels WHERE name = 'staging')"
    )
}

async fn until_nothing_is_pending(rig: &Rig) {
    rig.until("what came of the rollback", async || {
        rig.store.pending_actions().await.unwrap().0.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_a_rollback_that_was_decided_is_not_done_when_the_release_has_arrived_or_is_paused() {
    for paused in [false, true] {
        let rig = Rig::start(sick(if paused { "web-2" } else { "none" }, "staging")).await;
        rig.request(&goes_back(TWO_CHANNELS).replace("  autoRollback: {}\n", ""), true)
            .await
            .unwrap();
        rig.until_converged("web-1").await;
        rig.push(&[]).await.unwrap();
        if paused {
            rig.until("web-2 being stuck", async || {
                (rig.instance("staging").await.reason == Some(Reason::Stuck)).then_some(())
            })
            .await;
            rig.handle
                .ask(target("staging"), Ask::Pause(Default::default()), caller("eve"))
                .await
                .unwrap();
        } else {
            rig.until_converged("web-2").await;
        }
        let sql = decided(&rig).await;
        let rig = rig.edited(&sql, tidy_world()).await;
        until_nothing_is_pending(&rig).await;
        assert_eq!(rig.releases().await, 2, "paused: {paused}");
        let filter =
            EventFilter { kind: Some("release.rollback_dropped".into()), ..Default::default() };
        assert_eq!(rig.store.events(&filter, &PageRequest::default()).await.unwrap().total, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_rollback_that_was_decided_before_a_crash_is_done_after_it() {
    let rig = Rig::start(sick("web-2", "staging")).await;
    rig.request(&goes_back(TWO_CHANNELS).replace("  autoRollback: {}\n", ""), true).await.unwrap();
    rig.until_converged("web-1").await;
    rig.push(&[]).await.unwrap();
    rig.until("web-2 being stuck", async || {
        (rig.instance("staging").await.reason == Some(Reason::Stuck)).then_some(())
    })
    .await;
    let sql = decided(&rig).await;
    let rig = rig.edited(&sql, sick("web-2", "staging")).await;
    until_nothing_is_pending(&rig).await;
    assert_eq!(rig.releases().await, 3);
    assert_eq!(rig.instance("staging").await.desired_version.as_deref(), Some("web-1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_rollback_that_cannot_be_stored_stays_pending_and_is_done_when_it_can() {
    let rig = Rig::start(sick("web-2", "staging")).await;
    rig.request(&goes_back(TWO_CHANNELS), true).await.unwrap();
    rig.until_converged("web-1").await;
    let options = SqliteConnectOptions::new().filename(rig.dir.path().join("pvn.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON releases WHEN NEW.rolled_back_to IS NOT NULL \
                BEGIN SELECT RAISE(ABORT, 'full'); END";
    sqlx::query(full).execute(&mut other).await.unwrap();
    let mut health = rig.handle.health();
    rig.push(&[]).await.unwrap();
    for degraded in [true, false, true, false] {
        let is_so = |health: &Health| matches!(health, Health::Degraded { .. }) == degraded;
        tokio::time::timeout(super::super::PATIENCE, health.wait_for(is_so))
            .await
            .expect("it is tried twice")
            .unwrap();
    }
    assert_eq!(rig.store.pending_actions().await.unwrap().0.len(), 1, "it stays pending");
    sqlx::query("DROP TRIGGER full").execute(&mut other).await.unwrap();
    rig.until("the release that goes back", async || (rig.releases().await == 3).then_some(()))
        .await;
    until_nothing_is_pending(&rig).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_neither_a_clock_that_is_set_nor_the_time_without_a_daemon_takes_a_release_back() {
    let clock = Manual::starting_at(Timestamp::from_millis(1_900_000_000_000));
    let rig = Rig::start_at(Clock::Manual(clock.clone()), |spec| {
        (spec.kind == JobKind::Fetch).then_some(0)
    })
    .await;
    let text = goes_back(TWO_CHANNELS).replace("progressDeadline: 2s", "progressDeadline: 8s");
    rig.request(&text, true).await.unwrap();
    rig.until_converged("web-1").await;
    let rig = rig.restart(|spec| (spec.kind == JobKind::Fetch).then_some(2)).await;
    rig.push(&[]).await.unwrap();
    let applying = async || {
        let running = JobFilter {
            kind: Some(JobKind::Apply),
            status: Some(JobStatus::Running),
            ..JobFilter::default()
        };
        rig.store
            .jobs(&running, &PageRequest::default())
            .await
            .unwrap()
            .items
            .first()
            .map(|job| job.id)
    };
    let apply = rig.until("the apply of web-2", applying).await;
    clock.advance_ms(1_000);
    clock.set(Clock::Manual(clock.clone()).now().plus_ms(3_600_000));
    assert_eq!(
        rig.handle.explain(target("staging")).await.unwrap().status,
        Status::Converging,
        "it has 7 of its 8 s left"
    );
    let rig = rig.restart_after(|| clock.advance_ms(900_000), |_| Some(0)).await;
    assert_eq!(
        rig.handle.explain(target("staging")).await.unwrap().status,
        Status::Converging,
        "nobody looked meanwhile"
    );
    // It ended well meanwhile, which is told now.
    rig.runner.tell(RunnerEvent::Ended { job: apply, end: report(Some(0), None), gone: true });
    rig.until_converged("web-2").await;
    assert_eq!(rig.releases().await, 2, "nothing went back");
}
