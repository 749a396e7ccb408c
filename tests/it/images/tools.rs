//! The images of the tools: each built from an archive like that of its vendor, with this machine's
//! own tool in it, and run as who it says, with a read-only root.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use fakes::clients;
use fakes::cloud_run::CloudRunServer;
use fakes::ecs::EcsServer;
use tests::{programs, skip};

use super::workshop::{Config, Workshop, archive, stand_in, sum, text, write};

const BASE: (&str, &str) = ("BASE", "localhost/base");

#[test]
fn terraform_plans_in_its_image_with_a_read_only_root_and_not_as_root() {
    let test = "terraform_plans_in_its_image_with_a_read_only_root_and_not_as_root";
    let Some(tool) = skip::tool("terraform").or_else(|| skip::tool("tofu")) else {
        return skip::skipped(test, "neither terraform nor tofu is on PATH");
    };
    let zip = archive("zip", &[("terraform", &std::fs::read(tool).expect("it can be read"))]);
    let sums = format!(
        "0000  terraform_9.9.9_linux_arm64.zip\n{}  terraform_9.9.9_linux_amd64.zip\n",
        sum(&zip)
    );
    let wrong = sums.replace(&sum(&zip), &sum(b"another one"));
    let files = [("zip", zip), ("sums", sums.into_bytes()), ("wrong", wrong.into_bytes())];
    let Some(shop) = Workshop::with(test, served(files)) else { return };
    let arguments = [
        BASE,
        ("VERSION", "9.9.9"),
        ("PACKAGES", ""),
        ("BUILD_PACKAGES", ""),
        ("ARCHIVE", "SERVER/zip"),
        ("SUMS", "SERVER/sums"),
    ];
    let image = shop.build("terraform", &arguments);
    let wrong = arguments.map(|argument| match argument {
        ("SUMS", _) => ("SUMS", "SERVER/wrong"),
        other => other,
    });
    let refused = shop.tries("terraform", &wrong);
    let said = [text(&refused.stdout), text(&refused.stderr)].concat();
    assert!(!refused.status.success() && said.contains("did NOT match"), "{said}");

    let main = "terraform {\n  backend \"local\" {\n    path = \"/tmp/state/terraform.tfstate\"\n  }\n}\n\
                resource \"terraform_data\" \"one\" {\n  input = 1\n}\n";
    let config = shop.home.path().join("config");
    write(&config.join("main.tf"), main.as_bytes(), 0o644);
    std::fs::set_permissions(shop.home.path(), std::fs::Permissions::from_mode(0o755))
        .expect("it is ours");
    let path = config.to_str().expect("the path is UTF-8");
    let script = format!("cd {path} && exec /pvn-wrapper terraform plan");
    let job = ["PVN_JOB_ID=job-1".to_owned()];
    let output = shop.run(&image, &["/bin/sh", "-c", &script], &job, std::slice::from_ref(&config));
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("terraform_data.one will be created"), "{said}");
    let output = shop.run(&image, &["sh", "-c", "id -u; touch /here"], &[], &[]);
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    assert!(said.starts_with("65532\n") && said.contains("Read-only file system"), "{said}");
}

/// What a workshop serves.
fn served<const N: usize>(files: [(&str, Vec<u8>); N]) -> BTreeMap<String, Vec<u8>> {
    files.map(|(name, file)| (name.to_owned(), file)).into()
}

/// Runs a command of the wrapper in an image, which sees nothing: there is nothing yet.
fn sees_nothing(
    shop: &Workshop,
    image: &(PathBuf, Config),
    command: &[&str],
    variables: &[String],
    machine: &[PathBuf],
) {
    let output = shop.run(image, command, variables, machine);
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(text(&output.stdout).trim(), r#"{"objects":[]}"#, "{said}");
}

#[test]
fn aws_is_found_in_its_image_with_a_read_only_root_and_not_as_root() {
    let test = "aws_is_found_in_its_image_with_a_read_only_root_and_not_as_root";
    let Some(tool) = skip::tool("aws") else { return skip::skipped(test, "there is no `aws`") };
    let (program, machine) = stand_in(&tool);
    let files = [("aws/dist/aws", &*program), ("aws/dist/awscli/examples/ecs.rst", b"help")];
    let zip = archive("zip", &files);
    let digest = sum(&zip);
    let Some(shop) = Workshop::with(test, served([("zip", zip)])) else { return };
    let arguments = [BASE, ("PACKAGES", ""), ("BUILD_PACKAGES", ""), ("ARCHIVE", "SERVER/zip")];
    let image = shop.build("aws", &[&arguments[..], &[("SHA256", &digest)]].concat());
    assert!(!image.0.join("opt/aws/awscli/examples").exists());
    let refused = shop.tries("aws", &[&arguments[..], &[("SHA256", &sum(b"no"))]].concat());
    assert!(!refused.status.success(), "another checksum is refused");

    let output = shop.run(&image, &["aws", "--version"], &[], &machine);
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    assert!(output.status.success() && said.contains("aws-cli/"), "{said}");
    let server = EcsServer::start();
    let own = [("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x")];
    let variables = assigned(&[&own[..], &clients::of_ecs(&server.url)].concat());
    let command = ["/pvn-wrapper", "aws-ecs", "fetch", "--cluster", fakes::ecs::CLUSTER];
    let flags = ["--region", "eu-central-1", "--service-name", "web", "--task-definition"];
    let command = [&command[..], &flags, &[r#"{"containerDefinitions": []}"#]].concat();
    sees_nothing(&shop, &image, &command, &variables, &machine);
}

#[test]
fn gcloud_is_found_in_its_image_with_a_read_only_root_and_not_as_root() {
    let test = "gcloud_is_found_in_its_image_with_a_read_only_root_and_not_as_root";
    let Some(tool) = skip::tool("gcloud") else {
        return skip::skipped(test, "there is no `gcloud`");
    };
    let (program, machine) = stand_in(&tool);
    let files = [
        ("google-cloud-sdk/bin/gcloud", &*program),
        ("google-cloud-sdk/platform/bundledpythonunix/bin/python3", b"not ours"),
    ];
    let tar = archive("tar.gz", &files);
    let digest = sum(&tar);
    let Some(shop) = Workshop::with(test, served([("tar", tar)])) else { return };
    let arguments = [BASE, ("PACKAGES", ""), ("ARCHIVE", "SERVER/tar"), ("SHA256", &digest)];
    let image = shop.build("gcloud", &arguments);
    assert!(!image.0.join("opt/google-cloud-sdk/platform/bundledpythonunix").exists());

    let output = shop.run(&image, &["gcloud", "--version"], &[], &machine);
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    assert!(output.status.success() && said.contains("Google Cloud SDK"), "{said}");
    let server = CloudRunServer::start();
    let port = server.address.port().to_string();
    let own = [("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true")];
    let variables = assigned(&[&own[..], &clients::of_cloud_run(&port)].concat());
    let spec = r#"{"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"template": {"spec": {"containers": [{"image": "a"}]}}}}"#;
    let command = ["/pvn-wrapper", "google-cloud-run", "fetch", "--project", "p"];
    let flags = ["--region", "us-central1", "--service-spec", spec];
    sees_nothing(&shop, &image, &[&command[..], &flags].concat(), &variables, &machine);
}

#[test]
fn pulumi_is_found_in_its_image_beside_its_language_hosts() {
    let test = "pulumi_is_found_in_its_image_beside_its_language_hosts";
    // The real one is not to be had here.
    let program = b"#!/bin/sh\necho \"v9.9.9 in $PULUMI_HOME, $(pulumi-language-yaml)\"\n";
    let files = [
        ("pulumi/pulumi", &program[..]),
        ("pulumi/pulumi-language-yaml", b"#!/bin/sh\necho yaml\n"),
    ];
    let tar = archive("tar.gz", &files);
    let sums = format!("{}  pulumi-v9.9.9-linux-x64.tar.gz\n", sum(&tar)).into_bytes();
    let Some(shop) = Workshop::with(test, served([("tar", tar), ("sums", sums)])) else { return };
    let arguments = [
        BASE,
        ("VERSION", "9.9.9"),
        ("PACKAGES", ""),
        ("ARCHIVE", "SERVER/tar"),
        ("SUMS", "SERVER/sums"),
    ];
    let image = shop.build("pulumi", &arguments);
    let output = shop.run(&image, &["pulumi", "version"], &[], &[]);
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    assert_eq!(text(&output.stdout), "v9.9.9 in /tmp/pulumi, yaml\n", "{said}");
}

#[test]
fn the_images_of_tools_are_built_from_what_debian_and_the_vendors_publish() {
    let test = "the_images_of_tools_are_built_from_what_debian_and_the_vendors_publish";
    if std::env::var_os("PVN_VENDOR_IMAGES").is_none() {
        return skip::skipped(
            test,
            "set PVN_VENDOR_IMAGES where a registry of images and the vendors can be reached",
        );
    }
    let Some(mut shop) = Workshop::with(test, BTreeMap::new()) else { return };
    // The one beside the tests may be linked with a newer C library than Debian's.
    shop.wrapper = programs::shipped_wrapper();
    for (name, command) in [
        ("terraform", ["terraform", "version"]),
        ("pulumi", ["pulumi", "version"]),
        ("aws", ["aws", "--version"]),
        ("gcloud", ["gcloud", "--version"]),
    ] {
        let image = shop.build(name, &[]);
        let output = shop.run(&image, &command, &[], &[]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    }
}

/// Assignments, with those of a job of a service instance.
fn assigned(variables: &[(&str, &str)]) -> Vec<String> {
    let of_job = [
        ("PVN_SERVICE_ID", "svc-1"),
        ("PVN_RELEASE_CHANNEL_ID", "rc-1"),
        ("PVN_SERVICE_VERSION", "web-1"),
    ];
    variables.iter().chain(&of_job).map(|(name, value)| format!("{name}={value}")).collect()
}
