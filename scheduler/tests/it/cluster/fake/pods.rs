//! The Pods of the fake API server's only Job, as tests put them there.

use serde_json::{Value, json};

use super::{Fake, merge, pod_of};

impl Fake {
    /// Gives the only Job a Pod of this number, younger than those with smaller ones.
    pub(in super::super) fn try_pod(&self, number: u32, status: Value) {
        self.try_pod_as(number, json!({}), status);
    }

    /// The same with more metadata.
    pub(in super::super) fn try_pod_as(&self, number: u32, more: Value, status: Value) {
        let (name, mut metadata) = self.its_pod(&number.to_string(), &format!("p{number}"));
        metadata["creationTimestamp"] = format!("2026-01-01T00:00:{number:02}Z").into();
        merge(&mut metadata, more);
        self.put(
            &format!("/api/v1/namespaces/n/pods/{name}"),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}),
        );
    }

    /// Gives the only Job a Pod, or its Pod another state.
    pub(in super::super) fn pod(&self, metadata: Value, status: Value) {
        self.pod_as(metadata, Value::Null, status);
    }

    /// The same of a Pod that is to be so.
    pub(in super::super) fn pod_as(&self, metadata: Value, spec: Value, status: Value) {
        let (name, own) = self.its_pod("x", "p");
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec, "status": status});
        merge(&mut pod["metadata"], metadata);
        self.put(&format!("/api/v1/namespaces/n/pods/{name}"), pod);
    }

    /// Name and metadata of a Pod of the only Job; of one that is there already when its Job is
    /// gone.
    fn its_pod(&self, suffix: &str, uid: &str) -> (String, Value) {
        if let Some(job) = self.object("/jobs/") {
            let name = format!("{}-{suffix}", job["metadata"]["name"].as_str().unwrap());
            let metadata = pod_of(&job, &name, uid);
            return (name, metadata);
        }
        let world = self.world.lock().unwrap();
        let is_it = |path: &str| path.contains("/pods/") && path.ends_with(&format!("-{suffix}"));
        let (_, pod) =
            world.objects.iter().find(|(path, _)| is_it(path)).expect("a Job or its Pod is there");
        (pod["metadata"]["name"].as_str().unwrap().to_owned(), pod["metadata"].clone())
    }

    /// Asks Pods whose containers run to end, and takes the others away.
    pub(super) fn collect(&self) {
        let mut world = self.world.lock().unwrap();
        let runs =
            |pod: &Value| !pod["status"]["containerStatuses"][0]["state"]["running"].is_null();
        let running =
            world.objects.iter().filter(|(path, pod)| path.contains("/pods/") && runs(pod));
        for (path, mut pod) in
            running.map(|(path, pod)| (path.clone(), pod.clone())).collect::<Vec<_>>()
        {
            if pod["metadata"]["deletionTimestamp"].is_null() {
                merge(
                    &mut pod["metadata"],
                    json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}),
                );
                self.change(&mut world, &path, pod);
            }
        }
        drop(world);
        self.delete_if("/pods/", |pod| !runs(pod));
    }
}
