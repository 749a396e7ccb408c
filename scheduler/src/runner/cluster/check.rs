//! What works and what does not at places on clusters: `pvnctl runtimes check`. Asks in the order
//! in which a job would need it, and then runs a job ([`trial`]), so that the answer is what a job
//! would meet. Called through [`crate::runner::ClusterQuestions::check`].
//!
//! What always holds: every failure has a remedy; nothing takes longer than its limit; nothing is
//! left but the namespace that the first job would have made, also when nobody waits for the answer
//! any more.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use schema::api::Finding;
use schema::status::CheckKind;
use tokio::time::Instant;

use super::ask::{self, RequestRefusal};
use super::clusters::{Cluster, Clusters};
use super::{ClusterInner, ClusterRunner, begin, rights};
use crate::compile::ClusterPlace;

mod trial;

use trial::TrialOutcome;

/// Places that are checked at the same time: each means some thirty requests and a Pod, and people
/// check one.
pub(super) const CHECKS_LIMIT: usize = 8;

/// Longest check of a place, but for removing what it made, which has five seconds. Below the 60 s
/// of silence after which `pvnctl` gives an answer up.
const CHECKED_WITHIN: Duration = Duration::from_secs(50);

/// Longest wait for the credentials of a kubeconfig, which a plugin may have to ask for: the rest
/// of the check then is to say that there are none.
const CREDENTIALS_WITHIN: Duration = Duration::from_secs(45);

/// Longest wait for one answer of the cluster. The rights, which are many requests, have a limit of
/// their own.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

impl ClusterRunner {
    /// Checks places, all at the same time.
    ///
    /// # Errors
    /// When it cannot be tried at present: why, for people.
    pub async fn check(&self, places: Vec<ClusterPlace>) -> Result<Vec<Finding>, String> {
        let wanted = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let permit = self.inner.checks.clone().try_acquire_many_owned(wanted).map_err(|_| {
            let names: Vec<_> = places.iter().map(|place| place.runtime.as_str()).collect();
            format!(
                "{CHECKS_LIMIT} runtimes can be checked at a time; check one of them, or wait for \
                 other checks to end: {}",
                names.join(", ")
            )
        })?;
        let inner = self.inner.clone();
        // In a task of its own: what it makes is removed also when nobody waits for the answer any
        // more.
        let checks = self.inner.followed.tasks.spawn(async move {
            let found =
                futures::future::join_all(places.iter().map(|place| inner.check(place))).await;
            drop(permit);
            found.concat()
        });
        checks.await.map_err(|died| format!("the check died: {died}"))
    }
}

impl ClusterInner {
    async fn check(self: &Arc<Self>, place: &ClusterPlace) -> Vec<Finding> {
        let until = Instant::now() + CHECKED_WITHIN;
        let mut findings = Findings { place, all: Vec::new() };
        // A connection of its own: with the kubeconfig as it is now, and nobody else's is
        // disturbed.
        let clusters = Clusters::default();
        let Some(cluster) = findings.connection(&clusters).await else {
            return findings.without("the cluster was not reached");
        };
        if !findings.rights(&cluster).await {
            return findings.without("rights are missing");
        }
        if !findings.namespace(&cluster).await {
            return findings.without("there is no namespace for a Job");
        }
        let Some(image) = &place.wrapper_image else {
            return findings.without(
                "no wrapper is put into Pods (`kubernetes.wrapper.inject`), so this is up to the \
                 images of the commands",
            );
        };
        if place.is_cluster_alone() {
            return findings.without(
                "no custom runtime names it in `proxyRuntime` yet, so there is no namespace to \
                 try this in",
            );
        }
        let outcome = self.trial(clusters, place, image, until).await;
        findings.pod(image, outcome)
    }
}

/// The findings so far, in the order of [`CheckKind::OF_CLUSTER`].
struct Findings<'a> {
    place: &'a ClusterPlace,
    all: Vec<Finding>,
}

impl Findings<'_> {
    fn ok(&mut self, check: CheckKind, message: impl Into<String>) {
        self.all.push(Finding::ok(&self.place.runtime, check, message));
    }

    fn failed(&mut self, check: CheckKind, message: impl Into<String>, remedy: impl Into<String>) {
        self.all.push(Finding::failed(&self.place.runtime, check, message, remedy));
    }

    fn skipped(&mut self, check: CheckKind, why: impl Into<String>) {
        self.all.push(Finding::skipped(&self.place.runtime, check, why));
    }

    /// All of them, the rest not tried.
    fn without(mut self, why: &str) -> Vec<Finding> {
        for check in &CheckKind::OF_CLUSTER[self.all.len()..] {
            self.skipped(*check, why);
        }
        self.all
    }

    async fn connection(&mut self, clusters: &Clusters) -> Option<Cluster> {
        let check = CheckKind::Connection;
        let Ok(got) = tokio::time::timeout(CREDENTIALS_WITHIN, clusters.get(self.place)).await
        else {
            let why = format!(
                "its kubeconfig gave no credentials within {} s",
                CREDENTIALS_WITHIN.as_secs()
            );
            let remedy = "run the plugin that its user names in `exec` by hand, as the user and \
                          in the environment of the scheduler: it hangs, or waits for input";
            self.failed(check, why, remedy);
            return None;
        };
        let cluster = match got {
            Ok(cluster) => cluster,
            Err(why) => {
                let remedy = "put the path of a kubeconfig that the scheduler can read on its own \
                              machine into `kubernetes.kubeconfig`, with a context that is in it; \
                              inside the cluster leave both out";
                self.failed(check, why, remedy);
                return None;
            }
        };
        match answer("asking for its version", cluster.client.apiserver_version()).await {
            Ok(version) => {
                self.ok(check, format!("the cluster answers: Kubernetes {}", version.git_version));
                return Some(cluster);
            }
            Err(
                refused @ (RequestRefusal::Never(_)
                | RequestRefusal::NotFound(_)
                | RequestRefusal::Unauthorized(_)),
            ) => {
                let remedy = "give the kubeconfig credentials that this cluster accepts; `kubectl \
                              --kubeconfig … version` must work";
                self.failed(check, refused.why(), remedy);
            }
            Err(refused) => {
                let remedy = "see that the server runs, and that the scheduler's machine reaches \
                              the address in the kubeconfig and trusts its certificate";
                self.failed(check, refused.why(), remedy);
            }
        }
        None
    }

    /// Whether jobs can be run with what is permitted.
    async fn rights(&mut self, cluster: &Cluster) -> bool {
        let check = CheckKind::Rights;
        match rights::missing(cluster, self.place, false).await {
            Ok(missing) => {
                match missing.first() {
                    None => self.ok(
                        check,
                        format!(
                            "the scheduler's account may do all that jobs need in `{}`",
                            self.place.namespace
                        ),
                    ),
                    Some(first) => self.failed(check, rights::sentence(&missing), first.remedy()),
                }
                !missing.iter().any(|right| right.needed)
            }
            // What follows will say what is wrong.
            Err(why) => {
                self.skipped(check, format!("the cluster does not say what is permitted: {why}"));
                true
            }
        }
    }

    /// Whether there is a namespace for Jobs, or will be when the first one is made.
    async fn namespace(&mut self, cluster: &Cluster) -> bool {
        let (check, name) = (CheckKind::Namespace, &self.place.namespace);
        let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
        let found = if self.place.own_namespace {
            // Nothing is made yet: the cluster says what it would say.
            let made = begin::apply_namespace(&namespaces, self.place, true);
            answer("making the namespace", made).await.map(Some)
        } else {
            answer("looking for the namespace", namespaces.get_opt(name)).await
        };
        match found {
            Ok(Some(namespace)) if namespace.metadata.deletion_timestamp.is_some() => {
                let remedy = format!(
                    "wait until it is gone; `kubectl get namespace {name} -o yaml` says what \
                     holds it up"
                );
                self.failed(check, format!("`{name}` is being deleted"), remedy);
                false
            }
            Ok(Some(_)) if self.place.own_namespace => {
                self.ok(check, format!("`{name}` is there, or will be made"));
                true
            }
            Ok(Some(_)) => {
                self.ok(check, format!("`{name}` is there"));
                true
            }
            Ok(None) => {
                self.failed(check, format!("`{name}` is not there"), begin::absent_remedy(name));
                false
            }
            Err(refused) if self.place.own_namespace => {
                let remedy = "see what the cluster's policies say of new namespaces, or name one \
                              in `containerOrchestration`";
                self.failed(check, refused.why(), remedy);
                false
            }
            // The account need not be able to look; the Job will say.
            Err(refused) => {
                self.skipped(check, format!("`{name}` cannot be looked at: {}", refused.why()));
                true
            }
        }
    }

    /// All of them, with what became of the trial.
    fn pod(mut self, image: &str, outcome: TrialOutcome) -> Vec<Finding> {
        match outcome {
            TrialOutcome::Heard { url } => {
                self.ok(CheckKind::WrapperImage, format!("`{image}` runs"));
                self.ok(CheckKind::WayBack, format!("a Pod reaches this scheduler at {url}"));
            }
            TrialOutcome::Silent { url, said } => {
                self.ok(CheckKind::WrapperImage, format!("`{image}` runs"));
                let remedy = "give the scheduler an `--advertise-url` (and a `--listen` address) \
                              that Pods reach, let network policies pass it, and see that the \
                              wrapper trusts its certificate; until then results come late, by \
                              the Pods' logs";
                self.failed(
                    CheckKind::WayBack,
                    format!("a Pod does not reach this scheduler at {url}: {said}"),
                    remedy,
                );
            }
            TrialOutcome::NotStarted { why, ends_when } => {
                let otherwise = "make the image available to the nodes, or name another one in \
                                 `kubernetes.wrapper.image`";
                let remedy = ends_when.map_or_else(
                    || otherwise.to_owned(),
                    |end| format!("it ends when {end}; {otherwise}"),
                );
                self.failed(
                    CheckKind::WrapperImage,
                    format!("no Pod with `{image}` runs: {why}"),
                    remedy,
                );
            }
            TrialOutcome::NoRoom { why } => {
                self.skipped(CheckKind::WrapperImage, "no Job was made");
                self.failed(
                    CheckKind::WayBack,
                    format!("uploads cannot be taken: {why}"),
                    "make room on the scheduler's disk",
                );
            }
            TrialOutcome::Stopping => self.failed(
                CheckKind::WrapperImage,
                "the scheduler is stopping",
                "check again when it is back",
            ),
        }
        self.without("no Pod ran")
    }
}

/// An answer of the cluster in time.
async fn answer<T>(
    what: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestRefusal> {
    match tokio::time::timeout(ANSWER_WITHIN, request).await {
        Ok(answer) => answer.map_err(|error| ask::refused(what, &error)),
        Err(_late) => Err(RequestRefusal::Doubtful(format!(
            "{what}: no answer within {} s",
            ANSWER_WITHIN.as_secs()
        ))),
    }
}
