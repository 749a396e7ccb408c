//! Numbers about the driver for `/metrics`.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::RuntimeName;
use schema::status::{JobKind, Status};

use super::run::DriverLoop;

/// What the loop counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoopMetrics {
    /// Transactions committed since the start.
    pub commits: u64,
    /// Rows that they wrote or removed, at most.
    pub rows: u64,
    /// Transactions that failed since the start.
    pub commit_failures: u64,
    /// Jobs that ended since the start.
    pub jobs_ended: u64,
}

impl DriverLoop {
    #[expect(
        clippy::cast_precision_loss,
        reason = "Prometheus counts in floating point; beyond 2^53 nobody reads the last digit"
    )]
    pub(super) fn metrics(&self) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::new();
        let mut instances: BTreeMap<Status, u64> =
            Status::ALL.iter().map(|status| (*status, 0)).collect();
        for kept in self.world.instances.values() {
            *instances.entry(kept.state.standing().status).or_default() += 1;
        }
        for (status, count) in instances {
            metrics.insert(format!("pvn_instances{{status=\"{status}\"}}"), count as f64);
        }
        self.count_runtimes(&mut metrics);
        for kind in JobKind::ALL {
            metrics.insert(
                format!("pvn_jobs_in_flight{{kind=\"{kind}\"}}"),
                self.world.lanes.in_flight(*kind) as f64,
            );
            metrics.insert(
                format!("pvn_instances_waiting{{kind=\"{kind}\"}}"),
                self.world.lanes.waiting(*kind) as f64,
            );
        }
        metrics.insert("pvn_jobs_ended_total".to_owned(), self.numbers.jobs_ended as f64);
        metrics.insert("pvn_commits_total".to_owned(), self.numbers.commits as f64);
        metrics.insert("pvn_rows_written_total".to_owned(), self.numbers.rows as f64);
        metrics.insert("pvn_commit_failures_total".to_owned(), self.numbers.commit_failures as f64);
        metrics.insert("pvn_actions_waiting".to_owned(), self.waiting.len() as f64);
        metrics
    }

    /// Of each runtime that serves something how many of its instances failed, and whether its
    /// applies are held.
    fn count_runtimes(&self, metrics: &mut BTreeMap<String, f64>) {
        let held: BTreeSet<&RuntimeName> =
            self.world.breakers.limits().map(|(runtime, _)| runtime).collect();
        let mut failed: BTreeMap<&RuntimeName, f64> =
            held.iter().map(|runtime| (*runtime, 0.0)).collect();
        for kept in self.world.instances.values() {
            let standing = kept.state.standing();
            if standing.status != Status::Deleted {
                *failed.entry(&kept.runtime).or_default() +=
                    f64::from(u8::from(standing.status == Status::Failed));
            }
        }
        for (runtime, failed) in failed {
            let label = format!("{{runtime=\"{runtime}\"}}");
            let is_held = f64::from(u8::from(held.contains(runtime)));
            metrics.insert(format!("pvn_runtime_instances_failed{label}"), failed);
            metrics.insert(format!("pvn_runtime_applies_held{label}"), is_held);
        }
    }
}
