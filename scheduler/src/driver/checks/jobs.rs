//! What the tool of a service instance needs, found by a job that has all that its fetch has: a dry
//! run, which counts for nothing. Called by `checks`.

use std::time::Duration;

use schema::api::Finding;
use schema::id::{BlobId, JobId, RuntimeName};
use schema::status::{CheckKind, CheckStatus};
use schema::tool_check::{TOOL_CHECK_LIMIT_BYTES, ToolCheckOutput, ToolFinding};
use tokio::time::Instant;

use super::super::calls::Call;
use super::super::once::DryRun;
use super::super::{Caller, Handle, Refusal};
use super::ServedInstance;
use crate::store::JobRow;

/// How often a job is looked for: a person waits, and each look is one row.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// What the wrapper ends with for a command line that it does not understand. Source:
/// docs/wrapper.md, "Exit codes".
const WRAPPERS_OWN: i32 = 125;

/// How the document of a check begins: on a cluster, where the log has both streams, others may
/// have written before it.
const BEGINNING: &[u8] = b"{\"findings\":";

impl Handle {
    /// Runs the job and reads what it found.
    pub(super) async fn try_by_job(
        &self,
        runtime: &RuntimeName,
        instance: &ServedInstance,
        caller: &Caller,
        until: Instant,
    ) -> Result<Vec<Finding>, Refusal> {
        let job = match self.run_dry(instance, DryRun::Check, caller).await {
            Ok(job) => job,
            // All places are taken, say: nothing is known of the tool.
            Err(Refusal::Conflict(why)) => {
                return Ok(vec![Finding::skipped(runtime, CheckKind::Job, why)]);
            }
            Err(refused) => return Err(refused),
        };
        let findings = match self.end_of(job, until).await? {
            Some(row) => self.read(runtime, job, &row).await,
            None => vec![self.give_up(runtime, job, caller).await?],
        };
        Ok(findings.into_iter().map(|finding| Finding { job: Some(job), ..finding }).collect())
    }

    /// Begins a dry run of an instance.
    pub(super) async fn run_dry(
        &self,
        instance: &ServedInstance,
        what: DryRun,
        caller: &Caller,
    ) -> Result<JobId, Refusal> {
        let asked = self.call(|reply| Call::RunOnce {
            instance: instance.names.instance(),
            what,
            caller: caller.clone(),
            reply,
        });
        asked.await
    }

    /// The row of a job once it is over; `None` when it is not in time.
    pub(super) async fn end_of(
        &self,
        job: JobId,
        until: Instant,
    ) -> Result<Option<JobRow>, Refusal> {
        loop {
            let row = self.store.job_row(job).await?;
            if let Some(row) = row.filter(|row| row.ended_at.is_some()) {
                return Ok(Some(row));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    }

    /// Stops a job that takes too long, and says what it was at.
    pub(super) async fn give_up(
        &self,
        runtime: &RuntimeName,
        job: JobId,
        caller: &Caller,
    ) -> Result<Finding, Refusal> {
        let row = self.store.job_row(job).await?;
        let stopped = self.call(|reply| Call::Cancel { job, caller: caller.clone(), reply }).await;
        match stopped {
            // It has ended right now.
            Ok(()) | Err(Refusal::NotFound(_) | Refusal::Conflict(_)) => {}
            Err(refused) => return Err(refused),
        }
        let said = row.map(|row| format!("{}: {}", row.status, row.message)).unwrap_or_default();
        Ok(Finding::failed(
            runtime,
            CheckKind::Job,
            format!("the job did not end in time, and is stopped; {said}"),
            format!(
                "`pvnctl jobs logs {job}` shows how far it came. An image or a provider that is \
                 downloaded for the first time may take longer: check again then"
            ),
        ))
    }

    async fn read(&self, runtime: &RuntimeName, job: JobId, row: &JobRow) -> Vec<Finding> {
        let failed = |why: String| {
            // Of what is not known to it the wrapper says so.
            let remedy = if row.exit_code == Some(WRAPPERS_OWN) {
                format!(
                    "`pvnctl jobs logs {job}` shows what it said; if it does not know `check`, the \
                     wrapper in the image is an older one: put that of this version there"
                )
            } else {
                format!("mend what `pvnctl jobs logs {job}` shows, and check again")
            };
            vec![Finding::failed(runtime, CheckKind::Job, why, remedy)]
        };
        if row.exit_code != Some(0) {
            return failed(format!("the job {}: {}", row.status, row.message));
        }
        let Some(stdout) = row.report.as_ref().and_then(|report| report.stdout_blob_id) else {
            return failed("the job printed nothing".to_owned());
        };
        let Some(output) = self.document(stdout).await else {
            return failed("the job printed something else than findings".to_owned());
        };
        let ok = Finding::ok(runtime, CheckKind::Job, format!("{job} ran"));
        let found = output.findings.into_iter().map(|found| finding(runtime, job, found));
        [ok].into_iter().chain(found).collect()
    }

    async fn document(&self, stdout: BlobId) -> Option<ToolCheckOutput> {
        let blobs = self.checks.blobs.clone();
        let read = move || blobs.read(stdout, 0, TOOL_CHECK_LIMIT_BYTES);
        let bytes = tokio::task::spawn_blocking(read).await.ok()?.ok()??;
        document(&bytes)
    }
}

/// The document within what a job printed.
fn document(bytes: &[u8]) -> Option<ToolCheckOutput> {
    let start = bytes.windows(BEGINNING.len()).position(|window| window == BEGINNING)?;
    serde_json::Deserializer::from_slice(&bytes[start..]).into_iter().next()?.ok()
}

fn finding(runtime: &RuntimeName, job: JobId, found: ToolFinding) -> Finding {
    let ToolFinding { what, status, message, remedy } = found;
    // The wrapper in the image may know more than we do.
    let (check, message) = match what.parse::<CheckKind>() {
        Ok(check) => (check, message),
        Err(_) => (CheckKind::Tool, format!("{what}: {message}")),
    };
    let remedy = (status == CheckStatus::Failed)
        .then(|| remedy.unwrap_or_else(|| format!("`pvnctl jobs logs {job}` shows what it said")));
    Finding { remedy, ..Finding::new(runtime, check, status, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_wherever_they_stand_and_whatever_else_they_say() {
        let text = r#"+ aws --version
{"findings":[{"what":"tool","status":"OK","message":"m","new":1},
{"what":"later","status":"FAILED","message":"n"}]}
more"#;
        let output = document(text.as_bytes()).unwrap();
        let (runtime, job) = ("ecs".parse().unwrap(), JobId::from_bytes([1; 16]));
        let found: Vec<Finding> =
            output.findings.into_iter().map(|found| finding(&runtime, job, found)).collect();
        assert_eq!((found[0].check, found[0].status), (CheckKind::Tool, CheckStatus::Ok));
        assert_eq!((found[1].check, found[1].message.as_str()), (CheckKind::Tool, "later: n"));
        let remedy = found[1].remedy.as_ref().unwrap();
        assert!(remedy.contains("pvnctl jobs logs job-0101"), "{remedy}");
        assert_eq!(found[0].remedy, None);
        for text in ["", "{\"findings\":[", "{\"findings\": 7}", "{}"] {
            assert_eq!(document(text.as_bytes()), None, "{text}");
        }
    }
}
