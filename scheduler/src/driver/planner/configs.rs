//! `configs apply`: read, compare, check, and make one plan of everything that changes: documents,
//! the rows that lists show, instances that come and go, and what recompiles. All or nothing.

use std::collections::{BTreeMap, BTreeSet};

use config::{self, Body, Document};
use schema::api::{ConfigsRequest, ConfigsResult, Diagnostic};
use schema::id::{ApplicationName, ChannelId, ChannelName, ServiceName};
use schema::log_kind::LogKind;
use serde_json::json;

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::deletions::Deletions;
use super::pieces::pieces;
use super::pushes::PushNotes;
use super::recompile::Changed;
use super::release::ReleaseSubject;
use super::snapshot::{Concerned, ConfigSnapshot, Services, key_of};
use super::{ClusterAnswers, Planned, Planner, entry};
use crate::compile::{self, Channel, ClusterPlace, Configs};
use crate::store::{ApplicationRow, Change, ChannelRow, ServiceRow, StoredDocument};

mod rows;
mod submitted;

pub(super) use submitted::SubmittedDocument;

use submitted::{basis, compare};

/// Most rows that are asked for one by one; of more all of the application are read in one go.
pub(super) const ONE_BY_ONE: usize = 16;

/// Why nothing is changed on the ground of what was compared.
const COMPARED_BEFORE: &str = "since these documents were compared somebody has applied some of \
                               them, or released to a channel that goes with them, and nothing \
                               was changed; compare them again";

/// An application with its rows as they will be.
pub(super) struct PlannedApplication {
    pub(super) row: ApplicationRow,
    pub(super) channels: Vec<Channel>,
    ids: BTreeMap<ChannelName, ChannelId>,
    pub(super) services: BTreeMap<ServiceName, ServiceRow>,
    /// Channels that the change takes away.
    pub(super) gone: Vec<ChannelRow>,
}

/// What somebody wants to change, beside what is in force.
struct RequestedConfigs {
    estate: ConfigSnapshot,
    given: Vec<SubmittedDocument>,
    deletions: Deletions,
    /// All documents as they will be.
    configs: Configs,
}

impl Planner {
    pub(super) async fn apply_configs(
        &mut self,
        request: &ConfigsRequest,
        asked: &ClusterAnswers,
        caller: &Caller,
    ) -> Result<Planned, Refusal> {
        let RequestedConfigs { estate, given, deletions, mut configs } =
            self.requested(request).await?;
        let changed: BTreeSet<compile::DocumentKey> = given
            .iter()
            .filter(|given| given.is_changed())
            .map(|given| compile::key(given.document.body()))
            .collect();
        let problems = compile::check(&configs, &self.options, Some(&changed));
        if !problems.is_empty() {
            return Err(Refusal::Config(problems));
        }
        if !self.options.everything_local
            && let Some(unasked) = unasked_places(&configs, &changed, asked)?
        {
            return Ok(Planned::Ask(unasked));
        }
        let mut plan = Plan::default();
        self.plan_runtimes(&mut plan, &given, &mut configs).await?;
        let applied = self.plan_applications(&mut plan, &configs, &estate, &given).await?;
        let mut going = self.going(&applied).await?;
        going.extend(self.plan_deletions(&mut plan, &deletions, &going, caller).await?);
        let basis = basis(&given, &deletions, &going);
        if request.basis.as_ref().is_some_and(|shown| *shown != basis) {
            return Err(Refusal::Conflict(COMPARED_BEFORE.to_owned()));
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
        let found = self.warnings(&configs, &given);
        // What is lost comes last, where it is read before the question.
        let gone = self.warn_of_gone(going).await?;
        let stays = self.warn_of_what_stays(request, &given, &applied, &deletions).await?;
        let warnings =
            found.into_iter().chain(noted.warnings).chain(kept).chain(stays).chain(gone).collect();
        // What was read is planned: it need not be held while thousands of rows are written.
        drop((configs, estate, applied));
        let given = given.into_iter().map(SubmittedDocument::shown);
        let documents = given.chain(deletions.shown()).collect();
        if !request.dry_run && (request.push || !changed.is_empty() || !deletions.is_empty()) {
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

    /// Reads a request, and what is in force that it may change something in.
    async fn requested(&self, request: &ConfigsRequest) -> Result<RequestedConfigs, Refusal> {
        let documents = config::read(&request.files).map_err(|problems| {
            Refusal::Config(problems.iter().map(config::diagnostic::Diagnostic::to_api).collect())
        })?;
        let deletions = self.deletions(request, &documents).await?;
        let mut concerned = self.concerned(&documents).await?;
        deletions.concern(&mut concerned);
        let estate = self.estate(&concerned).await?;
        let deleted = self.store.deleted_documents().await?;
        let given: Vec<SubmittedDocument> = documents
            .into_iter()
            .map(|document| compare(&estate, &deleted, document.into()))
            .collect();
        let mut configs = estate.configs.clone();
        for given in &given {
            configs.put(given.document.clone());
        }
        deletions.take_from(&mut configs, &self.options)?;
        Ok(RequestedConfigs { estate, given, deletions, configs })
    }

    /// What is said of documents that are taken as they are.
    fn warnings(&self, configs: &Configs, given: &[SubmittedDocument]) -> Vec<Diagnostic> {
        let mut found =
            config::shared_by_instances(configs.documents(), self.options.everything_local);
        let new = || given.iter().map(|given| &*given.document);
        found.extend(config::unmasked_secrets(new()));
        found.extend(config::ineffective(new()));
        found.iter().map(config::diagnostic::Diagnostic::to_api_warning).collect()
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

/// The places on clusters that the change names, when not each of them was asked for: whatever was
/// applied since, only what is known of these counts.
///
/// # Errors
/// When one of them is not there.
fn unasked_places(
    configs: &Configs,
    changed: &BTreeSet<compile::DocumentKey>,
    asked: &ClusterAnswers,
) -> Result<Option<Vec<ClusterPlace>>, Refusal> {
    let places = compile::given_places(configs, changed);
    if places.iter().any(|place| !asked.places.contains(place)) {
        return Ok(Some(places));
    }
    let absent: Vec<_> = places.into_iter().filter(|place| asked.absent.contains(place)).collect();
    if absent.is_empty() {
        Ok(None)
    } else {
        Err(Refusal::Config(compile::absent_namespaces(configs, &absent)))
    }
}
