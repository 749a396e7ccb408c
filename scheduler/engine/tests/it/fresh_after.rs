//! How old an answer may be that a fetch or a getInfo takes from somebody else.

use engine::event::Event;
use schema::time::Timestamp;

use crate::scenario::{
    Apply, Fetch, GetInfo, Scenario, exit_code, newer, other_commands, with_info,
};

/// The instant half-way between two.
fn half_way(from: Timestamp, to: Timestamp) -> Option<Timestamp> {
    Some(from.plus(to.since(from) / 2))
}

/// Lets time pass until a fetch is due.
fn until_due(it: &mut Scenario) {
    let mut second = it.seconds(it.now) as i64;
    while !it.wants(Fetch) {
        second += 1;
        it.until(second);
    }
}

/// Something that happens to it.
type Happens = fn(&mut Scenario);

/// One that has converged, and whose next fetch has its turn.
fn in_turn() -> Scenario {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    until_due(&mut it);
    it
}

#[test]
fn a_fetch_that_has_its_turn_takes_what_was_asked_for_since_half_way() {
    let mut it = Scenario::new(exit_code());
    let mut last = it.now;
    assert_eq!(it.run(Fetch, 2).fresh_after, None, "the first one looks itself");
    assert_eq!(it.run(Apply, 0).fresh_after, None);
    assert_eq!(it.run(Fetch, 0).fresh_after, None, "what an apply did is looked at");
    for _ in 0..3 {
        until_due(&mut it);
        let expected = half_way(last, it.now);
        last = it.now;
        assert_eq!(it.run(Fetch, 0).fresh_after, expected);
    }
    // Of work that waits for something, too: its answer is as old as that.
    until_due(&mut it);
    let expected = half_way(last, it.now);
    assert_eq!(it.run(Fetch, 2).fresh_after, expected);
}

#[test]
fn a_fetch_after_something_happened_looks_itself() {
    let happens: [(&str, Happens); 6] = [
        ("a question", |it| {
            it.send(Event::Refresh { who: "ann".to_owned(), tries_again: false });
        }),
        ("another try", |it| {
            it.send(Event::Retry { who: "ann".to_owned() });
        }),
        ("another release", |it| {
            it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
        }),
        ("other commands", |it| {
            it.send(Event::Desired(Box::new(other_commands(&exit_code()))));
        }),
        ("a failure", |it| {
            it.run(Fetch, 1);
            until_due(it);
        }),
        ("a pause", |it| {
            it.send(Event::Pause { who: "ann".to_owned(), reason: None });
            it.send(Event::Resume);
        }),
    ];
    for (what, happens) in happens {
        let mut it = in_turn();
        happens(&mut it);
        assert_eq!(it.run(Fetch, 0).fresh_after, None, "{what}");
        until_due(&mut it);
        assert!(it.run(Fetch, 0).fresh_after.is_some(), "{what}, which is over");
    }
}

#[test]
fn a_get_info_takes_what_was_asked_for_since_something_happened() {
    let mut it = Scenario::new(with_info());
    let released = it.now;
    assert_eq!(it.run(GetInfo, 0).fresh_after, Some(released));
    it.run(Fetch, 2);
    it.until(7).run(Apply, 0);
    let applied = it.now;
    it.run(Fetch, 0);
    it.until(9);
    assert_eq!(it.run(GetInfo, 0).fresh_after, Some(applied));
    let told = it.now;
    it.until(330);
    assert_eq!(it.start(GetInfo).fresh_after, half_way(told, it.now));
}
