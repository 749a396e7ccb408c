//! Values that no program can be given, and secrets that cannot be masked.

use super::documents;
use crate::{check_references, unmasked_secrets};

fn config(env: &str, values: &str) -> String {
    format!(
        "runtime:\n  name: r\n  custom:\n    parameters: [{{name: p, secret: {{}}}}, {{name: q, \
         string: {{}}}}]\n    proxyRuntime: {{runtime: local}}\n    apply: {{env: {{{env}}}, \
         taskConfig: {{program: {{cmd: [x]}}}}}}\n---\nservice:\n  name: s\n  application: a\n  \
         customRuntime: {{parameterValues: [{values}]}}\n"
    )
}

#[test]
fn a_nul_is_refused_wherever_a_value_is_written() {
    for (env, values, path) in [
        (r#"A: {value: "a\0b"}"#, "", "runtime.custom.apply.env.A.value"),
        (r#"A: {rawSecret: "hunter2\0secret"}"#, "", "runtime.custom.apply.env.A.rawSecret"),
        (
            "",
            r#"{name: p, secret: {rawSecret: "hunter2\0secret"}}"#,
            "service.customRuntime.parameterValues[0].secret.rawSecret",
        ),
        ("", r#"{name: q, string: "a\0b"}"#, "service.customRuntime.parameterValues[0].string"),
    ] {
        let problems = check_references(&documents(&config(env, values)));
        let problem = problems
            .iter()
            .find(|problem| problem.path == path)
            .unwrap_or_else(|| panic!("{path}: {problems:?}"));
        assert_eq!(problem.message, "a NUL character, which no program can be given", "{path}");
        assert!(!problem.render(false).contains("hunter2"));
    }
}

#[test]
fn a_secret_that_is_too_short_to_be_masked_is_told_and_not_shown() {
    let text = config(
        "A: {rawSecret: pw123}, B: {rawSecret: long-enough}, C: {rawSecret: '{{ .Params.p }}'}, \
         D: {value: x}",
        "{name: p, secret: {rawSecret: 'ab'}}",
    );
    let told = unmasked_secrets(&documents(&text));
    let lines: Vec<_> =
        told.iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect();
    assert_eq!(
        lines,
        [
            "runtime.custom.apply.env.A.rawSecret: this secret is not masked in what jobs print: \
             it is shorter than 6 bytes",
            "service.customRuntime.parameterValues[0].secret.rawSecret: this secret is not masked \
             in what jobs print: it is shorter than 6 bytes",
        ]
    );
    assert!(told.iter().all(|warning| !warning.render(false).contains("pw123")));
}

#[test]
fn a_secret_that_a_comment_cuts_is_told_and_what_is_cut_off_not_shown() {
    let text = "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply:\n      \
         taskConfig: {program: {name: a, cmd: [x]}}\n      env:\n        A:\n          rawSecret: \
         firstpart #hunter2\n        B:\n          rawSecret: 'quoted #hunter2'  # why\n        \
         C:\n          rawSecret: first#hunter2\n";
    let told = unmasked_secrets(&documents(text));
    let lines: Vec<_> =
        told.iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect();
    assert_eq!(
        lines,
        ["runtime.custom.apply.env.A.rawSecret: this secret ends before ` #`: what follows is a \
          comment, which no job gets and nothing masks"]
    );
    assert!(
        !told[0].render(false).contains("hunter2") && !told[0].render(false).contains("firstpart"),
        "{}",
        told[0].render(false)
    );
}

#[test]
fn a_secret_of_all_commands_of_a_built_in_tool_is_told_once() {
    let text = "runtime:\n  name: r\n  terraformRunner:\n    proxyRuntime: {runtime: k8s}\n    \
                volumes: [{name: v, source: {secret: {secretName: keys}}, mount: {mountPath: \
                /keys}}]\n";
    let told = unmasked_secrets(&documents(text));
    let places: Vec<&str> = told.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(places, ["runtime.terraformRunner.volumes[0].source.secret"]);
}

#[test]
fn a_secret_that_only_files_hold_is_told_where_it_is_mounted() {
    let task = |env: &str| {
        format!(
            "{{env: {{{env}}}, taskConfig: {{program: {{name: p, image: i, cmd: [x]}}, volumes: \
             [{{name: e, source: {{ephemeral: {{}}}}, mount: {{mountPath: /e}}}}, {{name: v, \
             source: {{secret: {{secretName: keys}}}}, mount: {{mountPath: /keys}}}}]}}}}"
        )
    };
    let variable = "K: {kubernetesSecret: {secretName: keys, key: k}}";
    let text = format!(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: k8s}}\n    fetch: {}\n    \
         apply: {}\n",
        task(variable),
        task("K: {kubernetesSecret: {secretName: others, key: k}}"),
    );
    let told = unmasked_secrets(&documents(&text));
    let lines: Vec<_> =
        told.iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect();
    assert_eq!(
        lines,
        ["runtime.custom.apply.taskConfig.volumes[1].source.secret: what the files of the Secret \
          `keys` hold is not masked in what jobs print: no wrapper knows its values"]
    );
}
