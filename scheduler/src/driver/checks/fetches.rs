//! Whether the fetch of a `custom` runtime on this machine only looks: it is run twice, as dry
//! runs, with nothing applied between. Called by `checks`.

use schema::api::Finding;
use schema::id::RuntimeName;
use schema::spool::EXPLANATION;
use schema::status::{CheckKind, JobKind, JobStatus};
use tokio::time::Instant;

use super::super::once::DryRun;
use super::super::words::explanation;
use super::super::{Caller, Handle, Refusal};
use super::ServedInstance;
use crate::compile::{Commands, RunTarget};
use crate::store::JobRow;

/// Most service instances whose fetch is run by one check: dry runs have few places.
const FETCHES_LIMIT: usize = 2;

/// Those whose fetch is run: the first by name that have one on this machine. What a tool that is
/// built in needs is tried by itself.
pub(super) fn chosen(read: &[(ServedInstance, Commands)]) -> Vec<ServedInstance> {
    let own = read.iter().filter(|(_, commands)| {
        let is_here = matches!(commands.place, RunTarget::Local { .. });
        is_here && commands.fetch.as_ref().is_some_and(|fetch| fetch.tool_check().is_none())
    });
    let mut own: Vec<ServedInstance> = own.map(|(instance, _)| instance.clone()).collect();
    own.sort_by(|one, other| one.order().cmp(&other.order()));
    own.truncate(FETCHES_LIMIT);
    own
}

impl Handle {
    /// Runs the fetch of an instance twice, and compares.
    pub(super) async fn try_fetch(
        &self,
        runtime: &RuntimeName,
        instance: &ServedInstance,
        caller: &Caller,
        until: Instant,
    ) -> Result<Vec<Finding>, Refusal> {
        let label = instance.names.label();
        let mut rows = Vec::new();
        for _ in 0..2 {
            let what = DryRun::Command(JobKind::Fetch);
            let job = match self.run_dry(instance, what, caller).await {
                Ok(job) => job,
                Err(Refusal::Conflict(why)) => {
                    return Ok(vec![about(
                        Finding::skipped(runtime, CheckKind::Fetch, why),
                        &label,
                    )]);
                }
                Err(refused) => return Err(refused),
            };
            let Some(row) = self.end_of(job, until).await? else {
                let late = self.give_up(runtime, job, caller).await?;
                return Ok(vec![Finding { job: Some(job), ..about(late, &label) }]);
            };
            let is_broken = row.status != JobStatus::Succeeded;
            rows.push(row);
            if is_broken {
                break;
            }
        }
        let job = rows.last().map(|row| row.id);
        Ok(vec![Finding { job, ..about(judged(runtime, &rows), &label) }])
    }
}

fn about(finding: Finding, label: &str) -> Finding {
    Finding { instance: Some(label.to_owned()), ..finding }
}

/// What two runs say together; one where that failed.
fn judged(runtime: &RuntimeName, rows: &[JobRow]) -> Finding {
    let Some(last) = rows.last() else {
        return Finding::skipped(runtime, CheckKind::Fetch, "it was not run");
    };
    if last.status != JobStatus::Succeeded {
        return Finding::failed(
            runtime,
            CheckKind::Fetch,
            format!("fetch {}: {}", last.status, last.message),
            format!("mend what `pvnctl jobs logs {}` shows, and check again", last.id),
        );
    }
    let first = &rows[0];
    let found = |row: &JobRow| (row.exit_code, objects(row));
    let said = |row: &JobRow| match row.exit_code {
        Some(2) => "there is work (exit code 2)".to_owned(),
        Some(code) => format!("exit code {code}"),
        None => "no exit code".to_owned(),
    };
    let explained = |row: &JobRow| row.report.as_deref().and_then(explanation);
    if found(first) == found(last) && explained(first) != explained(last) {
        return Finding::failed(
            runtime,
            CheckKind::Fetch,
            "run twice with nothing applied between, fetch explained what it found in other words: \
             whoever is asked for an approval is asked anew at each fetch"
                .to_owned(),
            format!(
                "leave out of `{EXPLANATION}` what differs each time, such as times and temporary \
                 names; `pvnctl jobs files {} {EXPLANATION}` and `pvnctl jobs files {} \
                 {EXPLANATION}` print both",
                first.id, last.id
            ),
        );
    }
    if found(first) == found(last) {
        let said = said(last);
        return Finding::ok(
            runtime,
            CheckKind::Fetch,
            format!("run twice with nothing applied between, fetch found the same: {said}"),
        );
    }
    let differ = match first.exit_code == last.exit_code {
        true => "other objects, or other versions of them".to_owned(),
        false => format!("first that {}, then {}", said(first), said(last)),
    };
    Finding::failed(
        runtime,
        CheckKind::Fetch,
        format!("run twice with nothing applied between, fetch found something else: {differ}"),
        format!(
            "fetch may only look; see what it did in `pvnctl jobs logs {}` and `pvnctl jobs logs \
             {}`. Where the world moves by itself, check again when it is quiet",
            first.id, last.id
        ),
    )
}

/// What a structured fetch says of its objects, without what may be another in each run: events
/// with their times, sentences, links.
fn objects(row: &JobRow) -> Option<Vec<serde_json::Value>> {
    let structured = row.report.as_ref()?.structured.as_ref()?;
    let mut objects = structured.value.as_ref()?.get("objects")?.as_array()?.clone();
    for object in objects.iter_mut().filter_map(serde_json::Value::as_object_mut) {
        object.retain(|field, _| {
            !["debugEvents", "message", "externalLinks"].contains(&field.as_str())
        });
    }
    Some(objects)
}
