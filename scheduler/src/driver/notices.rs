//! What people are told without asking, decided with what it tells of: entries of the log become
//! messages to the targets of their application, written in the same transaction. Sent afterwards,
//! by `notifications`; nothing here waits for that.
//!
//! What always holds: what is not well is told once, until it is well again, pursues another
//! version, or somebody asks to try again; that it is well again is told where the other was.

mod decide;
mod words;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use config::{Body, DocumentSource, NotificationTarget};
use engine::State;
use schema::api::{LogEntry, NotificationData, NotificationMessage};
use schema::command_target::CommandTarget;
use schema::id::{ApplicationName, InstanceId, NotificationId, RuntimeName};
use schema::log_kind::LogKind;
use schema::notification::NotificationEvent;
use tokio::sync::watch;

use super::batch::Batch;
use super::run::DriverLoop;
use super::world::World;
use crate::store::{
    Change, Commit, DocumentKind, NewNotification, NotifiedPlace, Store, StoreError, ToldLast,
};
use decide::{Decided, decide};

/// Of the applications that name any.
type Targets = BTreeMap<ApplicationName, Vec<NotificationTarget>>;

/// Who is told, and what they were told last.
#[derive(Debug)]
pub(super) struct Notices {
    targets: Targets,
    /// Of what is not well.
    told: HashMap<NotifiedPlace, ToldLast>,
    /// Counts the commits that had messages in them, for whoever sends them.
    written: watch::Sender<u64>,
}

/// What a commit tells.
struct Telling<'a> {
    /// Those of the config that the commit brings, where it brings one.
    targets: Cow<'a, Targets>,
    messages: Vec<NewNotification>,
    told: BTreeMap<NotifiedPlace, Option<ToldLast>>,
}

impl Notices {
    /// As the database has it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(super) async fn stored(store: &Store) -> Result<Self, StoreError> {
        let mut notices = Self {
            targets: BTreeMap::new(),
            told: store.told_last().await?,
            written: watch::Sender::new(0),
        };
        // A document that cannot be read names nobody, and is told of where it is used.
        let documents = match store.documents(DocumentKind::Application, "", None).await {
            Err(StoreError::Corrupt(why)) => {
                tracing::warn!(why, "who is to be notified cannot be read; nobody is");
                Vec::new()
            }
            other => other?,
        };
        for document in documents {
            take(&mut notices.targets, &document.key.name, &document.source);
        }
        Ok(notices)
    }

    /// Woken by each commit that has messages in it.
    pub(super) fn written(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }

    /// Adds to a commit what is told of it.
    fn add(&self, commit: &mut Commit, batch: &Batch, world: &World) {
        let mut targets = Cow::Borrowed(&self.targets);
        commit.changes.iter().for_each(|change| take_change(&mut targets, change));
        if targets.is_empty() {
            return;
        }
        let mut telling = Telling { targets, messages: Vec::new(), told: BTreeMap::new() };
        let mut touched = None;
        for entry in &commit.events {
            let Ok(kind) = entry.kind.parse::<LogKind>() else { continue };
            if !decide::is_told(kind) {
                continue;
            }
            match place(entry) {
                Some(place) if telling.targets.contains_key(&place.0) => {
                    let ids = touched.get_or_insert_with(|| telling.touched(batch, world));
                    let state = ids.get(&place).and_then(|id| world.instances.get(id));
                    let state = state.map(|kept| kept.state.as_ref());
                    self.tell_of_place(&mut telling, kind, entry, place, state);
                }
                Some(_) => {}
                None => telling.tell_of_runtime(kind, entry, world),
            }
        }
        commit.notifications = telling.messages;
        commit.told = telling.told.into_iter().collect();
    }

    fn tell_of_place(
        &self,
        telling: &mut Telling<'_>,
        kind: LogKind,
        entry: &LogEntry,
        place: NotifiedPlace,
        state: Option<&State>,
    ) {
        let version = state.and_then(State::desired).map(|desired| desired.version.clone());
        let before = match telling.told.get(&place) {
            Some(last) => last.as_ref(),
            None => self.told.get(&place),
        };
        let Decided { event, told } =
            decide(kind, entry, before, version.as_deref().unwrap_or_default());
        if let Some(event) = event {
            let plan = state.filter(|_| kind == LogKind::ApprovalAsked);
            let plan = plan.and_then(|state| words::plan(state, entry));
            let text = words::of_place(event, &place, version.as_deref());
            telling.message(event, &place.0, entry, |data| {
                (data.service, data.channel) = (Some(place.1.clone()), Some(place.2.clone()));
                (data.version, data.text, data.plan) =
                    (version.clone(), text.clone(), plan.clone());
                // Whoever reads it elsewhere copies the command that it names.
                let (application, service, channel) =
                    (place.0.as_str(), place.1.as_str(), place.2.as_str());
                data.why = CommandTarget { application, service, channel }.text(&data.why);
            });
        }
        if let Some(told) = told {
            telling.told.insert(place, told);
        }
    }

    /// A commit is stored.
    fn take_in(&mut self, commit: &Commit) {
        let mut targets = Cow::Borrowed(&self.targets);
        commit.changes.iter().for_each(|change| take_change(&mut targets, change));
        if let Cow::Owned(targets) = targets {
            self.targets = targets;
        }
        for (place, told) in &commit.told {
            match told {
                Some(told) => drop(self.told.insert(place.clone(), told.clone())),
                None => drop(self.told.remove(place)),
            }
        }
        let is_sent_again = |change: &Change| matches!(change, Change::NotificationResent { .. });
        if !commit.notifications.is_empty() || commit.changes.iter().any(is_sent_again) {
            self.written.send_modify(|count| *count += 1);
        }
    }
}

impl Telling<'_> {
    /// The instances of a batch whose application has targets, by their names.
    fn touched(&self, batch: &Batch, world: &World) -> HashMap<NotifiedPlace, InstanceId> {
        let named = |id: &InstanceId| {
            let names = world.names(*id)?;
            let (application, service) = (names.application.1.clone(), names.service.1.clone());
            self.targets
                .contains_key(&application)
                .then(|| ((application, service, names.channel.1.clone()), *id))
        };
        batch.before.keys().filter_map(named).collect()
    }

    /// What concerns a runtime is told once to each application that has services there.
    fn tell_of_runtime(&mut self, kind: LogKind, entry: &LogEntry, world: &World) {
        let Some(event) = decide::of_runtime(kind) else { return };
        let Some(runtime) = entry.data["runtime"].as_str() else { return };
        let Ok(runtime) = runtime.parse::<RuntimeName>() else { return };
        let there = world.instances.values().filter(|kept| kept.runtime == runtime);
        let applications: BTreeSet<ApplicationName> = there
            .map(|kept| &kept.names.application.1)
            .filter(|name| self.targets.contains_key(*name))
            .cloned()
            .collect();
        for application in applications {
            self.message(event, &application, entry, |data| {
                data.runtime = Some(runtime.clone());
                data.text = words::of_runtime(event, &runtime, &application);
            });
        }
    }

    /// One message to each target of an application that wants to know.
    fn message(
        &mut self,
        event: NotificationEvent,
        application: &ApplicationName,
        entry: &LogEntry,
        fill: impl Fn(&mut NotificationData),
    ) {
        let targets = self.targets.get(application).into_iter().flatten();
        for target in targets.filter(|target| target.wants(event)) {
            let id = NotificationId::derive(&[
                &entry.seq.to_le_bytes(),
                &entry.at.as_millis().to_le_bytes(),
                application.as_str().as_bytes(),
                target.name.as_str().as_bytes(),
            ]);
            let mut data = NotificationData {
                why: words::why(&entry.message),
                ..NotificationData::of(id, application.clone())
            };
            fill(&mut data);
            self.messages.push(NewNotification {
                target: target.name.clone(),
                message: NotificationMessage { kind: event.into(), timestamp: entry.at, data },
            });
        }
    }
}

/// The targets once this change is made.
fn take_change(targets: &mut Cow<'_, Targets>, change: &Change) {
    match change {
        Change::Document(document) if document.key.kind == DocumentKind::Application => {
            take(targets.to_mut(), &document.key.name, &document.source);
        }
        Change::DocumentDeleted { key, .. } if key.kind == DocumentKind::Application => {
            targets.to_mut().retain(|name, _| name.as_str() != key.name);
        }
        _ => {}
    }
}

/// The document of an application is this one now.
fn take(targets: &mut Targets, name: &str, source: &DocumentSource) {
    let Ok(name) = name.parse::<ApplicationName>() else { return };
    // Most name nobody, and reading one takes longer than looking for the word.
    let is_candidate = source.text.contains("notifications");
    let document =
        is_candidate.then(|| config::read_source(source.clone()).ok().flatten()).flatten();
    let named = match document.as_ref().map(|document| document.body()) {
        Some(Body::Application(application)) => application.notifications.clone(),
        _ => Vec::new(),
    };
    if named.is_empty() {
        targets.remove(&name);
    } else {
        targets.insert(name, named);
    }
}

fn place(entry: &LogEntry) -> Option<NotifiedPlace> {
    Some((entry.application.clone()?, entry.service.clone()?, entry.channel.clone()?))
}

impl DriverLoop {
    /// The transaction of a batch, with what people are told of it.
    pub(super) fn transaction(&mut self, batch: &mut Batch) -> Commit {
        let mut commit = batch.commit(&mut self.world);
        self.notices.add(&mut commit, batch, &self.world);
        if self.retry.is_some() && commit.is_empty() {
            // Something has to be written to know that writing works again.
            commit.changes.push(Change::Meta("stored_at", batch.now.to_string()));
        }
        commit
    }

    /// It is stored.
    pub(super) fn stored(&mut self, commit: &Commit) {
        self.numbers.commits += 1;
        self.numbers.rows += commit.rows() as u64;
        self.notices.take_in(commit);
        let instances = &self.world.instances;
        self.revisions.tell(commit, |id| Some(instances.get(id)?.names.as_ref()));
    }
}
