//! When applies of a runtime stop, and how they go on.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

fn of(number: u64) -> InstanceId {
    InstanceId::derive(&[&number.to_le_bytes()])
}

fn kind(news: Option<BreakerNews>) -> Option<LogKind> {
    news.map(|news| news.kind)
}

/// Five applies have failed at second 100.
fn stopped() -> FleetBreaker {
    let mut it = FleetBreaker::default();
    for number in 0..4 {
        assert_eq!(it.record(of(number), JobKind::Apply, true, at(100)), None);
        assert_eq!(it.limit(), None);
    }
    let news = it.record(of(4), JobKind::Apply, true, at(100)).unwrap();
    assert_eq!(news.kind, LogKind::RuntimeAppliesStopped);
    assert!(news.message.starts_with("apply failed in 5 of 5 instances that tried within 10m; "));
    assert_eq!((it.limit(), it.next_wake()), (Some(0), Some(at(400))));
    it
}

/// The pause is over.
fn tried() -> FleetBreaker {
    let mut it = stopped();
    assert_eq!(it.tick(at(399)), None);
    assert_eq!(kind(it.tick(at(400))), Some(LogKind::RuntimeAppliesTried));
    assert_eq!(it.limit(), Some(1));
    it
}

#[test]
fn rule_20_many_that_fail_are_distinct_together_and_at_least_half() {
    let mut one = FleetBreaker::default();
    for second in 0..100 {
        assert_eq!(one.record(of(1), JobKind::Apply, true, at(second)), None, "one alone");
    }
    let mut slow = FleetBreaker::default();
    for number in 0..100 {
        let late = at(number as i64 * 151);
        assert_eq!(slow.record(of(number), JobKind::Apply, true, late), None, "not together");
    }
    let mut most_well = FleetBreaker::default();
    for number in 0..6 {
        most_well.record(of(number), JobKind::Fetch, false, at(0));
    }
    for number in 10..15 {
        assert_eq!(most_well.record(of(number), JobKind::Fetch, true, at(1)), None, "5 of 11");
    }
    let news = most_well.record(of(0), JobKind::Fetch, true, at(2)).unwrap();
    assert!(news.message.starts_with("fetch failed in 6 of 11 instances"), "{}", news.message);
    let mut apart = FleetBreaker::default();
    for number in 0..4 {
        assert_eq!(apart.record(of(number), JobKind::Apply, true, at(0)), None);
        assert_eq!(apart.record(of(number + 9), JobKind::Fetch, true, at(0)), None, "each kind");
        assert_eq!(apart.record(of(number + 20), JobKind::GetInfo, true, at(0)), None);
    }
}

#[test]
fn rule_20_a_success_while_others_fail_takes_its_failure_back() {
    let mut it = FleetBreaker::default();
    (0..4).for_each(|number| drop(it.record(of(number), JobKind::Apply, true, at(0))));
    it.record(of(0), JobKind::Apply, false, at(1));
    assert_eq!(it.record(of(4), JobKind::Apply, true, at(2)), None);
    assert!(it.record(of(5), JobKind::Apply, true, at(2)).is_some());
}

#[test]
fn rule_20_recovery_is_one_two_four_at_a_time_and_then_whole() {
    let mut it = tried();
    let mut widths = Vec::new();
    let mut number = 100;
    while let Some(width) = it.limit() {
        widths.push(width);
        for _ in 1..width {
            number += 1;
            assert_eq!(it.record(of(number), JobKind::Apply, false, at(500)), None);
        }
        number += 1;
        let news = it.record(of(number), JobKind::Apply, false, at(500));
        let is_last = width == RAMP_TOP;
        assert_eq!(kind(news), is_last.then_some(LogKind::RuntimeAppliesGoOn));
    }
    assert_eq!(widths, [1, 2, 4, 8, 16]);
    assert_eq!(it, FleetBreaker::default(), "nothing of before counts");
}

#[test]
fn rule_20_a_ramp_stops_at_the_first_failure_for_twice_as_long_and_an_hour_at_most() {
    let mut it = tried();
    let mut now = 400;
    for (number, pause) in [(50, 600), (51, 1_200), (52, 2_400), (53, 3_600), (54, 3_600)] {
        it.record(of(7), JobKind::Apply, false, at(now));
        assert_eq!(it.limit(), Some(2));
        let news = it.record(of(number), JobKind::Apply, true, at(now));
        assert_eq!(kind(news), Some(LogKind::RuntimeAppliesStopped));
        assert_eq!((it.limit(), it.next_wake()), (Some(0), Some(at(now + pause))));
        now += pause;
        assert!(it.tick(at(now)).is_some());
        assert_eq!(it.limit(), Some(1));
    }
}

#[test]
fn rule_20_one_that_is_broken_for_good_keeps_nobody_back() {
    let mut it = tried();
    assert!(it.record(of(9), JobKind::Apply, true, at(400)).is_some());
    assert!(it.tick(it.next_wake().unwrap()).is_some());
    assert_eq!(it.record(of(9), JobKind::Apply, true, at(2_000)), None, "it has stopped one");
    assert_eq!(it.limit(), Some(1));
    it.record(of(9), JobKind::Apply, false, at(2_001));
    assert!(it.record(of(9), JobKind::Apply, true, at(2_002)).is_some(), "it was well since");
}

#[test]
fn rule_20_fetches_that_fail_stop_a_ramp_when_they_are_many() {
    let mut it = tried();
    for number in 0..4 {
        assert_eq!(it.record(of(number), JobKind::Fetch, true, at(410)), None);
    }
    assert!(it.record(of(4), JobKind::Fetch, true, at(410)).is_some());
    assert_eq!(it.limit(), Some(0));
    assert_eq!(it.record(of(5), JobKind::Fetch, true, at(410)), None, "told once");
}

#[test]
fn rule_20_a_person_who_does_something_has_it_tried_at_once_and_may_end_it() {
    assert_eq!(FleetBreaker::default().encourage(at(1)), None);
    assert_eq!(FleetBreaker::default().end("ann"), None);
    let mut it = stopped();
    assert_eq!(kind(it.encourage(at(101))), Some(LogKind::RuntimeAppliesTried));
    assert_eq!((it.limit(), it.encourage(at(102))), (Some(1), None));
    let news = it.end("ann").unwrap();
    assert_eq!((news.kind, it.limit()), (LogKind::RuntimeAppliesGoOn, None));
    assert!(news.message.starts_with("ann lets applies go on"), "{}", news.message);
}

#[test]
fn rule_20_nothing_is_held_for_ever() {
    let mut it = tried();
    assert_eq!(it.tick(at(400 + 3_599)), None);
    assert_eq!(kind(it.tick(at(400 + 3_600))), Some(LogKind::RuntimeAppliesGoOn));
    // Whatever comes, there is an instant at which it goes on by itself, and not far away.
    let mut it = FleetBreaker::default();
    let mut now = at(0);
    let mut random = 1_u64;
    for _ in 0..20_000 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (number, failed) = (random >> 40 & 15, random >> 50 & 3 != 0);
        let kind = if random >> 60 & 1 == 0 { JobKind::Apply } else { JobKind::Fetch };
        now = now.plus_ms((random >> 33 & 0x3_ffff) as i64);
        if it.next_wake().is_some_and(|wake| wake <= now) {
            it.tick(now);
        }
        it.record(of(number), kind, failed, now);
        let longest = now.plus(LONGEST_PAUSE.max(RAMP_PATIENCE));
        assert_eq!(it.limit().is_some(), it.next_wake().is_some());
        assert!(it.next_wake().is_none_or(|wake| wake > now && wake <= longest));
        assert!(
            it.limit()
                .is_none_or(|width| width == 0 || width.is_power_of_two() && width <= RAMP_TOP)
        );
    }
}

#[test]
fn rule_20_what_is_held_is_held_over_a_restart() {
    for it in [stopped(), tried(), FleetBreaker::default()] {
        let stored = serde_json::to_string(&it).unwrap();
        let read: FleetBreaker = serde_json::from_str(&stored).unwrap();
        assert_eq!(
            (read.limit(), read.held(), read.next_wake()),
            (it.limit(), it.held(), it.next_wake())
        );
    }
    let mut it = stopped();
    it.bound(at(-100_000));
    assert_eq!(it.next_wake(), Some(at(-100_000 + 300)), "a clock that was set back");
}
