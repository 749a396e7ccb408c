//! Hostile bytes for whatever of the wrapper reads bytes of others. Each target takes any bytes and
//! must neither panic nor break its rule. It gets every file of `wrapper/corpus/TARGET/`, which are
//! cases worth keeping, and then a bounded number of mutations of them, the same ones in every run.
//! `PVN_FUZZ_ROUNDS=1000000 cargo test -p pvn-wrapper fuzz` looks for longer.
//!
//! This needs no nightly compiler, so the check script can run it. `wrapper/fuzz` gives the same
//! targets to libFuzzer, which sees what a case reaches; what that finds goes into the corpus and
//! is tried here from then on.

use std::path::{Path, PathBuf};

mod targets;

/// Mutations of each target in an ordinary run, about a second of a debug build.
const ROUNDS: u64 = 3_000;

/// Longest case: more finds nothing sooner.
const LONGEST_BYTES: usize = 4096;

/// What mutations put in: beginnings, ends and limits of what the targets read.
const WORDS: &[&[u8]] = &[
    b"{", b"}", b"[", b"]", b"\"", b"\\u0000", b",", b":", b"null", b"1e400", b"=", b"fetch:",
    b"sha256:", b"..", b"/", b"\0", b"\xff", b"\x80", b"\n", b"***",
];

/// Numbers that look random and are the same in every run (xorshift64*, Vigna 2016).
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    fn mutate(&mut self, case: &mut Vec<u8>) {
        let at = self.below(case.len() + 1);
        match self.below(5) {
            0 => case.splice(at..at, WORDS[self.below(WORDS.len())].iter().copied()).for_each(drop),
            1 => case.truncate(at),
            2 => drop(case.drain(at..(at + self.below(8)).min(case.len()))),
            3 => {
                let copied = case[at..(at + self.below(64)).min(case.len())].to_owned();
                let to = self.below(case.len() + 1);
                case.splice(to..to, copied).for_each(drop);
            }
            _ => {
                if let Some(byte) = case.get_mut(at) {
                    *byte = byte.wrapping_add(1 << self.below(8));
                }
            }
        }
        case.truncate(LONGEST_BYTES);
    }
}

/// Gives the target its corpus, and mutations of it.
fn check(name: &str, target: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!corpus.is_empty(), "nothing in {}", directory.display());
    corpus.iter().for_each(|case| attempt(name, target, case));
    let rounds = std::env::var("PVN_FUZZ_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let mut numbers = RandomNumbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..rounds {
        let mut case = corpus[numbers.below(corpus.len())].clone();
        for _ in 0..=numbers.below(8) {
            numbers.mutate(&mut case);
        }
        attempt(name, target, &case);
    }
}

fn attempt(name: &str, target: fn(&[u8]), case: &[u8]) {
    let broke = std::panic::catch_unwind(|| target(case)).is_err();
    assert!(!broke, "a case for wrapper/corpus/{name}: {:?}", String::from_utf8_lossy(case));
}

#[test]
fn fuzz_masking_across_read_boundaries() {
    check("mask", targets::mask);
}

#[test]
fn fuzz_the_check_of_structured_output() {
    check("structured", targets::structured);
}

#[test]
fn fuzz_the_arguments_of_in_and_out() {
    check("arguments", targets::arguments);
}

#[test]
fn fuzz_what_is_read_from_a_spool() {
    check("spool", targets::spool);
}
