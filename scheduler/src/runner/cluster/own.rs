//! Which Job and which Pods are a job's own. A copy of its manifest, which people make to try something by hand, has its label, too,
//! and may have its name once the Job is gone; neither its end nor its name says anything of the job. Called by the job's task and by
//! the watches.

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;

/// What a job's own objects are known by: until its Job is made, by its name alone. Cloned freely.
#[derive(Debug, Clone)]
pub(super) struct Own {
    name: String,
    uid: Arc<OnceLock<String>>,
}

impl Own {
    /// The Job of this name; `uid` once that is known.
    pub(super) fn new(name: &str, uid: Option<&str>) -> Self {
        let uid = Arc::new(uid.map_or_else(OnceLock::new, |uid| OnceLock::from(uid.to_owned())));
        Self { name: name.to_owned(), uid }
    }

    /// From now on its Job is this one.
    pub(super) fn is_made(&self, uid: &str) {
        // A job has one Job; what is known already was made by an earlier try, and found.
        let _known_already = self.uid.set(uid.to_owned());
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

    /// Whether the cluster counts this Pod as one of its Job's.
    pub(super) fn has_pod(&self, pod: &Pod) -> bool {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true));
        owner.is_some_and(|owner| owner.kind == "Job" && owner.name == self.name && self.is_uid(Some(&owner.uid)))
    }

    /// Of these those that are its Pods.
    pub(super) fn pods(&self, mut all: Vec<Pod>) -> Vec<Pod> {
        all.retain(|pod| self.has_pod(pod));
        all
    }

    fn is_uid(&self, uid: Option<&str>) -> bool {
        self.uid().is_none_or(|own| uid == Some(own))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(owners: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "ownerReferences": owners}})).unwrap()
    }

    #[test]
    fn a_copy_is_none_of_its_own_under_whatever_name() {
        let own = Own::new("web", None);
        let job = |name: &str, uid: &str| serde_json::from_value(json!({"metadata": {"name": name, "uid": uid}})).unwrap();
        let owner =
            |name: &str, uid: &str| json!([{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true}]);
        assert!(own.is_job(&job("web", "1")) && own.has_pod(&pod(owner("web", "1"))));
        assert!(!own.is_job(&job("copy", "1")) && !own.has_pod(&pod(owner("copy", "1"))));
        own.is_made("1");
        assert!(own.is_job(&job("web", "1")) && own.has_pod(&pod(owner("web", "1"))));
        // Made by `kubectl replace --force`.
        assert!(!own.is_job(&job("web", "2")) && !own.has_pod(&pod(owner("web", "2"))));
        for of_nobody in [json!([]), json!([{"apiVersion": "v1", "kind": "Node", "name": "web", "uid": "1", "controller": true}])] {
            assert!(!own.has_pod(&pod(of_nobody)));
        }
        assert_eq!(own.pods(vec![pod(owner("web", "1")), pod(json!([])), pod(owner("web", "2"))]).len(), 1);
        assert!(!Own::new("web", Some("1")).is_job(&job("web", "2")));
    }
}
