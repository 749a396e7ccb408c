//! A world with faults, run from a seed: many instances whose commands flap, hang, lie and fail;
//! reports lost, doubled, late and out of order; a driver that crashes between any two steps; a
//! clock that jumps; people who do what people do.
//!
//! In every other world (an even seed) some instances are not polled but watched, by somebody who
//! is late, silent, or wrong.
//!
//! After every step `State::check` and the promises P1 to P8 hold (`oracle.rs`); when the faults
//! end, everything desired becomes so within a bound. A failure prints its seed and the last
//! events; run it again with `PVN_SIM_SEED=<seed> cargo test -p engine --test sim`. `PVN_SIM_STEPS`
//! sets how many steps the long run takes.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot go on says so by panicking")]
#![expect(clippy::print_stderr, reason = "a failure tells its seed and its last events")]

mod driver;
mod oracle;
mod outputs;
mod people;
mod random;
mod world;

use driver::Driver;

/// Steps of the long run, over all its seeds. Each state is stored and read again, which takes most
/// of the time.
const STEPS: u64 = 400_000;
/// Steps with faults in each world, before it calms down.
const STEPS_A_WORLD: u64 = 20_000;

/// Seeds that once found something. 1009: a doubled report that an apply is not gone let another
/// one start beside it.
const KNOWN_SEEDS: &[u64] = &[1, 7, 1009, 1017];

fn run(seed: u64) -> u64 {
    Driver::new(seed).run(STEPS_A_WORLD)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[test]
fn seeds_that_once_failed_hold() {
    for seed in KNOWN_SEEDS {
        run(*seed);
    }
}

#[test]
fn p1_to_p8_hold_in_long_runs_and_calm_brings_convergence() {
    if let Some(seed) = number("PVN_SIM_SEED") {
        println!("seed {seed}: {} steps", run(seed));
        return;
    }
    let wanted = number("PVN_SIM_STEPS").unwrap_or(STEPS);
    let mut steps = 0;
    let mut seed = 1_000;
    while steps < wanted {
        steps += run(seed);
        seed += 1;
    }
    println!("{steps} steps in {} worlds", seed - 1_000);
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let story = |seed| {
        let mut driver = Driver::new(seed);
        driver.run(3_000);
        driver.digest()
    };
    assert_eq!(story(42), story(42));
    assert_ne!(story(42), story(43));
}
