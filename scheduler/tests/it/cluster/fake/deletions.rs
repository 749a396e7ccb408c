//! How objects of the fake API server go.

use super::*;

impl Fake {
    /// Deletes what has this in its path and no finalizer; the watches are told.
    pub(in super::super) fn delete(&self, part: &str) {
        self.delete_if(part, |_| true);
    }

    pub(super) fn delete_if(&self, part: &str, also: impl Fn(&Value) -> bool) {
        let mut world = self.world.lock().unwrap();
        let goes = |path: &str, object: &Value| {
            path.contains(part) && object["metadata"]["finalizers"].is_null() && also(object)
        };
        let paths: Vec<String> = world
            .objects
            .iter()
            .filter(|(path, object)| goes(path, object))
            .map(|(path, _)| path.clone())
            .collect();
        for path in paths {
            let object = world.objects.remove(&path).expect("it is there");
            // Nobody may be watching.
            let _ = self
                .changes
                .send(Change::Event(list_of(&path), json!({"type": "DELETED", "object": object})));
        }
    }

    /// What a request for one object's end does, under its preconditions.
    pub(super) fn remove(&self, path: &str, options: &Value) -> Result<Value, u16> {
        let removed = self.world.lock().unwrap().objects.get(path).cloned().ok_or(404_u16)?;
        let wanted = &options["preconditions"];
        let is_other =
            |field: &str| !wanted[field].is_null() && wanted[field] != removed["metadata"][field];
        if is_other("uid") || is_other("resourceVersion") {
            return Err(409);
        }
        self.delete(path);
        if path.contains("/jobs/") {
            // As the garbage collector would, once the node has said what became of its containers.
            self.end_unmade();
            self.collect();
        }
        Ok(removed)
    }

    /// Deletes the Pod of this number ([`Fake::try_pod`]).
    pub(in super::super) fn delete_pod(&self, number: u32) {
        let name = self.object("/jobs/").expect("a Job was made")["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        self.delete(&format!("/pods/{name}-{number}"));
    }

    /// What a node says of a container that it has not made when its Pod is deleted.
    fn end_unmade(&self) {
        let mut world = self.world.lock().unwrap();
        let pods: Vec<(String, Value)> = world
            .objects
            .iter()
            .filter(|(path, _)| path.contains("/pods/"))
            .map(|(path, pod)| (path.clone(), pod.clone()))
            .collect();
        for (path, mut pod) in pods {
            let Some(state) = pod
                .pointer_mut("/status/containerStatuses/0/state")
                .filter(|state| !state["waiting"].is_null())
            else {
                continue;
            };
            *state = json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "could not be located"}});
            pod["status"]["phase"] = "Failed".into();
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            self.change(&mut world, &path, pod);
        }
    }

    /// Asks the Pod that a field selector names to end: it is there until its node says that it
    /// has.
    pub(super) fn ask_to_end(&self, uri: &Uri, body: &[u8]) -> Value {
        let Query(asked) = Query::<BTreeMap<String, String>>::try_from_uri(uri).unwrap();
        let name = asked["fieldSelector"].strip_prefix("metadata.name=").expect("one is named");
        let path = format!("{}/{name}", uri.path());
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut world = self.world.lock().unwrap();
        let mut pod = world.objects.get(&path).cloned().expect("it is there");
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] =
            body.get("gracePeriodSeconds").cloned().unwrap_or(json!(30));
        self.change(&mut world, &path, pod);
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": []})
    }

    /// Takes an object away without telling the watches, as when an event is lost.
    pub(in super::super) fn lose(&self, kind: &str) {
        self.world.lock().unwrap().objects.retain(|path, _| !path.contains(kind));
    }
}
