//! The progress deadline (rule 12) counts elapsed time in which there was a daemon that could go
//! on, and in which no person was needed.

use std::time::Duration;

use engine::action::Action;
use engine::desired::Desired;
use engine::event::{ClockStep, Event, Outcome};
use engine::{GoBack, State, go_back_now, step};
use schema::id::{BlobId, JobId};
use schema::time::Timestamp;

use crate::rules_12_to_17::{at_the_second_release, with_deadline};
use crate::scenario::{Apply, Fetch, START_MS, Scenario, newer, release};

fn rollbacks(it: &Scenario) -> usize {
    it.actions.iter().filter(|action| matches!(action, Action::Rollback { .. })).count()
}

/// Its apply runs since second 100, it is stuck at second 160, and this second is 110.
fn while_its_apply_runs() -> (Scenario, JobId) {
    let mut it = at_the_second_release();
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.until(110);
    (it, apply.job)
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + second * 1_000)
}

#[test]
fn rule_12_a_clock_that_is_set_takes_no_release_back() {
    for seconds in [3_600, -3_600] {
        let (mut it, _) = while_its_apply_runs();
        it.now = it.now.plus_ms(seconds * 1_000);
        it.send(Event::ClockStepped { by: ClockStep::from_millis(seconds * 1_000) });
        it.until(159 + seconds);
        it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
        assert_eq!(rollbacks(&it), 0, "{seconds}");
        it.until(160 + seconds);
        it.is("FAILED STUCK");
        assert_eq!(rollbacks(&it), 1, "{seconds}");
    }
}

#[test]
fn rule_17_what_went_well_while_there_was_no_daemon_is_not_taken_back() {
    let (mut it, job) = while_its_apply_runs();
    it.now = second(1_000);
    it.send(Event::Recovered { stepped: ClockStep::default(), looked_at: second(110) });
    let outcome = it.exited(0, Default::default());
    it.ends(job, outcome);
    it.run(Fetch, 0);
    it.is("CONVERGED");
    assert_eq!(rollbacks(&it), 0);
}

#[test]
fn rule_12_a_copy_that_only_looks_takes_nothing_back() {
    let (mut it, _) = while_its_apply_runs();
    it.send(Event::Observe(true));
    it.until(10_000);
    assert_eq!(rollbacks(&it), 0);
    it.send(Event::Observe(false));
    it.until(10_059);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.until(10_060);
    assert_eq!(rollbacks(&it), 1);
}

#[test]
fn rule_12_what_may_still_run_is_for_a_person_and_stops_the_progress_deadline() {
    let (mut it, job) = while_its_apply_runs();
    it.ends(job, Outcome::Unknown { why: "lost".to_owned(), gone: false });
    it.until(5_000);
    it.is("FAILED APPLY_FAILED");
    assert_eq!(rollbacks(&it), 0);
    it.ends(job, Outcome::Cancelled { gone: true });
    it.until_without_answer(20_000);
    assert_eq!(rollbacks(&it), 1);
}

#[test]
fn rule_17_a_release_has_as_much_time_left_after_a_restart_as_before_and_a_minute_at_least() {
    for (looked_at, stuck_at) in [(110, 1_060), (100, 1_060), (95, 1_060)] {
        let mut it = while_its_apply_runs().0;
        it.now = second(1_000);
        it.send(Event::Recovered { stepped: ClockStep::default(), looked_at: second(looked_at) });
        it.until(stuck_at - 1);
        assert_eq!(rollbacks(&it), 0, "{looked_at}");
        it.until(stuck_at);
        assert_eq!(rollbacks(&it), 1, "{looked_at}");
    }
    // The clock may have been set meanwhile, and the last look may be older than what is stored of
    // the instance.
    for now in [-5_000, 5_000] {
        let mut it = Scenario::new(Desired {
            progress_deadline: Some(Duration::from_secs(600)),
            ..with_deadline()
        });
        it.until_without_answer(200);
        it.now = second(now);
        it.send(Event::Recovered { stepped: ClockStep::default(), looked_at: second(40) });
        it.until_without_answer(now + 399);
        it.is("FAILED FETCH_FAILED");
        it.until_without_answer(now + 400);
        it.is("FAILED STUCK");
    }
}

// ---- a rollback that was decided, when it is carried out ----

/// Stuck at second 160, while its apply runs.
fn stuck() -> (Scenario, JobId) {
    let (mut it, job) = while_its_apply_runs();
    it.until(160);
    assert_eq!(rollbacks(&it), 1);
    (it, job)
}

/// The second release with other commands.
fn mended() -> Desired {
    Desired { compiled: BlobId::of(b"mended"), ..newer(&with_deadline(), 2) }
}

fn decided(it: &Scenario) -> GoBack {
    go_back_now(it.state(), release(2), it.now)
}

#[test]
fn rule_12_a_rollback_is_decided_again_when_it_is_carried_out() {
    type Happens = fn(&mut Scenario, JobId);
    let cases: [(&str, Happens); 8] = [
        ("as desired", |it, job| {
            let outcome = it.exited(0, Default::default());
            it.ends(job, outcome);
            it.run(Fetch, 0);
        }),
        ("paused", |it, _| drop(it.send(Event::Pause { who: "ann".to_owned(), reason: None }))),
        ("observer", |it, _| drop(it.send(Event::Observe(true)))),
        ("observed", |it, _| {
            it.send(Event::ObserveOnly { who: "ann".to_owned(), reason: None });
        }),
        ("cancelled", |it, job| {
            it.send(Event::Cancel { job, who: "ann".to_owned() });
            it.ends(job, Outcome::Cancelled { gone: true });
        }),
        ("tried again", |it, job| {
            let outcome = it.exited(1, Default::default());
            it.ends(job, outcome);
            it.send(Event::Retry { who: "ann".to_owned() });
        }),
        ("commands changed", |it, job| {
            let outcome = it.exited(1, Default::default());
            it.ends(job, outcome);
            it.send(Event::Desired(Box::new(mended())));
        }),
        ("another release", |it, _| {
            let third = Desired { released_at: it.now, ..newer(&with_deadline(), 3) };
            it.send(Event::Desired(Box::new(third)));
        }),
    ];
    for (why, happens) in cases {
        let (mut it, job) = stuck();
        assert_eq!(decided(&it), GoBack::Now);
        happens(&mut it, job);
        assert!(
            matches!(decided(&it), GoBack::Dropped(said) if said.contains(why)),
            "{why}: {:?}",
            decided(&it)
        );
        it.send(Event::RollbackDropped { from: release(2) });
        assert_eq!(it.logged("release.rollback_dropped").count(), 1);
        // What is wrong after that goes back all the same.
        it.send(Event::Resume);
        it.send(Event::Observe(false));
        if why == "cancelled" {
            it.send(Event::Retry { who: "ann".to_owned() });
        }
        if why == "another release" {
            // Which it waits for without blame.
            it.until_without_answer(5_000);
            assert_eq!(rollbacks(&it), 1);
            let outcome = it.exited(1, Default::default());
            it.ends(job, outcome);
        }
        if why == "as desired" {
            let fourth = Desired { released_at: it.now, ..newer(&with_deadline(), 4) };
            it.send(Event::Desired(Box::new(fourth)));
        }
        it.until_without_answer(10_000);
        assert_eq!(rollbacks(&it), 2, "{why}: {:?}", it.state().standing());
    }
}

#[test]
fn rule_12_a_rollback_waits_for_the_fetch_after_an_apply_that_went_well() {
    let (mut it, job) = stuck();
    let outcome = it.exited(0, Default::default());
    it.ends(job, outcome);
    assert_eq!(decided(&it), GoBack::Later);
    let mut other = it.clone();
    it.run(Fetch, 2);
    assert_eq!(decided(&it), GoBack::Now, "there is still work");
    other.run(Fetch, 1);
    assert_eq!(decided(&other), GoBack::Now, "and where fetch cannot tell nobody waits for ever");
    it.send(Event::RollbackDropped { from: release(2) });
    it.is("FAILED STUCK");
    assert_eq!(it.logged("release.rollback_dropped").count(), 0, "what is not over is not dropped");
}

/// A release of the version that was converged before, made by going back.
fn back(it: &Scenario, number: u8) -> Event {
    let version = "svc-1".to_owned();
    Event::Desired(Box::new(Desired {
        released_at: it.now,
        version,
        is_rollback: true,
        ..newer(&with_deadline(), number)
    }))
}

fn taken_back(state: &State) -> Option<&str> {
    state.rolled_back().map(|back| back.from.as_str())
}

#[test]
fn rule_12_what_was_taken_back_is_told_until_another_release_comes_also_one_of_that_version() {
    let mut it = stuck().0;
    assert_eq!(taken_back(it.state()), None, "it is not back yet");
    let event = back(&it, 3);
    it.send(event);
    assert_eq!(taken_back(it.state()), Some("svc-2"));
    it.send(Event::Desired(Box::new(Desired {
        compiled: BlobId::of(b"mended"),
        ..it.state().desired().unwrap().clone()
    })));
    assert_eq!(taken_back(it.state()), Some("svc-2"), "the same release with other commands");

    let pushed =
        Event::Desired(Box::new(Desired { released_at: it.now, ..newer(&with_deadline(), 4) }));
    let (back_again, of_that_version) = (back(&it, 4), back(&it, 5));
    // Stored by a pvn that did not keep which release it was.
    let stored = serde_json::to_string(it.state()).unwrap();
    let with = format!(",\"with\":\"{}\"", release(3));
    assert!(stored.contains(&with), "{stored}");
    let older: State = serde_json::from_str(&stored.replacen(&with, "", 1)).unwrap();
    assert_eq!(taken_back(&older), Some("svc-2"));
    for state in [it.state().clone(), older] {
        for event in [pushed.clone(), back_again.clone()] {
            let (state, _) = step(state.clone(), event, it.now);
            assert_eq!(taken_back(&state), None, "{:?}", state.desired());
            let (state, _) = step(state, of_that_version.clone(), it.now);
            assert_eq!(taken_back(&state), None, "nor does it come again");
        }
    }
}

// ---- what is not the release's to answer for ----

#[test]
fn rule_12_time_behind_another_apply_or_without_a_place_does_not_count() {
    // The apply of the release before runs on.
    let (mut it, job) = while_its_apply_runs();
    let third = Desired { released_at: it.now, ..newer(&with_deadline(), 3) };
    it.send(Event::Desired(Box::new(third)));
    it.until(1_000);
    it.is("CONVERGING");
    let outcome = it.exited(0, Default::default());
    it.ends(job, outcome);
    it.run(Fetch, 1);
    it.until_without_answer(1_059);
    assert_eq!(rollbacks(&it), 0);
    it.until_without_answer(1_061);
    assert_eq!(rollbacks(&it), 1, "its own time counts from there");

    // Its fetch gets no place, and then none because the surroundings are to blame.
    let mut it = Scenario::new(with_deadline());
    it.run(Fetch, 0);
    let second = Desired { released_at: it.now, ..newer(&with_deadline(), 2) };
    it.send(Event::Desired(Box::new(second)));
    it.until(1_000);
    it.is("CONVERGING NO_CURRENT_STATE");
    let fetch = it.start(Fetch);
    it.ends(fetch.job, Outcome::NotStarted { why: "no disk".to_owned(), surroundings: true });
    it.until(2_000);
    assert_eq!(rollbacks(&it), 0);
}

#[test]
fn rule_12_why_nothing_goes_back_is_said() {
    let mut it = Scenario::new(with_deadline());
    it.run(Fetch, 1);
    it.until_without_answer(60);
    let says = |it: &Scenario, what: &str| {
        assert!(it.state().standing().message.contains(what), "{}", it.state().standing().message)
    };
    says(&it, "not taken back: no other version is known to have been converged here");
    it.run(Fetch, 0);
    let mut number = 1;
    let mut next = |it: &mut Scenario, desired: Desired| {
        number += 1;
        it.send(Event::Desired(Box::new(Desired {
            released_at: it.now,
            ..newer(&desired, number)
        })));
        let later = it.seconds(it.now) as i64 + 70;
        it.until_without_answer(later);
    };
    next(&mut it, with_deadline());
    assert_eq!(rollbacks(&it), 1);
    next(&mut it, Desired { is_rollback: true, ..with_deadline() });
    says(&it, "svc-3 is itself what it went back to");
    next(&mut it, with_deadline());
    says(&it, "not taken back: it went back once already, and nothing has converged here since");
    assert_eq!(rollbacks(&it), 1);
}

#[test]
fn rule_12_other_commands_are_not_stuck_by_what_those_before_did_and_have_the_whole_deadline() {
    let mut it = at_the_second_release();
    it.run(Apply, 1);
    it.until_without_answer(160);
    it.send(Event::RollbackRefused { from: release(2), why: "`w` is missing".to_owned() });
    it.is("FAILED STUCK");
    it.send(Event::Desired(Box::new(mended())));
    it.run(Fetch, 2);
    it.start(Apply);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.until_without_answer(219);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.until_without_answer(220);
    it.is("FAILED STUCK");

    let mut it = at_the_second_release();
    it.until_without_answer(159).send(Event::Desired(Box::new(mended())));
    it.run(Fetch, 2);
    it.start(Apply);
    it.until_without_answer(218);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.until_without_answer(219);
    it.is("FAILED STUCK");
}
