//! Values that no program can be given.

use super::documents;
use crate::config::check_references;

fn config(env: &str, values: &str) -> String {
    format!(
        "runtime:\n  name: r\n  custom:\n    parameters: [{{name: p, secret: {{}}}}, {{name: q, string: {{}}}}]\n    proxyRuntime: {{runtime: local}}\n    \
         apply: {{env: {{{env}}}, taskConfig: {{program: {{cmd: [x]}}}}}}\n---\nservice:\n  name: s\n  application: a\n  customRuntime: {{\
         parameterValues: [{values}]}}\n"
    )
}

#[test]
fn a_nul_is_refused_wherever_a_value_is_written() {
    for (env, values, path) in [
        (r#"A: {value: "a\0b"}"#, "", "runtime.custom.apply.env.A.value"),
        (r#"A: {rawSecret: "hunter2\0secret"}"#, "", "runtime.custom.apply.env.A.rawSecret"),
        ("", r#"{name: p, secret: {rawSecret: "hunter2\0secret"}}"#, "service.customRuntime.parameterValues[0].secret.rawSecret"),
        ("", r#"{name: q, string: "a\0b"}"#, "service.customRuntime.parameterValues[0].string"),
    ] {
        let problems = check_references(&documents(&config(env, values)));
        let problem = problems.iter().find(|problem| problem.path == path).unwrap_or_else(|| panic!("{path}: {problems:?}"));
        assert_eq!(problem.message, "a NUL character, which no program can be given", "{path}");
        assert!(!problem.render(false).contains("hunter2"));
    }
}
