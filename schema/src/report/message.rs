//! The termination message: the short form of a report where the kubelet reads it. Written by the
//! wrapper, read by the scheduler.
//!
//! Whoever runs in the container may write there, a wrapper within the command, say. So a wrapper
//! that has a job's token signs what it writes: the last field of the JSON object is `mac`, the
//! HMAC-SHA256 of `JOB JSON` under the token as in [`super::line`], where JSON is the object
//! without that field.

use super::Report;
use super::line::{hexadecimal, mac, verify};

/// Before and after the digits of the signature, which stand in place of the closing brace.
const BEFORE: &str = ",\"mac\":\"";
const AFTER: &str = "\"}";
const DIGITS: usize = 64;

/// A message of at most `limit` bytes, signed with the token that speaks for the job, if there is
/// one.
pub fn write(report: &Report, signer: Option<(&str, &str)>, limit: usize) -> Vec<u8> {
    let Some((job, token)) = signer else { return report.shortened(limit) };
    let mut text = report.shortened(limit.saturating_sub(BEFORE.len() + DIGITS + AFTER.len() - 1));
    let digits = hexadecimal(mac(job, token, &text));
    text.pop();
    [BEFORE, &digits, AFTER].iter().for_each(|part| text.extend_from_slice(part.as_bytes()));
    text
}

/// The report in a message of anybody's.
pub fn read(text: &str) -> Option<Report> {
    serde_json::from_str(text.trim()).ok()
}

/// The report in a message that was written for this job by somebody with this token.
pub fn read_signed(text: &str, job: &str, token: &str) -> Option<Report> {
    let (object, digits) = text.trim().strip_suffix(AFTER)?.rsplit_once(BEFORE)?;
    let object = format!("{object}}}");
    verify(job, token, &object, digits)?;
    serde_json::from_str(&object).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_message_is_read_by_whoever_has_the_token_and_is_json_for_all() {
        let report =
            Report { exit_code: Some(3), bad_output: Some("\"}".to_owned()), ..Report::default() };
        let text = String::from_utf8(write(&report, Some(("job-1", "t")), 4096)).unwrap();
        assert_eq!(read_signed(&format!(" {text}\n"), "job-1", "t"), Some(report.clone()));
        assert_eq!(read(&text), Some(report.clone()));
        for (job, token) in [("job-2", "t"), ("job-1", "u"), ("job-1", "")] {
            assert_eq!(read_signed(&text, job, token), None);
        }
        let bare = String::from_utf8(write(&report, None, 4096)).unwrap();
        assert_eq!((read(&bare), read_signed(&bare, "job-1", "t")), (Some(report), None));
        for changed in [
            text.replace(":3", ":0"),
            text.replace("\"mac\":\"", "\"mac\":\"0"),
            text[..text.len() - 1].to_owned(),
        ] {
            assert_eq!(read_signed(&changed, "job-1", "t"), None, "{changed}");
        }
    }

    #[test]
    fn a_message_has_room_for_its_signature() {
        let report = Report { exec_error: Some("x".repeat(10_000)), ..Report::default() };
        let text = write(&report, Some(("job-1", "t")), 4096);
        assert!(text.len() <= 4096, "{}", text.len());
        assert!(read_signed(std::str::from_utf8(&text).unwrap(), "job-1", "t").is_some());
    }
}
