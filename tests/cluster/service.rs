//! Addresses and names of Services. The cluster has neither kube-proxy nor DNS; this does for one
//! Service what these do for all: takes its address, hands connections to whatever Pod is behind it
//! at that moment, and answers who asks there for its name.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot;

use super::layout::BRIDGE;
use super::{Cluster, names, sweep};

/// Where names are asked for.
const NAMES_PORT: u16 = 53;

/// A Service that can be reached at its address, by Pods and by tests.
#[derive(Debug)]
pub struct ServiceAddress {
    address: (Ipv4Addr, u16),
    namespace: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServiceAddress {
    /// Where it is reached.
    pub fn url(&self) -> String {
        format!("http://{}:{}", self.address.0, self.address.1)
    }

    /// Fields of the spec of a Pod that is to know its name, as a cluster with DNS would set up
    /// every Pod.
    pub fn resolver(&self) -> Value {
        let searches = [
            &format!("{}.svc.cluster.local", self.namespace),
            "svc.cluster.local",
            "cluster.local",
        ];
        let options = [json!({"name": "ndots", "value": "5"})];
        json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": [self.address.0], "searches": searches, "options": options}})
    }
}

impl Drop for ServiceAddress {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _died_with_its_own_words = self.thread.take().map(JoinHandle::join);
        let _gone_with_the_bridge =
            sweep::ip(&["address", "delete", &format!("{}/32", self.address.0), "dev", BRIDGE]);
    }
}

impl Cluster {
    /// Makes a Service without Pods, so that its address is known before anything that needs it,
    /// and serves the address. Pods with this label (`key=value`) are behind it.
    ///
    /// # Panics
    /// When the API server does not take it, or its address cannot be had.
    pub fn service(&self, namespace: &str, name: &str, port: u16, label: &str) -> ServiceAddress {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"name": "http", "port": port}]}});
        self.kubectl(&["create", "--namespace", namespace, "-f", "-"], &service.to_string());
        let given = self.kubectl(
            &["get", "service", name, "--namespace", namespace, "-o", "jsonpath={.spec.clusterIP}"],
            "",
        );
        let ip: Ipv4Addr = given.trim().parse().expect("a Service has an address");
        // A test that was killed may have left it.
        sweep::ip(&["address", "replace", &format!("{ip}/32"), "dev", BRIDGE])
            .unwrap_or_else(|why| panic!("{why}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let (listener, questions) = runtime.block_on(async {
            let listener = TcpListener::bind(SocketAddr::from((ip, port)))
                .await
                .expect("the address is this machine's now");
            let questions = UdpSocket::bind(SocketAddr::from((ip, NAMES_PORT)))
                .await
                .expect("the address is this machine's now");
            (listener, questions)
        });
        let pods = Api::namespaced(runtime.block_on(self.client()), namespace);
        let (stop, stopped) = oneshot::channel();
        let (label, full_name) =
            (label.to_owned(), format!("{name}.{namespace}.svc.cluster.local"));
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(listener, pods, label, port) => {}
                    () = names::answer(questions, full_name, ip) => {}
                    _ = stopped => {}
                }
            });
        });
        ServiceAddress {
            address: (ip, port),
            namespace: namespace.to_owned(),
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

async fn accept(listener: TcpListener, pods: Api<Pod>, label: String, port: u16) {
    loop {
        let Ok((mut incoming, _)) = listener.accept().await else { continue };
        let (pods, params) = (pods.clone(), ListParams::default().labels(&label));
        tokio::spawn(async move {
            // Nobody behind it: the connection is closed, as kube-proxy refuses it.
            let Ok(found) = pods.list(&params).await else { return };
            let alive =
                found.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            let Some(ip) = alive.filter_map(|pod| pod.status?.pod_ip).next() else { return };
            let Ok(mut outgoing) = TcpStream::connect(format!("{ip}:{port}")).await else { return };
            // Either side may go away at any time.
            let _cut = tokio::io::copy_bidirectional(&mut incoming, &mut outgoing).await;
        });
    }
}
