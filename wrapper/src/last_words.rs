//! The two ways on which a report leaves without HTTP: its short form in the termination log, for
//! the kubelet, and the whole of it as one marked line on standard error, for whoever reads the
//! container's log. Called by `main` and `deliver`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use schema::report::{Report, message};
use schema::wire::{TERMINATION_LIMIT_BYTES, TERMINATION_LOG};

use crate::writer::{self, Writer};

/// Names another file than the kubelet's, where a Pod's `terminationMessagePath` says so.
pub(crate) const TERMINATION_LOG_VARIABLE: &str = "PVN_TERMINATION_LOG";

/// How long a reader of standard error may take nothing before the line is given up.
const READER_PATIENCE: Duration = Duration::from_secs(10);

/// How long a reader of standard error may take for all of the line.
const LINE_PATIENCE: Duration = Duration::from_secs(30);

/// Writes the short form where the kubelet reads it, if there is such a place, signed for the job
/// by `signer`, its id and token.
pub(crate) fn termination_log(
    report: &Report,
    environment: &[(OsString, OsString)],
    signer: Option<(&str, &str)>,
) {
    let named = environment
        .iter()
        .find(|(key, _)| key == TERMINATION_LOG_VARIABLE)
        .map(|(_, value)| value.as_os_str());
    let path = Path::new(named.unwrap_or(OsStr::new(TERMINATION_LOG)));
    // The kubelet makes it; where it is not there, nobody reads it. A FIFO without a reader is not
    // waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    if let Ok(mut file) = File::options().write(true).truncate(true).custom_flags(flags).open(path)
    {
        let _ = file.write_all(&message::write(report, signer, TERMINATION_LIMIT_BYTES));
    }
}

/// Writes the marked `line`, which counts only at the start of one: the log may stand within
/// another.
pub(crate) fn marked_line(line: &str, is_within_a_line: bool) {
    let line = [if is_within_a_line { "\n" } else { "" }, line].concat();
    // When nobody reads it, the report is in the spool, and goes on being delivered.
    let _ = writer::within(
        &mut Writer::of(rustix::stdio::stderr()),
        line.as_bytes(),
        READER_PATIENCE,
        LINE_PATIENCE,
    );
}
