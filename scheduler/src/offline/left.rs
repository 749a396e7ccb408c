//! What the scheduler that was backed up may still be running, for the person who activates a copy
//! of it: its commands outlive it, and the copy would start the same beside them. Called by
//! `restore`, which has `activate` say it again.

use schema::id::JobId;

use crate::compile::RunTarget;
use crate::store::{JobRow, Store};

/// Most jobs that are listed: a person who looks for more of them looks for all.
const LIST_LIMIT: usize = 100;

/// In words: the rule, and the jobs of the backup that were not over.
pub(super) async fn told(store: &Store) -> anyhow::Result<String> {
    let (jobs, unreadable) = store.unfinished_jobs().await?;
    let mut text = "No command of the original may still run when this copy is activated, for the \
                    copy could start the same beside it. Look for it where it ran, and wait until \
                    it has ended or stop it. What began after the backup is in no list; "
        .to_owned();
    if jobs.is_empty() && unreadable.is_empty() {
        text += "when it was made, no job was unfinished.";
        return Ok(text);
    }
    text += "when it was made, these were unfinished:";
    for job in jobs.iter().take(LIST_LIMIT) {
        text += &format!("\n  {}", line(store, job).await);
    }
    for row in &unreadable {
        text += &format!(
            "\n  a job that cannot be read{}: {}",
            row.job.map_or_else(String::new, |job| format!(", {job}")),
            row.why
        );
    }
    if let more @ 1.. = jobs.len().saturating_sub(LIST_LIMIT) {
        text += &format!("\n  and {more} more");
    }
    Ok(text)
}

/// `apply job-… of shop/web in eu, on the machine of the original (…)`.
async fn line(store: &Store, job: &JobRow) -> String {
    let of = match store.job(job.id).await {
        Ok(Some(shown)) => format!("{}/{} in {}", shown.application, shown.service, shown.channel),
        // Its ids say it too.
        Ok(None) | Err(_) => format!("{} in {}", job.service, job.channel),
    };
    format!("{} {} of {of}, {}", job.kind, job.id, place(store, job).await)
}

async fn place(store: &Store, job: &JobRow) -> String {
    let commands = match &job.start {
        Some(start) => store.compiled(start.compiled).await.ok().flatten(),
        None => None,
    };
    let id: JobId = job.id;
    match commands.map(|commands| commands.place) {
        Some(RunTarget::Local { .. }) => {
            format!("on the machine of the original (`pgrep -af {id}` shows its wrapper)")
        }
        Some(RunTarget::Cluster(place)) => format!(
            "on the cluster `{}` (`kubectl get jobs --namespace {} --selector pvn.dev/job={id}` \
             shows its Job)",
            place.cluster, place.namespace
        ),
        Some(RunTarget::Fake { .. }) => "which runs nothing (`fake`)".to_owned(),
        None => format!("with the runtime `{}`", job.runtime),
    }
}
