//! The start on a full disk: the database cannot even be opened without some room for its log, so
//! the reserve makes way for the start, what is not kept any more goes, and what is left of the
//! reserve is taken back. From then on the disk is as full as it was, and the daemon does what it
//! does on a full disk: it reads, and starts nothing new. Called by `daemon`.

use std::time::Duration;

use super::{StartError, places};
use crate::belongs::BelongsError;
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::retention::reserve::{self, ReserveAtOpen};
use crate::retention::{Policy, Retention};
use crate::room;
use crate::settings::Settings;
use crate::store::{LockError, Store, StoreError};

/// Longest time for removing before the daemon listens; it goes on removing afterwards.
const PRUNE_WITHIN: Duration = Duration::from_secs(10);

/// Removes what is not kept any more, when there was little room.
pub(super) async fn prune(
    way: &ReserveAtOpen,
    store: &Store,
    blobs: &Blobs,
    policy: Policy,
    clock: &Clock,
) {
    if !way.is_given_up() {
        return;
    }
    let retention = Retention::at_start(
        store.clone(),
        blobs.clone(),
        policy,
        clock.clone(),
        way.reserve().to_owned(),
    );
    match tokio::time::timeout(PRUNE_WITHIN, retention.pass()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(
                %error,
                "what is not kept any more could not all be removed; it is tried again"
            )
        }
        Err(_) => tracing::warn!(
            "there is more to remove than {} s are enough for; it goes on later",
            PRUNE_WITHIN.as_secs()
        ),
    }
}

/// Adds to the error of a start that failed for want of room, or because a disk takes nothing, what
/// there is and what to do.
pub(super) fn explain(error: StartError, settings: &Settings) -> StartError {
    let is_of_room = matches!(
        &error,
        StartError::Store(StoreError::Unavailable(_))
            | StartError::Belongs(
                BelongsError::Store(StoreError::Unavailable(_)) | BelongsError::Io { .. }
            )
            | StartError::Lock(LockError::Io { .. })
            | StartError::Io { .. }
            | StartError::Seal(_)
    );
    let full = || {
        settings
            .database_file()
            .ok()
            .and_then(|database| reserve::full(&settings.data_dir, &database))
    };
    let read_only = || {
        let data = &settings.data_dir;
        std::iter::once(data.clone())
            .chain(places::in_data(data))
            .find_map(|path| room::why_disk_takes_nothing(&path))
    };
    match is_of_room.then(|| full().or_else(read_only)).flatten() {
        Some(why) => StartError::Disk { why, source: Box::new(error) },
        None => error,
    }
}
