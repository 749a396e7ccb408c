//! What a single document must keep to beyond its schema, exactly as people see it.

use super::problems;

mod job_files;

#[test]
fn names_are_not_given_twice() {
    let yaml = r#"application:
  name: a
  releaseChannels:
  - {name: staging, runtimes: [{runtime: r}], constants: [{name: c, string: {value: x}}, {name: c, string: {value: y}}]}
  - {name: staging, runtimes: [{runtime: r}, {runtime: s, name: r}]}
---
service:
  name: s
  application: a
  parameters: [{name: p, string: {}}, {name: p, int: {}}]
  customRuntime: {parameterValues: [{name: v, string: x}, {name: v, string: y}]}
  perReleaseChannel: [{releaseChannel: staging}, {releaseChannel: staging}]
---
runtime:
  name: r
  labels: [{label: env, value: x}, {label: env, value: y}]
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: constant `c` is given twice
         --> app.pvn.yaml:4:97
          |
        4 |   - {name: staging, runtimes: [{runtime: r}], constants: [{name: c, string: {value: x}}, {name: c, string: {value: y}}]}
          |                                                                                                 ^ application.releaseChannels[0].constants[1].name

        error: release channel `staging` is given twice
         --> app.pvn.yaml:5:12
          |
        5 |   - {name: staging, runtimes: [{runtime: r}, {runtime: s, name: r}]}
          |            ^^^^^^^ application.releaseChannels[1].name

        error: runtime connection `r` is given twice
         --> app.pvn.yaml:5:46
          |
        5 |   - {name: staging, runtimes: [{runtime: r}, {runtime: s, name: r}]}
          |                                              ^^^^^^^^^^^^^^^^^^^^^ application.releaseChannels[1].runtimes[1]

        error: parameter `p` is given twice
          --> app.pvn.yaml:10:46
           |
        10 |   parameters: [{name: p, string: {}}, {name: p, int: {}}]
           |                                              ^ service.parameters[1].name

        error: parameter `v` is given twice
          --> app.pvn.yaml:11:66
           |
        11 |   customRuntime: {parameterValues: [{name: v, string: x}, {name: v, string: y}]}
           |                                                                  ^ service.customRuntime.parameterValues[1].name

        error: release channel `staging` is given twice
          --> app.pvn.yaml:12:67
           |
        12 |   perReleaseChannel: [{releaseChannel: staging}, {releaseChannel: staging}]
           |                                                                   ^^^^^^^ service.perReleaseChannel[1].releaseChannel

        error: label `env` is given twice
          --> app.pvn.yaml:16:44
           |
        16 |   labels: [{label: env, value: x}, {label: env, value: y}]
           |                                            ^^^ runtime.labels[1].label
        "#);
}

#[test]
fn an_image_is_given_whole_or_by_its_tag() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    fetch: {taskConfig: {program: {image: "a:1", imageTag: "1", cmd: [a]}}}
    apply: {taskConfig: {program: {imageTag: "1", cmd: [a]}}}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: at most one of `image`, `imageTag`; both are given
         --> app.pvn.yaml:5:60
          |
        5 |     fetch: {taskConfig: {program: {image: "a:1", imageTag: "1", cmd: [a]}}}
          |                                                            ^^^ runtime.custom.fetch.taskConfig.program.imageTag
          |
          = help: `image` is the whole reference; with `imageTag` the rest is in `imageRegistryInfo`

        error: `imageTag` needs `imageRegistryInfo`: nothing says of which image it is the tag
         --> app.pvn.yaml:6:46
          |
        6 |     apply: {taskConfig: {program: {imageTag: "1", cmd: [a]}}}
          |                                              ^^^ runtime.custom.apply.taskConfig.program.imageTag
        "#);
}

#[test]
fn a_schedule_may_stand_beside_the_intervals_and_a_time_zone_only_beside_a_schedule() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      taskConfig: {program: {cmd: [a]}}
      pollSchedule: 0 */15 * * * *
      pollInterval: 30s
    apply: {taskConfig: {program: {cmd: [a]}}}
    getInfo:
      taskConfig: {program: {cmd: [a]}}
      timezone: Europe/Berlin
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `timezone` is that of `pollSchedule`, which is missing
          --> app.pvn.yaml:12:17
           |
        12 |       timezone: Europe/Berlin
           |                 ^^^^^^^^^^^^^ runtime.custom.getInfo.timezone
        "#);
}

#[test]
fn the_longest_wait_is_not_less_than_the_first() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {cmd: [a]}}
      retryPolicy: {baseInterval: 10m, maxInterval: 90s}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `maxInterval` 1m30s is less than `baseInterval` 10m
         --> app.pvn.yaml:7:53
          |
        7 |       retryPolicy: {baseInterval: 10m, maxInterval: 90s}
          |                                                     ^^^ runtime.custom.apply.retryPolicy.maxInterval
        "#);
}

#[test]
fn a_sub_path_is_a_part_of_a_path() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      kubernetesConfig: {type: KUBERNETES, local: {paths: [], subPath: x, includePatterns: ["a["]}}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `paths` is empty; name at least one file
         --> app.pvn.yaml:6:59
          |
        6 |       kubernetesConfig: {type: KUBERNETES, local: {paths: [], subPath: x, includePatterns: ["a["]}}
          |                                                           ^^ runtime.custom.apply.kubernetesConfig.local.paths

        error: `subPath` is a part of `path`, which is missing
         --> app.pvn.yaml:6:72
          |
        6 |       kubernetesConfig: {type: KUBERNETES, local: {paths: [], subPath: x, includePatterns: ["a["]}}
          |                                                                        ^ runtime.custom.apply.kubernetesConfig.local.subPath

        error: `a[` is not a file pattern: unclosed character class; missing ']'
         --> app.pvn.yaml:6:93
          |
        6 |       kubernetesConfig: {type: KUBERNETES, local: {paths: [], subPath: x, includePatterns: ["a["]}}
          |                                                                                             ^^^^ runtime.custom.apply.kubernetesConfig.local.includePatterns[0]
        "#);
}

#[test]
fn a_local_file_that_was_not_sent_is_missing() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      kubernetesConfig: {type: KUBERNETES, local: {path: jobs/apply.yaml}}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `jobs/apply.yaml` was not sent along with the config file
         --> app.pvn.yaml:6:58
          |
        6 |       kubernetesConfig: {type: KUBERNETES, local: {path: jobs/apply.yaml}}
          |                                                          ^^^^^^^^^^^^^^^ runtime.custom.apply.kubernetesConfig.local.path
          |
          = help: `pvnctl` sends it; it reads local files relative to the config file
        "#);
}

#[test]
fn rules_are_told_beside_other_problems() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {cmd: [a], colour: red}}
      retryPolicy: {baseInterval: 10m, maxInterval: 90s}
    parameters: [{name: p, string: {}}, {name: p, string: {}}]
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: unknown field `colour`
         --> app.pvn.yaml:6:40
          |
        6 |       taskConfig: {program: {cmd: [a], colour: red}}
          |                                        ^^^^^^ runtime.custom.apply.taskConfig.program.colour
          |
          = help: known here: `name`, `image`, `imageTag`, `imageRegistryInfo`, `cmd`, `entrypoint`, `env`, `resources`, `workingDirectory`

        error: `maxInterval` 1m30s is less than `baseInterval` 10m
         --> app.pvn.yaml:7:53
          |
        7 |       retryPolicy: {baseInterval: 10m, maxInterval: 90s}
          |                                                     ^^^ runtime.custom.apply.retryPolicy.maxInterval

        error: parameter `p` is given twice
         --> app.pvn.yaml:8:48
          |
        8 |     parameters: [{name: p, string: {}}, {name: p, string: {}}]
          |                                                ^ runtime.custom.parameters[1].name
        "#);
}

/// What is said of a service with these blocks of its own and of a channel, a line each.
fn block_problems(own: &str, channel: &str) -> Vec<String> {
    let yaml = format!(
        "service:\n  name: s\n  application: a\n{own}  perReleaseChannel:\n  - {{releaseChannel: \
         c, {channel}}}\n"
    );
    let file = schema::api::ConfigFile {
        path: "app.pvn.yaml".to_owned(),
        text: yaml,
        ..Default::default()
    };
    let told = crate::read(&[file]).err().unwrap_or_default();
    told.into_iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}

#[test]
fn only_what_service_and_channel_say_together_must_be_whole() {
    let ecs = "  awsEcs: {taskDefinition: {inlined: '{}'}}\n";
    for (own, channel) in [
        (ecs, "awsEcs: {ecsServiceNameOverride: x}"),
        (
            "  awsEcs: {updateTaskDefinitionOnly: true}\n",
            "awsEcs: {taskDefinition: {inlined: '{}'}}",
        ),
        ("", "awsEcs: {taskDefinition: {inlined: '{}'}}"),
        ("  googleCloudRun: {inlined: x}\n", "googleCloudRun: {}"),
        ("  kubernetesConfig: {type: KUBERNETES, inlined: x}\n", "kubernetesConfig: {inlined: y}"),
        ("", "kubernetesConfig: {type: KUBERNETES, inlined: y}"),
        ("  terraform: {image: x}\n", "terraform: {path: y}"),
    ] {
        assert_eq!(block_problems(own, channel), [""; 0], "{own} {channel}");
    }
    let missing = "`taskDefinition` is required and missing";
    let both = |block: &str, what: &str| {
        vec![format!(
            "service.perReleaseChannel[0].{block}: {what}, and the service does not say it either"
        )]
    };
    assert_eq!(block_problems("", "awsEcs: {ecsServiceNameOverride: x}"), both("awsEcs", missing));
    assert_eq!(block_problems("  awsEcs: {}\n", "env: {}"), [format!("service.awsEcs: {missing}")]);
    assert_eq!(
        block_problems("", "googleCloudRun: {}"),
        both("googleCloudRun", "exactly one of `inlined`, `local`; none is given")
    );
    assert_eq!(
        block_problems("", "kubernetesConfig: {inlined: x}"),
        both("kubernetesConfig", "`type` is required and missing")
    );
}

#[test]
fn a_deadline_below_a_second_is_a_slip_of_units() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    approvalTimeout: 1ms
    apply: {taskConfig: {program: {cmd: [x]}}}
---
service: {name: s, application: a, progressDeadline: 0.9s}
"#;
    let told = problems(yaml);
    for part in [
        "`approvalTimeout` 1ms is too short: nobody can answer",
        "`progressDeadline` 900ms is too short",
        "give at least `1s`",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let enough = yaml.replace("1ms", "1s").replace("0.9s", "1s");
    assert_eq!(problems(&enough), "none");
}

#[test]
fn a_template_for_an_integer_is_written_as_a_text() {
    let yaml = "service: {name: s, application: a, parameters: [{name: n, int: {}}], \
                customRuntime: {parameterValues: [{name: n, int: \"{{.Params.n}}\"}]}}\n";
    let told = problems(yaml);
    assert!(
        told.contains(
            "write `string: \"{{.Params.n}}\"`; what it comes to must then be a whole number"
        ),
        "{told}"
    );
}

#[test]
fn p8_two_approvals_of_one_name_are_refused_for_one_yes_would_count_for_both() {
    let yaml = "application:\n  name: a\n  releaseChannels:\n  - name: c\n    preconditions:\n    \
                - manualApproval: {name: qa}\n    - sharedManualApproval: {name: qa}\n    - \
                manualApproval: {name: qa, minApprovers: 3}\n    - manualApproval: {}\n    - \
                manualApproval: {}\n    runtimes: [{runtime: r}]\n";
    insta::assert_snapshot!(problems(yaml), @r"
        error: `manualApproval` `qa` is given twice, so one yes would count for both
         --> app.pvn.yaml:8:30
          |
        8 |     - manualApproval: {name: qa, minApprovers: 3}
          |                              ^^ application.releaseChannels[0].preconditions[2].manualApproval.name
        ");
}

/// What needs no server to be seen, `pvnctl configs validate` tells: a pipeline that validates does
/// not pass what is refused later.
#[test]
fn bad_input_what_can_never_be_applied() {
    let yaml = r#"application: {name: a}
---
application: {name: b, releaseChannels: [{name: prod}]}
---
service: {name: s, application: b, autoRollback: {}}
---
service: {name: t, application: b, autoRollback: {disabled: true}}
"#;
    insta::assert_snapshot!(problems(yaml), @r"
        error: application `a` has no release channels
         --> app.pvn.yaml:1:14
          |
        1 | application: {name: a}
          |              ^^^^^^^^^ application
          |
          = help: add `releaseChannels: [{name: …, runtimes: [{runtime: …}]}]`

        error: the channel has no runtime
         --> app.pvn.yaml:3:42
          |
        3 | application: {name: b, releaseChannels: [{name: prod}]}
          |                                          ^^^^^^^^^^^^ application.releaseChannels[0]
          |
          = help: name one under `runtimes`, as in `runtimes: [{runtime: my-runtime}]`

        error: `autoRollback` needs a `progressDeadline`: nothing says when a release is stuck
         --> app.pvn.yaml:5:50
          |
        5 | service: {name: s, application: b, autoRollback: {}}
          |                                                  ^^ service.autoRollback
          |
          = help: add for example `progressDeadline: 1800s`
        ");
}
