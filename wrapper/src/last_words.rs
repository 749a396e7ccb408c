//! The two ways on which a report leaves without HTTP: its short form in the termination log, for the kubelet, and the whole
//! of it as one marked line on standard error, for whoever reads the container's log. Called by `main` and `deliver`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use schema::report::Report;
use schema::wire::{TERMINATION_LIMIT_BYTES, TERMINATION_LOG};

/// Names another file than the kubelet's, where a Pod's `terminationMessagePath` says so.
pub(crate) const TERMINATION_LOG_VARIABLE: &str = "PVN_TERMINATION_LOG";

/// How long a reader of standard error may take nothing before the line is given up.
const READER_PATIENCE: Duration = Duration::from_secs(10);

/// What a pipe takes at once when it says that it takes anything. Source: `PIPE_BUF` of pipe(7).
const PIPE_BYTES: usize = 4096;

/// Writes the short form where the kubelet reads it, if there is such a place.
pub(crate) fn termination_log(report: &Report, environment: &[(OsString, OsString)]) {
    let named = environment.iter().find(|(key, _)| key == TERMINATION_LOG_VARIABLE).map(|(_, value)| value.as_os_str());
    let path = Path::new(named.unwrap_or(OsStr::new(TERMINATION_LOG)));
    // The kubelet makes it; where it is not there, nobody reads it.
    if let Ok(mut file) = File::options().write(true).truncate(true).open(path) {
        let _ = file.write_all(&report.shortened(TERMINATION_LIMIT_BYTES));
    }
}

/// Writes the marked `line`, which counts only at the start of one: the log may stand within another.
pub(crate) fn marked_line(line: &str, is_within_a_line: bool) {
    let line = [if is_within_a_line { "\n" } else { "" }, line].concat();
    let mut left = line.as_bytes();
    let mut taken_at = Instant::now();
    let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
    while !left.is_empty() && taken_at.elapsed() < READER_PATIENCE {
        let stderr = rustix::stdio::stderr();
        let mut poll = [PollFd::new(&stderr, PollFlags::OUT)];
        match rustix::event::poll(&mut poll, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        match rustix::io::write(stderr, &left[..left.len().min(PIPE_BYTES)]) {
            Ok(count) => {
                left = &left[count..];
                taken_at = Instant::now();
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Nobody reads any more. The report is in the spool, and goes on being delivered.
            Err(_) => return,
        }
    }
}
