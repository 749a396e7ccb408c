//! What a command needs on a Kubernetes cluster: the place of its Job, and the Job itself, as a
//! `taskConfig` or a Job file says it. A `taskConfig` is shorthand for a Job file: from here on
//! there is one form. What is ours in a Job (name, labels, environment, wrapper) `runner::cluster`
//! adds. Called by `commands`.

use std::collections::{BTreeMap, BTreeSet};

use config::{
    JobHost, KubernetesRuntime, Medium, ProxyRuntime, ResourceList, Runtime, SecurityContext,
    TaskConfig, VolumeSource,
};
use schema::id::{BlobId, RuntimeName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::configs::Configs;
use super::problem::{DocumentField, DocumentKey, Problems};

/// Name of the init container that brings the wrapper along, and of the volume where it puts it.
pub const WRAPPER_CONTAINER: &str = "pvn-wrapper";

/// Directory in a job's container where the wrapper is put.
pub const WRAPPER_DIRECTORY: &str = "/pvn";

/// Name of the volume, and directory in the container, with those who may vouch for the scheduler.
pub const AUTHORITIES: &str = "pvn-authorities";
pub const AUTHORITIES_DIRECTORY: &str = "/pvn-authorities";

/// What is wrong with another container of that name.
pub(super) fn name_is_taken() -> String {
    format!("a container is called `{WRAPPER_CONTAINER}`, as the one that brings the wrapper along")
}

/// The image that the wrapper is taken from when the config names none: that of the same version.
const WRAPPER_IMAGE: &str = concat!("pvn-wrapper:", env!("CARGO_PKG_VERSION"));

/// What the namespaces start with that are ours to make.
const NAMESPACE_PREFIX: &str = "pvn-proxy-runtime-";

/// Longest name of a namespace. Source: RFC 1123 labels, which Kubernetes uses.
const NAMESPACE_LIMIT: usize = 63;

/// How long a finished Job is kept, seconds, when neither the config nor its file says. Source:
/// docs/config.md, `ttl`.
pub const DEFAULT_TTL_S: i64 = 3600;

/// A place on a Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlace {
    /// The runtime document that stands for the cluster; for messages.
    pub cluster: RuntimeName,
    /// The custom runtime whose jobs these are; for labels.
    pub runtime: RuntimeName,
    /// Path of a kubeconfig on the scheduler's machine; `None` = its own cluster, else the default
    /// kubeconfig.
    pub kubeconfig: Option<String>,
    /// Context of the kubeconfig; `None` = its current one.
    pub context: Option<String>,
    /// Image whose wrapper is put before each command; `None` = commands are run as they are.
    pub wrapper_image: Option<String>,
    /// Where the Jobs are.
    pub namespace: String,
    /// Whether the namespace is ours, made when it is missing.
    pub own_namespace: bool,
}

impl ClusterPlace {
    /// Where the jobs of the custom runtime `runtime` run whose `proxyRuntime` names the cluster
    /// `cluster`.
    pub(super) fn new(
        proxy: &ProxyRuntime,
        kubernetes: Option<&KubernetesRuntime>,
        runtime: &RuntimeName,
    ) -> Self {
        let given = proxy
            .container_orchestration
            .as_ref()
            .and_then(|place| place.k8s.as_ref()?.namespace.clone());
        let wrapper = kubernetes
            .and_then(|kubernetes| kubernetes.wrapper.as_ref())
            .filter(|wrapper| wrapper.inject);
        Self {
            cluster: proxy.runtime.clone(),
            runtime: runtime.clone(),
            kubeconfig: kubernetes.and_then(|kubernetes| kubernetes.kubeconfig.clone()),
            context: kubernetes.and_then(|kubernetes| kubernetes.context.clone()),
            wrapper_image: wrapper
                .map(|wrapper| wrapper.image.clone().unwrap_or_else(|| WRAPPER_IMAGE.to_owned())),
            own_namespace: given.is_none(),
            namespace: given.unwrap_or_else(|| own_namespace(runtime)),
        }
    }

    /// Whether it stands for a cluster that no custom runtime names yet, so that no job will ever
    /// run here.
    pub fn is_cluster_alone(&self) -> bool {
        self.cluster == self.runtime
    }
}

/// The places where the jobs of a custom runtime run; for a Kubernetes runtime those of all custom
/// runtimes that name it, or the cluster alone ([`ClusterPlace::is_cluster_alone`]). Empty when no
/// cluster is concerned.
pub fn cluster_places(configs: &Configs, name: &RuntimeName) -> Vec<ClusterPlace> {
    let place = |runtime: &Runtime| {
        let commands = runtime.role().commands?;
        let proxy = &commands.custom().proxy_runtime;
        let Some(JobHost::Kubernetes(kubernetes)) = configs.runtime(&proxy.runtime)?.role().host
        else {
            return None;
        };
        (runtime.name == *name || proxy.runtime == *name)
            .then(|| ClusterPlace::new(proxy, kubernetes, &runtime.name))
    };
    let mut places: Vec<_> = configs.runtimes().filter_map(place).collect();
    if places.is_empty()
        && let Some(JobHost::Kubernetes(kubernetes)) =
            configs.runtime(name).and_then(|runtime| runtime.role().host)
    {
        let proxy = ProxyRuntime { runtime: name.clone(), container_orchestration: None };
        places.push(ClusterPlace::new(&proxy, kubernetes, name));
    }
    places
}

/// The places with a given namespace of which a document has changed: the custom runtime's or its
/// cluster's.
pub fn given_places(configs: &Configs, changed: &BTreeSet<DocumentKey>) -> Vec<ClusterPlace> {
    let has_changed = |name: &RuntimeName| changed.contains(&DocumentKey::Runtime(name.clone()));
    let changed = configs.runtimes().filter(|runtime| has_changed(&runtime.name));
    let places = changed
        .flat_map(|runtime| cluster_places(configs, &runtime.name))
        .filter(|place| !place.own_namespace);
    let by_runtime: BTreeMap<_, _> = places.map(|place| (place.runtime.clone(), place)).collect();
    by_runtime.into_values().collect()
}

/// Adds what is wrong with places whose given namespace is not there.
pub(super) fn add_absent(configs: &Configs, absent: &[ClusterPlace], problems: &mut Problems) {
    for ClusterPlace { runtime, cluster, namespace, .. } in absent {
        let block = configs.runtime(runtime).map(|runtime| runtime.role().kind);
        let fields =
            block.into_iter().chain(["proxyRuntime", "containerOrchestration", "k8s", "namespace"]);
        let place = fields
            .fold(DocumentField::of(DocumentKey::Runtime(runtime.clone())), |place, field| {
                place.field(field)
            });
        let problem = place
            .problem(format!("there is no namespace `{namespace}` on the cluster `{cluster}`"));
        problems.add(
            problem.help("create it, or leave `containerOrchestration` out and pvn makes one"),
        );
    }
}

/// A name that is too long is cut, and stays one of its own by a digest.
fn own_namespace(runtime: &RuntimeName) -> String {
    let name = format!("{NAMESPACE_PREFIX}{runtime}");
    if name.len() <= NAMESPACE_LIMIT {
        return name;
    }
    const DIGITS: usize = 8;
    let digest = BlobId::of(name.as_bytes()).to_string();
    let digits = digest.rsplit(':').next().unwrap_or_default();
    format!("{}-{}", &name[..NAMESPACE_LIMIT - DIGITS - 1].trim_end_matches('-'), &digits[..DIGITS])
}

/// The texts of a task, with the values put in.
#[derive(Debug)]
pub(super) struct TaskTexts {
    pub(super) name: String,
    pub(super) image: Option<String>,
    pub(super) entrypoint: Vec<String>,
    pub(super) cmd: Vec<String>,
    pub(super) working_directory: Option<String>,
}

/// The Job that a `taskConfig` stands for.
pub(super) fn task_job(
    task: &TaskConfig,
    texts: TaskTexts,
    place: &DocumentField,
    problems: &mut Problems,
) -> Option<Value> {
    if task.leave_running {
        let problem = place.field("leaveRunning").problem(
            "`leaveRunning` has no meaning on a Kubernetes runtime: a Pod ends with its command",
        );
        problems.add(problem.help("take it out, or run the command on `local`"));
    }
    let Some(image) = texts.image else {
        let problem =
            place.field("program").problem("there is no image to run on a Kubernetes runtime");
        problems
            .add(problem.help("write `image: NAME:TAG`, or `imageTag` and `imageRegistryInfo`"));
        return None;
    };
    let mut container = Map::new();
    container.insert("name".to_owned(), texts.name.into());
    container.insert("image".to_owned(), image.into());
    put_list(
        &mut container,
        "command",
        texts.entrypoint.iter().map(|text| verbatim(text).into()).collect(),
    );
    put_list(&mut container, "args", texts.cmd.iter().map(|text| verbatim(text).into()).collect());
    if let Some(directory) = texts.working_directory {
        container.insert("workingDir".to_owned(), directory.into());
    }
    if let Some(resources) = &task.program.resources {
        let mut amounts = Map::new();
        for (key, list) in [("requests", &resources.requests), ("limits", &resources.limits)] {
            if let Some(list) = list {
                amounts.insert(key.to_owned(), amounts_of(list));
            }
        }
        container.insert("resources".to_owned(), amounts.into());
    }
    if let Some(context) = &task.security_context {
        container.insert("securityContext".to_owned(), said(context));
    }
    let mount = |volume: &config::Volume| {
        let config::Mount { mount_path, read_only } = &volume.mount;
        json!({"name": volume.name, "mountPath": mount_path, "readOnly": read_only})
    };
    put_list(&mut container, "volumeMounts", task.volumes.iter().map(mount).collect());

    let mut pod = Map::new();
    // A Service that is called `pvn-…` would bring variables that are called like ours.
    pod.insert("enableServiceLinks".to_owned(), false.into());
    if let Some(k8s) = &task.k8s {
        pod.insert("serviceAccountName".to_owned(), k8s.service_account.clone().into());
    }
    if let Some(grace) = task.stop_grace {
        // In whole seconds, the last one begun.
        let seconds = (grace.as_ms() + 999).div_euclid(1000);
        pod.insert("terminationGracePeriodSeconds".to_owned(), seconds.into());
    }
    put_list(&mut pod, "volumes", task.volumes.iter().map(volume).collect());
    pod.insert("containers".to_owned(), json!([container]));
    let ttl_s = task.ttl.map_or(DEFAULT_TTL_S, |ttl| ttl.as_ms().div_euclid(1000));
    Some(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "spec": {"ttlSecondsAfterFinished": ttl_s, "template": {"spec": pod}},
    }))
}

/// A text that Kubernetes leaves as it is: it takes `$(NAME)` in commands, arguments and variables
/// for a reference, and `$$` for a dollar sign.
pub fn verbatim(text: &str) -> String {
    text.replace('$', "$$")
}

fn put_list(object: &mut Map<String, Value>, key: &str, list: Vec<Value>) {
    if !list.is_empty() {
        object.insert(key.to_owned(), list.into());
    }
}

fn amounts_of(list: &ResourceList) -> Value {
    let amounts = [("cpu", &list.cpu), ("memory", &list.memory)];
    Value::Object(
        amounts
            .into_iter()
            .filter_map(|(key, amount)| Some((key.to_owned(), amount.clone()?.into())))
            .collect(),
    )
}

/// What is said of a context, and nothing of what is not.
fn said(context: &SecurityContext) -> Value {
    fn filled(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let empty =
                    |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                // No deeper than the type.
                fields
                    .into_iter()
                    .filter(|(_, value)| !empty(value))
                    .map(|(key, value)| (key, filled(value)))
                    .collect()
            }
            other => other,
        }
    }
    filled(serde_json::to_value(context).expect("our own types have JSON forms"))
}

fn volume(volume: &config::Volume) -> Value {
    match &volume.source {
        VolumeSource::Secret(secret) => {
            json!({"name": volume.name, "secret": {"secretName": secret.secret_name}})
        }
        VolumeSource::Ephemeral(ephemeral) => match ephemeral.medium {
            Medium::Memory => json!({"name": volume.name, "emptyDir": {"medium": "Memory"}}),
            Medium::Default => json!({"name": volume.name, "emptyDir": {}}),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_of_ours_is_named_after_the_runtime_and_stays_short() {
        let name = |runtime: &str| own_namespace(&runtime.parse().unwrap());
        assert_eq!(name("my-runtime"), "pvn-proxy-runtime-my-runtime");
        let long = "a".repeat(63);
        assert_eq!(name(&long).len(), NAMESPACE_LIMIT);
        assert_ne!(name(&long), name(&format!("{}b", "a".repeat(62))), "two long names stay two");
    }
}
