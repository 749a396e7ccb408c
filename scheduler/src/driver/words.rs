//! What a job printed -> the few words of it that people are shown: the text of an explanation, a
//! line of stdout, a line of stderr. Read by `intake`, so that the loop waits for no disk, and only
//! when there is something to tell: a job that ended with 0, prints nothing and explains nothing
//! costs no read.

use std::io;

use schema::id::{BlobId, JobId};
use schema::mask::{Masker, Secrets};
use schema::report::Report;
use schema::shown::{cut_line, seen};
use schema::spool::EXPLANATION;

use crate::blobs::Blobs;
use crate::runner::End;

/// Most bytes of an explanation that are kept beside the state: enough for a plan of some hundred
/// resources; all of it is in the blob. 64 KiB.
const EXPLANATION_LIMIT_BYTES: usize = 64 << 10;

/// How many of them are its end, where it is cut: tools sum up there, and what is hidden in a long
/// text is put there.
const TAIL_BYTES: usize = 16 << 10;

/// Bytes of a stream's start or end in which a line is looked for: many times what a line holds,
/// one read.
const LOOK_BYTES: usize = 4 << 10;

/// Bytes of the longest output of which we look whether it is a FetchOutput although it was not to
/// be one. 64 KiB.
const DOCUMENT_LIMIT_BYTES: usize = 64 << 10;

/// Most characters of a line that becomes part of a message: five lines of a terminal. What the
/// wrapper says of a tool that failed has the command that helps at its end.
const LINE_LIMIT_CHARS: usize = 400;

/// The words of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// Text of the explanation; of one longer than [`EXPLANATION_LIMIT_BYTES`] head and tail.
    pub(super) explanation: Option<String>,
    /// First line of stdout that is not blank; read unless the job ended with 0.
    pub(super) stdout: Option<String>,
    /// Last line of stderr that is not blank; read unless the job ended with 0.
    pub(super) stderr: Option<String>,
    /// Whether stdout, which was not to be structured, looks as a FetchOutput does.
    pub(super) has_objects: bool,
    /// Where what is kept of stdout is not what its wrapper counted: a digest that no other job's
    /// output has. Read unless the job ended with 0.
    pub(super) cut: Option<BlobId>,
}

impl Words {
    /// What a fetch that found work says about it: the explanation's first line, else what it
    /// printed.
    pub(super) fn headline(&self) -> Option<String> {
        let explained = self.explanation.as_ref().and_then(|text| first_line(text.as_bytes()));
        explained.or_else(|| self.stdout.clone()).or_else(|| self.stderr.clone())
    }
}

/// Whether there is anything to read.
pub(super) fn has_any(end: &End) -> bool {
    match end {
        End::Reported(report) => {
            explanation(report).is_some() || failed(report) || unchecked(report).is_some()
        }
        _ => false,
    }
}

/// What a fetch left for people, if it left that.
pub(super) fn explanation(report: &Report) -> Option<BlobId> {
    report.files.iter().find(|file| file.name == EXPLANATION).and_then(|file| file.content_blob_id)
}

fn failed(report: &Report) -> bool {
    report.exit_code != Some(0) && report.exec_error.is_none()
}

/// What a job printed that ended with 0 and whose output nobody checked, unless it is long.
fn unchecked(report: &Report) -> Option<BlobId> {
    let is_short = (1..=DOCUMENT_LIMIT_BYTES as u64).contains(&report.stdout_bytes);
    report.stdout_blob_id.filter(|_| is_short && !failed(report) && report.structured.is_none())
}

/// Reads the words of a job whose streams and files are in the blob store, without the secrets that
/// it was given: not every job has a wrapper of ours that hides them. What cannot be read is left
/// out: it is for people only.
pub(super) async fn read(blobs: &Blobs, job: JobId, end: &End, secrets: Option<Secrets>) -> Words {
    let End::Reported(report) = end else { return Words::default() };
    if !has_any(end) {
        return Words::default();
    }
    let explanation = explanation(report);
    let (stdout, stderr) = streams(report, failed(report));
    let unchecked = unchecked(report);
    // Of what nobody counted nobody knows whether it is all.
    let counted = Some((report.stdout_blob_id, report.stdout_bytes))
        .filter(|(_, bytes)| *bytes > 0 && failed(report));
    let blobs = blobs.clone();
    let reading = move || {
        // What may be the beginning of a secret at the end of a part is held back with the rest of
        // it.
        let hide = |bytes: Vec<u8>, whole| match &secrets {
            Some(secrets) => Masker::default().push(secrets, &bytes, whole),
            None => bytes,
        };
        let start = |id, limit| {
            let bytes = tell(id, blobs.read(id, 0, limit))?;
            let whole = bytes.len() < limit;
            Some((hide(bytes, whole), whole))
        };
        let end = |id, limit| {
            // A secret that begins before what is read is over within the margin, which nobody is
            // shown.
            let margin = secrets.as_ref().map_or(0, |secrets| 2 * secrets.longest());
            let (bytes, is_whole) = tell(id, tail(&blobs, id, limit + margin))?;
            let Some(secrets) = &secrets else { return Some(bytes) };
            let mut masker = Masker::default();
            let (before, shown) =
                bytes.split_at(if is_whole { 0 } else { margin.min(bytes.len()) });
            masker.push(secrets, before, false);
            Some(masker.push(secrets, shown, true))
        };
        let explained = |id| {
            let size = tell(id, blobs.size(id))?;
            if size <= EXPLANATION_LIMIT_BYTES as u64 {
                let (bytes, _) = start(id, EXPLANATION_LIMIT_BYTES + 1)?;
                return Some(String::from_utf8_lossy(&bytes).into_owned());
            }
            let (head, _) = start(id, EXPLANATION_LIMIT_BYTES - TAIL_BYTES)?;
            Some(cut(job, size, &head, &end(id, TAIL_BYTES)?))
        };
        // A line is told with blanks for its tabs, which may be what kept a secret from being
        // known.
        let hide_line =
            |line: String| String::from_utf8_lossy(&hide(line.into_bytes(), true)).into_owned();
        let size = |id| tell(id, blobs.size(id)).unwrap_or_default();
        Words {
            cut: counted
                .filter(|(id, bytes)| id.map_or(0, size) != *bytes)
                .map(|(id, _)| of_this_job(job, id)),
            explanation: explanation.and_then(explained),
            has_objects: unchecked
                .and_then(|id| start(id, DOCUMENT_LIMIT_BYTES))
                .is_some_and(|(bytes, _)| has_objects(&bytes)),
            stdout: stdout
                .and_then(|id| start(id, LOOK_BYTES))
                .and_then(|(bytes, _)| first_line(&bytes))
                .map(hide_line),
            stderr: stderr
                .and_then(|id| end(id, LOOK_BYTES))
                .and_then(|bytes| last_line(&bytes))
                .map(hide_line),
        }
    };
    tokio::task::spawn_blocking(reading).await.unwrap_or_default()
}

/// Whether this is meant to be a FetchOutput: one with a mistake in it is.
fn has_objects(bytes: &[u8]) -> bool {
    let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    is_object
        && serde_json::from_slice::<serde_json::Value>(bytes)
            .is_ok_and(|value| value["objects"].is_array())
}

/// What stands for output that is not whole, of which other output could be the same part.
fn of_this_job(job: JobId, kept: Option<BlobId>) -> BlobId {
    BlobId::of(format!("{job} {}", kept.map(|id| id.to_string()).unwrap_or_default()).as_bytes())
}

fn streams(report: &Report, wanted: bool) -> (Option<BlobId>, Option<BlobId>) {
    if wanted { (report.stdout_blob_id, report.stderr_blob_id) } else { (None, None) }
}

/// The last bytes, and whether these are all.
fn tail(blobs: &Blobs, id: BlobId, limit: usize) -> io::Result<Option<(Vec<u8>, bool)>> {
    let Some(size) = blobs.size(id)? else { return Ok(None) };
    let from = size.saturating_sub(limit as u64);
    Ok(blobs.read(id, from, limit)?.map(|bytes| (bytes, from == 0)))
}

fn tell<T>(blob: BlobId, read: io::Result<Option<T>>) -> Option<T> {
    read.unwrap_or_else(|error| {
        tracing::warn!(%blob, %error, "what a job printed cannot be read; people see less of it");
        None
    })
}

/// What is shown of a text of `size` bytes that is too long: its head, its tail, both in whole
/// lines where lines are not too long, and between them the command that prints all of it.
fn cut(job: JobId, size: u64, head: &[u8], tail: &[u8]) -> String {
    let is_end = |byte: &u8| *byte == b'\n';
    let head = match head.iter().rposition(is_end) {
        Some(at) if head.len() - at <= LOOK_BYTES => &head[..at],
        _ => whole_characters(head),
    };
    let tail = match tail.iter().position(is_end) {
        Some(at) if at < LOOK_BYTES => &tail[at + 1..],
        _ => &tail[tail.iter().take_while(|byte| is_inner(**byte)).count()..],
    };
    let told = format!(
        "these are head and tail of {size} bytes; all of them: `pvnctl jobs files {job} \
         {EXPLANATION}`"
    );
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    format!("{head}\n{}\n{tail}", cut_line(&told))
}

/// Whether a byte is not the first of its character.
fn is_inner(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The text without the character at its end that is cut.
fn whole_characters(text: &[u8]) -> &[u8] {
    match text.utf8_chunks().last() {
        Some(last) if last.invalid().len() < 4 => &text[..text.len() - last.invalid().len()],
        _ => text,
    }
}

fn first_line(bytes: &[u8]) -> Option<String> {
    telling(lines(bytes))
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let said: Vec<&[u8]> = lines(bytes).collect();
    let unwarned = without_warnings(&said);
    telling(unwarned.into_iter().rev()).or_else(|| telling(said.into_iter().rev()))
}

/// The lines that are not in the frame of a warning: terraform sums up with those what it did not
/// fail of.
fn without_warnings<'a>(said: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let is = |at: usize, edge: &str| {
        said.get(at).and_then(|line| plain(line)).is_some_and(|line| line.starts_with(edge))
    };
    let mut is_in_warning = false;
    let mut kept = Vec::new();
    for (at, line) in said.iter().enumerate() {
        is_in_warning |= is(at, "╷") && is(at + 1, "│ Warning: ");
        if !is_in_warning {
            kept.push(*line);
        }
        is_in_warning &= !is(at, "╵");
    }
    kept
}

/// The first of these lines that says something: a frame's edge or a closing brace does not, unless
/// there is nothing else.
fn telling<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Option<String> {
    let mut words = lines.clone().filter_map(plain);
    let says = |line: &String| line.chars().any(char::is_alphanumeric);
    words.find(says).or_else(|| lines.clone().find_map(plain))
}

/// A carriage return ends a line too: progress bars draw over themselves.
fn lines(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
    bytes.split(|byte| matches!(byte, b'\n' | b'\r'))
}

/// The line as people see it, and not too long; `None` when nothing is left.
fn plain(line: &[u8]) -> Option<String> {
    let seen = seen(&String::from_utf8_lossy(line)).replace('\t', " ");
    let kept = seen.trim();
    match kept.char_indices().nth(LINE_LIMIT_CHARS) {
        _ if kept.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", kept[..end].trim_end())),
        None => Some(kept.to_owned()),
    }
}

#[cfg(test)]
mod tests;
