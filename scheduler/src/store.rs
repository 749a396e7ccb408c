//! All SQL. One family of tables a file; `store/commit.rs` writes what the driver decided in one
//! transaction; the rest reads. Called by `driver` (writes) and `http` (reads).
//!
//! The statements are the ones that SQLite and PostgreSQL share (TEXT and BIGINT, `$1`, `ON
//! CONFLICT`, `RETURNING`), and they are checked at run time. Everything names the database by the
//! alias [`Db`] alone: the second database arrives by turning it into `sqlx::Any` and giving
//! [`Store::open`] a second kind of connection; no statement changes.
//!
//! What always holds: changes go through one connection, so they never wait for each other inside
//! the database; readers have their own and go on while a change is under way or fails. Not found
//! is `None`, not an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::migrate::MigrateError;
use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::clock;
use crate::secrets::Sealer;

mod actions;
mod applications;
mod backup;
mod changes;
mod commit;
mod damage;
mod database_id;
mod document_list;
mod documents;
mod enough_room;
mod error;
mod events;
mod given;
mod instances;
mod jobs;
mod key;
mod lease;
mod lock;
mod locked;
mod look;
mod meta;
mod migrations;
mod named;
mod newest;
mod notifications;
mod one_path;
mod overview;
mod pages;
mod places;
mod prefixes;
mod prune;
mod pruned;
mod releases;
mod row;
mod secrets;
mod standing;
mod step;
mod structured;
mod tokens;
mod unreadable;

pub use error::{Result, StoreError};
use error::{said, unavailable};

use enough_room::WorkDirectories;
use lease::Lease;

pub use actions::PendingAction;
pub use applications::{
    ApplicationRow, ChannelRow, ChannelSummary, RuntimeRow, RuntimeSummary, ServiceRow,
};
pub use backup::{Snapshot, snapshot};
pub use commit::{Change, Commit};
pub use damage::check_undamaged;
pub use database_id::{DatabaseFacts, peek};
pub use document_list::DocumentVersion;
pub use documents::{DocumentKind, StoredDocument, StoredDocumentKey};
pub use events::EventFilter;
pub use given::JobsOfCommands;
pub use instances::{
    InstanceRow, LoadedInstance, Released, RowDamage, ServiceFilter, ServiceOrder,
    shown as shown_instance,
};
pub use jobs::{JobFilter, JobRow};
#[cfg(test)]
pub(crate) use key::by_hand;
pub use key::{Fit, KeyMark, peek_key};
pub use lease::{LEASE, LeaseHolder, RENEW_AGAIN, Unrenewed};
pub use lock::{DataDirLock, LockError};
pub use meta::Counters;
use migrations::MIGRATIONS;
pub use named::Named;
pub use notifications::{
    NewNotification, NotificationFilter, NotificationLine, NotifiedPlace, PendingNotification,
    SentLately, ToldLast,
};
pub use places::PlaceHolder;
pub use prefixes::ALIKE_LIMIT;
pub use prune::{JobGroup, OldEntry, OldJob};
pub use pruned::RetentionMetrics;
pub use releases::{
    MASK, ReleaseChannelRow, ReleaseFilter, ReleaseRow, Went, over_all, shown_value,
};
pub use secrets::SecretUser;
pub use standing::StandingOrder;
pub use step::{Key, RowsStep};
pub use structured::blobs_of;
pub use tokens::TokenRow;
pub use unreadable::Unreadable;

type Db = sqlx::Sqlite;
type Connection = sqlx::SqliteConnection;
type Row = sqlx::sqlite::SqliteRow;

/// How long a statement waits for another process that holds the database: longer than a backup
/// needs to copy a page, short enough that `/readyz` turns red before anyone asks.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a reader waits for a free connection before it is told that the database is too busy.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections for lists, which people and programs ask for as often as they like: more than the
/// cores only wait for each other.
const LIST_READERS: u32 = 4;

/// Connections for what we need ourselves: whose token it is, what the driver decides on, how a job
/// is started. No list takes them.
const OWN_READERS: u32 = 4;

/// Most entries that the total of a list counts where there may be millions; nobody pages through
/// more.
const COUNT_LIMIT: i64 = 10_000;

/// Pages of the log after which SQLite brings them into the database, 32 MiB. A busy instance's row
/// is in every commit: the longer the log, the more of its versions are never copied; and the next
/// start reads at most this much.
const CHECKPOINT_PAGES: &str = "8000";

/// Most items of one page.
pub const PAGE_LIMIT: u32 = 1000;

/// Items of a page when nothing is said.
pub const PAGE_DEFAULT: u32 = 100;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Default)]
pub struct PageRequest {
    /// Where the last page ended; `None` = from the start.
    pub cursor: Option<String>,
    /// Most items; `None` = [`PAGE_DEFAULT`]; at most [`PAGE_LIMIT`].
    pub limit: Option<u32>,
}

impl PageRequest {
    /// How many rows to ask for: one more than the page holds, which tells whether there is a next
    /// one.
    fn rows(&self) -> i64 {
        self.items() as i64 + 1
    }

    fn items(&self) -> usize {
        self.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_LIMIT) as usize
    }

    fn number(&self) -> Result<Option<i64>> {
        let wrong = |text: &String| {
            StoreError::Invalid(format!(
                "cursor `{text}` is not one that a page of this list gave out"
            ))
        };
        self.cursor.as_ref().map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }

    /// The page made of `rows`, of which there may be one too many; `cursor` names the last row
    /// that is shown. A row that cannot be read is told beside the others.
    ///
    /// # Errors
    /// Those that are not about one row.
    fn page<T>(
        &self,
        mut rows: Vec<Row>,
        total: i64,
        cursor: impl Fn(&Row) -> Result<String>,
        mut item: impl FnMut(&Row) -> Result<T>,
    ) -> Result<schema::api::Page<T>> {
        let more = rows.len() > self.items();
        rows.truncate(self.items());
        let next_cursor =
            if more { rows.iter().rev().find_map(|row| cursor(row).ok()) } else { None };
        let (items, unreadable) = row::readable(rows.iter(), |row| item(row))?;
        Ok(schema::api::Page { items, next_cursor, total: total.unsigned_abs(), unreadable })
    }
}

/// The database. Cloned freely.
#[derive(Debug, Clone)]
pub struct Store {
    path: PathBuf,
    write: sqlx::Pool<Db>,
    /// For single things.
    read: sqlx::Pool<Db>,
    /// For pages of lists.
    lists: sqlx::Pool<Db>,
    sealer: Sealer,
    /// `None` for one that was opened without an owner.
    lease: Option<Lease>,
    /// What retention removed.
    pruned: Arc<RetentionMetrics>,
    /// `None` where nothing is started and kept beside the database.
    beside: Option<Arc<WorkDirectories>>,
}

impl Store {
    /// Opens the database, making it when it is not there, and brings its tables up to date. Nobody
    /// owns it by that: for tests, and for programs that know otherwise that they are alone.
    ///
    /// # Errors
    /// [`StoreError::Newer`] when a newer pvn made it; [`StoreError::Unavailable`] when it cannot
    /// be used.
    pub async fn open(path: &Path, sealer: Sealer) -> Result<Self> {
        Self::open_for(path, sealer, None).await
    }

    /// The same for a daemon, which owns it from then on until it is closed, or another one takes
    /// it over. Waits up to [`LEASE`] when another one had it last and did not let go of it,
    /// and for a while for a program that has it locked.
    ///
    /// # Errors
    /// Those of [`Store::open`]; [`StoreError::Owned`] when another daemon has it;
    /// [`StoreError::Paths`] when it has more than one path. The file must exist.
    pub async fn open_as(path: &Path, sealer: Sealer, owner: &LeaseHolder) -> Result<Self> {
        Self::open_for(path, sealer, Some(owner)).await
    }

    async fn open_for(path: &Path, sealer: Sealer, owner: Option<&LeaseHolder>) -> Result<Self> {
        if owner.is_some() {
            one_path::hold(path)?;
        }
        let at = unavailable(path);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            .busy_timeout(BUSY_TIMEOUT);
        if std::fs::metadata(path).map_or(0, |metadata| metadata.len()) == 0 {
            // Once, before there is anything in it: later it would write at each connection, and
            // wait for whoever writes.
            let made = options.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
            Connection::connect_with(&made).await.map_err(at)?.close().await.map_err(at)?;
        }
        // A connection that is opened later makes no other database in the place of one that was
        // removed.
        let options = options.create_if_missing(false);
        let pool = PoolOptions::<Db>::new()
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None);
        let write =
            pool.clone().max_connections(1).connect_with(options.clone()).await.map_err(at)?;
        // Before the tables are changed under somebody's feet.
        let asked = clock::elapsed();
        let seen = match owner {
            Some(owner) => {
                let seen = lease::wait(&write, path, owner).await?;
                locked::wait(&write, path, locked::PATIENCE).await?;
                seen
            }
            None => None,
        };
        MIGRATIONS.run(&write).await.map_err(|error| unmigrated(error, path))?;
        let lease = match owner {
            Some(owner) => {
                let waited = i64::try_from((clock::elapsed() - asked).as_millis()).unwrap_or(0);
                let owner = LeaseHolder { since: owner.since.plus_ms(waited), ..owner.clone() };
                Some(lease::take(&write, path, &owner, seen).await?)
            }
            None => None,
        };
        let options = options.pragma("query_only", "ON");
        let read = pool
            .clone()
            .max_connections(OWN_READERS)
            .connect_with(options.clone())
            .await
            .map_err(at)?;
        let lists = pool.max_connections(LIST_READERS).connect_with(options).await.map_err(at)?;
        Ok(Self {
            path: path.to_owned(),
            write,
            read,
            lists,
            sealer,
            lease,
            pruned: Arc::default(),
            beside: None,
        })
    }

    /// Waits for what is under way, lets go of the database and closes the files.
    pub async fn close(&self) {
        self.let_go().await;
        self.lists.close().await;
        self.read.close().await;
        self.write.close().await;
    }

    /// What retention removed since the start.
    pub fn pruned(&self) -> Arc<RetentionMetrics> {
        self.pruned.clone()
    }

    fn seal(&self, purpose: &str, value: &impl serde::Serialize) -> String {
        let plain = serde_json::to_vec(value).expect("our own types have JSON forms");
        self.sealer.seal(purpose, &plain)
    }

    fn unseal<T: serde::de::DeserializeOwned>(&self, purpose: &str, sealed: &str) -> Result<T> {
        let plain = self.sealer.unseal(purpose, sealed)?;
        serde_json::from_slice(&plain)
            .map_err(|error| StoreError::Corrupt(format!("{purpose}: {error}")))
    }
}

/// Why the tables could not be brought up to date.
fn unmigrated(error: MigrateError, path: &Path) -> StoreError {
    match error {
        MigrateError::VersionMissing(found) => {
            let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
            StoreError::Newer { path: path.to_owned(), found, known }
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            unavailable(path)(error)
        }
        error => StoreError::Unavailable(format!(
            "{}: failed to bring the tables up to date: {error}",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests;
