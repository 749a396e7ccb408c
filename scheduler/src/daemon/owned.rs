//! What belongs to one daemon alone while it runs: its address, its directory, its database.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use super::error::StartError;
use super::{full, io_error, places, prepare};
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::retention::reserve::ReserveAtOpen;
use crate::secrets::{KEY_FILE, Sealer};
use crate::settings::Settings;
use crate::store::{DataDirLock, LeaseHolder, Store};
use crate::{belongs, identity, key, private, spools};

/// All of it. What is dropped first stands first: the lock goes last, also when a start fails.
pub(super) struct OwnedPlaces {
    pub(super) blobs: Blobs,
    pub(super) store: Store,
    pub(super) sealer: Sealer,
    /// Where the store is told why it has to refuse to write, if it has to.
    pub(super) refused: watch::Sender<Option<String>>,
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) reserve: ReserveAtOpen,
    pub(super) lock: DataDirLock,
}

impl OwnedPlaces {
    pub(super) async fn open(settings: &Settings, clock: &Clock) -> Result<Self, StartError> {
        let data = &settings.data_dir;
        let database = settings.database_file()?;
        private::data_directory(data, &database)
            .map_err(io_error(format!("use the data directory {}", data.display())))?;
        let lock = DataDirLock::take(data).await?;
        let reserve = ReserveAtOpen::make(&database);
        belongs::check(data, &database).await?;
        let (listener, address) = listen(settings.listen)?;
        let refused = watch::Sender::new(None);
        let (store, sealer) = open_store(settings, &database, clock, refused.subscribe()).await?;
        let blobs = Blobs::open(&data.join("blobs"))
            .map_err(io_error(format!("open the blobs in {}", data.display())))?;
        full::prune(&reserve, &store, &blobs, settings.retain, clock).await;
        Ok(Self { blobs, store, sealer, refused, listener, address, reserve, lock })
    }
}

/// Listens, so that nothing is made for a daemon whose address is taken.
fn listen(at: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::Taken(at),
        _ => io_error(format!("listen on {at}"))(error),
    };
    let listener = TcpListener::bind(at).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

/// Opens the database as its owner, or makes it, with the key that seals what is secret in it; both
/// know each other then, and the directory.
async fn open_store(
    settings: &Settings,
    database: &Path,
    clock: &Clock,
    refused: watch::Receiver<Option<String>>,
) -> Result<(Store, Sealer), StartError> {
    let data = &settings.data_dir;
    let key_file = settings.secret_key_file.clone().unwrap_or_else(|| data.join(KEY_FILE));
    let sealer = key::open(&key_file, database).await?;
    private::database(database)
        .map_err(io_error(format!("make the database {}", database.display())))?;
    let id = identity::of(data)
        .map_err(io_error(format!("tell the data directory {}", data.display())))?;
    let owner = LeaseHolder::here(id, data, clock.now());
    let store = Store::open_as(database, sealer.clone(), &owner).await?.beside(
        data,
        places::in_data(data),
        refused,
    );
    key::note(&store, &key_file, database).await?;
    belongs::note(data, database, &store).await?;
    prepare::prepare(&store, clock, data).await?;
    let spool = spool_directory(data);
    let id = identity::of(&spool)
        .map_err(io_error(format!("tell the spool directory {}", spool.display())))?;
    spools::note(&store, clock, &id, &spool).await?;
    Ok((store, sealer))
}

pub(super) fn spool_directory(data: &Path) -> PathBuf {
    data.join("spool")
}
