//! A copy of the database beside a daemon that runs, and what makes a copy a database of its own.
//! Nothing here changes the database that is copied, not even its tables when this program is
//! newer.

use std::collections::BTreeSet;
use std::path::Path;

use futures::TryStreamExt;
use schema::id::BlobId;
use schema::time::Timestamp;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::row::get;
use super::{
    Connection, KeyMark, MIGRATIONS, Named, Result, Store, StoreError, damage, meta, unavailable,
};

/// When the database was restored from a backup; there until a person says that it may act.
const RESTORED: &str = "restored_at";

/// What the original may still be running, in words; there as long as [`RESTORED`].
const LEFT: &str = "restored_left";

/// Tells a restored database from the one that was backed up.
const LINEAGE: &str = "lineage";

/// Above which number the releases of a copy begin, of every service.
const RELEASES_ABOVE: &str = "releases_above";

/// How many numbers of releases a copy leaves out: at least as many as the original gives out until
/// somebody notices that it is lost. How many more is random, so that two copies differ.
const RELEASES_SKIPPED_MIN: i64 = 1_000;
const RELEASES_SKIPPED_SPAN: u32 = 9_000;

/// What is in a copy.
#[derive(Debug)]
pub struct Snapshot {
    /// The newest migration in it.
    pub migration: i64,
    /// The blobs that it names; `None` when it does not know them all, because an older pvn wrote
    /// it.
    pub blobs: Option<BTreeSet<BlobId>>,
    /// What else the states of instances name, some of which is blobs: a digest does not say of
    /// what it is.
    pub digests: BTreeSet<BlobId>,
    /// What tells its key.
    pub key: KeyMark,
}

/// Writes a copy of the database as it is at this moment to a new file. Daemon and readers go on
/// meanwhile.
///
/// # Errors
/// [`StoreError::Newer`] when a newer pvn made the database, [`StoreError::Unavailable`] when it
/// cannot be read, [`StoreError::Damaged`] when SQLite cannot make it out, [`StoreError::Copy`]
/// when the copy cannot be written, [`StoreError::Paths`] when this is not the path that the daemon
/// uses: its log, and what is in it, would be missing.
pub async fn snapshot(database: &Path, to: &Path) -> Result<Snapshot> {
    super::one_path::hold(database)?;
    let options = SqliteConnectOptions::new().filename(database).busy_timeout(super::BUSY_TIMEOUT);
    let mut connection = Connection::connect_with(&options).await.map_err(unavailable(database))?;
    let migration = migration(&mut connection, database).await?;
    let into =
        to.to_str().ok_or_else(|| StoreError::Invalid(format!("{} is not UTF-8", to.display())))?;
    sqlx::query("VACUUM INTO $1").bind(into).execute(&mut connection).await.map_err(|error| {
        let copy = || StoreError::Copy { to: to.to_owned(), why: error.to_string() };
        damage::of(database, &error).unwrap_or_else(copy)
    })?;
    connection.close().await?;
    // The copy, which nobody else uses: the daemon goes on meanwhile.
    damage::check_undamaged(to).await?;

    let mut copy =
        Connection::connect_with(&SqliteConnectOptions::new().filename(to).read_only(true))
            .await
            .map_err(unavailable(to))?;
    let blobs = named_blobs(&mut copy).await?;
    let mut digests = named_digests(&mut copy).await?;
    if let Some(blobs) = &blobs {
        digests.retain(|digest| !blobs.contains(digest));
    }
    let key = KeyMark::read(&mut copy).await?;
    copy.close().await?;
    Ok(Snapshot { migration, blobs, digests, key })
}

async fn migration(connection: &mut Connection, path: &Path) -> Result<i64> {
    let found: Option<i64> = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await
        .map_err(|error| damage::of(path, &error).unwrap_or_else(|| unavailable(path)(error)))?;
    let (found, known) = (
        found.unwrap_or(0),
        MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0),
    );
    if found > known {
        Err(StoreError::Newer { path: path.to_owned(), found, known })
    } else {
        Ok(found)
    }
}

async fn named_blobs(copy: &mut Connection) -> Result<Option<BTreeSet<BlobId>>> {
    let noted: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'blobs'",
    )
    .fetch_one(&mut *copy)
    .await?;
    let left: Option<String> = sqlx::query_scalar("SELECT value FROM meta WHERE key = $1")
        .bind(super::prune::LEFT)
        .fetch_optional(&mut *copy)
        .await?;
    let jobs: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM jobs WHERE ended_at IS NOT NULL")
        .fetch_one(&mut *copy)
        .await?;
    let all_are_noted = noted > 0 && (left.as_deref() == Some("0") || jobs == 0);
    if !all_are_noted {
        return Ok(None);
    }
    let mut blobs = BTreeSet::new();
    let mut rows = sqlx::query("SELECT id FROM blobs").fetch(&mut *copy);
    while let Some(row) = rows.try_next().await? {
        // What does not read as one is no file either.
        blobs.extend(get::<&str>(&row, "id").ok().and_then(|id| id.parse::<BlobId>().ok()));
    }
    Ok(Some(blobs))
}

async fn named_digests(copy: &mut Connection) -> Result<BTreeSet<BlobId>> {
    let mut named = Named::default();
    let mut rows = sqlx::query("SELECT state FROM instances").fetch(&mut *copy);
    while let Some(row) = rows.try_next().await? {
        named.take(get(&row, "state").unwrap_or_default());
    }
    Ok(named.blobs.into_iter().collect())
}

impl Store {
    /// Makes a restored database one of its own: jobs of the original cannot report to it, nobody
    /// waits for the daemon that had it, and it observes until a person says otherwise, who is
    /// told what is `left` of the original. Its instances leave out `skipped` numbers of jobs,
    /// so that no job of it is one of the original's: on a cluster both would be one Job.
    pub async fn become_restored(
        &self,
        at: Timestamp,
        lineage: &str,
        skipped: u32,
        left: &str,
    ) -> Result<()> {
        let mut writer = self.write.acquire().await?;
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        meta::set(&mut transaction, RESTORED, &at.to_string()).await?;
        meta::set(&mut transaction, LINEAGE, lineage).await?;
        meta::set(&mut transaction, LEFT, left).await?;
        for of_the_original in [super::database_id::DATABASE_ID, super::database_id::DATABASE_PATH]
        {
            sqlx::query("DELETE FROM meta WHERE key = $1")
                .bind(of_the_original)
                .execute(&mut *transaction)
                .await?;
        }
        sqlx::query("UPDATE owner SET epoch = epoch + 1, released = 1")
            .execute(&mut *transaction)
            .await?;
        let newest = sqlx::query("SELECT COALESCE(MAX(release_count), 0) AS newest FROM services")
            .fetch_one(&mut *transaction)
            .await?;
        let above = get::<i64>(&newest, "newest")?
            .saturating_add(RELEASES_SKIPPED_MIN + i64::from(skipped % RELEASES_SKIPPED_SPAN));
        meta::set(&mut transaction, RELEASES_ABOVE, &above.to_string()).await?;
        // One that cannot be read stands still anyway.
        let skip = "UPDATE instances SET state = json_set(state, '$.jobs', json_extract(state, \
                    '$.jobs') + $1) WHERE json_valid(state) AND json_type(state, '$.jobs') = \
                    'integer'";
        sqlx::query(skip).bind(i64::from(skipped)).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Above which number releases are to begin, of every service: the name of a version is what
    /// fetch compares, and the original of a restored database may have given the next ones to
    /// other contents.
    pub async fn releases_above(&self) -> Result<u64> {
        let above = self.meta(RELEASES_ABOVE).await?.unwrap_or_else(|| "0".to_owned());
        above.parse().map_err(|_| {
            StoreError::Corrupt(format!("the entry `{RELEASES_ABOVE}` of `meta` is no number"))
        })
    }

    /// When this database was restored; `None` when it was not, or when a person has said that it
    /// may act.
    pub async fn restored_at(&self) -> Result<Option<String>> {
        match self.meta(RESTORED).await {
            // That it was restored is known.
            Err(StoreError::Corrupt(why)) => {
                Ok(Some(format!("a time that cannot be read ({why})")))
            }
            other => other,
        }
    }

    /// From now on this database acts. Returns what is left of the original in words, if it only
    /// observed.
    pub async fn activate(&self) -> Result<Option<String>> {
        // A text that cannot be read keeps nobody from acting.
        let left = self
            .meta(LEFT)
            .await
            .unwrap_or_else(|error| Some(error.to_string()))
            .unwrap_or_default();
        let mut writer = self.write.acquire().await?;
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        let done = sqlx::query("DELETE FROM meta WHERE key = $1")
            .bind(RESTORED)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("DELETE FROM meta WHERE key = $1")
            .bind(LEFT)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok((done.rows_affected() > 0).then_some(left))
    }

    /// What tells this database from the one that it was restored from; empty where there is none.
    /// A new one is as good, but for the jobs of the last; none would let those of the original
    /// report here.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the command that mends it.
    pub async fn lineage(&self) -> Result<String> {
        let mend = "; `sqlite3 FILE \"UPDATE meta SET value = lower(hex(randomblob(16))) WHERE \
                    key = 'lineage'\"` gives it a new one, with which jobs that run on a cluster \
                    cannot report any more";
        match self.meta(LINEAGE).await {
            Ok(lineage) => Ok(lineage.unwrap_or_default()),
            Err(StoreError::Corrupt(why)) => Err(StoreError::Corrupt(format!("{why}{mend}"))),
            Err(error) => Err(error),
        }
    }
}
