//! Whether there is room for a change: on the disk of the database, and wherever what it decides is
//! started and kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::{Result, Store, StoreError};
use crate::room::{self, DiskRoom};

/// Room that the disk must have for a change. SQLite reuses its log, so on a full disk small
/// commits go on for a while, and jobs would be decided that have no room to run. Less than a
/// commit of a full batch with reports, 1 MiB.
const ROOM_BYTES: u64 = 1 << 20;

/// The same of files: what a change decides makes them, up to ten for each job that starts, and so
/// does the end of what runs. Also what stays for the next start, whose database needs files for
/// its log, and for `prune`.
const ROOM_FILES: u64 = 256;

/// Where what a change decides is started and kept, besides the database.
#[derive(Debug)]
pub(super) struct WorkDirectories {
    /// The directory of all; in itself nothing new is made.
    data: PathBuf,
    within: Vec<PathBuf>,
    /// Why nothing could be made in one of them when that was last tried.
    refused: watch::Receiver<Option<String>>,
}

impl Store {
    /// The same, which decides nothing while the disk of the data directory, or of one of those
    /// `within` it, is full either, or nothing can be written to one of these: jobs are started
    /// and their results kept there. `refused`: why nothing could be made in one when
    /// that was last tried.
    #[must_use]
    pub fn beside(
        self,
        data: &Path,
        within: impl Iterator<Item = PathBuf>,
        refused: watch::Receiver<Option<String>>,
    ) -> Self {
        Self {
            beside: Some(Arc::new(WorkDirectories {
                data: data.to_owned(),
                within: within.collect(),
                refused,
            })),
            ..self
        }
    }

    /// Whether the disks have room for a change. A disk that does not tell is tried.
    pub fn has_room(&self) -> bool {
        self.check_room().is_ok()
    }

    /// Refuses changes on a disk that is as good as full, and where what they decide cannot be
    /// kept.
    pub(super) fn check_room(&self) -> Result<()> {
        let is_enough = |path: &PathBuf| {
            check_disk(path).map_or(Ok(()), |lack| Err(StoreError::Unavailable(lack)))
        };
        is_enough(&self.path)?;
        let Some(beside) = &self.beside else { return Ok(()) };
        std::iter::once(&beside.data).chain(&beside.within).try_for_each(is_enough)?;
        let unwritable = beside
            .within
            .iter()
            .find_map(|path| room::why_unwritable(path))
            .or_else(|| beside.refused.borrow().clone());
        unwritable.map_or(Ok(()), |why| Err(StoreError::Unavailable(why)))
    }
}

/// What the disk that holds this path has too little of for a change.
fn check_disk(path: &Path) -> Option<String> {
    let lack = DiskRoom::on(path)?.lack("a change", ROOM_BYTES, ROOM_FILES)?;
    let disk = path.display();
    Some(format!(
        "the disk that holds {disk} {lack}; make room on it, or stop the scheduler and remove \
         what is not kept any more with `pvn-scheduler prune`"
    ))
}
