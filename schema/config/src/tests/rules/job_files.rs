//! Job files within a config.

use super::*;

/// What is wrong with a command whose Job file, from line 9 on, is `job`.
fn inlined_problems(job: &str) -> String {
    let mut yaml = "runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      kubernetesConfig:
        type: KUBERNETES
        inlined: |
"
    .to_owned();
    job.lines().for_each(|line| yaml.push_str(&format!("          {line}\n")));
    problems(&yaml)
}

#[test]
fn bad_input_job_file_with_two_objects() {
    let job = r#"apiVersion: batch/v1
kind: Job
metadata: {name: deploy}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"#;
    insta::assert_snapshot!(inlined_problems(job), @r#"
        error: a command's Kubernetes file must hold exactly one batch/v1 Job and nothing else; found batch/v1 Job `deploy`, v1 ConfigMap `settings`
         --> app.pvn.yaml:8:9
          |
        8 |         inlined: |
          |         ^^^^^^^ runtime.custom.apply.kubernetesConfig.inlined
        "#);
}

#[test]
fn a_job_file_holds_a_job() {
    let yaml = r##"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    fetch: {kubernetesConfig: {type: KUBERNETES, inlined: "# nothing"}}
    apply: {kubernetesConfig: {type: KUBERNETES, inlined: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"}}
    getInfo: {kubernetesConfig: {type: KUBERNETES, inlined: "a: b"}}
"##;
    insta::assert_snapshot!(problems(yaml), @r##"
        error: a command's Kubernetes file must hold exactly one batch/v1 Job and nothing else; found nothing
         --> app.pvn.yaml:5:59
          |
        5 |     fetch: {kubernetesConfig: {type: KUBERNETES, inlined: "# nothing"}}
          |                                                           ^^^^^^^^^^^ runtime.custom.fetch.kubernetesConfig.inlined

        error: a command's Kubernetes file must hold exactly one batch/v1 Job and nothing else; found apps/v1 Deployment `web`
         --> app.pvn.yaml:6:59
          |
        6 |     apply: {kubernetesConfig: {type: KUBERNETES, inlined: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"}}
          |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ runtime.custom.apply.kubernetesConfig.inlined

        error: a command's Kubernetes file must hold exactly one batch/v1 Job and nothing else; found a document without `apiVersion` and `kind`
         --> app.pvn.yaml:7:61
          |
        7 |     getInfo: {kubernetesConfig: {type: KUBERNETES, inlined: "a: b"}}
          |                                                             ^^^^^^ runtime.custom.getInfo.kubernetesConfig.inlined
        "##);
}

#[test]
fn a_job_file_is_yaml() {
    let job = r#"apiVersion: batch/v1
kind: Job
metadata: {name: {{.Params.name}}}
"#;
    insta::assert_snapshot!(inlined_problems(job), @r#"
        error: a key must be a text (line 3 of the Kubernetes file)
         --> app.pvn.yaml:8:9
          |
        8 |         inlined: |
          |         ^^^^^^^ runtime.custom.apply.kubernetesConfig.inlined
          |
          = help: a template has to stand in quotes, as in `"{{.Params.x}}"`
        "#);
}

#[test]
fn a_key_of_a_job_file_is_given_once() {
    let job = r#"apiVersion: batch/v1
kind: Job
spec:
  template: {spec: {containers: [{name: a, image: b, name: c}]}}
  backoffLimit: 1
kind: Job
"#;
    insta::assert_snapshot!(inlined_problems(job), @r#"
        error: the key `name` is given twice (line 4 of the Kubernetes file)
         --> app.pvn.yaml:8:9
          |
        8 |         inlined: |
          |         ^^^^^^^ runtime.custom.apply.kubernetesConfig.inlined

        error: the key `kind` is given twice (line 6 of the Kubernetes file)
         --> app.pvn.yaml:8:9
          |
        8 |         inlined: |
          |         ^^^^^^^ runtime.custom.apply.kubernetesConfig.inlined
        "#);
}
