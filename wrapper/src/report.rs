//! Makes the report of a run and hands it over: to the job's spool directory, and to `--report`.
//! Called by `main` last.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::OFlags;
use rustix::process::WaitStatus;
use schema::report::{INLINE_LIMIT_BYTES, Report};
use schema::time::Timestamp;

use crate::signals;
use crate::spawn::SpawnRefusal;
use crate::store::KeptStream;
use crate::writer::{self, Writer};

/// How long whoever reads a report on standard output or from a FIFO may take nothing, and how long
/// for all of it.
const READER_PATIENCE: Duration = Duration::from_secs(5);
const REPORT_PATIENCE: Duration = Duration::from_secs(30);

/// When a run began, on both clocks: the wall's as a label, the monotonic one for durations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began {
    wall: Duration,
    at: Instant,
}

impl Began {
    /// Now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place where the wrapper reads the wall clock"
    )]
    pub(crate) fn now() -> Self {
        Self {
            wall: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            at: Instant::now(),
        }
    }

    /// The wall time, nanoseconds since 1970, as reports have it.
    pub(crate) fn nanoseconds(&self) -> String {
        self.wall.as_nanos().to_string()
    }

    /// The wall time.
    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.wall.as_millis()).unwrap_or(i64::MAX))
    }

    /// A report of a run from then until `end` of which nothing else is known yet.
    pub(crate) fn report(&self, end: Instant) -> Report {
        Report {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            start_timestamp_ns: self.nanoseconds(),
            duration_ns: end.saturating_duration_since(self.at).as_nanos().to_string(),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            ..Report::default()
        }
    }

    /// The report of a run that was refused.
    pub(crate) fn refused(&self, refusal: &SpawnRefusal) -> Report {
        Report {
            exec_error: Some(refusal.why.clone()),
            surroundings: refusal.surroundings,
            ..self.report(Instant::now())
        }
    }
}

/// How the child ended, as the kernel says.
pub(crate) fn set_status(report: &mut Report, status: Option<WaitStatus>) {
    let Some(status) = status else { return };
    report.exit_code = status.exit_status();
    report.signal = status.terminating_signal().map(|number| signals::name(number & 0x7f));
    report.core_dumped = report.signal.is_some() && status.as_raw() & 0x80 != 0;
}

/// What is left of the streams.
pub(crate) fn set_streams(report: &mut Report, [stdout, stderr]: [&KeptStream; 2]) {
    report.stdout_bytes = stdout.total;
    report.stderr_bytes = stderr.total;
    report.stdout_head_bytes = stdout.head;
    report.stderr_head_bytes = stderr.head;
    report.stdout_blob_id = Some(stdout.blob);
    report.stderr_blob_id = Some(stderr.blob);
    report.stdout_inline = inline(stdout);
    report.stderr_inline = inline(stderr);
    report.truncated = stdout.truncated || stderr.truncated;
    report.lost_bytes = stdout.lost + stderr.lost;
}

fn inline(kept: &KeptStream) -> Option<String> {
    match kept.read(INLINE_LIMIT_BYTES as u64) {
        Ok(Some(bytes)) if !bytes.is_empty() => Some(STANDARD.encode(bytes)),
        // Too large, or unreadable, which its content address will show.
        _ => None,
    }
}

/// Writes the report where `--report` says: a file, whole or not at all where that can be, or
/// standard output.
pub(crate) fn write(report: &Report, to: &Path) -> io::Result<()> {
    let mut text = serde_json::to_vec(report)?;
    text.push(b'\n');
    if to == Path::new("-") {
        return writer::within(
            &mut Writer::of(rustix::stdio::stdout()),
            &text,
            READER_PATIENCE,
            REPORT_PATIENCE,
        );
    }
    // A device, a pipe or a file that is mounted in place (`/dev/termination-log`) cannot be
    // replaced.
    let replaceable = std::fs::symlink_metadata(to).map_or(true, |metadata| metadata.is_file());
    if replaceable && replace(&text, to).is_ok() {
        return Ok(());
    }
    // A FIFO without a reader is an error, and nothing to wait for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file =
        File::options().write(true).create(true).truncate(true).custom_flags(flags).open(to)?;
    writer::within(&mut Writer::Own(file.into()), &text, READER_PATIENCE, REPORT_PATIENCE)
}

fn replace(text: &[u8], to: &Path) -> io::Result<()> {
    let mut name = to.as_os_str().to_owned();
    name.push(".new");
    let temporary = PathBuf::from(name);
    let mut file = File::create(&temporary)?;
    let written = file
        .write_all(text)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, to));
    if written.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
