//! `examples/kubernetes` on a real cluster, as its README says.

use std::path::{Path, PathBuf};

use serde_json::json;
use tests::cluster::{ADDRESS, Cluster, Image};
use tests::scheduler::{Scheduler, Start};
use tests::{copy, programs, wait};

/// The images that the example names, as the node knows them.
const BUSYBOX: &str = "docker.io/library/busybox:1.36";
const WRAPPER: &str = concat!("docker.io/library/pvn-wrapper:", env!("CARGO_PKG_VERSION"));

/// A copy of the example in a namespace of its own, with everything there that its README makes
/// first; its volume is `site`.
fn set_up(cluster: &Cluster, scheduler: &Scheduler, site: &Path) -> PathBuf {
    // Tests of other checkouts run the same example beside this one.
    let account = cluster.account();
    let namespace = account.name("example");
    let example = scheduler.home().join("example");
    copy::example("kubernetes", &example);
    let edit = |name: &str, changes: &[(&str, &str)]| {
        let path = example.join(name);
        let text = std::fs::read_to_string(&path).expect("the example has it");
        let text = changes.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "{name} does not say {from}");
            text.replace(from, to)
        });
        std::fs::write(&path, &text).expect("a file can be written");
        text
    };
    let kubeconfig = format!("kubernetes:\n    kubeconfig: {}\n", account.kubeconfig().display());
    edit("kubernetes.pvn.yaml", &[("pvn-example", &namespace), ("kubernetes:\n", &kubeconfig)]);
    let setup = edit("setup.yaml", &[("pvn-example", &namespace)]);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "10Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": site},
            "claimRef": {"namespace": namespace, "name": "site"},
        },
    });
    cluster.kubectl(&["create", "-f", "-"], &volume.to_string());
    cluster.kubectl(&["apply", "-f", "-"], &setup);
    example
}

#[test]
fn the_example_converges_with_job_files_a_task_info_and_an_approval() {
    let Some(cluster) =
        Cluster::get("the_example_converges_with_job_files_a_task_info_and_an_approval")
    else {
        return;
    };
    let wrapper = programs::program("pvn-wrapper");
    cluster.import(
        &Image::empty(WRAPPER).program("pvn-wrapper", &wrapper).entrypoint(&["/pvn-wrapper"]),
    );
    cluster.import(&Image::with_tools(BUSYBOX).program("unused/pvn-wrapper", &wrapper));

    let mut scheduler = Scheduler::stopped_at(ADDRESS);
    let site = scheduler.home().join("site");
    std::fs::create_dir(&site).expect("a directory can be made");
    let example = set_up(&cluster, &scheduler, &site);

    scheduler.run(&Start::default());
    scheduler.ok(&[
        "configs",
        "apply",
        "--no-prompt",
        example.to_str().expect("its path is plain"),
    ]);
    scheduler.ok(&["services", "push", "web", "--app", "example"]);
    let channel = |name: &str| {
        let service = scheduler.json(&["services", "get", "web", "--app", "example"]);
        let channels = service["channels"].as_array().cloned().unwrap_or_default();
        channels.into_iter().find(|channel| channel["channel"] == name).unwrap_or_default()
    };
    let becomes = |name: &str, status: &str| {
        wait::until_within(wait::PATIENCE * 2, &format!("{name} to be {status}"), || {
            (channel(name)["status"] == status).then_some(())
        });
    };
    becomes("staging", "CONVERGED");
    becomes("production", "WAITING_MANUAL_APPROVAL");
    assert_eq!(
        std::fs::read_to_string(site.join("staging/index.html")).expect("it was written"),
        "hello\n"
    );
    assert!(!site.join("production").exists(), "nobody has approved it");
    scheduler.ok(&[
        "services",
        "approve",
        "web",
        "--app",
        "example",
        "--channel",
        "production",
        "--yes",
    ]);
    scheduler.ok(&["services", "wait", "web", "--app", "example", "--timeout", "120s"]);
    assert_eq!(
        std::fs::read_to_string(site.join("production/index.html")).expect("it was written"),
        "hello\n"
    );
    wait::until("getInfo to be shown", || {
        (channel("production")["info"][0]["text"] == "production/index.html in the volume site")
            .then_some(())
    });

    std::fs::write(site.join("production/index.html"), "oops\n").expect("a file can be written");
    wait::until_within(wait::PATIENCE * 2, "the repair", || {
        (std::fs::read_to_string(site.join("production/index.html")).ok()? == "hello\n")
            .then_some(())
    });
}
