//! The commands that the benchmark has wrapped: this program itself, called with [`FLAG`].

use std::io::Write;
use std::time::{Duration, Instant};

/// First argument that makes this program a child of its own benchmark.
pub(crate) const FLAG: &str = "--as-child";

/// `write SIZE TOTAL`: writes of one size. `log SIZE TOTAL ROUNDS`: the same with work before each,
/// and says how long it took.
pub(crate) fn run(arguments: &[String]) {
    let number = |at: usize| arguments[at].parse::<u64>().expect("a number");
    match arguments[0].as_str() {
        "write" => write(number(1) as usize, number(2), || ()),
        "log" => {
            let rounds = number(3);
            let start = Instant::now();
            write(number(1) as usize, number(2), || {
                work(rounds);
            });
            // To whoever measures, who does not read the log.
            std::fs::write(&arguments[4], start.elapsed().as_nanos().to_string())
                .expect("the result can be written");
        }
        other => panic!("{other}: no such child"),
    }
}

fn write(size: usize, total: u64, mut before: impl FnMut()) {
    let line: Vec<u8> =
        (0..size).map(|at| if at + 1 == size { b'\n' } else { b'a' + (at % 26) as u8 }).collect();
    let mut stdout = std::io::stdout().lock();
    // Rust's standard output keeps back what follows the last newline only; each line is one write.
    for _ in 0..total / size as u64 {
        before();
        stdout.write_all(&line).expect("standard output takes it");
    }
    stdout.flush().expect("standard output takes it");
}

/// Arithmetic that the compiler cannot leave out.
fn work(rounds: u64) -> u64 {
    std::hint::black_box(
        (0..rounds)
            .fold(1_u64, |sum, at| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(at))),
    )
}

/// Rounds of [`work`] that take this long here.
pub(crate) fn rounds_for(span: Duration) -> u64 {
    const TRIAL: u64 = 20_000_000;
    let start = Instant::now();
    work(TRIAL);
    (TRIAL as f64 * span.as_secs_f64() / start.elapsed().as_secs_f64()) as u64
}
