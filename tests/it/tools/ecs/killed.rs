//! The daemon, killed anywhere in an apply.

use fakes::ecs::Wrong;
use fakes::turnstile::Moment;

use super::*;

#[test]
fn p4_p5_a_daemon_killed_in_an_apply_makes_nothing_of_ecs_twice() {
    let Some(mut amazon) = Amazon::start("a_daemon_killed_in_an_apply_of_ecs") else { return };
    amazon.scheduler.apply(&documents(""));
    let mut dice = Dice::new(7);
    let mut made = [0, 0, 0];
    for (tag, points) in [
        ("1", &[("RegisterTaskDefinition", Moment::Before), ("CreateService", Moment::Before)][..]),
        ("2", &[("RegisterTaskDefinition", Moment::After), ("UpdateService", Moment::Before)]),
        ("3", &[("UpdateService", Moment::After), ("TagResource", Moment::Before)]),
        ("4", &[("DescribeTaskDefinition", Moment::Before), ("TagResource", Moment::After)]),
    ] {
        for (operation, moment) in points {
            amazon.server.world().wrong.push((*operation, Wrong::Waits(*moment)));
        }
        let version = amazon.web().push(tag);
        for _ in points {
            let variables = environment(&amazon.server.url);
            let start = Start { variables: &variables, ..Start::default() };
            killed_at(&mut amazon.scheduler, &amazon.server.turnstile, &start, &mut dice);
        }
        amazon.web().arrives(&version);
        let creates = usize::from(tag == "1");
        made = [made[0] + 1, made[1] + creates, made[2] + 1 - creates];
        assert_eq!(amazon.made(), made, "{tag}: {:#?}", amazon.server.world().calls);
    }
    // A service that is made anew: its answer is waited for.
    amazon.server.world().wrong.push(("CreateService", Wrong::Waits(Moment::After)));
    amazon.server.world().delete(NAME);
    let variables = environment(&amazon.server.url);
    let start = Start { variables: &variables, ..Start::default() };
    killed_at(&mut amazon.scheduler, &amazon.server.turnstile, &start, &mut dice);
    amazon.web().comes_to("there again", |channel| channel["status"] == "CONVERGED");
    made[1] += 1;
    assert_eq!(amazon.made(), made);
    assert_eq!(amazon.web().applies().len(), 5, "{:#?}", amazon.web().jobs("apply"));
}

#[test]
fn p4_p5_a_daemon_killed_at_any_call_to_ecs_applies_once() {
    let Some(mut amazon) = Amazon::start("a_daemon_killed_at_any_call_to_ecs") else { return };
    amazon.scheduler.apply(&documents(""));
    let seed = tests::dice::number("PVN_FUZZ_SEED", 11);
    let mut dice = Dice::new(seed);
    let rounds = tests::dice::number("PVN_FUZZ_BATCHES", 3);
    for round in 1..=rounds {
        let before = amazon.server.world().calls.len();
        let version = amazon.web().push(&round.to_string());
        for _ in 0..2 {
            let calls = before + dice.below(14);
            let seen = || (amazon.server.world().calls.len() >= calls).then_some(());
            wait::until("that many calls", seen);
            amazon.scheduler.kill();
            let variables = environment(&amazon.server.url);
            amazon.scheduler.run(&Start { variables: &variables, ..Start::default() });
        }
        amazon.web().arrives(&version);
        let [registered, created, updated] = amazon.made();
        let rounds = usize::try_from(round).expect("rounds are few");
        assert_eq!(registered, rounds, "seed {seed}: {:#?}", amazon.server.world().calls);
        assert_eq!((created, updated), (1, rounds - 1), "seed {seed}");
        assert_eq!(amazon.web().applies().len(), rounds, "seed {seed}");
    }
}
