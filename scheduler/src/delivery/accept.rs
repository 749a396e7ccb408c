//! Whether a report can be accepted: all that it names has come and is what it says. Then streams
//! and files become blobs, and the report names them. Blocks on the disk. Also what is made of the
//! streams of a job that never delivered.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::check;
use schema::id::BlobId;
use schema::output::OUTPUT_LIMIT_BYTES;
use schema::report::{INLINE_LIMIT_BYTES, Report, Structured, StructuredKind};
use schema::spool::{Stream, is_output_name};
use schema::time::Timestamp;
use schema::wire::Wanted;

use super::growing::GrowingFile;
use super::staging::{FILES_LIMIT, STREAM_LIMIT_BYTES, Staging};
use crate::blobs::{Blobs, Keep};
use crate::runner::evidence;

/// What becomes of a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReportVerdict {
    /// All is here. The report as it is kept: with the ids of its blobs, and nothing inline.
    Accepted(Box<Report>),
    /// Bytes are missing or wrong.
    Wanted(Wanted),
    /// It contradicts itself; why, for people.
    Wrong(String),
    /// It names more than is kept; why, for people.
    TooMuch(String),
}

/// Where one stream of a report is.
enum StreamCheck {
    Inline(Vec<u8>, BlobId),
    Uploaded(BlobId),
    Nowhere,
    Wanted(u64),
    Wrong(String),
    TooMuch,
}

/// What is known here of a job whose report comes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReportedJob {
    /// What it is to print, if a document.
    pub(super) expect: Option<StructuredKind>,
    /// It was ended because its time is over, which its wrapper need not know: what ended from
    /// then on did so because of that.
    pub(super) over_time: Option<Timestamp>,
    /// Whether the sender is told that it is accepted before the driver has stored it.
    pub(super) answers_first: bool,
}

/// Looks whether a report can be accepted, and accepts it.
pub(super) fn judge(
    staging: &mut Staging,
    mut report: Box<Report>,
    asked: ReportedJob,
    blobs: &Blobs,
) -> io::Result<ReportVerdict> {
    if let Err(why) = contradiction(&report) {
        return Ok(ReportVerdict::Wrong(why));
    }
    let mut wanted = Wanted::default();
    let mut found = Vec::new();
    for stream in Stream::ALL {
        let (held, asked) = staging.stream_and_asked(stream);
        let at = look(held, stream, &report, asked)?;
        match at {
            StreamCheck::Wrong(why) => return Ok(ReportVerdict::Wrong(why)),
            StreamCheck::TooMuch => {
                let name = stream.as_str();
                return Ok(ReportVerdict::TooMuch(format!(
                    "{name} is longer than the {STREAM_LIMIT_BYTES} bytes that are kept of it; \
                     let the wrapper cut it with --max-output"
                )));
            }
            StreamCheck::Wanted(offset) => match stream {
                Stream::Stdout => wanted.stdout = Some(offset),
                Stream::Stderr => wanted.stderr = Some(offset),
            },
            StreamCheck::Inline(..) | StreamCheck::Uploaded(_) | StreamCheck::Nowhere => {
                found.push((stream, at))
            }
        }
    }
    for file in &report.files {
        let Some(id) = file.content_blob_id else { continue };
        let held = staging.file(&file.name).map(GrowingFile::digest).transpose()?;
        if held != Some(id) {
            staging.drop_file(&file.name)?;
            wanted.files.push(file.name.clone());
        }
    }
    if wanted != Wanted::default() {
        return Ok(ReportVerdict::Wanted(wanted));
    }
    staging.close();
    let keep = if asked.answers_first { Keep::Synced } else { Keep::Lazy };
    for (stream, at) in found {
        let id = match at {
            StreamCheck::Inline(bytes, id) => {
                blobs.put(&bytes, keep)?;
                Some(id)
            }
            StreamCheck::Uploaded(id) => {
                blobs.take(staging.stream(stream).path(), id, keep)?;
                Some(id)
            }
            _ => None,
        };
        set(&mut report, stream, id);
    }
    for file in &report.files {
        if let (Some(id), Some(held)) = (file.content_blob_id, staging.file(&file.name)) {
            blobs.take(held.path(), id, Keep::Synced)?;
        }
    }
    // Nothing of it was uploaded.
    report.order_blob_id = None;
    report.timed_out |= evidence::is_since(asked.over_time, evidence::ended_at(&report));
    check_output(&mut report, asked.expect, blobs)?;
    staging.keep_report(&report, asked.answers_first)?;
    Ok(ReportVerdict::Accepted(report))
}

/// Checks what a command printed that was to print a document, when its wrapper did not: one that
/// is older, or was told to expect nothing, or is not there, so that standard output is the
/// container's log.
pub(super) fn check_output(
    report: &mut Report,
    expect: Option<StructuredKind>,
    blobs: &Blobs,
) -> io::Result<()> {
    let Some(kind) = expect.filter(|_| report.structured.is_none() && report.exit_code == Some(0))
    else {
        return Ok(());
    };
    let printed = match report.stdout_blob_id {
        // One byte more says that it is too long.
        Some(id) => blobs.read(id, 0, OUTPUT_LIMIT_BYTES + 1)?.unwrap_or_default(),
        None => Vec::new(),
    };
    let (value, errors) = match check::check(&printed, kind) {
        Ok(value) => (Some(value), Vec::new()),
        Err(errors) => (None, errors),
    };
    report.structured = Some(Structured { kind, value, errors });
    Ok(())
}

/// What is refused before anything is looked for.
fn contradiction(report: &Report) -> Result<(), String> {
    if let Some(code) = report.exit_code.filter(|code| !(0..=255).contains(code)) {
        return Err(format!("exitCode is {code}, and an exit code is 0 to 255"));
    }
    if report.files.len() > FILES_LIMIT {
        return Err(format!(
            "files has {} entries and a job may upload {FILES_LIMIT}",
            report.files.len()
        ));
    }
    for (index, file) in report.files.iter().enumerate() {
        if !is_output_name(&file.name) {
            return Err(format!(
                "files[{index}].name is `{}`, which cannot name a file",
                file.name
            ));
        }
        if report.files[..index].iter().any(|other| other.name == file.name) {
            return Err(format!("files names `{}` twice", file.name));
        }
    }
    Ok(())
}

fn look(
    held: &mut GrowingFile,
    stream: Stream,
    report: &Report,
    asked: &mut Option<u64>,
) -> io::Result<StreamCheck> {
    let name = stream.as_str();
    let (claimed, inline, bytes) = match stream {
        Stream::Stdout => (report.stdout_blob_id, &report.stdout_inline, report.stdout_bytes),
        Stream::Stderr => (report.stderr_blob_id, &report.stderr_inline, report.stderr_bytes),
    };
    if let Some(text) = inline {
        let Ok(content) = STANDARD.decode(text) else {
            return Ok(StreamCheck::Wrong(format!("{name}Inline is not base64")));
        };
        if content.len() > INLINE_LIMIT_BYTES {
            return Ok(StreamCheck::Wrong(format!(
                "{name}Inline has {} bytes and at most {INLINE_LIMIT_BYTES} ride in a report",
                content.len()
            )));
        }
        let id = BlobId::of(&content);
        return Ok(match claimed {
            Some(claimed) if claimed != id => StreamCheck::Wrong(format!(
                "{name}Inline has the digest {id} and {name}BlobId is {claimed}"
            )),
            _ => StreamCheck::Inline(content, id),
        });
    }
    // How long it should be; unknown when something was left out.
    let whole =
        (!report.truncated && report.lost_bytes == 0 && !report.output_incomplete).then_some(bytes);
    let length = held.length();
    let fits = match claimed {
        Some(claimed) => held.digest()? == claimed,
        None => whole.is_none_or(|whole| whole == length),
    };
    Ok(match (fits, whole) {
        (true, _) if length == 0 && claimed.is_none() => StreamCheck::Nowhere,
        (true, _) => StreamCheck::Uploaded(held.digest()?),
        (false, Some(whole)) if length < whole.min(STREAM_LIMIT_BYTES) => {
            StreamCheck::Wanted(length)
        }
        (false, Some(whole)) if whole > STREAM_LIMIT_BYTES => StreamCheck::TooMuch,
        // Too little, or wrong? The first time the rest is asked for; if nothing came, all of it.
        (false, None) if *asked != Some(length) => {
            *asked = Some(length);
            StreamCheck::Wanted(length)
        }
        (false, None) if length >= STREAM_LIMIT_BYTES => StreamCheck::TooMuch,
        (false, _) => {
            *asked = None;
            held.clear()?;
            StreamCheck::Wanted(0)
        }
    })
}

fn set(report: &mut Report, stream: Stream, id: Option<BlobId>) {
    match stream {
        Stream::Stdout => (report.stdout_blob_id, report.stdout_inline) = (id, None),
        Stream::Stderr => (report.stderr_blob_id, report.stderr_inline) = (id, None),
    }
}

/// Why an output is missing that the report names. A file never comes by the way that the report
/// did.
const NOT_UPLOADED: &str = "it was never uploaded: the job's wrapper did not get through to this \
                            scheduler; on a cluster `pvnctl runtimes check` of its runtime tries \
                            that way";

/// Makes blobs of what came of the streams of a job that is told as ended without having delivered:
/// `report` is what else is known of it, and names what is here afterwards.
pub(super) fn salvage_streams(
    staging: &mut Staging,
    report: &mut Report,
    blobs: &Blobs,
) -> io::Result<()> {
    staging.close();
    for stream in Stream::ALL {
        let (claimed, inline) = match stream {
            Stream::Stdout => (report.stdout_blob_id, report.stdout_inline.take()),
            Stream::Stderr => (report.stderr_blob_id, report.stderr_inline.take()),
        };
        if let Some(content) = inline.and_then(|text| STANDARD.decode(text).ok()) {
            set(report, stream, Some(blobs.put(&content, Keep::Lazy)?));
            continue;
        }
        let held = staging.stream(stream);
        let id = held.digest()?;
        if held.length() > 0 {
            blobs.take(held.path(), id, Keep::Lazy)?;
        }
        report.output_incomplete |= claimed.is_none_or(|claimed| claimed != id);
        set(report, stream, (held.length() > 0).then_some(id));
    }
    Ok(())
}

/// The same of its files.
pub(super) fn salvage_files(
    staging: &mut Staging,
    report: &mut Report,
    blobs: &Blobs,
) -> io::Result<()> {
    for file in report.files.clone() {
        let Some(claimed) = file.content_blob_id else { continue };
        let Some(held) = staging.file(&file.name) else {
            report.lose(&file.name, NOT_UPLOADED);
            continue;
        };
        if held.digest()? == claimed {
            blobs.take(held.path(), claimed, Keep::Synced)?;
        } else {
            report.lose(&file.name, "what was uploaded is not what the wrapper had");
        }
    }
    Ok(())
}

/// Whether `received` is the report that is kept as `kept`: the same words, however its streams
/// travelled, and whatever was added to them or masked in them here.
pub fn is_same(kept: &Report, received: &Report) -> bool {
    let mut received = received.clone();
    received.timed_out |= kept.timed_out;
    received.mask_like(kept);
    if received.structured.is_none() {
        received.structured = kept.structured.clone();
    }
    for stream in Stream::ALL {
        let (inline, claimed, known) = match stream {
            Stream::Stdout => {
                (received.stdout_inline.take(), received.stdout_blob_id, kept.stdout_blob_id)
            }
            Stream::Stderr => {
                (received.stderr_inline.take(), received.stderr_blob_id, kept.stderr_blob_id)
            }
        };
        let content = inline.map(|text| {
            STANDARD
                .decode(&text)
                .map_or(BlobId::of(text.as_bytes()), |content| BlobId::of(&content))
        });
        set(&mut received, stream, claimed.or(content).or(known));
    }
    received == *kept
}

#[cfg(test)]
mod tests;
