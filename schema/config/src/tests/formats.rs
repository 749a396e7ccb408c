//! Reading rules about what fields take: what is refused, exactly as people see it.

use super::problems;
use crate::is_secret_key;

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
          |
          = help: write `{releaseChannel: …}` around it

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
fn bad_input_what_is_often_written_as_a_text_alone_is_told_with_how_to_write_it() {
    let task = |program: &str| {
        format!(
            "runtime:\n  name: r\n  custom:\n    proxyRuntime: local\n    apply: {{taskConfig: \
             {{program: {{name: a, {program}}}}}}}\n"
        )
    };
    let said = problems(&task("cmd: make deploy, env: {A: b}"));
    for help in [
        "write `{runtime: …}` around it",
        "write each word as an item of a list, or `[sh, -c, \"…\"]`",
        "write `{value: …}` around it",
    ] {
        assert!(said.contains(help), "{help}: {said}");
    }
    let said = problems(
        "application:\n  name: app\n  releaseChannels: [{name: a, runtimes: [r]}, production]\n",
    );
    for help in ["write `{runtime: …}` around it", "write `{name: …}` around it"] {
        assert!(said.contains(help), "{help}: {said}");
    }
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
fn the_tag_of_a_programs_image_has_a_pattern() {
    let program = |tag: &str| {
        let info = "imageRegistryInfo: {imageRepository: r}, cmd: [a]";
        problems(&format!(
            "runtime: {{name: r, custom: {{proxyRuntime: {{runtime: k}}, apply: {{taskConfig: \
             {{program: {{imageTag: '{tag}', {info}}}}}}}}}}}\n"
        ))
    };
    for good in ["1.10", "_v", "{{.Params.tag}}", &format!("sha256:{}", "0a".repeat(32))] {
        assert_eq!(program(good), "none", "{good}");
    }
    for bad in ["b c", "-v", "", "r/a:1", "sha256:12"] {
        assert!(program(bad).contains(": a tag is letters, digits,"), "{bad}: {}", program(bad));
    }
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
        error: `at nine` is not a cron schedule: it has 2 fields, not five or six; write minute, hour, day of month, month, day of week, as in `0 9 * * 1-5`, with the second before them where there are six
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
fn bad_input_a_secrets_key_that_none_can_have_is_refused() {
    let told = |key: &str| {
        problems(&format!(
            "service:\n  name: s\n  application: a\n  env:\n    A: {{secret: {{key: \
                 {key}}}}}\n  parameters:\n  - {{name: p, secret: {{}}}}\n  customRuntime:\n    \
                 parameterValues:\n    - {{name: p, secret: {{secretRef: {{key: {key}}}}}}}\n"
        ))
    };
    let refused = "is not allowed here: keys of secrets are 1 to 128 letters, digits, `.`, `_`, \
                   `-` and `/`";
    for (key, plain) in [
        (r#""db pw\u0001""#, "db pw\u{1}"),
        ("odd key/é", "odd key/é"),
        ("''", ""),
        (&"x".repeat(129), &"x".repeat(129)),
    ] {
        assert!(!is_secret_key(plain), "nor does `pvnctl secrets set` take it");
        let told = told(key);
        assert_eq!(told.matches(refused).count(), 2, "{told}");
    }
    for key in ["db", "team-a/db.password_2", "7", &"x".repeat(128)] {
        assert_eq!(told(key), "none", "{key}");
        assert!(is_secret_key(key));
    }
}
