//! Notices that config files may have changed. It only makes us look sooner: what has changed is
//! found by reading, so an event too many costs a read of some small files and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use pvnctl::failure::Failure;
use schema::api::ConfigFile;
use tokio::sync::Notify;
use tokio::time::Instant;

/// An editor writes a file in several steps; this long after the last one it is whole. Far below
/// the second within which a change must have converged.
const QUIET: Duration = Duration::from_millis(50);

/// A file that is written all the time is read this often all the same.
const LONGEST_NOISE: Duration = Duration::from_millis(500);

/// Watches the directories of the files, not those below: the data directory, where jobs write all
/// the time, is one.
pub(super) struct ConfigWatch {
    watcher: RecommendedWatcher,
    news: Arc<Notify>,
    watched: BTreeSet<PathBuf>,
    /// Since when something has changed that was not returned yet.
    noticed: Option<Instant>,
}

impl ConfigWatch {
    /// Watches `root` and the directory of every file.
    pub(super) fn start(root: &Path, files: &[ConfigFile]) -> Result<Self, Failure> {
        let news = Arc::new(Notify::new());
        let tell = Arc::clone(&news);
        let cannot = |error: notify::Error| {
            Failure::with_next(
                format!("cannot watch {}: {error}", root.display()),
                "run without --watch",
            )
        };
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a file is an event too, and it is we who read.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                tell.notify_one();
            }
        })
        .map_err(cannot)?;
        let mut watch = Self { watcher, news, watched: BTreeSet::new(), noticed: None };
        watch.watcher.watch(root, RecursiveMode::NonRecursive).map_err(cannot)?;
        watch.watched.insert(root.to_owned());
        watch.follow(files);
        Ok(watch)
    }

    /// Watches the directories of these files too. One that cannot be watched is left out; the
    /// others still are.
    pub(super) fn follow(&mut self, files: &[ConfigFile]) {
        for file in files {
            let path = Path::new(&file.path);
            let directory = path.parent().unwrap_or(Path::new("."));
            let attached = file
                .attachments
                .keys()
                .filter_map(|attached| directory.join(attached).parent().map(Path::to_owned));
            for directory in std::iter::once(directory.to_owned()).chain(attached) {
                let directory =
                    if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
                if !self.watched.contains(&directory)
                    && self.watcher.watch(&directory, RecursiveMode::NonRecursive).is_ok()
                {
                    self.watched.insert(directory);
                }
            }
        }
    }

    /// Returns when something has changed and has been quiet for a moment. Safe to drop and call
    /// again: what was noticed stays noticed until it has been returned.
    pub(super) async fn changed(&mut self) {
        let since = match self.noticed {
            Some(since) => since,
            None => {
                self.news.notified().await;
                *self.noticed.insert(Instant::now())
            }
        };
        let quiet =
            async { while tokio::time::timeout(QUIET, self.news.notified()).await.is_ok() {} };
        // Still noisy is as good as quiet: what is read half will be read again.
        let _ = tokio::time::timeout_at(since + LONGEST_NOISE, quiet).await;
        self.noticed = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_is_noticed_once_it_is_quiet() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = ConfigWatch::start(dir.path(), &[]).unwrap();
        std::fs::write(dir.path().join("a.pvn.yaml"), "x").unwrap();
        tokio::time::timeout(Duration::from_secs(10), watch.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn a_change_is_not_lost_when_waiting_for_quiet_is_cut_short() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = ConfigWatch::start(dir.path(), &[]).unwrap();
        std::fs::write(dir.path().join("a.pvn.yaml"), "x").unwrap();
        watch.news.notify_one();
        assert!(
            futures::poll!(std::pin::pin!(watch.changed())).is_pending(),
            "it is not quiet yet"
        );
        assert!(watch.noticed.is_some());
        tokio::time::timeout(Duration::from_secs(10), watch.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn files_elsewhere_are_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut watch = ConfigWatch::start(dir.path(), &[]).unwrap();
        let path = other.path().join("b.pvn.yaml").display().to_string();
        watch.follow(&[ConfigFile { path: path.clone(), ..ConfigFile::default() }]);
        std::fs::write(&path, "x").unwrap();
        tokio::time::timeout(Duration::from_secs(10), watch.changed()).await.unwrap();
    }
}
