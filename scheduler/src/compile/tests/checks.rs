//! What is refused when configs are applied.

use super::*;

fn check(text: &str, expected: &[&str]) {
    assert_eq!(
        lines(&super::super::check(&configs(text), &Options::default(), None)),
        expected,
        "{text}"
    );
}

/// The small documents after these changes.
fn check_changed(changes: &[(&str, &str)], expected: &[&str]) {
    check(&changed(SMALL, changes), expected);
}

#[test]
fn documents_that_fit_together_have_no_problems() {
    check(SMALL, &[]);
    check("runtime: {name: alone, fake: {}}", &[]);
}

#[test]
fn bad_input_reference_to_nothing() {
    check_changed(
        &[("application: app", "application: ap")],
        &["service.application: unknown application `ap`"],
    );
    check_changed(
        &[("runtime: local", "runtime: lokal")],
        &["runtime.custom.proxyRuntime.runtime: unknown runtime `lokal`"],
    );
    check_changed(
        &[(
            "  application: app\n",
            "  application: app\n  perReleaseChannel: [{releaseChannel: stagin}]\n",
        )],
        &["service.perReleaseChannel[0].releaseChannel: unknown release channel `stagin`"],
    );
    let problems = super::super::check(
        &configs(&changed(SMALL, &[("application: app", "application: ap")])),
        &Options::default(),
        None,
    );
    assert_eq!(problems[0].help.as_deref(), Some("the applications are `app`"));
}

#[test]
fn a_connection_that_no_channel_offers() {
    check_changed(
        &[("  application: app\n", "  application: app\n  runtimeConnection: vm\n")],
        &["service.runtimeConnection: release channel `staging` offers no runtime connection `vm`"],
    );
    check_changed(
        &[(
            "  application: app\n",
            "  application: app\n  perReleaseChannel: [{releaseChannel: staging, \
             runtimeConnection: vm}]\n",
        )],
        &["service.perReleaseChannel[0].runtimeConnection: release channel `staging` offers no \
           runtime connection `vm`"],
    );
}

const TWO: (&str, &str) = (
    "runtimes: [{runtime: tool}]",
    "runtimes: [{runtime: tool, name: a}, {runtime: tool, name: b}]",
);

#[test]
fn two_runtimes_and_no_connection() {
    check_changed(
        &[TWO],
        &["service: release channel `staging` has 2 runtimes and the service names none"],
    );
    check_changed(
        &[TWO, ("  application: app\n", "  application: app\n  runtimeConnection: b\n")],
        &[],
    );
    let for_channel = "  application: app\n  perReleaseChannel: [{releaseChannel: staging, \
                       runtimeConnection: a}]\n";
    check_changed(&[TWO, ("  application: app\n", for_channel)], &[]);
}

#[test]
fn the_connection_may_be_left_out_when_only_one_fits() {
    check_changed(
        &[("runtimes: [{runtime: tool}]", "runtimes: [{runtime: local}, {runtime: tool}]")],
        &[],
    );
    check_changed(
        &[("runtimes: [{runtime: tool}]", "runtimes: [{runtime: local}]")],
        &["service: runtime `local` has no commands of its own (channel `staging`)"],
    );
}

#[test]
fn a_problem_of_the_runtime_is_told_once_however_many_services_it_has() {
    let text = format!(
        "{}---\nservice: {{name: other, application: app}}\n",
        changed(SMALL, &[("{{.Params.x}}", "{{.Params.y}}")])
    );
    check(
        &text,
        &["runtime.custom.apply.taskConfig.program.cmd[1]: undefined name `{{.Params.y}}`"],
    );
}

#[test]
fn a_problem_of_the_runtime_that_only_one_service_has_names_it() {
    check_changed(
        &[("{{.Params.x}}", "{{.Constants.c}}")],
        &["runtime.custom.apply.taskConfig.program.cmd[1]: undefined name `{{.Constants.c}}` \
           (for service `app/svc` in channel `staging`)"],
    );
}

#[test]
fn a_runtime_nobody_uses_is_checked_too() {
    let alone = SMALL.split("---").next().unwrap();
    check(
        &alone.replace("{{.Params.x}}", "{{.Params.y}}"),
        &["runtime.custom.apply.taskConfig.program.cmd[1]: undefined name `{{.Params.y}}`"],
    );
    check(
        &alone.replace("{{.Params.x}}", "{{.Constants.any}} {{.Builtins.ReleaseChannel.Name}}"),
        &[],
    );
}

#[test]
fn templates_of_the_service_are_checked_without_values() {
    check_changed(
        &[(
            "  application: app\n",
            "  application: app\n  env: {A: {value: '{{.Params.p}}'}}\n  bundleName: '{{if}}'\n",
        )],
        &[
            "service.env.A.value: undefined name `{{.Params.p}}`",
            "service.bundleName: `{{if}}` is not a template that pvn knows",
        ],
    );
}

#[test]
fn a_required_parameter_of_the_runtime_that_the_service_does_not_give() {
    check_changed(
        &[(
            "parameters: [{name: x, string: {defaultValue: fallback}}]",
            "parameters: [{name: x, required: true, string: {}}]",
        )],
        &["service.customRuntime: parameter `x` is required and has no value"],
    );
}

#[test]
fn what_is_not_acted_on_yet_is_said() {
    check("runtime: {name: x}", &[]);
    let expected = "service.kubernetesConfig: not supported yet: `kubernetesConfig` of a service";
    check_changed(
        &[(
            "  application: app\n",
            "  application: app\n  kubernetesConfig: {type: KUBERNETES, inlined: x}\n",
        )],
        &[expected],
    );
}

#[test]
fn the_built_in_runtime_keeps_its_name() {
    check("runtime: {name: local, local: {root: /srv}}", &[]);
    check(
        "runtime: {name: local, fake: {}}",
        &["runtime.name: runtime `local` is built in and runs processes here"],
    );
}

#[test]
fn only_changed_services_are_looked_at_when_nothing_else_changed() {
    let configs = configs(&changed(
        SMALL,
        &[("  application: app\n", "  application: app\n  runtimeConnection: vm\n")],
    ));
    let key = |name: &str| DocumentKey::Service("app".parse().unwrap(), name.parse().unwrap());
    let with = |keys: &[DocumentKey]| {
        super::super::check(&configs, &Options::default(), Some(&keys.iter().cloned().collect()))
            .len()
    };
    assert_eq!(with(&[key("svc")]), 1);
    assert_eq!(with(&[key("other")]), 0);
    assert_eq!(with(&[DocumentKey::Application("app".parse().unwrap())]), 1);
}

/// What is shown of the first problem, without its help.
fn check_snippet(text: &str, expected: &str) {
    let problems = super::super::check(&configs(text), &Options::default(), None);
    let shown = problems[0].snippet.split("\n  |\n  = help").next().unwrap();
    assert_eq!(shown, expected.trim_matches('\n'));
}

#[test]
fn a_problem_shows_its_lines() {
    check_snippet(
        &changed(
            SMALL,
            &[("[apply, '{{.Params.x}}']", "[apply, '{{.Params.x}} --id={{.Params.y}}']")],
        ),
        "
error: undefined name `{{.Params.y}}`
 --> test.pvn.yaml:7:69
  |
7 |     apply: {taskConfig: {program: {cmd: [apply, '{{.Params.x}} --id={{.Params.y}}']}}}
  |                                                                     ^^^^^^^^^^^^^ \
         runtime.custom.apply.taskConfig.program.cmd[1]
",
    );
}
