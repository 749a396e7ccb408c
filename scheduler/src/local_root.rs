//! Where the commands of `local` start from, over restarts. Called by `daemon` at the start.
//!
//! What people approved, they approved for where it runs. So a daemon that is only started from
//! another directory goes on in the one that its database knows, also where that is not there at
//! present: it may be mounted late, or be being made anew. Somebody who means another says so
//! (`--local-root`).

use schema::log_kind::LogKind;
use std::path::{Path, PathBuf};

use crate::clock::Clock;
use crate::store::{Change, Commit, Result, Store, StoreError};

/// The directory in which the commands of `local` started last.
const ROOT: &str = "local_root";

/// The directory to use. `is_given`: somebody named this one; else it is the present directory.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn of(
    store: &Store,
    clock: &Clock,
    root: PathBuf,
    is_given: bool,
) -> Result<PathBuf> {
    let root = known_or(store, clock, root, is_given).await?;
    if !root.is_dir() {
        // Jobs on clusters need none, and what is mounted there may come later.
        tracing::warn!(
            "commands of `local` start in {}, which is no directory: no job of them can start \
             until it is one, or `--local-root` names another",
            root.display()
        );
    }
    Ok(root)
}

/// The one that the database knows, unless another one is meant.
async fn known_or(store: &Store, clock: &Clock, root: PathBuf, is_given: bool) -> Result<PathBuf> {
    let known = match store.meta(ROOT).await {
        Err(StoreError::Corrupt(_)) => None,
        known => known?.map(PathBuf::from),
    };
    let Some(before) = known.filter(|known| *known != root) else {
        return note(store, root, Commit::default()).await;
    };
    if !is_given {
        tracing::warn!(
            "commands of `local` start in {}, as before, and not in {}, where this was started: \
             `--local-root {}` changes that",
            before.display(),
            root.display(),
            root.display()
        );
        return Ok(before);
    }
    let message = format!(
        "commands of `local` start in {} from now on, no longer in {}",
        root.display(),
        before.display()
    );
    tracing::warn!("{message}");
    let mut commit = Commit::default();
    let (before, now) = (before.display().to_string(), root.display().to_string());
    let data = serde_json::json!({"before": before, "root": now});
    commit.tell(&store.counters().await?, clock.now(), LogKind::LocalRootChanged, message, data);
    note(store, root, commit).await
}

/// Remembers it; a name that is no text cannot be.
async fn note(store: &Store, root: PathBuf, mut commit: Commit) -> Result<PathBuf> {
    let is_known = |known: Option<String>| known.as_deref().map(Path::new) == Some(&root);
    if !store.meta(ROOT).await.is_ok_and(is_known) {
        commit.changes.extend(root.to_str().map(|text| Change::Meta(ROOT, text.to_owned())));
        if let Err(error) = store.commit(&commit).await {
            // A full disk keeps no daemon from reading; the next start notes it.
            tracing::warn!(%error, "where the commands of `local` start cannot be noted");
        }
    }
    Ok(root)
}
