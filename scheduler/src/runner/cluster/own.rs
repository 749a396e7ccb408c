//! Which Job and which Pods are a job's own. A copy of its manifest, which people make to try
//! something by hand, has its label, too, and may have its name once the Job is gone; neither its
//! end nor its name says anything of the job. A Pod whose Job was deleted with `--cascade=orphan`
//! has no owner any more and runs on: it stays the job's own. Called by the job's task and by the
//! watches.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;

/// Labels in which the cluster writes the uid of a Pod's Job, now and before Kubernetes 1.27. They
/// stay when the Job is gone.
const OWNER_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];

/// Most Pods of one job that are remembered. More than this many tries are known by their owner and
/// their labels alone.
const SEEN_LIMIT: usize = 256;

/// What a job's own objects are known by: until its Job is made, by its name alone. Cloned freely.
#[derive(Debug, Clone)]
pub(super) struct OwnObjects {
    name: String,
    uid: Arc<OnceLock<String>>,
    /// Uids of the Pods that were seen to be its own.
    seen: Arc<Mutex<HashSet<String>>>,
}

impl OwnObjects {
    /// The Job of this name; `uid` once that is known.
    pub(super) fn new(name: &str, uid: Option<&str>) -> Self {
        let uid = Arc::new(uid.map_or_else(OnceLock::new, |uid| OnceLock::from(uid.to_owned())));
        Self { name: name.to_owned(), uid, seen: Arc::default() }
    }

    /// From now on its Job is this one.
    pub(super) fn is_made(&self, uid: &str) {
        // A job has one Job; what is known already was made by an earlier try, and found.
        let _known_already = self.uid.set(uid.to_owned());
    }

    /// The Pod of this uid was seen to be its own in another life of the daemon.
    pub(super) fn knows(&self, pod: &str) {
        self.seen.lock().expect("nobody panics with the lock").insert(pod.to_owned());
    }

    /// The uid of its Job, once that is known.
    pub(super) fn uid(&self) -> Option<&str> {
        self.uid.get().map(String::as_str)
    }

    /// Whether this is its Job.
    pub(super) fn is_job(&self, job: &Job) -> bool {
        let ObjectMeta { name, uid, .. } = &job.metadata;
        name.as_deref() == Some(&self.name) && self.is_uid(uid.as_deref())
    }

    /// Whether this Pod was made by its Job: the cluster counts it as one of that, or did before it
    /// lost its owner.
    pub(super) fn has_pod(&self, pod: &Pod) -> bool {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        let is_own = match owners.find(|owner| owner.controller == Some(true)) {
            Some(owner) => {
                owner.kind == "Job" && owner.name == self.name && self.is_uid(Some(&owner.uid))
            }
            None => self.uid().is_some_and(|own| made_by(pod).any(|uid| uid == own)),
        };
        let Some(uid) = pod.metadata.uid.as_ref().filter(|_| self.uid().is_some()) else {
            return is_own;
        };
        let mut seen = self.seen.lock().expect("nobody panics with the lock");
        if is_own && seen.len() < SEEN_LIMIT {
            seen.insert(uid.clone());
        }
        is_own || seen.contains(uid)
    }

    fn is_uid(&self, uid: Option<&str>) -> bool {
        self.uid().is_none_or(|own| uid == Some(own))
    }
}

/// Whether nothing says which Job made a Pod: who has its job's label may be the job's own, or a
/// copy that somebody made by hand.
pub(super) fn is_of_nobody(pod: &Pod) -> bool {
    let is_owned =
        pod.metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true));
    !is_owned && made_by(pod).next().is_none()
}

/// The uids of the Jobs that a Pod's labels name as its maker.
fn made_by(pod: &Pod) -> impl Iterator<Item = &str> {
    let labels = pod.metadata.labels.iter();
    labels.flat_map(|labels| {
        OWNER_LABELS.iter().filter_map(|label| labels.get(*label)).map(String::as_str)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(owners: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "ownerReferences": owners}}))
            .unwrap()
    }

    #[test]
    fn a_copy_is_none_of_its_own_under_whatever_name() {
        let own = OwnObjects::new("web", None);
        let job = |name: &str, uid: &str| {
            serde_json::from_value(json!({"metadata": {"name": name, "uid": uid}})).unwrap()
        };
        let owner = |name: &str, uid: &str| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true}]);
        assert!(own.is_job(&job("web", "1")) && own.has_pod(&pod(owner("web", "1"))));
        assert!(!own.is_job(&job("copy", "1")) && !own.has_pod(&pod(owner("copy", "1"))));
        own.is_made("1");
        assert!(own.is_job(&job("web", "1")) && own.has_pod(&pod(owner("web", "1"))));
        // Made by `kubectl replace --force`.
        assert!(!own.is_job(&job("web", "2")) && !own.has_pod(&pod(owner("web", "2"))));
        for of_nobody in [
            json!([]),
            json!([{"apiVersion": "v1", "kind": "Node", "name": "web", "uid": "1", "controller": true}]),
        ] {
            assert!(!own.has_pod(&pod(of_nobody)));
        }
        // Deleted with `--cascade=orphan`; a copy of the Job is another Job to the cluster, and one
        // by hand has no such label.
        let orphan = |uid: &str, label: &str, of: &str| {
            serde_json::from_value::<Pod>(
                json!({"metadata": {"name": "p", "uid": uid, "labels": {label: of}}}),
            )
            .unwrap()
        };
        for label in OWNER_LABELS {
            assert!(
                own.has_pod(&orphan("a", label, "1")) && !own.has_pod(&orphan("b", label, "2"))
            );
            assert!(
                !OwnObjects::new("web", None).has_pod(&orphan("a", label, "1")),
                "nobody knows yet"
            );
        }
        assert!(
            own.has_pod(&orphan("a", "x", "y")) && !own.has_pod(&orphan("b", "x", "y")),
            "what was seen as its own stays so"
        );
        assert!(
            is_of_nobody(&orphan("b", "x", "y"))
                && !is_of_nobody(&orphan("b", OWNER_LABELS[0], "2"))
        );
        assert!(!is_of_nobody(&pod(owner("web", "2"))));
        own.knows("c");
        assert!(own.has_pod(&orphan("c", "x", "y")), "noted before a restart");
        assert!(!OwnObjects::new("web", Some("1")).is_job(&job("web", "2")));
    }
}
