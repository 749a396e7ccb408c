//! The published file of the built-in runtimes, run by `dev`, which runs here what the file has
//! run on a cluster: its four services converge against what stands in for their clouds.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fakes::clients;
use fakes::cloud_run::CloudRunServer;
use fakes::ecs::EcsServer;
use fakes::pulumi::{PROGRAM, drift, settled};
use serde_json::json;
use tests::dev::Dev;

use super::*;

mod custom;

/// What of the file is about the insides of images that this machine has not, and what stands in
/// for it: where the configurations are, and what the backend of Google's buckets alone knows.
const INSIDES: &[(&str, &str)] = &[
    ("path: /terraform/network", "path: network"),
    ("path: /pulumi/queues", "path: queues"),
    ("prefix: \"{{.Builtins", "path: \"{{.Builtins"),
    (
        "    volumes:
    - name: google-credentials
      source:
        secret: {secretName: google-credentials}
      mount: {mountPath: /var/run/google}
",
        "",
    ),
    ("kubernetesSecret: {secretName: pulumi, key: access-token}", "value: a-token"),
];

/// The credentials that its `preRun` takes are on no machine; all else the real one does.
const GCLOUD: &str = "#!/bin/sh\n[ \"$1\" != auth ] || exit 0\nexec REAL \"$@\"\n";

/// What `poetry run` does, where everything is there.
const POETRY: &str = "#!/bin/sh\nshift\nexec \"$@\"\n";

const TERRAFORM: &str = "terraform {\n  backend \"local\" {}\n}\nresource \"terraform_data\" \
                         \"network\" {\n  input = \"v1\"\n}\n";

fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().expect("it is in a directory"))
        .expect("a directory can be made");
    std::fs::write(path, text).expect("a file can be written");
}

fn write_program(path: &Path, text: impl AsRef<[u8]>) {
    write(path, text);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, executable).expect("a mode can be set");
}

/// Leaves of the example these files and what they name, changed for here.
fn keep_files(directory: &Path, kept: &[&str], insides: &[(&str, &str)]) {
    for entry in std::fs::read_dir(directory).expect("it is there").flatten() {
        if !kept.contains(&&*entry.file_name().to_string_lossy()) {
            std::fs::remove_file(entry.path()).expect("a file can be removed");
        }
    }
    let mut unused: Vec<_> = insides.iter().map(|(published, _)| *published).collect();
    for name in kept.iter().filter(|name| name.ends_with(".pvn.yaml")) {
        let file = directory.join(name);
        let mut text = std::fs::read_to_string(&file).expect("the example has it");
        for (published, here) in insides {
            unused.retain(|unused| !text.contains(unused));
            text = text.replace(published, here);
        }
        write(&file, text);
    }
    assert_eq!(unused, [""; 0], "they stand in one of {kept:?}");
}

/// What finds the two clouds, and nothing that this machine or its owner has, as the shell's words.
fn exported(home: &Path, ecs: &EcsServer, run: &CloudRunServer, more: &[(&str, String)]) -> String {
    let path = |path: &Path| path.to_str().expect("the path is UTF-8").to_owned();
    let (port, bin) = (run.address.port().to_string(), home.join("bin"));
    let found = [clients::of_ecs(&ecs.url), clients::of_cloud_run(&port)];
    let found = found.as_flattened().iter().map(|(name, value)| (*name, (*value).to_owned()));
    let own = [
        ("PATH", format!("{}:$PATH", path(&bin))),
        ("CHECKPOINT_DISABLE", "1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "x".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "x".to_owned()),
        ("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true".to_owned()),
        ("CLOUDSDK_CONFIG", path(&home.join("gcloud"))),
    ];
    let all = own.into_iter().chain(found).chain(more.iter().cloned());
    let words: Vec<_> = all.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    format!("export {}", words.join(" "))
}

/// The example with what its services need, and the shell's words for what its jobs find.
fn prepared(dev: &Dev, ecs: &EcsServer, run: &CloudRunServer) -> String {
    let directory = dev.directory();
    keep_files(&directory, &["runners.pvn.yaml", "kubernetes.pvn.yaml", "ecs-task.json"], INSIDES);
    write(&directory.join("network/main.tf"), TERRAFORM);
    write(&directory.join("queues/Pulumi.yaml"), "name: queues\nruntime: yaml\n");

    let home = directory.parent().expect("it is in a directory");
    let real = skip::tool("gcloud").expect("checked by the test");
    let gcloud = GCLOUD.replace("REAL", real.to_str().expect("the path is UTF-8"));
    write_program(&home.join("bin/gcloud"), gcloud);
    write_program(&home.join("bin/poetry"), POETRY);
    write_program(&home.join("bin/pulumi"), PROGRAM);
    let world = home.join("world");
    write(&world.join("preview"), drift().to_string());
    write(&world.join("settled"), settled().to_string());
    write(&world.join("outputs"), "{}");
    write(&world.join("history"), "[]");

    let world = world.to_str().expect("the path is UTF-8").to_owned();
    exported(home, ecs, run, &[("WORLD", world), ("STACK", "example/queues".to_owned())])
}

/// The service that somebody else makes: the file says `updateTaskDefinitionOnly`.
fn made_by_others(ecs: &EcsServer) {
    let mut world = ecs.world();
    let task = json!({"family": "web", "containerDefinitions": [{"name": "web", "image": "x"}]});
    let arn = world.register(&task)["taskDefinition"]["taskDefinitionArn"].clone();
    let service = json!({"serviceName": "web", "taskDefinition": arn, "desiredCount": 3});
    world.create(&service).expect("ECS does that");
}

/// Waits until it has converged, and says yes to whatever is asked.
fn converges(dev: &Dev, application: &str, service: &str, channel: &str) {
    let shown = || {
        let asked = ["services", "get", service, "--app", application, "-o", "json"];
        let shown: Value = serde_json::from_slice(&dev.pvnctl(&asked).stdout).ok()?;
        let channels = shown["channels"].as_array()?;
        channels.iter().find(|at| at["channel"] == channel).cloned()
    };
    let mut last = Value::Null;
    let converged = wait::within(wait::PATIENCE * 2, || {
        let target = [service, "--app", application, "--channel", channel];
        last = shown()?;
        if last["status"] == "WAITING_MANUAL_APPROVAL" {
            dev.pvnctl(&[&["services", "approve"], &target[..], &["--yes"]].concat());
        } else if last["status"] == "CONVERGING" {
            // The files have minutes between two looks.
            dev.pvnctl(&[&["services", "refresh"], &target[..]].concat());
        }
        (last["status"] == "CONVERGED").then_some(())
    });
    converged.unwrap_or_else(|| panic!("{service} in {channel}: {last:#}\n{}", dev.log()));
}

#[test]
fn the_published_services_of_all_built_in_runtimes_converge() {
    let test = "the_published_services_of_all_built_in_runtimes_converge";
    if !(is_there("aws", test) && is_there("gcloud", test) && is_there("terraform", test)) {
        return;
    }
    let (ecs, run) = (EcsServer::in_cluster("storefront"), CloudRunServer::start());
    made_by_others(&ecs);
    let mut dev = Dev::of("prodvana");
    let environment = prepared(&dev, &ecs, &run);
    dev.start_after(&environment, &["--param", "image=v1"]);
    for service in ["network", "queues", "web", "page"] {
        converges(&dev, "everything", service, "production");
    }
    let world = ecs.world();
    assert_eq!(world.revisions.len(), 2, "one of somebody else's and one of ours");
    let image = &world.revisions[1].0["containerDefinitions"][0]["image"];
    assert_eq!(image, "registry.example.com/storefront/web:v1");
    assert_eq!(world.services["web"]["desiredCount"], 3, "the service is somebody else's");
    let page = &run.state().services["page"];
    let image = &page["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.example.com/landing/page:v1");
    let state = dev.directory().join("network/production/network");
    assert!(state.is_file(), "the state is where `backendConfig` says");
}
