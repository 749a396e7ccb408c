//! Being asked to stop: SIGINT and SIGTERM. Used by `serve` and `dev`.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A shell's code for a program that SIGINT ended: 128 + 2.
pub const INTERRUPTED: u8 = 130;

/// The two signals, taken hold of: neither ends the program any more, also where they were ignored
/// from the start (in a background job of a shell, SIGINT is).
#[derive(Debug)]
pub struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

impl Stops {
    /// Takes hold of them. The first thing to do: what comes before is the shell's business.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn take() -> std::io::Result<Self> {
        // Under a limit for the size of files (`ulimit -f`, `LimitFSIZE=`) a write then fails,
        // which is borne as a full disk is. Not ignored: commands would inherit that.
        drop(signal(SignalKind::from_raw(nix::libc::SIGXFSZ))?);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
