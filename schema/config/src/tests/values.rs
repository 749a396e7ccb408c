//! Reading rules: what values fields take from the text.

use serde_json::{Value, json};

use super::documents;
use crate::template::Template;
use crate::{Body, EnvValue, Exec, ParameterKind, RuntimeKind};

/// What the first document of a text means, as canonical JSON at a pointer.
#[track_caller]
fn means(yaml: &str, pointer: &str, expected: Value) {
    let meaning = documents(yaml)[0].body().meaning();
    assert_eq!(meaning.pointer(pointer), Some(&expected), "{pointer} of {meaning:#}");
}

fn service(more: &str) -> String {
    format!("service:\n  name: s\n  application: a\n{more}")
}

#[test]
fn a_text_field_takes_a_scalar_as_it_is_written() {
    for text in [
        "yes",
        "1",
        "1.0",
        "0x10",
        "1e3",
        "010",
        "true",
        "2026-01-01",
        "~/x",
        ".5",
        "a b",
        "null-ish",
        "12:30",
    ] {
        means(&service(&format!("  env: {{A: {{value: {text}}}}}\n")), "/env/A/value", json!(text));
        means(
            &service(&format!("  env:\n    A:\n      value: '{text}' # quoted\n")),
            "/env/A/value",
            json!(text),
        );
    }
    means(&service("  env: {A: {value: \"\"}}\n"), "/env/A/value", json!(""));
    means(&service("  env: {A: {value: 'null'}}\n"), "/env/A/value", json!("null"));
    means(&service("  env: {A: {value: !!str null}}\n"), "/env/A/value", json!("null"));
    means(
        &service("  env:\n    A:\n      value: |\n        two\n         lines\n"),
        "/env/A/value",
        json!("two\n lines\n"),
    );
    means(
        &service("  env:\n    A:\n      value: >-\n        folded\n        lines\n"),
        "/env/A/value",
        json!("folded lines"),
    );
}

#[test]
fn whole_numbers_may_be_bare_or_quoted() {
    for number in ["7", "\"7\"", "'7'", "+7"] {
        let yaml =
            service(&format!("  parameters: [{{name: p, int: {{defaultValue: {number}}}}}]\n"));
        means(&yaml, "/parameters/0/int/defaultValue", json!(7));
    }
    let yaml = service("  parameters: [{name: p, int: {defaultValue: -9223372036854775808}}]\n");
    means(&yaml, "/parameters/0/int/defaultValue", json!(i64::MIN));
}

#[test]
fn null_equals_absent() {
    for null in ["", "~", "null", "Null", "NULL"] {
        let yaml = service(&format!(
            "  env: {null}\n  bundleName: {null}\n  parameters: {null}\n  autoRollback: {null}\n"
        ));
        assert_eq!(documents(&yaml)[0].body().meaning(), json!({"name": "s", "application": "a"}));
    }
}

#[test]
fn an_empty_mapping_selects_an_empty_message() {
    let document = &documents("runtime: {name: r, fake: {}}")[0];
    let Body::Runtime(runtime) = document.body() else { panic!("{document:?}") };
    assert!(matches!(&runtime.kind, RuntimeKind::Fake(fake) if fake.crashing_programs.is_empty()));
    let document = &documents("runtime: {name: r}")[0];
    let Body::Runtime(runtime) = document.body() else { panic!("{document:?}") };
    assert_eq!(runtime.kind, RuntimeKind::Kubernetes(None), "no kind block is a cluster");
}

/// The value of every leaf in both spellings gives the same document.
#[track_caller]
fn same(camel: &str, snake: &str) {
    let (camel, snake) = (&documents(camel)[0], &documents(snake)[0]);
    assert_eq!(camel.body(), snake.body());
    assert_eq!(camel.digest(), snake.digest());
}

#[test]
fn camel_case_and_snake_case_are_the_same_field() {
    same(
        &service(
            "  perReleaseChannel: [{releaseChannel: p, runtimeConnection: vm, customRuntime: \
             {clearOnPerReleaseChannelMerge: true}}]\n",
        ),
        &service(
            "  per_release_channel: [{release_channel: p, runtime_connection: vm, custom_runtime: \
             {clear_on_per_release_channel_merge: true}}]\n",
        ),
    );
    same(
        "runtime: {name: r, custom: {proxyRuntime: {runtime: k, containerOrchestration: {k8s: \
         {namespace: n}}}, apply: {taskConfig: {program: {cmd: [a]}, leaveRunning: true}, \
         retryableExitCodes: [75]}}}",
        "runtime: {name: r, custom: {proxy_runtime: {runtime: k, container_orchestration: {k8s: \
         {namespace: n}}}, apply: {task_config: {program: {cmd: [a]}, leave_running: true}, \
         retryable_exit_codes: [75]}}}",
    );
}

#[test]
fn aliases_are_the_same_field() {
    let command = "{taskConfig: {program: {cmd: [a]}}}";
    same(
        &format!(
            "runtime: {{name: r, custom: {{proxyRuntime: {{runtime: k}}, apply: {command}, \
             getInfo: {command}}}}}"
        ),
        &format!(
            "runtime: {{name: r, extension: {{proxyRuntime: {{runtime: k}}, apply: {command}, \
             debug: {command}}}}}"
        ),
    );
    same(
        &service("  customRuntime: {parameterValues: [{name: a, string: x}]}\n"),
        &service("  runtimeExtension: {parameterValues: [{name: a, string: x}]}\n"),
    );
    same(&service("  customRuntime: {}\n"), &service("  runtime_extension: {}\n"));
}

#[test]
fn several_documents_stand_in_one_file() {
    let yaml = "# head\n---\napplication: {name: a, releaseChannels: [{name: p, runtimes: \
                [{runtime: r}]}]}\n--- # second\nservice: {name: s, application: a}\n...\n# \
                tail\n---\n\n---\nruntime: {name: r}\n";
    let kinds: Vec<_> = documents(yaml)
        .iter()
        .map(|document| format!("{} {}", document.kind(), document.name()))
        .collect();
    assert_eq!(kinds, ["application a", "service s", "runtime r"]);
    assert!(documents("# only a comment\n").is_empty());
    assert!(documents("").is_empty());
}

#[test]
fn anchors_aliases_and_merges_are_understood() {
    let yaml = "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    fetch: \
         &command\n      timeout: 5s\n      taskConfig: {program: &p {name: one, cmd: [a]}}\n    \
         apply:\n      taskConfig:\n        program:\n          <<: *p\n          cmd: [b]\n    \
         getInfo: *command\n";
    let document = &documents(yaml)[0];
    let Body::Runtime(runtime) = document.body() else { panic!("{document:?}") };
    let RuntimeKind::Custom(custom) = &runtime.kind else { panic!("{document:?}") };
    let Exec::Task(apply) = &custom.apply.exec else { panic!("{custom:?}") };
    assert_eq!(
        (apply.program.name.as_deref(), apply.program.cmd.as_slice()),
        (Some("one"), [Template::from("b")].as_slice())
    );
    assert_eq!(
        custom.get_info.as_ref().and_then(|info| info.timeout).map(|timeout| timeout.as_ms()),
        Some(5000)
    );
}

#[test]
fn every_field_of_the_reference_is_read() {
    let documents = documents(include_str!("everything.pvn.yaml"));
    assert_eq!(documents.len(), 10);
    for document in &documents {
        let again = crate::read_source(document.source().clone()).unwrap().unwrap();
        assert_eq!(again.body(), document.body());
    }
    // What the emitted schema knows and this file does not show would go untested.
    let shown: String =
        documents.iter().map(|document| document.body().meaning().to_string()).collect();
    let schema = crate::json_schema::of::<crate::WrittenDocument>();
    let mut missing = Vec::new();
    // Local files need files beside the text; `places` has them.
    for (name, definition) in
        schema["definitions"].as_object().unwrap().iter().filter(|(name, _)| *name != "LocalFiles")
    {
        for field in definition["properties"]
            .as_object()
            .into_iter()
            .flat_map(|properties| properties.keys())
        {
            if !shown.contains(&format!("\"{field}\":")) {
                missing.push(format!("{name}.{field}"));
            }
        }
    }
    assert!(missing.is_empty(), "everything.pvn.yaml does not show {missing:?}");
}

#[test]
fn the_one_field_of_a_group_is_told_by_kind() {
    let yaml = service(
        "  env: {A: {value: x}, B: {rawSecret: y}, C: {secret: {key: k, version: 2}}, D: \
         {kubernetesSecret: {secretName: n, key: k}}}\n  parameters: [{name: c, commit: \
         {repository: r}}]\n",
    );
    let document = &documents(&yaml)[0];
    let Body::Service(service) = document.body() else { panic!("{document:?}") };
    assert_eq!(service.env["A"], EnvValue::Value("x".into()));
    assert_eq!(service.env["B"], EnvValue::RawSecret("y".into()));
    assert!(matches!(&service.env["C"], EnvValue::Secret(secret) if secret.version == Some(2)));
    assert!(matches!(&service.env["D"], EnvValue::KubernetesSecret(secret) if secret.key == "k"));
    assert!(
        matches!(&service.parameters[0].kind, ParameterKind::Commit(commit) if commit.repository == "r")
    );
}
