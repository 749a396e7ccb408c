//! Whether given namespaces are there: asked when configs are applied, so that a slip is told
//! before the first job fails. Called through [`crate::runner::ClusterQuestions::absent`].
//!
//! What always holds: a cluster that is away, or does not let the account look, holds nobody up for
//! longer than the limit and keeps nothing from being applied; the first job will tell.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::ClusterRunner;
use super::clusters::Clusters;
use super::faults;
use crate::compile::ClusterPlace;

/// Longest wait for all clusters together. Only whoever applies configs that name them waits.
const ASKED_WITHIN: Duration = Duration::from_secs(5);

/// Namespaces that are asked for in one go; the first jobs tell of the rest. Some more than one
/// cluster's throttle lets through within the limit make no sense.
const ASKED_LIMIT: usize = 100;

impl ClusterRunner {
    /// Those of these places whose namespace is known not to be there.
    pub async fn absent(&self, places: Vec<ClusterPlace>) -> Vec<ClusterPlace> {
        // With the kubeconfigs as they are now.
        let clusters = Clusters::default();
        let mut wanted: BTreeMap<_, Vec<ClusterPlace>> = BTreeMap::new();
        for place in places {
            let key = (place.kubeconfig.clone(), place.context.clone(), place.namespace.clone());
            wanted.entry(key).or_default().push(place);
        }
        let asked = wanted.into_values().take(ASKED_LIMIT).map(async |places| {
            let is_there =
                tokio::time::timeout(ASKED_WITHIN, is_there(&clusters, places.first()?)).await;
            (is_there == Ok(Ok(false))).then_some(places)
        });
        join_all(asked).await.into_iter().flatten().flatten().collect()
    }
}

async fn is_there(clusters: &Clusters, place: &ClusterPlace) -> Result<bool, ()> {
    let cluster = clusters
        .get(place)
        .await
        .map_err(|why| tracing::debug!(why, "a cluster cannot be asked for a namespace"))?;
    cluster.throttle.pass(false).await;
    let found = Api::<Namespace>::all(cluster.client).get_opt(&place.namespace).await;
    found.map(|found| found.is_some()).map_err(|error| {
        tracing::debug!(
            why = faults::of_client(&error),
            "a cluster does not say whether a namespace is there"
        );
    })
}
