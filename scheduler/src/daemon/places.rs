//! Whether the directories that a running daemon works in are still those that it opened. One that was moved away, removed or mounted
//! over while it runs takes away what its jobs report into, and nothing that is begun in a new one of that name is known to the rest.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often they are looked at. Source: that of the database's lease.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Those in a data directory.
const OURS: [&str; 6] = ["blobs", "cluster", "instances", "spool", "spool/applies", "uploads"];

/// The directories as they were when the daemon started. They are kept open: some file systems (overlayfs on several disks) give a
/// directory that nobody has open another number.
#[derive(Debug)]
pub(super) struct OpenedDirectories(Vec<(PathBuf, File)>);

impl OpenedDirectories {
    /// Those that are there now.
    pub(super) fn of(data: &Path) -> Self {
        let there = OURS.iter().map(|name| data.join(name)).filter_map(|path| Some((path.clone(), File::open(path).ok()?)));
        Self(there.collect())
    }

    /// Returns once one of them is gone or another one: which.
    pub(super) async fn gone(self) -> PathBuf {
        let directories = std::sync::Arc::new(self.0);
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let looked = directories.clone();
            // A disk that hangs keeps this look and nothing else.
            let gone = tokio::task::spawn_blocking(move || {
                looked.iter().find(|(path, opened)| is_other(path, opened)).map(|(path, _)| path.clone())
            })
            .await;
            if let Ok(Some(path)) = gone {
                return path;
            }
        }
    }
}

/// Whether there is known to be another one at this path, or none. What cannot be asked may be there.
fn is_other(path: &Path, opened: &File) -> bool {
    match (std::fs::metadata(path), opened.metadata()) {
        (Ok(found), Ok(opened)) => (found.dev(), found.ino()) != (opened.dev(), opened.ino()),
        (Err(error), _) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        (Ok(_), Err(_)) => false,
    }
}
