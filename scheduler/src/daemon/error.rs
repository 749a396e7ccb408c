//! Why a daemon does not start, and why a running one ends. Called by `daemon`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use schema::time::Timestamp;

use crate::belongs::BelongsError;
use crate::driver;
use crate::http::TlsError;
use crate::key::KeyError;
use crate::secrets::SealError;
use crate::settings::SettingsError;
use crate::store::{LockError, StoreError};

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The machine's clock is before all time: no answer over HTTP can carry its date.
    #[error(
        "the clock of this machine shows {0}, before 1970; set it, by NTP or with `date --set`, \
         and start again"
    )]
    Clock(Timestamp),
    /// The settings cannot be served.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Another daemon has the data directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The data directory is another database's.
    #[error(transparent)]
    Belongs(#[from] BelongsError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The key cannot be used.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The key is not there, or is another one.
    #[error(transparent)]
    Key(KeyError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else listens there.
    #[error(
        "{0} is taken, perhaps by another pvn-scheduler; stop that one, or give another --listen"
    )]
    Taken(SocketAddr),
    /// The disk is full, also with the reserve, or takes nothing.
    #[error("{why}")]
    Disk {
        /// What there is, and what to do.
        why: String,
        /// What failed.
        source: Box<StartError>,
    },
    /// A file, directory or address cannot be had.
    #[error("failed to {what}")]
    Io {
        /// What was tried, with the path or address.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl From<KeyError> for StartError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Seal(error) => Self::Seal(error),
            KeyError::Store(error) => Self::Store(error),
            refused => Self::Key(refused),
        }
    }
}

/// Why a running daemon ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The driver must stop.
    #[error(transparent)]
    Driver(#[from] driver::Fatal),
    /// The HTTP server broke.
    #[error("the HTTP server on {address} broke")]
    Http {
        /// Where it listened.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The machine's clock was set before all time: no answer over HTTP can carry its date, and no
    /// certificate can be checked.
    #[error(
        "the clock of this machine was set to {0}, before 1970; set it, by NTP or with `date \
         --set`, and start again: jobs go on meanwhile"
    )]
    Clock(Timestamp),
    /// Another daemon has the database.
    #[error(transparent)]
    Lease(StoreError),
    /// A directory that it works in is another one now, or gone.
    #[error(
        "the directory {} was removed or replaced while this daemon used it; this daemon starts \
         nothing any more and ends, its jobs go on: put it back and start again. Where it is lost \
         start without it, and how what ran in it ended is told as unknown",
        .0.display()
    )]
    Removed(PathBuf),
    /// A task panicked: our bug.
    #[error("a task of the daemon died: {0}; please report this with what was logged before")]
    Died(String),
}
