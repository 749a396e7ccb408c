//! The marked line: a whole report as one line on the wrapper's standard error, for whoever reads
//! the log of a container that reached no scheduler. Written by the wrapper, read by the scheduler.
//!
//! ```text
//! pvn-wrapper-report: JOB MAC JSON
//! ```
//!
//! JOB is the job's id and MAC the HMAC-SHA256 of `JOB JSON`, as they stand there, keyed with the
//! job's token, in lower-case hexadecimal digits. A log is written by the command too, which may
//! print the log of another job: so a line counts only where a line starts, for its own job, and
//! from somebody who has the token, which a command has not.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Report;
use crate::wire::REPORT_MARK;

/// Longest JSON in a line, bytes: a structured document of 8 MiB, as it is written anew, and what
/// else a report says. What is longer goes out in its short form. Whoever reads a log looks at so
/// much of its end, and a kilobyte.
pub const LINE_LIMIT_BYTES: usize = 16 << 20;

/// The line, with its newline. `job` is the job's id, without blanks; `token` what speaks for it.
pub fn write(job: &str, token: &str, report: &Report) -> String {
    let json = String::from_utf8(report.shortened(LINE_LIMIT_BYTES)).expect("JSON is UTF-8");
    let digits = hexadecimal(mac(job, token, json.as_bytes()));
    let mut line =
        String::with_capacity(REPORT_MARK.len() + job.len() + digits.len() + json.len() + 3);
    line.push_str(REPORT_MARK);
    line.push_str(job);
    line.push(' ');
    line.push_str(&digits);
    line.push(' ');
    line.push_str(&json);
    line.push('\n');
    line
}

/// The report in the last line of `log` that starts with the mark and was written for this job by
/// somebody with this token. A carriage return at its end, which a terminal adds, does not matter.
pub fn read(log: &str, job: &str, token: &str) -> Option<Report> {
    log.lines().rev().find_map(|line| {
        let (found, rest) = line.strip_prefix(REPORT_MARK)?.split_once(' ')?;
        let (digits, json) = rest.split_once(' ')?;
        if found != job {
            return None;
        }
        verify(job, token, json, digits)?;
        serde_json::from_str(json).ok()
    })
}

/// Whether this is a marked line of anybody's: nothing that people want to see.
pub fn is_marked(line: &str) -> bool {
    line.starts_with(REPORT_MARK)
}

/// The signature of a report in JSON.
pub(super) fn mac(job: &str, token: &str, json: &[u8]) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(job.as_bytes());
    mac.update(b" ");
    mac.update(json);
    mac
}

/// A signature in digits.
pub(super) fn hexadecimal(mac: Hmac<Sha256>) -> String {
    let mut digits = String::new();
    mac.finalize()
        .into_bytes()
        .iter()
        .for_each(|byte| write!(digits, "{byte:02x}").expect("a string takes everything"));
    digits
}

/// `None` unless these digits are the signature of this report.
pub(super) fn verify(job: &str, token: &str, json: &str, digits: &str) -> Option<()> {
    mac(job, token, json.as_bytes()).verify_slice(&bytes(digits)?).ok()
}

/// The bytes that lower-case hexadecimal digits spell.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(code: i32, words: &str) -> Report {
        Report { exit_code: Some(code), bad_output: Some(words.to_owned()), ..Report::default() }
    }

    #[test]
    fn the_form_is_one_that_others_can_make() {
        let line = write("job-1", "token", &Report::default());
        let (head, json) = line.split_once(" {").unwrap();
        let json = format!("{{{}", json.trim_end());
        let expected = Hmac::<Sha256>::new_from_slice(b"token")
            .unwrap()
            .chain_update(format!("job-1 {json}"))
            .finalize();
        let digits: String =
            expected.into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(head, format!("pvn-wrapper-report: job-1 {digits}"));
        assert!(line.ends_with('\n') && line.lines().count() == 1);
    }

    #[test]
    fn the_last_line_that_is_right_counts_whatever_stands_around_it() {
        let [first, second] = [1, 2].map(|code| write("job-1", "t", &report(code, "words")));
        let of_another_job = write("job-2", "t", &report(3, ""));
        let by_another_token = write("job-1", "u", &report(4, ""));
        let cut = &first[..first.len() - 2];
        let upper = first.to_ascii_uppercase();
        let log = format!(
            "before\n{first}{second}after\n{of_another_job}{by_another_token}> \
             {first}{upper}{cut}\n{REPORT_MARK}\n"
        );
        assert_eq!(read(&log, "job-1", "t").unwrap().exit_code, Some(2));
        assert_eq!(read(&log, "job-2", "t").unwrap().exit_code, Some(3));
        assert_eq!(
            read(&format!("x\r\n{}\r\n", first.trim_end()), "job-1", "t").unwrap().exit_code,
            Some(1)
        );
    }

    #[test]
    fn what_a_job_prints_of_another_ones_log_is_not_its_own_report() {
        let foreign = write("job-2", "their token", &report(0, ""));
        let as_if_mine = foreign.replacen("job-2", "job-1", 1);
        for log in [
            foreign.clone(),
            as_if_mine,
            format!("kubectl logs: {foreign}"),
            "pvn-wrapper-report: {\"exitCode\": 0}\n".into(),
        ] {
            assert_eq!(read(&log, "job-1", "my token"), None, "{log}");
        }
    }

    #[test]
    fn a_report_that_is_too_long_goes_out_in_its_short_form() {
        let long = report(5, &"x".repeat(LINE_LIMIT_BYTES));
        let line = write("job-1", "t", &long);
        assert!(line.len() <= LINE_LIMIT_BYTES + 1024);
        assert_eq!(read(&line, "job-1", "t").unwrap().exit_code, Some(5));
    }

    proptest! {
        #[test]
        fn every_report_comes_back(code in any::<i32>(), words in any::<String>(), job in "[a-zA-Z0-9._-]{1,40}", token in any::<String>(), before in any::<String>()) {
            let report = report(code, &words);
            let log = format!("{before}\n{}", write(&job, &token, &report));
            prop_assert_eq!(read(&log, &job, &token), Some(report));
        }

        #[test]
        fn no_line_that_was_changed_anywhere_counts(
            at in any::<prop::sample::Index>(),
            with in any::<char>(),
        ) {
            let line = write("job-1", "token", &report(1, "words"));
            let line = line.trim_end();
            let at = at.index(line.len());
            prop_assume!(!line[at..].starts_with(with));
            let changed = format!("{}{with}{}", &line[..at], &line[at + 1..]);
            prop_assert_eq!(read(&changed, "job-1", "token"), None);
        }

        #[test]
        fn no_text_is_a_report_by_chance(log in any::<String>(), token in any::<String>()) {
            prop_assert_eq!(read(&format!("{REPORT_MARK}{log}"), "job-1", &token), None);
            prop_assert_eq!(read(&log, "job-1", &token), None);
        }
    }
}
