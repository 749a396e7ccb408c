//! The documents that a request concerns, read again from the store: all runtimes, and of the
//! applications that matter everything. What does not matter is not read.

use std::collections::{BTreeMap, BTreeSet};

use config::{self, Body, Document};
use schema::id::{ApplicationName, ServiceName};

use super::super::Refusal;
use super::Planner;
use crate::compile::Configs;
use crate::store::{DocumentKind, StoredDocument, StoredDocumentKey};

/// Documents in force.
pub(super) struct ConfigSnapshot {
    /// As they are stored.
    pub(super) stored: BTreeMap<StoredDocumentKey, StoredDocument>,
    /// What they say.
    pub(super) configs: Configs,
}

/// The key under which the store has a document.
pub(super) fn key_of(document: &Document) -> StoredDocumentKey {
    let (kind, application) = match document.body() {
        Body::Runtime(_) => (DocumentKind::Runtime, String::new()),
        Body::Application(_) => (DocumentKind::Application, String::new()),
        Body::Service(service) => (DocumentKind::Service, service.application.to_string()),
    };
    StoredDocumentKey { kind, application, name: document.name().to_owned() }
}

/// Reads a stored document again.
pub(super) fn read(stored: &StoredDocument) -> Result<Document, Refusal> {
    let label = format!("{} `{}`", stored.key.kind.as_str(), stored.key.name);
    match config::read_source(stored.source.clone()) {
        Ok(Some(document)) => Ok(document),
        Ok(None) => Err(Refusal::Conflict(format!("the stored {label} is empty; apply it again"))),
        Err(problems) => {
            let first =
                problems.into_iter().next().map(|problem| problem.message).unwrap_or_default();
            Err(Refusal::Conflict(format!(
                "the stored {label} is not valid for this version of pvn: {first}; correct it and \
                 apply it again"
            )))
        }
    }
}

/// Which documents in force matter besides the runtimes, all of which do.
#[derive(Debug, Default)]
pub(super) struct Concerned {
    /// Applications; `None` = all with all their services, because a runtime changes.
    pub(super) applications: Option<BTreeMap<ApplicationName, Services>>,
    /// Documents that are given with the request: what is stored of them is needed to compare, and
    /// not read again.
    pub(super) given: BTreeSet<StoredDocumentKey>,
}

/// Which services of an application matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Services {
    /// All, because the application itself changes.
    All,
    /// These: an application may have thousands, and a change of one service means nothing to the
    /// others.
    Named(BTreeSet<ServiceName>),
}

impl Concerned {
    /// One application, and of its services one.
    pub(super) fn service(application: &ApplicationName, service: &ServiceName) -> Self {
        let services = Services::Named(BTreeSet::from([service.clone()]));
        Self {
            applications: Some(BTreeMap::from([(application.clone(), services)])),
            ..Self::default()
        }
    }

    /// No application.
    pub(super) fn runtimes_only() -> Self {
        Self { applications: Some(BTreeMap::new()), ..Self::default() }
    }
}

impl Planner {
    /// The documents in force that matter.
    pub(super) async fn estate(&self, concerned: &Concerned) -> Result<ConfigSnapshot, Refusal> {
        let mut estate = ConfigSnapshot { stored: BTreeMap::new(), configs: Configs::default() };
        let mut documents = self.store.documents(DocumentKind::Runtime, "", None).await?;
        for application in self.store.documents(DocumentKind::Application, "", None).await? {
            let name = &application.key.name;
            let services = match &concerned.applications {
                None => Some(None),
                Some(named) => {
                    let found =
                        named.iter().find(|(application, _)| application.as_str() == name.as_str());
                    found.map(|(_, services)| match services {
                        Services::All => None,
                        Services::Named(names) => {
                            Some(names.iter().map(ServiceName::as_str).collect::<Vec<_>>())
                        }
                    })
                }
            };
            let Some(services) = services else { continue };
            documents.extend(
                self.store.documents(DocumentKind::Service, name, services.as_deref()).await?,
            );
            documents.push(application);
        }
        for stored in documents {
            if !concerned.given.contains(&stored.key) {
                estate.configs.put(read(&stored)?);
            }
            estate.stored.insert(stored.key.clone(), stored);
        }
        self.name_ids(&mut estate).await?;
        Ok(estate)
    }

    /// Tells the configs the ids that labels may name.
    async fn name_ids(&self, estate: &mut ConfigSnapshot) -> Result<(), Refusal> {
        for (name, id) in self.store.runtime_ids().await? {
            estate.configs.set_runtime_id(name, id);
        }
        for key in estate.stored.keys().filter(|key| key.kind == DocumentKind::Application) {
            let Some(row) = self.store.find_application(&key.name).await? else { continue };
            for channel in self.store.channels(row.id).await? {
                estate.configs.set_channel_id(row.name.clone(), channel.name, channel.id);
            }
        }
        Ok(())
    }
}
