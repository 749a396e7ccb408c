//! Clocks that leapt.

use super::*;

#[tokio::test]
async fn p5_a_clock_that_is_far_ahead_for_a_while_removes_nothing_and_one_that_stays_there_does_a_day_later()
 {
    let rig = Rig::open().await;
    let events = vec![
        entry(1, 20, "instance.pause", Some("eve")),
        entry(2, 10, "job.ended", None),
        entry(3, 0, "job.ended", None),
    ];
    rig.fresh.store.commit(&Commit { events, ..Commit::default() }).await.unwrap();
    let left = async || {
        rig.fresh.store.events(&Default::default(), &PageRequest::default()).await.unwrap().total
    };
    // That of a daemon, from its start on; each is another run.
    let started = || Retention { leap: Some(Arc::default()), ..rig.retention() };
    started().pass().await.unwrap();
    let hours = async |daemon: &Retention, hours: i64| {
        for _ in 0..hours {
            daemon.pass().await.unwrap();
            rig.clock.advance_ms(DAY_MS / 24);
        }
        daemon.pass().await.unwrap();
    };
    // At a start, and right again at the next one.
    rig.clock.set(today().plus_ms(400 * DAY_MS));
    hours(&started(), 23).await;
    assert_eq!(left().await, 3);
    rig.clock.set(today().plus_ms(DAY_MS));
    hours(&started(), 1).await;
    assert_eq!(left().await, 3);
    // Under a daemon that has run for long, and over its restart.
    let daemon = started();
    hours(&daemon, 30).await;
    rig.clock.set(today().plus_ms(400 * DAY_MS));
    hours(&daemon, 12).await;
    let next = started();
    hours(&next, 11).await;
    assert_eq!(left().await, 3, "it is a day in all");
    hours(&next, 1).await;
    assert_eq!(left().await, 1, "the newest, which the next number follows");
}

#[tokio::test]
async fn by_hand_what_is_old_goes_at_once_whatever_the_clock_did() {
    let rig = Rig::open().await;
    let events = vec![entry(1, 0, "job.ended", None), entry(2, 0, "job.ended", None)];
    rig.fresh.store.commit(&Commit { events, ..Commit::default() }).await.unwrap();
    let daemon = || Retention { leap: Some(Arc::default()), ..rig.retention() };
    daemon().pass().await.unwrap();
    rig.clock.advance_ms(40 * DAY_MS);
    daemon().pass().await.unwrap();
    let left = async || {
        rig.fresh.store.events(&Default::default(), &PageRequest::default()).await.unwrap().total
    };
    assert_eq!(left().await, 2, "a daemon that was down for so long waits");
    rig.pass().await;
    assert_eq!(left().await, 1);
    // And from then on a daemon goes by that time.
    rig.fresh
        .store
        .commit(&Commit { events: vec![entry(3, 0, "job.ended", None)], ..Commit::default() })
        .await
        .unwrap();
    daemon().pass().await.unwrap();
    assert_eq!(left().await, 1);
}
