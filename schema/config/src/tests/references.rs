//! What documents say about each other.

use super::documents;
use crate::check_references;

mod templates;
mod tool_documents;

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
fn what_a_block_says_is_given_and_what_it_lacks_is_asked_for_there() {
    let text = |service: &str| {
        format!(
            "application: {{name: a, releaseChannels: [{{name: b, runtimes: [{{runtime: r}}]}}]}}\n\
             ---\nruntime: {{name: r, awsEcs: {{proxyRuntime: {{runtime: local}}, region: x, \
             ecsCluster: c}}}}\n---\nservice: {{name: s, application: a{service}}}\n"
        )
    };
    let block = "awsEcs: {taskDefinition: {inlined: '{family: f, containerDefinitions: []}'}}";
    assert_eq!(problems(&text(&format!(", {block}"))), "");
    let of_channel = format!(", perReleaseChannel: [{{releaseChannel: b, {block}}}]");
    assert_eq!(problems(&text(&of_channel)), "");
    let told = problems(&text(""));
    assert!(told.contains("(runtime `r` asks for it: give it as a field of `awsEcs`)"), "{told}");
    // What another kind is told is nothing to this one.
    let told = problems(&text(", terraform: {path: x}"));
    assert!(told.contains("give it as a field of `awsEcs`"), "{told}");
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

#[test]
fn a_block_that_no_scheduler_carries_out_is_refused_before_one_is_asked() {
    let job = "kubernetesConfig: {type: KUBERNETES, inlined: 'kind: Job'}";
    let text = format!(
        "service:\n  name: s\n  application: a\n  {job}\n  perReleaseChannel:\n  - releaseChannel: \
         staging\n    {job}\n"
    );
    let told = |line, at: &str| {
        format!(
            "{line} {at}: not supported yet: `kubernetesConfig` of a service (use `customRuntime` \
             and a `custom` runtime)"
        )
    };
    assert_eq!(
        problems(&text),
        [
            told(4, "service.kubernetesConfig"),
            told(7, "service.perReleaseChannel[0].kubernetesConfig")
        ]
        .join("\n")
    );
}
