//! Secrets with colours and characters within that nobody sees: whatever leaves these out shows the
//! secret.

use super::super::{Masker, Secrets};
use super::check;
use crate::shown::seen;

const SECRET: &str = "hunter2-S3cr3t/Val=ue+xyz";

#[test]
fn a_secret_that_is_coloured_or_has_what_nobody_sees_within_is_hidden() {
    let grep = "password: hunter2-\u{1b}[01;31m\u{1b}[KS3cr\u{1b}[m\u{1b}[K3t/Val=ue+xyz\n";
    check(&[SECRET], grep, "password: ***\n");
    for between in [
        "\0",
        "\u{7}",
        "\u{8}",
        "\u{202e}",
        "\u{61c}",
        "\u{9b}",
        "\u{1b}[0m",
        "\u{1b}(B",
        "\u{1b}]",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]8;;https://ci/run/7\u{1b}\\",
        "\u{1b}P1$r\u{1b}\\",
        "\u{1b}7",
    ] {
        let text =
            format!("\u{1b}[1mis \u{1b}[31mhunter2-{between}S3cr3t{between}/Val=ue+xyz\u{1b}[0m;");
        check(&[SECRET], &text, "\u{1b}[1mis \u{1b}[31m***\u{1b}[0m;");
        // Also encoded, and also where the colour itself is.
        let encoded = format!("aHVudGVyMi1{between}TM2NyM3QvVmFsPXVlK3h5eg==");
        check(&[SECRET], &encoded, "***");
    }
    check(&[SECRET], r"hunter2-\u001b[31mS3cr3t/Val=ue+xyz", "***");
    check(&[SECRET], r"hunter2-\u202eS3cr3t%2FVal=ue+xyz", "***");
    check(&["a\u{1}secret\u{1b}[mvalue"], "asecretvalue a\u{1}secret\u{1b}[mvalue", "*** ***");
}

#[test]
fn a_secret_in_a_title_or_in_the_address_of_a_link_is_hidden_however_it_is_escaped() {
    for (begin, end) in [
        ("\u{1b}]8;;", "\u{1b}\\"),
        ("\u{1b}]0;", "\u{7}"),
        ("\u{1b}P", "\u{1b}\\"),
        ("\u{1b}_", "\u{7}"),
    ] {
        for escaped in [
            SECRET,
            "hunter2-S3cr3t%2FVal%3Due%2Bxyz",
            "hunter2-S3cr3t&#47;Val&#61;ue+xyz",
            r"hunter2-S3cr3t\/Val\u003due+xyz",
        ] {
            let text = |secret: &str| format!("{begin}https://bot:{secret}@git/x{end}here");
            check(&[SECRET], &text(escaped), &text("***"));
        }
    }
}

#[test]
fn nothing_of_it_is_seen_wherever_a_read_cuts_it() {
    let secrets = Secrets::of(&[SECRET.as_bytes()]).unwrap();
    let text = "\u{1b}[32m>\u{1b}[0m \
                hunter2-\u{1b}[01;31mS3\u{202e}cr3t\u{1b}[m/Val=ue+xyz\u{1b}[K.\u{1b}["
        .as_bytes();
    for first in 0..=text.len() {
        for second in first..=text.len() {
            let mut masker = Masker::default();
            let cuts =
                [(&text[..first], false), (&text[first..second], false), (&text[second..], true)];
            let shown: Vec<u8> = cuts
                .into_iter()
                .flat_map(|(piece, last)| masker.push(&secrets, piece, last))
                .collect();
            assert_eq!(seen(&String::from_utf8(shown).unwrap()), "> ***.[", "{first} {second}");
        }
    }
}

#[test]
fn colours_are_held_back_no_longer_than_they_last() {
    let secrets = Secrets::of(&[SECRET.as_bytes()]).unwrap();
    for (piece, shown) in [
        ("\u{1b}[1mready\u{1b}[0m", "\u{1b}[1mready\u{1b}[0m"),
        ("ready\u{1b}[0", "ready"),
        ("…", "…"),
    ] {
        assert_eq!(Masker::default().push(&secrets, piece.as_bytes(), false), shown.as_bytes());
    }
    let endless = ["\u{1b}[", &"0".repeat(100_000)].concat();
    let mut masker = Masker::default();
    let mut shown = 0;
    for piece in endless.as_bytes().chunks(100) {
        shown += masker.push(&secrets, piece, false).len();
    }
    assert!(shown + 1000 > endless.len(), "{shown}");
}
