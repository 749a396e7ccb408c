//! Removes what a cluster leaves on a machine, also after a keeper that was killed. Everything is
//! found by the cluster's own directory, names and control groups; nothing else is touched.
//! Harmless when there is nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::layout::{BRIDGE, Layout};
use super::{audit, parts};
use crate::wait;

/// Longest wait for killed processes to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// Control groups of the kubelet. The cluster does not start where another kubelet has them.
const KUBEPODS: &str = "kubepods";

/// Ends and removes everything. To be called by whoever holds the keeper's lock, or when nobody
/// does.
pub(super) fn sweep(layout: &Layout) -> Result<(), String> {
    let state = layout.state();
    if state.exists() {
        end_processes(state)?;
        unmount(state)?;
        remove_groups();
        audit::keep(layout)
            .map_err(|error| format!("the creations of Jobs cannot be kept: {error}"))?;
        // A mount that is still there is not deleted through.
        let status = Command::new("rm").args(["-rf", "--one-file-system"]).arg(state).status();
        if !status.is_ok_and(|status| status.success()) || state.exists() {
            return Err(format!("{} cannot be removed", state.display()));
        }
    }
    remove_bridge()
}

/// Why no cluster may start here.
pub(super) fn check_free() -> Result<(), String> {
    match groups().into_iter().find(|group| has_processes(group)) {
        Some(group) => {
            Err(format!("a kubelet of this machine's own runs containers in {}", group.display()))
        }
        None => Ok(()),
    }
}

/// The processes whose command line or control group says that they belong to the cluster: its
/// parts, shims and containers.
fn processes(state: &Path) -> Vec<Pid> {
    let state = state.to_str().expect("it has a plain name");
    let containers = containers(Path::new(state));
    let own = std::process::id().cast_signed();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if pid == own {
            continue;
        }
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        let groups = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        let is_part = command.contains(state)
            && parts::is_part(command.split('\0').next().unwrap_or_default());
        let is_contained = containers.iter().any(|id| groups.contains(id.as_str()));
        if is_part || is_contained {
            found.push(Pid::from_raw(pid));
        }
    }
    found
}

/// Ids of the containers that have a directory under containerd's state.
fn containers(state: &Path) -> Vec<String> {
    let tasks = state.join("run/io.containerd.runtime.v2.task/k8s.io");
    let entries = fs::read_dir(tasks).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|id| id.len() >= 32)
        .collect()
}

fn end_processes(state: &Path) -> Result<(), String> {
    let mut left = processes(state);
    let start = std::time::Instant::now();
    while !left.is_empty() {
        for pid in &left {
            // Gone in the meantime is as good.
            let _gone = kill(*pid, Signal::SIGKILL);
        }
        if start.elapsed() > GONE_WITHIN {
            return Err(format!("these processes of the cluster do not end: {left:?}"));
        }
        std::thread::park_timeout(Duration::from_millis(50));
        left = processes(state);
    }
    Ok(())
}

/// The mount points below the directory, innermost first.
fn mounts(state: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    let mut below: Vec<PathBuf> = points.filter(|point| point.starts_with(state)).collect();
    below.reverse();
    Ok(below)
}

fn unmount(state: &Path) -> Result<(), String> {
    let failed =
        |error: io::Error| format!("the mounts below {} cannot be read: {error}", state.display());
    for point in mounts(state).map_err(failed)? {
        // Detached: what still holds it open lets it go when it ends.
        let _told_below = Command::new("umount").arg("--lazy").arg(&point).status();
    }
    match mounts(state).map_err(failed)?.first() {
        Some(point) => Err(format!("{} cannot be unmounted", point.display())),
        None => Ok(()),
    }
}

/// The kubelet's top control group in each hierarchy (v1), or the only one (v2).
fn groups() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    hierarchies
        .chain([root.to_owned()])
        .map(|hierarchy| hierarchy.join(KUBEPODS))
        .filter(|group| group.is_dir())
        .collect()
}

fn has_processes(group: &Path) -> bool {
    let own =
        fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|text| !text.trim().is_empty());
    own || children(group).iter().any(|child| has_processes(child))
}

fn children(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Empty ones only; the kernel refuses the others.
fn remove_groups() {
    fn remove(group: &Path) {
        for child in children(group) {
            remove(&child);
        }
        let _busy = fs::remove_dir(group);
    }
    for group in groups() {
        remove(&group);
    }
}

/// Makes the bridge anew.
pub(super) fn make_bridge() -> Result<(), String> {
    use super::layout::{ADDRESS, BRIDGE_HARDWARE_ADDRESS};
    remove_bridge()?;
    ip(&["link", "add", BRIDGE, "address", BRIDGE_HARDWARE_ADDRESS, "type", "bridge"])?;
    ip(&["address", "add", &format!("{ADDRESS}/16"), "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])
}

fn remove_bridge() -> Result<(), String> {
    if !Path::new("/sys/class/net").join(BRIDGE).exists() {
        return Ok(());
    }
    ip(&["link", "delete", BRIDGE])?;
    wait::until_within(GONE_WITHIN, "the bridge to be gone", || {
        (!Path::new("/sys/class/net").join(BRIDGE).exists()).then_some(())
    });
    Ok(())
}

pub(super) fn ip(arguments: &[&str]) -> Result<(), String> {
    let program = parts::program("ip")
        .ok_or("the program ip is missing: install the Debian package iproute2")?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("ip cannot be started: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "ip {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}
