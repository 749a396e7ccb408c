//! What going back needs besides what any release needs: the values and the service's config of then, compiled against the runtimes
//! and the application of now, and what is told when that cannot be. Called by `release`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::State;
use engine::event::Event;
use schema::id::{ChannelName, InstanceId};
use schema::status::Status;
use serde_json::json;

use super::super::calls::Plan;
use super::super::going_back::Rollback;
use super::super::{Caller, Refusal};
use super::had::{before, passed_over, went_back};
use super::recompile::push_of;
use super::release::ReleaseSubject;
use super::snapshot::Concerned;
use super::tried::compile_each;
use super::{Planner, RawSeal, entry};
use crate::compile::{self, Channel, CompiledInstance, Release};
use crate::store::ReleaseRow;

impl Planner {
    /// What channels had before what they pursue now: the release to go back to, the channels that go, and what is to be said of the
    /// others. Never forward to what somebody has left. Where none is named these are the ones to which the newest push went: with the
    /// others nothing is wrong that it could have brought.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] when one that is named had nothing, or one that failed, when none had, when they had different versions,
    /// because a release has one, or when one was asked to go back already and never arrived there.
    pub(super) async fn before(
        &self,
        subject: &ReleaseSubject<'_>,
        named: Option<&BTreeSet<ChannelName>>,
    ) -> Result<(ReleaseRow, BTreeSet<ChannelName>, Vec<String>), Refusal> {
        let (application, service) = (&subject.application.name, &subject.service.name);
        let command = format!("pvnctl services rollback {service} --app {application}");
        let only = named.map_or_else(String::new, |named| {
            let names: Vec<&str> = named.iter().map(ChannelName::as_str).collect();
            format!(" --channels {}", names.join(","))
        });
        let (mut had, mut without, mut failed, mut open) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        let mut is_back = false;
        let pursued: BTreeMap<_, _> = self.store.pursued(subject.service.id).await?.into_iter().collect();
        let mut histories = Vec::new();
        for (name, id) in subject.channel_ids.iter().filter(|(name, _)| named.is_none_or(|named| named.contains(*name))) {
            let history = self.store.went_to(subject.service.id, *id).await?;
            histories.push((name, id, history));
        }
        if named.is_none() {
            // One that went back is no order of its own: a release that was taken back in one channel is undone in the others.
            let orders = histories.iter().flat_map(|(.., history)| history).filter(|went| went.back_to.is_none());
            let newest = orders.map(|went| went.number).max();
            histories.retain(|(.., history)| newest.is_none() || history.iter().any(|went| Some(went.number) == newest));
        }
        for (name, id, history) in histories {
            let now = pursued.get(id).copied();
            if let Some(last) = now.and_then(|now| passed_over(&history, now)) {
                let to = history.iter().find(|went| Some(went.id) == now).map_or("", |went| &went.version);
                open.push(format!(
                    "`{name}` was last converged at {}, and was asked to go back to {to} since, where it has not arrived",
                    last.version
                ));
            }
            let earlier = match now.and_then(|now| before(&history, now)).map(|went| went.id) {
                Some(id) => self.store.release_row(id).await?,
                None => None,
            };
            let back = now.and_then(|now| went_back(&history, now)).filter(|_| earlier.is_some());
            if let Some((back, left)) = back {
                // Whoever asks for the same a moment later means what was taken back, and not what is right again.
                is_back = true;
                without.push(format!("`{name}` is back at {} already, from {}", back.version, left.version));
                continue;
            }
            match earlier {
                Some(release) => _ = had.insert(name.clone(), release),
                None => {
                    // Where its state cannot be read it is no worse to say the usual.
                    let state = self.store.state(InstanceId::of(subject.service.id, *id)).await.ok().flatten();
                    let usual = "was never converged at an earlier version than what it pursues";
                    if state.as_ref().is_some_and(|state| state.standing().status == Status::Failed) {
                        failed.push(format!("`{name}` is FAILED and {usual}"));
                    }
                    without.push(match state.as_ref().filter(|state| state.is_deleted()).and_then(State::had) {
                        Some(had) => format!("`{name}` is DELETED and had {had}"),
                        None => format!("`{name}` {usual}"),
                    });
                }
            }
        }
        if !open.is_empty() {
            return Err(Refusal::Conflict(format!(
                "{}: name the version that is meant, with `{command} --to VERSION{only}`",
                open.join("; ")
            )));
        }
        if named.is_none() && !failed.is_empty() && !had.is_empty() {
            // Nobody who wants to be rid of what failed means the others alone.
            let (quoted, names): (Vec<_>, Vec<_>) = had.keys().map(|name| (format!("`{name}`"), name.as_str())).unzip();
            return Err(Refusal::Conflict(format!(
                "{}; {} can go back, with `{command} --channels {}`, or name a version with `{command} --to VERSION --channels CHANNEL`",
                failed.join("; "),
                quoted.join(", "),
                names.join(",")
            )));
        }
        let mut targets = had.values();
        let Some(target) = targets.next().filter(|_| named.is_none() || without.is_empty()) else {
            let why = if without.is_empty() { "it has no channel".to_owned() } else { without.join("; ") };
            if is_back {
                return Err(Refusal::Conflict(format!("{why}; to go further back name the version, with `{command} --to VERSION{only}`")));
            }
            return Err(Refusal::Conflict(format!(
                "there is no version to take {application}/{service} back to: {why}; name a version with `{command} --to VERSION{only}`"
            )));
        };
        if targets.any(|other| other.version != target.version) {
            let each: Vec<String> = had.iter().map(|(channel, release)| format!("`{channel}` {}", release.version)).collect();
            return Err(Refusal::Conflict(format!(
                "the channels of {application}/{service} had different versions before: {}; take each back by itself, with `{command} \
                 --channels CHANNEL`, or name the version for all with `--to VERSION{only}`",
                each.join(", ")
            )));
        }
        let warnings = without.into_iter().map(|why| format!("not taken back: {why}")).collect();
        Ok((target.clone(), had.into_keys().collect(), warnings))
    }

    /// An earlier release as `release`, in these channels. What it was compiled to then does not count: gates, windows, commands and
    /// places are those of the documents in force.
    pub(super) async fn compile_back(
        &self,
        subject: &ReleaseSubject<'_>,
        target: &ReleaseRow,
        release: &Release<'_>,
        wanted: &BTreeSet<ChannelName>,
    ) -> Result<Vec<CompiledInstance>, Refusal> {
        let (application, service) = (&subject.application.name, &subject.service.name);
        let configs = self.estate(&Concerned::service(application, service)).await?.configs;
        let document = Arc::new(self.released_service(subject, target.service_version).await?);
        let of = configs.application(application);
        let of = of.ok_or_else(|| Refusal::NotFound(format!("application `{application}` has no config")))?;
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
                instance.desired.stable_before = subject.channel_ids.get(&channel.name).is_some_and(|id| had.contains(id));
                (Some(instance), Vec::new())
            }
            Err(problems) => (None, problems),
        };
        self.whole(compile_each(&channels, wanted, compile), None).await
    }

    /// Says to whoever looks why an instance does not go back by itself. Returns whether that is stored.
    pub(super) async fn tell_no_way_back(&self, rollback: &Rollback, caller: &Caller, refusal: &Refusal) -> bool {
        let Rollback { names, from, to, .. } = rollback;
        let (from, to) = (*from, *to);
        let version = match self.store.release_row(to).await {
            Ok(Some(release)) => release.version,
            _ => to.to_string(),
        };
        let ((_, application), (_, service), (_, channel)) = (&names.application, &names.service, &names.channel);
        let why = match refusal {
            Refusal::Config(problems) => problems.first().map_or_else(|| refusal.to_string(), |problem| problem.message.clone()),
            other => other.to_string(),
        };
        let why = format!(
            "{version} cannot be released as things are now: {why}; mend that and \
             `pvnctl services rollback {service} --app {application} --to {version} --channels {channel}`, or release anew with {}",
            push_of(application, service)
        );
        let message = format!("{} does not go back by itself: {why}", names.label());
        let mut entry = entry("release.rollback_refused", caller, message, json!({"release": from, "to": to, "version": version}));
        entry.application = Some(application.clone());
        entry.service = Some(service.clone());
        entry.channel = Some(channel.clone());
        let events = vec![(names.instance(), Event::RollbackRefused { from, why })];
        let plan = Plan { entries: vec![entry], events, rollback: Some(rollback.clone()), ..Plan::default() };
        match self.commit(plan).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(instance = names.label(), %error, "that the automatic rollback cannot be done is not stored yet");
                false
            }
        }
    }

    /// The versions that the channels of a service pursue.
    pub(super) async fn pursued_versions(&self, subject: &ReleaseSubject<'_>) -> Result<BTreeMap<ChannelName, String>, Refusal> {
        let mut versions = BTreeMap::new();
        for (channel, release) in self.store.pursued(subject.service.id).await? {
            let Some((name, _)) = subject.channel_ids.iter().find(|(_, id)| **id == channel) else { continue };
            if let Some(release) = self.store.release_row(release).await? {
                versions.insert(name.clone(), release.version);
            }
        }
        Ok(versions)
    }
}
