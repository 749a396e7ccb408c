//! That the quick ways find what the plain ones do, and that work grows in proportion.

use std::time::{Duration, Instant};

use super::*;

/// Work for a text that comes in pieces.
fn work(secrets: &[Vec<u8>], text: &[u8]) -> usize {
    let patterns = Patterns::of(secrets.to_vec());
    let before = COMPARED.get();
    patterns.find(text, text, false);
    COMPARED.get() - before
}

#[test]
fn what_repeats_itself_takes_time_in_proportion() {
    let with_others = |secret: Vec<u8>| {
        let others = ["Q12345", "R23456", "S34567", "T45678", "U56789"]
            .map(|other| other.as_bytes().to_vec());
        [vec![secret], others.to_vec()].concat()
    };
    // The text goes on as the secret does, almost to its end, wherever that begins.
    let of = |size: usize| {
        let secret = [vec![b'a'; size], b"b".to_vec()].concat();
        let text = [vec![b'a'; size - 1], b"c".to_vec()].concat();
        work(&[secret], &text)
    };
    let periodic = |size: usize| {
        let secret = [b"abcabcab".repeat(size / 8), b"x".to_vec()].concat();
        let text = [b"abcabcab".repeat(size / 8), b"y".to_vec()].concat();
        work(&[secret], &text)
    };
    // A text several times as long, which nothing cuts off; and one full of secrets.
    let longer = |size: usize| {
        work(&with_others([vec![b'a'; size], b"b".to_vec()].concat()), &vec![b'a'; 4 * size])
    };
    let full = |size: usize| work(&with_others(vec![b'a'; size / 8]), &vec![b'a'; 4 * size]);
    // The beginning of a secret is another one, and everywhere.
    let nested = |size: usize| {
        work(&[vec![b'a'; 8], [vec![b'a'; size], b"b".to_vec()].concat()], &vec![b'a'; 4 * size])
    };
    for work in [&of as &dyn Fn(usize) -> usize, &periodic, &longer, &full, &nested] {
        let (once, twice) = (work(4_000), work(8_000));
        assert!(once > 0 && twice <= once * 5 / 2, "{once} and {twice} bytes compared");
    }
}

#[test]
fn what_repeats_itself_is_prepared_in_time_in_proportion() {
    // The least of some tries: the machine may be busy.
    let least = |size: usize, of: &dyn Fn(usize) -> Vec<u8>| {
        let once = || {
            let (secret, began) = (of(size), Instant::now());
            Patterns::of(vec![secret[1..].to_vec(), secret]);
            began.elapsed()
        };
        (0..3).map(|_| once()).min().unwrap()
    };
    let rules =
        |size: usize| [b"user: a\n".as_slice(), &vec![b'-'; size], b"\npassword: b"].concat();
    let one = |size: usize| vec![b'A'; size];
    let two = |size: usize| b"ab".repeat(size / 2);
    for of in [&one as &dyn Fn(usize) -> Vec<u8>, &two, &rules] {
        let (once, more) = (least(20_000, of), least(80_000, of));
        assert!(
            more <= once * 8 + Duration::from_millis(100),
            "{once:?}, and {more:?} for four times as much"
        );
    }
}

#[test]
fn both_ways_find_the_same_patterns() {
    let patterns = ["aa", "aaaab", "ab", "abba", "bb", "aabb", "abababa"]
        .map(|pattern| pattern.as_bytes().to_vec());
    let patterns = Patterns::of(patterns.to_vec());
    for length in 1..=11_u32 {
        for number in 0..1_u32 << length {
            let text: Vec<u8> =
                (0..length).map(|bit| b'a' + u8::from(number >> bit & 1 == 1)).collect();
            let lengths = patterns.all(&text);
            for from in 0..=text.len() {
                let next = patterns.next(&text, from).map(|(next, _)| next);
                let of = |at: usize| {
                    patterns
                        .patterns
                        .iter()
                        .filter(|p| text[at..].starts_with(p))
                        .map(Vec::len)
                        .max()
                };
                let expected =
                    (from..text.len()).find_map(|at| of(at).map(|length| at..at + length));
                assert_eq!(
                    (&next, &following(&lengths, from)),
                    (&expected, &expected),
                    "{} from {from}",
                    String::from_utf8_lossy(&text)
                );
            }
        }
    }
}

#[test]
fn both_ways_find_the_same_beginnings() {
    // All texts of up to nine letters over two, against patterns that overlap themselves and
    // each other.
    let patterns =
        ["aaaaaab", "abababa", "bbabbabb", "aabaabaab"].map(|pattern| pattern.as_bytes().to_vec());
    let patterns = Patterns::of(patterns.to_vec());
    for length in 0..=9_u32 {
        for number in 0..1_u32 << length {
            let text: Vec<u8> =
                (0..length).map(|bit| b'a' + u8::from(number >> bit & 1 == 1)).collect();
            let naive = |at: usize| {
                patterns.patterns.iter().any(|pattern| {
                    pattern.len() > text.len() - at && pattern.starts_with(&text[at..])
                })
            };
            for patience in [0, usize::MAX] {
                let mut beginnings = Beginnings::of(&patterns, &text, patience);
                if patience == 0 {
                    beginnings.all = Some(beginnings.find_all());
                }
                for from in 0..=text.len() {
                    let expected = (from..text.len()).find(|at| naive(*at)).unwrap_or(text.len());
                    assert_eq!(
                        beginnings.first(from),
                        expected,
                        "{} from {from}",
                        String::from_utf8_lossy(&text)
                    );
                }
            }
        }
    }
}
