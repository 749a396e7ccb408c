//! `pvn-wrapper resume DIR`: delivers what a killed wrapper left in its spool directory. Called by
//! `main`.
//!
//! Whatever the moment at which it was killed, the scheduler gets one report: that of the run when
//! it was already written, else one that says that the end is not known (`exitCode` null) over what
//! there is of the streams.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use schema::report::Report;
use schema::spool::Stream;
use schema::wire::URL_VARIABLE;

use crate::deliver::courier::DeliveryOutcome;
use crate::deliver::spool::{Spool, SpoolAddress};
use crate::deliver::target::DeliveryTarget;
use crate::deliver::{DeliveryThreads, DeliveryWait};
use crate::exit;
use crate::last::{self, Last, LastBytes};
use crate::store::digest_of;
use crate::writer::say;

/// Delivers, says what came of it, and returns what to end with.
pub(crate) fn resume(directory: &Path, deliver_for: Duration) -> u8 {
    match deliver(directory, deliver_for) {
        Ok(()) => 0,
        Err(why) => {
            say(&why);
            exit::OURS
        }
    }
}

fn deliver(directory: &Path, deliver_for: Duration) -> Result<(), String> {
    let (mut spool, about) = Spool::open(directory).map_err(|error| error.to_string())?;
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    // The scheduler may have moved meanwhile.
    let url = environment.iter().find(|(key, value)| key == URL_VARIABLE && !value.is_empty());
    let url = url.map_or(about.url.clone(), |(_, value)| value.to_string_lossy().into_owned());
    let target = DeliveryTarget::of(&url, &about.job, &environment)?;
    let unreadable =
        |error: std::io::Error| format!("{} cannot be read: {error}", directory.display());
    let report = match spool.left_report().map_err(unreadable)? {
        Some(report) => report,
        None => {
            let report = unknown(&spool, &about).map_err(unreadable)?;
            // The next one who resumes must say the same.
            match spool.report(&report, [false; 2]) {
                // Made of what is there, it comes out the same without being kept, unless a stream
                // was cut for it.
                Err(error) if report.truncated => {
                    return Err(format!("{} cannot be written: {error}", directory.display()));
                }
                _ => say(&format!(
                    "how the run in {} ended is not known, and the last of its output may be \
                     missing",
                    directory.display()
                )),
            }
            report
        }
    };
    let places = Stream::ALL.map(|stream| place(&spool, &report, stream));
    let files = report.files.iter().filter(|file| file.content_blob_id.is_some());
    let files = files.map(|file| (file.name.clone(), spool.file(&file.name))).collect();
    // What rides in the report was never sent.
    let last = Last::new(report, places, [false; 2], files);
    let delivery = DeliveryThreads::resumed(target);
    delivery.ended(deliver_for);
    match delivery.finish(
        last,
        &DeliveryWait { spool: None, stopped_for: Duration::ZERO, last_words: &|| {} },
    ) {
        DeliveryOutcome::Delivered => {
            spool.remove();
            Ok(())
        }
        // It may be the only copy of the output, and whoever resumes it wants that: to throw it
        // away is for them.
        DeliveryOutcome::Over(why) => {
            let at = directory.display();
            Err(format!(
                "{at} is not delivered to {url}, which says that the job is over: {why}; it is \
                 kept, and nobody will ask for it"
            ))
        }
        DeliveryOutcome::GaveUp(why) => {
            Err(format!("{} is not delivered to {url}: {why}; it is kept", directory.display()))
        }
    }
}

fn place(spool: &Spool, report: &Report, stream: Stream) -> (LastBytes, u64) {
    if let Some(bytes) = last::inline(report, stream) {
        let length = bytes.len() as u64;
        return (LastBytes::Memory(bytes), length);
    }
    let path = spool.stream(stream);
    match std::fs::metadata(&path) {
        Ok(metadata) => (LastBytes::File(path), metadata.len()),
        Err(_) => (LastBytes::Memory(Vec::new()), 0),
    }
}

/// The report of a run whose end nobody saw.
fn unknown(spool: &Spool, about: &SpoolAddress) -> std::io::Result<Report> {
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        start_timestamp_ns: about.start_timestamp_ns.clone(),
        duration_ns: "0".to_owned(),
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        output_incomplete: true,
        ..Report::default()
    };
    for stream in Stream::ALL {
        let left = StreamRemains::of(spool, about, stream)?;
        let (bytes, blob, head) = match stream {
            Stream::Stdout => (
                &mut report.stdout_bytes,
                &mut report.stdout_blob_id,
                &mut report.stdout_head_bytes,
            ),
            Stream::Stderr => (
                &mut report.stderr_bytes,
                &mut report.stderr_blob_id,
                &mut report.stderr_head_bytes,
            ),
        };
        (*bytes, *blob, *head) = (left.bytes, Some(left.blob), left.head);
        report.truncated |= left.head.is_some();
    }
    Ok(report)
}

/// What there is of a stream.
struct StreamRemains {
    bytes: u64,
    blob: schema::id::BlobId,
    head: Option<u64>,
}

impl StreamRemains {
    fn of(spool: &Spool, about: &SpoolAddress, stream: Stream) -> std::io::Result<Self> {
        let path = spool.stream(stream);
        let length = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { bytes: 0, blob: schema::id::BlobId::of(b""), head: None });
            }
            Err(error) => return Err(error),
        };
        // A file of the full length may hold a tail that starts in its middle: only the head is
        // sure.
        let cap = about.max_output_bytes;
        let head = (length >= cap).then_some(cap - cap / 2);
        if let Some(head) = head {
            std::fs::OpenOptions::new().write(true).open(&path)?.set_len(head)?;
        }
        Ok(Self { bytes: length, blob: digest_of(&path)?, head })
    }
}
