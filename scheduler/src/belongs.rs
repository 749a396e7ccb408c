//! Which database a data directory belongs to. Called by `daemon` and by what is done by hand,
//! before anything is opened.
//!
//! Beside the database the directory holds what only that one can explain: the spool directories of
//! jobs that run, and what service instances keep in `instances/`. To another database all of it is
//! left over from nothing that it knows, and it would throw it away and start again what runs. So
//! the file `database` holds the id of the database and, for people, its path. The database itself
//! may go to another data directory, as when that one takes it over. A copy of its file may not,
//! while the one that was copied is in use: they hear nothing of each other, and both would apply.
//!
//! A database whose id is lost is still known as the one of the directory by two things together:
//! it lies where the directory's own did, and it was last used from this very directory. Then it is
//! given its id back.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::secrets::hex;
use crate::store::{self, DataDirLock, DatabaseFacts, Store, StoreError};
use crate::{clock, identity, paths, private};

/// Name of the file in the data directory.
pub(crate) const FILE: &str = "database";

/// What the name begins with of the directory that a restore works in until it is whole.
pub(crate) const RESTORING: &str = ".pvn-restore-";

/// Why a data directory is not used with a database.
#[derive(Debug, thiserror::Error)]
pub enum BelongsError {
    /// It belongs to another one.
    #[error(
        "the data directory {0} belongs to the database {1}, and {2}. In `spool` and `instances` \
         it holds what that database's jobs and service instances need, and jobs of it may run at \
         this moment, so nothing was changed. {3}; or, when that database is lost, make a new data \
         directory from a backup with `pvn-scheduler restore`; or give another --data-dir. To \
         start anew in this directory, make sure that no job of it runs, and remove the file \
         {0}/{FILE}: then what its instances keep in {0}/instances is removed, and nobody knows of \
         its jobs any more",
        directory.display(), belongs_to.display(), what(database, belongs_to),
        way_back(database, belongs_to)
    )]
    Other {
        /// The data directory.
        directory: PathBuf,
        /// Where its database was when it was last used with it.
        belongs_to: PathBuf,
        /// The database that it was to be used with.
        database: PathBuf,
    },
    /// It cannot be told whether it belongs to this one.
    #[error(
        "the database {1} cannot be told from others: it has no id that can be read (table \
         `meta`, row `database_id`). The data directory {0} belongs to a database that lay at {2}, \
         and this one is not both in that place and last used from that directory. Jobs of the \
         other may run at this moment, so nothing was changed. If you are sure that this is the \
         one, give it its id back: sqlite3 '{1}' \"INSERT OR REPLACE INTO meta (key, value) VALUES \
         ('database_id', '{id}')\". Else put the right one there, make a new data directory from a \
         backup with `pvn-scheduler restore`, or give another --data-dir",
        directory.display(), database.display(), belongs_to.display()
    )]
    Nameless {
        /// The data directory.
        directory: PathBuf,
        /// Where its database was when it was last used with it.
        belongs_to: PathBuf,
        /// The id of that.
        id: String,
        /// The database that it was to be used with.
        database: PathBuf,
    },
    /// The database is a copy of one that is in use.
    #[error(
        "the database {} is a copy of {}, which the pvn-scheduler with pid {pid} and the data \
         directory {} uses at this moment: both would apply the same things, so nothing was \
         changed. To look at a copy, make it with `pvn-scheduler backup` and `pvn-scheduler \
         restore`: that one observes and applies nothing. To go on with this one in the place of \
         the original, stop that scheduler for good",
        database.display(), original.display(), owner.display()
    )]
    Copy {
        /// The copy.
        database: PathBuf,
        /// What it is a copy of.
        original: PathBuf,
        /// The data directory that the original is used from.
        owner: PathBuf,
        /// By which process.
        pid: String,
    },
    /// A restore into it was killed.
    #[error(
        "the data directory {} holds what a restore left that was interrupted (`{left}`), so it is \
         no data directory yet; remove all that is in it and restore again, or give another \
         --data-dir",
        directory.display()
    )]
    HalfRestored {
        /// The data directory.
        directory: PathBuf,
        /// What is left in it.
        left: String,
    },
    /// The note cannot be read or written.
    #[error(
        "failed to read or write {}, which says which database the data directory belongs to",
        path.display()
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is wrong with the database, as the end of a sentence.
fn what(database: &Path, belongs_to: &Path) -> String {
    match (database == belongs_to, database.exists()) {
        (true, true) => "another one is in its place now".to_owned(),
        (true, false) => "that is not there".to_owned(),
        (false, _) => format!("not to {}", database.display()),
    }
}

/// How the database comes back that the directory belongs to, as the begin of a sentence.
fn way_back(database: &Path, belongs_to: &Path) -> String {
    match database == belongs_to {
        true => "Put that database back there".to_owned(),
        false => format!("Start with `--database-url sqlite:{}`", belongs_to.display()),
    }
}

/// Makes sure that the directory, whose lock is ours, belongs to this database or to none yet, and
/// that the database is no copy of one that is in use. Changes neither.
///
/// # Errors
/// [`BelongsError::Other`], [`BelongsError::Copy`] and [`BelongsError::HalfRestored`] with what to
/// do.
pub(crate) async fn check(directory: &Path, database: &Path) -> Result<(), BelongsError> {
    if let Some(left) = left_by_restore(directory) {
        return Err(BelongsError::HalfRestored { directory: directory.to_owned(), left });
    }
    let noted = read(directory)?;
    let told = store::peek(database).await?;
    if let Some((noted, belongs_to)) = noted
        && told.id.as_ref() != Some(&noted)
    {
        let (directory, database) = (directory.to_owned(), resolved(database));
        if told.id.is_some() || !told.is_used {
            return Err(BelongsError::Other { directory, belongs_to, database });
        }
        let was_used_from_here =
            told.owner.is_some_and(|owner| identity::is_of(&directory, &owner.data_directory));
        if database == belongs_to && was_used_from_here {
            return Ok(());
        }
        return Err(BelongsError::Nameless { directory, belongs_to, id: noted, database });
    }
    if let Some(why) = told.damage {
        return Err(StoreError::Corrupt(why).into());
    }
    copied(directory, database, &told).map_or(Ok(()), Err)
}

/// That the database is a copy, when the one that had it last uses the original: somebody holds the
/// lock of its data directory, which belongs to this database and not to this file. Of one on
/// another machine, or in a container that shows nothing of its directory here, nobody can tell.
fn copied(directory: &Path, database: &Path, told: &DatabaseFacts) -> Option<BelongsError> {
    let (id, owner) = (told.id.as_ref()?, told.owner.as_ref()?);
    if file(&owner.path)? == file(directory)?
        || !identity::is_of(&owner.path, &owner.data_directory)
    {
        return None;
    }
    let (theirs, original) = read(&owner.path).ok()??;
    // By the same file they hear of each other, and the lease decides.
    if theirs != *id || file(&original)? == file(database)? {
        return None;
    }
    let pid = DataDirLock::holder(&owner.path)?;
    Some(BelongsError::Copy {
        database: resolved(database),
        original,
        owner: owner.path.clone(),
        pid,
    })
}

/// Which file or directory this is; `None` where there is none, or it cannot be told.
fn file(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Notes that the directory belongs to this database, which is open. Once it does, only a new path
/// of it is noted, and said. A database that has lost its id gets the one back that the directory
/// knows it by: [`check`] let no other one come so far.
///
/// # Errors
/// When the database or the directory cannot be written.
pub(crate) async fn note(
    directory: &Path,
    database: &Path,
    store: &Store,
) -> Result<(), BelongsError> {
    let path = resolved(database);
    let noted = read(directory)?;
    let known = noted.as_ref().map(|(known, _)| known.clone());
    let new = known.unwrap_or_else(|| hex(&clock::random::<16>()));
    let (id, is_given) = store.id_or(&new).await?;
    if is_given && noted.is_some() {
        tracing::warn!(
            "the database {} had no id that could be read (table `meta`, row `database_id`); it \
             lies where the one of this data directory lay and was last used from here, so it got \
             its id back",
            path.display()
        );
    }
    let before = store.lies_at(&path).await?.map(PathBuf::from);
    if let Some(before) = before
        .or_else(|| noted.clone().filter(|(noted, _)| *noted == id).map(|(_, path)| path))
        .filter(|it| resolved(it) != path)
    {
        tracing::warn!(
            "the database {} was last used at {}: it was moved there, or is a copy. A copy \
             applies as its original does, so no pvn-scheduler may use {} from now on, on \
             whatever machine; to look at a copy, make it with `pvn-scheduler backup` and \
             `pvn-scheduler restore`",
            path.display(),
            before.display(),
            before.display()
        );
    }
    if noted.is_some_and(|noted| noted == (id.clone(), path.clone())) {
        return Ok(());
    }
    let file = directory.join(FILE);
    private::replace(&file, format!("{id} {}\n", path.display()).as_bytes())
        .map_err(|source| BelongsError::Io { path: file, source })
}

/// The name of the directory that a restore into this one works in, if there is one.
pub(crate) fn left_by_restore(directory: &Path) -> Option<String> {
    let names = std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.into_iter().find(|name| name.starts_with(RESTORING))
}

fn resolved(path: &Path) -> PathBuf {
    paths::resolved(path).unwrap_or_else(|_| path.to_owned())
}

fn read(directory: &Path) -> Result<Option<(String, PathBuf)>, BelongsError> {
    let path = directory.join(FILE);
    match std::fs::read_to_string(&path) {
        // One that was cut names no database: none has an empty id.
        Ok(text) => {
            let (id, path) = text.trim_end_matches('\n').split_once(' ').unwrap_or_default();
            Ok(Some((id.to_owned(), PathBuf::from(path))))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BelongsError::Io { path, source }),
    }
}
