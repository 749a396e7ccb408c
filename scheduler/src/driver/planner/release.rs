//! Releases: push makes one from parameter values, rollback from an earlier one. Both end as one
//! plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config::Service;
use engine::event::Event;
use schema::api::{LeftOut, PushRequest, Pushed};
use schema::id::{ApplicationName, ChannelId, ChannelName, ReleaseId};
use schema::log_kind::LogKind;
use schema::status::Status;
use serde_json::json;

use super::super::calls::Plan;
use super::super::together::together;
use super::super::{Caller, Refusal};
use super::gates::PartialRelease;
use super::kept::come_apart;
use super::preview::PreviewBase;
use super::snapshot::Concerned;
use super::tried::compile_each;
use super::{Planner, RawSeal, entry};
use crate::clock;
use crate::compile::{self, Channel, CompiledInstance, Configs, Earlier, Release, upstream};
use crate::names::InstanceNames;
use crate::store::{
    ApplicationRow, Change, DocumentKind, ReleaseChannelRow, ReleaseRow, ServiceRow,
    StoredDocumentKey,
};

mod rollback;

/// Who a rollback of the engine's is done by, in the log.
const ENGINE: &str = "pvn";

/// What a release is made from besides the document and the values that are given.
pub(super) struct ReleaseBase<'a> {
    /// The application's channels.
    pub(super) channels: &'a [Channel],
    /// The service's newest release, whose values are kept where none are given (see `kept`).
    pub(super) newest: Option<ReleaseRow>,
    /// Whether other services are released with it, so that a problem has to say whose it is.
    pub(super) among_others: bool,
}

/// Everything about a service that a release of it needs.
pub(super) struct ReleaseSubject<'a> {
    pub(super) application: &'a ApplicationRow,
    pub(super) service: &'a ServiceRow,
    pub(super) channel_ids: &'a BTreeMap<ChannelName, ChannelId>,
}

impl ReleaseSubject<'_> {
    /// What names the service's document.
    pub(super) fn document(&self) -> StoredDocumentKey {
        StoredDocumentKey {
            kind: DocumentKind::Service,
            application: self.application.name.to_string(),
            name: self.service.name.to_string(),
        }
    }

    /// That something is not done for this service, and why.
    pub(super) fn left_out(&self, why: &str) -> LeftOut {
        LeftOut {
            application: self.application.name.clone(),
            service: self.service.name.clone(),
            why: why.to_owned(),
        }
    }

    pub(super) fn names(&self, channel: &ChannelName) -> Option<Arc<InstanceNames>> {
        let id = *self.channel_ids.get(channel)?;
        Some(Arc::new(InstanceNames {
            application: (self.application.id, self.application.name.clone()),
            service: (self.service.id, self.service.name.clone()),
            channel: (id, channel.clone()),
        }))
    }
}

impl Planner {
    pub(super) async fn push(
        &mut self,
        application: &str,
        service: &str,
        request: &PushRequest,
        caller: &Caller,
    ) -> Result<Pushed, Refusal> {
        let (application, service) = self.find(application, service).await?;
        let estate = self.estate(&Concerned::service(&application.name, &service.name)).await?;
        let ids = self.live_channels(&application).await?;
        let document = estate
            .configs
            .service(&application.name, &service.name)
            .ok_or_else(|| no_document(&application.name, &service))?;
        let subject =
            ReleaseSubject { application: &application, service: &service, channel_ids: &ids };
        let of = estate.configs.application(&application.name);
        let of = of.ok_or_else(|| {
            Refusal::NotFound(format!("application `{}` has no config", application.name))
        })?;
        let channels = compile::channels(&estate.configs, of).map_err(Refusal::Config)?;
        let newest = self.store.newest_release(service.id).await?;
        let newest_version = newest.as_ref().map(|newest| newest.version.clone());
        let from = ReleaseBase { channels: &channels, newest, among_others: false };
        let mut plan = Plan::default();
        let mut pushed = self
            .plan_push(&mut plan, &estate.configs, document, &subject, request, from, caller)
            .await?;
        if request.dry_run {
            let made_from = PreviewBase {
                configs: &estate.configs,
                document,
                channels: &channels,
                request,
                newest: newest_version.as_deref(),
            };
            pushed.preview = self.preview(&plan, &subject, &made_from).await?;
        } else {
            self.commit(plan).await?;
        }
        Ok(pushed)
    }

    /// Adds a release of one service to a plan.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a release is made of has no name of its own"
    )]
    pub(super) async fn plan_push(
        &mut self,
        plan: &mut Plan,
        configs: &Configs,
        document: &Service,
        subject: &ReleaseSubject<'_>,
        request: &PushRequest,
        from: ReleaseBase<'_>,
        caller: &Caller,
    ) -> Result<Pushed, Refusal> {
        let ReleaseBase { channels, newest, among_others } = from;
        let wanted = reached(wanted(channels, subject, request)?, subject, request, caller)?;
        let seal = RawSeal(&self.sealer);
        let earlier = match &newest {
            Some(newest) => Some(self.values_kept(subject, newest).await?),
            None => None,
        };
        let kept = earlier.as_ref().map(|values| Earlier { values, goes_to: &wanted });
        let (values, mut wrong_values) =
            compile::values(configs, document, channels, request, kept, &seal);
        let number = subject.service.release_count.max(self.releases_above) + 1;
        // What is wrong is told all together; a name that a wrong value would have made is no news.
        let named = if wrong_values.is_empty() {
            compile::bundle_name(configs, document, &values)
        } else {
            Ok(None)
        };
        let named = named.unwrap_or_else(|problems| {
            wrong_values = problems;
            None
        });
        let version = self.free_version(subject.service, named, number).await?;
        let id = ReleaseId::from_bytes(clock::random());
        let released_at = self.now();
        let release = Release { id, version: &version, released_at, values: &values };
        let compile = |channel: &Channel| {
            compile::compile(configs, &self.options, document, channel, &release, &seal)
        };
        let tried = compile_each(channels, &wanted, compile).with_values(wrong_values);
        let of =
            among_others.then(|| format!("{}/{}", subject.application.name, subject.service.name));
        let compiled = self.whole(tried, of.as_deref()).await?;
        self.release_seq += 1;
        let row = ReleaseRow {
            id,
            service: subject.service.id,
            seq: self.release_seq,
            number,
            version: version.clone(),
            params: values.clone(),
            service_version: subject.service.config_version,
            created_at: released_at,
            created_by: caller.who.clone(),
            rolled_back_to: None,
        };
        plan.changes
            .push(Change::Service(ServiceRow { release_count: number, ..subject.service.clone() }));
        plan.changes.push(Change::Release(Box::new(row)));
        // Most go to all channels, where nothing of this is to be said: with thousands of services
        // the looks at them would take longer than the rest.
        let goes_to_all = channels.iter().all(|channel| wanted.contains(&channel.name));
        let now = if goes_to_all { None } else { self.as_it_is(subject).await };
        let partial = PartialRelease {
            subject,
            channels,
            compiled: &compiled,
            back_to: None,
            now: now.as_ref(),
        };
        let mut warnings = partial.waits_for_others(&version);
        warnings.extend(partial.left_behind());
        warnings.extend(come_apart(&values, &compiled));
        if let Some(newest) = &newest {
            warnings.extend(self.brings_config_again(subject, newest, &version).await);
        }
        warnings.extend(compile::value_warnings(document, request, &wanted, earlier.as_ref()));
        for instance in compiled {
            add_instance(plan, subject, id, instance);
        }
        plan.entries.push(released(subject, caller, id, &version));
        Ok(Pushed { release: id, version, warnings, preview: Vec::new() })
    }

    /// How the service is; `None` where that cannot be read.
    async fn as_it_is(&self, subject: &ReleaseSubject<'_>) -> Option<schema::api::Service> {
        self.store
            .service(subject.application.name.as_str(), subject.service.name.as_str())
            .await
            .ok()
            .flatten()
    }

    /// The application and service of these names or ids.
    pub(super) async fn find(
        &self,
        application: &str,
        service: &str,
    ) -> Result<(ApplicationRow, ServiceRow), Refusal> {
        let Some(application) = self.store.find_application(application).await? else {
            return Err(Refusal::NotFound(format!(
                "application `{application}` does not exist; `pvnctl applications list` shows \
                 those that do"
            )));
        };
        match self.store.find_service(application.id, service).await? {
            Some(service) => Ok((application, service)),
            None => Err(Refusal::NotFound(format!(
                "application `{0}` has no service `{service}`; `pvnctl services list --app {0}` \
                 shows those that it has",
                application.name
            ))),
        }
    }

    /// The channels that an application has now.
    pub(super) async fn live_channels(
        &self,
        application: &ApplicationRow,
    ) -> Result<BTreeMap<ChannelName, ChannelId>, Refusal> {
        let channels = self.store.channels(application.id).await?;
        Ok(channels
            .into_iter()
            .filter(|channel| channel.deleted_at.is_none())
            .map(|channel| (channel.name, channel.id))
            .collect())
    }

    /// `<service>-<n>`, or the name that the config gives, with a number appended where it is
    /// taken.
    async fn free_version(
        &self,
        service: &ServiceRow,
        named: Option<String>,
        number: u64,
    ) -> Result<String, Refusal> {
        let base = named.unwrap_or_else(|| format!("{}-{number}", service.name));
        let mut version = base.clone();
        let mut suffix = 1;
        // Ends: each turn meets another of the finitely many versions that are there.
        while service.release_count > 0 && self.store.version_exists(service.id, &version).await? {
            suffix += 1;
            version = format!("{base}-{suffix}");
        }
        Ok(version)
    }
}

/// Adds what a release means for one channel.
pub(super) fn add_instance(
    plan: &mut Plan,
    subject: &ReleaseSubject<'_>,
    release: ReleaseId,
    instance: CompiledInstance,
) {
    let CompiledInstance { channel, runtime, desired, commands, .. } = instance;
    let Some(names) = subject.names(&channel) else { return };
    plan.changes.push(Change::Compiled(desired.compiled, Box::new(commands)));
    plan.changes.push(Change::ReleaseChannel(Box::new(ReleaseChannelRow {
        release,
        channel: names.channel.0,
        status: Status::Converging,
        compiled: desired.compiled,
        desired: desired.clone(),
        converged_at: None,
        refused: false,
    })));
    plan.events.push((names.instance(), Event::Desired(Box::new(desired))));
    plan.instances.push((names, runtime));
}

pub(super) fn of_service(
    subject: &ReleaseSubject<'_>,
    mut entry: schema::api::LogEntry,
) -> schema::api::LogEntry {
    entry.application = Some(subject.application.name.clone());
    entry.service = Some(subject.service.name.clone());
    entry
}

fn released(
    subject: &ReleaseSubject<'_>,
    caller: &Caller,
    id: ReleaseId,
    version: &str,
) -> schema::api::LogEntry {
    let message = format!(
        "{} releases {}/{} {version}",
        caller.who, subject.application.name, subject.service.name
    );
    let data = json!({"release": id, "version": version});
    of_service(subject, entry(LogKind::ReleaseCreated, caller, message, data))
}

fn no_document(application: &ApplicationName, service: &ServiceRow) -> Refusal {
    Refusal::NotFound(format!(
        "service `{application}/{}` has no config; apply it with `pvnctl configs apply`",
        service.name
    ))
}

/// The channel of this name or id.
fn channel_named(subject: &ReleaseSubject<'_>, text: &str) -> Result<ChannelName, Refusal> {
    let found = subject
        .channel_ids
        .iter()
        .find(|(name, id)| name.as_str() == text || id.to_string() == text);
    found.map(|(name, _)| name.clone()).ok_or_else(|| {
        let names: Vec<&str> = subject.channel_ids.keys().map(ChannelName::as_str).collect();
        Refusal::NotFound(format!(
            "application `{}` has no release channel `{text}`; it has {}",
            subject.application.name,
            names.join(", ")
        ))
    })
}

fn no_channel() -> Refusal {
    Refusal::Invalid(
        "a release needs at least one channel; leave `channels` out to mean all".to_owned(),
    )
}

/// The same channels, where all that a push changes is within the caller's limits: where it goes,
/// and the channels that it gives values of their own, which the next release there has too.
fn reached(
    wanted: BTreeSet<ChannelName>,
    subject: &ReleaseSubject<'_>,
    request: &PushRequest,
    caller: &Caller,
) -> Result<BTreeSet<ChannelName>, Refusal> {
    let is_given = |name: &&ChannelName| request.params_for_channel.contains_key(name.as_str());
    let given = subject.channel_ids.keys().filter(is_given);
    let changed: BTreeSet<&ChannelName> = wanted.iter().chain(given).collect();
    caller.reaches(&subject.application.name, changed)?;
    Ok(wanted)
}

/// Where a release goes: to the channels that are named, and to what is to come with them.
fn wanted(
    channels: &[Channel],
    subject: &ReleaseSubject<'_>,
    request: &PushRequest,
) -> Result<BTreeSet<ChannelName>, Refusal> {
    let named = |names: &[String]| {
        names.iter().map(|text| channel_named(subject, text)).collect::<Result<BTreeSet<_>, _>>()
    };
    let wanted = match request.channels.as_deref() {
        None => return Ok(channels.iter().map(|channel| channel.name.clone()).collect()),
        Some([]) => return Err(no_channel()),
        Some(names) => named(names)?,
    };
    let more = named(&request.together)?;
    let mut upstream = upstream(channels);
    upstream
        .values_mut()
        .for_each(|first| first.retain(|name| wanted.contains(*name) || more.contains(*name)));
    Ok(together(&upstream, &wanted, &more.iter().collect()).into_iter().cloned().collect())
}
