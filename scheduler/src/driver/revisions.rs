//! Tells that something was committed to whoever looks at what is stored: pages that are open. What
//! was committed is not told; a look at the store says it, and one look covers any number of
//! commits. Told by the loop after each commit; heard by `http`.
//!
//! What always holds: a commit costs the loop one look-up for each service that it concerns,
//! however many follow; whoever follows is woken once for all that was committed meanwhile; what is
//! held is no more than there are followers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schema::id::{ApplicationName, InstanceId, ServiceName};
use schema::log_kind::LogKind;
use schema::time::Timestamp;
use tokio::sync::watch;

use crate::names::InstanceNames;
use crate::store::Commit;

/// A service as its application names it.
pub type ServiceOfApplication = (ApplicationName, ServiceName);

/// Services that somebody follows.
type FollowedServices = HashMap<ApplicationName, HashMap<ServiceName, watch::Sender<u64>>>;

/// All commits of this run, numbered; clones are the same.
#[derive(Debug, Clone)]
pub struct CommitRevisions(Arc<RevisionBoard>);

#[derive(Debug)]
struct RevisionBoard {
    /// The number of the newest commit.
    all: watch::Sender<u64>,
    /// The number of the newest commit that took a token's validity.
    tokens: watch::Sender<u64>,
    services: Mutex<FollowedServices>,
}

impl CommitRevisions {
    /// Those of a run that began at `now`: its milliseconds are the first number, so that one of
    /// another run is not taken for one of this.
    pub(super) fn beginning(now: Timestamp) -> Self {
        let first = u64::try_from(now.as_millis()).unwrap_or(0);
        let (all, _) = watch::channel(first);
        let (tokens, _) = watch::channel(first);
        Self(Arc::new(RevisionBoard { all, tokens, services: Mutex::default() }))
    }

    /// The number of the newest commit. Whoever asks before they look has seen all up to it.
    pub fn newest(&self) -> u64 {
        *self.0.all.borrow()
    }

    /// Woken by the commits that concern this service, or by all of them.
    pub fn follow(&self, service: Option<ServiceOfApplication>) -> RevisionFollower {
        let news = match &service {
            None => self.0.all.subscribe(),
            Some((application, name)) => self
                .services()
                .entry(application.clone())
                .or_default()
                .entry(name.clone())
                .or_insert_with(|| watch::channel(0).0)
                .subscribe(),
        };
        RevisionFollower { revisions: self.clone(), service, news }
    }

    /// Woken when a token is revoked.
    pub fn of_tokens(&self) -> watch::Receiver<u64> {
        self.0.tokens.subscribe()
    }

    /// This was committed; `names_of` knows what instances are called.
    pub(super) fn tell<'a>(
        &self,
        commit: &Commit,
        names_of: impl Fn(&InstanceId) -> Option<&'a InstanceNames>,
    ) {
        // The number comes first: whoever begins to follow in between finds it newer than theirs.
        let number = self.newest() + 1;
        self.0.all.send_replace(number);
        let is_revoked = |kind: &str| kind == LogKind::TokenRevoked.as_str();
        if commit.events.iter().any(|entry| is_revoked(&entry.kind)) {
            self.0.tokens.send_replace(number);
        }
        let followed = self.services();
        if followed.is_empty() {
            return;
        }
        let find = |application: &ApplicationName, service: &ServiceName| {
            followed.get(application)?.get_key_value(service)
        };
        let rows = commit.instances.iter().map(|row| row.id);
        let instances: HashSet<_> =
            rows.chain(commit.jobs.iter().map(|job| job.instance)).collect();
        let names = instances.iter().filter_map(names_of);
        let touched = names.filter_map(|names| find(&names.application.1, &names.service.1));
        // What only the log has.
        let told = commit
            .events
            .iter()
            .filter_map(|entry| find(entry.application.as_ref()?, entry.service.as_ref()?));
        for (_, follower) in touched.chain(told) {
            follower.send_replace(number);
        }
    }

    /// Whole after a panic, too: each change is one.
    fn services(&self) -> MutexGuard<'_, FollowedServices> {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who follows.
#[derive(Debug)]
pub struct RevisionFollower {
    revisions: CommitRevisions,
    service: Option<ServiceOfApplication>,
    news: watch::Receiver<u64>,
}

impl RevisionFollower {
    /// Waits until something was committed that this follower has not been woken for; `None` when
    /// the daemon stops.
    pub async fn changed(&mut self) -> Option<()> {
        self.news.changed().await.ok()
    }

    /// Whether something was committed that this follower does not know.
    pub fn has_changed(&self) -> bool {
        self.news.has_changed().unwrap_or(false)
    }

    /// Something may have been committed before it began to follow.
    pub fn not_caught_up(&mut self) {
        self.news.mark_changed();
    }

    /// What was committed up to now is known.
    pub fn caught_up(&mut self) {
        self.news.mark_unchanged();
    }

    /// How many follow the same, this one included.
    pub fn together(&self) -> usize {
        match &self.service {
            None => self.revisions.0.all.receiver_count(),
            Some((application, name)) => self
                .revisions
                .services()
                .get(application)
                .and_then(|services| services.get(name))
                .map_or(0, watch::Sender::receiver_count),
        }
    }
}

impl Drop for RevisionFollower {
    fn drop(&mut self) {
        let Some((application, name)) = &self.service else { return };
        let mut followed = self.revisions.services();
        let Some(services) = followed.get_mut(application) else { return };
        // This one is still counted.
        if services.get(name).is_some_and(|sender| sender.receiver_count() <= 1) {
            services.remove(name);
        }
        if services.is_empty() {
            followed.remove(application);
        }
    }
}

#[cfg(test)]
mod tests {
    use schema::api::LogEntry;

    use super::*;

    fn about(service: &str, kind: LogKind) -> Commit {
        let entry = LogEntry {
            seq: 1,
            at: Timestamp::from_millis(1),
            kind: kind.to_string(),
            actor: None,
            origin: None,
            application: Some("app".parse().unwrap()),
            service: Some(service.parse().unwrap()),
            channel: None,
            message: String::new(),
            data: serde_json::Value::Null,
        };
        Commit { events: vec![entry], ..Commit::default() }
    }

    fn service(name: &str) -> Option<ServiceOfApplication> {
        Some(("app".parse().unwrap(), name.parse().unwrap()))
    }

    fn is_woken(follower: &mut RevisionFollower) -> bool {
        let is_woken = follower.has_changed();
        follower.caught_up();
        is_woken
    }

    #[test]
    fn a_follower_is_woken_once_for_all_that_concerns_it_and_for_nothing_else() {
        let revisions = CommitRevisions::beginning(Timestamp::from_millis(7));
        let (mut web, mut api) =
            (revisions.follow(service("web")), revisions.follow(service("api")));
        let mut all = revisions.follow(None);
        for _ in 0..3 {
            revisions.tell(&about("web", LogKind::TokenCreated), |_| None);
        }
        assert!(is_woken(&mut web) && is_woken(&mut all) && !is_woken(&mut api));
        assert!(!is_woken(&mut web) && !is_woken(&mut all), "once");
        assert_eq!(revisions.newest(), 10);
    }

    #[test]
    fn a_revoked_token_wakes_those_who_hold_one() {
        let revisions = CommitRevisions::beginning(Timestamp::from_millis(7));
        let tokens = revisions.of_tokens();
        revisions.tell(&about("web", LogKind::TokenCreated), |_| None);
        assert!(!tokens.has_changed().unwrap());
        revisions.tell(&about("web", LogKind::TokenRevoked), |_| None);
        assert!(tokens.has_changed().unwrap());
    }

    #[test]
    fn nothing_is_held_of_followers_that_are_gone() {
        let revisions = CommitRevisions::beginning(Timestamp::from_millis(7));
        let (first, second) = (revisions.follow(service("web")), revisions.follow(service("web")));
        assert_eq!((first.together(), second.together()), (2, 2));
        drop(first);
        assert_eq!(second.together(), 1);
        drop(second);
        assert!(revisions.services().is_empty());
    }
}
