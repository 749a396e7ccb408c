//! Files that several instances would share.

use super::documents;
use crate::shared_by_instances;

fn told(text: &str, everything_local: bool) -> String {
    let documents = documents(text);
    let line = |warning: &crate::diagnostic::Diagnostic| {
        format!("{} {}: {}", warning.line_and_column().0, warning.path, warning.message)
    };
    shared_by_instances(&documents, everything_local)
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn config(place: &str, fetch: &str, apply: &str, channels: &str, services: &[&str]) -> String {
    let services: String = services
        .iter()
        .map(|name| format!("---\nservice: {{name: {name}, application: a}}\n"))
        .collect();
    format!(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {{runtime: {place}}}\n    fetch: \
         {{taskConfig: {{program: {{{fetch}}}}}}}\n    apply: {{taskConfig: {{program: \
         {{{apply}}}}}}}\n---\napplication: {{name: a, releaseChannels: [{channels}]}}\n{services}"
    )
}

const FETCH: &str =
    "cmd: [pvn-wrapper, exec, --success-exit-codes, '0,2', --out, plan=tf.plan, --, ./plan.sh]";
const APPLY: &str =
    "cmd: [/bin/pvn-wrapper, exec, --in=./tf.plan=fetch:plan, --, terraform, apply, --in, x=y]";
const TWO: &str =
    "{name: staging, runtimes: [{runtime: r}]}, {name: production, runtimes: [{runtime: r}]}";
const ONE: &str = "{name: only, runtimes: [{runtime: r}]}";

#[test]
fn two_channels_that_declare_one_file_are_told_once_and_where() {
    assert_eq!(
        told(&config("local", FETCH, APPLY, TWO, &["s"]), false),
        "5 runtime.custom.fetch.taskConfig.program.cmd[5]: `tf.plan` is one file for a/s in \
         staging, a/s in production: their commands run in one directory"
    );
    let services = told(&config("local", FETCH, APPLY, ONE, &["s", "t"]), false);
    assert!(services.contains("a/s in only, a/t in only"), "{services}");
    let shell = "entrypoint: [sh, -c], cmd: ['cd . && pvn-wrapper exec --out \"plan=tf.plan\" -- \
                 ./plan.sh']";
    assert!(
        told(&config("local", shell, APPLY, TWO, &["s"]), false)
            .starts_with("5 runtime.custom.fetch.taskConfig.program.cmd[0]: `tf.plan`")
    );
}

#[test]
fn what_is_each_instances_own_is_not_told() {
    for (place, fetch, channels) in [
        ("local", FETCH, ONE),
        ("k8s", FETCH, TWO),
        (
            "local",
            "entrypoint: [sh, -c], cmd: ['pvn-wrapper exec --out \
             plan=\"$PVN_INSTANCE_DIR/tf.plan\" -- ./plan.sh']",
            TWO,
        ),
        (
            "local",
            "cmd: [pvn-wrapper, exec, --out, 'plan={{.Builtins.ReleaseChannel.Name}}.plan', --, \
             ./plan.sh]",
            TWO,
        ),
        (
            "local",
            "workingDirectory: 'in/{{.Params.x}}', cmd: [pvn-wrapper, exec, --out, plan=tf.plan, \
             --, ./plan.sh]",
            TWO,
        ),
        ("local", "cmd: [./plan.sh, --out, plan=tf.plan]", TWO),
    ] {
        let text = config(place, fetch, "cmd: [true]", channels, &["s"]);
        assert_eq!(told(&text, false), "", "{fetch}");
    }
    assert!(
        told(&config("k8s", FETCH, "cmd: [true]", TWO, &["s"]), true).contains("tf.plan"),
        "`dev` runs everything here"
    );
}

#[test]
fn the_instances_own_directory_is_named_by_a_shell() {
    let text = config(
        "local",
        "cmd: [pvn-wrapper, exec, --out, plan=$PVN_INSTANCE_DIR/tf.plan, --, ./plan.sh]",
        "cmd: [true]",
        ONE,
        &["s"],
    );
    assert!(told(&text, false).contains("no shell puts the directory's name in"));
}

#[test]
fn channels_that_a_group_makes_share_files_too() {
    let runtime = |name: &str, label: &str| {
        format!(
            "runtime:\n  name: {name}\n  labels: [{{label: env, value: {label}}}]\n  custom:\n    \
             proxyRuntime: {{runtime: local}}\n    apply: {{taskConfig: {{program: \
             {{{APPLY}}}}}}}\n---\n"
        )
    };
    let application = "application: {name: a, releaseChannelGroups: [{name: g, runtimeSelector: \
                       env=production}]}\n---\nservice: {name: s, application: a}\n";
    let two = runtime("one", "production")
        + &runtime("two", "production")
        + &runtime("three", "staging")
        + application;
    let told = told(&two, false);
    assert!(
        told.contains(
            "`tf.plan` is one file for a/s in g-one, a/s in g-two: their commands run in one \
             directory"
        ),
        "{told}"
    );
    assert!(!told.contains("three"), "{told}");
}
