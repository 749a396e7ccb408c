//! What a job printed -> the few words of it that people are shown: the text of an explanation, a line of stdout, a line of
//! stderr. Read by `intake`, so that the loop waits for no disk, and only when there is something to tell: a job that ended
//! with 0 and explains nothing costs no read.

use std::io;

use schema::id::BlobId;
use schema::report::Report;

use crate::blobs::Blobs;
use crate::runner::End;

/// Name of the output file that people are shown.
pub(super) const EXPLANATION: &str = "plan-explanation";

/// Most bytes of an explanation that are kept beside the state: enough for a plan of some hundred resources; all of it
/// is in the blob. 64 KiB.
const EXPLANATION_LIMIT_BYTES: usize = 64 << 10;

/// Bytes of a stream's start or end in which a line is looked for: many times what a line holds, one read.
const LOOK_BYTES: usize = 4 << 10;

/// Most characters of a line that becomes part of a message: two lines of a terminal.
const LINE_LIMIT_CHARS: usize = 160;

/// The words of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// Text of the explanation, cut at [`EXPLANATION_LIMIT_BYTES`].
    pub(super) explanation: Option<String>,
    /// First line of stdout that is not blank; read unless the job ended with 0.
    pub(super) stdout: Option<String>,
    /// Last line of stderr that is not blank; read unless the job ended with 0.
    pub(super) stderr: Option<String>,
}

impl Words {
    /// What a fetch that found work says about it: the explanation's first line, else what it printed.
    pub(super) fn headline(&self) -> Option<String> {
        let explained = self.explanation.as_ref().and_then(|text| first_line(text.as_bytes()));
        explained.or_else(|| self.stdout.clone()).or_else(|| self.stderr.clone())
    }
}

/// Reads the words of a job whose streams and files are in the blob store. What cannot be read is left out: it is for
/// people only.
pub(super) async fn read(blobs: &Blobs, end: &End) -> Words {
    let End::Reported(report) = end else { return Words::default() };
    let explanation = report.files.iter().find(|file| file.name == EXPLANATION).and_then(|file| file.content_blob_id);
    let failed = report.exit_code != Some(0) && report.exec_error.is_none();
    if explanation.is_none() && !failed {
        return Words::default();
    }
    let (stdout, stderr) = streams(report, failed);
    let blobs = blobs.clone();
    let reading = move || {
        let text = |id| tell(id, blobs.read(id, 0, EXPLANATION_LIMIT_BYTES + 1));
        Words {
            explanation: explanation.and_then(text).map(|bytes| cut(&bytes)),
            stdout: stdout.and_then(|id| tell(id, blobs.read(id, 0, LOOK_BYTES))).and_then(|bytes| first_line(&bytes)),
            stderr: stderr.and_then(|id| tell(id, tail(&blobs, id))).and_then(|bytes| last_line(&bytes)),
        }
    };
    tokio::task::spawn_blocking(reading).await.unwrap_or_default()
}

fn streams(report: &Report, wanted: bool) -> (Option<BlobId>, Option<BlobId>) {
    if wanted { (report.stdout_blob_id, report.stderr_blob_id) } else { (None, None) }
}

fn tail(blobs: &Blobs, id: BlobId) -> io::Result<Option<Vec<u8>>> {
    let Some(size) = blobs.size(id)? else { return Ok(None) };
    blobs.read(id, size.saturating_sub(LOOK_BYTES as u64), LOOK_BYTES)
}

fn tell(blob: BlobId, read: io::Result<Option<Vec<u8>>>) -> Option<Vec<u8>> {
    read.unwrap_or_else(|error| {
        tracing::warn!(%blob, %error, "what a job printed cannot be read; people see less of it");
        None
    })
}

/// Cuts a text for people at its limit, at a whole character, and says so.
fn cut(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= EXPLANATION_LIMIT_BYTES {
        return text.into_owned();
    }
    let end = (0..=EXPLANATION_LIMIT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}\n… cut at 64 KiB; the whole text is in the output file `{EXPLANATION}` of the fetch", &text[..end])
}

fn first_line(bytes: &[u8]) -> Option<String> {
    lines(bytes).find_map(plain)
}

fn last_line(bytes: &[u8]) -> Option<String> {
    lines(bytes).rev().find_map(plain)
}

/// A carriage return ends a line too: progress bars draw over themselves.
fn lines(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    bytes.split(|byte| matches!(byte, b'\n' | b'\r'))
}

/// The line without colours and control characters, and not too long; `None` when nothing is left.
fn plain(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let mut rest = text.chars();
    let mut kept = String::new();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => skip_sequence(&mut rest),
            '\t' => kept.push(' '),
            control if control.is_control() => {}
            other => kept.push(other),
        }
    }
    let kept = kept.trim();
    match kept.char_indices().nth(LINE_LIMIT_CHARS) {
        _ if kept.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", kept[..end].trim_end())),
        None => Some(kept.to_owned()),
    }
}

/// Skips what follows ESC: `[`, parameters, and a final byte from `@` to `~`. Source: ECMA-48, 5.4. Any other sequence has
/// one character.
fn skip_sequence(rest: &mut std::str::Chars<'_>) {
    if rest.next() == Some('[') {
        rest.find(|next| ('@'..='~').contains(next));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::blobs::Keep;

    #[test]
    fn a_line_is_the_first_or_last_that_says_something_without_colours() {
        let check = |text: &str, first: Option<&str>, last: Option<&str>| {
            assert_eq!((first_line(text.as_bytes()).as_deref(), last_line(text.as_bytes()).as_deref()), (first, last), "{text:?}");
        };
        check("", None, None);
        check("\n \r\n\t\n", None, None);
        check("one", Some("one"), Some("one"));
        check("\n  one \n\n two\n\n", Some("one"), Some("two"));
        check("\u{1b}[1;31mError:\u{1b}[0m no\tsuch bucket\n\u{1b}[0m\n", Some("Error: no such bucket"), Some("Error: no such bucket"));
        check("10 %\r20 %\rdone\u{7}\r", Some("10 %"), Some("done"));
        check("a\u{1b}(Bb\u{1b}", Some("aBb"), Some("aBb"));
    }

    #[test]
    fn a_long_line_is_cut_at_a_whole_character() {
        let line = first_line("ä".repeat(500).as_bytes()).unwrap();
        assert_eq!(line, "ä".repeat(LINE_LIMIT_CHARS) + "…");
        assert!(first_line(&[0xff, b'x']).unwrap().ends_with('x'));
    }

    #[test]
    fn a_long_explanation_is_cut_and_says_so() {
        assert_eq!(cut(b"short"), "short");
        let long = cut("ä".repeat(40_000).as_bytes());
        assert!(long.contains("… cut at 64 KiB") && long.len() < EXPLANATION_LIMIT_BYTES + 200);
    }

    #[tokio::test]
    async fn only_a_job_that_has_something_to_tell_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
        let noise = "noise\n".repeat(2_000);
        let put = |text: &str| blobs.put(text.as_bytes(), Keep::Lazy).unwrap();
        let report = |code: i32, files: serde_json::Value| {
            let whole = json!({
                "exitCode": code, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "0", "durationNs": "0",
                "stdoutBlobId": put(&format!("\n2 to add\n{noise}")), "stderrBlobId": put(&format!("{noise}no credentials\n")), "files": files,
            });
            End::Reported(Box::new(serde_json::from_value(whole).unwrap()))
        };
        assert_eq!(read(&blobs, &report(0, json!([]))).await, Words::default());
        let words = read(&blobs, &report(2, json!([]))).await;
        assert_eq!((words.stdout.as_deref(), words.stderr.as_deref()), (Some("2 to add"), Some("no credentials")));
        assert_eq!(words.headline().as_deref(), Some("2 to add"));
        let explained = json!([{"name": EXPLANATION, "contentBlobId": put("Plan: 1 to add\nmore")}]);
        let words = read(&blobs, &report(2, explained.clone())).await;
        assert_eq!(words.headline().as_deref(), Some("Plan: 1 to add"));
        let words = read(&blobs, &report(0, explained)).await;
        assert_eq!((words.explanation.as_deref(), words.stderr), (Some("Plan: 1 to add\nmore"), None));
    }
}
