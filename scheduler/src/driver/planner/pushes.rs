//! `configs apply --push`: a release of every service that is given, from what was just read and
//! planned. Called by `configs`.

use std::collections::{BTreeMap, BTreeSet};

use config::{Body, Service};
use schema::api::{ConfigsRequest, Diagnostic, LeftOut, PushRequest, PushedService};
use schema::id::{ApplicationName, BlobId, ServiceId};

use super::super::calls::Plan;
use super::super::{Caller, Refusal};
use super::Planner;
use super::configs::{ONE_BY_ONE, PlannedApplication, SubmittedDocument};
use super::release::ReleaseBase;
use super::tried::of_release;
use super::warning;
use crate::compile::Configs;
use crate::store::{Change, ReleaseRow, ServiceRow, StoreError};

/// What to do about a warning of a release, which says the rest itself.
const PROBABLY: &str = "the release is made; where this is not meant, push again";

/// What is to be said beside the releases.
#[derive(Default)]
pub(super) struct PushNotes {
    /// Services of which none was made.
    pub(super) left_out: Vec<LeftOut>,
    /// What is allowed and probably not meant.
    pub(super) warnings: Vec<Diagnostic>,
}

impl Planner {
    /// One plan for each release, in the order of the documents. A service whose newest release
    /// cannot be read is left out.
    ///
    /// # Errors
    /// [`Refusal::Config`] with what is wrong with all of them.
    pub(super) async fn plan_pushes(
        &mut self,
        configs: &Configs,
        given: &[SubmittedDocument],
        applied: &BTreeMap<ApplicationName, PlannedApplication>,
        request: &ConfigsRequest,
        caller: &Caller,
        noted: &mut PushNotes,
    ) -> Result<Vec<(PushedService, Plan)>, Refusal> {
        let services: Vec<_> = given
            .iter()
            .filter_map(|given| match given.document.body() {
                Body::Service(service) => Some(service.as_ref()),
                _ => None,
            })
            .collect();
        let known = |name: &String| {
            services
                .iter()
                .any(|service| service.parameters.iter().any(|parameter| parameter.name == *name))
        };
        let unknown = request.params.keys().filter(|name| !known(name));
        let no_such =
            |name: &String| format!("no service in the given files has a parameter `{name}`");
        let mut problems: Vec<_> =
            unknown.map(|name| of_release(format!("params.{name}"), no_such(name), None)).collect();
        let mut newest = self.newest_releases(&services, applied).await?;
        let mut compiled = BTreeSet::new();
        let mut pushed = Vec::new();
        for service in services {
            let Some(applied) = applied.get(&service.application) else { continue };
            let Some(subject) = applied.subject(&service.name) else { continue };
            let own = |name: &&String| {
                service.parameters.iter().any(|parameter| parameter.name == **name)
            };
            let params = request
                .params
                .keys()
                .filter(own)
                .filter_map(|name| Some((name.clone(), request.params.get(name)?.clone())))
                .collect();
            let one = PushRequest { params, ..PushRequest::default() };
            let newest = match newest.remove(&subject.service.id).transpose() {
                Ok(newest) => newest,
                Err(why) => {
                    noted.left_out.push(subject.left_out(&format!(
                        "no release was made of it: its newest one cannot be read: {why}"
                    )));
                    continue;
                }
            };
            let from = ReleaseBase { channels: &applied.channels, newest, among_others: true };
            let mut plan = Plan::default();
            let release = match self
                .plan_push(&mut plan, configs, service, &subject, &one, from, caller)
                .await
            {
                Err(Refusal::Config(found)) => {
                    problems.extend(found);
                    continue;
                }
                release => release?,
            };
            let place = format!("{}/{}", service.application, service.name);
            noted.warnings.extend(release.warnings.into_iter().map(|told| {
                warning(place.clone(), format!("{place}: {told}"), PROBABLY.to_owned())
            }));
            // Services of one runtime often have the same commands: once is enough, in the first
            // commit that needs them.
            keep_new(&mut plan, &mut compiled);
            let pushed_service = PushedService {
                application: service.application.clone(),
                service: service.name.clone(),
                release: release.release,
                version: release.version,
            };
            pushed.push((pushed_service, plan));
        }
        if problems.is_empty() { Ok(pushed) } else { Err(Refusal::Config(problems)) }
    }

    /// The newest release of each of these services that has one, or why it cannot be read.
    async fn newest_releases(
        &self,
        services: &[&Service],
        applied: &BTreeMap<ApplicationName, PlannedApplication>,
    ) -> Result<BTreeMap<ServiceId, Result<ReleaseRow, String>>, Refusal> {
        let mut newest = BTreeMap::new();
        for (name, applied) in applied {
            let of_this = services.iter().filter(|service| service.application == *name);
            let released: Vec<&ServiceRow> = of_this
                .filter_map(|service| applied.services.get(&service.name))
                .filter(|row| row.release_count > 0)
                .collect();
            if released.len() > ONE_BY_ONE {
                newest.extend(
                    self.store
                        .newest_releases(applied.row.id)
                        .await?
                        .into_iter()
                        .map(|release| (release.service, Ok(release))),
                );
            }
            for row in
                released.into_iter().filter(|row| !newest.contains_key(&row.id)).collect::<Vec<_>>()
            {
                match self.store.newest_release(row.id).await {
                    Ok(release) => newest.extend(release.map(|release| (row.id, Ok(release)))),
                    Err(StoreError::Corrupt(why)) => drop(newest.insert(row.id, Err(why))),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(newest)
    }
}

/// Takes out of a plan the commands that others have compiled already, and the room that its lists
/// have and do not use.
fn keep_new(plan: &mut Plan, compiled: &mut BTreeSet<BlobId>) {
    plan.changes.retain(|change| match change {
        Change::Compiled(digest, _) => compiled.insert(*digest),
        _ => true,
    });
    plan.shrink();
}
