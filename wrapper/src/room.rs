//! Room for the report in a spool directory, taken before the command starts: a disk that is full
//! when the command ends, be it of what the command printed, takes no result from anybody. Called
//! by `job` and `deliver::spool`.
//!
//! The file that becomes the report is made at the start, with blocks of its own; a report that
//! fits writes into these. One that is larger is cut, or waits until there is room.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::FallocateFlags;
use schema::report::Report;
use schema::spool;

use crate::writer::say;

/// Room that is taken, bytes: a report without streams and structured output has about 700, and
/// some files' names and left-over processes more.
const ROOM_BYTES: u64 = 16 << 10;

/// Between two tries, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MOST: Duration = Duration::from_secs(2);

/// The file that becomes the report.
#[derive(Debug, Default)]
pub(crate) struct ReportReserve {
    /// `None` when it could not be made.
    file: Option<File>,
    /// Whether something was written into it in vain, which may be longer than what comes next.
    is_used: bool,
}

impl ReportReserve {
    /// Takes the room. What cannot be had is tried again when the report is there.
    pub(crate) fn take(directory: &Path) -> Self {
        let file = open(directory).ok();
        if let Some(file) = &file {
            // A file system that cannot set room aside, or has none now.
            let _ = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, ROOM_BYTES);
        }
        Self { file, is_used: false }
    }

    /// Puts the report in place, whole or not at all. Without room for all of it the small streams
    /// go that it carries, and those that are `nowhere_else` count as lost; what a structured
    /// output is needed for cannot be done without it, so it goes only when nothing else helped
    /// for `patience`.
    pub(crate) fn put(
        &mut self,
        directory: &Path,
        report: &Report,
        nowhere_else: [bool; 2],
        patience: Duration,
    ) -> io::Result<()> {
        let whole = serde_json::to_vec(report)?;
        let Err(error) = self.write(directory, &whole) else { return Ok(()) };
        if !passes(&error) {
            return Err(error);
        }
        let short = without_streams(report, nowhere_else);
        let fitting = short.shortened(usize::try_from(ROOM_BYTES).unwrap_or(usize::MAX));
        let keeps_all = report.structured.is_none() || fitting == serde_json::to_vec(&short)?;
        let until = Instant::now() + patience;
        let mut pause = PAUSE;
        let mut said = false;
        loop {
            let is_last = Instant::now() >= until;
            let tried = if keeps_all || is_last {
                self.write(directory, &fitting)
            } else {
                self.write(directory, &whole)
            };
            match tried {
                Err(error) if passes(&error) && !is_last => {
                    if !said {
                        said = true;
                        say(&format!(
                            "there is no room for the report in {}: {error}; it is tried again \
                             for {} s",
                            directory.display(),
                            patience.as_secs()
                        ));
                    }
                }
                other => return other,
            }
            rest(pause);
            pause = (pause * 2).min(PAUSE_MOST);
        }
    }

    fn write(&mut self, directory: &Path, text: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(directory)?),
        };
        let is_used = std::mem::replace(&mut self.is_used, true);
        file.write_all_at(text, 0)?;
        if is_used {
            // Only now: it gives the room back that was taken.
            file.set_len(text.len() as u64)?;
        }
        let place = || {
            std::fs::rename(directory.join(spool::REPORT_TEMPORARY), directory.join(spool::REPORT))
        };
        match place() {
            // The command runs as our user, and removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let file = self.file.insert(open(directory)?);
                file.write_all_at(text, 0)?;
                place()
            }
            other => other,
        }
    }
}

fn open(directory: &Path) -> io::Result<File> {
    let path = directory.join(spool::REPORT_TEMPORARY);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        // Nothing that is there is opened, and no symlink followed.
        _ => File::options().write(true).create_new(true).mode(0o600).open(path),
    }
}

/// Whether an error may pass: room comes back, and so do rights that somebody has taken away for a
/// while.
fn passes(error: &io::Error) -> bool {
    use ErrorKind::{
        OutOfMemory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    matches!(
        error.kind(),
        StorageFull | QuotaExceeded | OutOfMemory | ReadOnlyFilesystem | PermissionDenied
    )
}

/// The report without its streams; the bytes of those that are nowhere else are lost by that.
fn without_streams(report: &Report, [stdout, stderr]: [bool; 2]) -> Report {
    let mut short = report.clone();
    for (is_lost, inline, blob) in [
        (stdout, &mut short.stdout_inline, &mut short.stdout_blob_id),
        (stderr, &mut short.stderr_inline, &mut short.stderr_blob_id),
    ] {
        if let Some(text) = inline.take()
            && is_lost
        {
            short.lost_bytes += STANDARD.decode(text).map_or(0, |bytes| bytes.len() as u64);
            *blob = None;
        }
    }
    short
}

#[expect(clippy::disallowed_methods, reason = "nobody tells when a disk has room again")]
fn rest(pause: Duration) {
    std::thread::sleep(pause);
}
