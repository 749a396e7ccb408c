//! Reading rules about the names of fields: what is refused, exactly as people see it.

use super::{file, problems};
use crate::read;

#[test]
fn bad_input_unknown_field_is_told_with_the_nearest_name() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig:
        program: {cmd: [a], workDirectory: /x}
    getinfo: {}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: unknown field `workDirectory`
         --> app.pvn.yaml:7:29
          |
        7 |         program: {cmd: [a], workDirectory: /x}
          |                             ^^^^^^^^^^^^^ runtime.custom.apply.taskConfig.program.workDirectory
          |
          = help: did you mean `workingDirectory`?

        error: unknown field `getinfo`
         --> app.pvn.yaml:8:5
          |
        8 |     getinfo: {}
          |     ^^^^^^^ runtime.custom.getinfo
          |
          = help: did you mean `getInfo`?
        "#);
}

#[test]
fn a_field_with_no_near_name_is_told_with_the_known_ones() {
    let yaml = r#"application:
  name: a
  colour: red
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: unknown field `colour`
         --> app.pvn.yaml:3:3
          |
        3 |   colour: red
          |   ^^^^^^ application.colour
          |
          = help: known here: `name`, `releaseChannels`, `releaseChannelGroups`, `notifications`
        "#);
}

#[test]
fn unknown_fields_are_told_even_when_they_are_null() {
    let yaml = r#"application:
  name: a
  colour:
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: unknown field `colour`
         --> app.pvn.yaml:3:3
          |
        3 |   colour:
          |   ^^^^^^ application.colour
          |
          = help: known here: `name`, `releaseChannels`, `releaseChannelGroups`, `notifications`
        "#);
}

#[test]
fn a_field_given_twice_is_an_error() {
    let yaml = r#"application:
  name: a
  releaseChannels: []
  name: b
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: the field `name` is given twice
         --> app.pvn.yaml:4:3
          |
        2 |   name: a
          |   ---- first given here
        3 |   releaseChannels: []
        4 |   name: b
          |   ^^^^ application.name
        "#);
}

#[test]
fn a_field_given_in_both_spellings_is_given_twice() {
    let yaml = r#"application:
  name: a
  release_channels: []
  releaseChannels: []
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: the field `releaseChannels` is given twice, as `release_channels` and as `releaseChannels`
         --> app.pvn.yaml:4:3
          |
        3 |   release_channels: []
          |   ---------------- first given here
        4 |   releaseChannels: []
          |   ^^^^^^^^^^^^^^^ application.releaseChannels
        "#);
}

#[test]
fn a_field_and_its_alias_are_given_twice() {
    let yaml = r#"service:
  name: s
  application: a
  customRuntime: {}
  runtime_extension: {}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: the field `customRuntime` is given twice, as `customRuntime` and as `runtime_extension`
         --> app.pvn.yaml:5:3
          |
        4 |   customRuntime: {}
          |   ------------- first given here
        5 |   runtime_extension: {}
          |   ^^^^^^^^^^^^^^^^^ service.customRuntime
        "#);
}

#[test]
fn exactly_one_of_a_group_is_needed() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    fetch: {}
    apply:
      taskConfig: {program: {cmd: [a]}}
      kubernetesConfig: {type: KUBERNETES, inlined: x}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: exactly one of `taskConfig`, `kubernetesConfig` is needed; none is given
         --> app.pvn.yaml:5:12
          |
        5 |     fetch: {}
          |            ^^ runtime.custom.fetch

        error: exactly one of `taskConfig`, `kubernetesConfig`; both are given
         --> app.pvn.yaml:6:5
          |
        6 |     apply:
          |     ^^^^^ runtime.custom.apply

        error: a command's Kubernetes file must hold exactly one batch/v1 Job and nothing else; found a document without `apiVersion` and `kind`
         --> app.pvn.yaml:8:53
          |
        8 |       kubernetesConfig: {type: KUBERNETES, inlined: x}
          |                                                     ^ runtime.custom.apply.kubernetesConfig.inlined
        "#);
}

// as some published snippets have it
#[test]
fn a_program_straight_under_fetch_lacks_its_task_config() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      program:
        name: fetch
        cmd: [check]
    apply:
      taskConfig: {program: {cmd: [a]}}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: unknown field `program`
         --> app.pvn.yaml:6:7
          |
        6 |       program:
          |       ^^^^^^^ runtime.custom.fetch.program
          |
          = help: `taskConfig` is missing around it: write `taskConfig: {program: …}`
        "#);
}

/// The types name every field that there is; these are not among them and mean something to
/// Prodvana, so dropping them in silence would change what a file does.
#[test]
fn fields_of_prodvana_that_are_not_ours_are_refused_by_name() {
    let yaml = "application: {name: a, releaseChannels: [{name: s, runtimes: [{runtime: r, \
                containerOrchestration: {k8s: {namespace: n}}}]}]}
application_metadata: {description: x}
---
runtime: {name: e, awsEcs: {proxyRuntime: {runtime: r}, region: eu, ecsCluster: c, accessKey: \
                {accessKeyId: x}}}
---
runtime: {name: f, fake: {crashingPrograms: [{name: x}]}}
---
service: {name: s, application: a, disableDriftDetection: true}
";
    let told = problems(yaml);
    for expected in [
        "unknown field `containerOrchestration`",
        "unknown field `application_metadata`",
        "unknown field `accessKey`",
        "runtime.fake.crashingPrograms[0]",
        "unknown field `disableDriftDetection`",
    ] {
        assert!(told.contains(expected), "{expected} in:\n{told}");
    }
    assert_eq!(told.matches("error: ").count(), 5, "{told}");
}

#[test]
fn a_broken_group_hides_nothing_else_that_is_wrong() {
    let check = |yaml: &str, expected: &[&str]| {
        let told = read(&[file(yaml)]).unwrap_err();
        assert_eq!(
            told.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(),
            expected,
            "{yaml}"
        );
    };
    check(
        "service:\n  name: s\n  application: a\n  env: {A: {}, B: {value: x, secret: {key: k}}}\n  parameters: [{name: p}, {name: p, int: {}}]\n  progressDeadline: 1ms\n",
        &[
            "service.env.A",
            "service.env.B",
            "service.parameters[0]",
            "service.parameters[1].name",
            "service.progressDeadline",
        ],
    );
    check(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply:\n      \
         taskConfig: {program: {cmd: [a], imageTag: t}}\n      kubernetesConfig: {type: \
         KUBERNETES, inlined: nothing}\n    fetch: {timezone: UTC}\n",
        &[
            "runtime.custom.apply",
            "runtime.custom.apply.taskConfig.program.imageTag",
            "runtime.custom.apply.kubernetesConfig.inlined",
            "runtime.custom.fetch",
            "runtime.custom.fetch.timezone",
        ],
    );
    check(
        "application:\n  name: a\n  releaseChannels:\n  - name: c\n    runtimes: [{runtime: r}]\n    preconditions: [{}, {manualApproval: {name: q}}, {manualApproval: {name: q}, releaseChannelStable: {allowEmpty: true}}]\n",
        &[
            "application.releaseChannels[0].preconditions[0]",
            "application.releaseChannels[0].preconditions[2]",
            "application.releaseChannels[0].preconditions[2].manualApproval.name",
            "application.releaseChannels[0].preconditions[2].releaseChannelStable",
            "application.releaseChannels[0].preconditions[2].releaseChannelStable.allowEmpty",
        ],
    );
}

#[test]
fn a_precondition_that_is_written_as_a_word_is_told_with_how_to_write_it() {
    let said = problems(
        "application:\n  name: app\n  releaseChannels:\n  - name: a\n    runtimes: [{runtime: \
         r}]\n    preconditions: [{releaseChannelStable: staging}, {manualApproval: true}, \
         {sharedManualApproval: launch}]\n",
    );
    for help in [
        "write `{releaseChannel: …}` around it",
        "write `{name: …}`, the name is what people see, or `{}`",
        "write `{name: …}`, the name that the channels share",
    ] {
        assert!(said.contains(help), "{help}: {said}");
    }
}
