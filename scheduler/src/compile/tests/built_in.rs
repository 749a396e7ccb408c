//! Kinds of runtimes that are built in: what their blocks are made to, and that a problem is told
//! where somebody wrote it.

use std::time::Duration;

use engine::desired::{Cadence, Observe};

use super::*;

const TERRAFORM: &str = "
runtime:
  name: infrastructure
  terraformRunner:
    proxyRuntime: {runtime: local}
---
application:
  name: app
  releaseChannels:
  - {name: staging, runtimes: [{runtime: infrastructure}]}
  - {name: production, runtimes: [{runtime: infrastructure}]}
---
service:
  name: network
  application: app
  parameters: [{name: region, string: {defaultValue: eu}}]
  terraform:
    path: network
    backendConfig: {bucket: states, key: \"{{.Params.region}} {{.Builtins.ReleaseChannel.Name}}\"}
    extraInitArgs: [-upgrade]
  perReleaseChannel:
  - releaseChannel: production
    terraform: {backendConfig: {bucket: production's}}
";

/// The arguments of fetch, apply and getInfo, joined by blanks.
fn argv(text: &str, channel: &str) -> Vec<String> {
    let commands = compiled(text, channel, "").unwrap_or_else(|problems| {
        panic!("{}", lines(&problems).join("\n"));
    });
    let Commands { fetch, apply, get_info, .. } = commands.commands;
    [fetch, Some(apply), get_info].into_iter().flatten().map(|one| one.argv.join(" ")).collect()
}

#[test]
fn a_terraform_runner_is_three_commands_of_the_wrapper() {
    assert_eq!(
        argv(TERRAFORM, "staging"),
        ["plan", "apply", "info"].map(|step| format!(
            "/pvn-wrapper terraform {step} --init-args='-backend-config=bucket=states' \
             '-backend-config=key=eu staging' -upgrade --shell=/bin/sh"
        ))
    );
    let instance = compiled(TERRAFORM, "staging", "").unwrap();
    assert_eq!(instance.commands.apply.working_directory.as_deref(), Some("network"));
    assert_eq!(instance.desired.apply.retryable_exit_codes, [75]);
    assert_eq!(instance.desired.apply.stop_grace, Some(Duration::from_secs(300)));
    assert_eq!(instance.desired.grace, Duration::from_secs(600));
    let Observe::Poll(poll) = instance.desired.observe else { panic!("it is polled") };
    let seconds = Duration::from_secs;
    assert_eq!(poll.cadence, Cadence::Interval { poll: seconds(300), steady: seconds(3600) });
    let retry = poll.retry.unwrap();
    assert_eq!((retry.base, retry.max), (seconds(60), seconds(900)));
}

#[test]
fn a_channels_block_wins_field_by_field_and_its_words_stay_words() {
    let plan = &argv(TERRAFORM, "production")[0];
    assert!(
        plan.contains(
            "--init-args=\"-backend-config=bucket=production's\" '-backend-config=key=eu \
             production' -upgrade"
        ),
        "{plan}"
    );
}

#[test]
fn a_published_service_gives_the_same_as_parameters() {
    let text = changed(
        TERRAFORM,
        &[
            (
                "  terraform:\n    path: network\n    backendConfig: {bucket: states, key: \
                 \"{{.Params.region}} {{.Builtins.ReleaseChannel.Name}}\"}\n    extraInitArgs: \
                 [-upgrade]\n",
                "  customRuntime:\n    parameterValues:\n    - {name: path, string: network}\n    \
                 - {name: extraInitArgs, string: -backend-config=key=k}\n    - {name: image, \
                 string: \"r/i:{{.Params.region}}\"}\n",
            ),
            ("    terraform: {backendConfig: {bucket: production's}}\n", ""),
        ],
    );
    assert_eq!(
        argv(&text, "staging")[0],
        "/pvn-wrapper terraform plan --init-args=-backend-config=key=k --shell=/bin/sh"
    );
}

#[test]
fn what_runs_first_and_how_often_is_the_runners_own() {
    let text = changed(
        TERRAFORM,
        &[(
            "    proxyRuntime: {runtime: local}\n",
            "    proxyRuntime: {runtime: local}\n    preRun: [{cmd: . ./login}, {cmd: \"export \
             A='{{.Builtins.ReleaseChannel.Name}}'\"}]\n    pollInterval: 7s\n    \
             requireApprovalForDestroy: true\n    requireApprovalBeforeApply: true\n    \
             fetchRetryPolicy: {maxInterval: 5s}\n    env: \
             {TF_VAR_x: {value: y}}\n",
        )],
    );
    let instance = compiled(&text, "staging", "").unwrap();
    assert_eq!(
        instance.commands.apply.argv[5..],
        ["--pre-run=. ./login", "--pre-run=export A='staging'"]
    );
    assert_eq!(env(instance.commands.fetch.as_ref().unwrap()), "TF_VAR_x=y");
    assert!(instance.desired.require_approval_before_apply);
    assert!(instance.desired.require_approval_for_destroy);
    let Observe::Poll(poll) = instance.desired.observe else { panic!("it is polled") };
    let retry = poll.retry.unwrap();
    assert_eq!((retry.base, retry.max), (Duration::from_secs(5), Duration::from_secs(5)));
}

/// The problems of the documents before any release.
fn check(text: &str, expected: &[&str]) {
    let configs = configs(text);
    let problems = super::super::check(&configs, &Options::default(), None);
    assert_eq!(lines(&problems), expected, "{text}");
}

#[test]
fn a_problem_of_commands_that_are_made_is_told_once_and_where_it_was_written() {
    check(TERRAFORM, &[]);
    check(
        &changed(
            TERRAFORM,
            &[(
                "{runtime: local}\n",
                "{runtime: local}\n    preRun: [{cmd: \"login {{.Params.nobody}}\"}]\n    env: \
                 {A: {value: \"{{.Params.else}}\"}}\n",
            )],
        ),
        &[
            "runtime.terraformRunner.preRun[0]: undefined name `{{.Params.nobody}}`",
            "runtime.terraformRunner.env.A.value: undefined name `{{.Params.else}}`",
        ],
    );
    check(
        &changed(TERRAFORM, &[("path: network", "path: \"{{.Params.nobody}}\"")]),
        &["service.terraform.path: undefined name `{{.Params.nobody}}`"],
    );
}

#[test]
fn a_block_is_for_a_runtime_of_its_kind() {
    let text = changed(
        TERRAFORM,
        &[(
            "  terraformRunner:\n    proxyRuntime: {runtime: local}\n",
            "  custom: {proxyRuntime: {runtime: local}, apply: {taskConfig: {program: {cmd: \
             [a]}}}}\n",
        )],
    );
    check(
        &text,
        &[
            "service.terraform: `terraform` says nothing to runtime `infrastructure`, which is of \
             kind `custom` (channel `staging`)",
            "service.perReleaseChannel[0].terraform: `terraform` says nothing to runtime \
             `infrastructure`, which is of kind `custom` (channel `production`)",
        ],
    );
}

#[test]
fn a_pulumi_runner_is_three_commands_of_the_wrapper() {
    let text = changed(
        TERRAFORM,
        &[
            ("terraformRunner", "pulumiRunner"),
            (
                "  terraform:\n    path: network\n    backendConfig: {bucket: states, key: \
                 \"{{.Params.region}} {{.Builtins.ReleaseChannel.Name}}\"}\n    extraInitArgs: \
                 [-upgrade]\n",
                "  pulumi: {path: network, stack: \"org/{{.Params.region}}\", pulumiCommandPrefix: \
                 [poetry, run]}\n",
            ),
            ("terraform: {backendConfig: {bucket: production's}}", "pulumi: {stack: org/live}"),
        ],
    );
    let wanted = |stack: &str| {
        ["preview", "up", "info"].map(|step| {
            format!(
                "/pvn-wrapper pulumi {step} --stack={stack} --command-prefix=poetry run \
                 --shell=/bin/sh"
            )
        })
    };
    assert_eq!(argv(&text, "staging"), wanted("org/eu"));
    assert_eq!(argv(&text, "production"), wanted("org/live"));
    check(
        &changed(&text, &[("stack: \"org/{{.Params.region}}\", ", "")]),
        &["service.pulumi: parameter `stack` (The stack) is required and has no value"],
    );
}

const CLOUDS: &str = r#"
runtime:
  name: ecs
  awsEcs:
    region: eu-central-1
    ecsCluster: storefront
    credentials:
      accessKey: {value: AKIA}
      secretKey: {secret: {key: aws}}
      assumeRoleArn: arn:aws:iam::1:role/deployer
---
runtime: {name: run, googleCloudRun: {project: p, region: europe-west1}}
---
application:
  name: app
  releaseChannels:
  - {name: staging, runtimes: [{runtime: ecs}]}
  - {name: production, runtimes: [{runtime: ecs}]}
---
service:
  name: web
  application: app
  parameters: [{name: tag, string: {defaultValue: 'v1"}'}}]
  awsEcs:
    taskDefinition:
      inlined: |
        {"family": "web", "cpu": "256", "memory": 512, "image": "{{.Params.tag}}"}
    updateTaskDefinitionOnly: true
  perReleaseChannel:
  - releaseChannel: production
    awsEcs: {ecsServiceNameOverride: "web-{{.Builtins.ReleaseChannel.Name}}"}
"#;

#[test]
fn an_ecs_runtime_is_three_commands_whose_documents_no_value_breaks() {
    let instance = compiled(CLOUDS, "production", "").unwrap();
    let document = r#"{"family":"web","cpu":"256","memory":512,"image":"v1\"}"}"#;
    let task = format!("--task-definition={document}");
    assert_eq!(
        instance.commands.apply.argv,
        [
            "/pvn-wrapper",
            "aws-ecs",
            "apply",
            "--cluster=storefront",
            "--region=eu-central-1",
            &task,
            "--service-definition=",
            "--service-name=web-production",
            "--update-task-definition-only=true",
            "--assume-role-arn=arn:aws:iam::1:role/deployer",
        ]
    );
    assert_eq!(
        env(&instance.commands.apply),
        "AWS_ACCESS_KEY_ID=AKIA AWS_SECRET_ACCESS_KEY=secret(aws@0) AWS_SECURITY_TOKEN= \
         AWS_SESSION_TOKEN="
    );
    let Observe::Poll(poll) = instance.desired.observe else { panic!("it is polled") };
    assert_eq!(poll.mode, engine::desired::FetchAnswer::StructuredOutput);
    check(CLOUDS, &[]);
    check(
        &changed(CLOUDS, &[("{{.Params.tag}}", "{{.Params.nobody}}")]),
        &["service.awsEcs.taskDefinition.inlined: undefined name `{{.Params.nobody}}`"],
    );
    let task = r#"{"family": "web", "cpu": "256", "memory": 512, "image": "{{.Params.tag}}"}"#;
    check(
        &changed(CLOUDS, &[(task, r#"{"family": "a", "b": [{"c": 1, "c": 2}], "family": "web"}"#)]),
        &[
            "service.awsEcs.taskDefinition.inlined: `c` is given twice",
            "service.awsEcs.taskDefinition.inlined: `family` is given twice",
        ],
    );
    for (other, what) in
        [("[]", "a list"), ("web.json", "a text without fields"), ("1", "a text without fields")]
    {
        let expected = "exactly one document with fields is expected here, found";
        let expected = format!("service.awsEcs.taskDefinition.inlined: {expected} {what}");
        check(&changed(CLOUDS, &[(task, other)]), &[&expected]);
    }
}

#[test]
fn a_document_that_no_program_can_be_given_is_told_at_the_field_of_the_service() {
    let task = r#"{"family": "web", "cpu": "256", "memory": 512, "image": "{{.Params.tag}}"}"#;
    let long = "x".repeat(128 << 10);
    let told = "bytes long as it is given to the tool, and a program takes at most 131071 in one \
                argument";
    let own = format!("service.awsEcs.taskDefinition.inlined: this is 131085 {told}");
    check(&changed(CLOUDS, &[(task, &format!("{{\"family\": \"{long}\"}}"))]), &[&own]);
    // By its values.
    let text = changed(CLOUDS, &[(task, "{\"family\": \"{{.Params.tag}}\"}")]);
    let Err(problems) = compiled(&text, "production", &format!("tag={long}")) else {
        panic!("it is refused")
    };
    let problems = lines(&problems);
    assert_eq!(problems, [format!("service.awsEcs.taskDefinition: this is 131117 {told}")]);
}

#[test]
fn a_cloud_run_runtime_gives_its_jobs_the_environment_that_it_has() {
    let text = CLOUDS.replace("[{runtime: ecs}]", "[{runtime: run}]");
    let start = text.find("  awsEcs:\n    taskDefinition").unwrap();
    let block = "  googleCloudRun: {inlined: \"{metadata: {name: page}}\"}\n";
    let text = changed(
        &format!("{}{block}", &text[..start]),
        &[("{project: p, ", "{project: p, env: {HTTPS_PROXY: {value: 'http://p'}}, ")],
    );
    let instance = compiled(&text, "staging", "").unwrap();
    assert_eq!(env(&instance.commands.apply), "HTTPS_PROXY=http://p");
    assert_eq!(env(&instance.commands.fetch.unwrap()), "HTTPS_PROXY=http://p");
}

#[test]
fn a_cloud_run_runtime_takes_yaml_and_hands_on_json() {
    let text = CLOUDS.replace("[{runtime: ecs}]", "[{runtime: run}]");
    let start = text.find("  awsEcs:\n    taskDefinition").unwrap();
    let block = "  googleCloudRun:
    inlined: |
      metadata: {name: page}
      spec: {image: \"i:{{.Params.tag}}\", scale: 3}
";
    let instance = compiled(&format!("{}{block}", &text[..start]), "staging", "tag=v2").unwrap();
    assert_eq!(
        instance.commands.fetch.unwrap().argv[5],
        r#"--service-spec={"metadata":{"name":"page"},"spec":{"image":"i:v2","scale":3}}"#
    );
}
