//! What a Job file may not say in the place where its command runs. Called by `job_file`.

use std::collections::BTreeSet;
use std::path::Path;

use config::yaml::{NodeKind, YamlNode};
use schema::wire::SECRET_KEYS_VARIABLE;

use super::super::cluster::name_is_taken;
use super::super::problem::Problems;
use super::super::{
    AUTHORITIES, AUTHORITIES_DIRECTORY, ClusterPlace, WRAPPER_CONTAINER, WRAPPER_DIRECTORY,
};
use super::tree::{at, items, scalar};
use super::{JobFile, POD};

/// Fields of the Job that may say only this, and why.
const RESERVED: [(&str, &str, &str); 4] = [
    ("completions", "1", "the Job is one run of one command"),
    ("parallelism", "1", "the Job is one run of one command"),
    (
        "podReplacementPolicy",
        "Failed",
        "the cluster would start a second Pod beside one that has yet to end",
    ),
    (
        "managedBy",
        "kubernetes.io/job-controller",
        "what else runs Jobs may run the command twice, or never",
    ),
];

/// Times that overflow in the cluster: where each stands, how long it may be in seconds, what a
/// longer one would do, and what to do.
const TOO_LONG: [(&str, i64, &str, &str); 2] = [
    (
        "/spec/activeDeadlineSeconds",
        JOB_DEADLINE_LIMIT_S,
        "end the Job at once",
        "take it out, or give `timeout`",
    ),
    (
        "/spec/template/spec/terminationGracePeriodSeconds",
        GRACE_LIMIT_S,
        "leave the command no time to end at all",
        "give as many seconds as the command may need",
    ),
];

/// Longest `terminationGracePeriodSeconds`, as for other times of a Pod: a kubelet adds to it
/// before it counts in nanoseconds, and what overflows is killed at once (seen with Kubernetes 1.34
/// and 9223372036, which would fit by itself).
const GRACE_LIMIT_S: i64 = i32::MAX as i64;

/// Longest `activeDeadlineSeconds`: the cluster counts it in nanoseconds of 63 bits, and what
/// overflows is over at once (seen with Kubernetes 1.34).
pub const JOB_DEADLINE_LIMIT_S: i64 = i64::MAX / 1_000_000_000;

/// Where the containers of a Pod are. They share their names.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

impl JobFile {
    /// What would make more of it than one command in the place that was given.
    pub(super) fn check_cluster(
        &self,
        place: &ClusterPlace,
        container: &YamlNode,
        problems: &mut Problems,
    ) {
        self.check_fields(place, problems);
        self.check_ours(container, problems);
        self.check_names(problems);
        if scalar(container, "/name").is_none() {
            self.tell(container, "the container has no `name`".to_owned(), None, problems);
        }
    }

    /// The containers of the Pod of both kinds, which share their names.
    fn containers(&self) -> impl Iterator<Item = &YamlNode> {
        CONTAINERS.iter().flat_map(move |list| items(&self.tree, &format!("{POD}/{list}")))
    }

    /// Fields of the Job itself that cannot say what they say.
    fn check_fields(&self, place: &ClusterPlace, problems: &mut Problems) {
        for (field, only, why) in RESERVED {
            if let Some(node) = at(&self.tree, &format!("/spec/{field}"))
                && !matches!(&node.kind, NodeKind::Scalar { text, .. } if text == only)
            {
                self.tell(
                    node,
                    format!("`{field}` is not {only}: {why}"),
                    Some("take it out"),
                    problems,
                );
            }
        }
        for (field, limit_s, would, help) in TOO_LONG {
            if let Some(node) = at(&self.tree, field)
                && let NodeKind::Scalar { text, .. } = &node.kind
                && text.parse::<i128>().is_ok_and(|seconds| seconds > i128::from(limit_s))
            {
                let name = field.rsplit('/').next().unwrap_or_default();
                let what = format!(
                    "`{name}` is {text}: Kubernetes counts no more than {limit_s}, and would \
                     {would}"
                );
                self.tell(node, what, Some(help), problems);
            }
        }
        if let Some(node) = at(&self.tree, "/metadata/namespace")
            && !matches!(&node.kind, NodeKind::Scalar { text, .. } if *text == place.namespace)
        {
            let help =
                "take it out, or name the namespace in `containerOrchestration.k8s.namespace`";
            self.tell(
                node,
                format!("the Job runs in namespace `{}`", place.namespace),
                Some(help),
                problems,
            );
        }
    }

    /// Names and paths that are ours there.
    fn check_ours(&self, container: &YamlNode, problems: &mut Problems) {
        let is_ours = |other: &&YamlNode| scalar(other, "/name") == Some(WRAPPER_CONTAINER);
        for taken in self.containers().filter(is_ours) {
            self.tell(taken, name_is_taken(), Some("call it something else"), problems);
        }
        let volumes = items(&self.tree, &format!("{POD}/volumes"));
        for (volume, name) in
            volumes.iter().filter_map(|volume| Some((volume, scalar(volume, "/name")?)))
        {
            if [WRAPPER_CONTAINER, AUTHORITIES].contains(&name) {
                self.tell(
                    volume,
                    format!("a volume is called `{name}`, as one of pvn's own"),
                    Some("call it something else"),
                    problems,
                );
            }
        }
        for mount in items(container, "/volumeMounts") {
            let Some(path) = scalar(mount, "/mountPath") else { continue };
            // By its parts: `//pvn/` is the same place, and nothing can be mounted within ours,
            // which nobody may write to.
            let ours = [WRAPPER_DIRECTORY, AUTHORITIES_DIRECTORY]
                .into_iter()
                .find(|ours| Path::new(path).starts_with(ours));
            if let Some(ours) = ours {
                self.tell(
                    mount,
                    format!("a volume is mounted at `{path}`, and pvn mounts one at `{ours}`"),
                    Some("take another path"),
                    problems,
                );
            }
        }
    }

    fn check_names(&self, problems: &mut Problems) {
        let volumes = items(&self.tree, &format!("{POD}/volumes"));
        self.check_once(self.containers(), "/name", "container is called", problems);
        self.check_once(volumes.iter(), "/name", "volume is called", problems);
        for container in self.containers() {
            self.check_once(
                items(container, "/env").iter(),
                "/name",
                "variable is called",
                problems,
            );
            self.check_once(
                items(container, "/volumeMounts").iter(),
                "/mountPath",
                "volume is mounted at",
                problems,
            );
        }
    }

    /// No two have one name, or one place: an API server takes no such Job by server-side apply,
    /// and blames itself for it (500, seen with Kubernetes 1.34).
    fn check_once<'a>(
        &self,
        named: impl Iterator<Item = &'a YamlNode>,
        by: &str,
        what: &str,
        problems: &mut Problems,
    ) {
        let mut seen = BTreeSet::new();
        for (node, name) in named.filter_map(|node| Some((node, scalar(node, by)?))) {
            if !seen.insert(name) {
                self.tell(
                    node,
                    format!("a {what} `{name}`, as one before it"),
                    Some("take one of them out"),
                    problems,
                );
            }
        }
    }

    /// A Secret of which every key becomes a variable: pvn may not read which those are, and what
    /// it does not know nobody masks.
    pub(super) fn check_secrets(&self, container: &YamlNode, problems: &mut Problems) {
        if items(container, "/env")
            .iter()
            .any(|variable| scalar(variable, "/name") == Some(SECRET_KEYS_VARIABLE))
        {
            return;
        }
        for secret in
            items(container, "/envFrom").iter().filter_map(|source| at(source, "/secretRef"))
        {
            let name = scalar(secret, "/name").unwrap_or_default();
            let what = format!(
                "nobody here knows which variables `envFrom` takes from the Secret `{name}`, so \
                 they cannot be masked in what the command prints"
            );
            let help = "name those that are secret in `PVN_SECRET_KEYS` in the container's `env`, \
                        with commas between, or take each by `valueFrom.secretKeyRef`";
            self.tell(secret, what, Some(help), problems);
        }
    }

    pub(super) fn check_local(&self, container: &YamlNode, problems: &mut Problems) {
        let mut tell = |node: Option<&YamlNode>, what: &str| {
            if let Some(node) = node {
                let help = "use files and variables of this machine";
                self.tell(
                    node,
                    format!("not supported yet: {what} of a Job file on this machine"),
                    Some(help),
                    problems,
                );
            }
        };
        tell(items(&self.tree, &format!("{POD}/initContainers")).first(), "`initContainers`");
        tell(items(container, "/volumeMounts").first(), "`volumeMounts`");
        tell(items(container, "/envFrom").first(), "`envFrom`");
        for variable in items(container, "/env") {
            tell(at(variable, "/valueFrom"), "`valueFrom`");
        }
    }
}
