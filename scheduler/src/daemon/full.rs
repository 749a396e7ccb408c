//! The start on a full disk: the database cannot even be opened without some room for its log, so the reserve makes way for the
//! start, what is not kept any more goes, and what is left of the reserve is taken back. From then on the disk is as full as it was,
//! and the daemon does what it does on a full disk: it reads, and starts nothing new. Called by `daemon`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::StartError;
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::retention::{Policy, Retention, reserve};
use crate::settings::Settings;
use crate::store::{Store, StoreError};

/// Room that the start may need, bytes: bringing the tables up to date writes into the log what it changes.
const ROOM_BYTES: u64 = 8 << 20;

/// With less than this a start is held to have failed for want of room: what the store asks for before it writes.
const NO_ROOM_BYTES: u64 = 1 << 20;

/// Longest time for removing before the daemon listens; it goes on removing afterwards.
const PRUNE_WITHIN: Duration = Duration::from_secs(10);

/// The reserve of a database, and whether it had to make way for this start.
pub(super) struct Way {
    reserve: PathBuf,
    is_given_up: bool,
}

impl Way {
    /// Gives the reserve up when there is little room.
    pub(super) fn make(database: &Path) -> Self {
        let reserve = reserve::beside(database);
        let is_given_up = match reserve::free_bytes(&reserve) {
            Some(free) if free < ROOM_BYTES => reserve::give_up(&reserve).unwrap_or_else(|error| {
                tracing::warn!(%error, path = %reserve.display(), "the room that was set aside for a full disk cannot be given up");
                false
            }),
            _ => false,
        };
        if is_given_up {
            tracing::warn!("the disk of {} is full; the start uses the room that was set aside for that", database.display());
        }
        Self { reserve, is_given_up }
    }

    /// Removes what is not kept any more, when there was little room.
    pub(super) async fn prune(&self, store: &Store, blobs: &Blobs, policy: Policy, clock: &Clock) {
        if !self.is_given_up {
            return;
        }
        let retention = Retention::at_start(store.clone(), blobs.clone(), policy, clock.clone(), self.reserve.clone());
        match tokio::time::timeout(PRUNE_WITHIN, retention.pass()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "what is not kept any more could not all be removed; it is tried again"),
            Err(_) => tracing::warn!("there is more to remove than {} s are enough for; it goes on later", PRUNE_WITHIN.as_secs()),
        }
    }

    /// Takes back what is left of it, before anything is started that would use it. Returns where it is.
    pub(super) fn take_back(self) -> PathBuf {
        if self.is_given_up {
            reserve::take_back(&self.reserve);
        } else {
            reserve::make(&self.reserve);
        }
        self.reserve
    }
}

/// Adds to the error of a start that failed for want of room what there is and what to do.
pub(super) fn explain(error: StartError, settings: &Settings) -> StartError {
    let is_of_room = matches!(&error, StartError::Store(StoreError::Unavailable(_)) | StartError::Io { .. } | StartError::Seal(_));
    let Ok(database) = settings.database_file() else { return error };
    let reserve = reserve::beside(&database);
    match reserve::free_bytes(&reserve) {
        Some(free) if is_of_room && free < NO_ROOM_BYTES => {
            let state = if reserve.exists() { "could not be given up" } else { "is used up, or was never made" };
            StartError::NoRoom {
                directory: settings.data_dir.clone(),
                free_kib: free >> 10,
                reserve: format!("{} {state}", reserve.display()),
                source: Box::new(error),
            }
        }
        _ => error,
    }
}
