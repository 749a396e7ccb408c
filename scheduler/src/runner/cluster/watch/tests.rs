//! Views whose watch ends, and pauses.

use super::*;

#[tokio::test]
async fn jobs_whose_watch_panics_lose_their_view_and_the_next_one_begins_another_watch() {
    let watches = Watches::new(TaskTracker::new());
    let key = || (Key::default(), "n".to_owned());
    let [first, second] = [b"1", b"2"].map(|name| JobId::derive(&[name]));
    let own = || OwnObjects::new("web", None);
    let mut view = watches.show(key(), first, own(), true, |watched| async move {
        let _poisoned = watched.jobs.lock().unwrap();
        panic!("on purpose");
    });
    assert!(view.sight.changed().await.is_err(), "nobody brings news any more");
    let mut other = watches.show(key(), second, own(), true, |watched| async move {
        watched.show_all(|_| true, |sight| sight.pods_broken += 1);
        watched.stop.cancelled().await;
    });
    assert!(other.sight.changed().await.is_ok());
    drop(view);
    assert_eq!(watches.open.lock().unwrap().len(), 1);
    drop(other);
    assert_eq!(watches.open.lock().unwrap().len(), 0);
}

#[test]
fn pauses_grow_and_stay_below_the_longest_however_long_it_takes() {
    let pauses: Vec<Duration> = Pauses::default().take(100).collect();
    assert!(pauses[0] < Duration::from_secs(2), "{pauses:?}");
    assert!(
        pauses[99] == LONGEST_PAUSE && pauses.iter().all(|pause| *pause <= LONGEST_PAUSE),
        "{pauses:?}"
    );
}

#[test]
fn a_cluster_that_fails_in_ever_other_words_is_told_in_the_same_ones_for_a_while() {
    let began = Instant::now();
    let lost = |seconds: u64, why: &str| {
        let at = began + Duration::from_secs(seconds);
        LostWatch { since: at, said_at: at, is_unlisted: true, why: why.to_owned(), refusal: None }
    };
    let broken = LostWatch { is_unlisted: false, ..lost(0, "too old") };
    let mut known = lost(0, "page 1").after(Some(&broken));
    assert_eq!(known.why, "page 1", "what the list says, not what broke the watch");
    for second in 1..60 {
        known = lost(second, &format!("page {second}")).after(Some(&known));
        known = LostWatch { is_unlisted: false, ..lost(second, "connection refused") }
            .after(Some(&known));
    }
    assert_eq!((known.why.as_str(), known.since, known.is_unlisted), ("page 1", began, true));
    known = lost(60, "refused").after(Some(&known));
    assert_eq!((known.why.as_str(), known.since), ("refused", began));
    let unauthorized =
        LostWatch { refusal: Some(WatchRefusal::Unauthorized("no".to_owned())), ..lost(61, "no") };
    assert_eq!(
        unauthorized.after(Some(&known)).why,
        "no",
        "what a person has to do is told at once"
    );
    assert_eq!(lost(5, "x").after(None).since, began + Duration::from_secs(5));
}
