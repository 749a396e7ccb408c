//! The examples of clouds, with what stands in for them.

use super::*;

pub(super) const BUCKET: [Block; 2] = [
    ("examples/bucket-s3/README.md", "export BUCKET=example-assets AWS_REGION"),
    ("examples/bucket-s3/README.md", "export BUCKET=example-assets\n"),
];

pub(super) const ECS: [Block; 2] = [
    ("examples/ecs/README.md", "cargo run"),
    ("examples/ecs/README.md", ". \"${TMPDIR:-/tmp}/pvn-fakes/ecs\""),
];
pub(super) const CLOUD_RUN: [Block; 2] = [
    ("examples/cloud-run/README.md", "cargo run"),
    ("examples/cloud-run/README.md", ". \"${TMPDIR:-/tmp}/pvn-fakes/cloud-run\""),
];
pub(super) const PULUMI: [Block; 3] = [
    ("examples/pulumi/README.md", "cargo run"),
    ("examples/pulumi/README.md", "export PVN_DATA_DIR"),
    ("examples/pulumi/README.md", ". \"${TMPDIR:-/tmp}/pvn-fakes/pulumi\""),
];

/// The build is what the reader waits for; here it is done. `/tmp` is not this reader's alone.
const CARGO: &str = "export TMPDIR=$PWD/tmp\nmkdir tmp\ncargo() { shift 5; target/release/fakes \
                     \"$@\"; }\n";

/// Starts an example, lets somebody change what it made, and waits for the repair, of which this
/// command tells.
fn drifts_and_is_repaired(test: &str, tool: &str, [start, drift]: [Block; 2], service: &str) {
    if skip::tool(tool).is_none() {
        return skip::skipped(test, &format!("{tool} is not on PATH"));
    }
    let [_, example, _] = start.0.split('/').collect::<Vec<_>>()[..] else {
        panic!("{start:?} is a page of an example")
    };
    let applies = format!(
        "PVN_DATA_DIR=examples/{example}/.pvn target/release/pvnctl jobs list --kind apply \
         --status succeeded -o json"
    );
    let script = format!(
        "{CARGO}{}{}{}until_it '[ \"$({applies} | grep -c {service})\" -ge 2 ]'\n{}{INTERRUPT}",
        background(start),
        says("CONVERGED"),
        text(drift),
        says("drift"),
    );
    check(test, &script);
}

#[test]
fn the_example_of_ecs() {
    drifts_and_is_repaired("the_example_of_ecs", "aws", ECS, "version.*web-1");
}

#[test]
fn the_example_of_cloud_run() {
    drifts_and_is_repaired("the_example_of_cloud_run", "gcloud", CLOUD_RUN, "version.*page-1");
}

#[test]
fn the_example_of_pulumi() {
    let [start, approve, drift] = PULUMI;
    let script = format!(
        "{CARGO}{}{}{}{}{}until_it '[ \"$(grep -c \"services approve\" log)\" -gt 1 ]'\n",
        background(start),
        says("services approve"),
        agreed(approve),
        says("CONVERGED"),
        text(drift),
    );
    check("the_example_of_pulumi", &script);
}

/// In the network of its own nobody else is Amazon.
const MOTO: &str = "moto_server -H 127.0.0.1 -p 5000 >moto.log 2>&1 &\nexport \
                    AWS_ENDPOINT_URL=http://127.0.0.1:5000 AWS_ACCESS_KEY_ID=x \
                    AWS_SECRET_ACCESS_KEY=x AWS_EC2_METADATA_DISABLED=true \
                    AWS_CONFIG_FILE=/dev/null AWS_DEFAULT_REGION=eu-central-1\nuntil_it 'aws s3 \
                    mb s3://example-assets >/dev/null 2>&1'\n";

#[test]
fn the_example_of_a_bucket_of_s3() {
    let test = "the_example_of_a_bucket_of_s3";
    if skip::tool("aws").is_none() || skip::tool("moto_server").is_none() {
        return skip::skipped(test, "there is no `aws` or no `moto_server`");
    }
    let bucket = "aws s3 cp \"s3://$BUCKET/public";
    let site = "examples/bucket-s3/site";
    let script = format!(
        "{MOTO}export BUCKET=example-assets\n{}{}{}until_it '{bucket}/index.html\" - | cmp -s - \
         {site}/index.html && {bucket}/about.html\" - | cmp -s - \
         {site}/about.html'\n{INTERRUPT}",
        background(BUCKET[0]),
        says("CONVERGED"),
        text(BUCKET[1])
    );
    check(test, &script);
}
