//! Watches the Jobs and Pods of ours in one namespace of one cluster, and shows each job's task
//! what concerns it: list, then watch, list again when the watch is lost or too old (410), and now
//! and then anyway. Started by the first job there, ended after the last one.
//!
//! What always holds: what is shown is what the cluster said last; that something is gone is shown
//! only after it was seen, so that a list that is older than a new Job does not take it for
//! deleted; of a job of an earlier life of the daemon everything is listed once more, and its view
//! says whether that was done.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::{Api, ResourceExt};
use schema::id::JobId;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ask::LONGEST_PAUSE;
use super::clusters::{Cluster, Key};
use super::faults::{self, WatchRefusal};
use super::follow::UNSEEN_WITHIN;
use super::job::JOB_LABEL;
use super::lost_watch::LostWatch;
use super::own::OwnObjects;
use super::sight::Sight;
use crate::runner::job_tasks::sleep_until;

mod watched;

use watched::Watched;

/// How often everything is listed anew although nothing seems wrong: an event that got lost costs
/// no more than this.
const LIST_EVERY: Duration = Duration::from_secs(300);

/// The same while nothing comes by the watch, which the cluster may refuse although it lists.
const LIST_UNWATCHED_EVERY: Duration = Duration::from_secs(5);

/// How long a list that somebody asked for waits for others who ask: after a restart all of them do
/// at once.
const LIST_TOGETHER: Duration = Duration::from_millis(100);

/// Time between two tries to watch again: those of client-go, but never longer than between other
/// requests. Theirs grow to a minute, and after an outage of half a minute nobody would see for
/// another one that the cluster is back.
#[derive(Default)]
struct Pauses(DefaultBackoff);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|pause| pause.min(LONGEST_PAUSE))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// All watches. Cloned freely.
#[derive(Debug, Clone)]
pub(super) struct Watches {
    open: Arc<Mutex<Open>>,
    tasks: TaskTracker,
}

/// The namespaces that are watched, by cluster and name.
type Open = HashMap<(Key, String), Arc<Namespace>>;

/// The watch of one namespace.
#[derive(Debug, Default)]
struct Namespace {
    jobs: Mutex<HashMap<JobId, Watcher>>,
    /// Asks both watches to list anew.
    again: watch::Sender<()>,
    stop: CancellationToken,
}

/// Who watches one job.
#[derive(Debug)]
struct Watcher {
    sight: watch::Sender<Sight>,
    own: OwnObjects,
    /// What was listed before says nothing to it.
    since: Instant,
}

/// One job's view; the job is not watched any more when it is dropped.
#[derive(Debug)]
pub(super) struct JobView {
    pub(super) sight: watch::Receiver<Sight>,
    job: JobId,
    key: (Key, String),
    watches: Watches,
}

impl Watches {
    /// None is open yet; `tasks` are those of the runner, which end after the last view is dropped.
    pub(super) fn new(tasks: TaskTracker) -> Self {
        Self { open: Arc::default(), tasks }
    }

    /// Shows what becomes of a job from now on, by what is its `own`. `is_new`: there is nothing of
    /// it in the cluster yet; otherwise everything is listed once more, so that what is there
    /// already is seen.
    pub(super) fn view(
        &self,
        cluster: &Cluster,
        key: Key,
        namespace: &str,
        job: JobId,
        own: OwnObjects,
        is_new: bool,
    ) -> JobView {
        let run = |watched: Arc<Namespace>| watched.run(cluster.clone(), namespace.to_owned());
        self.show((key, namespace.to_owned()), job, own, is_new, run)
    }

    fn show<F>(
        &self,
        key: (Key, String),
        job: JobId,
        own: OwnObjects,
        is_new: bool,
        run: impl FnOnce(Arc<Namespace>) -> F,
    ) -> JobView
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let sight = Sight { jobs_listed: is_new, pods_listed: is_new, ..Sight::default() };
        let (sender, sight) = watch::channel(sight);
        let watcher = Watcher { sight: sender, own, since: Instant::now() };
        let mut open = self.open.lock().expect("nobody panics with the lock");
        if let Some(watched) = open.get(&key) {
            watched.jobs.lock().expect("nobody panics with the lock").insert(job, watcher);
            if !is_new {
                watched.again.send_replace(());
            }
        } else {
            // Watched first: no list is older than the view.
            let watched = Arc::new(Namespace {
                jobs: Mutex::new(HashMap::from([(job, watcher)])),
                ..Namespace::default()
            });
            open.insert(key.clone(), watched.clone());
            let run = run(watched.clone());
            self.keep(key.clone(), watched, run);
        }
        JobView { sight, job, key, watches: self.clone() }
    }

    /// Runs the watch of a namespace. When it panics its jobs lose their views, so that none waits
    /// for ever for news that nobody brings, and the next view of the namespace begins another
    /// one.
    fn keep(
        &self,
        key: (Key, String),
        watched: Arc<Namespace>,
        run: impl Future<Output = ()> + Send + 'static,
    ) {
        let open = self.open.clone();
        self.tasks.spawn(async move {
            if AssertUnwindSafe(run).catch_unwind().await.is_ok() {
                return;
            }
            tracing::error!(
                namespace = %key.1,
                "the watch of a namespace panicked; its jobs are told as unknown"
            );
            let mut open = open.lock().expect("nobody panics with the lock");
            if open.get(&key).is_some_and(|known| Arc::ptr_eq(known, &watched)) {
                open.remove(&key);
            }
            // It may have panicked with the lock.
            watched.jobs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        });
    }
}

impl Drop for JobView {
    fn drop(&mut self) {
        let mut open = self.watches.open.lock().expect("nobody panics with the lock");
        let Some(watched) = open.get(&self.key) else { return };
        let mut jobs = watched.jobs.lock().expect("nobody panics with the lock");
        jobs.remove(&self.job);
        if jobs.is_empty() {
            watched.stop.cancel();
            drop(jobs);
            open.remove(&self.key);
        }
    }
}

impl Namespace {
    async fn run(self: Arc<Self>, cluster: Cluster, namespace: String) {
        // What was permitted is asked again before the next job, so that it is told before anything
        // is made.
        let forbidden = || {
            cluster.permitted.lock().expect("nobody panics with the lock").remove(&namespace);
        };
        let jobs =
            self.follow(Api::<Job>::namespaced(cluster.patient.clone(), &namespace), &forbidden);
        let pods =
            self.follow(Api::<Pod>::namespaced(cluster.patient.clone(), &namespace), &forbidden);
        tokio::select! {
            () = self.stop.cancelled() => {}
            _ = futures::future::join(jobs, pods) => {}
        }
    }

    /// Lists and watches one kind until the end.
    async fn follow<K>(&self, api: Api<K>, forbidden: &(impl Fn() + Sync))
    where
        K: Watched + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let mut known: HashMap<String, JobId> = HashMap::new();
        let mut asked = self.again.subscribe();
        // Whether the log has it that it is broken.
        let mut is_told = false;
        loop {
            // Whoever asked before is in the list that comes now.
            asked.mark_unchanged();
            let config = watcher::Config::default().labels(JOB_LABEL);
            let events = watcher::watcher(api.clone(), config).backoff(Pauses::default());
            // Its end ends it, and the next round lists.
            self.take_in(std::pin::pin!(events), &mut known, &mut asked, &mut is_told, forbidden)
                .await;
        }
    }

    async fn take_in<K: Watched>(
        &self,
        mut events: std::pin::Pin<&mut (impl Stream<Item = watcher::Result<Event<K>>> + Send)>,
        known: &mut HashMap<String, JobId>,
        asked: &mut watch::Receiver<()>,
        is_told: &mut bool,
        forbidden: &(impl Fn() + Sync),
    ) {
        let mut again = Instant::now() + LIST_EVERY;
        let mut listed: HashMap<String, JobId> = HashMap::new();
        let mut listed_since = Instant::now();
        // Of a list that was begun: when it takes long.
        let mut slow_at = None;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = sleep_until(slow_at) => {
                    slow_at = None;
                    self.show_lost::<K>(&LostWatch::slow(listed_since));
                    continue;
                }
                () = tokio::time::sleep_until(again) => return,
                Ok(()) = asked.changed() => {
                    again = again.min(Instant::now() + LIST_TOGETHER);
                    continue;
                }
            };
            match event {
                Some(Ok(Event::Apply(object))) => {
                    if let Some(job) = self.show(&object) {
                        known.insert(object.name_any(), job);
                    }
                }
                Some(Ok(Event::Delete(object))) => {
                    // Its last state counts: it may say how the command ended.
                    self.show(&object);
                    self.show_gone::<K>(&object.name_any(), known, false);
                }
                Some(Ok(Event::Init)) => {
                    listed.clear();
                    listed_since = Instant::now();
                    slow_at = Some(listed_since + UNSEEN_WITHIN);
                }
                Some(Ok(Event::InitApply(object))) => {
                    if let Some(job) = self.show(&object) {
                        listed.insert(object.name_any(), job);
                    }
                }
                Some(Ok(Event::InitDone)) => {
                    slow_at = None;
                    *is_told = false;
                    let gone: Vec<String> =
                        known.keys().filter(|name| !listed.contains_key(*name)).cloned().collect();
                    for name in gone {
                        self.show_gone::<K>(&name, known, true);
                    }
                    known.extend(listed.drain());
                    self.show_all(|watcher| watcher.since <= listed_since, K::listed);
                }
                // It is tried again, with pauses.
                Some(Err(error)) => {
                    again = again.min(Instant::now() + LIST_UNWATCHED_EVERY);
                    slow_at = None;
                    self.broken::<K>(&error, is_told, forbidden);
                }
                None => return,
            }
        }
    }

    /// Whoever watches learns that nothing is seen, and the log once.
    fn broken<K: Watched>(
        &self,
        error: &watcher::Error,
        is_told: &mut bool,
        forbidden: &impl Fn(),
    ) {
        let why = faults::of_watch(error);
        if std::mem::replace(is_told, true) {
            tracing::debug!(why, "a watch is still broken");
        } else {
            tracing::warn!(
                why,
                resource = K::RESOURCE,
                "a watch is broken; the cluster is asked again until it lists"
            );
        }
        let lost = faults::of_lost(error, K::RESOURCE);
        if matches!(lost.refusal, Some(WatchRefusal::Forbidden { .. })) {
            forbidden();
        }
        self.show_all(|_| true, K::broken);
        self.show_lost::<K>(&lost);
    }

    /// Tells these about the watch itself.
    fn show_all(&self, whom: impl Fn(&Watcher) -> bool, what: impl Fn(&mut Sight)) {
        for watcher in self
            .jobs
            .lock()
            .expect("nobody panics with the lock")
            .values()
            .filter(|watcher| whom(watcher))
        {
            watcher.sight.send_modify(&what);
        }
    }

    fn show_lost<K: Watched>(&self, now: &LostWatch) {
        self.show_all(
            |_| true,
            |sight| {
                let lost = K::lost(sight);
                *lost = Some(now.clone().after(lost.as_ref()));
            },
        );
    }

    /// Shows an object to its job; returns whose it is. What only has its label is nobody's.
    fn show<K: Watched>(&self, object: &K) -> Option<JobId> {
        let job = object.meta().labels.as_ref()?.get(JOB_LABEL)?.parse().ok()?;
        if let Some(watcher) = self.jobs.lock().expect("nobody panics with the lock").get(&job) {
            if !object.is_of(&watcher.own) {
                return None;
            }
            watcher.sight.send_modify(|sight| K::seen(sight, object));
        }
        Some(job)
    }

    fn show_gone<K: Watched>(
        &self,
        name: &str,
        known: &mut HashMap<String, JobId>,
        is_missed: bool,
    ) {
        let Some(job) = known.remove(name) else { return };
        if let Some(watcher) = self.jobs.lock().expect("nobody panics with the lock").get(&job) {
            watcher.sight.send_modify(|sight| K::gone(sight, name, is_missed));
        }
    }
}

#[cfg(test)]
mod tests;
