//! A built-in runtime that is written out as a `custom` one, with every form of environment.

use super::documents;
use crate::{Body, Document, EnvValue, Runtime, check_references, unmasked_secrets};

/// Each kind, with room for an environment and for its credentials.
const KINDS: &[&str] = &[
    "terraformRunner: {proxyRuntime: {runtime: local}, ENV}",
    "pulumiRunner: {proxyRuntime: {runtime: local}, ENV}",
    "awsEcs: {region: eu-central-1, ecsCluster: prod, ENV}",
    "awsEcs: {region: r, ecsCluster: prod, credentials: {accessKey: VALUE, secretKey: VALUE}}",
    "googleCloudRun: {project: acme, region: europe-west1, ENV}",
    "googleCloudRun: {project: acme, region: r, serviceAccountJson: VALUE}",
];

const VALUES: &[&str] = &[
    "{value: plain-text}",
    "{value: ''}",
    "{value: '{{.Builtins.Service.Name}}'}",
    "{rawSecret: hunter2-hunter2}",
    "{secret: {key: a/key}}",
    "{secret: {key: a/key, version: 3}}",
    "{kubernetesSecret: {secretName: keys, key: a}}",
];

fn runtime(document: &Document) -> &Runtime {
    match document.body() {
        Body::Runtime(runtime) => runtime,
        _ => panic!("it is a runtime"),
    }
}

/// What jobs get, with what eject puts in the place of secrets.
fn commands(runtime: &Runtime) -> serde_json::Value {
    let mut custom = runtime.role().commands.unwrap().custom().clone();
    let envs = [&mut custom.apply.env]
        .into_iter()
        .chain(custom.fetch.as_mut().map(|fetch| &mut fetch.env))
        .chain(custom.get_info.as_mut().map(|info| &mut info.env));
    for value in envs.flat_map(|env| env.values_mut()) {
        if let EnvValue::RawSecret(text) = value {
            *text = "(write the secret here again)".into();
        }
    }
    serde_json::to_value(custom).unwrap()
}

#[test]
fn what_is_ejected_can_be_applied_and_does_the_same() {
    for kind in KINDS {
        for value in VALUES {
            // One variable has the name of a field.
            let env = format!("env: {{A: {value}, rawSecret: {value}}}");
            let kind = kind.replace("ENV", &env).replace("VALUE", value);
            let written = documents(&format!("runtime:\n  name: r\n  {kind}\n"));
            let ejected = runtime(&written[0]).ejected().unwrap();
            let text = ejected.to_string();
            let again = documents(&text);
            assert_eq!(commands(runtime(&again[0])), commands(runtime(&written[0])), "{kind}");
            assert!(!text.contains("hunter2"), "{text}");
            let told = check_references(&again);
            assert_eq!(told.is_empty(), !text.contains("(write the secret"), "{text}: {told:?}");
            for problem in told {
                assert!(problem.path.ends_with(".rawSecret"), "{problem:?}");
                assert!(problem.message.contains("`runtimes eject` has left out"), "{problem:?}");
            }
        }
    }
}

#[test]
fn a_credential_in_the_open_is_told_and_ejected_as_a_secret() {
    let ecs = |value: &str| {
        format!(
            "runtime:\n  name: r\n  awsEcs:\n    region: r\n    ecsCluster: c\n    credentials:\n      \
             accessKey: {{value: AKIA0}}\n      secretKey: {value}\n"
        )
    };
    let run = |value: &str| {
        format!(
            "runtime:\n  name: r\n  googleCloudRun:\n    project: p\n    region: r\n    \
             serviceAccountJson: {value}\n"
        )
    };
    for (text, path) in [
        (ecs("{value: hunter2-open}"), "runtime.awsEcs.credentials.secretKey.value"),
        (run("{value: hunter2-open}"), "runtime.googleCloudRun.serviceAccountJson.value"),
        (
            run("\n      value: |\n        {\"private_key\":\n        \"hunter2-open\"}"),
            "runtime.googleCloudRun.serviceAccountJson.value",
        ),
    ] {
        let documents = documents(&text);
        let told = unmasked_secrets(&documents);
        assert_eq!(told.len(), 1, "{text}: {told:?}");
        assert_eq!(told[0].path, path);
        let shown = told[0].render(false);
        assert!(shown.contains("pvnctl secrets set KEY"), "{shown}");
        assert!(shown.contains("`rawSecret` in the place of `value`"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        let ejected = runtime(&documents[0]).ejected().unwrap().to_string();
        assert!(!ejected.contains("hunter2"), "{ejected}");
    }
    for value in ["{secret: {key: k}}", "{rawSecret: hunter2-open}", "{value: '{{.Params.k}}'}"] {
        for text in [ecs(value), run(value)] {
            assert_eq!(unmasked_secrets(&documents(&text)), [], "{text}");
        }
    }
}
