//! Commands, environments, places.

use super::*;

/// The apply command when the runtime's `apply` is this.
fn check(apply: &str, expected: Result<(&[&str], &str), &str>) {
    let text =
        changed(SMALL, &[("{taskConfig: {program: {cmd: [apply, '{{.Params.x}}']}}}", apply)]);
    match (compiled(&text, "staging", ""), expected) {
        (Ok(instance), Ok((argv, variables))) => {
            assert_eq!(instance.commands.apply.argv, argv, "{apply}");
            assert_eq!(env(&instance.commands.apply), variables, "{apply}");
        }
        (Err(problems), Err(expected)) => {
            assert_eq!(lines(&problems).join("\n"), expected, "{apply}")
        }
        (found, _) => panic!("{apply}: {found:?}"),
    }
}

#[test]
fn entrypoint_and_cmd_are_joined_as_in_docker() {
    check("{taskConfig: {program: {cmd: [a, b]}}}", Ok((&["a", "b"], "")));
    check("{taskConfig: {program: {entrypoint: [e, f], cmd: [a]}}}", Ok((&["e", "f", "a"], "")));
    check("{taskConfig: {program: {entrypoint: [e]}}}", Ok((&["e"], "")));
    let nothing = "runtime.custom.apply.taskConfig.program: there is neither `entrypoint` nor \
                   `cmd`: on this machine no image says what to run";
    check("{taskConfig: {program: {image: busybox}}}", Err(nothing));
    let nul =
        "runtime.custom.apply: argument 1 holds a NUL character, which no program can be given";
    check("{taskConfig: {program: {cmd: [a, \"b\\0\"]}}}", Err(nul));
}

#[test]
fn template_error_tells_its_place() {
    let expected = "runtime.custom.apply.taskConfig.program.cmd[1]: undefined name `{{.Params.y}}`";
    check("{taskConfig: {program: {cmd: [a, '{{.Params.y}}']}}}", Err(expected));
    let expected = "runtime.custom.apply.env.A.value: `{{if}}` is not a template that pvn knows";
    check("{env: {A: {value: '{{if}}'}}, taskConfig: {program: {cmd: [a]}}}", Err(expected));
}

#[test]
fn what_only_a_cluster_can_do_is_not_supported_here() {
    let volumes = "[{name: v, source: {ephemeral: {}}, mount: {mountPath: /v}}]";
    let expected = "runtime.custom.apply.taskConfig.volumes: not supported yet: `volumes` of a \
                    task on a `local` runtime";
    check(&format!("{{taskConfig: {{program: {{cmd: [a]}}, volumes: {volumes}}}}}"), Err(expected));
    let expected = "runtime.custom.apply.taskConfig.k8s: not supported yet: `k8s` of a task on a \
                    `local` runtime";
    check("{taskConfig: {program: {cmd: [a]}, k8s: {serviceAccount: s}}}", Err(expected));
    let expected = "runtime.custom.apply.taskConfig.program.resources: not supported yet: \
                    `resources` of a task on a `local` runtime";
    check("{taskConfig: {program: {cmd: [a], resources: {limits: {cpu: '1'}}}}}", Err(expected));
    let expected =
        "runtime.custom.apply.taskConfig.retryConfig: not supported yet: `retryConfig` of a task";
    check("{taskConfig: {program: {cmd: [a]}, retryConfig: {retryForever: true}}}", Err(expected));
    let expected = "runtime.custom.apply.env.A.kubernetesSecret: not supported yet: a secret of \
                    the cluster on this machine";
    check(
        "{env: {A: {kubernetesSecret: {secretName: s, key: k}}}, taskConfig: {program: {cmd: \
         [a]}}}",
        Err(expected),
    );
}

#[test]
fn environment_precedence_lowest_first() {
    let text = changed(
        SMALL,
        &[
            (
                "{name: staging,",
                "{name: staging, policy: {defaultEnv: {A: {value: '1'}, B: {value: '1'}, C: \
                 {value: '1'}, D: {value: '1'}, E: {value: '1'}}},",
            ),
            (
                "  application: app\n",
                "  application: app
  env: {B: {value: '2'}, C: {value: '2'}, D: {value: '2'}, E: {value: '2'}}
  perReleaseChannel: [{releaseChannel: staging, env: {C: {value: '3'}, D: {value: '3'}, E: {value: \
                 '3'}}}]\n",
            ),
            (
                "apply: {taskConfig: {program: {",
                "apply: {env: {D: {value: '4'}, E: {value: '4'}}, taskConfig: {program: {env: {E: \
                 {value: '5'}}, ",
            ),
        ],
    );
    assert_eq!(env(&compiled(&text, "staging", "").unwrap().commands.apply), "A=1 B=2 C=3 D=4 E=5");
}

#[test]
fn environment_pvn_names_are_always_ours() {
    let variables = "{PVN_SERVICE: {value: mine}, PVN_TOKEN: {value: mine}, PVN_DELIVERY_TIMEOUT: \
                     {value: 5s}, PVN_MINE: {value: x}}";
    check(
        &format!("{{env: {variables}, taskConfig: {{program: {{cmd: [a]}}}}}}"),
        Ok((&["a"], "PVN_DELIVERY_TIMEOUT=5s PVN_MINE=x")),
    );
}

#[test]
fn environment_templates_see_the_parameters_of_their_own_side() {
    let text = changed(
        SMALL,
        &[
            (
                "  application: app\n",
                "  application: app\n  parameters: [{name: p, string: {}}]\n  env: {A: {value: \
                 '{{.Params.p}}'}}\n",
            ),
            ("apply: {", "apply: {env: {B: {value: '{{.Params.x}}'}}, "),
        ],
    );
    assert_eq!(env(&compiled(&text, "staging", "p=1").unwrap().commands.apply), "A=1 B=fallback");
}

#[test]
fn environment_secrets_are_references() {
    let variables =
        "{A: {secret: {key: k, version: 2}}, B: {secret: {key: other}}, C: {rawSecret: hush}}";
    let text = changed(SMALL, &[("apply: {", &format!("apply: {{env: {variables}, "))]);
    let instance = compiled(&text, "staging", "").unwrap();
    assert_eq!(env(&instance.commands.apply), "A=secret(k@2) B=secret(other@0) C=[hush]");
    assert_eq!(instance.commands.secret_keys().into_iter().collect::<Vec<_>>(), ["k", "other"]);
    assert!(!serde_json::to_string(&instance).unwrap().contains("\"hush\""));
}

#[test]
fn a_nul_in_a_value_or_a_secret_is_refused_where_it_is_written() {
    for (variables, expected) in [
        (
            r#"{A: {value: "a\0b"}}"#,
            "runtime.custom.apply: variable `A` holds a NUL character, which no program can be \
             given",
        ),
        (
            r#"{A: {rawSecret: "hush\0hush"}}"#,
            "runtime.custom.apply.env.A.rawSecret: a NUL character, which no program can be given",
        ),
    ] {
        let text = changed(SMALL, &[("apply: {", &format!("apply: {{env: {variables}, "))]);
        let problems = compiled(&text, "staging", "").map(drop).unwrap_err();
        assert_eq!(lines(&problems).join("\n"), expected);
    }
}

/// Where the jobs run when the proxy runtime is `proxy`, defined as `definition`.
fn check_place(definition: &str, options: Options, expected: Result<RunTarget, &str>) {
    let text = changed(
        &format!("{SMALL}---\nruntime:\n  name: proxy\n{definition}\n"),
        &[("runtime: local", "runtime: proxy")],
    );
    let found = compiled_with(&configs(&text), &options, "staging", "")
        .map(|instance| instance.commands.place)
        .map_err(|it| lines(&it).join("\n"));
    assert_eq!(found, expected.map_err(str::to_owned), "{definition}");
}

#[test]
fn jobs_run_where_the_proxy_runtime_is() {
    let serve = Options::default();
    let here = |root: Option<&str>, clean_env| RunTarget::Local {
        root: root.map(str::to_owned),
        clean_env,
    };
    check_place("  local: {}", serve, Ok(here(None, false)));
    check_place("  local: {root: /srv, env: clean}", serve, Ok(here(Some("/srv"), true)));
    check_place(
        "  fake: {crashingPrograms: [apply]}",
        serve,
        Ok(RunTarget::Fake { crashing_programs: vec!["apply".to_owned()] }),
    );
    let custom = "runtime.custom.proxyRuntime.runtime: runtime `proxy` is of kind `custom`, which \
                  cannot run the jobs of another";
    check_place(
        "  custom: {proxyRuntime: {runtime: local}, apply: {taskConfig: {program: {cmd: [a]}}}}",
        serve,
        Err(custom),
    );
}

#[test]
fn everything_local_runs_everything_here() {
    let dev = Options { everything_local: true };
    let here = RunTarget::Local { root: None, clean_env: false };
    check_place("  kubernetes: {}", dev, Ok(here.clone()));
    check_place("  labels: []", dev, Ok(here.clone()));
    check_place("  fake: {}", dev, Ok(RunTarget::Fake { crashing_programs: Vec::new() }));
    let elsewhere = changed(
        SMALL,
        &[
            ("runtime: local", "runtime: elsewhere"),
            ("program: {", "program: {resources: {limits: {cpu: '1'}}, "),
        ],
    );
    assert_eq!(
        compiled_with(&configs(&elsewhere), &dev, "staging", "").unwrap().commands.place,
        here
    );
    assert_eq!(super::super::check(&configs(&elsewhere), &dev, None), []);
}

#[test]
fn a_service_on_a_fake_runtime_needs_no_commands() {
    let text = "
runtime: {name: pretend, fake: {crashingPrograms: [svc]}}
---
application: {name: app, releaseChannels: [{name: staging, runtimes: [{runtime: pretend}]}]}
---
service: {name: svc, application: app}
";
    let instance = compiled(text, "staging", "").unwrap();
    assert_eq!(instance.commands.apply.name, "svc");
    assert!(matches!(instance.place, RunTarget::Fake { .. }));
    assert_eq!(super::super::check(&configs(text), &Options::default(), None), []);
}

#[test]
fn expected_output_follows_from_the_kind_of_command() {
    let both = "fetch: {fetchMode: STRUCTURED_OUTPUT, taskConfig: {program: {cmd: [f]}}}
    debug: {taskConfig: {program: {cmd: [i]}}}
    apply: {";
    let text = changed(SMALL, &[("apply: {", &both.replace("debug", "getInfo"))]);
    let commands = compiled(&text, "staging", "").unwrap().commands;
    let fetch = commands.fetch.unwrap();
    assert_eq!(
        (fetch.name.as_str(), fetch.expect),
        ("fetch", Some(schema::report::StructuredKind::Fetch))
    );
    let info = commands.get_info.unwrap();
    assert_eq!(
        (info.name.as_str(), info.expect),
        ("getInfo", Some(schema::report::StructuredKind::GetInfo))
    );
    assert_eq!(commands.apply.expect, None);
}

#[test]
fn the_digest_changes_with_the_commands_and_with_nothing_else() {
    let digest = |text: &str| compiled(text, "staging", "").unwrap().desired.compiled;
    let first = digest(SMALL);
    assert_eq!(first, digest(SMALL));
    assert_eq!(
        first,
        digest(&changed(
            SMALL,
            &[("proxyRuntime:", "convergenceGracePeriod: 7s\n    proxyRuntime:")]
        ))
    );
    assert_ne!(first, digest(&changed(SMALL, &[("fallback", "other")])));
}

#[test]
fn an_argument_and_a_variable_are_as_long_as_a_program_takes_at_most() {
    let with = |length: usize| {
        let long = "x".repeat(length);
        compiled(
            &changed(
                SMALL,
                &[
                    ("fallback", long.as_str()),
                    ("apply: {", "apply: {env: {A: {value: '{{.Params.x}}'}}, "),
                ],
            ),
            "staging",
            "",
        )
    };
    assert!(with(131_069).is_ok());
    let expected = "runtime.custom.apply: variable `A` is 131072 bytes long with its values; a \
                    program takes at most 131071";
    assert_eq!(lines(&with(131_070).unwrap_err()), [expected]);
    assert_eq!(lines(&with(131_072).unwrap_err()).len(), 2);
}

#[test]
fn a_secret_of_the_cluster_is_no_problem_where_nothing_runs() {
    let text = changed(
        &format!("{SMALL}---\nruntime: {{name: pretend, fake: {{}}}}\n"),
        &[
            ("runtime: local", "runtime: pretend"),
            ("apply: {", "apply: {env: {A: {kubernetesSecret: {secretName: s, key: k}}}, "),
        ],
    );
    assert_eq!(env(&compiled(&text, "staging", "").unwrap().commands.apply), "");
}
