//! One job on a cluster, from its Job to its end.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use schema::id::JobId;
use schema::status::JobKind;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ask::{Refused, ask};
use super::clusters::{Cluster, Key};
use super::job::{self, JOB_LABEL, Objects};
use super::log;
use super::record::Record;
use super::sight::{Seen, Sight, Subject, Wait, look};
use super::watch::View;
use super::{Inner, later, never, rights};
use crate::crash;
use crate::runner::learned::{Learned, Never};
use crate::runner::{ClusterJob, JobSpec, Told};

/// Who we are among those that change objects.
const FIELD_MANAGER: &str = "pvn-scheduler";

/// Longest time from the decision to the start of the command, for a job without a timeout of its own. Source: SPEC 7.
const START_WITHIN: Duration = Duration::from_secs(600);

/// How long a Job has no Pod before somebody asks why, and how often that is asked.
const POD_WITHIN: Duration = Duration::from_secs(3);
const ASK_WHY_EVERY: Duration = Duration::from_secs(15);

/// How often the log of a job that runs and was never heard of is looked at for what its wrapper left there. Its wrapper writes
/// it after 10 s without an answer.
const LISTEN_EVERY: Duration = Duration::from_secs(12);

/// Longest wait for the end of a Job that was deleted because it did not start.
const DELETED_WITHIN: Duration = Duration::from_secs(60);

/// How long the cluster may be away while a job is stopped or looked for, before that is told as unknown.
const AWAY_WITHIN: Duration = Duration::from_secs(120);

/// Time between two looks at a kubeconfig that cannot be used.
const CONNECT_AGAIN: Duration = Duration::from_secs(5);

/// Seconds that a Pod has after the second stop. Not 0: then it would be gone from the books before it is gone from its node.
const KILL_GRACE_S: u32 = 1;

/// A job that has been let go, or may have been.
pub(super) struct Follower {
    pub(super) inner: Arc<Inner>,
    pub(super) job: JobId,
    pub(super) record: Record,
    pub(super) cluster: Cluster,
    view: View,

    /// What is known already, so that there is nothing to follow.
    known: Option<(Learned, bool)>,
}

impl Inner {
    /// Makes everything that a job needs and lets it go.
    ///
    /// # Errors
    /// Why it never ran. Nothing of it is left then.
    pub(super) async fn begin(
        self: &Arc<Self>,
        spec: &JobSpec,
        tried_before: bool,
        stops: &mut mpsc::Receiver<()>,
    ) -> Result<Follower, Never> {
        let wanted = spec.cluster.as_ref().ok_or_else(|| never("it is no job of a cluster".to_owned()))?;
        let reach =
            self.delivery.expect(spec, &self.news).await.map_err(|error| later(format!("its uploads cannot be expected: {error}")))?;
        let objects = job::objects(spec, wanted, &reach).map_err(never)?;
        let within = spec.timeout_ms.map_or(START_WITHIN, |timeout| Duration::from_millis(timeout.unsigned_abs()));
        let mut record = Record {
            place: wanted.place.clone(),
            name: objects.name.clone(),
            container: spec.command.name.clone(),
            held: objects.held,
            tries_again: objects.tries_again,
            is_apply: spec.kind == JobKind::Apply,
            token: log::token(&reach),
            start_by: self.clock.now().plus_ms(i64::try_from(within.as_millis()).unwrap_or(i64::MAX)),
            uid: None,
        };
        self.note(spec.job, &record).await?;
        let cluster = self.clusters.get(&wanted.place).await.map_err(later)?;
        if let Err(why) = rights::check(&cluster, &wanted.place, record.is_apply).await {
            // They may be given in the meantime, and its credentials be new ones.
            self.clusters.forget(&wanted.place);
            return Err(never(why));
        }
        let view = self.watches.view(&cluster, Key::of(&wanted.place), &wanted.place.namespace, spec.job);
        let deadline = Instant::now() + within;
        let mut follower = Follower { inner: self.clone(), job: spec.job, record: record.clone(), cluster, view, known: None };
        let uid = follower.make(wanted, &objects, tried_before, deadline).await;
        let made = match uid {
            Ok(uid) => match follower.make_secret(&objects, &uid, deadline).await {
                Ok(()) if stops.try_recv().is_ok() => Err(never("it was stopped before it was started".to_owned())),
                Ok(()) => Ok(uid),
                Err(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        let uid = match made {
            Ok(uid) => uid,
            Err(why) => {
                follower.delete().await;
                // Its credentials may be new ones by the next time.
                self.clusters.forget(&wanted.place);
                return Err(why);
            }
        };
        crash::at(crash::AFTER_MADE);
        record.uid = Some(uid);
        self.note(spec.job, &record).await?;
        crash::at(crash::AFTER_RECORDED);
        follower.record = record;
        follower.let_go(deadline).await;
        crash::at(crash::AFTER_LET_GO);
        Ok(follower)
    }

    /// Takes up a job whose Job was made in an earlier life of the daemon.
    pub(super) async fn again(self: &Arc<Self>, job: JobId, record: Record) -> Follower {
        let cluster = loop {
            match self.clusters.get(&record.place).await {
                Ok(cluster) => break cluster,
                Err(why) => tracing::warn!(%job, why, "a job on a cluster cannot be looked after"),
            }
            tokio::time::sleep(CONNECT_AGAIN).await;
        };
        let view = self.watches.view(&cluster, Key::of(&record.place), &record.place.namespace, job);
        let mut follower = Follower { inner: self.clone(), job, record, cluster, view, known: None };
        let jobs = follower.jobs();
        let found = follower.ask(AWAY_WITHIN, "looking for its Job", || jobs.get(&follower.record.name)).await;
        match found {
            Ok(found) if found.uid() == follower.record.uid => {
                let is_suspended = found.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
                if is_suspended {
                    // The daemon died just before.
                    follower.let_go(Instant::now() + AWAY_WITHIN).await;
                }
            }
            Ok(_) => follower.known = Some((lost("another Job has taken the place of its own"), false)),
            Err(Refused::NotFound(_)) => {
                let gone = follower.has_no_pods().await;
                follower.known = Some((lost("its Job was deleted while nobody watched"), gone));
            }
            // The watch may know more.
            Err(refused) => tracing::warn!(%job, why = refused.why(), "a job on a cluster cannot be looked for"),
        }
        follower
    }

    /// Deletes the Job of a job that was never let go, if there is one.
    pub(super) async fn clear(&self, record: Record) {
        let Ok(cluster) = self.clusters.get(&record.place).await else { return };
        let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &record.place.namespace);
        let (deadline, params) = (Instant::now() + AWAY_WITHIN, DeleteParams::background());
        match ask(&cluster, false, deadline, "deleting its Job", || jobs.delete(&record.name, &params)).await {
            Ok(_) | Err(Refused::NotFound(_)) => {}
            Err(refused) => tracing::warn!(name = record.name, why = refused.why(), "a Job that is not wanted stays suspended"),
        }
    }

    async fn note(&self, job: JobId, record: &Record) -> Result<(), Never> {
        let (records, record) = (self.records.clone(), record.clone());
        let noted = tokio::task::spawn_blocking(move || records.put(job, &record)).await;
        let noted = noted.unwrap_or_else(|died| Err(std::io::Error::other(died)));
        noted.map_err(|error| later(format!("it cannot be noted where it runs: {error}")))
    }
}

impl Follower {
    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace)
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace)
    }

    async fn ask<T, F: Future<Output = kube::Result<T>>>(
        &self,
        within: Duration,
        what: &str,
        request: impl FnMut() -> F,
    ) -> Result<T, Refused> {
        ask(&self.cluster, self.record.is_apply, Instant::now() + within, what, request).await
    }

    /// The uid of the Job, suspended, and its namespace if that is ours to make.
    async fn make(&self, wanted: &ClusterJob, objects: &Objects, tried_before: bool, deadline: Instant) -> Result<String, Never> {
        let (jobs, name) = (self.jobs(), &objects.name);
        let uid = |job: Job| job.uid().ok_or_else(|| later("the cluster gave its Job no uid".to_owned()));
        if tried_before {
            let found = ask(&self.cluster, self.record.is_apply, deadline, "looking for its Job", || jobs.get_opt(name)).await;
            if let Some(found) = found.map_err(told)? {
                return uid(found);
            }
        }
        let params = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
        let patch = Patch::Apply(&objects.job);
        let apply = || jobs.patch(name, &params, &patch);
        match ask(&self.cluster, self.record.is_apply, deadline, "making its Job", apply).await {
            Ok(job) => uid(job),
            Err(Refused::NotFound(_)) if wanted.place.own_namespace => {
                self.make_namespace(wanted, deadline).await?;
                uid(ask(&self.cluster, self.record.is_apply, deadline, "making its Job", apply).await.map_err(told)?)
            }
            Err(Refused::NotFound(why)) => Err(never(format!(
                "{why}; create the namespace `{}`, or leave `containerOrchestration` out and pvn makes one",
                wanted.place.namespace
            ))),
            Err(refused) => Err(told(refused)),
        }
    }

    async fn make_namespace(&self, wanted: &ClusterJob, deadline: Instant) -> Result<(), Never> {
        let name = &wanted.place.namespace;
        let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        let labels = json!({"app.kubernetes.io/managed-by": "pvn", "pvn.dev/runtime": wanted.place.runtime.as_str()});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&namespace);
        let made = ask(&self.cluster, self.record.is_apply, deadline, "making its namespace", || namespaces.patch(name, &params, &patch));
        made.await.map(drop).map_err(told)
    }

    async fn make_secret(&self, objects: &Objects, uid: &str, deadline: Instant) -> Result<(), Never> {
        let Some(secret) = objects.secret(uid) else { return Ok(()) };
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&secret);
        let made =
            ask(&self.cluster, self.record.is_apply, deadline, "making its Secret", || secrets.patch(&objects.name, &params, &patch));
        made.await.map(drop).map_err(told)
    }

    /// Lets the Job's Pod be made. May be done twice. When the cluster does not answer nobody knows; then the watch will tell.
    async fn let_go(&mut self, deadline: Instant) {
        if self.record.held {
            return;
        }
        let jobs = self.jobs();
        let patch = Patch::Merge(json!({"metadata": {"uid": self.record.uid}, "spec": {"suspend": false}}));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match ask(&self.cluster, self.record.is_apply, deadline, "starting its Job", || jobs.patch(&self.record.name, &params, &patch))
            .await
        {
            Ok(_) => {}
            Err(Refused::Now(why)) => tracing::warn!(job = %self.job, why, "nobody knows whether a Job was let go"),
            Err(refused) => {
                self.known = Some((Learned { never: Some(told(refused)), ..Learned::default() }, true));
                self.delete().await;
            }
        }
    }

    /// Deletes the Job, and with it everything that it owns.
    async fn delete(&self) {
        let jobs = self.jobs();
        let params = DeleteParams::background();
        match self.ask(AWAY_WITHIN, "deleting its Job", || jobs.delete(&self.record.name, &params)).await {
            Ok(_) | Err(Refused::NotFound(_)) => {}
            Err(refused) => {
                tracing::warn!(job = %self.job, why = refused.why(), "a Job could not be deleted; it stays suspended or ends by its deadline")
            }
        }
    }

    async fn has_no_pods(&self) -> bool {
        let pods = self.pods();
        let params = ListParams::default().labels(&format!("{JOB_LABEL}={}", self.job));
        self.ask(AWAY_WITHIN, "looking for its Pods", || pods.list(&params)).await.is_ok_and(|found| found.items.is_empty())
    }

    /// Follows the job to its end: what is known of it, and whether nothing of it is left.
    pub(super) async fn until_over(mut self, stops: &mut mpsc::Receiver<()>) -> (Learned, bool) {
        if let Some(known) = self.known.take() {
            return known;
        }
        let now = self.inner.clock.now();
        let left_ms = self.record.start_by.since_ms(now).max(0).unsigned_abs();
        let mut deadline = Instant::now() + Duration::from_millis(left_ms);
        let mut why_at = Instant::now() + POD_WITHIN;
        let mut listen_at = Instant::now() + LISTEN_EVERY;
        let (mut waits_for, mut asked) = (None::<Wait>, 0_u32);
        let (mut started, mut gave_up, mut deleted) = (false, false, false);
        loop {
            let sight = self.view.sight.borrow_and_update().clone();
            match look(&sight, self.subject(deleted)) {
                Seen::Over { learned, gone } => return self.over(*learned, gone, waits_for.filter(|_| gave_up), &sight).await,
                Seen::Running { since } if !started => {
                    started = true;
                    let at = since.unwrap_or_else(|| self.inner.clock.now());
                    let _nobody_listens_any_more = self.inner.news.send(Told::Started { job: self.job, at }).await;
                }
                Seen::Running { .. } => {}
                Seen::Waiting(wait) => waits_for = wait.or(waits_for),
            }
            let has_no_pod = sight.pod.is_none() && !gave_up;
            tokio::select! {
                changed = self.view.sight.changed() => if changed.is_err() {
                    return (lost("its cluster is not watched any more"), false);
                },
                Some(()) = stops.recv() => {
                    asked += 1;
                    deleted |= !started;
                    self.stop(started, asked).await;
                }
                () = tokio::time::sleep_until(deadline), if !started || gave_up => {
                    if gave_up {
                        return self.over(never_learned(waits_for.as_ref()), false, waits_for, &sight).await;
                    }
                    (gave_up, deleted) = (true, true);
                    deadline = Instant::now() + DELETED_WITHIN;
                    self.delete().await;
                }
                () = tokio::time::sleep_until(listen_at), if started && !self.was_heard() => {
                    listen_at = Instant::now() + LISTEN_EVERY;
                    if let Some(pod) = &sight.pod
                        && let Some(report) = self.marked_line(pod).await
                    {
                        return (Learned { line: Some(report), ..Learned::default() }, true);
                    }
                }
                () = tokio::time::sleep_until(why_at), if has_no_pod => {
                    why_at = Instant::now() + ASK_WHY_EVERY;
                    waits_for = self.why_no_pod().await.or(waits_for);
                }
            }
        }
    }

    /// Whether its wrapper ever reached us.
    fn was_heard(&self) -> bool {
        self.inner.delivery.signs(self.job).is_some_and(|signs| signs.heard)
    }

    fn subject(&self, deleted: bool) -> Subject<'_> {
        Subject { container: &self.record.container, tries_again: self.record.tries_again, deleted }
    }

    /// The first time the Pod gets TERM, and KILL after its grace; the second time at once. A Job that has not started is deleted.
    async fn stop(&self, started: bool, asked: u32) {
        if !started {
            return self.delete().await;
        }
        let name = &self.record.name;
        let stopped = if asked == 1 {
            // The Job ends its Pods itself and makes no others, whatever its own file says; and it stays for people to look at.
            let jobs = self.jobs();
            let patch = Patch::Merge(json!({"metadata": {"uid": self.record.uid}, "spec": {"activeDeadlineSeconds": 1}}));
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            self.ask(AWAY_WITHIN, "stopping its Job", || jobs.patch(name, &params, &patch)).await.map(drop)
        } else {
            let pods = self.pods();
            let delete = DeleteParams::default().grace_period(KILL_GRACE_S);
            let params = ListParams::default().labels(&format!("{JOB_LABEL}={}", self.job));
            self.ask(AWAY_WITHIN, "killing its Pods", || pods.delete_collection(&delete, &params)).await.map(drop)
        };
        if let Err(refused) = stopped {
            tracing::warn!(job = %self.job, why = refused.why(), "a job on a cluster could not be stopped");
        }
    }

    /// Why the Job has no Pod, in the words of the controller that cannot make one.
    async fn why_no_pod(&self) -> Option<Wait> {
        let events: Api<Event> = Api::namespaced(self.cluster.client.clone(), &self.record.place.namespace);
        let params = ListParams::default().fields(&format!("involvedObject.name={},type=Warning", self.record.name));
        self.cluster.throttle.pass(self.record.is_apply).await;
        // Events are for people; without them nobody is worse off than before.
        let found = events.list(&params).await.ok()?;
        let event = found.items.into_iter().max_by_key(|event| event.last_timestamp.as_ref().map(|at| at.0))?;
        let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
        Some(Wait { why: format!("{reason}: {message}"), surroundings: true })
    }

    /// The last word: what it waited for if it was given up, and the log where nothing was delivered.
    async fn over(&self, mut learned: Learned, gone: bool, waited_for: Option<Wait>, sight: &Sight) -> (Learned, bool) {
        if let (Some(never), Some(wait)) = (&mut learned.never, waited_for) {
            *never = Never { why: format!("it did not start in time: {}", wait.why), surroundings: wait.surroundings };
        }
        if let Some(why) = learned.lost.take() {
            learned.lost = Some(self.with_namespace(why).await);
        }
        if let Some(pod) = sight.pod.as_ref().filter(|_| learned.exit.is_some() && !self.was_heard()) {
            learned = self.read_log(pod, learned).await;
        }
        (learned, gone)
    }

    /// A Job that is gone with its namespace says so.
    async fn with_namespace(&self, why: String) -> String {
        let namespaces: Api<Namespace> = Api::all(self.cluster.client.clone());
        self.cluster.throttle.pass(self.record.is_apply).await;
        let name = &self.record.place.namespace;
        match namespaces.get_opt(name).await {
            Ok(None) => format!("{why}, with its namespace `{name}`"),
            Ok(Some(namespace)) if namespace.metadata.deletion_timestamp.is_some() => format!("{why}, with its namespace `{name}`"),
            _ => why,
        }
    }
}

fn lost(why: &str) -> Learned {
    Learned { lost: Some(why.to_owned()), ..Learned::default() }
}

fn never_learned(wait: Option<&Wait>) -> Learned {
    let why = wait.map_or("nobody says why", |wait| wait.why.as_str());
    // Its Job was deleted and is still there: whether it ran in the last moment nobody knows.
    lost(&format!("it did not start in time ({why}), and its Job could not be deleted"))
}

fn told(refused: Refused) -> Never {
    match refused {
        Refused::Never(why) | Refused::NotFound(why) => never(why),
        Refused::Now(why) => later(why),
    }
}
