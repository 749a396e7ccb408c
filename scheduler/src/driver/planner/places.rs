//! Where on clusters the jobs of a runtime run, for whoever checks that.

use schema::id::RuntimeName;
use schema::log_kind::LogKind;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::snapshot::Concerned;
use super::{Planner, entry};
use crate::compile::{ClusterPlace, cluster_places};

impl Planner {
    /// The runtime's name and its places; none when its jobs run on no cluster. Noted in the log,
    /// because a check makes a Job.
    pub(super) async fn places(
        &self,
        runtime: &str,
        caller: &Caller,
    ) -> Result<(RuntimeName, Vec<ClusterPlace>), Refusal> {
        let found = self.store.find_runtime(runtime).await?;
        let row = found.ok_or_else(|| {
            Refusal::NotFound(format!(
                "there is no runtime `{runtime}`; `pvnctl runtimes list` shows those there are"
            ))
        })?;
        let estate = self.estate(&Concerned::runtimes_only()).await?;
        let places = if self.options.everything_local {
            Vec::new()
        } else {
            cluster_places(&estate.configs, &row.name)
        };
        if !places.is_empty() {
            let message = format!("{} checks runtime {}", caller.who, row.name);
            let entries = vec![entry(
                LogKind::RuntimeChecked,
                caller,
                message,
                serde_json::json!({"runtime": row.name}),
            )];
            self.commit(Plan { entries, ..Plan::default() }).await?;
        }
        Ok((row.name, places))
    }
}
