//! Going back to an earlier version, asked for by a person or by itself.

use std::collections::BTreeSet;

use schema::api::{Pushed, RollbackRequest};
use schema::id::{ChannelName, ReleaseId};
use schema::log_kind::LogKind;
use serde_json::json;

use super::super::super::calls::Plan;
use super::super::super::going_back::Rollback;
use super::super::super::{Caller, Refusal};
use super::super::gates::PartialRelease;
use super::super::kept::leaves_config;
use super::super::{Planner, entry};
use super::{ENGINE, ReleaseSubject, add_instance, channel_named, no_channel, of_service};
use crate::clock;
use crate::compile::Release;
use crate::store::{Change, ReleaseRow, ServiceRow};

impl Planner {
    pub(in crate::driver::planner) async fn rollback(
        &mut self,
        application: &str,
        service: &str,
        request: &RollbackRequest,
        caller: &Caller,
    ) -> Result<Pushed, Refusal> {
        let (application, service) = self.find(application, service).await?;
        let ids = self.live_channels(&application).await?;
        let subject =
            ReleaseSubject { application: &application, service: &service, channel_ids: &ids };
        let channels = match request.channels.as_deref() {
            None => None,
            Some([]) => return Err(no_channel()),
            Some(named) => {
                let named: Result<BTreeSet<ChannelName>, Refusal> =
                    named.iter().map(|text| channel_named(&subject, text)).collect();
                Some(named?)
            }
        };
        caller.reaches(&application.name, channels.iter().flatten())?;
        let Some(version) = &request.version else {
            let (target, channels, warnings) = self.before(&subject, channels.as_ref()).await?;
            let mut pushed = self.go_back(&subject, &target, Some(&channels), caller, None).await?;
            pushed.warnings.extend(warnings);
            return Ok(pushed);
        };
        let target =
            self.store.release_of_version(service.id, version).await?.ok_or_else(|| {
                let label = format!("{}/{}", application.name, service.name);
                Refusal::NotFound(format!(
                    "{label} has no version `{version}`; `pvnctl releases list` shows those that \
                     it has"
                ))
            })?;
        self.go_back(&subject, &target, channels.as_ref(), caller, None).await
    }

    /// What the engine asks for. When it cannot be done, the instance stays FAILED and says why.
    /// Returns whether what came of it is stored.
    pub(in crate::driver::planner) async fn auto_rollback(&mut self, rollback: &Rollback) -> bool {
        let caller = Caller::unlimited(ENGINE, "local");
        let refused = match self.try_auto_rollback(rollback, &caller).await {
            Ok(()) => return true,
            Err(refused) => refused,
        };
        let Rollback { names, from, to, .. } = rollback;
        // It passes, and is no word about the release.
        if let Refusal::Unavailable(why) = &refused {
            tracing::warn!(
                instance = names.label(), %from, %to, why,
                "the automatic rollback cannot be done yet; it is tried again"
            );
            return false;
        }
        tracing::warn!(
            instance = names.label(), %from, %to, why = %refused,
            "the automatic rollback cannot be done"
        );
        self.tell_no_way_back(rollback, &caller, &refused).await
    }

    async fn try_auto_rollback(
        &mut self,
        rollback: &Rollback,
        caller: &Caller,
    ) -> Result<(), Refusal> {
        let Rollback { names, to, .. } = rollback;
        let (application, service) =
            self.find(names.application.1.as_str(), names.service.1.as_str()).await?;
        let target = self
            .store
            .release_row(*to)
            .await?
            .ok_or_else(|| Refusal::NotFound(format!("release {to} does not exist")))?;
        let ids = self.live_channels(&application).await?;
        let subject =
            ReleaseSubject { application: &application, service: &service, channel_ids: &ids };
        self.go_back(
            &subject,
            &target,
            Some(&BTreeSet::from([names.channel.1.clone()])),
            caller,
            Some(rollback),
        )
        .await
        .map(drop)
    }

    async fn go_back(
        &mut self,
        subject: &ReleaseSubject<'_>,
        target: &ReleaseRow,
        channels: Option<&BTreeSet<ChannelName>>,
        caller: &Caller,
        automatic: Option<&Rollback>,
    ) -> Result<Pushed, Refusal> {
        let label = format!("{}/{}", subject.application.name, subject.service.name);
        // Also one that went back to it, which may have been for a single channel.
        let had = self.store.channels_of_version(subject.service.id, &target.version).await?;
        let mut wanted: BTreeSet<ChannelName> = subject
            .channel_ids
            .iter()
            .filter(|(_, id)| had.contains(id))
            .map(|(name, _)| name.clone())
            .collect();
        if let Some(missing) = channels.into_iter().flatten().find(|name| !wanted.contains(*name)) {
            return Err(Refusal::Conflict(format!(
                "version {} of {label} was never released to {missing}; push it there instead",
                target.version
            )));
        }
        wanted.retain(|name| channels.is_none_or(|named| named.contains(name)));
        if wanted.is_empty() {
            return Err(Refusal::Conflict(format!(
                "version {} of {label} was released to no channel that is still there",
                target.version
            )));
        }
        caller.reaches(&subject.application.name, &wanted)?;
        let is_for_all = channels.is_none();
        let id = ReleaseId::from_bytes(clock::random());
        let number = subject.service.release_count.max(self.releases_above) + 1;
        let now = self.now();
        let version = target.version.as_str();
        let release = Release { id, version, released_at: now, values: &target.params };
        let (channels, compiled) = self.compile_back(subject, target, &release, &wanted).await?;
        let as_it_is = self.as_it_is(subject).await;
        let partial = PartialRelease {
            subject,
            channels: &channels,
            compiled: &compiled,
            back_to: Some(version),
            now: as_it_is.as_ref(),
        };
        // What cannot be read of other channels keeps nobody from going back.
        let mut warnings =
            as_it_is.as_ref().map_or_else(Vec::new, |_| partial.waits_for_others(version));
        if is_for_all {
            warnings.extend(partial.never_had(version));
        }
        warnings.extend(leaves_config(subject, target));
        self.release_seq += 1;
        let mut plan = Plan { rollback: automatic.cloned(), ..Plan::default() };
        plan.changes
            .push(Change::Service(ServiceRow { release_count: number, ..subject.service.clone() }));
        plan.changes.push(Change::Release(Box::new(ReleaseRow {
            id,
            seq: self.release_seq,
            number,
            created_at: now,
            created_by: caller.who.clone(),
            rolled_back_to: Some(target.id),
            ..target.clone()
        })));
        for instance in compiled {
            add_instance(&mut plan, subject, id, instance);
        }
        let message = format!("{} takes {label} back to {}", caller.who, target.version);
        let data = json!({"release": id, "version": target.version, "to": target.id});
        plan.entries
            .push(of_service(subject, entry(LogKind::ReleaseRolledBack, caller, message, data)));
        self.commit(plan).await?;
        let version = target.version.clone();
        Ok(Pushed { release: id, version, warnings, preview: Vec::new() })
    }
}
