//! What going back needs besides what any release needs: the values and the service's config of
//! then, compiled against the runtimes and the application of now, and what is told when that
//! cannot be. Called by `release`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::event::Event;
use schema::id::{ChannelId, ChannelName, InstanceId, ReleaseId};
use schema::log_kind::LogKind;
use serde_json::json;

use super::super::calls::Plan;
use super::super::going_back::Rollback;
use super::super::{Caller, Refusal};
use super::earlier::EarlierVersions;
use super::had::{before, passed_over, went_back};
use super::recompile::push_of;
use super::release::ReleaseSubject;
use super::snapshot::Concerned;
use super::tried::compile_each;
use super::{Planner, RawSeal, entry};
use crate::compile::{self, Channel, CompiledInstance, Release};
use crate::store::{ReleaseRow, Went};

impl Planner {
    /// What channels had before what they pursue now: the release to go back to, the channels that
    /// go, and what is to be said of the others. Never forward to what somebody has left. Where
    /// none is named these are the ones to which the newest push went: with the others nothing
    /// is wrong that it could have brought.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] when one that is named had nothing, or one that failed, when none had,
    /// when they had different versions, because a release has one, or when one was asked to go
    /// back already and never arrived there.
    pub(super) async fn before(
        &self,
        subject: &ReleaseSubject<'_>,
        named: Option<&BTreeSet<ChannelName>>,
    ) -> Result<(ReleaseRow, BTreeSet<ChannelName>, Vec<String>), Refusal> {
        let pursued: BTreeMap<_, _> =
            self.store.pursued(subject.service.id).await?.into_iter().collect();
        let mut earlier = EarlierVersions::default();
        for (name, id, history) in self.histories(subject, named).await? {
            self.look_back(&mut earlier, subject, (name, id), &history, pursued.get(&id).copied())
                .await?;
        }
        earlier.target(subject, named)
    }

    /// The releases that went to channels: to those that are named, else to those to which the
    /// newest push went.
    async fn histories<'a>(
        &self,
        subject: &'a ReleaseSubject<'_>,
        named: Option<&BTreeSet<ChannelName>>,
    ) -> Result<Vec<(&'a ChannelName, ChannelId, Vec<Went>)>, Refusal> {
        let mut histories = Vec::new();
        for (name, id) in subject
            .channel_ids
            .iter()
            .filter(|(name, _)| named.is_none_or(|named| named.contains(*name)))
        {
            histories.push((name, *id, self.store.went_to(subject.service.id, *id).await?));
        }
        if named.is_none() {
            // One that went back is no order of its own: a release that was taken back in one
            // channel is undone in the others.
            let orders = histories
                .iter()
                .flat_map(|(.., history)| history)
                .filter(|went| went.back_to.is_none());
            let newest = orders.map(|went| went.number).max();
            histories.retain(|(.., history)| {
                newest.is_none() || history.iter().any(|went| Some(went.number) == newest)
            });
        }
        Ok(histories)
    }

    /// Notes what one channel had before `now`, which it pursues, or why there is nothing to go
    /// back to.
    async fn look_back(
        &self,
        earlier: &mut EarlierVersions,
        subject: &ReleaseSubject<'_>,
        (name, id): (&ChannelName, ChannelId),
        history: &[Went],
        now: Option<ReleaseId>,
    ) -> Result<(), Refusal> {
        if let Some(last) = now.and_then(|now| passed_over(history, now)) {
            let to =
                history.iter().find(|went| Some(went.id) == now).map_or("", |went| &went.version);
            earlier.open.push(format!(
                "`{name}` was last converged at {}, and was asked to go back to {to} since, where \
                 it has not arrived",
                last.version
            ));
        }
        let release = match now.and_then(|now| before(history, now)).map(|went| went.id) {
            Some(id) => self.store.release_row(id).await?,
            None => None,
        };
        let Some(release) = release else {
            // Where its state cannot be read it is no worse to say the usual.
            let state =
                self.store.state(InstanceId::of(subject.service.id, id)).await.ok().flatten();
            earlier.lacks(name, state.as_ref());
            return Ok(());
        };
        match now.and_then(|now| went_back(history, now)) {
            Some((back, left)) => {
                // Whoever asks for the same a moment later means what was taken back, and not what
                // is right again.
                earlier.is_back = true;
                earlier.without.push(format!(
                    "`{name}` is back at {} already, from {}",
                    back.version, left.version
                ));
            }
            None => _ = earlier.had.insert(name.clone(), release),
        }
        Ok(())
    }

    /// An earlier release as `release`, in these channels. What it was compiled to then does not
    /// count: gates, windows, commands and places are those of the documents in force; these
    /// channels, all of the application, come with it.
    pub(super) async fn compile_back(
        &self,
        subject: &ReleaseSubject<'_>,
        target: &ReleaseRow,
        release: &Release<'_>,
        wanted: &BTreeSet<ChannelName>,
    ) -> Result<(Vec<Channel>, Vec<CompiledInstance>), Refusal> {
        let (application, service) = (&subject.application.name, &subject.service.name);
        let configs = self.estate(&Concerned::service(application, service)).await?.configs;
        let document = Arc::new(self.released_service(subject, target.service_version).await?);
        let of = configs.application(application);
        let of = of.ok_or_else(|| {
            Refusal::NotFound(format!("application `{application}` has no config"))
        })?;
        // No change of the service's present config can mend what was released.
        let way = format!(
            "{} was released with config version {} of the service; release what fits with {}",
            target.version,
            target.service_version,
            push_of(application, service)
        );
        let what = format!("of {}", target.version);
        let channels = compile::channels(&configs, of).map_err(Refusal::Config)?;
        let had = self.store.converged_at(subject.service.id, &target.version).await?;
        let seal = RawSeal(&self.sealer);
        let compile = |channel: &Channel| match compile::compile_earlier(
            &configs,
            &self.options,
            &document,
            channel,
            release,
            &seal,
            (&what, &way),
        ) {
            Ok(mut instance) => {
                instance.desired.is_rollback = true;
                instance.desired.stable_before =
                    subject.channel_ids.get(&channel.name).is_some_and(|id| had.contains(id));
                (Some(instance), Vec::new())
            }
            Err(problems) => (None, problems),
        };
        let compiled = self.whole(compile_each(&channels, wanted, compile), None).await?;
        Ok((channels, compiled))
    }

    /// Says to whoever looks why an instance does not go back by itself. Returns whether that is
    /// stored.
    pub(super) async fn tell_no_way_back(
        &self,
        rollback: &Rollback,
        caller: &Caller,
        refusal: &Refusal,
    ) -> bool {
        let Rollback { names, from, to, .. } = rollback;
        let (from, to) = (*from, *to);
        let version = match self.store.release_row(to).await {
            Ok(Some(release)) => release.version,
            _ => to.to_string(),
        };
        let ((_, application), (_, service), (_, channel)) =
            (&names.application, &names.service, &names.channel);
        let why = match refusal {
            Refusal::Config(problems) => problems
                .first()
                .map_or_else(|| refusal.to_string(), |problem| problem.message.clone()),
            other => other.to_string(),
        };
        let why = format!(
            "{version} cannot be released as things are now: {why}; mend that and `pvnctl \
             services rollback {service} --app {application} --to {version} --channels \
             {channel}`, or release anew with {}",
            push_of(application, service)
        );
        let message = format!("{} does not go back by itself: {why}", names.label());
        let mut entry = entry(
            LogKind::ReleaseRollbackRefused,
            caller,
            message,
            json!({"release": from, "to": to, "version": version}),
        );
        entry.application = Some(application.clone());
        entry.service = Some(service.clone());
        entry.channel = Some(channel.clone());
        let events = vec![(names.instance(), Event::RollbackRefused { from, why })];
        let plan = Plan {
            entries: vec![entry],
            events,
            rollback: Some(rollback.clone()),
            ..Plan::default()
        };
        match self.commit(plan).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(
                    instance = names.label(), %error,
                    "that the automatic rollback cannot be done is not stored yet"
                );
                false
            }
        }
    }
}
