//! What is told of templates, and of the secrets that they bring into other text.

use super::problems;
use crate::check_references;
use crate::tests::file;

#[test]
fn bad_input_template_error_in_a_job_file_of_its_own_is_told_with_its_line() {
    let text = "runtime: {name: r, custom: {proxyRuntime: {runtime: local}, apply: \
                {kubernetesConfig: {type: KUBERNETES, local: {path: jobs}}}}}\n";
    let job = "apiVersion: batch/v1\nkind: Job\nspec:\n  template: {spec: {containers: [{name: a, \
               image: 'x:{{.Params.tag}}'}]}}\n";
    let attachments = [("jobs/a.yaml".to_owned(), job.to_owned())].into();
    let read = crate::read(&[schema::api::ConfigFile { attachments, ..file(text) }]).unwrap();
    let told: Vec<String> = check_references(&read)
        .into_iter()
        .map(|problem| format!("{}: {}", problem.path, problem.message))
        .collect();
    assert_eq!(
        told,
        ["runtime.custom.apply.kubernetesConfig.local: undefined name `{{.Params.tag}}` \
          (`jobs/a.yaml`, line 4)"]
    );
}

#[test]
fn bad_input_template_error_is_told_without_a_server() {
    let text = "runtime:
  name: r
  labels: [{label: env, value: x}]
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      kubernetesConfig:
        type: KUBERNETES
        inlined: |
          apiVersion: batch/v1
          kind: Job
          spec: {template: {spec: {containers: [{name: a, image: x, command: \
                [\"{{.Params.tga}}\"]}]}}}
    apply:
      env: {A: {value: \"{{.Nope.x}}\"}}
      taskConfig: {program: {cmd: [\"{{.Params.tga}}\", \"{{if .X}}\", \
                \"{{.Constants.any}}{{.Builtins.Runtime.Labels.env}}{{.Params.tag.Tag}}\"]}}
    applyId: \"{{.Params.tag\"
    parameters: [{name: tag, dockerImage: {}}]
---
application:
  name: a
  releaseChannelGroups: [{name: g, runtimeSelector: \"env=((\", template: {name: \
                \"{{.Builtins.Runtime.Nam}}\"}}]
---
service:
  name: s
  application: a
  customRuntime: {parameterValues: [{name: tag, string: \"{{.Params.x}}{{.Params.y}}\"}]}
  parameters: [{name: x, string: {}}]
  bundleName: \"{{.Builtins.ReleaseChannel.Name}}\"
";
    let told = problems(text);
    let short: Vec<String> =
        told.lines().map(|line| line.split(" (").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        short,
        [
            "12 runtime.custom.fetch.kubernetesConfig.inlined: undefined name `{{.Params.tga}}`",
            "14 runtime.custom.apply.env.A.value: undefined name `{{.Nope.x}}`",
            "15 runtime.custom.apply.taskConfig.program.cmd[0]: undefined name `{{.Params.tga}}`",
            "15 runtime.custom.apply.taskConfig.program.cmd[1]: `{{if .X}}` is not a template \
             that pvn knows",
            "16 runtime.custom.applyId: `{{.Params.tag` is never closed",
            "21 application.releaseChannelGroups[0].runtimeSelector: malformed selector: `env=` \
             has no value; write terms as `key=value`, side by side for both, `+` for either, `-` \
             to take away, parentheses to group",
            "21 application.releaseChannelGroups[0].template.name: undefined name \
             `{{.Builtins.Runtime.Nam}}`",
            "26 service.customRuntime.parameterValues[0].string: undefined name `{{.Params.y}}`",
            "28 service.bundleName: undefined name `{{.Builtins.ReleaseChannel.Name}}`",
        ],
        "{told}"
    );
    assert!(told.contains("(the names that exist here: `{{.Params.tag}}`"), "{told}");
}

#[test]
fn bad_input_template_error_in_the_environment_of_a_service_is_told() {
    let text = "service:
  name: s
  application: a
  parameters: [{name: image, string: {}}, {name: token, secret: {}}]
  env:
    A: {value: \"{{.Params.imag}}\"}
    B: {value: \"{{.Params.image\"}
    C: {value: \
                \"{{.Constants.any}}{{.Builtins.Runtime.Labels.env}}{{.Builtins.ReleaseChannel.\
                Name}}{{.Params.image}}\"}
    D: {rawSecret: \"{{.Params.token}}\"}
    E: {secret: {key: k}}
  perReleaseChannel:
  - releaseChannel: p
    env:
      F: {value: \"x{{.Params.token}}\"}
      G: {rawSecret: \"a{{b\"}
      H: {rawSecret: \"x{{.Params.token}}\"}
";
    let told = problems(text);
    let short: Vec<String> =
        told.lines().map(|line| line.split(" (").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        short,
        [
            "6 service.env.A.value: undefined name `{{.Params.imag}}`",
            "7 service.env.B.value: `{{.Params.image` is never closed",
            "14 service.perReleaseChannel[0].env.F.value: `{{.Params.token}}` is a secret and \
             stands in the middle of other text",
            "15 service.perReleaseChannel[0].env.G.rawSecret: a template in this secret is \
             malformed, or its name does not exist",
            "16 service.perReleaseChannel[0].env.H.rawSecret: `{{.Params.token}}` is a secret and \
             stands in the middle of other text",
        ],
        "{told}"
    );
}

#[test]
fn bad_input_template_error_in_the_environment_of_a_channel_is_told() {
    let text = "application:
  name: a
  releaseChannels:
  - name: c
    runtimes: [{runtime: r}]
    policy:
      defaultEnv:
        A: {value: \"{{.Builtin.Service.Name}}\"}
        B: {value: \
                \"{{.Params.any}}{{.Constants.any}}{{.Builtins.Runtime.Labels.env}}{{.Builtins.\
                Service.Version}}\"}
";
    assert_eq!(
        problems(text).split(" (").next(),
        Some(
            "8 application.releaseChannels[0].policy.defaultEnv.A.value: undefined name \
             `{{.Builtin.Service.Name}}`"
        )
    );
}

#[test]
fn a_secret_amid_a_text_is_told() {
    let runtime = |cmd: &str, value: &str| {
        format!(
            "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: k}}\n    parameters: \
             [{{name: token, secret: {{}}}}]\n    apply: {{env: {{T: {{value: '{value}'}}}}, \
             taskConfig: {{program: {{cmd: [a, '{cmd}']}}}}}}\n"
        )
    };
    assert_eq!(problems(&runtime("x", "{{.Params.token}}")), "");
    let mixed = problems(&runtime("x", "Bearer {{.Params.token}}"));
    assert!(
        mixed.contains("`{{.Params.token}}` is a secret and stands in the middle of other text"),
        "{mixed}"
    );
    let readable = problems(&runtime("{{.Params.token}}", "x"));
    assert!(
        readable.contains("is a secret, and anybody can read this text while the command runs"),
        "{readable}"
    );
    let service = "service: {name: s, application: a, parameters: [{name: t, secret: {}}], \
                   customRuntime: {parameterValues: [{name: x, string: 'a{{.Params.t}}'}]}}\n";
    assert!(problems(service).contains("stands in the middle of other text"));
}

#[test]
fn a_secret_in_what_a_tool_gets_in_the_open_is_told() {
    let readable = "is a secret, and anybody can read this text while the command runs";
    let service = |block: &str| {
        format!(
            "service:\n  name: s\n  application: a\n  parameters: [{{name: pw, secret: {{}}}}]\n  \
             {block}\n"
        )
    };
    let task = |value: &str| {
        service(&format!(
            "awsEcs: {{taskDefinition: {{inlined: '{{\"family\": \"web\", \"containerDefinitions\": \
             [{{\"name\": \"web\", \"environment\": [{{\"name\": \"PW\", \"value\": \"{value}\"}}]}}]}}'}}}}"
        ))
    };
    let told = problems(&task("{{.Params.pw}}"));
    assert!(told.contains("service.awsEcs.taskDefinition.inlined"), "{told}");
    assert!(told.contains(readable) && told.contains("`{{.Params.pw}}`"), "{told}");
    assert_eq!(problems(&task("{{.Builtins.Service.Name}}")), "");
    let path = problems(&service("terraform: {path: '{{.Params.pw}}'}"));
    assert!(path.contains("service.terraform.path") && path.contains(readable), "{path}");
}

#[test]
fn a_secret_in_a_job_file_is_told_anywhere_but_in_the_environment() {
    let job = |spec: &str| {
        let job = format!(
            "{{apiVersion: batch/v1, kind: Job, spec: {{template: {{spec: {{containers: [{{name: \
             a, {spec}}}]}}}}}}}}"
        );
        let inlined = serde_json::Value::from(job);
        format!(
            "runtime: {{name: r, custom: {{proxyRuntime: {{runtime: k}}, parameters: [{{name: pw, \
             secret: {{}}}}], apply: {{kubernetesConfig: {{type: KUBERNETES, inlined: \
             {inlined}}}}}}}}}\n"
        )
    };
    let of = "env: [{name: PW, value: '{{.Params.pw}}'}]";
    assert_eq!(problems(&job(of)), "");
    for spec in
        ["image: '{{.Params.pw}}'", "args: ['{{.Params.pw}}']", "workingDir: '{{.Params.pw}}'"]
    {
        let told = problems(&job(spec));
        let readable = "is a secret, and anybody can read this text while the command runs";
        assert!(told.contains(readable) && told.contains("kubernetesConfig.inlined"), "{told}");
    }
}
