//! Why the store did not do something, and what SQLite's own errors come to.

use std::path::{Path, PathBuf};

use super::ACQUIRE_TIMEOUT;
use super::lease::LeaseHolder;
use crate::secrets::SealError;

/// Why the store did not do it; variants by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The surroundings: locked, full, away. Try again later.
    #[error("the database cannot be used at present: {0}")]
    Unavailable(String),
    /// A copy could not be made of it.
    #[error("the database cannot be copied to {}: {why}", to.display())]
    Copy {
        /// Where the copy was to be.
        to: PathBuf,
        /// What was said.
        why: String,
    },
    /// Its file is not what SQLite wrote there.
    #[error("the database {} is damaged: {found}", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What SQLite found.
        found: String,
    },
    /// Somebody else changed the row first, or it is there already.
    #[error("{0}")]
    Conflict(String),
    /// Made by a newer pvn.
    #[error(
        "the database {path} was made by a newer pvn: it has migration {found} and this program \
         knows up to {known}; start the newer program, or restore a backup made before the upgrade"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The migration in it.
        found: i64,
        /// The newest that this program has.
        known: i64,
    },
    /// Another daemon has it.
    #[error(
        "the database {} is in use by {owner}; stop that one first, or give another \
         --database-url",
        path.display()
    )]
    Owned {
        /// The database.
        path: PathBuf,
        /// Who has it.
        owner: Box<LeaseHolder>,
    },
    /// It has more than one path, and SQLite a log for each.
    #[error(
        "the database {} {why}; by two paths its users would see nothing of each other",
        path.display()
    )]
    Paths {
        /// The database.
        path: PathBuf,
        /// What there is, and what to do.
        why: String,
    },
    /// It was ours, and another daemon has it now.
    #[error(
        "the database was taken over by {}; this daemon starts nothing any more and ends, its jobs \
         go on",
        .0.as_ref().map_or_else(|| "nobody that it knows of".to_owned(), ToString::to_string)
    )]
    Lost(Option<Box<LeaseHolder>>),
    /// It was ours, and its path leads to another file, or to none.
    #[error(
        "the database {} was removed or replaced while this daemon used it; this daemon stores and \
         starts nothing any more and ends, its jobs go on: put the database back, or restore a \
         backup (`pvn-scheduler restore`), and start again",
        .0.display()
    )]
    Removed(PathBuf),
    /// Sealed with another key.
    #[error(transparent)]
    Sealed(#[from] SealError),
    /// The database holds what this program cannot have written: our bug, or somebody's hand.
    #[error("the database holds something unreadable: {0}")]
    Corrupt(String),
    /// A cursor that no page gave out, a limit out of range.
    #[error("{0}")]
    Invalid(String),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database)
                if database.is_unique_violation() || database.is_foreign_key_violation() =>
            {
                Self::Conflict(format!("the database refuses the change: {database}"))
            }
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::Decode(_) => Self::Corrupt(error.to_string()),
            sqlx::Error::PoolTimedOut => Self::Unavailable(format!(
                "no connection to the database was free for {} s: what others ask of it does not \
                 end, so its disk hangs or is overloaded",
                ACQUIRE_TIMEOUT.as_secs()
            )),
            _ => Self::Unavailable(said(&error)),
        }
    }
}

/// What the database said, with what to do where it does not say so itself.
pub(super) fn said(error: &sqlx::Error) -> String {
    let code = error.as_database_error().and_then(|error| error.code());
    // Source: sqlite.org/rescode.html: `SQLITE_FULL`, and `SQLITE_IOERR_SHMSIZE`, with which
    // opening fails; `SQLITE_BUSY`.
    match code.as_deref() {
        Some("13" | "4874") => format!("its disk has no room left ({error}); make room on it"),
        Some("5") => format!(
            "another program holds it ({error}); `fuser` on its file tells which one to end"
        ),
        _ => error.to_string(),
    }
}

/// What became of using the database at this path.
pub(super) fn unavailable(path: &Path) -> impl Fn(sqlx::Error) -> StoreError + Copy {
    move |error| StoreError::Unavailable(format!("{}: {}", path.display(), said(&error)))
}

/// What every function here returns.
pub type Result<T> = std::result::Result<T, StoreError>;
