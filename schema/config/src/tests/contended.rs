//! Services of a cloud that several instances would make their own of.

use super::documents;
use crate::shared_by_instances;

fn told(text: &str) -> Vec<String> {
    let documents = documents(text);
    shared_by_instances(&documents, false).into_iter().map(|warning| warning.message).collect()
}

/// An ECS cluster, and applications of which each has a service in one channel.
fn ecs(instances: &[(&str, &str, &str)]) -> String {
    let mut yaml =
        "runtime: {name: ecs, awsEcs: {region: eu-west-1, ecsCluster: main}}\n".to_owned();
    for (number, (service, channel, more)) in instances.iter().enumerate() {
        yaml += &format!(
            "---\napplication: {{name: a{number}, releaseChannels: [{{name: {channel}, runtimes: \
             [{{runtime: ecs}}]}}]}}\n---\nservice: {{name: {service}, application: a{number}, \
             awsEcs: {{taskDefinition: {{inlined: '{{}}'}}{more}}}}}\n"
        );
    }
    yaml
}

#[test]
fn names_of_ecs_services_that_meet_are_told() {
    assert_eq!(
        told(&ecs(&[("web", "eu-prod", ""), ("web-eu", "prod", "")])),
        ["the ECS service `web-eu-prod` of the cluster `main` in eu-west-1 is that of a0/web in \
          eu-prod, a1/web-eu in prod: each makes its own of it again and again, and a release of \
          one is in the other's, whatever that one waits for"]
    );
    let same = ", ecsServiceNameOverride: x";
    assert_eq!(told(&ecs(&[("web", "eu", same), ("api", "eu", same)])).len(), 1);
    let defined = ", serviceDefinition: {inlined: '{\"serviceName\": \"x\"}'}";
    assert_eq!(told(&ecs(&[("web", "eu", defined), ("api", "eu", same)])).len(), 1);
    let own = ", ecsServiceNameOverride: 'x-{{.Builtins.ReleaseChannel.Name}}'";
    let none: [String; 0] = [];
    assert_eq!(told(&ecs(&[("web", "eu", own), ("api", "eu", own)])), none);
    assert_eq!(told(&ecs(&[("web", "eu", ""), ("api", "eu", "")])), none);
}

/// A Cloud Run service in two channels; `more`: of the service's fields.
fn cloud_run(name: &str, more: &str) -> String {
    format!(
        "runtime: {{name: run, googleCloudRun: {{project: p, region: r}}}}\n---\napplication: \
         {{name: a, releaseChannels: [{{name: staging, runtimes: [{{runtime: run}}]}}, {{name: \
         production, runtimes: [{{runtime: run}}]}}]}}\n---\nservice:\n  name: page\n  \
         application: a\n  googleCloudRun: {{inlined: \"metadata: {{name: {name}}}\"}}\n{more}"
    )
}

#[test]
fn two_channels_with_one_cloud_run_service_are_told() {
    let found = told(&cloud_run("page", ""));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`page` of the project `p` in r"), "{found:?}");
    assert!(found[0].contains("a/page in staging, a/page in production"), "{found:?}");
}

#[test]
fn what_may_be_another_service_for_each_is_not_told() {
    let none: [String; 0] = [];
    assert_eq!(told(&cloud_run("'page-{{.Builtins.ReleaseChannel.Name}}'", "")), none);
    let another = "  perReleaseChannel:\n  - releaseChannel: production\n    googleCloudRun: \
                   {inlined: 'metadata: {name: other}'}\n";
    assert_eq!(told(&cloud_run("page", another)), none);
    let account = "  perReleaseChannel:\n  - releaseChannel: production\n    env: \
                   {CLOUDSDK_CORE_PROJECT: {value: q}}\n";
    assert_eq!(told(&cloud_run("page", account)), none);
    let variable =
        "  perReleaseChannel:\n  - releaseChannel: production\n    env: {A: {value: q}}\n";
    assert_eq!(told(&cloud_run("page", variable)).len(), 1);
}

/// One directory for services of two channels each.
fn runner(kind: &str, services: &[&str], env: &str) -> Vec<String> {
    let mut yaml = format!(
        "runtime: {{name: r, {kind}}}\n---\napplication: {{name: a, releaseChannels: [{{name: p, \
         runtimes: [{{runtime: r}}]}}, {{name: q, runtimes: [{{runtime: r}}]}}]}}\n"
    );
    for (number, block) in services.iter().enumerate() {
        yaml += &format!(
            "---\nservice: {{name: s{number}, application: a, env: {{TF_VAR_x: {{value: \
             '{{{{.Builtins.ReleaseChannel.Name}}}}'}}{env}}}, {block}}}\n"
        );
    }
    told(&yaml)
}

#[test]
fn instances_that_work_on_one_state_are_told() {
    const TERRAFORM: &str = "terraformRunner: {proxyRuntime: {runtime: local}}";
    const PULUMI: &str = "pulumiRunner: {proxyRuntime: {runtime: local}}";
    const PREPARED: &str =
        "terraformRunner: {proxyRuntime: {runtime: local}, preRun: [{cmd: cd x}]}";
    let of_channel = |begin: &str| format!("{begin}'{{{{.Builtins.ReleaseChannel.Name}}}}.x'");
    let one = "terraform: {path: t}";
    assert_eq!(
        runner(TERRAFORM, &[one], ""),
        ["the Terraform state of `t` with this `backendConfig` is that of a/s0 in p, a/s0 in q: \
          each makes its own of it again and again, and a release of one is in the other's, \
          whatever that one waits for"]
    );
    assert_eq!(runner(TERRAFORM, &[one, one], "").len(), 1, "one state of four instances");
    let key = "terraform: {path: t, backendConfig: {key: k}}";
    assert_eq!(runner(TERRAFORM, &[key, one], "").len(), 2, "two states of two channels each");
    let stack = "pulumi: {path: t, stack: s}";
    assert_eq!(runner(PULUMI, &[stack], "").len(), 1);

    let none: [String; 0] = [];
    let own = format!("terraform: {{path: t, backendConfig: {{{}}}}}", of_channel("key: "));
    assert_eq!(runner(TERRAFORM, &[&own], ""), none);
    let own = format!("terraform: {{{}}}", of_channel("path: "));
    assert_eq!(runner(TERRAFORM, &[&own], ""), none);
    let workspace = of_channel(", TF_WORKSPACE: {value: ") + "}";
    assert_eq!(runner(TERRAFORM, &[one], &workspace), none);
    assert_eq!(runner(PREPARED, &[one], ""), none, "it may go elsewhere");
    let own = format!("pulumi: {{{}}}", of_channel("stack: "));
    assert_eq!(runner(PULUMI, &[&own], ""), none);
}
