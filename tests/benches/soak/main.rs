//! Soak: all examples that run without a cluster at once under one daemon, and random faults for
//! half an hour. Asserted all the time: no apply beside another of its instance, a daemon that
//! never ends by itself, memory and disk within bounds. When the faults end everything converges.
//! Prints its figures.
//!
//! `cargo bench -p tests --bench soak`; `PVN_SOAK_MINUTES=3` for a shorter run, `PVN_SOAK_SEED=7`
//! for other faults. As root it also fills the disk, on a small file system of its own.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod estate;
mod faults;
mod figures;

use std::time::{Duration, Instant};

use tests::dice::{self, Dice};
use tests::scheduler::Scheduler;
use tests::{disk::SmallDisk, wait};

use estate::Estate;
use faults::Faults;
use figures::Figures;

/// Room for the data directory where we may make a disk of our own: a hundred times what a minute
/// leaves.
const DISK: &str = "1g";

/// Part of the time after which memory and disk count: by then everything has happened once.
const WARM_UP: f64 = 0.25;

/// Longest time from the last fault until everything is CONVERGED: two grace periods and back-offs
/// of the examples, and what a busy machine adds.
const SETTLE_WITHIN: Duration = Duration::from_secs(300);

fn main() {
    let minutes = dice::number("PVN_SOAK_MINUTES", 30);
    let seed = dice::number("PVN_SOAK_SEED", 1);
    let span = Duration::from_secs(minutes * 60);
    let mut scheduler = Scheduler::stopped();
    let data = scheduler.data();
    // Before what is in it, which has to be gone when it is unmounted.
    let disk = SmallDisk::mount(&data, DISK);
    let estate = Estate::set_up(&scheduler);
    let mut dice = Dice::new(seed);
    let mut faults = Faults::new(&estate, disk.as_ref());
    println!(
        "{minutes} minutes of random faults, PVN_SOAK_SEED={seed}: {}",
        estate.names().join(", ")
    );
    for absent in faults.absent() {
        println!("without: {absent}");
    }
    scheduler.run(&estate.start());
    estate.release(&scheduler);
    let start = Instant::now();
    let mut figures = Figures::default();
    while start.elapsed() < span {
        faults.one(&mut scheduler, &mut dice);
        check(&mut scheduler, &estate, &faults);
        let is_warm = start.elapsed().as_secs_f64() > span.as_secs_f64() * WARM_UP;
        figures.sample(&scheduler, is_warm);
    }
    faults.end(&mut scheduler);
    let calm = Instant::now();
    let settled = wait::within(SETTLE_WITHIN, || {
        check(&mut scheduler, &estate, &faults);
        estate.settle(&scheduler).then_some(())
    });
    let settled_after = settled.map(|()| calm.elapsed());
    figures.sample(&scheduler, true);
    figures.print(&faults, &estate, settled_after);
    assert!(
        settled_after.is_some(),
        "not everything converged within {SETTLE_WITHIN:?}:\n{}\n{}",
        estate.standing(&scheduler),
        scheduler.log()
    );
    figures.check();
    scheduler.stop();
    drop(disk);
}

/// What holds at every moment.
fn check(scheduler: &mut Scheduler, estate: &Estate, faults: &Faults) {
    if let Some(status) = scheduler.exited() {
        panic!(
            "the daemon ended by itself with {status} after {}\n{}",
            faults.last(),
            scheduler.log()
        );
    }
    let overlaps = estate.overlaps();
    assert_eq!(
        overlaps,
        "",
        "an apply beside another one after {}\n{}",
        faults.last(),
        scheduler.log()
    );
}
