//! The files that the parts read. What was not obvious about a setting stands beside it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::layout::{ADDRESS, BRIDGE, FIRST_POD, Layout, NETWORK, SERVER};
use super::parts::CNI;

/// Users of the API server: file name of the kubeconfig, user, groups. Tokens are made anew for
/// each cluster.
const USERS: &[(&str, &str, &str)] = &[
    ("admin", "pvn-test-admin", "system:masters"),
    ("controller-manager", "pvn-test-controllers", "system:masters"),
    ("scheduler", "pvn-test-scheduler", "system:masters"),
    ("kubelet", "pvn-test-kubelet", "system:masters"),
];

/// Everything that has to be there before the API server starts.
pub(super) fn write(layout: &Layout) -> io::Result<()> {
    let state = layout.state();
    for directory in ["cni", "kubelet", "pod-logs"] {
        fs::create_dir_all(state.join(directory))?;
    }
    fs::write(state.join("containerd.toml"), containerd(state))?;
    fs::write(state.join("cni/pvn-test.conflist"), cni(state))?;
    fs::write(state.join("kubelet.yaml"), kubelet(layout))?;
    fs::write(state.join("audit.yaml"), AUDIT)?;
    let (key, public) = (text(&state.join("accounts.key")), text(&state.join("accounts.pub")));
    openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", &key])?;
    openssl(&["pkey", "-in", &key, "-pubout", "-out", &public])?;
    let mut tokens = String::new();
    for (name, user, group) in USERS {
        let token = openssl(&["rand", "-hex", "16"])?;
        let token = token.trim();
        tokens.push_str(&format!("{token},{user},{user},\"{group}\"\n"));
        fs::write(state.join(format!("{name}.kubeconfig")), kubeconfig(state, user, token))?;
    }
    fs::write(state.join("tokens.csv"), tokens)
}

fn openssl(arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("openssl").args(arguments).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "openssl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn text(path: &Path) -> String {
    path.to_str().expect("the directories of the cluster have plain names").to_owned()
}

/// The certificate is the one that the API server makes itself, with the authority that signed it
/// behind it.
pub(super) fn kubeconfig(state: &Path, user: &str, token: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: pvn-test
  cluster: {{server: '{SERVER}', certificate-authority: {state}/apiserver/apiserver.crt}}
users:
- name: {user}
  user: {{token: {token}}}
contexts:
- name: pvn-test
  context: {{cluster: pvn-test, user: {user}}}
current-context: pvn-test
",
        state = state.display(),
    )
}

fn containerd(state: &Path) -> String {
    // native: works on every file system, and the images are small. restrict_oom_score_adj: without
    // CAP_SYS_RESOURCE the start of a container fails otherwise.
    format!(
        r#"version = 2
root = "{state}/containerd"
state = "{state}/run"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{state}/containerd.sock"
[ttrpc]
  address = "{state}/containerd.sock.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI}"
    conf_dir = "{state}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"#,
        state = state.display(),
        pause = super::images::PAUSE,
    )
}

fn cni(state: &Path) -> String {
    // Not the gateway of the Pods: that would switch on forwarding for the whole machine.
    format!(
        r#"{{
  "cniVersion": "0.4.0", "name": "pvn-test", "plugins": [{{
    "type": "bridge", "bridge": "{BRIDGE}", "isGateway": false, "ipMasq": false,
    "ipam": {{"type": "host-local", "dataDir": "{state}/addresses", "ranges": [[{{"subnet": "{NETWORK}", "rangeStart": "{FIRST_POD}", "gateway": "{ADDRESS}"}}]]}}
  }}]
}}
"#,
        state = state.display(),
    )
}

fn kubelet(layout: &Layout) -> String {
    let state = layout.state().display();
    // clusterDNS: nobody answers there, and without one every Pod gets an event that warns. The
    // rest lets it run inside a container, beside swap, on a disk that is nearly full.
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {ADDRESS}
port: 10250
readOnlyPort: 0
healthzPort: 0
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
containerRuntimeEndpoint: unix://{state}/containerd.sock
podLogsDir: {state}/pod-logs
volumePluginDir: {state}/kubelet/plug-ins
clusterDNS: [10.217.0.2]
clusterDomain: cluster.local
resolvConf: ''
maxPods: 250
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {{memory.available: 10Mi, nodefs.available: 1%, imagefs.available: 1%}}
nodeStatusUpdateFrequency: 4s
nodeLeaseDurationSeconds: 8
"
    )
}

/// All that is not Kubernetes' own talk: what pvn, tests and people ask.
const AUDIT: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ['system:serviceaccounts:kube-system', 'system:nodes']
- level: None
  users: ['system:apiserver', 'pvn-test-controllers', 'pvn-test-scheduler', 'pvn-test-kubelet']
- level: None
  nonResourceURLs: ['*']
- level: Metadata
";
