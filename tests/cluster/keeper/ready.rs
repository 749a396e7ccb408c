//! Whether the cluster works, by its own word. Called by the keeper.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::Api;

use super::super::layout::{Layout, NODE};
use super::READY_WITHIN;

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}

async fn client(layout: &Layout) -> Option<kube::Client> {
    let kubeconfig = kube::config::Kubeconfig::read_from(layout.admin_kubeconfig()).ok()?;
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.ok()?;
    kube::Client::try_from(config).ok()
}

pub(super) async fn answers(layout: &Layout) -> bool {
    let Some(client) = client(layout).await else { return false };
    let Ok(nodes) =
        tokio::time::timeout(READY_WITHIN, Api::<Node>::all(client).list(&Default::default()))
            .await
    else {
        return false;
    };
    nodes.is_ok()
}

/// The node is ready, and the controllers have made the account that Pods run as.
pub(super) async fn can_run_pods(layout: &Layout) -> bool {
    let Some(client) = client(layout).await else { return false };
    let node = Api::<Node>::all(client.clone()).get(NODE).await;
    let conditions = node.ok().and_then(|node| node.status?.conditions).unwrap_or_default();
    let ready =
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready && Api::<ServiceAccount>::namespaced(client, "default").get("default").await.is_ok()
}

/// When the kubelet was heard of last, if Pods can run.
pub(super) async fn sign_of_life(layout: &Layout) -> Option<String> {
    let lease =
        Api::<Lease>::namespaced(client(layout).await?, "kube-node-lease").get(NODE).await.ok()?;
    let renewed = lease.spec?.renew_time?;
    can_run_pods(layout).await.then(|| renewed.0.to_string())
}
