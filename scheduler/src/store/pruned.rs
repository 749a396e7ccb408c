//! What retention removed since the start, for `/metrics` and for people.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of what was removed. Shared.
#[derive(Debug, Default)]
pub struct RetentionMetrics {
    jobs: AtomicU64,
    documents: AtomicU64,
    events: AtomicU64,
    releases: AtomicU64,
    configs: AtomicU64,
    notifications: AtomicU64,
    blobs: AtomicU64,
    blob_bytes: AtomicU64,
    spool: AtomicU64,
    passes: AtomicU64,
    /// Of the pass that is made.
    unreadable_now: AtomicU64,
    /// Of the last pass.
    unreadable: AtomicU64,
}

impl RetentionMetrics {
    pub(crate) fn jobs(&self, jobs: usize, documents: u64) {
        add(&self.jobs, jobs as u64);
        add(&self.documents, documents);
    }

    pub(crate) fn events(&self, events: usize) {
        add(&self.events, events as u64);
    }

    pub(crate) fn releases(&self, releases: usize) {
        add(&self.releases, releases as u64);
    }

    pub(crate) fn configs(&self, versions: u64) {
        add(&self.configs, versions);
    }

    pub(crate) fn notifications(&self, messages: u64) {
        add(&self.notifications, messages);
    }

    pub(crate) fn blob(&self, bytes: u64) {
        add(&self.blobs, 1);
        add(&self.blob_bytes, bytes);
    }

    pub(crate) fn spool_directories(&self, directories: usize) {
        add(&self.spool, directories as u64);
    }

    pub(crate) fn begin(&self) {
        self.unreadable_now.store(0, Ordering::Relaxed);
    }

    pub(crate) fn unreadable(&self, rows: usize) {
        add(&self.unreadable_now, rows as u64);
    }

    /// A pass has come to its end. Returns how many rows it could not read.
    pub(crate) fn pass(&self) -> u64 {
        add(&self.passes, 1);
        let unreadable = self.unreadable_now.swap(0, Ordering::Relaxed);
        self.unreadable.store(unreadable, Ordering::Relaxed);
        unreadable
    }

    fn kinds(&self) -> [(&'static str, u64); 8] {
        [
            ("jobs", &self.jobs),
            ("documents", &self.documents),
            ("events", &self.events),
            ("releases", &self.releases),
            ("configs", &self.configs),
            ("notifications", &self.notifications),
            ("blobs", &self.blobs),
            ("spool", &self.spool),
        ]
        .map(|(kind, number)| (kind, number.load(Ordering::Relaxed)))
    }

    /// Whole passes so far.
    pub fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// By metric name with labels.
    #[expect(
        clippy::cast_precision_loss,
        reason = "Prometheus counts in floating point; beyond 2^53 nobody reads the last digit"
    )]
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let mut metrics: BTreeMap<String, f64> = self
            .kinds()
            .into_iter()
            .map(|(kind, number)| (format!("pvn_pruned_total{{kind=\"{kind}\"}}"), number as f64))
            .collect();
        metrics.insert(
            "pvn_pruned_blob_bytes_total".to_owned(),
            self.blob_bytes.load(Ordering::Relaxed) as f64,
        );
        metrics.insert(
            "pvn_prune_unreadable_rows".to_owned(),
            self.unreadable.load(Ordering::Relaxed) as f64,
        );
        metrics.insert("pvn_prune_passes_total".to_owned(), self.passes() as f64);
        metrics
    }
}

/// As `3 jobs, 2 blobs (10 KiB)`; empty when nothing was removed.
impl std::fmt::Display for RetentionMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut first = true;
        for (kind, number) in self.kinds().into_iter().filter(|(_, number)| *number > 0) {
            write!(f, "{}{number} {kind}", if first { "" } else { ", " })?;
            if kind == "blobs" {
                write!(f, " ({} KiB)", self.blob_bytes.load(Ordering::Relaxed) >> 10)?;
            }
            first = false;
        }
        Ok(())
    }
}

fn add(to: &AtomicU64, number: u64) {
    to.fetch_add(number, Ordering::Relaxed);
}
