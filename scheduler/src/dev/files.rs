//! Config files -> applied, and a release of every service that needs one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use config::{Body, Document};
use pvnctl::client::Client;
use pvnctl::diff;
use pvnctl::failure::Failure;
use pvnctl::files::Files;
use pvnctl::wait::Goal;
use schema::api::{
    ConfigsRequest, ConfigsResult, Diagnostic, DocumentChange, Instance, Page, PushRequest, Pushed,
    RefreshRequest, Release, Service, ServiceSummary,
};
use schema::id::{ChannelName, ReleaseId};
use schema::status::Status;

use super::memory::{DesiredRelease, ReleaseMemory};

mod wish;

pub(super) use wish::Wish;

/// What came of it.
pub(super) struct ApplyResult {
    /// Every service in the files, to wait for.
    pub(super) wishes: Vec<Wish>,
    /// What to tell.
    pub(super) lines: Vec<String>,
    /// What is allowed and probably not meant.
    pub(super) warnings: Vec<Diagnostic>,
}

/// What is given besides the files.
pub(super) struct DevInputs {
    /// Parameters.
    pub(super) params: BTreeMap<String, String>,
    /// Secrets, and the versions that their values are.
    pub(super) secrets: BTreeMap<String, u64>,
}

impl DevInputs {
    /// What a service is released from: its parameters, and every secret, for nobody says which of
    /// them its commands are given.
    fn with_secrets(&self, params: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let secrets = self
            .secrets
            .iter()
            .map(|(key, version)| (format!("--secret {key}"), version.to_string()));
        params.clone().into_iter().chain(secrets).collect()
    }
}

/// Applies the files; all or nothing, with the releases that follow: where the scheduler would
/// refuse one, nothing is stored. Then releases every service that has no release in one of its
/// channels, whose config is another than at its last release from here, or whose parameters, or
/// the secrets given, are. The others are looked at, and what failed by itself is tried again, at a
/// start (`is_start`) and where the runtime is another by now: no config tells of scripts, and what
/// an earlier run saw was seen with those of then.
pub(super) async fn apply(
    client: &Client,
    data_dir: &Path,
    configs: &Files,
    given: &DevInputs,
    is_start: bool,
) -> Result<ApplyResult, Failure> {
    let takes = parameters(&configs.documents);
    if let Some(stray) =
        given.params.keys().find(|name| !takes.values().any(|names| names.contains(name)))
    {
        let known: Vec<_> = takes.values().flatten().map(String::as_str).collect();
        let known = if known.is_empty() {
            "no service here has parameters".to_owned()
        } else {
            format!("there is {}", known.join(", "))
        };
        return Err(Failure::with_next(
            format!("--param `{stray}` is not a parameter of any service here"),
            known,
        ));
    }
    let request = ConfigsRequest { files: configs.files.clone(), ..ConfigsRequest::default() };
    let with_releases = ConfigsRequest {
        dry_run: true,
        push: true,
        params: given.params.clone(),
        ..request.clone()
    };
    let _would: ConfigsResult = client.ask(&["v1", "configs"], &[], &with_releases).await?;
    let result: ConfigsResult = client.post(&["v1", "configs"], &request).await?;
    let mut lines = Vec::new();
    if diff::changes(&result) > 0 {
        lines.push(format!("applied the config: {}", diff::summary(&result, true)));
    }
    let is_changed =
        |document: &&DocumentChange| document.kind == "runtime" && document.change != "unchanged";
    let changed: Vec<String> =
        result.documents.iter().filter(is_changed).map(|document| document.name.clone()).collect();
    let mut memory = ReleaseMemory::open(data_dir);
    let mut wishes = Vec::new();
    for document in result.documents.iter().filter(|document| document.kind == "service") {
        let (wish, line) =
            release(client, &mut memory, document, given, &takes, is_start, &changed).await?;
        wishes.push(wish);
        lines.extend(line);
    }
    if is_start {
        look_at_others(client, &wishes).await?;
    }
    if wishes.is_empty() {
        lines.push(
            "there are no services in these files, so there is nothing to release".to_owned(),
        );
    }
    lines.extend(pvnctl::diagnostics::left_out(&result.left_out));
    Ok(ApplyResult { wishes, lines, warnings: result.warnings })
}

/// Reads the config files of a directory.
pub(super) fn read(dir: &Path) -> Result<Files, Failure> {
    pvnctl::files::read(&[dir.to_owned()]).map_err(Failure::Config)
}

/// The parameters of each service, by application and name.
type Takes = BTreeMap<(String, String), Vec<String>>;

fn parameters(documents: &[Document]) -> Takes {
    let services = documents.iter().filter_map(|document| match document.body() {
        Body::Service(service) => {
            let names =
                service.parameters.iter().map(|parameter| parameter.name.to_string()).collect();
            Some(((service.application.to_string(), service.name.to_string()), names))
        }
        _ => None,
    });
    services.collect()
}

async fn release(
    client: &Client,
    memory: &mut ReleaseMemory,
    document: &DocumentChange,
    all: &DevInputs,
    takes: &Takes,
    is_start: bool,
    changed: &[String],
) -> Result<(Wish, Option<String>), Failure> {
    let application = document.application.as_ref().map(ToString::to_string).unwrap_or_default();
    let takes = takes.get(&(application.clone(), document.name.clone()));
    let is_taken = |name: &String| takes.is_some_and(|takes| takes.contains(name));
    let given = all.params.iter().filter(|(name, _)| is_taken(name));
    let given: BTreeMap<String, String> =
        given.map(|(name, value)| (name.clone(), value.clone())).collect();
    let path = ["v1", "applications", &application, "services", &document.name];
    let service: Service = client.get(&path, &[]).await?;
    // What was taken back is not what the files say, and what it failed by may be mended.
    let needs = |instance: &&Instance| {
        (is_start && instance.taken_back_version.is_some()) || lacks_release(instance)
    };
    let needing = service.channels.iter().filter(needs);
    let needing: Vec<_> = needing.map(|instance| instance.channel.to_string()).collect();
    let is_missing = service.version.is_none() || !needing.is_empty();
    let wanted = DesiredRelease {
        application: &application,
        service: &document.name,
        config: document.version,
        given: &all.with_secrets(&given),
        newest: newest(client, &application, &document.name).await?,
    };
    let is_other = memory.is_other(&wanted);
    let mut wish = Wish {
        application: application.clone(),
        service: document.name.clone(),
        goals: Vec::new(),
        config: document.version,
        params: given.clone(),
    };
    if !is_missing && !is_other {
        let channels =
            look_again(client, &path, service.channels.iter(), is_start, changed).await?;
        let line = goes_on(client, &mut wish, &service, &channels).await?;
        return Ok((wish, Some(line)));
    }
    let before = memory.remember(&wanted)?;
    let mut request = PushRequest { params: given, ..PushRequest::default() };
    if !is_other && service.version.is_some() {
        // The files say nothing new, so what a person decided in the other channels stands. Where
        // none did, what waits for another one comes with it: it would wait for ever at a
        // version that the other one does not get, or gets no more.
        request.together = wish
            .at_these_files(client, service.channels.iter().filter(|instance| !needs(instance)))
            .await?;
        request.channels = Some(needing);
    }
    let pushed: Result<Pushed, Failure> =
        client.post(&[&path[..], &["push"]].concat(), &request).await;
    if let Err(Failure::Refused(_)) = &pushed {
        memory.put_back(&wanted, before)?;
    }
    let pushed = pushed?;
    let goal = Goal::of_release(client, &application, &document.name, &pushed).await?;
    let released: BTreeSet<&ChannelName> =
        goal.wanted(&service).map(|instance| &instance.channel).collect();
    let others: Vec<&Instance> =
        service.channels.iter().filter(|instance| !released.contains(&instance.channel)).collect();
    wish.goals.push(goal);
    let mut lines: Vec<String> =
        pushed.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    if !others.is_empty() {
        let names = others.iter().map(|instance| instance.channel.to_string()).collect();
        wish.goals
            .push(Goal { channels: Some(names), ..Goal::of_service(&application, &document.name) });
        let channels = look_again(client, &path, others.into_iter(), is_start, changed).await?;
        lines.push(format!("{application}/{} goes on: {}", document.name, channels.join(", ")));
    }
    Ok((wish, (!lines.is_empty()).then(|| lines.join("\n"))))
}

/// What is said of a service that the files say nothing new about, and which is to arrive at what
/// it has.
async fn goes_on(
    client: &Client,
    wish: &mut Wish,
    service: &Service,
    channels: &[String],
) -> Result<String, Failure> {
    wish.goals.push(Goal::of_service(&wish.application, &wish.service));
    let at = service.version.as_ref().map_or_else(String::new, |version| format!(" at {version}"));
    let mut line =
        format!("{}/{} goes on{at}: {}", wish.application, wish.service, channels.join(", "));
    if let Some((others, next)) = wish.others(client, service).await? {
        line = format!("{line}\n{others}; {next}");
    }
    Ok(line)
}

/// Looks at channels again, at a start and where the runtime is another by now; each with its
/// status and what is done.
async fn look_again(
    client: &Client,
    service: &[&str],
    channels: impl Iterator<Item = &Instance>,
    is_start: bool,
    changed: &[String],
) -> Result<Vec<String>, Failure> {
    let mut said = Vec::new();
    for instance in channels {
        let is_asked = is_start || changed.contains(&instance.runtime.to_string());
        let done = if is_asked { again(client, service, instance).await? } else { "" };
        said.push(format!("{} {}{done}", instance.channel, instance.status));
    }
    Ok(said)
}

/// Looks at a channel again, and tries again what failed there by itself; what is done, to be said
/// behind its status.
async fn again(
    client: &Client,
    service: &[&str],
    instance: &Instance,
) -> Result<&'static str, Failure> {
    let path = [service, &["channels", instance.channel.as_str(), "refresh"]].concat();
    match client.post::<Instance>(&path, &RefreshRequest { try_again: true }).await {
        Ok(now) if instance.status == Status::Failed && now.status != Status::Failed => {
            Ok(" (tried again)")
        }
        Ok(now) if now.last_fetch_at.is_some() => Ok(" (looked at again)"),
        // Nothing looks there, or it is paused or gone.
        Ok(_) => Ok(""),
        Err(Failure::Refused(problem)) if problem.status == 409 => Ok(""),
        Err(failure) => Err(failure),
    }
}

/// Has fetch look at what an earlier run released and the files do not have any more: that goes on
/// too, by what is so now.
async fn look_at_others(client: &Client, wishes: &[Wish]) -> Result<(), Failure> {
    let services = client.list::<ServiceSummary>(&["v1", "services"], &[], None).await?.items;
    let is_wanted = |other: &ServiceSummary| {
        wishes.iter().any(|wish| {
            wish.application == other.application.as_str() && wish.service == other.name.as_str()
        })
    };
    for other in services.iter().filter(|other| !is_wanted(other)) {
        let path =
            ["v1", "applications", other.application.as_str(), "services", other.name.as_str()];
        let service: Service = client.get(&path, &[]).await?;
        for instance in &service.channels {
            again(client, &path, instance).await?;
        }
    }
    Ok(())
}

/// Whether a channel has no release that is wanted: none yet, or the channel is back in the config
/// that had taken it away.
fn lacks_release(instance: &Instance) -> bool {
    instance.desired_version.is_none() || instance.status == Status::Deleted
}

/// The newest release of a service.
async fn newest(
    client: &Client,
    application: &str,
    service: &str,
) -> Result<Option<ReleaseId>, Failure> {
    let query = [
        ("application", application.to_owned()),
        ("service", service.to_owned()),
        ("limit", "1".to_owned()),
    ];
    let page: Page<Release> = client.get(&["v1", "releases"], &query).await?;
    Ok(page.items.first().map(|release| release.release))
}
