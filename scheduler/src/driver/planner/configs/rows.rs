//! What documents come to in rows: runtimes, the application with its channels, services.

use std::collections::BTreeMap;

use config::{self, Body, EffectiveRuntime, Service};
use engine::event::Event;
use schema::api::RuntimeConnection;
use schema::id::{
    ApplicationId, ApplicationName, ChannelId, ChannelName, InstanceId, RuntimeId, ServiceId,
    ServiceName,
};

use super::super::super::Refusal;
use super::super::super::calls::Plan;
use super::super::Planner;
use super::super::snapshot::ConfigSnapshot;
use super::submitted::SubmittedDocument;
use super::{ONE_BY_ONE, PlannedApplication};
use crate::clock;
use crate::compile::{self, Channel, Configs};
use crate::store::{
    ApplicationRow, Change, ChannelRow, ChannelSummary, DocumentKind, RuntimeRow, RuntimeSummary,
    ServiceRow,
};

impl Planner {
    pub(super) async fn plan_runtimes(
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
    pub(super) async fn plan_applications(
        &self,
        plan: &mut Plan,
        configs: &Configs,
        estate: &ConfigSnapshot,
        given: &[SubmittedDocument],
    ) -> Result<BTreeMap<ApplicationName, PlannedApplication>, Refusal> {
        let mut planned = BTreeMap::new();
        for application in configs.applications() {
            let row =
                self.plan_application(plan, configs, estate, given, &application.name).await?;
            planned.insert(application.name.clone(), row);
        }
        Ok(planned)
    }

    async fn plan_application(
        &self,
        plan: &mut Plan,
        configs: &Configs,
        estate: &ConfigSnapshot,
        given: &[SubmittedDocument],
        name: &ApplicationName,
    ) -> Result<PlannedApplication, Refusal> {
        let stored = self.store.known_application(name.as_str()).await?;
        let document = given.iter().find(|given| match given.document.body() {
            Body::Application(application) => application.name == *name,
            Body::Runtime(_) | Body::Service(_) => false,
        });
        let is_new = stored.is_none();
        let mut row = stored.unwrap_or_else(|| ApplicationRow {
            id: ApplicationId::from_bytes(clock::random()),
            name: name.clone(),
            config_version: 0,
            created_at: self.now(),
            deleted_at: None,
        });
        if let Some(given) = document.filter(|given| given.is_changed()) {
            row.config_version = given.version;
            row.deleted_at = None;
            plan.changes.push(Change::Application(row.clone()));
        }
        let application = configs
            .application(name)
            .ok_or_else(|| Refusal::NotFound(format!("application `{name}` has no config")))?;
        let channels = compile::channels(configs, application).map_err(Refusal::Config)?;
        let before = if is_new { Vec::new() } else { self.store.channels(row.id).await? };
        let wanted: Vec<&Service> =
            configs.services().filter(|service| service.application == *name).collect();
        let stored =
            if is_new { BTreeMap::new() } else { self.service_rows(row.id, &wanted).await? };
        let given_versions: BTreeMap<&ServiceName, u64> = given
            .iter()
            .filter_map(|given| match given.document.body() {
                Body::Service(service) if service.application == *name => {
                    Some((&service.name, given.version))
                }
                _ => None,
            })
            .collect();
        let services = self.plan_services(plan, &row, &wanted, stored, |service| {
            let in_force =
                || estate.version(DocumentKind::Service, name.as_str(), service.as_str());
            given_versions.get(service).copied().or_else(in_force)
        });
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

    /// The services of an application as they will be: new, with another version of their
    /// documents, or back.
    fn plan_services(
        &self,
        plan: &mut Plan,
        application: &ApplicationRow,
        wanted: &[&Service],
        mut stored: BTreeMap<ServiceName, ServiceRow>,
        version: impl Fn(&ServiceName) -> Option<u64>,
    ) -> BTreeMap<ServiceName, ServiceRow> {
        let mut services = BTreeMap::new();
        for service in wanted {
            let mut row = stored.remove(&service.name).unwrap_or_else(|| ServiceRow {
                id: ServiceId::from_bytes(clock::random()),
                application: application.id,
                name: service.name.clone(),
                config_version: 0,
                release_count: 0,
                created_at: self.now(),
                deleted_at: None,
            });
            let version = version(&service.name).unwrap_or(row.config_version);
            if row.config_version != version || row.deleted_at.is_some() {
                (row.config_version, row.deleted_at) = (version, None);
                plan.changes.push(Change::Service(row.clone()));
            }
            services.insert(service.name.clone(), row);
        }
        services
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
            if let Some(row) = self.store.known_service(application, service.name.as_str()).await? {
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

impl ConfigSnapshot {
    pub(super) fn version(&self, kind: DocumentKind, application: &str, name: &str) -> Option<u64> {
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
