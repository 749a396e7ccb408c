//! What a change of a runtime or an application means for what is released: it is compiled again. Called by `configs`.

use std::collections::BTreeMap;

use engine::event::Event;
use schema::api::LeftOut;
use schema::config::{Body, Document};
use schema::id::{ApplicationName, ChannelId, InstanceId, ReleaseId};

use super::super::Refusal;
use super::super::calls::Plan;
use super::configs::{Applied, Given};
use super::release::Subject;
use super::{Planner, RawSeal};
use crate::compile::{self, Channel, Configs, Release};
use crate::store::{Change, DocumentKey, DocumentKind, ReleaseChannelRow};

impl Planner {
    /// A change of a runtime or an application makes no new version: what is released is compiled again, with the service's
    /// config as it was released, and the instances where that means something fetch again. What cannot be read is left out.
    pub(super) async fn plan_recompiles(
        &self,
        plan: &mut Plan,
        configs: &Configs,
        given: &[Given],
        applied: &BTreeMap<ApplicationName, Applied>,
    ) -> Result<Vec<LeftOut>, Refusal> {
        let changed = |wanted: &dyn Fn(&Body) -> bool| given.iter().any(|given| given.change == "changed" && wanted(given.document.body()));
        let runtime_changed = changed(&|body| matches!(body, Body::Runtime(_)));
        let (mut problems, mut left_out) = (Vec::new(), Vec::new());
        for (name, applied) in applied {
            if !runtime_changed && !changed(&|body| matches!(body, Body::Application(application) if application.name == *name)) {
                continue;
            }
            for service in applied.services.keys() {
                let Some(subject) = applied.subject(service) else { continue };
                let done = self.recompile(plan, configs, &subject, &applied.channels, &mut problems).await?;
                left_out.extend(done.into_iter().map(|why| {
                    subject.left_out(&format!("the change is not in force for what is released of it, which cannot be read: {why}"))
                }));
            }
        }
        if problems.is_empty() { Ok(left_out) } else { Err(Refusal::Config(problems)) }
    }

    /// Compiles every release again that an instance of a service pursues. Returns of which rows it cannot be done.
    async fn recompile(
        &self,
        plan: &mut Plan,
        configs: &Configs,
        subject: &Subject<'_>,
        channels: &[Channel],
        problems: &mut Vec<schema::api::Diagnostic>,
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
            let of: Vec<&Channel> =
                channels.iter().filter(|channel| subject.channel_ids.get(&channel.name).is_some_and(|id| of.contains(id))).collect();
            match self.recompile_release(plan, configs, subject, id, &of, problems).await {
                Err(Refusal::Unreadable(why)) => unreadable.push(why),
                done => done?,
            }
        }
        Ok(unreadable)
    }

    async fn recompile_release(
        &self,
        plan: &mut Plan,
        configs: &Configs,
        subject: &Subject<'_>,
        id: ReleaseId,
        channels: &[&Channel],
        problems: &mut Vec<schema::api::Diagnostic>,
    ) -> Result<(), Refusal> {
        let Some(release) = self.store.release_row(id).await? else { return Ok(()) };
        let document = self.released_service(subject, release.service_version).await?;
        let Body::Service(service) = document.body() else { return Ok(()) };
        let stored = self.store.release_channels(id).await?;
        let seal = RawSeal(&self.sealer);
        let made = Release { id, version: &release.version, released_at: release.created_at, values: &release.params };
        for channel in channels {
            let Some((_, row)) = stored.iter().find(|(name, _)| *name == channel.name) else { continue };
            match compile::compile(configs, &self.options, service, channel, &made, &seal) {
                Ok(instance) => {
                    let mut desired = instance.desired;
                    // A rollback counts its deadline from when it was made, as its own row says, and where it was before, too.
                    desired.released_at = row.desired.released_at;
                    desired.stable_before = row.desired.stable_before;
                    if desired != row.desired {
                        let instance_id = InstanceId::of(subject.service.id, row.channel);
                        plan.changes.push(Change::Compiled(desired.compiled, Box::new(instance.commands)));
                        plan.changes.push(Change::ReleaseChannel(Box::new(ReleaseChannelRow {
                            compiled: desired.compiled,
                            desired: desired.clone(),
                            ..row.clone()
                        })));
                        plan.events.push((instance_id, Event::Desired(Box::new(desired))));
                    }
                }
                Err(found) => {
                    let new: Vec<_> = found.into_iter().filter(|problem| !problems.contains(problem)).collect();
                    problems.extend(new);
                }
            }
        }
        Ok(())
    }

    /// A service's document as it was when a release was made.
    pub(super) async fn released_service(&self, subject: &Subject<'_>, version: u64) -> Result<Document, Refusal> {
        let key = DocumentKey {
            kind: DocumentKind::Service,
            application: subject.application.name.to_string(),
            name: subject.service.name.to_string(),
        };
        let stored = self.store.document_version(&key, version).await?;
        let stored = stored.ok_or_else(|| {
            Refusal::Conflict(format!("config version {version} of service `{}/{}` is not in the database", key.application, key.name))
        })?;
        super::estate::read(&stored)
    }
}
