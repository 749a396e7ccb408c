//! Runtimes without fetch.

use engine::event::Event;

use crate::scenario::{Apply, Scenario, apply_only, newer};

#[test]
fn apply_alone_runs_once_for_each_version() {
    let mut it = Scenario::new(apply_only());
    it.run(Apply, 0);
    it.is("CONVERGED");
    it.until(1_000_000);
    it.declines(Apply);
    assert_eq!(it.wakes_at(), None);
    it.send(Event::Desired(Box::new(apply_only())));
    it.declines(Apply);
    it.send(Event::Desired(Box::new(newer(&apply_only(), 2))));
    assert_eq!(it.run(Apply, 1).version, "svc-2");
    it.is("FAILED APPLY_FAILED");
    it.until(2_000_000);
    it.declines(Apply);
    it.send(Event::Retry { who: "ann".to_owned() });
    it.run(Apply, 0);
    it.is("CONVERGED");
}

#[test]
fn apply_alone_with_an_apply_id_runs_only_when_that_differs() {
    let mut desired = apply_only();
    desired.apply_id = Some("abc".to_owned());
    let mut it = Scenario::new(desired.clone());
    it.run(Apply, 0);
    it.send(Event::Desired(Box::new(newer(&desired, 2))));
    it.is("CONVERGED");
    assert_eq!(it.state().converged().map(|converged| converged.version.as_str()), Some("svc-2"));
    desired.apply_id = Some("def".to_owned());
    it.send(Event::Desired(Box::new(newer(&desired, 3))));
    it.start(Apply);
}
