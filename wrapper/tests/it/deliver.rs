//! Delivery over HTTP to a scheduler that does what tests tell it: every scenario of it by its
//! name.

mod away;
mod basics;
mod files;
mod full_disk;
mod inputs;
mod killed;
mod large;
mod placed;
mod places;
mod proxies;
mod secrets;
mod tls;
mod whole;

use std::path::Path;
use std::process::Command;

use schema::spool::Stream;

use crate::run::{Run, Wrapper};
use crate::scheduler::{JOB, Scheduler, TOKEN};

/// A wrapper that delivers to this scheduler.
pub(crate) fn wrapper(scheduler: &Scheduler, flags: &[&str], command: &[&str]) -> Wrapper {
    Wrapper::new(flags, command)
        .env("PVN_API_URL", scheduler.url())
        .env("PVN_TOKEN", TOKEN)
        .env("PVN_JOB_ID", JOB)
}

/// The same with a script for `sh`.
pub(crate) fn shell(scheduler: &Scheduler, flags: &[&str], script: &str) -> Wrapper {
    wrapper(scheduler, flags, &["sh", "-c", script])
}

/// `pvn-wrapper resume` of what a wrapper left.
pub(crate) fn resume(scheduler: &Scheduler, spool: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
    command.env("PVN_API_URL", scheduler.url()).env("PVN_TOKEN", TOKEN).arg("resume").arg(spool);
    command
}

/// What must hold when a run was delivered: what arrived is what was written, and nothing is left
/// of the spool.
pub(crate) fn check(scheduler: &Scheduler, run: &Run) {
    let mut arrived = scheduler.check();
    for (inline, stream) in
        [(&run.report.stdout_inline, Stream::Stdout), (&run.report.stderr_inline, Stream::Stderr)]
    {
        if let Some(inline) = inline {
            use base64::Engine;
            let told = base64::engine::general_purpose::STANDARD.decode(inline).unwrap();
            assert!(scheduler.bytes(stream) == told, "other bytes of {}", stream.as_str());
        }
    }
    // A stream that was sent does not ride along.
    arrived.stdout_inline.clone_from(&run.report.stdout_inline);
    arrived.stderr_inline.clone_from(&run.report.stderr_inline);
    assert_eq!(arrived, run.report);
    assert!(!run.path("pvn").join(JOB).exists(), "the spool is left");
    assert!(!run.stderr.contains(TOKEN));
}
