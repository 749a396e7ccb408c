//! One pass: through the blobs, the jobs of each instance, the log, the releases; then free pages
//! are given back. Called by [`super`]. Files come first, because removing them needs no room.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schema::id::BlobId;
use schema::time::Timestamp;

use super::rules::{self, LogRetention};
use super::{Retention, reserve};
use crate::blobs::Swept;
use crate::crash;
use crate::store::{JobGroup, Key, Named, StoreError};

/// Rows of one step: a transaction of some milliseconds.
pub(super) const STEP: usize = 200;
const STEP_ROWS: u32 = STEP as u32;

/// Pages that one step gives back to the disk, 1 MiB.
const PAGES: u32 = 256;

/// Free pages that stay in the database: what an hour writes need not come from the disk each time.
const SPARE_PAGES: u64 = 256;

/// How long a blob stays that nobody is known to need: longer than anything can lie between putting
/// a blob and committing what names it, a full disk over a weekend included.
const UNKNOWN_BLOBS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How far the log is gone through, for what goes soon and for what goes late.
const SHORT: &str = "events_pruned";
const LONG: &str = "events_pruned_long";

/// Why a pass did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The blobs.
    #[error("failed to remove files that are not needed any more")]
    Io(#[from] std::io::Error),
}

type Result<T> = std::result::Result<T, PassError>;

impl Retention {
    /// Goes through everything once.
    ///
    /// # Errors
    /// When the disk or the database fails; what was removed until then is.
    pub async fn pass(&self) -> Result<()> {
        let mut is_given_up = false;
        let passed = self.go_through(&mut is_given_up).await;
        if is_given_up {
            // What nothing needed of it is there for the next time: others fill the disk too.
            reserve::take_back(&self.reserve);
        }
        passed
    }

    async fn go_through(&self, is_given_up: &mut bool) -> Result<()> {
        let now = self.present().await?;
        let before = self.numbers.to_string();
        self.numbers.begin();
        let named = self.store.named().await?;
        let first = self.sweep_blobs(&named, now).await;
        let rows = match self.rows(&named, now).await {
            // Without any room the database cannot even remove: with the reserve it can.
            Err(PassError::Store(StoreError::Unavailable(why)))
                if !self.store.has_room() && reserve::give_up(&self.reserve)? =>
            {
                *is_given_up = true;
                tracing::warn!(
                    why,
                    "the disk is full; the room that was set aside for that is used to remove \
                     what is not kept any more"
                );
                self.rows(&named, now).await
            }
            other => other,
        };
        first?;
        rows?;
        self.sweep_spool(&named).await?;
        self.give_back().await?;
        reserve::make(&self.reserve);
        let unreadable = self.numbers.pass();
        if unreadable > 0 {
            tracing::warn!(
                rows = unreadable,
                "rows of the database that cannot be read are left where they are; `pvnctl jobs \
                 list` and the other lists name them"
            );
        }
        let after = self.numbers.to_string();
        if after != before {
            tracing::info!("removed since the start what is not kept any more: {after}");
        }
        Ok(())
    }

    async fn rows(&self, named: &Named, now: Timestamp) -> Result<()> {
        self.prune_jobs(named, now).await?;
        self.prune_events(now).await?;
        self.prune_notifications(now).await?;
        self.prune_releases(named, now).await
    }

    /// Removes files of blobs that no kept job left and no state names.
    async fn sweep_blobs(&self, named: &Named, now: Timestamp) -> Result<()> {
        let all_noted = loop {
            match self.store.note_blobs_of_before(STEP_ROWS).await {
                Ok(true) => self.rest().await,
                Ok(false) => break true,
                // On a full disk: what is not noted yet counts as needed.
                Err(StoreError::Unavailable(_)) => break false,
                Err(error) => return Err(error.into()),
            }
        };
        let mut needed = named.blobs.clone();
        let mut after = Key::default();
        while let Some((place, group)) = self.store.job_group_after(&after).await? {
            after = place;
            // One that cannot be read is skipped, and told when its jobs are.
            if let Ok(group) = group {
                needed.extend(self.store.landmarks(&group).await?);
            }
            tokio::task::yield_now().await;
        }
        self.sweep_old(&needed, now).await?;
        if all_noted { self.sweep_unknown(&needed, now).await } else { Ok(()) }
    }

    async fn sweep_old(&self, needed: &HashSet<BlobId>, now: Timestamp) -> Result<()> {
        let (logs, applies) = (self.policy.logs_before(now), self.policy.applies_before(now));
        // An apply's output may be kept shorter than a fetch's.
        let at = logs.max(applies);
        let mut after = (i64::MIN, Vec::new());
        loop {
            let step = self.store.old_blobs(logs, applies, &after, STEP_ROWS).await?;
            let Some(last) = step.last else { return Ok(()) };
            after = last;
            self.skipped(&step.unreadable);
            let blobs: Vec<BlobId> =
                step.rows.into_iter().filter(|blob| !needed.contains(blob)).collect();
            let blobs = self.remove_files(blobs, system(now).checked_sub(self.grace)).await?;
            crash::at(crash::AFTER_SWEEP);
            if blobs.is_empty() {
                continue;
            }
            match self.store.remove_blobs(&blobs, at).await {
                // The rows go once there is room again.
                Ok(()) | Err(StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error.into()),
            }
            self.rest().await;
        }
    }

    /// Blobs that no job is known to have left: of a commit that never came.
    async fn sweep_unknown(&self, needed: &HashSet<BlobId>, now: Timestamp) -> Result<()> {
        let Some(before) = system(now).checked_sub(UNKNOWN_BLOBS_KEPT) else { return Ok(()) };
        for first in 0..=u8::MAX {
            let blobs = self.blobs.clone();
            let lying = tokio::task::spawn_blocking(move || blobs.lying(first))
                .await
                .map_err(std::io::Error::other)??;
            let old: Vec<BlobId> = lying
                .into_iter()
                .filter(|blob| blob.needed_at < before && !needed.contains(&blob.id))
                .map(|blob| blob.id)
                .collect();
            for piece in old.chunks(STEP) {
                let known = self.store.known_blobs(piece).await?;
                let unknown: Vec<BlobId> =
                    piece.iter().copied().filter(|blob| !known.contains(blob)).collect();
                self.remove_files(unknown, Some(before)).await?;
                self.rest().await;
            }
        }
        Ok(())
    }

    /// Removes the files of these blobs that nobody put or needed since `before`. Returns those
    /// that are not there any more.
    async fn remove_files(
        &self,
        mut ids: Vec<BlobId>,
        before: Option<SystemTime>,
    ) -> Result<Vec<BlobId>> {
        let Some(before) = before else { return Ok(Vec::new()) };
        let (blobs, numbers) = (self.blobs.clone(), self.numbers.clone());
        let sweep = move || {
            let mut failed = Ok(());
            ids.retain(|id| match blobs.sweep(*id, before) {
                Ok(Swept::Gone(bytes)) => {
                    numbers.blob(bytes);
                    true
                }
                Ok(Swept::Absent) => true,
                Ok(Swept::Stays) => false,
                Err(error) => {
                    failed = Err(error);
                    false
                }
            });
            failed.map(|()| ids)
        };
        tokio::task::spawn_blocking(sweep)
            .await
            .map_err(std::io::Error::other)?
            .map_err(PassError::Io)
    }

    async fn prune_jobs(&self, named: &Named, now: Timestamp) -> Result<()> {
        let mut after = Key::default();
        while let Some((place, group)) = self.store.job_group_after(&after).await? {
            after = place;
            match group {
                Ok(group) => self.prune_group(&group, named, now).await?,
                Err(why) => self.skipped(&[why]),
            }
        }
        Ok(())
    }

    async fn prune_group(&self, group: &JobGroup, named: &Named, now: Timestamp) -> Result<()> {
        let Some(below) = self.store.newest_jobs_from(group, self.policy.job_count).await? else {
            return Ok(());
        };
        let cutoff = self.policy.jobs_before(group.kind, now);
        let mut after = 0;
        loop {
            let step = self.store.old_jobs(group, after, below, STEP_ROWS).await?;
            let Some(last) = step.last else { return Ok(()) };
            after = last;
            self.skipped(&step.unreadable);
            let verdict = rules::old_jobs(&step.rows, cutoff, &named.jobs);
            if !verdict.remove.is_empty() {
                let documents = self.store.remove_jobs(&verdict.remove).await?;
                self.numbers.jobs(verdict.remove.len(), documents);
                self.rest().await;
            }
            if verdict.is_done {
                return Ok(());
            }
        }
    }

    async fn prune_events(&self, now: Timestamp) -> Result<()> {
        let (short, long) = (self.policy.events_before(now), self.policy.applies_before(now));
        self.prune_entries(SHORT, short, |entry| entry == LogRetention::Short).await?;
        self.prune_entries(LONG, long, |entry| entry != LogRetention::Always).await
    }

    async fn prune_entries(
        &self,
        noted: &'static str,
        cutoff: Timestamp,
        goes: impl Fn(LogRetention) -> bool,
    ) -> Result<()> {
        let mut after = self.store.progress(noted).await?.unwrap_or(0);
        loop {
            let step = self.store.old_entries(after, STEP_ROWS).await?;
            let Some(last) = step.last else { return Ok(()) };
            self.skipped(&step.unreadable);
            let young = step.rows.iter().find(|entry| entry.at >= cutoff).map(|entry| entry.seq);
            let old: Vec<_> = step.rows.iter().take_while(|entry| entry.at < cutoff).collect();
            // Those that cannot be read between the old ones are passed, those behind them are
            // looked at again.
            match (young, old.last()) {
                (None, _) => after = last,
                (Some(_), Some(last)) => after = last.seq,
                (Some(_), None) => return Ok(()),
            }
            let going: Vec<i64> = old
                .iter()
                .filter(|entry| goes(rules::entry(&entry.kind, entry.by_person)))
                .map(|entry| entry.seq)
                .collect();
            self.store.remove_entries(&going, (noted, after)).await?;
            self.numbers.events(going.len());
            if young.is_some() {
                return Ok(());
            }
            self.rest().await;
        }
    }

    /// Messages to people go as the log does that they tell of.
    async fn prune_notifications(&self, now: Timestamp) -> Result<()> {
        let cutoff = self.policy.events_before(now);
        while let gone @ 1.. = self.store.remove_notifications(cutoff, STEP_ROWS).await? {
            self.numbers.notifications(gone);
            self.rest().await;
        }
        Ok(())
    }

    async fn prune_releases(&self, named: &Named, now: Timestamp) -> Result<()> {
        let (cutoff, keep) = (self.policy.applies_before(now), self.policy.job_count);
        let mut after = 0;
        loop {
            let step = self.store.old_releases(cutoff, keep, after, STEP_ROWS).await?;
            let Some(last) = step.last else { break };
            after = last;
            self.skipped(&step.unreadable);
            let going: Vec<_> =
                step.rows.into_iter().filter(|release| !named.releases.contains(release)).collect();
            if !going.is_empty() {
                self.store.remove_releases(&going, named).await?;
                self.numbers.releases(going.len());
            }
            self.rest().await;
        }
        while let gone @ 1.. = self.store.remove_old_documents(cutoff, keep, STEP_ROWS).await? {
            self.numbers.configs(gone);
            self.rest().await;
        }
        Ok(())
    }

    /// Rows that cannot be read are left where they are: a person has to look at them.
    fn skipped(&self, rows: &[String]) {
        self.numbers.unreadable(rows.len());
        for why in rows {
            tracing::debug!(why, "a row that cannot be read is left where it is");
        }
    }

    /// Gives what is free in the database back to the disk.
    async fn give_back(&self) -> Result<()> {
        if !self.store.gives_back().await? {
            return Ok(());
        }
        while self.store.give_back(PAGES).await? > SPARE_PAGES + u64::from(PAGES) {
            self.rest().await;
        }
        Ok(self.store.checkpoint().await?)
    }
}

/// An instant as the file system writes it.
fn system(at: Timestamp) -> SystemTime {
    let millis = Duration::from_millis(at.as_millis().unsigned_abs());
    if at.as_millis() < 0 { UNIX_EPOCH - millis } else { UNIX_EPOCH + millis }
}
