//! The short form of a report, for places that take little: the kubelet's termination message.
//! Called by the wrapper.

use super::{LeakedProcess, Report};

/// Longest texts, bytes, in the order in which they are tried.
const TEXT_LIMITS_BYTES: [usize; 3] = [1024, 256, 64];

impl Report {
    /// The report as JSON of at most `limit` bytes, always whole: what can be had elsewhere goes
    /// first (streams, the structured document, processes left), then long texts become
    /// shorter, then files and texts go. How it ended, sizes and content addresses stay to the
    /// last; 1024 bytes always suffice for them.
    pub fn shortened(&self, limit: usize) -> Vec<u8> {
        let mut short = self.clone();
        let steps: [&dyn Fn(&mut Self); 5] = [
            &|_| {},
            &|short| (short.stdout_inline, short.stderr_inline) = (None, None),
            &|short| short.structured = None,
            &|short| short.leaked.iter_mut().for_each(shorten),
            &|short| short.leaked.truncate(3),
        ];
        for step in steps {
            step(&mut short);
            if let Some(text) = short.within(limit) {
                return text;
            }
        }
        for most in TEXT_LIMITS_BYTES {
            short.texts().for_each(|text| cut(text, most));
            if let Some(text) = short.within(limit) {
                return text;
            }
        }
        short.leaked.clear();
        while !short.files.is_empty() {
            if let Some(text) = short.within(limit) {
                return text;
            }
            short.files.pop();
        }
        for text in [
            &mut short.hostname,
            &mut short.start_timestamp_ns,
            &mut short.duration_ns,
            &mut short.version,
        ] {
            cut(text, 32);
        }
        for signal in short.signal.iter_mut().chain(&mut short.stopped_by) {
            cut(signal, 32);
        }
        short.within(limit).unwrap_or_else(|| {
            let stopped_by = short.stopped_by.clone();
            let Self { exit_code, surroundings, timed_out, .. } = *self;
            let least = Self { exit_code, surroundings, timed_out, stopped_by, ..Self::default() };
            least.within(usize::MAX).expect("a report is JSON")
        })
    }

    fn within(&self, limit: usize) -> Option<Vec<u8>> {
        serde_json::to_vec(self).ok().filter(|text| text.len() <= limit)
    }

    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let errors = self.files.iter_mut().filter_map(|file| file.error.as_mut());
        let arguments = self.leaked.iter_mut().flat_map(|left| &mut left.argv);
        self.exec_error.iter_mut().chain(&mut self.bad_output).chain(errors).chain(arguments)
    }
}

/// The name of the program is enough to find it.
fn shorten(left: &mut LeakedProcess) {
    left.argv.truncate(1);
}

/// Cuts at a character, and says that it did.
fn cut(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let mut at = most.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.truncate(at);
    text.push('…');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::id::BlobId;
    use crate::report::{OutputError, OutputFile, Structured, StructuredKind};
    use crate::wire::TERMINATION_LIMIT_BYTES;

    /// Texts with all that JSON makes longer.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z ]{0,40}", "\\PC{0,3000}", "[\u{0}-\u{1f}\"\\\\]{0,2000}"]
    }

    fn leaked(argv: Vec<String>) -> LeakedProcess {
        LeakedProcess { pid: i32::MAX, argv, alive: true }
    }

    fn file(name: String, error: Option<String>) -> OutputFile {
        OutputFile { name, content_blob_id: Some(BlobId::of(b"c")), error }
    }

    prop_compose! {
        fn reports()(
            exit_code in prop::option::of(0..256),
            signal in prop::option::of("SIG[A-Z0-9+]{2,9}"),
            (exec_error, bad_output) in (prop::option::of(text()), prop::option::of(text())),
            hostname in text(),
            inline in prop::option::of("[A-Za-z0-9]{0,9000}"),
            argv in prop::collection::vec(prop::collection::vec(text(), 0..5), 0..9),
            errors in prop::collection::vec(("[a-z]{1,128}", prop::option::of(text())), 0..40),
            value in prop::option::of(text()),
            (oom_killed, timed_out, truncated) in any::<(bool, bool, bool)>(),
            bytes in any::<u64>(),
        ) -> Report {
            Report {
                exit_code, signal, exec_error, bad_output, hostname,
                oom_killed, timed_out, truncated,
                stopped_by: Some("SIGTERM".into()), killed_after_grace: true,
                core_dumped: true, surroundings: true, output_incomplete: true,
                stdout_bytes: bytes, stderr_bytes: bytes, lost_bytes: bytes,
                stdout_head_bytes: Some(bytes), stderr_head_bytes: Some(bytes),
                stdout_blob_id: Some(BlobId::of(b"a")), stderr_blob_id: Some(BlobId::of(b"b")),
                stdout_inline: inline,
                leaked: argv.into_iter().map(leaked).collect(),
                files: errors.into_iter().map(|(name, error)| file(name, error)).collect(),
                structured: value.map(|value| Structured {
                    kind: StructuredKind::Fetch,
                    value: Some(json!({ "objects": [value] })),
                    errors: vec![OutputError { pointer: "/x".into(), message: value }],
                }),
                version: "0.1.0".into(), start_timestamp_ns: u64::MAX.to_string(), duration_ns: u64::MAX.to_string(),
                ..Report::default()
            }
        }
    }

    proptest! {
        #[test]
        fn a_termination_message_is_whole_and_says_how_it_ended(report in reports()) {
            let text = report.shortened(TERMINATION_LIMIT_BYTES);
            prop_assert!(text.len() <= TERMINATION_LIMIT_BYTES, "{} bytes", text.len());
            let short: Report = serde_json::from_slice(&text).unwrap();
            let facts = |report: &Report| {
                let signals = [report.signal.clone(), report.stopped_by.clone()];
                (
                    report.exit_code, signals, report.oom_killed, report.timed_out,
                    report.stdout_bytes, report.stdout_blob_id, report.stderr_blob_id,
                    report.stdout_head_bytes, report.lost_bytes,
                )
            };
            prop_assert_eq!(facts(&short), facts(&report));
            prop_assert_eq!(short.exec_error.is_some(), report.exec_error.is_some());
        }

        #[test]
        fn a_kilobyte_is_always_enough(report in reports(), limit in 1024_usize..5000) {
            let text = report.shortened(limit);
            prop_assert!(text.len() <= limit, "{} bytes of {limit}", text.len());
            let short: Report = serde_json::from_slice(&text).unwrap();
            prop_assert_eq!(short.exit_code, report.exit_code);
        }
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        let report = Report {
            exit_code: Some(2),
            stdout_inline: Some("aGVsbG8=".into()),
            ..Report::default()
        };
        assert_eq!(
            serde_json::from_slice::<Report>(&report.shortened(TERMINATION_LIMIT_BYTES)).unwrap(),
            report
        );
    }

    #[test]
    fn what_can_be_had_elsewhere_goes_first() {
        let report = Report {
            exec_error: Some("x".repeat(3000)),
            stdout_inline: Some("y".repeat(3000)),
            files: vec![OutputFile { name: "plan".into(), content_blob_id: None, error: None }],
            ..Report::default()
        };
        let short: Report =
            serde_json::from_slice(&report.shortened(TERMINATION_LIMIT_BYTES)).unwrap();
        assert_eq!(short, Report { stdout_inline: None, ..report });
    }
}
