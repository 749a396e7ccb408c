//! Whether the directories that a running daemon works in are still those that it opened, and can
//! be written to. One that was moved away, removed or mounted over while it runs takes away what
//! its jobs report into, and nothing that is begun in a new one of that name is known to the rest.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::room;

/// How often they are looked at. Source: that of the database's lease.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Those in a data directory.
const OURS: [&str; 6] = ["blobs", "cluster", "instances", "spool", "spool/applies", "uploads"];

/// Their paths.
pub(super) fn in_data(data: &Path) -> impl Iterator<Item = PathBuf> {
    OURS.iter().map(|name| data.join(name))
}

/// The directories as they were when the daemon started. They are kept open: some file systems
/// (overlayfs on several disks) give a directory that nobody has open another number.
#[derive(Debug)]
pub(super) struct OpenedDirectories {
    opened: Vec<(PathBuf, File)>,
    refused: watch::Sender<Option<String>>,
}

impl OpenedDirectories {
    /// Those that are there now. Why nothing can be made in one is told at once.
    pub(super) fn of(data: &Path, refused: watch::Sender<Option<String>>) -> Self {
        let opened: Vec<_> =
            in_data(data).filter_map(|path| Some((path.clone(), File::open(path).ok()?))).collect();
        refused.send_replace(why_unwritable(&opened));
        Self { opened, refused }
    }

    /// Returns once one of them is gone or another one: which. Tells meanwhile why nothing can be
    /// made in one.
    pub(super) async fn gone(self) -> PathBuf {
        let opened = Arc::new(self.opened);
        // They were looked at when they were opened.
        let mut look = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        loop {
            look.tick().await;
            let looked = opened.clone();
            // A disk that hangs keeps this look and nothing else.
            match tokio::task::spawn_blocking(move || look_at(&looked)).await {
                Ok(PlacesLook::Gone(path)) => return path,
                Ok(PlacesLook::There { why_unwritable }) => {
                    self.refused.send_replace(why_unwritable)
                }
                Err(_) => None,
            };
        }
    }
}

/// What a look at all of them shows.
enum PlacesLook {
    Gone(PathBuf),
    There { why_unwritable: Option<String> },
}

fn look_at(opened: &[(PathBuf, File)]) -> PlacesLook {
    match opened.iter().find(|(path, opened)| is_other(path, opened)) {
        Some((path, _)) => PlacesLook::Gone(path.clone()),
        None => PlacesLook::There { why_unwritable: why_unwritable(opened) },
    }
}

/// Why nothing can be made in one of them, found out by trying.
fn why_unwritable(opened: &[(PathBuf, File)]) -> Option<String> {
    opened.iter().find_map(|(path, _)| room::why_nothing_is_made(path))
}

/// Whether there is known to be another one at this path, or none. What cannot be asked may be
/// there.
fn is_other(path: &Path, opened: &File) -> bool {
    match (std::fs::metadata(path), opened.metadata()) {
        (Ok(found), Ok(opened)) => (found.dev(), found.ino()) != (opened.dev(), opened.ino()),
        (Err(error), _) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        (Ok(_), Err(_)) => false,
    }
}
