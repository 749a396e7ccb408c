//! The documents that a request concerns, read again from the store: all runtimes, and of the applications that matter
//! everything. What does not matter is not read.

use std::collections::{BTreeMap, BTreeSet};

use schema::config::{self, Body, Document};
use schema::id::ApplicationName;

use super::super::Refusal;
use super::Planner;
use crate::compile::Configs;
use crate::store::{DocumentKey, DocumentKind, PAGE_LIMIT, PageRequest, StoredDocument};

/// Documents in force.
pub(super) struct Estate {
    /// As they are stored.
    pub(super) stored: BTreeMap<DocumentKey, StoredDocument>,
    /// What they say.
    pub(super) configs: Configs,
}

/// The key under which the store has a document.
pub(super) fn key_of(document: &Document) -> DocumentKey {
    let (kind, application) = match document.body() {
        Body::Runtime(_) => (DocumentKind::Runtime, String::new()),
        Body::Application(_) => (DocumentKind::Application, String::new()),
        Body::Service(service) => (DocumentKind::Service, service.application.to_string()),
    };
    DocumentKey { kind, application, name: document.name().to_owned() }
}

/// Reads a stored document again.
pub(super) fn read(stored: &StoredDocument) -> Result<Document, Refusal> {
    let label = format!("{} `{}`", stored.key.kind.as_str(), stored.key.name);
    match config::read_source(stored.source.clone()) {
        Ok(Some(document)) => Ok(document),
        Ok(None) => Err(Refusal::Conflict(format!("the stored {label} is empty; apply it again"))),
        Err(problems) => {
            let first = problems.into_iter().next().map(|problem| problem.message).unwrap_or_default();
            Err(Refusal::Conflict(format!(
                "the stored {label} is not valid for this version of pvn: {first}; correct it and apply it again"
            )))
        }
    }
}

impl Planner {
    /// All runtimes and these applications with their services; `None` = all applications.
    pub(super) async fn estate(&self, applications: Option<&BTreeSet<ApplicationName>>) -> Result<Estate, Refusal> {
        let mut estate = Estate { stored: BTreeMap::new(), configs: Configs::default() };
        let mut documents = self.store.documents(DocumentKind::Runtime, "").await?;
        let all = self.store.documents(DocumentKind::Application, "").await?;
        let wanted =
            all.into_iter().filter(|stored| applications.is_none_or(|named| named.iter().any(|name| name.as_str() == stored.key.name)));
        for application in wanted.collect::<Vec<_>>() {
            documents.extend(self.store.documents(DocumentKind::Service, &application.key.name).await?);
            documents.push(application);
        }
        for stored in documents {
            estate.configs.put(read(&stored)?);
            estate.stored.insert(stored.key.clone(), stored);
        }
        self.name_ids(&mut estate).await?;
        Ok(estate)
    }

    /// Tells the configs the ids that labels may name.
    async fn name_ids(&self, estate: &mut Estate) -> Result<(), Refusal> {
        let mut page = PageRequest { cursor: None, limit: Some(PAGE_LIMIT) };
        loop {
            let runtimes = self.store.runtimes(&page).await?;
            for runtime in runtimes.items {
                estate.configs.set_runtime_id(runtime.name, runtime.id);
            }
            page.cursor = runtimes.next_cursor;
            if page.cursor.is_none() {
                break;
            }
        }
        let names: Vec<ApplicationName> = estate.configs.applications().map(|application| application.name.clone()).collect();
        for name in names {
            let Some(row) = self.store.find_application(name.as_str()).await? else { continue };
            for channel in self.store.channels(row.id).await? {
                estate.configs.set_channel_id(name.clone(), channel.name, channel.id);
            }
        }
        Ok(())
    }
}
