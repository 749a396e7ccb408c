//! What is done to the data of a daemon by hand: `prune`, `backup`, `restore`, `activate`. Called
//! by `main`. All but `backup` need the daemon stopped; jobs go on meanwhile.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use crate::belongs::{self, BelongsError};
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::key::{self, KeyError};
use crate::retention::reserve::{self, ReserveAtOpen};
use crate::retention::{Policy, Retention};
use crate::secrets::KEY_FILE;
use crate::settings::Settings;
use crate::store::{DataDirLock, LeaseHolder, Store, StoreError};
use crate::{identity, private};

pub mod backup;
mod left;
pub mod restore;

/// Where the data of a daemon is.
#[derive(Debug, Clone, Args)]
pub struct DataLocation {
    /// Where everything is kept
    #[arg(long, env = "PVN_DATA_DIR", default_value = "./pvn-data", value_name = "DIR")]
    pub data_dir: PathBuf,

    /// Database, as `sqlite:FILE` [default: `pvn.db` in the data directory]
    #[arg(long, env = "PVN_DATABASE_URL", value_name = "URL")]
    pub database_url: Option<String>,

    /// File with the key that seals secrets [default: `secret.key` in the data directory]
    #[arg(long, env = "PVN_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<PathBuf>,
}

impl DataLocation {
    fn database(&self) -> anyhow::Result<PathBuf> {
        let settings = Settings {
            database_url: self.database_url.clone(),
            ..Settings::in_directory(&self.data_dir)
        };
        let database = settings.database_file()?;
        match std::fs::metadata(&database) {
            Ok(metadata) if metadata.is_file() => Ok(database),
            // What cannot be looked at may well be there.
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                let whose = private::whose(&self.data_dir, error);
                Err(whose).with_context(|| {
                    format!("failed to look at the database {}", database.display())
                })
            }
            _ => bail!(
                "there is no database {}; name the data directory of a scheduler with --data-dir",
                database.display()
            ),
        }
    }

    fn key_file(&self) -> PathBuf {
        self.secret_key_file.clone().unwrap_or_else(|| self.data_dir.join(KEY_FILE))
    }

    /// Opens the database as its owner, with the directory locked.
    async fn open(&self) -> anyhow::Result<(DataDirLock, Store)> {
        let database = self.database()?;
        private::data_directory(&self.data_dir, &database)
            .with_context(|| unusable(&self.data_dir))?;
        let lock = DataDirLock::take(&self.data_dir).await?;
        belongs::check(&self.data_dir, &database).await?;
        let key = self.key_file();
        let sealer = key::open(&key, &database).await?;
        let id = identity::of(&self.data_dir).with_context(|| {
            format!("failed to tell the data directory {}", self.data_dir.display())
        })?;
        let store = Store::open_as(
            &database,
            sealer,
            &LeaseHolder::here(id, &self.data_dir, Clock::System.now()),
        )
        .await?;
        key::note(&store, &key, &database).await?;
        Ok((lock, store))
    }
}

/// What the errors about a data directory begin with.
fn unusable(directory: &Path) -> String {
    format!("failed to use the data directory {}", directory.display())
}

const PRUNE: &str = "\
A running daemon prunes by itself. Stop it for this, also when its disk is full; its jobs go on.

Examples:
  pvn-scheduler prune --data-dir /var/lib/pvn
  pvn-scheduler prune --data-dir /var/lib/pvn --retain-logs 2d --retain-jobs 1d --compact";

/// What can be typed after `prune`.
#[derive(Debug, Clone, Args)]
#[command(after_help = PRUNE)]
pub struct PruneArguments {
    #[command(flatten)]
    place: DataLocation,

    #[command(flatten)]
    retain: Policy,

    /// Write the database anew, so that it takes no more than it needs; needs as much room again
    #[arg(long)]
    compact: bool,
}

/// Removes what is not kept any more, at once. Returns what to tell.
///
/// # Errors
/// With what to do.
pub async fn prune(arguments: &PruneArguments) -> anyhow::Result<String> {
    let place = &arguments.place;
    let database = place.database()?;
    private::check_owner(&place.data_dir, &database).with_context(|| unusable(&place.data_dir))?;
    let free =
        || reserve::free(&database).map_or_else(|| "? MiB".to_owned(), |room| room.to_string());
    let before = free();
    // Whatever was half written goes first: that needs no room, and opening the database may.
    let (blobs, way) = {
        let held = DataDirLock::take(&place.data_dir).await?;
        // Where it cannot even be read without room, it is checked again when there is some.
        match belongs::check(&place.data_dir, &database).await {
            Ok(()) | Err(BelongsError::Store(StoreError::Unavailable(_))) => {}
            Err(refused) => return Err(refused.into()),
        }
        match key::refused(&place.key_file(), &database).await {
            Ok(()) | Err(KeyError::Store(StoreError::Unavailable(_))) => {}
            Err(refused) => return Err(refused.into()),
        }
        let blobs = Blobs::open(&place.data_dir.join("blobs"))
            .with_context(|| format!("failed to open the blobs in {}", place.data_dir.display()))?;
        drop(held);
        (blobs, ReserveAtOpen::make(&database))
    };
    let said = remove(arguments, blobs, &way).await.or_else(|error| full(place, error))?;
    let reserve = way.take_back();
    let aside = match std::fs::metadata(&reserve) {
        Ok(reserve) => format!("{} MiB are set aside for a full disk", reserve.len() >> 20),
        Err(_) => format!(
            "nothing is set aside for a full disk: that needs {} MiB of room",
            reserve::ROOM_BYTES >> 20
        ),
    };
    Ok(format!("{said}; {before} were free and {} are; {aside}", free()))
}

/// Adds to an error of a full disk what to do.
fn full<T>(place: &DataLocation, error: anyhow::Error) -> anyhow::Result<T> {
    match reserve::full(&place.data_dir, &place.database()?) {
        Some(full) => Err(error.context(full)),
        None => Err(error),
    }
}

/// Goes through everything once. Returns what was removed, in words.
async fn remove(
    arguments: &PruneArguments,
    blobs: Blobs,
    way: &ReserveAtOpen,
) -> anyhow::Result<String> {
    let (_lock, store) = arguments.place.open().await?;
    let numbers = store.pruned();
    let retention = Retention {
        store: store.clone(),
        blobs,
        policy: arguments.retain,
        clock: Clock::System,
        spool: None,
        reserve: way.reserve().to_owned(),
        numbers: numbers.clone(),
        pause: Duration::ZERO,
        leap: None,
        // Nothing is under way that could need a blob again.
        grace: Duration::ZERO,
    };
    retention.pass().await?;
    let mut said = match numbers.to_string() {
        none if none.is_empty() => "nothing was to be removed".to_owned(),
        removed => format!("removed: {removed}"),
    };
    if arguments.compact {
        store.compact().await?;
        said += "; the database was written anew";
    } else if !store.gives_back().await? {
        said += "; the database was made by an older pvn and keeps what is free in it: add \
                 --compact once to have it given back";
    }
    store.close().await;
    Ok(said)
}

/// What can be typed after `activate`.
#[derive(Debug, Clone, Args)]
pub struct ActivateArguments {
    #[command(flatten)]
    place: DataLocation,
}

/// Lets a restored scheduler act. Returns what to tell.
///
/// # Errors
/// With what to do.
pub async fn activate(arguments: &ActivateArguments) -> anyhow::Result<String> {
    let place = &arguments.place;
    let (_lock, store) = place.open().await.or_else(|error| full(place, error))?;
    let left = store.activate().await?;
    store.close().await;
    Ok(match left {
        Some(left) => {
            format!(
                "it applies from its next start on; make sure that the scheduler that it was \
                 backed up from never starts again\n{left}"
            )
        }
        None => "it was not restored, or it applies already; nothing was changed".to_owned(),
    })
}
