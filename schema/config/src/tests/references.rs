//! What documents say about each other.

use super::documents;
use crate::check_references;

/// Line, path and message of each problem, with its help.
fn problems(text: &str) -> String {
    let problems = check_references(&documents(text));
    let line = |problem: &crate::diagnostic::Diagnostic| {
        let help = problem.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{} {}: {}{help}", problem.line_and_column().0, problem.path, problem.message)
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

const APPLICATION: &str = "application:
  name: a
  releaseChannels:
  - {name: staging, runtimes: [{runtime: r, name: vm}]}
  - name: production
    runtimes: [{runtime: r}, {runtime: r2}]
    preconditions: [{releaseChannelStable: {releaseChannel: staging}}]
";

const RUNTIME: &str = "---
runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    apply: {taskConfig: {program: {cmd: [a]}}}
    parameters: [{name: tag, string: {}}]
";

#[test]
fn documents_that_fit_have_no_problems() {
    let text = format!(
        "{APPLICATION}{RUNTIME}---\nservice: {{name: s, application: a, customRuntime: \
         {{parameterValues: [{{name: tag, string: x}}]}}, perReleaseChannel: [{{releaseChannel: \
         production, runtimeConnection: r2}}]}}\n"
    );
    assert_eq!(problems(&text), "");
}

#[test]
fn bad_input_reference_to_nothing() {
    let text = format!(
        "{APPLICATION}{RUNTIME}---
service:
  name: s
  application: a
  runtimeConnection: vn
  customRuntime: {{parameterValues: [{{name: tags, string: x}}]}}
  perReleaseChannel:
  - {{releaseChannel: prod, runtimeConnection: x}}
  - {{releaseChannel: staging, runtimeConnection: vm, customRuntime: {{parameterValues: [{{name: \
         other, string: x}}]}}}}
"
    );
    assert_eq!(
        problems(&text),
        "19 service.runtimeConnection: unknown runtime connection in channel `production`: `vn` \
         (there are: `r`, `r2`)
20 service.customRuntime.parameterValues[0].name: unknown parameter of runtime `r`: `tags` (did \
         you mean `tag`?)
22 service.perReleaseChannel[0].releaseChannel: unknown release channel `prod` (there are: \
         `staging`, `production`)
23 service.perReleaseChannel[1].customRuntime.parameterValues[0].name: unknown parameter of \
         runtime `r`: `other` (there are: `tag`)"
    );
}

#[test]
fn a_document_that_is_not_given_is_not_missed() {
    assert_eq!(
        problems(
            "service: {name: s, application: a, runtimeConnection: x, perReleaseChannel: \
             [{releaseChannel: y}]}"
        ),
        ""
    );
    assert_eq!(problems(APPLICATION), "");
    let group = "application:\n  name: a\n  releaseChannelGroups: [{name: g, runtimeSelector: \
                 \"a=b\"}]\n---\nservice: {name: s, application: a, perReleaseChannel: \
                 [{releaseChannel: g-some}]}\n";
    assert_eq!(problems(group), "", "a group's channels are known only with all runtimes");
}

#[test]
fn bad_input_precondition_on_no_channel() {
    let text = "application: {name: a, releaseChannels: [{name: b, runtimes: [{runtime: r}], \
                preconditions: [{releaseChannelStable: {releaseChannel: c}}]}]}";
    assert_eq!(
        problems(text),
        "1 application.releaseChannels[0].preconditions[0].releaseChannelStable.releaseChannel: \
         unknown release channel `c` (there are: `b`)"
    );
}

#[test]
fn bad_input_cycle() {
    let channel = |name: &str, after: &[&str]| {
        let after: Vec<_> = after
            .iter()
            .map(|name| format!("{{releaseChannelStable: {{releaseChannel: {name}}}}}"))
            .collect();
        format!(
            "  - {{name: {name}, runtimes: [{{runtime: r}}], preconditions: [{}]}}\n",
            after.join(", ")
        )
    };
    let application = |channels: &[String]| {
        format!("application:\n  name: a\n  releaseChannels:\n{}", channels.concat())
    };
    let text = application(&[
        channel("a", &["c"]),
        channel("b", &["a"]),
        channel("c", &["b", "d"]),
        channel("d", &[]),
    ]);
    assert_eq!(
        problems(&text),
        "5 application.releaseChannels[1].preconditions[0].releaseChannelStable.releaseChannel: \
         release channels wait for each other: `a` after `c` after `b` after `a` (take out one of \
         these preconditions)"
    );
    let text =
        application(&[channel("a", &["a"]), channel("b", &["a", "c"]), channel("c", &["a"])]);
    assert!(
        problems(&text).ends_with("`a` after `a` (take out one of these preconditions)"),
        "{}",
        problems(&text)
    );
    let long: Vec<String> =
        (0..2000).map(|n| channel(&format!("c{n}"), &[&format!("c{}", (n + 1) % 2000)])).collect();
    assert_eq!(
        problems(&application(&long)).lines().count(),
        1,
        "any length, and the stack stays flat"
    );
}

#[test]
fn a_broken_document_hides_no_reference_of_the_sound_ones() {
    let text = "runtime:\n  name: Broken\n---\napplication:\n  name: a\n  releaseChannels:\n  - \
                name: prod\n    runtimes: [{runtime: elsewhere}]\n    preconditions: \
                [{releaseChannelStable: {releaseChannel: stagin}}]\n";
    let told = super::problems(text);
    assert!(
        told.contains("`Broken` is not allowed here")
            && told.contains("unknown release channel `stagin`"),
        "{told}"
    );
    assert!(!told.contains("elsewhere`"), "a document that is not there is not missed: {told}");
}

#[test]
fn bad_input_template_error_in_a_job_file_of_its_own_is_told_with_its_line() {
    let text = "runtime: {name: r, custom: {proxyRuntime: {runtime: local}, apply: \
                {kubernetesConfig: {type: KUBERNETES, local: {path: jobs}}}}}\n";
    let job = "apiVersion: batch/v1\nkind: Job\nspec:\n  template: {spec: {containers: [{name: a, \
               image: 'x:{{.Params.tag}}'}]}}\n";
    let attachments = [("jobs/a.yaml".to_owned(), job.to_owned())].into();
    let read =
        crate::read(&[schema::api::ConfigFile { attachments, ..super::file(text) }]).unwrap();
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
fn bad_input_two_runtimes_and_no_connection() {
    let other = RUNTIME.replace("name: r\n", "name: r2\n");
    let text = format!("{APPLICATION}{RUNTIME}{other}---\nservice: {{name: s, application: a}}\n");
    assert_eq!(
        problems(&text),
        "23 service: release channel `production` has 2 runtimes and the service names none (set \
         `runtimeConnection` to one of `r`, `r2`)"
    );
    let text = format!("{APPLICATION}{RUNTIME}---\nservice: {{name: s, application: a}}\n");
    assert_eq!(problems(&text), "", "the kind of a runtime that is not there is unknown");
}

#[test]
fn what_a_local_command_cannot_have_is_told_where_it_is_known_to_be_local() {
    let runtime = |proxy: &str| {
        format!(
            "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: {proxy}}}\n    fetch: \
             {{taskConfig: {{program: {{image: x}}}}}}\n    apply: {{taskConfig: {{program: \
             {{cmd: [a]}}, volumes: [{{name: v, source: {{ephemeral: {{}}}}, mount: {{mountPath: \
             /v}}}}]}}}}\n"
        )
    };
    let told = "5 runtime.custom.fetch.taskConfig.program: there is neither `entrypoint` nor \
                `cmd`: on this machine no image says what to run (write the program and its \
                arguments, as in `cmd: [./check.sh, --quick]`)\n6 \
                runtime.custom.apply.taskConfig.volumes: not supported yet: `volumes` of a task \
                on a `local` runtime (use files of this machine, or `env` for secrets)";
    for (other, proxy) in
        [("", "local"), ("---\nruntime: {name: here, local: {root: /tmp}}\n", "here")]
    {
        assert_eq!(problems(&(runtime(proxy) + other)), told);
    }
    assert_eq!(problems(&runtime("elsewhere")), "", "the scheduler knows what that is");
    assert_eq!(problems(&(runtime("k") + "---\nruntime: {name: k, kubernetes: {}}\n")), "");
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
fn bad_input_parameter_that_a_runtime_requires_and_nobody_gives() {
    let runtime = RUNTIME.replace(
        "[{name: tag, string: {}}]",
        "[{name: tag, description: which image, required: true, string: {}}]",
    );
    let channels = "application: {name: a, releaseChannels: [{name: b, runtimes: [{runtime: r}]}, \
                    {name: c, runtimes: [{runtime: r}]}]}\n";
    let service = |rest: &str| {
        format!("{channels}{runtime}---\nservice:\n  name: s\n  application: a\n{rest}")
    };
    let message = "parameter `tag` (which image) is required and has no value in release channel";
    let help = "(runtime `r` asks for it: give it under `customRuntime.parameterValues`)";
    assert_eq!(
        problems(&service("")),
        format!("10 service: {message} `b` {help}\n10 service: {message} `c` {help}")
    );
    let here = "[{releaseChannel: b, customRuntime: {parameterValues: [{name: tag, string: x}]}}]";
    assert_eq!(
        problems(&service(&format!("  perReleaseChannel: {here}\n"))),
        format!("10 service: {message} `c` {help}")
    );
    assert_eq!(
        problems(&service("  customRuntime: {parameterValues: [{name: tag, string: x}]}\n")),
        ""
    );
    let with_default = service("").replace("string: {}", "string: {defaultValue: x}");
    assert_eq!(problems(&with_default), "");
    let with_nothing = service("").replace("string: {}", "string: {defaultValue: ''}");
    assert_eq!(
        problems(&with_nothing),
        format!("10 service: {message} `b` {help}\n10 service: {message} `c` {help}")
    );
}

#[test]
fn bad_input_runtime_that_takes_the_built_in_name() {
    let text = RUNTIME.replace("name: r\n", "name: local\n");
    assert_eq!(
        problems(&text),
        "3 runtime.name: runtime `local` is built in and runs processes here (choose another \
         name; `local: {root: DIR}` may change where its commands run)\n5 \
         runtime.custom.proxyRuntime.runtime: runtime `local` is of kind `custom`, which cannot \
         run the jobs of another (name `local`, a `fake` runtime or a Kubernetes runtime)"
    );
    assert_eq!(problems("runtime: {name: local, local: {root: x}}"), "");
}

#[test]
fn bad_input_runtime_whose_jobs_are_to_run_on_one_that_runs_none() {
    let text = RUNTIME.replace("runtime: local", "runtime: r");
    let message = "runtime `r` is of kind `custom`, which cannot run the jobs of another (name \
                   `local`, a `fake` runtime or a Kubernetes runtime)";
    assert_eq!(problems(&text), format!("5 runtime.custom.proxyRuntime.runtime: {message}"));
    for kind in ["fake: {}", "kubernetes: {}", "local: {}"] {
        assert_eq!(
            problems(&format!(
                "{}---\nruntime: {{name: r2, {kind}}}\n",
                RUNTIME.replace("runtime: local", "runtime: r2")
            )),
            ""
        );
    }
}
