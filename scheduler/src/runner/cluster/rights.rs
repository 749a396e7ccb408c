//! What the scheduler's account must be permitted in a cluster: one table, compared by a test with
//! the published roles in `images/kubernetes/rights`, and asked of the cluster before the first job
//! in a namespace, so that what is missing is said before anything was made.
//!
//! What always holds: a right that is known to be missing is named with verb, resource, namespace
//! and remedy; a cluster that cannot say what is permitted stops nobody.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::clusters::Cluster;
use super::faults;
use crate::compile::ClusterPlace;

/// Longest wait for the cluster to say what is permitted, before a job goes on without knowing.
const ASKED_WITHIN: Duration = Duration::from_secs(10);

/// Time until a cluster is asked again that was away a moment ago and may not know its roles yet.
const ASKED_AGAIN: Duration = Duration::from_secs(5);

/// The verbs that are needed of one kind of thing.
#[derive(Debug, Clone, Copy)]
struct Rights {
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verbs: &'static [&'static str],
    /// Only where pvn makes the namespace itself.
    own_namespace: bool,
    /// Whether a job cannot be run without it. What is not needed only tells people more.
    needed: bool,
}

const JOBS: Rights = Rights {
    group: "batch",
    resource: "jobs",
    subresource: "",
    verbs: &["get", "list", "watch", "create", "patch", "delete"],
    own_namespace: false,
    needed: true,
};

const RIGHTS: &[Rights] = &[
    JOBS,
    Rights { group: "", resource: "pods", verbs: &["list", "watch", "deletecollection"], ..JOBS },
    Rights { group: "", resource: "pods", subresource: "log", verbs: &["get"], ..JOBS },
    // Whoever may change a Secret may read it.
    Rights { group: "", resource: "secrets", verbs: &["create"], ..JOBS },
    Rights { group: "", resource: "events", verbs: &["list"], needed: false, ..JOBS },
    Rights { group: "", resource: "namespaces", verbs: &["get"], needed: false, ..JOBS },
    Rights {
        group: "",
        resource: "namespaces",
        verbs: &["create", "patch"],
        own_namespace: true,
        ..JOBS
    },
];

/// A right that the account does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    verb: &'static str,
    resource: String,
    namespace: String,
    /// Whether a job cannot be run without it.
    pub(super) needed: bool,
    own_namespace: bool,
    /// What the cluster's authorizer said of it, if anything.
    said: String,
}

/// What these rights at one place are, in a sentence for people.
pub(super) fn sentence(missing: &[Missing]) -> String {
    let rights: Vec<_> =
        missing.iter().map(|right| format!("`{}` {}", right.verb, right.resource)).collect();
    let namespace = missing.first().map(|right| right.namespace.as_str()).unwrap_or_default();
    let said = missing.iter().map(|right| right.said.as_str()).find(|said| !said.is_empty());
    let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
    format!(
        "the scheduler's account may not {} in the namespace `{namespace}`{said}",
        rights.join(", ")
    )
}

/// What a request that the cluster forbids lacks at this place, and what to do about it.
pub(super) fn forbidden(
    place: &ClusterPlace,
    verb: &'static str,
    resource: &str,
    said: &str,
) -> (String, String) {
    let (resource, namespace, said) =
        (resource.to_owned(), place.namespace.clone(), said.to_owned());
    let missing = Missing {
        verb,
        resource,
        namespace,
        needed: true,
        own_namespace: place.own_namespace,
        said,
    };
    let remedy = missing.remedy();
    (sentence(&[missing]), remedy)
}

impl Missing {
    /// What to do about it.
    pub(super) fn remedy(&self) -> String {
        let Self { namespace, .. } = self;
        if self.own_namespace {
            return "give it the rights in images/kubernetes/rights for all namespaces \
                    (images/kubernetes/cluster-wide), or name a namespace in \
                    `containerOrchestration`"
                .to_owned();
        }
        format!(
            "bind the ClusterRole of images/kubernetes/rights to it: `kubectl create rolebinding \
             pvn-jobs --clusterrole pvn-jobs --serviceaccount pvn:pvn --namespace {namespace}`, \
             with the scheduler's own account where it is another than pvn:pvn of \
             images/kubernetes"
        )
    }
}

/// The rights that are missing for jobs at this place. That none is missing that they need is
/// remembered.
///
/// # Errors
/// Why the cluster does not say, for people.
pub(super) async fn missing(
    cluster: &Cluster,
    place: &ClusterPlace,
    is_apply: bool,
) -> Result<Vec<Missing>, String> {
    let missing = match tokio::time::timeout(ASKED_WITHIN, reviewed(cluster, place, is_apply)).await
    {
        Ok(missing) => missing.map_err(|error| faults::of_client(&error))?,
        Err(_late) => return Err(format!("no answer within {} s", ASKED_WITHIN.as_secs())),
    };
    if !missing.iter().any(|missing| missing.needed) {
        cluster
            .permitted
            .lock()
            .expect("nobody panics with the lock")
            .insert(place.namespace.clone());
    }
    Ok(missing)
}

async fn reviewed(
    cluster: &Cluster,
    place: &ClusterPlace,
    is_apply: bool,
) -> kube::Result<Vec<Missing>> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let wanted = RIGHTS.iter().filter(|rights| place.own_namespace || !rights.own_namespace);
    let each = wanted.flat_map(|rights| rights.verbs.iter().map(move |verb| (rights, *verb)));
    let asked = each.map(async |(rights, verb)| {
        cluster.throttle.pass(is_apply).await;
        let review =
            reviews.create(&PostParams::default(), &review(rights, verb, &place.namespace)).await?;
        let status = review.status.unwrap_or_default();
        let kind = if rights.subresource.is_empty() {
            String::new()
        } else {
            format!("/{}", rights.subresource)
        };
        let group =
            if rights.group.is_empty() { String::new() } else { format!(".{}", rights.group) };
        Ok((!status.allowed).then(|| Missing {
            verb,
            resource: format!("{}{group}{kind}", rights.resource),
            namespace: place.namespace.clone(),
            needed: rights.needed,
            own_namespace: place.own_namespace,
            said: status.reason.unwrap_or_default(),
        }))
    });
    let answers: kube::Result<Vec<_>> = join_all(asked).await.into_iter().collect();
    Ok(answers?.into_iter().flatten().collect())
}

fn review(rights: &Rights, verb: &str, namespace: &str) -> SelfSubjectAccessReview {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    // A namespace is made everywhere; everything else is in one.
    let (namespace, name) =
        if rights.own_namespace { (None, text(namespace)) } else { (text(namespace), None) };
    let attributes = ResourceAttributes {
        group: text(rights.group),
        resource: text(rights.resource),
        subresource: text(rights.subresource),
        verb: text(verb),
        namespace,
        name,
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
}

/// Refuses a job whose account lacks a right, before anything is made for it. Asked once for each
/// namespace of a connection.
///
/// # Errors
/// What is missing, and the remedy, for people.
pub(super) async fn check(
    cluster: &Cluster,
    place: &ClusterPlace,
    is_apply: bool,
) -> Result<(), String> {
    if cluster.permitted.lock().expect("nobody panics with the lock").contains(&place.namespace) {
        return Ok(());
    }
    loop {
        let missing = match missing(cluster, place, is_apply).await {
            Ok(missing) => missing,
            // Its requests will say what is wrong.
            Err(why) => {
                tracing::debug!(
                    why,
                    namespace = place.namespace,
                    "the cluster does not say what is permitted"
                );
                return Ok(());
            }
        };
        let needed: Vec<_> = missing.into_iter().filter(|missing| missing.needed).collect();
        let Some(first) = needed.first() else { return Ok(()) };
        if !cluster.was_away_lately() {
            return Err(format!("{}; {}", sentence(&needed), first.remedy()));
        }
        tokio::time::sleep(ASKED_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use config::yaml::{self, NodeKind, YamlNode};

    use super::*;

    /// Group, resource and verb.
    type Flat = BTreeSet<(String, String, String)>;

    fn texts(node: &YamlNode) -> Vec<String> {
        let NodeKind::List(items) = &node.kind else { panic!("no list: {node:?}") };
        let text = |item: &YamlNode| match &item.kind {
            NodeKind::Scalar { text, .. } => text.clone(),
            other => panic!("no text: {other:?}"),
        };
        items.iter().map(text).collect()
    }

    fn field<'a>(node: &'a YamlNode, key: &str) -> Option<&'a YamlNode> {
        let NodeKind::Mapping(entries) = &node.kind else { panic!("no mapping: {node:?}") };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    #[test]
    fn the_published_roles_hold_exactly_the_rights_of_the_table() {
        let text = include_str!("../../../../images/kubernetes/rights/roles.yaml");
        let mut published = Flat::new();
        for range in yaml::documents(text) {
            let document = yaml::parse(&text[range]).unwrap().unwrap();
            let Some(YamlNode { kind: NodeKind::List(rules), .. }) = field(&document, "rules")
            else {
                panic!("a role without rules")
            };
            for rule in rules {
                for group in texts(field(rule, "apiGroups").unwrap()) {
                    for resource in texts(field(rule, "resources").unwrap()) {
                        let verbs = texts(field(rule, "verbs").unwrap());
                        published.extend(
                            verbs.into_iter().map(|verb| (group.clone(), resource.clone(), verb)),
                        );
                    }
                }
            }
        }
        let mut needed = Flat::new();
        for rights in RIGHTS {
            let slash = if rights.subresource.is_empty() { "" } else { "/" };
            let resource = format!("{}{slash}{}", rights.resource, rights.subresource);
            needed.extend(
                rights
                    .verbs
                    .iter()
                    .map(|verb| (rights.group.to_owned(), resource.clone(), (*verb).to_owned())),
            );
        }
        assert_eq!(published, needed);
    }
}
