//! One service tried in all of its release channels at once, as they may wait for each other.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use schema::api::{
    DecisionRequest, Instance, Job, PushRequest, Pushed, RunRequest, RunStarted, Service,
    ServiceSummary,
};
use schema::id::JobId;
use schema::status::{ApprovalStatus, CheckStatus, JobKind, JobStatus, Status};
use tokio::time::Instant;

use super::ContractFinding;
use crate::address::{InstancePath, ServicePath};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::short;

/// How often to look: the scheduler is on this machine, and has nothing else to do.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Most jobs of an instance that are looked at: of a trial there are some dozens.
const JOBS_LIMIT: usize = 200;

/// A service that is tried.
pub(super) struct Trial<'a> {
    path: ServicePath,
    client: &'a Client,
    within: Duration,
    /// What makes work, and where it is run.
    disturb: Option<(&'a str, &'a Path)>,
}

impl<'a> Trial<'a> {
    pub(super) fn of(
        service: &ServiceSummary,
        client: &'a Client,
        within: Duration,
        disturb: Option<(&'a str, &'a Path)>,
    ) -> Self {
        let path =
            ServicePath { app: service.application.to_string(), service: service.name.to_string() };
        Self { path, client, within, disturb }
    }

    /// All checks, in order. What follows a failed apply is left out.
    pub(super) async fn run(&self, console: &mut Console) -> Result<Vec<ContractFinding>, Failure> {
        let name = format!("{}/{}", self.path.app, self.path.service);
        console.say(&format!("{name}: waits for the first release"))?;
        let service = self.settled().await?;
        let mut findings = Vec::new();
        for instance in &service.channels {
            findings.extend(self.first(instance).await?);
        }
        if findings.iter().any(|found| found.status == CheckStatus::Failed) {
            return Ok(findings);
        }
        console.say(&format!("{name}: applies again"))?;
        findings.extend(self.again().await?);
        console.say(&format!("{name}: kills an apply"))?;
        findings.extend(self.killed().await?);
        Ok(findings)
    }

    /// What the first release showed of one channel.
    async fn first(&self, instance: &Instance) -> Result<Vec<ContractFinding>, Failure> {
        let at = self.at(instance);
        let found = |check, status, message: String| ContractFinding {
            instance: at.address(),
            check,
            status,
            message,
        };
        let (fetches, applies) =
            (self.jobs(&at, JobKind::Fetch).await?, self.jobs(&at, JobKind::Apply).await?);
        let mut findings = Vec::new();
        findings.push(match fetches.last() {
            None => found("fetchBefore", CheckStatus::Skipped, "there is no fetch".to_owned()),
            Some(first) => {
                let (status, message) = answered(first);
                found("fetchBefore", status, message)
            }
        });
        findings.push(match applies.first() {
            None => found(
                "apply",
                CheckStatus::Skipped,
                "fetch found nothing to do; --disturb COMMAND makes work".to_owned(),
            ),
            Some(newest) => {
                let (status, message) = answered(newest);
                found("apply", status, message)
            }
        });
        let is_there = instance.status == Status::Converged;
        let status = if is_there { CheckStatus::Ok } else { CheckStatus::Failed };
        let message = format!("{}: {}", instance.status, short::sentence(&instance.message));
        findings.push(found("fetchAfter", status, message));
        if is_there && !fetches.is_empty() {
            let (status, message) = self.looks(&at).await?;
            findings.push(found("fetchLooks", status, message));
        }
        if !instance.objects.is_empty() {
            let (status, message) = version(instance);
            findings.push(found("version", status, message));
        }
        Ok(findings)
    }

    /// Two fetches in a row, with nothing between.
    async fn looks(&self, at: &InstancePath) -> Result<(CheckStatus, String), Failure> {
        let mut codes = Vec::new();
        for _ in 0..2 {
            let request = RunRequest { kind: Some(JobKind::Fetch) };
            let started: RunStarted = self.client.post(&at.path("run"), &request).await?;
            let job = self.ended(started.job).await?;
            if job.status != JobStatus::Succeeded {
                return Ok(answered(&job));
            }
            codes.push(job.exit_code.unwrap_or_default());
        }
        Ok(match codes.as_slice() {
            [one, other] if one == other => {
                (CheckStatus::Ok, format!("both ended with exit code {one}"))
            }
            codes => (
                CheckStatus::Failed,
                format!("they ended with {codes:?}: fetch changes what it looks at"),
            ),
        })
    }

    /// Another release over what the first one made.
    async fn again(&self) -> Result<Vec<ContractFinding>, Failure> {
        let before = self.newest_applies().await?;
        self.push().await?;
        let service = self.settled().await?;
        let mut findings = Vec::new();
        for (instance, before) in service.channels.iter().zip(before) {
            let at = self.at(instance);
            let newest = self.jobs(&at, JobKind::Apply).await?.into_iter().next();
            let (status, message) = match newest.filter(|job| Some(job.id) != before) {
                None => (
                    CheckStatus::Skipped,
                    "fetch found nothing to do; --disturb COMMAND makes work".to_owned(),
                ),
                Some(job) if job.status != JobStatus::Succeeded => answered(&job),
                Some(job) => (converged(instance), said(instance, &job)),
            };
            let check = "applyAgain";
            findings.push(ContractFinding { instance: at.address(), check, status, message });
        }
        Ok(findings)
    }

    /// An apply that is killed, and the one after it.
    async fn killed(&self) -> Result<Vec<ContractFinding>, Failure> {
        let before = self.newest_applies().await?;
        self.push().await?;
        let caught = self.catch(&before).await?;
        for (at, job) in &caught {
            let id = job.to_string();
            // The second request kills.
            for _ in 0..2 {
                let cancel = ["v1", "jobs", &id, "cancel"];
                let _over: Result<serde_json::Value, _> =
                    self.client.post(&cancel, &serde_json::json!({})).await;
            }
            self.ended(*job).await?;
            self.retry(at).await?;
        }
        let service = self.settled().await?;
        let finding = |instance: &Instance| {
            let address = self.at(instance).address();
            let job = caught.iter().find(|(at, _)| at.address() == address).map(|(_, job)| *job);
            let (status, message) = match job {
                None => (
                    CheckStatus::Skipped,
                    "no apply was caught running: there was no work (--disturb), or it was over \
                     too soon"
                        .to_owned(),
                ),
                Some(job) => (
                    converged(instance),
                    format!(
                        "after {} was killed: {}, {}",
                        short::id(&job.to_string()),
                        instance.status,
                        short::sentence(&instance.message)
                    ),
                ),
            };
            ContractFinding { instance: address, check: "killed", status, message }
        };
        Ok(service.channels.iter().map(finding).collect())
    }

    /// Has it tried again, once the scheduler takes the last one for over.
    async fn retry(&self, at: &InstancePath) -> Result<(), Failure> {
        let until = Instant::now() + self.within;
        loop {
            let asked = self.client.post(&at.path("retry"), &serde_json::json!({})).await;
            match asked.map(|_: Instance| ()) {
                Err(Failure::Refused(problem))
                    if problem.status == 409 && Instant::now() < until =>
                {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                ended => return ended,
            }
        }
    }

    /// Applies that run, one a channel; none where all has settled before one was seen.
    async fn catch(&self, before: &[Option<JobId>]) -> Result<Vec<(InstancePath, JobId)>, Failure> {
        let until = Instant::now() + self.within;
        loop {
            let service = self.look().await?;
            for (instance, before) in service.channels.iter().zip(before) {
                let at = self.at(instance);
                let newest = self.jobs(&at, JobKind::Apply).await?.into_iter().next();
                let running = newest
                    .filter(|job| Some(job.id) != *before && job.status == JobStatus::Running);
                if let Some(job) = running {
                    return Ok(vec![(at, job.id)]);
                }
            }
            if is_over(&service) || Instant::now() >= until {
                return Ok(Vec::new());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Makes work and a release, and has everybody look.
    async fn push(&self) -> Result<(), Failure> {
        if let Some((command, dir)) = self.disturb {
            let ran = tokio::process::Command::new("sh")
                .args(["-c", command])
                .current_dir(dir)
                .stdin(Stdio::null())
                .output()
                .await?;
            if !ran.status.success() {
                return Err(Failure::user(format!(
                    "`{command}` (--disturb) ended with {}: {}",
                    ran.status,
                    String::from_utf8_lossy(&ran.stderr).trim()
                )));
            }
        }
        let mut path = self.path.path();
        path.push("push");
        let _made: Pushed = self.client.post(&path, &PushRequest::default()).await?;
        Ok(())
    }

    /// The service once each of its channels has converged or failed, every approval given; as it
    /// is at the timeout.
    async fn settled(&self) -> Result<Service, Failure> {
        let until = Instant::now() + self.within;
        loop {
            let service = self.look().await?;
            let is_over = is_over(&service);
            if is_over || Instant::now() >= until {
                return Ok(service);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// How it stands; whoever is asked says yes.
    async fn look(&self) -> Result<Service, Failure> {
        let service: Service = self.client.get(&self.path.path(), &[]).await?;
        for instance in &service.channels {
            let asked = instance.approvals.iter().find(|one| one.status == ApprovalStatus::Pending);
            if let Some(asked) = asked {
                let request = DecisionRequest {
                    approval: Some(asked.id.to_string()),
                    any_plan: true,
                    ..DecisionRequest::default()
                };
                // A newer one may have taken its place.
                let _refused: Result<Instance, _> =
                    self.client.post(&self.at(instance).path("approve"), &request).await;
            }
        }
        Ok(service)
    }

    async fn ended(&self, job: JobId) -> Result<Job, Failure> {
        let (until, id) = (Instant::now() + self.within, job.to_string());
        loop {
            let job: Job = self.client.get(&["v1", "jobs", &id], &[]).await?;
            if job.ended_at.is_some() {
                return Ok(job);
            }
            if Instant::now() >= until {
                let next = "give it longer with --timeout, or the command a timeout";
                return Err(Failure::with_next(format!("{id} does not end"), next));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Newest first.
    async fn jobs(&self, at: &InstancePath, kind: JobKind) -> Result<Vec<Job>, Failure> {
        let query = [
            ("application", at.service.app.clone()),
            ("service", at.service.service.clone()),
            ("channel", at.channel.clone()),
            ("kind", kind.to_string()),
        ];
        Ok(self.client.list::<Job>(&["v1", "jobs"], &query, Some(JOBS_LIMIT)).await?.items)
    }

    async fn newest_applies(&self) -> Result<Vec<Option<JobId>>, Failure> {
        let mut newest = Vec::new();
        for instance in &self.look().await?.channels {
            let applies = self.jobs(&self.at(instance), JobKind::Apply).await?;
            newest.push(applies.first().map(|job| job.id));
        }
        Ok(newest)
    }

    fn at(&self, instance: &Instance) -> InstancePath {
        InstancePath { service: self.path.clone(), channel: instance.channel.to_string() }
    }
}

/// Whether nothing more comes of it by itself: what waits for a channel that failed waits for ever.
fn is_over(service: &Service) -> bool {
    let failed = |one: &Instance| has_settled(one) && one.status != Status::Converged;
    let is_stuck = service.channels.iter().any(failed);
    service
        .channels
        .iter()
        .all(|one| has_settled(one) || is_stuck && one.status == Status::WaitingPreconditions)
}

/// Whether nothing more comes of one channel by itself that a trial waits for.
fn has_settled(instance: &Instance) -> bool {
    match instance.status {
        Status::Converged => !instance.outdated,
        Status::Failed | Status::Broken | Status::Paused | Status::Deleted => true,
        _ => false,
    }
}

fn converged(instance: &Instance) -> CheckStatus {
    match instance.status {
        Status::Converged => CheckStatus::Ok,
        _ => CheckStatus::Failed,
    }
}

fn said(instance: &Instance, job: &Job) -> String {
    let id = short::id(&job.id.to_string());
    format!("{id} succeeded; {}, {}", instance.status, short::sentence(&instance.message))
}

/// How a job ended.
fn answered(job: &Job) -> (CheckStatus, String) {
    let id = short::id(&job.id.to_string());
    let code = job.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    let why = if job.message.is_empty() { String::new() } else { format!(": {}", job.message) };
    match job.status {
        JobStatus::Succeeded => (CheckStatus::Ok, format!("{id}{code}")),
        status => (CheckStatus::Failed, short::sentence(&format!("{id} {status}{code}{why}"))),
    }
}

/// Whether each object tells exactly the version that was applied.
fn version(instance: &Instance) -> (CheckStatus, String) {
    let wanted = instance.desired_version.as_deref().unwrap_or_default();
    let others: Vec<String> = instance
        .objects
        .iter()
        .filter(|object| {
            let mut active = object.versions.iter().filter(|version| version.active);
            !(active.next().is_some_and(|version| version.version == wanted)
                && active.next().is_none())
        })
        .map(|object| object.name.clone())
        .collect();
    match others.as_slice() {
        [] => (CheckStatus::Ok, format!("every object is at {wanted}")),
        others => (CheckStatus::Failed, format!("not at {wanted} alone: {}", others.join(", "))),
    }
}
