//! What people are told in their own terms: whose words a pause carries, and which clock a window
//! goes by.

use std::time::Duration;

use engine::desired::Window;
use engine::event::Event;
use schema::schedule::Schedule;

use crate::scenario::{Scenario, apply_only, exit_code};

#[test]
fn rule_10_a_pause_tells_what_it_is_for_until_it_ends() {
    let pause = |reason: Option<&str>| Event::Pause {
        who: "ann".to_owned(),
        reason: reason.map(str::to_owned),
    };
    let mut it = Scenario::new(exit_code());
    let told = |it: &Scenario| it.state().standing().message.clone();
    it.send(pause(Some("disk swap")));
    assert!(told(&it).starts_with("paused by ann (disk swap);"), "{}", told(&it));
    it.send(Event::Pause { who: "bob".to_owned(), reason: None });
    assert!(told(&it).starts_with("paused by ann (disk swap);"), "{}", told(&it));
    it.send(Event::Pause { who: "bob".to_owned(), reason: Some("until Monday".to_owned()) });
    assert!(told(&it).starts_with("paused by bob (until Monday);"), "{}", told(&it));
    it.send(Event::Resume);
    it.send(pause(None));
    assert!(told(&it).starts_with("paused by ann;"), "{}", told(&it));
}

#[test]
fn rule_07_a_window_is_told_in_its_own_zone_too() {
    // Second 0 is 2026-07-01T10:00:00Z.
    let opens = Schedule::parse("0 0 9 * * *", Some("Europe/Berlin")).unwrap();
    let mut desired = apply_only();
    desired.apply.window = Some(Window { opens, duration: Duration::from_secs(3_600) });
    let it = Scenario::new(desired);
    let shown = "2026-07-02T07:00:00.000Z (Thu 2026-07-02 09:00 in Europe/Berlin)";
    let message = &it.state().standing().message;
    assert!(message.contains(&format!("which opens at {shown}")), "{message}");
}
