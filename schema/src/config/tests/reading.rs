//! Reading rules: what the reader refuses, exactly as people see it.

use super::problems;

#[test]
fn a_field_that_is_not_known_is_told_with_the_nearest_name() {
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
          = help: known here: `name`, `releaseChannels`, `releaseChannelGroups`
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
          = help: known here: `name`, `releaseChannels`, `releaseChannelGroups`
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

#[test]
fn bad_input_wrong_types() {
    let yaml = r#"service:
  name: [s]
  application: {a: b}
  parameters: {name: x}
  perReleaseChannel:
  - production
  - releaseChannel: production
    customRuntime: {parameterValues: [{name: n, int: many}], clearOnPerReleaseChannelMerge: "yes"}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: expected a text, found a list
         --> app.pvn.yaml:2:9
          |
        2 |   name: [s]
          |         ^^^ service.name

        error: expected a text, found a mapping
         --> app.pvn.yaml:3:16
          |
        3 |   application: {a: b}
          |                ^^^^^^ service.application

        error: expected a list, found a mapping
         --> app.pvn.yaml:4:15
          |
        4 |   parameters: {name: x}
          |               ^^^^^^^^^ service.parameters

        error: expected a mapping, found `production`
         --> app.pvn.yaml:6:5
          |
        6 |   - production
          |     ^^^^^^^^^^ service.perReleaseChannel[0]

        error: expected a whole number, found `many`
         --> app.pvn.yaml:8:54
          |
        8 |     customRuntime: {parameterValues: [{name: n, int: many}], clearOnPerReleaseChannelMerge: "yes"}
          |                                                      ^^^^ service.perReleaseChannel[1].customRuntime.parameterValues[0].int

        error: expected `true` or `false`, found the text "yes"
         --> app.pvn.yaml:8:93
          |
        8 |     customRuntime: {parameterValues: [{name: n, int: many}], clearOnPerReleaseChannelMerge: "yes"}
          |                                                                                             ^^^^^ service.perReleaseChannel[1].customRuntime.clearOnPerReleaseChannelMerge
          |
          = help: leave the quotes out
        "#);
}

#[test]
fn durations_have_units_and_are_positive() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      taskConfig: {program: {cmd: [a]}, ttl: 1 hour}
      pollInterval: 300
      steadyStatePollInterval: -5m
    apply:
      taskConfig: {program: {cmd: [a]}}
      timeout: 0s
    convergenceGracePeriod: 9999999999h
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `1 hour` is not a duration; write numbers with their units, as in `300s`, `1.5s`, `10m` or `1h30m`
         --> app.pvn.yaml:6:46
          |
        6 |       taskConfig: {program: {cmd: [a]}, ttl: 1 hour}
          |                                              ^^^^^^ runtime.custom.fetch.taskConfig.ttl

        error: `300` is not a duration; write numbers with their units, as in `300s`, `1.5s`, `10m` or `1h30m`
         --> app.pvn.yaml:7:21
          |
        7 |       pollInterval: 300
          |                     ^^^ runtime.custom.fetch.pollInterval

        error: `-5m` is not a positive duration; write one of at least `1ms`
         --> app.pvn.yaml:8:32
          |
        8 |       steadyStatePollInterval: -5m
          |                                ^^^ runtime.custom.fetch.steadyStatePollInterval

        error: `0s` is not a positive duration; write one of at least `1ms`
          --> app.pvn.yaml:11:16
           |
        11 |       timeout: 0s
           |                ^^ runtime.custom.apply.timeout

        error: `9999999999h` is longer than a hundred years
          --> app.pvn.yaml:12:29
           |
        12 |     convergenceGracePeriod: 9999999999h
           |                             ^^^^^^^^^^^ runtime.custom.convergenceGracePeriod
        "#);
}

#[test]
fn whole_numbers_have_ranges() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {cmd: [a]}}
      maxConcurrency: 0
      retryableExitCodes: [0, "256", 1.5, 0x10, 010]
      retryPolicy: {maxAttempts: 99999999999}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: must be at least 1, found 0
         --> app.pvn.yaml:7:23
          |
        7 |       maxConcurrency: 0
          |                       ^ runtime.custom.apply.maxConcurrency

        error: must be from 1 to 255, found 0
         --> app.pvn.yaml:8:28
          |
        8 |       retryableExitCodes: [0, "256", 1.5, 0x10, 010]
          |                            ^ runtime.custom.apply.retryableExitCodes[0]

        error: must be from 1 to 255, found 256
         --> app.pvn.yaml:8:31
          |
        8 |       retryableExitCodes: [0, "256", 1.5, 0x10, 010]
          |                               ^^^^^ runtime.custom.apply.retryableExitCodes[1]

        error: expected a whole number, found `1.5`
         --> app.pvn.yaml:8:38
          |
        8 |       retryableExitCodes: [0, "256", 1.5, 0x10, 010]
          |                                      ^^^ runtime.custom.apply.retryableExitCodes[2]

        error: expected a whole number, found `0x10`
         --> app.pvn.yaml:8:43
          |
        8 |       retryableExitCodes: [0, "256", 1.5, 0x10, 010]
          |                                           ^^^^ runtime.custom.apply.retryableExitCodes[3]

        error: expected a whole number, found `010`
         --> app.pvn.yaml:8:49
          |
        8 |       retryableExitCodes: [0, "256", 1.5, 0x10, 010]
          |                                                 ^^^ runtime.custom.apply.retryableExitCodes[4]

        error: must be from -2147483648 to 2147483647, found 99999999999
         --> app.pvn.yaml:9:34
          |
        9 |       retryPolicy: {maxAttempts: 99999999999}
          |                                  ^^^^^^^^^^^ runtime.custom.apply.retryPolicy.maxAttempts
        "#);
}

#[test]
fn words_are_exact() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    fetch: {fetchMode: structured_output, taskConfig: {program: {cmd: [a]}}}
    apply:
      taskConfig:
        program: {cmd: [a]}
        volumes: [{name: v, source: {ephemeral: {medium: RAM}}, mount: {mountPath: v}}]
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: expected one of `EXIT_CODE`, `STRUCTURED_OUTPUT`, found `structured_output`
         --> app.pvn.yaml:5:24
          |
        5 |     fetch: {fetchMode: structured_output, taskConfig: {program: {cmd: [a]}}}
          |                        ^^^^^^^^^^^^^^^^^ runtime.custom.fetch.fetchMode
          |
          = help: did you mean `STRUCTURED_OUTPUT`?

        error: expected one of `DEFAULT`, `MEMORY`, found `RAM`
         --> app.pvn.yaml:9:58
          |
        9 |         volumes: [{name: v, source: {ephemeral: {medium: RAM}}, mount: {mountPath: v}}]
          |                                                          ^^^ runtime.custom.apply.taskConfig.volumes[0].source.ephemeral.medium

        error: `v` is not allowed here: a mount path is absolute: it starts with `/`
         --> app.pvn.yaml:9:84
          |
        9 |         volumes: [{name: v, source: {ephemeral: {medium: RAM}}, mount: {mountPath: v}}]
          |                                                                                    ^ runtime.custom.apply.taskConfig.volumes[0].mount.mountPath
        "#);
}

#[test]
fn names_have_a_pattern() {
    let yaml = r#"application:
  name: My_App
  releaseChannels:
  - name: 9a
    runtimes: [{runtime: -r, name: ""}]
    preconditions:
    - releaseChannelStable: {releaseChannel: Staging}
  releaseChannelGroups:
  - {name: toolongtoolongtoolongtoolongtoolongtoolongtoolongtoolongtoolongtoo, runtimeSelector: "a=b"}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `My_App` is not allowed here: names are 1 to 63 characters: lower-case letters, digits and `-`, starting with a letter and not ending with `-`
         --> app.pvn.yaml:2:9
          |
        2 |   name: My_App
          |         ^^^^^^ application.name

        error: `9a` is not allowed here: names are 1 to 63 characters: lower-case letters, digits and `-`, starting with a letter and not ending with `-`
         --> app.pvn.yaml:4:11
          |
        4 |   - name: 9a
          |           ^^ application.releaseChannels[0].name

        error: `-r` is not allowed here: names are 1 to 63 characters: lower-case letters, digits and `-`, starting with a letter and not ending with `-`
         --> app.pvn.yaml:5:26
          |
        5 |     runtimes: [{runtime: -r, name: ""}]
          |                          ^^ application.releaseChannels[0].runtimes[0].runtime

        error: `` is not allowed here: names are 1 to 63 characters: lower-case letters, digits and `-`, starting with a letter and not ending with `-`
         --> app.pvn.yaml:5:36
          |
        5 |     runtimes: [{runtime: -r, name: ""}]
          |                                    ^^ application.releaseChannels[0].runtimes[0].name

        error: `toolongtoolongtoolongtoolongtoolongtoolongtoolongtoolongtool…` is not allowed here: names are 1 to 63 characters: lower-case letters, digits and `-`, starting with a letter and not ending with `-`
         --> app.pvn.yaml:9:12
          |
        9 |   - {name: toolongtoolongtoolongtoolongtoolongtoolongtoolongtoolongtoolongtoo, runtimeSelector: "a=b"}
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ application.releaseChannelGroups[0].name
        "#);
}

#[test]
fn keys_of_the_environment_have_a_pattern() {
    let yaml = r#"service:
  name: s
  application: a
  env: {1A: {value: x}, A-B: {value: x}, "": {value: x}, _OK: {value: x}}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `1A` is not the key of an environment variable: letters, digits and `_`, not starting with a digit
         --> app.pvn.yaml:4:9
          |
        4 |   env: {1A: {value: x}, A-B: {value: x}, "": {value: x}, _OK: {value: x}}
          |         ^^ service.env.1A

        error: `A-B` is not the key of an environment variable: letters, digits and `_`, not starting with a digit
         --> app.pvn.yaml:4:25
          |
        4 |   env: {1A: {value: x}, A-B: {value: x}, "": {value: x}, _OK: {value: x}}
          |                         ^^^ service.env.A-B

        error: `` is not the key of an environment variable: letters, digits and `_`, not starting with a digit
         --> app.pvn.yaml:4:42
          |
        4 |   env: {1A: {value: x}, A-B: {value: x}, "": {value: x}, _OK: {value: x}}
          |                                          ^^ service.env.
        "#);
}

#[test]
fn parameters_and_tags_have_patterns() {
    let yaml = r#"service:
  name: s
  application: a
  parameters:
  - {name: a.b, string: {}}
  - {name: image, dockerImage: {defaultTag: -v}}
  customRuntime:
    parameterValues:
    - {name: image, dockerImageTag: "sha256:12 34"}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `a.b` is not allowed here: names of parameters and constants are letters, digits, `_` and `-`, starting with a letter or `_`
         --> app.pvn.yaml:5:12
          |
        5 |   - {name: a.b, string: {}}
          |            ^^^ service.parameters[0].name

        error: `-v` is not allowed here: a tag is letters, digits, `_`, `.` and `-`, not starting with `.` or `-`; a digest is `sha256:` and 64 hex digits
         --> app.pvn.yaml:6:45
          |
        6 |   - {name: image, dockerImage: {defaultTag: -v}}
          |                                             ^^ service.parameters[1].dockerImage.defaultTag

        error: `sha256:12 34` is not allowed here: a tag is letters, digits, `_`, `.` and `-`, not starting with `.` or `-`; a digest is `sha256:` and 64 hex digits
         --> app.pvn.yaml:9:37
          |
        9 |     - {name: image, dockerImageTag: "sha256:12 34"}
          |                                     ^^^^^^^^^^^^^^ service.customRuntime.parameterValues[0].dockerImageTag
        "#);
}

#[test]
fn schedules_and_time_zones_are_checked() {
    let yaml = r#"runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {cmd: [a]}}
      window: {schedule: at nine, duration: 8h, timezone: Berlin}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `at nine` is not a cron schedule: The 'Seconds' field does not support using names. 'at' specified; write second, minute, hour, day of month, month, day of week, as in `0 */15 * * * *`
         --> app.pvn.yaml:7:26
          |
        7 |       window: {schedule: at nine, duration: 8h, timezone: Berlin}
          |                          ^^^^^^^ runtime.custom.apply.window.schedule

        error: `Berlin` is not a time zone; write one of the IANA names, as in `Europe/Berlin`
         --> app.pvn.yaml:7:59
          |
        7 |       window: {schedule: at nine, duration: 8h, timezone: Berlin}
          |                                                           ^^^^^^ runtime.custom.apply.window.timezone
        "#);
}

#[test]
fn a_document_has_exactly_one_top_level_key() {
    let yaml = r#"runtime: {name: r}
application: {name: a}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: exactly one of `runtime`, `application`, `service`; `runtime`, `application` are given
         --> app.pvn.yaml:1:1
          |
        1 | runtime: {name: r}
          | ^^^^^^^^^^^^^^^^^^
        "#);
}

#[test]
fn a_document_of_another_kind_is_told_with_the_known_kinds() {
    let yaml = r#"protection: {name: p}
---
services: {name: s}
---
- service
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: not supported yet: documents of kind `protection`
         --> app.pvn.yaml:1:1
          |
        1 | protection: {name: p}
          | ^^^^^^^^^^ protection
          |
          = help: known here: `runtime`, `application`, `service`

        error: unknown field `services`
         --> app.pvn.yaml:3:1
          |
        3 | services: {name: s}
          | ^^^^^^^^ services
          |
          = help: did you mean `service`?

        error: expected a mapping, found a list
         --> app.pvn.yaml:5:1
          |
        5 | - service
          | ^^^^^^^^^
        "#);
}

#[test]
fn kinds_of_runtime_exclude_each_other() {
    let yaml = r#"runtime:
  name: r
  local: {}
  fake: {}
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: at most one of `custom`, `kubernetes`, `local`, `fake`, `terraformRunner`, `pulumiRunner`, `awsEcs`, `googleCloudRun`; `local`, `fake` are given
         --> app.pvn.yaml:1:1
          |
        1 | runtime:
          | ^^^^^^^ runtime
        "#);
}

// each document of a file is told of
#[test]
fn bad_input_malformed_yaml() {
    let yaml = r#"application:
  name: "a
---
application:
  name: a: b
---
application:
	name: a
---
application: [a
---
application: {name: {{.Params.x}}}
---
a: *nothing
---
!!binary aGVsbG8=
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: malformed YAML: while scanning a quoted scalar, found unexpected end of stream
         --> app.pvn.yaml:2:9
          |
        2 |   name: "a
          |         ^

        error: malformed YAML: mapping values are not allowed in this context
         --> app.pvn.yaml:5:10
          |
        5 |   name: a: b
          |          ^
          |
          = help: a text with `: ` or ` #` in it, or with `*`, `&`, `{`, `[`, `@` in front, has to stand in quotes

        error: a tab cannot indent YAML
         --> app.pvn.yaml:8:1
          |
        8 |     name: a
          | ^^^^
          |
          = help: use spaces

        error: malformed YAML: while parsing a flow sequence, expected ',' or ']'
          --> app.pvn.yaml:10:16
           |
        10 | application: [a
           |                ^

        error: a key must be a text
          --> app.pvn.yaml:12:22
           |
        12 | application: {name: {{.Params.x}}}
           |                      ^^^^^^^^^^^
           |
           = help: a template has to stand in quotes, as in `"{{.Params.x}}"`

        error: malformed YAML: while parsing node, found unknown anchor
          --> app.pvn.yaml:14:4
           |
        14 | a: *nothing
           |    ^
           |
           = help: a text with `: ` or ` #` in it, or with `*`, `&`, `{`, `[`, `@` in front, has to stand in quotes

        error: the tag `!!binary` is not supported
          --> app.pvn.yaml:16:1
           |
        16 | !!binary aGVsbG8=
           | ^^^^^^^^^^^^^^^^^
        "#);
}

#[test]
fn bad_input_problems_of_all_documents_are_told_at_once() {
    let yaml = r#"application:
  name: A
---
service:
  name: s
  applicaton: a
---
runtime:
  name: r
  labels: [{label: env}]
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: `A` is not allowed here: names are 1 to 63 characters: lower-case letters, digits and `-`, starting with a letter and not ending with `-`
         --> app.pvn.yaml:2:9
          |
        2 |   name: A
          |         ^ application.name

        error: `application` is required and missing
         --> app.pvn.yaml:4:1
          |
        4 | service:
          | ^^^^^^^ service.application

        error: unknown field `applicaton`
         --> app.pvn.yaml:6:3
          |
        6 |   applicaton: a
          |   ^^^^^^^^^^ service.applicaton
          |
          = help: did you mean `application`?

        error: `value` is required and missing
          --> app.pvn.yaml:10:12
           |
        10 |   labels: [{label: env}]
           |            ^^^^^^^^^^^^ runtime.labels[0].value
        "#);
}

#[test]
fn bad_input_two_of_a_kind() {
    let yaml = r#"application: {name: a}
---
service: {name: s, application: a}
---
service: {name: s, application: b}
---
application:
  # the same again
  name: a
"#;
    insta::assert_snapshot!(problems(yaml), @r#"
        error: application `a` is given twice; the first is at app.pvn.yaml:1
         --> app.pvn.yaml:9:9
          |
        9 |   name: a
          |         ^ application.name
        "#);
}
