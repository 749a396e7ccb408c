//! What a change of a runtime or an application means for what is released: it is compiled again.
//! Called by `configs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config::{Body, Document};
use engine::desired::{Desired, Gate};
use engine::event::Event;
use schema::api::{Diagnostic, LeftOut, PushedService};
use schema::id::{
    ApplicationName, BlobId, ChannelId, InstanceId, ReleaseId, RuntimeName, ServiceName,
};
use schema::log_kind::LogKind;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::configs::{PlannedApplication, SubmittedDocument};
use super::release::{ReleaseSubject, of_service};
use super::tried::add_new;
use super::{Planner, RawSeal, entry, warning};
use crate::compile::{self, Channel, Commands, CompiledInstance, Configs, Options, Release};
use crate::store::{Change, ReleaseChannelRow, ReleaseRow};

/// A change of documents, with what it makes of the rows and which services it releases.
pub(super) struct Changed<'a> {
    /// All documents as they will be.
    pub(super) configs: &'a Configs,
    /// Those that are new or not as they were.
    pub(super) documents: &'a BTreeSet<compile::DocumentKey>,
    pub(super) given: &'a [SubmittedDocument],
    pub(super) applied: &'a BTreeMap<ApplicationName, PlannedApplication>,
    /// Whose release is replaced in the same call.
    pub(super) pushed: &'a [PushedService],
    pub(super) caller: &'a Caller,
}

/// What cannot be compiled any more.
#[derive(Default)]
struct Stale {
    /// Because of the change, which is refused for it.
    refused: Vec<Diagnostic>,
    /// For a reason that is none of the change's: it stays as it is.
    kept: Vec<Diagnostic>,
}

impl Changed<'_> {
    fn is_changed(&self, wanted: impl Fn(&Body) -> bool) -> bool {
        self.given.iter().any(|given| given.change == "changed" && wanted(given.document.body()))
    }

    /// Whether what a service is in a channel, as it was released, may follow from a document that
    /// changes.
    fn touches(&self, options: &Options, document: &Document, channel: &Channel) -> bool {
        let Body::Service(service) = document.body() else { return true };
        let changes = |name| self.documents.contains(&compile::DocumentKey::Runtime(name));
        let host_changes = |runtime: &config::Runtime| {
            runtime
                .role()
                .commands
                .is_some_and(|commands| changes(commands.custom().proxy_runtime.runtime.clone()))
        };
        let serves = |name: &RuntimeName| {
            changes(name.clone()) || self.configs.runtime(name).is_some_and(host_changes)
        };
        self.documents.contains(&compile::DocumentKey::Application(service.application.clone()))
            || match compile::runtime(self.configs, options, service, channel) {
                Some(runtime) => serves(&runtime),
                None => channel.connections.iter().any(|connection| serves(&connection.runtime)),
            }
    }

    fn pushes(&self, subject: &ReleaseSubject<'_>) -> bool {
        let (application, service) = (&subject.application.name, &subject.service.name);
        self.pushed
            .iter()
            .any(|pushed| pushed.application == *application && pushed.service == *service)
    }
}

impl Planner {
    /// A change of a runtime or an application makes no new version: what is released is compiled
    /// again, with the service's config as it was released, and the instances where that means
    /// something fetch again. What cannot be read is left out, and what cannot be compiled for
    /// a reason that is none of the change's stays as it is: returns what to say of that.
    pub(super) async fn plan_recompiles(
        &self,
        plan: &mut Plan,
        change: &Changed<'_>,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<Vec<Diagnostic>, Refusal> {
        let runtime_changed = change.is_changed(|body| matches!(body, Body::Runtime(_)));
        let mut stale = Stale::default();
        for (name, applied) in change.applied {
            let is_it = |body: &Body| match body {
                Body::Application(application) => application.name == *name,
                Body::Runtime(_) | Body::Service(_) => false,
            };
            if !runtime_changed && !change.is_changed(is_it) {
                continue;
            }
            for service in applied.services.keys() {
                let Some(subject) = applied.subject(service) else { continue };
                let done =
                    self.recompile(plan, change, &subject, &applied.channels, &mut stale).await?;
                left_out.extend(done.into_iter().map(|why| {
                    subject.left_out(&format!(
                        "the change is not in force for what is released of it, which cannot be \
                         read: {why}"
                    ))
                }));
            }
        }
        if stale.refused.is_empty() { Ok(stale.kept) } else { Err(Refusal::Config(stale.refused)) }
    }

    /// Compiles every release again that an instance of a service pursues. Returns of which rows it
    /// cannot be done.
    async fn recompile(
        &self,
        plan: &mut Plan,
        change: &Changed<'_>,
        subject: &ReleaseSubject<'_>,
        channels: &[Channel],
        stale: &mut Stale,
    ) -> Result<Vec<String>, Refusal> {
        let mut unreadable = Vec::new();
        let found = match self.store.pursued(subject.service.id).await.map_err(Refusal::from) {
            Err(Refusal::Unreadable(why)) => return Ok(vec![why]),
            found => found?,
        };
        let mut pursued: BTreeMap<_, Vec<ChannelId>> = BTreeMap::new();
        for (channel, release) in found {
            pursued.entry(release).or_default().push(channel);
        }
        for (id, of) in pursued {
            let of: Vec<&Channel> = channels
                .iter()
                .filter(|channel| {
                    subject.channel_ids.get(&channel.name).is_some_and(|id| of.contains(id))
                })
                .collect();
            match self.recompile_release(plan, change, subject, id, &of, stale).await {
                Err(Refusal::Unreadable(why)) => unreadable.push(why),
                done => done?,
            }
        }
        Ok(unreadable)
    }

    async fn recompile_release(
        &self,
        plan: &mut Plan,
        change: &Changed<'_>,
        subject: &ReleaseSubject<'_>,
        id: ReleaseId,
        channels: &[&Channel],
        stale: &mut Stale,
    ) -> Result<(), Refusal> {
        let Some(release) = self.store.release_row(id).await? else { return Ok(()) };
        let document = Arc::new(self.released_service(subject, release.service_version).await?);
        let stored = self.store.release_channels(id).await?;
        let seal = RawSeal(&self.sealer);
        let made = Release {
            id,
            version: &release.version,
            released_at: release.created_at,
            values: &release.params,
        };
        // Not what is given is to blame: it was released with other values, or with the service's
        // config of before.
        let what = format!("of {}, which is released", release.version);
        let way = format!(
            "the change does not fit {}, which was released before and is pursued: give `--push` \
             with the service's config, so that a new release takes its place at once, or release \
             what fits first with {}",
            release.version,
            push_of(&subject.application.name, &subject.service.name)
        );
        let mut instances = Vec::new();
        for channel in channels {
            let Some((_, row)) = stored.iter().find(|(name, _)| *name == channel.name) else {
                continue;
            };
            match compile::compile_earlier(
                change.configs,
                &self.options,
                &document,
                channel,
                &made,
                &seal,
                (&what, &way),
            ) {
                Ok(CompiledInstance { mut desired, commands, .. }) => {
                    // A rollback counts its deadline from when it was made, as its own row says,
                    // and where it was before, too.
                    desired.released_at = row.desired.released_at;
                    desired.stable_before = row.desired.stable_before;
                    desired.is_rollback = row.desired.is_rollback;
                    instances.push((row, desired, Some(commands)));
                }
                // Its next release comes with the change.
                Err(_) if change.pushes(subject) => {}
                Err(found) if change.touches(&self.options, &document, channel) => {
                    add_new(&mut stale.refused, found);
                }
                Err(found) => {
                    instances.push((row, row.desired.clone(), None));
                    let kept = kept_as_it_is(found, subject, &release);
                    if !stale.kept.contains(&kept) {
                        plan.entries.push(not_recompiled(&kept, change.caller, subject, &release));
                        stale.kept.push(kept);
                    }
                }
            }
        }
        let shared_for = shared_for(&instances);
        for (row, desired, commands) in instances {
            let desired = Desired { shared_for, ..desired };
            if desired == row.desired {
                continue;
            }
            let instance = InstanceId::of(subject.service.id, row.channel);
            plan_compiled(plan, instance, row, desired, commands);
        }
        Ok(())
    }

    /// A service's document as it was when a release was made.
    pub(super) async fn released_service(
        &self,
        subject: &ReleaseSubject<'_>,
        version: u64,
    ) -> Result<Document, Refusal> {
        let key = subject.document();
        let stored = self.store.document_version(&key, version).await?;
        let stored = stored.ok_or_else(|| {
            Refusal::Conflict(format!(
                "config version {version} of service `{}/{}` is not in the database",
                key.application, key.name
            ))
        })?;
        super::snapshot::read(&stored)
    }
}

/// Adds what an instance pursues from now on to a plan.
fn plan_compiled(
    plan: &mut Plan,
    instance: InstanceId,
    row: &ReleaseChannelRow,
    desired: Desired,
    commands: Option<Commands>,
) {
    let compiled = desired.compiled;
    plan.changes.extend(commands.map(|commands| Change::Compiled(compiled, Box::new(commands))));
    plan.changes.push(Change::ReleaseChannel(Box::new(ReleaseChannelRow {
        compiled,
        desired: desired.clone(),
        ..row.clone()
    })));
    plan.events.push((instance, Event::Desired(Box::new(desired))));
}

/// What the shared approvals of a release are for, of its instances as they were and as they will
/// be: something new when the commands of one of them change.
fn shared_for(instances: &[(&ReleaseChannelRow, Desired, Option<Commands>)]) -> Option<BlobId> {
    let before = instances.iter().find_map(|(row, ..)| row.desired.shared_for);
    let is_shared = instances.iter().any(|(row, desired, _)| {
        desired.gates.iter().chain(&row.desired.gates).any(Gate::is_shared)
    });
    if !is_shared
        || instances.iter().all(|(row, desired, _)| row.desired.compiled == desired.compiled)
    {
        return before;
    }
    let commands: Vec<_> =
        instances.iter().map(|(row, desired, _)| (row.channel, desired.compiled)).collect();
    Some(BlobId::of(&serde_json::to_vec(&(before, commands)).expect("digests are plain data")))
}

/// The command that makes a release which fits.
pub(super) fn push_of(application: &ApplicationName, service: &ServiceName) -> String {
    format!("`pvnctl services push {service} --app {application}`")
}

/// A release that the documents in force do not fit, with which the change has nothing to do.
fn kept_as_it_is(
    problems: Vec<Diagnostic>,
    subject: &ReleaseSubject<'_>,
    release: &ReleaseRow,
) -> Diagnostic {
    let why = problems.into_iter().next().map(|problem| problem.message).unwrap_or_default();
    let (application, service) = (&subject.application.name, &subject.service.name);
    let message = format!(
        "{0} of {application}/{service} stays as it was compiled before, because the configs in \
         force do not fit it: {why}",
        release.version
    );
    let help = format!("release what fits with {}", push_of(application, service));
    warning(format!("{application}/{service}"), message, help)
}

fn not_recompiled(
    kept: &Diagnostic,
    caller: &Caller,
    subject: &ReleaseSubject<'_>,
    release: &ReleaseRow,
) -> schema::api::LogEntry {
    let data = json!({"release": release.id, "version": release.version});
    of_service(subject, entry(LogKind::ReleaseNotRecompiled, caller, kept.message.clone(), data))
}
