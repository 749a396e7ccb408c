//! The programs that the cluster is made of: found, or named as missing with the way to get them.

use std::path::PathBuf;

use super::layout;
use crate::skip;

/// Kubernetes' own, from the cache.
const BUILT: &[&str] = &["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];

/// From Debian: the program, and its package.
const PACKAGED: &[(&str, &str)] = &[
    ("etcd", "etcd-server"),
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("ip", "iproute2"),
    ("mount", "mount"),
    ("openssl", "openssl"),
    ("setpriv", "util-linux"),
    ("setsid", "util-linux"),
];

/// Plug-ins of the network, in Debian's directory.
pub(super) const CNI: &str = "/usr/lib/cni";

/// The shell and tools of test images, a static program.
pub(super) const BUSYBOX: &str = "/bin/busybox";

/// Where system programs are that a user's `PATH` may lack.
const SYSTEM: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Path of a program of the machine.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    skip::tool(name).or_else(|| {
        SYSTEM
            .iter()
            .map(|directory| PathBuf::from(directory).join(name))
            .find(|path| path.is_file())
    })
}

/// The one that was built with the rest, else the machine's own.
pub(super) fn kubectl() -> Option<PathBuf> {
    let built = layout::kubernetes().join("kubectl");
    if built.is_file() { Some(built) } else { program("kubectl") }
}

/// Whether this machine has all that a cluster needs.
///
/// # Errors
/// What is missing and how to get it.
pub(super) fn find() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("only root can make namespaces and bridges for it".to_owned());
    }
    let mut packages: Vec<&str> = PACKAGED
        .iter()
        .filter(|(name, _)| program(name).is_none())
        .map(|(_, package)| *package)
        .collect();
    if !PathBuf::from(CNI).join("bridge").is_file() {
        packages.push("containernetworking-plugins");
    }
    if !PathBuf::from(BUSYBOX).is_file() {
        packages.push("busybox-static");
    }
    packages.dedup();
    if !packages.is_empty() {
        return Err(format!("install the Debian packages {}", packages.join(" ")));
    }
    let built = layout::kubernetes();
    if kubectl().is_none() || BUILT.iter().any(|name| !built.join(name).is_file()) {
        return Err("build the parts of Kubernetes once with tests/cluster/build, which takes \
                    some minutes and needs Go"
            .to_owned());
    }
    Ok(())
}

/// Whether a program of this path is a part of the cluster, its shims and helpers included.
pub(super) fn is_part(path: &str) -> bool {
    const HELPERS: &[&str] = &["containerd-shim-runc-v2", "etcd", "containerd", "runc"];
    let name = path.rsplit('/').next().unwrap_or_default();
    HELPERS.contains(&name) || BUILT.contains(&name)
}
