//! What works and what does not where a runtime's jobs run, for whoever asks. Called by `http`; the
//! runner of clusters finds out.

use schema::api::{Finding, RuntimeCheck};
use schema::status::{CheckKind, CheckStatus};

use super::planner::Request;
use super::{Caller, Handle, Refusal};

impl Handle {
    /// Finds out by trying.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`] when too many are under way,
    /// [`Refusal::Unavailable`].
    pub async fn check_runtime(
        &self,
        runtime: String,
        caller: Caller,
    ) -> Result<RuntimeCheck, Refusal> {
        let (runtime, places) =
            self.plan(|reply| Request::Places { runtime, caller, reply }).await?;
        if places.is_empty() {
            let message =
                format!("jobs of `{runtime}` run on no cluster; there is nothing to reach");
            let finding = Finding::skipped(&runtime, CheckKind::Connection, message);
            return Ok(RuntimeCheck { runtime, ok: true, checks: vec![finding] });
        }
        let checks = self.clusters.check(places).await.map_err(Refusal::Conflict)?;
        let ok = checks.iter().all(|finding| finding.status != CheckStatus::Failed);
        Ok(RuntimeCheck { runtime, ok, checks })
    }
}
