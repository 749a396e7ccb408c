//! `configs apply`: read, compare, check, and make one plan of everything that changes: documents,
//! the rows that lists show, instances that come and go, and what recompiles. All or nothing.

use std::collections::{BTreeMap, BTreeSet};

use config::{self, Body, Document, EffectiveRuntime, Service};
use engine::event::Event;
use schema::api::{ConfigsRequest, ConfigsResult, RuntimeConnection};
use schema::id::{
    ApplicationId, ApplicationName, ChannelId, ChannelName, InstanceId, RuntimeId, ServiceId,
    ServiceName,
};
use schema::log_kind::LogKind;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::pieces::pieces;
use super::pushes::PushNotes;
use super::recompile::Changed;
use super::release::ReleaseSubject;
use super::snapshot::{Concerned, ConfigSnapshot, Services, key_of};
use super::{ClusterAnswers, Planned, Planner, entry};
use crate::clock;
use crate::compile::{self, Channel, Configs};
use crate::store::{
    ApplicationRow, Change, ChannelRow, ChannelSummary, DocumentKind, RuntimeRow, RuntimeSummary,
    ServiceRow, StoredDocument,
};

mod submitted;

pub(super) use submitted::SubmittedDocument;

use submitted::{basis, compare};

/// Most rows that are asked for one by one; of more all of the application are read in one go.
pub(super) const ONE_BY_ONE: usize = 16;

/// An application with its rows as they will be.
pub(super) struct PlannedApplication {
    pub(super) row: ApplicationRow,
    pub(super) channels: Vec<Channel>,
    ids: BTreeMap<ChannelName, ChannelId>,
    pub(super) services: BTreeMap<ServiceName, ServiceRow>,
    /// Channels that the change takes away.
    pub(super) gone: Vec<ChannelRow>,
}

impl Planner {
    pub(super) async fn apply_configs(
        &mut self,
        request: &ConfigsRequest,
        asked: &ClusterAnswers,
        caller: &Caller,
    ) -> Result<Planned, Refusal> {
        let documents = config::read(&request.files).map_err(|problems| {
            Refusal::Config(problems.iter().map(config::diagnostic::Diagnostic::to_api).collect())
        })?;
        let estate = self.estate(&self.concerned(&documents).await?).await?;
        let given: Vec<SubmittedDocument> =
            documents.into_iter().map(|document| compare(&estate, document.into())).collect();
        let mut configs = estate.configs.clone();
        for given in &given {
            configs.put(given.document.clone());
        }
        let changed: BTreeSet<compile::DocumentKey> = given
            .iter()
            .filter(|given| given.is_changed())
            .map(|given| compile::key(given.document.body()))
            .collect();
        let problems = compile::check(&configs, &self.options, Some(&changed));
        if !problems.is_empty() {
            return Err(Refusal::Config(problems));
        }
        let given_places = if self.options.everything_local {
            Vec::new()
        } else {
            compile::given_places(&configs, &changed)
        };
        // Whatever was applied since they were asked for, only what is known of these places
        // counts.
        if given_places.iter().any(|place| !asked.places.contains(place)) {
            return Ok(Planned::Ask(given_places));
        }
        let absent: Vec<_> =
            given_places.into_iter().filter(|place| asked.absent.contains(place)).collect();
        if !absent.is_empty() {
            return Err(Refusal::Config(compile::absent_namespaces(&configs, &absent)));
        }
        let mut plan = Plan::default();
        let mut applied = BTreeMap::new();
        self.plan_runtimes(&mut plan, &given, &mut configs).await?;
        for application in configs.applications() {
            let row = self
                .plan_application(&mut plan, &configs, &estate, &given, &application.name)
                .await?;
            applied.insert(application.name.clone(), row);
        }
        let going = self.going(&applied).await?;
        let basis = basis(&given, &going);
        if request.basis.as_ref().is_some_and(|shown| *shown != basis) {
            return Err(Refusal::Conflict(
                "since these documents were compared somebody has applied some of them, or \
                 released to a channel that goes with them, and nothing was changed; compare them \
                 again"
                    .to_owned(),
            ));
        }
        let mut noted = PushNotes::default();
        let releases = if request.push {
            self.plan_pushes(&configs, &given, &applied, request, caller, &mut noted).await?
        } else {
            Vec::new()
        };
        let (pushed, releases): (Vec<_>, Vec<_>) = releases.into_iter().unzip();
        let change = Changed {
            configs: &configs,
            documents: &changed,
            given: &given,
            applied: &applied,
            pushed: &pushed,
            caller,
        };
        let kept = self.plan_recompiles(&mut plan, &change, &mut noted.left_out).await?;
        self.plan_documents(&mut plan, &given, caller);
        let mut warnings = config::shared_paths(configs.documents(), self.options.everything_local);
        let new = || given.iter().map(|given| &*given.document);
        warnings.extend(config::unmasked_secrets(new()));
        warnings.extend(config::ineffective(new()));
        // What is lost comes last, where it is read before the question.
        let gone = self.warn_of_gone(going).await?;
        let stays = self.warn_of_what_stays(request, &given, &applied).await?;
        let found = warnings.iter().map(config::diagnostic::Diagnostic::to_api_warning);
        let warnings = found.chain(noted.warnings).chain(kept).chain(stays).chain(gone).collect();
        // What was read is planned: it need not be held while thousands of rows are written.
        drop((configs, estate, applied));
        let documents = given.into_iter().map(SubmittedDocument::shown).collect();
        if !request.dry_run && (request.push || !changed.is_empty()) {
            self.commit_pieces(plan, releases).await?;
        }
        let pushed = if request.dry_run { Vec::new() } else { pushed };
        Ok(Planned::Done(Box::new(ConfigsResult {
            documents,
            pushed,
            basis: Some(basis),
            warnings,
            left_out: noted.left_out,
        })))
    }

    /// Commits the configs, and the releases with them or after them.
    async fn commit_pieces(&self, configs: Plan, releases: Vec<Plan>) -> Result<(), Refusal> {
        let all = releases.len();
        let mut stored = 0;
        for (number, (piece, stored_then)) in pieces(configs, releases).into_iter().enumerate() {
            self.commit(piece).await.map_err(|refusal| match refusal {
                Refusal::Unavailable(why) if number > 0 => Refusal::Unavailable(format!(
                    "{why}; the configs are stored, and so are the releases of {stored} of {all} \
                     services; applying with --push once more releases all of them"
                )),
                other => other,
            })?;
            stored = stored_then;
        }
        Ok(())
    }

    /// What the documents may change something in.
    async fn concerned(&self, documents: &[Document]) -> Result<Concerned, Refusal> {
        let given = documents.iter().map(key_of).collect();
        let mut applications: BTreeMap<ApplicationName, Services> = BTreeMap::new();
        for document in documents {
            let of = match document.body() {
                Body::Service(service) => {
                    let named = applications
                        .entry(service.application.clone())
                        .or_insert_with(|| Services::Named(BTreeSet::new()));
                    if let Services::Named(names) = named {
                        names.insert(service.name.clone());
                    }
                    continue;
                }
                Body::Runtime(_) => None,
                Body::Application(application) => Some(&application.name),
            };
            let stored = self.store.document(&key_of(document)).await?;
            let changes =
                stored.is_none_or(|stored| stored.digest != document.digest().to_string());
            match of {
                None if changes => return Ok(Concerned { applications: None, given }),
                None => {}
                Some(name) if changes => drop(applications.insert(name.clone(), Services::All)),
                Some(name) => drop(
                    applications
                        .entry(name.clone())
                        .or_insert_with(|| Services::Named(BTreeSet::new())),
                ),
            }
        }
        Ok(Concerned { applications: Some(applications), given })
    }

    fn plan_documents(&self, plan: &mut Plan, given: &[SubmittedDocument], caller: &Caller) {
        let at = self.now();
        for given in given.iter().filter(|given| given.is_changed()) {
            let document = &given.document;
            plan.changes.push(Change::Document(Box::new(StoredDocument {
                key: key_of(document),
                version: given.version,
                digest: document.digest().to_string(),
                source: document.source().clone(),
                created_at: at,
                created_by: caller.who.clone(),
            })));
            let message = format!(
                "{} applies {} `{}` (config version {})",
                caller.who,
                document.kind(),
                document.name(),
                given.version
            );
            let data =
                json!({"kind": document.kind(), "name": document.name(), "version": given.version});
            let mut entry = entry(LogKind::ConfigApplied, caller, message, data);
            match document.body() {
                Body::Application(application) => {
                    entry.application = Some(application.name.clone())
                }
                Body::Service(service) => {
                    entry.application = Some(service.application.clone());
                    entry.service = Some(service.name.clone());
                }
                Body::Runtime(_) => {}
            }
            plan.entries.push(entry);
        }
    }

    async fn plan_runtimes(
        &self,
        plan: &mut Plan,
        given: &[SubmittedDocument],
        configs: &mut Configs,
    ) -> Result<(), Refusal> {
        for given in given.iter().filter(|given| given.is_changed()) {
            let Body::Runtime(runtime) = given.document.body() else { continue };
            let stored = self.store.find_runtime(runtime.name.as_str()).await?;
            let id = stored
                .as_ref()
                .map_or_else(|| RuntimeId::from_bytes(clock::random()), |row| row.id);
            configs.set_runtime_id(runtime.name.clone(), id);
            let role = runtime.role();
            let custom = role.commands.as_ref().map(EffectiveRuntime::custom);
            plan.changes.push(Change::Runtime(Box::new(RuntimeRow {
                id,
                name: runtime.name.clone(),
                kind: role.kind.to_owned(),
                summary: RuntimeSummary {
                    labels: configs.runtime_labels(&runtime.name),
                    proxy_runtime: custom.map(|custom| custom.proxy_runtime.runtime.clone()),
                    max_concurrency: custom.and_then(|custom| custom.apply.max_concurrency),
                },
                config_version: given.version,
                created_at: stored.map_or_else(|| self.now(), |row| row.created_at),
            })));
        }
        Ok(())
    }

    /// The rows of one application as they will be: itself, its channels, its services, and the
    /// instances between them.
    async fn plan_application(
        &self,
        plan: &mut Plan,
        configs: &Configs,
        estate: &ConfigSnapshot,
        given: &[SubmittedDocument],
        name: &ApplicationName,
    ) -> Result<PlannedApplication, Refusal> {
        let stored = self.store.find_application(name.as_str()).await?;
        let document =
            given.iter().find(|given| matches!(given.document.body(), Body::Application(application) if application.name == *name));
        let is_new = stored.is_none();
        let mut row = stored.unwrap_or_else(|| ApplicationRow {
            id: ApplicationId::from_bytes(clock::random()),
            name: name.clone(),
            config_version: 0,
            created_at: self.now(),
        });
        if let Some(given) = document.filter(|given| given.is_changed()) {
            row.config_version = given.version;
            plan.changes.push(Change::Application(row.clone()));
        }
        let application = configs
            .application(name)
            .ok_or_else(|| Refusal::NotFound(format!("application `{name}` has no config")))?;
        let channels = compile::channels(configs, application).map_err(Refusal::Config)?;
        let before = if is_new { Vec::new() } else { self.store.channels(row.id).await? };
        let mut services = BTreeMap::new();
        let given_versions: BTreeMap<&ServiceName, u64> = given
            .iter()
            .filter_map(|given| match given.document.body() {
                Body::Service(service) if service.application == *name => {
                    Some((&service.name, given.version))
                }
                _ => None,
            })
            .collect();
        let wanted: Vec<&Service> =
            configs.services().filter(|service| service.application == *name).collect();
        let mut stored =
            if is_new { BTreeMap::new() } else { self.service_rows(row.id, &wanted).await? };
        for service in &wanted {
            let version = given_versions.get(&service.name).copied();
            let version = version.or_else(|| {
                estate.version(DocumentKind::Service, name.as_str(), service.name.as_str())
            });
            let mut service_row = stored.remove(&service.name).unwrap_or_else(|| ServiceRow {
                id: ServiceId::from_bytes(clock::random()),
                application: row.id,
                name: service.name.clone(),
                config_version: 0,
                release_count: 0,
                created_at: self.now(),
            });
            let version = version.unwrap_or(service_row.config_version);
            if service_row.config_version != version {
                service_row.config_version = version;
                plan.changes.push(Change::Service(service_row.clone()));
            }
            services.insert(service.name.clone(), service_row);
        }
        let (ids, gone) = self.plan_channels(plan, &row, &channels, before, &services);
        let applied = PlannedApplication { row, channels, ids, services, gone };
        for service in wanted {
            let Some(subject) = applied.subject(&service.name) else { continue };
            for channel in &applied.channels {
                let Some(names) = subject.names(&channel.name) else { continue };
                if let Some(runtime) = compile::runtime(configs, &self.options, service, channel) {
                    plan.instances.push((names, runtime));
                }
            }
        }
        Ok(applied)
    }

    /// The rows of these services, as far as they are there.
    async fn service_rows(
        &self,
        application: ApplicationId,
        wanted: &[&Service],
    ) -> Result<BTreeMap<ServiceName, ServiceRow>, Refusal> {
        if wanted.len() > ONE_BY_ONE {
            return Ok(self.store.service_rows(application).await?);
        }
        let mut rows = BTreeMap::new();
        for service in wanted {
            if let Some(row) = self.store.find_service(application, service.name.as_str()).await? {
                rows.insert(service.name.clone(), row);
            }
        }
        Ok(rows)
    }

    /// Channels that are new, changed, gone or back; those that are gone take their instances with
    /// them.
    fn plan_channels(
        &self,
        plan: &mut Plan,
        application: &ApplicationRow,
        channels: &[Channel],
        before: Vec<ChannelRow>,
        services: &BTreeMap<ServiceName, ServiceRow>,
    ) -> (BTreeMap<ChannelName, ChannelId>, Vec<ChannelRow>) {
        let mut ids = BTreeMap::new();
        for (position, channel) in (0..).zip(channels) {
            let stored = before.iter().find(|row| row.name == channel.name);
            let id = stored.map_or_else(|| ChannelId::from_bytes(clock::random()), |row| row.id);
            ids.insert(channel.name.clone(), id);
            let row = ChannelRow {
                id,
                application: application.id,
                name: channel.name.clone(),
                position,
                summary: summary(channel),
                deleted_at: None,
            };
            if stored != Some(&row) {
                plan.changes.push(Change::Channel(Box::new(row)));
            }
        }
        let goes = |row: &ChannelRow| row.deleted_at.is_none() && !ids.contains_key(&row.name);
        let gone: Vec<ChannelRow> = before.into_iter().filter(goes).collect();
        for gone in &gone {
            plan.changes.push(Change::Channel(Box::new(ChannelRow {
                deleted_at: Some(self.now()),
                ..gone.clone()
            })));
            plan.events.extend(
                services
                    .values()
                    .map(|service| (InstanceId::of(service.id, gone.id), Event::Deleted)),
            );
        }
        (ids, gone)
    }
}

impl PlannedApplication {
    pub(super) fn subject(&self, service: &ServiceName) -> Option<ReleaseSubject<'_>> {
        Some(ReleaseSubject {
            application: &self.row,
            service: self.services.get(service)?,
            channel_ids: &self.ids,
        })
    }
}

impl ConfigSnapshot {
    fn version(&self, kind: DocumentKind, application: &str, name: &str) -> Option<u64> {
        let key = crate::store::StoredDocumentKey {
            kind,
            application: application.to_owned(),
            name: name.to_owned(),
        };
        self.stored.get(&key).map(|stored| stored.version)
    }
}

/// What lists show of a channel.
fn summary(channel: &Channel) -> ChannelSummary {
    ChannelSummary {
        group: channel.group.as_ref().map(ToString::to_string),
        runtimes: channel
            .connections
            .iter()
            .map(|connection| RuntimeConnection {
                name: connection.name.to_string(),
                runtime: connection.runtime.clone(),
            })
            .collect(),
        preconditions: channel
            .preconditions
            .iter()
            .map(|precondition| {
                serde_json::to_value(precondition).expect("a config message has a JSON form")
            })
            .collect(),
        labels: channel.labels.clone(),
    }
}
