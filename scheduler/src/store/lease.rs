//! Who has the database: one daemon at a time, by a lease with an epoch. Whoever takes the database
//! counts the epoch on; every commit tests it inside its transaction, so that a daemon that slept
//! while another one took over stores nothing, whatever its clock says.
//!
//! ```text
//! free, released, or left by the same data directory ──▶ taken at once
//! another data directory's: watched ──a renewal comes──▶ refused, with words about the owner
//!                                   ──none for LEASE───▶ taken over
//! owner: renews every RENEW_EVERY; not renewed for HOLD ──▶ starts nothing until it has asked the database
//! ```
//!
//! The lengths are elapsed time as each side measures it; wall clocks are not compared. The owner's
//! time goes on while the machine sleeps, the watcher's does not, so each errs on its safe side.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schema::time::Timestamp;
use sqlx::Connection as _;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Connection, Db, Result, Store, StoreError};
use crate::{clock, paths};

mod row;

pub(super) use row::last;
use row::read;

/// How often the owner says that it is there.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How soon it tries again when it could not.
pub const RENEW_AGAIN: Duration = Duration::from_secs(1);

/// How long after the last time it said so an owner starts things without asking the database
/// first.
const HOLD: Duration = Duration::from_secs(12);

/// How long another daemon must hear nothing from the owner before it takes over: three renewals,
/// and longer than [`HOLD`].
pub const LEASE: Duration = Duration::from_secs(15);

/// How often a daemon that waits looks.
const WATCH_EVERY: Duration = Duration::from_millis(250);

/// A daemon that has the database, or wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The id of its data directory. Two daemons have the same only if they have the same
    /// directory, and then its lock keeps them apart: whoever holds the lock knows that the
    /// other one is over.
    pub data_directory: String,
    /// Where that directory is.
    pub path: PathBuf,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Since when it has the database, or wants it.
    pub since: Timestamp,
}

impl LeaseHolder {
    /// This process, with its data directory.
    pub fn here(data_directory: String, path: &Path, since: Timestamp) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let path = paths::resolved(path).unwrap_or_else(|_| path.to_owned());
        Self { data_directory, path, host, pid: std::process::id(), since }
    }
}

impl std::fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the pvn-scheduler with pid {} on {} and the data directory {}, since {}",
            self.pid,
            self.host,
            self.path.display(),
            self.since
        )
    }
}

/// That the database is ours.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    epoch: i64,
    /// The database's path, and the file that it led to when it was opened.
    place: (PathBuf, Option<(u64, u64)>),
    /// Until when, in the time of [`clock::elapsed`], milliseconds.
    held_until: Arc<AtomicU64>,
    /// Why it could not be renewed the last time, and since when.
    unrenewed: watch::Sender<Option<Unrenewed>>,
}

/// That the owner cannot say that it is there: nothing can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrenewed {
    pub why: String,
    /// Since when.
    pub since: Timestamp,
}

/// Waits until the database is free for `wanted`, before anything in it is changed. Returns what
/// was seen of the last owner.
///
/// # Errors
/// [`StoreError::Owned`] when another daemon has it.
pub(super) async fn wait(
    pool: &sqlx::Pool<Db>,
    path: &Path,
    wanted: &LeaseHolder,
) -> Result<Option<i64>> {
    let mut connection = pool.acquire().await?;
    let is_there: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'owner'",
    )
    .fetch_one(&mut *connection)
    .await?;
    if is_there == 0 {
        return Ok(None);
    }
    let Some(first) = read(&mut connection).await? else { return Ok(None) };
    if first.released || first.owner.data_directory == wanted.data_directory {
        return Ok(Some(first.epoch));
    }
    tracing::warn!(
        "{} was last used by {}; waiting to see for {} s whether it still uses this file",
        path.display(),
        first.owner,
        LEASE.as_secs()
    );
    let until = Instant::now() + LEASE;
    while Instant::now() < until {
        tokio::time::sleep(WATCH_EVERY).await;
        let Some(now) = read(&mut connection).await? else { return Ok(None) };
        if now.released {
            return Ok(Some(now.epoch));
        }
        if now != first {
            return Err(StoreError::Owned { path: path.to_owned(), owner: Box::new(now.owner) });
        }
    }
    tracing::warn!(
        "nothing was heard of {} for {} s; its database is taken over. If this is a copy of a \
         file that it uses, stop this daemon: both would apply",
        first.owner,
        LEASE.as_secs()
    );
    Ok(Some(first.epoch))
}

/// Takes the database, whose last epoch was `seen`.
///
/// # Errors
/// [`StoreError::Owned`] when another daemon was quicker.
pub(super) async fn take(
    pool: &sqlx::Pool<Db>,
    path: &Path,
    wanted: &LeaseHolder,
    seen: Option<i64>,
) -> Result<Lease> {
    let asked = clock::elapsed();
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let now = read(&mut transaction).await?;
    if let Some(now) = &now
        && Some(now.epoch) != seen
    {
        return Err(StoreError::Owned {
            path: path.to_owned(),
            owner: Box::new(now.owner.clone()),
        });
    }
    let epoch = now.map_or(0, |now| now.epoch) + 1;
    sqlx::query(
        "INSERT INTO owner (id, epoch, renewals, released, data_directory, path, host, pid, \
         since) VALUES (1, $1, 0, 0, $2, $3, $4, $5, $6)
         ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, renewals = 0, released = 0, \
         data_directory = excluded.data_directory,
         path = excluded.path, host = excluded.host, pid = excluded.pid, since = excluded.since",
    )
    .bind(epoch)
    .bind(&wanted.data_directory)
    .bind(wanted.path.to_string_lossy().into_owned())
    .bind(&wanted.host)
    .bind(i64::from(wanted.pid))
    .bind(wanted.since.as_millis())
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    let lease = Lease {
        epoch,
        place: (path.to_owned(), file_at(path)?),
        held_until: Arc::default(),
        unrenewed: watch::Sender::new(None),
    };
    lease.hold_from(asked);
    Ok(lease)
}

/// The file at a path, by device and inode; `None` when nothing is there.
fn file_at(path: &Path) -> Result<Option<(u64, u64)>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(StoreError::Unavailable(format!("{}: {error}", path.display()))),
    }
}

impl Lease {
    fn hold_from(&self, asked: Duration) {
        let until = u64::try_from((asked + HOLD).as_millis()).unwrap_or(u64::MAX);
        self.held_until.store(until, Ordering::SeqCst);
    }

    fn is_held(&self) -> bool {
        u64::try_from(clock::elapsed().as_millis()).unwrap_or(u64::MAX)
            < self.held_until.load(Ordering::SeqCst)
    }

    /// That nobody has said for too long whether the database is ours: a disk that is stuck neither
    /// takes nor refuses what is written.
    fn unanswered(&self) -> Option<Unrenewed> {
        let until = Duration::from_millis(self.held_until.load(Ordering::SeqCst));
        let for_long = (clock::elapsed() + HOLD)
            .checked_sub(until)
            .filter(|silent| !until.is_zero() && *silent >= HOLD)?;
        let seconds = for_long.as_secs();
        let ms = schema::time::millis(for_long);
        Some(Unrenewed {
            why: format!(
                "what is to be written to {} was neither written nor refused for {seconds} s: its \
                 disk hangs or is overloaded",
                self.place.0.display()
            ),
            since: clock::Clock::System.now().plus_ms(-ms),
        })
    }

    /// Refuses to go on with a file that has no name any more: what is stored in it is lost when
    /// the daemon ends.
    fn check_place(&self) -> Result<()> {
        let (path, opened) = &self.place;
        if file_at(path)? == *opened {
            return Ok(());
        }
        self.held_until.store(0, Ordering::SeqCst);
        Err(StoreError::Removed(path.clone()))
    }

    /// Refuses what a daemon wants to write that has the database no more.
    pub(super) async fn check(&self, connection: &mut Connection) -> Result<()> {
        self.check_place()?;
        let epoch: Option<i64> = sqlx::query_scalar("SELECT epoch FROM owner WHERE id = 1")
            .fetch_optional(&mut *connection)
            .await?;
        if epoch == Some(self.epoch) { Ok(()) } else { Err(self.lost(connection).await) }
    }

    async fn lost(&self, connection: &mut Connection) -> StoreError {
        self.held_until.store(0, Ordering::SeqCst);
        match read(connection).await {
            Ok(seen) => StoreError::Lost(seen.map(|seen| Box::new(seen.owner))),
            Err(error) => error,
        }
    }
}

impl Store {
    /// Whether the database is known to be ours at this moment, without asking it: nothing may be
    /// started when it is not.
    pub fn is_held(&self) -> bool {
        self.lease.as_ref().is_none_or(Lease::is_held)
    }

    /// Makes sure that the database is ours, asking it when that is not known.
    ///
    /// # Errors
    /// [`StoreError::Lost`] when another daemon has it, [`StoreError::Removed`] when it is not
    /// there any more, [`StoreError::Unavailable`] when nobody can say.
    pub async fn ensure_held(&self) -> Result<()> {
        if self.is_held() { Ok(()) } else { self.renew().await }
    }

    /// Why the database is not known to be writable, although nothing else was to be written. Takes
    /// no time.
    pub fn unrenewed(&self) -> Option<Unrenewed> {
        let lease = self.lease.as_ref()?;
        let refused = lease.unrenewed.borrow().clone();
        refused.or_else(|| lease.unanswered())
    }

    /// Says that we are there, and remembers whether that went well, and whether a change would
    /// have room.
    async fn renew(&self) -> Result<()> {
        let Some(lease) = &self.lease else { return Ok(()) };
        let renewed = self.try_renew(lease).await;
        let no_room = self.check_room();
        lease.unrenewed.send_modify(|unrenewed| {
            let since = unrenewed
                .as_ref()
                .map_or_else(|| clock::Clock::System.now(), |before| before.since);
            let error = renewed.as_ref().err().or(no_room.as_ref().err());
            *unrenewed = error.map(|error| Unrenewed { why: error.to_string(), since });
        });
        renewed
    }

    async fn try_renew(&self, lease: &Lease) -> Result<()> {
        lease.check_place()?;
        let asked = clock::elapsed();
        let mut writer = self.write.acquire().await?;
        let done =
            sqlx::query("UPDATE owner SET renewals = renewals + 1 WHERE id = 1 AND epoch = $1")
                .bind(lease.epoch)
                .execute(&mut *writer)
                .await?;
        if done.rows_affected() == 0 {
            return Err(lease.lost(&mut writer).await);
        }
        lease.hold_from(asked);
        Ok(())
    }

    /// Renews the lease until it is lost, and returns why. While the database cannot be written the
    /// lease runs out by itself, and comes back with the first renewal.
    pub async fn keep_lease(&self) -> StoreError {
        loop {
            let was_renewed =
                self.lease.as_ref().is_none_or(|lease| lease.unrenewed.borrow().is_none());
            tokio::time::sleep(if was_renewed { RENEW_EVERY } else { RENEW_AGAIN }).await;
            match self.renew().await {
                Err(lost @ (StoreError::Lost(_) | StoreError::Removed(_))) => return lost,
                Err(error) if was_renewed => {
                    tracing::warn!(
                        %error,
                        "the lease of the database could not be renewed; trying again"
                    )
                }
                Err(error) => {
                    tracing::debug!(%error, "the lease of the database could still not be renewed")
                }
                Ok(()) => {}
            }
        }
    }

    /// Lets go of the database, so that the next daemon need not wait.
    pub(super) async fn let_go(&self) {
        let Some(lease) = &self.lease else { return };
        let released = sqlx::query("UPDATE owner SET released = 1 WHERE id = 1 AND epoch = $1")
            .bind(lease.epoch)
            .execute(&self.write)
            .await;
        if let Err(error) = released {
            tracing::debug!(
                %error,
                "the database was not let go of; another data directory has to wait for it"
            );
        }
        lease.held_until.store(0, Ordering::SeqCst);
    }
}
