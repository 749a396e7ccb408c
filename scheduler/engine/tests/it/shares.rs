//! Places are shared fairly: by runtime, then by service; and one runtime that hangs leaves room
//! for all others (rule 8).

use std::collections::BTreeMap;

use engine::desired::Desired;
use engine::event::{Event, Outcome};
use engine::limiter::{ConcurrencyLimiter, Limit, Limits};
use engine::{State, Surroundings, explain, step};
use schema::cause::CauseCode;
use schema::id::{InstanceId, ServiceId};
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::scenario::{
    ALONE, Apply, Fetch, START_MS, Scenario, apply_only, exit_code, grant_all, instance, limits,
    newer,
};

struct Daemon {
    lanes: ConcurrencyLimiter,
    states: BTreeMap<InstanceId, (State, ServiceId)>,
    now: Timestamp,
}

impl Daemon {
    fn new(total: u32) -> Self {
        let limit = Limit { total, per_runtime: None };
        let now = Timestamp::from_millis(START_MS);
        Self {
            lanes: ConcurrencyLimiter::new(
                Limits { fetch: limit, apply: limit, get_info: limit },
                now,
            ),
            states: BTreeMap::new(),
            now,
        }
    }

    /// An instance of this service on this runtime that wants to fetch.
    fn add(&mut self, runtime: &str, service: u8) {
        let id = InstanceId::derive(&[&self.states.len().to_le_bytes()]);
        let desired = Desired { runtime: runtime.parse().unwrap(), ..exit_code() };
        let state = step(State::new(id, self.now), Event::Desired(Box::new(desired)), self.now).0;
        let service = ServiceId::derive(&[&[service]]);
        self.lanes.update(&state, service);
        self.states.insert(id, (state, service));
        self.now = self.now.plus_ms(1);
    }

    /// Gives out what there is; nothing ends.
    fn grant(&mut self) {
        while let Some((id, kind)) = self.lanes.next(self.now) {
            let (state, service) = self.states.remove(&id).unwrap();
            let state = step(state, Event::Granted(kind), self.now).0;
            self.lanes.update(&state, service);
            self.states.insert(id, (state, service));
        }
    }

    fn held(&self, counts: impl Fn(&State, ServiceId) -> bool) -> usize {
        self.states
            .values()
            .filter(|(state, service)| {
                state.jobs_in_flight().next().is_some() && counts(state, *service)
            })
            .count()
    }

    fn held_by(&self, runtime: &str) -> usize {
        self.held(|state, _| state.desired().unwrap().runtime.as_str() == runtime)
    }
}

#[test]
fn one_of_many_is_sick_a_runtime_that_hangs_leaves_places_for_the_others() {
    let mut daemon = Daemon::new(32);
    (0..100).for_each(|_| daemon.add("sick", 1));
    daemon.grant();
    assert_eq!(daemon.held_by("sick"), 24, "three quarters");
    (0..3).for_each(|_| daemon.add("well", 2));
    daemon.grant();
    assert_eq!(daemon.held_by("well"), 3);
    (0..100).for_each(|_| daemon.add("sicker", 3));
    daemon.grant();
    let (state, _) =
        daemon.states.values().find(|(state, _)| state.wants(JobKind::Fetch).is_some()).unwrap();
    let told = explain(
        state,
        &daemon.lanes,
        daemon.now,
        Surroundings { name: &|_| "web/staging".to_owned(), ..Surroundings::default() },
    );
    let full = told
        .causes
        .iter()
        .find(|cause| cause.code == CauseCode::LimitFull)
        .unwrap_or_else(|| panic!("{told:#?}"));
    assert!(
        full.message.contains("web/staging with job-")
            && full.message.contains("kept for other runtimes"),
        "{full:?}"
    );
    daemon.add("late", 4);
    daemon.grant();
    assert_eq!(daemon.held_by("late"), 1, "two that hang still leave some");
}

#[test]
fn a_place_goes_to_the_runtime_with_the_fewest_then_to_the_service_with_the_fewest() {
    let mut daemon = Daemon::new(8);
    (0..50).for_each(|_| daemon.add("a", 1));
    daemon.add("a", 2);
    (0..50).for_each(|_| daemon.add("b", 3));
    daemon.grant();
    assert_eq!((daemon.held_by("a"), daemon.held_by("b")), (4, 3), "in turns, and one is free");
    assert_eq!(
        daemon.held(|_, service| service == ServiceId::derive(&[&[2]])),
        1,
        "one channel of one service is not behind fifty"
    );
}

#[test]
fn few_places_are_all_used() {
    for (total, alone) in [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6), (16, 12)] {
        let mut daemon = Daemon::new(total);
        (0..50).for_each(|_| daemon.add("a", 1));
        daemon.grant();
        assert_eq!(daemon.held_by("a"), alone, "of {total}");
    }
}

#[test]
fn rule_08_an_apply_that_may_still_run_keeps_its_place_where_the_config_counts_applies() {
    for (max_concurrency, waits) in [(Some(1), true), (Some(2), false), (None, false)] {
        let now = Timestamp::from_millis(START_MS);
        let desired = || Desired { max_concurrency, ..apply_only() };
        let mut states: Vec<State> =
            (0..2).map(|number| instance(number, desired(), now.plus_ms(number as i64))).collect();
        let mut lanes = ConcurrencyLimiter::new(limits(1, None), now);
        lanes.update(&states[0], ALONE);
        grant_all(&mut lanes, &mut states, now);
        let job = states[0].jobs_in_flight().next().unwrap().id;
        let lost = Event::JobEnded {
            job,
            outcome: Outcome::Unknown { why: "lost".to_owned(), gone: false },
        };
        states[0] = step(states[0].clone(), lost, now).0;
        states.iter().for_each(|state| lanes.update(state, ALONE));
        assert_eq!(
            grant_all(&mut lanes, &mut states, now).is_empty(),
            waits,
            "{max_concurrency:?}"
        );
        if !waits {
            continue;
        }
        let late = now.plus_ms(60_000);
        let waiting = step(states[1].clone(), Event::Tick, late).0;
        let told = explain(
            &waiting,
            &lanes,
            late,
            Surroundings { name: &|_| "web/staging".to_owned(), ..Surroundings::default() },
        );
        let full =
            &told.causes.iter().find(|cause| cause.code == CauseCode::LimitFull).unwrap().message;
        assert!(
            full.contains(&format!("web/staging with {job}"))
                && full.contains("may still run, until `pvnctl services retry`"),
            "{full}"
        );
        states[0] = step(
            states[0].clone(),
            Event::JobEnded { job, outcome: Outcome::Cancelled { gone: true } },
            late,
        )
        .0;
        lanes.update(&states[0], ALONE);
        assert_eq!(grant_all(&mut lanes, &mut states, late), [JobKind::Apply]);
    }
}

#[test]
fn rule_08_an_apply_that_may_still_run_keeps_the_place_where_it_ran_wherever_its_channel_goes() {
    let now = Timestamp::from_millis(START_MS);
    let of = |runtime: &str, max_concurrency: Option<u32>| Desired {
        runtime: runtime.parse().unwrap(),
        max_concurrency,
        ..apply_only()
    };
    let moved = |limit| Event::Desired(Box::new(newer(&of("two", limit), 2)));
    for (event, old) in [
        (moved(None), false),
        (moved(Some(1)), false),
        (moved(None), true),
        (Event::Desired(Box::new(of("two", None))), false),
        (Event::Desired(Box::new(of("one", None))), false),
        (Event::Deleted, false),
    ] {
        let wanted = [of("one", Some(1)), of("one", Some(1)), of("two", Some(1))];
        let mut states: Vec<State> = wanted
            .into_iter()
            .zip(0..)
            .map(|(of, number)| instance(number, of, now.plus_ms(number as i64)))
            .collect();
        let mut lanes = ConcurrencyLimiter::new(limits(4, None), now);
        let one = &mut states[..1];
        lanes.update(&one[0], ALONE);
        grant_all(&mut lanes, one, now);
        let job = one[0].jobs_in_flight().next().unwrap().id;
        let lost = Event::JobEnded {
            job,
            outcome: Outcome::Unknown { why: "lost".to_owned(), gone: false },
        };
        let mut stored = serde_json::to_value(step(one[0].clone(), lost, now).0).unwrap();
        if old {
            // As it was written before the runtime was kept.
            stored.as_object_mut().unwrap().remove("unsettled_in").expect("it is kept");
        }
        let label = format!("{event:?}");
        states[0] = step(serde_json::from_value(stored).unwrap(), event, now).0;
        states.iter().for_each(|state| lanes.update(state, ALONE));
        grant_all(&mut lanes, &mut states, now);
        let runs: Vec<bool> =
            states.iter().map(|state| state.jobs_in_flight().next().is_some()).collect();
        assert_eq!(runs, [false, false, true], "{label}");
        states[0] = step(
            states[0].clone(),
            Event::JobEnded { job, outcome: Outcome::Cancelled { gone: true } },
            now,
        )
        .0;
        lanes.update(&states[0], ALONE);
        grant_all(&mut lanes, &mut states, now);
        assert!(states[1].jobs_in_flight().next().is_some(), "{label}");
    }
}

#[test]
fn rule_08_the_place_of_a_channel_that_left_the_config_is_free_once_it_is_back_and_a_person_retries()
 {
    let now = Timestamp::from_millis(START_MS);
    let desired = || Desired { max_concurrency: Some(1), ..apply_only() };
    let mut states: Vec<State> =
        (0..2).map(|number| instance(number, desired(), now.plus_ms(number as i64))).collect();
    let mut lanes = ConcurrencyLimiter::new(limits(4, None), now);
    lanes.update(&states[0], ALONE);
    grant_all(&mut lanes, &mut states, now);
    let job = states[0].jobs_in_flight().next().unwrap().id;
    let waits = |lanes: &ConcurrencyLimiter, states: &[State]| {
        let told = explain(
            &step(states[1].clone(), Event::Tick, now).0,
            lanes,
            now,
            Surroundings { name: &|_| "web/staging".to_owned(), ..Surroundings::default() },
        );
        told.causes
            .into_iter()
            .find(|cause| cause.code == CauseCode::LimitFull)
            .map(|cause| cause.message)
    };
    let lost =
        Event::JobEnded { job, outcome: Outcome::Unknown { why: "lost".to_owned(), gone: false } };
    let back = Event::Desired(Box::new(newer(&desired(), 2)));
    for (event, words) in [
        (lost, "until `pvnctl services retry`"),
        (Event::Deleted, "has left the config"),
        (back, "until `pvnctl"),
    ] {
        states[0] = step(states[0].clone(), event, now).0;
        states.iter().for_each(|state| lanes.update(state, ALONE));
        assert!(grant_all(&mut lanes, &mut states, now).is_empty(), "{words}");
        let told = waits(&lanes, &states).unwrap_or_default();
        assert!(
            told.contains(&format!("web/staging with {job}")) && told.contains(words),
            "{told}"
        );
    }
    states[0] = step(states[0].clone(), Event::Retry { who: "eve".to_owned() }, now).0;
    states.iter().for_each(|state| lanes.update(state, ALONE));
    assert!(!grant_all(&mut lanes, &mut states, now).is_empty());
}

#[test]
fn rule_11_an_apply_that_may_still_run_is_told_also_where_all_is_well() {
    let mut it = Scenario::new(Desired { max_concurrency: Some(1), ..exit_code() });
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.ends(apply.job, Outcome::Unknown { why: "lost".to_owned(), gone: false });
    it.is("FAILED APPLY_FAILED");
    let told = |it: &Scenario| {
        let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
        let told = explain(
            it.state(),
            &lanes,
            it.now,
            Surroundings { name: &|_| "web/staging".to_owned(), ..Surroundings::default() },
        );
        told.causes
            .into_iter()
            .filter(|cause| cause.code == CauseCode::ApplyUnsettled)
            .map(|cause| cause.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&it).len(), 1, "once: {:?}", told(&it));
    it.run(Fetch, 0);
    it.is("CONVERGED");
    let [cause] = &told(&it)[..] else { panic!("{:?}", told(&it)) };
    assert!(
        cause.contains(&apply.job.to_string())
            && cause.contains("`runtime`")
            && cause.contains("`pvnctl services retry`"),
        "{cause}"
    );
    let message = &it.state().standing().message;
    assert!(
        message.contains(&format!("{} was given up and may still run", apply.job)),
        "{message}"
    );
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    assert_eq!(told(&it).len(), 1, "a pause hides nothing");
    it.send(Event::Resume);
    it.send(Event::Retry { who: "ann".to_owned() });
    assert_eq!((told(&it).len(), it.state().standing().message.contains("given up")), (0, false));
}
