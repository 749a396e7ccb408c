//! What a request deletes: documents by their names, or with `prune` the services that files leave
//! out. Rows stay, marked, so that history can be read and names come back with their ids; the
//! instances end as those of a release channel that goes. Called by `configs`.
//!
//! What always holds: nothing in force refers to what is deleted, and no instance that is wanted
//! has a document that is not.

use std::collections::{BTreeMap, BTreeSet};

use config::{Body, Document};
use engine::event::Event;
use schema::api::{ConfigsRequest, DocumentChange, DocumentReference};
use schema::id::{ApplicationName, InstanceId, RuntimeName, ServiceId, ServiceName};
use schema::log_kind::LogKind;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::diff;
use super::gone::RemovedChannel;
use super::snapshot::{Concerned, Services, key_of};
use super::{Planner, entry};
use crate::compile::{self, BUILT_IN_RUNTIME, Configs, DocumentKey};
use crate::store::{
    ApplicationRow, Change, ChannelRow, DocumentKind, ServiceRow, StoredDocument, StoredDocumentKey,
};

/// Most services that are named as those which keep a runtime. Source: a screen of a terminal.
const NAMED_LIMIT: usize = 10;

/// The documents that a request deletes, as they are stored, in the order in which they are told.
#[derive(Default)]
pub(super) struct Deletions(Vec<StoredDocument>);

impl Deletions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, key: &StoredDocumentKey) -> bool {
        self.0.iter().any(|stored| stored.key == *key)
    }

    fn of(&self, kind: DocumentKind) -> impl Iterator<Item = &StoredDocument> {
        self.0.iter().filter(move |stored| stored.key.kind == kind)
    }

    /// What tells one request from another: which texts go.
    pub(super) fn named(&self) -> Vec<(String, u64)> {
        self.0.iter().map(|stored| (stored.key.to_string(), stored.version)).collect()
    }

    /// What documents may be affected, beside those that are given.
    pub(super) fn concern(&self, concerned: &mut Concerned) {
        if self.of(DocumentKind::Runtime).next().is_some() {
            concerned.applications = None;
        }
        let Some(applications) = &mut concerned.applications else { return };
        for stored in self.of(DocumentKind::Service) {
            // What is stored under a name that is none is no document in force.
            let (Ok(application), Ok(service)) = (
                stored.key.application.parse::<ApplicationName>(),
                stored.key.name.parse::<ServiceName>(),
            ) else {
                continue;
            };
            let named =
                applications.entry(application).or_insert_with(|| Services::Named(BTreeSet::new()));
            if let Services::Named(names) = named {
                names.insert(service);
            }
        }
    }

    /// Takes them out of what is in force.
    ///
    /// # Errors
    /// [`Refusal::Config`] with every problem that was none before: who refers to them.
    pub(super) fn take_from(
        &self,
        configs: &mut Configs,
        options: &compile::Options,
    ) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        let refers = self.of(DocumentKind::Runtime).next().is_some();
        let before = if refers { compile::check(configs, options, None) } else { Vec::default() };
        for stored in &self.0 {
            if let Some(key) = compiled_key(&stored.key) {
                configs.remove(&key);
            }
        }
        if !refers {
            return Ok(());
        }
        let mut problems = compile::check(configs, options, None);
        problems.retain(|problem| !before.contains(problem));
        if problems.is_empty() { Ok(()) } else { Err(Refusal::Config(problems)) }
    }

    /// Each with the text that goes.
    pub(super) fn shown(&self) -> impl Iterator<Item = DocumentChange> {
        self.0.iter().map(|stored| DocumentChange {
            kind: stored.key.kind.as_str().to_owned(),
            name: stored.key.name.clone(),
            application: stored.key.application.parse().ok(),
            change: "deleted".to_owned(),
            version: stored.version,
            diff: diff::deleted(&stored.key.to_string(), &stored.source.text),
        })
    }
}

fn compiled_key(key: &StoredDocumentKey) -> Option<DocumentKey> {
    Some(match key.kind {
        DocumentKind::Runtime => DocumentKey::Runtime(key.name.parse().ok()?),
        DocumentKind::Application => DocumentKey::Application(key.name.parse().ok()?),
        DocumentKind::Service => {
            DocumentKey::Service(key.application.parse().ok()?, key.name.parse().ok()?)
        }
    })
}

impl Planner {
    /// What a request deletes.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] of what is not stored, [`Refusal::Invalid`] of a request that deletes
    /// and gives at once, [`Refusal::Conflict`] of a runtime that is in use.
    pub(super) async fn deletions(
        &self,
        request: &ConfigsRequest,
        documents: &[Document],
    ) -> Result<Deletions, Refusal> {
        let mut found = BTreeMap::new();
        if !request.delete.is_empty() && (!request.files.is_empty() || request.push) {
            return Err(Refusal::Invalid(
                "a request that deletes documents gives no files and pushes nothing: delete in \
                 a request of its own, or apply with `prune`"
                    .to_owned(),
            ));
        }
        for reference in &request.delete {
            let stored = self.referred(reference).await?;
            if stored.key.kind == DocumentKind::Application {
                for service in self.services_of(&stored.key.name).await? {
                    found.insert(service.key.clone(), service);
                }
            }
            found.insert(stored.key.clone(), stored);
        }
        if request.prune {
            let given: BTreeSet<_> = documents.iter().map(key_of).collect();
            for document in documents {
                let Body::Application(application) = document.body() else { continue };
                let stored = self.services_of(application.name.as_str()).await?;
                let left_out = stored.into_iter().filter(|stored| !given.contains(&stored.key));
                found.extend(left_out.map(|stored| (stored.key.clone(), stored)));
            }
        }
        // An application comes before its services, and goes before them.
        Ok(Deletions(found.into_values().collect()))
    }

    async fn services_of(&self, application: &str) -> Result<Vec<StoredDocument>, Refusal> {
        Ok(self.store.documents(DocumentKind::Service, application, None).await?)
    }

    /// The document that is meant, by names or ids.
    async fn referred(&self, reference: &DocumentReference) -> Result<StoredDocument, Refusal> {
        let DocumentReference { kind, application, name } = reference;
        let not_there = || {
            Refusal::NotFound(format!(
                "there is no {kind} `{name}`; `pvnctl configs list` shows those there are"
            ))
        };
        let (kind, application, name) = match DocumentKind::of(kind) {
            Some(kind @ DocumentKind::Runtime) if name == BUILT_IN_RUNTIME => {
                return Err(Refusal::Conflict(format!(
                    "the {} `{name}` is always there and cannot be deleted",
                    kind.as_str()
                )));
            }
            Some(kind @ DocumentKind::Runtime) => {
                let row = self.store.find_runtime(name).await?.ok_or_else(not_there)?;
                self.refuse_used(&row.name).await?;
                (kind, String::new(), row.name.to_string())
            }
            Some(kind @ DocumentKind::Application) => {
                let row = self.store.find_application(name).await?.ok_or_else(not_there)?;
                (kind, String::new(), row.name.to_string())
            }
            Some(kind @ DocumentKind::Service) => {
                let (application, service) = self.find(application, name).await?;
                (kind, application.name.to_string(), service.name.to_string())
            }
            None => {
                return Err(Refusal::Invalid(format!(
                    "`{kind}` is no kind of document: a `runtime`, an `application` or a \
                     `service` can be deleted"
                )));
            }
        };
        let key = StoredDocumentKey { kind, application, name };
        self.store.document(&key).await?.ok_or_else(not_there)
    }

    /// A runtime goes only when nothing that is released runs on it, whatever configs say by now.
    async fn refuse_used(&self, name: &RuntimeName) -> Result<(), Refusal> {
        let users = self.store.services_on(name).await?;
        if users.is_empty() {
            return Ok(());
        }
        let named: Vec<_> = users
            .iter()
            .take(NAMED_LIMIT)
            .map(|(application, service)| format!("{application}/{service}"))
            .collect();
        let more = match users.len().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Err(Refusal::Conflict(format!(
            "the runtime `{name}` serves {}{more}: connect their release channels to another \
             runtime and release them there, or delete them, and then the runtime",
            named.join(", ")
        )))
    }

    /// The rows that go, and what happens to the instances. Returns what is released in the
    /// channels besides `going`, to be told before it happens.
    pub(super) async fn plan_deletions(
        &self,
        plan: &mut Plan,
        deletions: &Deletions,
        going: &[RemovedChannel],
        caller: &Caller,
    ) -> Result<Vec<RemovedChannel>, Refusal> {
        let mut services: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for stored in &deletions.0 {
            let StoredDocumentKey { kind, application, name } = &stored.key;
            match kind {
                DocumentKind::Runtime => {
                    plan.changes.extend(name.parse().ok().map(Change::RuntimeDeleted));
                }
                DocumentKind::Application => drop(services.entry(name).or_default()),
                DocumentKind::Service => {
                    services.entry(application).or_default().insert(name);
                }
            }
            self.end_document(plan, stored, caller);
        }
        let mut removed = Vec::new();
        for (application, services) in services {
            let Some(row) = self.store.find_application(application).await? else { continue };
            let is_whole =
                deletions.of(DocumentKind::Application).any(|it| it.key.name == application);
            let mut channels = self.store.channels(row.id).await?;
            channels.retain(|channel| channel.deleted_at.is_none());
            let known = self.store.service_rows(row.id).await?;
            let ended: BTreeMap<_, _> = known
                .into_values()
                .filter(|service| service.deleted_at.is_none())
                .filter(|service| services.contains(service.name.as_str()))
                .map(|service| (service.id, service))
                .collect();
            for channel in channels {
                let instance = |service: &ServiceId| InstanceId::of(*service, channel.id);
                plan.events.extend(ended.keys().map(|id| (instance(id), Event::Deleted)));
                if !going.iter().any(|going| going.is_of(channel.id)) {
                    let mut released = self.store.released_in(channel.id).await?;
                    released.retain(|released| ended.contains_key(&released.id));
                    removed.push(RemovedChannel::of_services(&row.name, &channel, released));
                }
                if is_whole {
                    let gone = ChannelRow { deleted_at: Some(self.now()), ..channel };
                    plan.changes.push(Change::Channel(Box::new(gone)));
                }
            }
            let deleted_at = Some(self.now());
            plan.changes.extend(
                ended.into_values().map(|row| Change::Service(ServiceRow { deleted_at, ..row })),
            );
            if is_whole {
                plan.changes.push(Change::Application(ApplicationRow { deleted_at, ..row }));
            }
        }
        Ok(removed)
    }

    fn end_document(&self, plan: &mut Plan, stored: &StoredDocument, caller: &Caller) {
        let (kind, name) = (stored.key.kind, &stored.key.name);
        plan.changes.push(Change::DocumentDeleted {
            key: stored.key.clone(),
            at: self.now(),
            by: caller.who.clone(),
        });
        let message =
            format!("{} deletes {} (config version {})", caller.who, stored.key, stored.version);
        let data = json!({"kind": kind.as_str(), "name": name, "version": stored.version});
        let mut entry = entry(LogKind::ConfigDeleted, caller, message, data);
        match kind {
            DocumentKind::Runtime => {}
            DocumentKind::Application => entry.application = name.parse().ok(),
            DocumentKind::Service => {
                entry.application = stored.key.application.parse().ok();
                entry.service = name.parse().ok();
            }
        }
        plan.entries.push(entry);
    }
}
