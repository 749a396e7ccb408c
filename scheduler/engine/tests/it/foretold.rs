//! What is foretold comes: a message, a cause or a next action names an apply only where nothing
//! else has to come first.

use std::time::Duration;

use engine::desired::{Desired, Window};
use engine::event::Event;
use engine::limiter::ConcurrencyLimiter;
use engine::state::AppliesHeld;
use engine::{Forecast, Surroundings, explain, forecast};
use schema::api::Explanation;
use schema::cause::CauseCode;
use schema::id::BlobId;
use schema::schedule::Schedule;

use crate::scenario::{
    Apply, Fetch, Scenario, apply_only, before_apply, exit_code, limits, manual, newer, plan,
    stable,
};

/// Second 0 is 10:00; the window opens at 11:00 for an hour.
fn windowed(desired: Desired) -> Desired {
    let mut desired = desired;
    let opens = Schedule::parse("0 0 11 * * *", None).unwrap();
    desired.apply.window = Some(Window { opens, duration: Duration::from_secs(3_600) });
    desired
}

#[track_caller]
fn says(it: &Scenario, what: &str) {
    let message = &it.state().standing().message;
    assert!(message.contains(what), "`{message}` does not say `{what}`");
}

fn explained(it: &Scenario) -> Explanation {
    explain(
        it.state(),
        &ConcurrencyLimiter::new(limits(1, None), it.now),
        it.now,
        Surroundings::default(),
    )
}

fn next_applies(it: &Scenario) -> Vec<f64> {
    let next = explained(it).next;
    next.iter().filter(|next| next.action == "apply").map(|next| it.seconds(next.at)).collect()
}

fn causes(it: &Scenario) -> Vec<CauseCode> {
    explained(it).causes.into_iter().map(|cause| cause.code).collect()
}

#[test]
fn rule_10_an_observer_says_what_would_have_to_come_first() {
    let mut it =
        Scenario::new(windowed(Desired { gates: vec![manual(false, 1)], ..before_apply() }));
    it.send(Event::Observe(true));
    it.run(Fetch, 2);
    says(
        &it,
        "it would apply svc-1 once approval `qa` is asked for and given and the approval of this \
         apply is asked for and given and the apply window opens at 2026-07-01T11:00:00.000Z, but \
         only looks",
    );
    assert_eq!(it.asked_so_far(), 0);
    assert!(next_applies(&it).is_empty());
}

#[test]
fn rule_18_no_apply_is_foretold_past_the_end_of_what_was_approved() {
    let mut it = Scenario::new(Desired {
        gates: vec![manual(false, 1)],
        approval_timeout: Some(Duration::from_secs(60)),
        ..exit_code()
    });
    it.run(Fetch, 2);
    it.approve("ann");
    it.run(Apply, 1);
    it.run(Fetch, 2);
    says(
        &it,
        "once approval `qa`, which lapses at 2026-07-01T10:01:00.000Z, is asked for anew and given",
    );
    assert!(next_applies(&it).is_empty());
}

#[test]
fn rule_18_no_apply_is_foretold_that_needs_a_person_first() {
    let mut it = Scenario::new(before_apply());
    it.run(Fetch, 2);
    it.approve("ann");
    it.run(Apply, 1);
    it.is("FAILED APPLY_FAILED");
    says(&it, "if fetch still sees work, once the approval of this apply is asked for and given");
    assert!(next_applies(&it).is_empty(), "{:?}", next_applies(&it));
    let mut free = Scenario::new(exit_code());
    free.run(Fetch, 2);
    free.run(Apply, 1);
    says(&free, "or at once with `pvnctl services retry`");
    assert_eq!(next_applies(&free).len(), 1);
}

#[test]
fn rule_18_an_apply_after_a_failed_one_waits_for_its_window() {
    let mut it = Scenario::new(windowed(exit_code()));
    it.run(Fetch, 2);
    it.until(3_599).run(Fetch, 2);
    it.until(3_600);
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.until(7_199);
    let outcome = it.exited(1, Default::default());
    it.ends(apply.job, outcome);
    it.is("FAILED APPLY_FAILED");
    says(&it, "once the apply window opens at 2026-07-02T11:00:00.000Z");
    assert_eq!(next_applies(&it), [86_400.0 + 3_600.0]);
}

#[test]
fn rule_18_a_yes_that_lapses_before_the_window_opens_foretells_no_apply() {
    for (timeout, lapses) in [(60, true), (7_200, false)] {
        let mut it = Scenario::new(Desired {
            approval_timeout: Some(Duration::from_secs(timeout)),
            ..windowed(before_apply())
        });
        it.run(Fetch, 2);
        it.approve("ann");
        it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
        assert_eq!(next_applies(&it).is_empty(), lapses);
        assert_eq!(causes(&it).contains(&CauseCode::ApprovalLapses), lapses);
        let message = it.state().standing().message.clone();
        assert_eq!(
            message.contains(
                "the approval of this apply lapses before that at 2026-07-01T10:01:00.000Z"
            ),
            lapses,
            "{message}"
        );
    }
}

#[test]
fn rule_05_an_apply_comes_again_only_when_a_fetch_has_answered_since() {
    for code in [0, 1] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 2);
        it.run(Apply, code);
        it.run(Fetch, 2);
        it.until_without_answer(100_000);
        assert!(!it.wants(Apply), "after {code}: {:?}", it.state().standing());
        if !it.wants(Fetch) {
            it.until(100_600);
        }
        it.run(Fetch, 2);
        it.start(Apply);
    }
}

#[test]
fn a_fetch_that_fails_is_told_wherever_its_last_answer_is() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.run(Apply, 0);
    it.run(Fetch, 2);
    says(&it, "its effect has until");
    it.until_without_answer(120);
    says(&it, "its effect has until");
    says(&it, "as last seen, 3 times in a row: fetch job-");
}

#[test]
fn a_yes_that_counts_no_more_is_told_and_why_each_fetch_asks_anew() {
    let printed = |text: &str| engine::event::FetchResult {
        output: Some(BlobId::of(text.as_bytes())),
        ..Default::default()
    };
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, printed("1 to add, took 11 ns"));
    it.until(60);
    let fetch = it.start(Fetch);
    it.approve("ann");
    says(&it, &format!("ready to apply once fetch {}, which is under way, has ended", fetch.job));
    let outcome = it.exited(2, printed("1 to add, took 12 ns"));
    it.ends(fetch.job, outcome);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    says(&it, "the yes of ann at 2026-07-01T10:01:00.000Z was for other work than fetch finds now");
    assert_eq!(it.logged("approval.withdrawn").count(), 1);
    assert!(!it.state().standing().message.contains("differs each time"));
    it.until(120).run_with(Fetch, 2, printed("1 to add, took 13 ns"));
    says(
        &it,
        "what fetch prints differs each time, so each fetch asks anew: let it leave a \
         `plan-explanation`",
    );
    // It may well be the same each time, as far as anybody can know.
    it.until(180).run_with(
        Fetch,
        2,
        engine::event::FetchResult { is_cut: true, ..printed("stands for what is not kept whole") },
    );
    says(
        &it,
        "what is kept of fetch's output is not whole, so each fetch asks anew: let it print less, \
         or leave a `plan-explanation`",
    );
    it.approve("ann");
    it.start(Apply);
}

#[test]
fn a_plan_that_differs_at_each_fetch_is_told_with_the_line_that_does() {
    let at =
        |second: u32| plan("same", &format!("1 to change\n--- old 14:03:{second:02}\n+ size = 20"));
    for desired in [before_apply(), Desired { gates: vec![manual(false, 1)], ..exit_code() }] {
        let mut it = Scenario::new(desired);
        it.run_with(Fetch, 2, at(5));
        it.until(60).run_with(Fetch, 2, at(6));
        assert!(!it.state().standing().message.contains("another plan"), "once may be a change");
        it.until(120).run_with(Fetch, 2, at(7));
        it.until(180).run_with(Fetch, 2, at(7));
        says(
            &it,
            "2 times another plan has taken the place of the one that was asked about, the last in \
             line 2: `--- old 14:03:06` is now `--- old 14:03:07`; if nothing real changes, leave \
             out of `plan-explanation` what differs each time",
        );
        it.approve("ann");
        it.run(Apply, 0);
        it.until(900).run_with(Fetch, 2, at(8));
        assert!(!it.state().standing().message.contains("another plan"), "that was answered");
    }
}

#[test]
fn applies_that_bring_nothing_are_counted_in_what_is_told_of_the_last() {
    // That a third one had no effect is another story.
    for (code, most) in [(0, 2), (1, 3)] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 2);
        for times in 1..=most {
            it.run(Apply, code);
            it.run(Fetch, 2);
            let told = format!("the last of {times} in a row, with work left after each before it");
            let is_told = |text: &str| text.contains(&told) == (times > 1);
            assert!(is_told(&it.state().standing().message), "{}", it.state().standing().message);
            assert!(
                explained(&it).causes.iter().any(|cause| cause.code.as_str().starts_with("APPL") && is_told(&cause.message)),
                "{:?}",
                explained(&it)
            );
            it.until(600 * times);
            it.run(Fetch, 2);
        }
        it.run(Apply, 0);
        it.run(Fetch, 0);
        it.until(2_400);
        it.run(Fetch, 2);
        it.run(Apply, code);
        assert!(
            !it.state().standing().message.contains("in a row"),
            "counted anew: {}",
            it.state().standing().message
        );
    }
}

#[test]
fn a_pause_says_what_failed_before_it() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.run(Apply, 9);
    it.is("FAILED APPLY_FAILED");
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    it.is("PAUSED");
    says(&it, "paused by ann; `pvnctl services resume` goes on; before that apply job-");
    says(&it, "exit code 9");
    assert_eq!(
        causes(&it)
            .iter()
            .filter(|code| [CauseCode::Paused, CauseCode::ApplyFailed].contains(code))
            .count(),
        2,
        "{:?}",
        causes(&it)
    );
    // Of what is desired now nothing has failed.
    it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
    assert!(
        !it.state().standing().message.contains("before that"),
        "{}",
        it.state().standing().message
    );
}

#[test]
fn what_becomes_of_an_apply_is_told_of_a_pause_as_it_is() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply).job;
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    says(
        &it,
        "is starting: it is withdrawn if its command has not begun, and else goes on to its end",
    );
    it.begins(apply);
    says(&it, &format!("apply {apply} of svc-1 goes on to its end"));
}

/// What a release that nobody has made yet would come to.
fn forecast_of(it: &Scenario, release: Desired, held: Option<AppliesHeld>) -> Forecast {
    let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
    forecast(it.state().clone(), release, held, &lanes, it.now, Surroundings::default())
}

#[test]
fn rule_18_a_release_is_foretold_with_everything_that_would_keep_it_back() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.send(Event::Pause { who: "ann".to_owned(), reason: Some("freeze".to_owned()) });
    let before = it.state().clone();
    let next = windowed(Desired {
        gates: vec![stable(&["staging"]), manual(false, 1)],
        ..newer(&exit_code(), 2)
    });
    let told = forecast_of(&it, next, None);
    assert_eq!(told.next, "nothing: it stays paused by ann (freeze)");
    let holds: Vec<_> =
        told.holds.iter().map(|cause| (cause.code, cause.message.as_str())).collect();
    assert_eq!(
        holds,
        [
            (
                CauseCode::Paused,
                "paused by ann (freeze): neither fetch nor apply starts until `pvnctl services \
                 resume`"
            ),
            (CauseCode::UpstreamUnstable, "waits until `staging` is converged at svc-2"),
            (CauseCode::ApprovalPending, "waits until approval `qa` is asked for and given"),
            (
                CauseCode::WindowShut,
                "waits until the apply window opens at 2026-07-01T11:00:00.000Z"
            ),
        ]
    );
    assert_eq!(told.holds[3].until.map(|at| it.seconds(at)), Some(3_600.0));
    assert_eq!(*it.state(), before, "nothing is done");
}

#[test]
fn rule_18_a_release_that_nothing_keeps_back_is_foretold_as_that() {
    let it = Scenario::without_release();
    let told = forecast_of(&it, exit_code(), None);
    assert_eq!(told.next, "fetch looks at once, and apply follows if there is work");
    assert_eq!(told.holds, []);
    assert_eq!(forecast_of(&it, apply_only(), None).next, "apply starts at once");
    let asked = Desired { gates: vec![manual(false, 1)], ..apply_only() };
    assert_eq!(forecast_of(&it, asked, None).next, "apply starts once nothing keeps it back");
}

#[test]
fn rule_18_a_release_is_foretold_behind_an_apply_that_runs_and_a_runtime_that_is_stopped() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    let held = AppliesHeld {
        since: it.now,
        why: "5 of 5 fetches failed".to_owned(),
        width: 0,
        until: it.now.plus_ms(60_000),
    };
    let told = forecast_of(&it, newer(&exit_code(), 2), Some(held));
    let job = apply.job;
    assert_eq!(
        told.next,
        format!(
            "apply {job} of svc-1 goes on to its end first; then fetch looks at once, and apply \
             follows if there is work and nothing keeps it back"
        )
    );
    let codes: Vec<_> = told.holds.iter().map(|cause| cause.code).collect();
    assert_eq!(codes, [CauseCode::JobRunning, CauseCode::FleetBreaker]);
}
