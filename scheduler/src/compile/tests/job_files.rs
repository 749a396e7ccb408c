//! Commands given as Kubernetes Job files, run on this machine.

use super::*;

const JOB: &str = "
      apiVersion: batch/v1
      kind: Job
      metadata: {name: 'job-{{.Params.x}}'}
      spec:
        template:
          spec:
            containers:
            - name: tool
              image: 'image:{{.Params.x}}'
              command: [run, '{{.Params.x}}']
              args: [--quick, 5]
              workingDir: deep
              env: [{name: A, value: '{{.Params.x}}'}]
";

/// The small documents with this Job in place of the task.
fn with_job(job: &str) -> String {
    let inlined = "{kubernetesConfig: {type: KUBERNETES, inlined: INLINED}}";
    let text =
        changed(SMALL, &[("{taskConfig: {program: {cmd: [apply, '{{.Params.x}}']}}}", inlined)]);
    let quoted = serde_json::to_string(&job.replace("\n      ", "\n")).unwrap();
    text.replace("INLINED", &quoted)
}

fn check_problem(changes: &[(&str, &str)], expected: &str) {
    let problems =
        super::super::check(&configs(&with_job(&changed(JOB, changes))), &Options::default(), None);
    assert_eq!(lines(&problems), [expected], "{changes:?}");
}

#[test]
fn command_args_and_env_of_the_container_are_taken() {
    let command = compiled(&with_job(JOB), "staging", "").unwrap().commands.apply;
    assert_eq!(command.argv, ["run", "fallback", "--quick", "5"]);
    assert_eq!(env(&command), "A=fallback");
    assert_eq!(
        (command.name.as_str(), command.working_directory.as_deref()),
        ("tool", Some("deep"))
    );
}

#[test]
fn a_value_never_changes_the_structure_of_the_file() {
    let evil = "'\\\"\\n, evil: [1]} # {{.Params.x}}";
    let text =
        with_job(JOB).replace("{defaultValue: fallback}", &format!("{{defaultValue: \"{evil}\"}}"));
    let command = compiled(&text, "staging", "").unwrap().commands.apply;
    assert_eq!(command.argv[1], "'\"\n, evil: [1]} # {{.Params.x}}");
    assert_eq!(command.argv.len(), 4);
}

#[test]
fn template_error_in_any_string_of_the_file() {
    let place = "runtime.custom.apply.kubernetesConfig.inlined";
    check_problem(
        &[("'{{.Params.x}}']", "'{{.Params.y}}']")],
        &format!("{place}: undefined name `{{{{.Params.y}}}}`"),
    );
    check_problem(
        &[("'image:{{.Params.x}}'", "'{{end}}'")],
        &format!("{place}: `{{{{end}}}}` is not a template that pvn knows"),
    );
}

#[test]
fn what_this_machine_does_not_have_is_said() {
    let place = "runtime.custom.apply.kubernetesConfig.inlined: not supported yet";
    let on = "of a Job file on this machine";
    check_problem(
        &[("value: '{{.Params.x}}'", "valueFrom: {fieldRef: {fieldPath: a}}")],
        &format!("{place}: `valueFrom` {on}"),
    );
    check_problem(
        &[("workingDir: deep", "envFrom: [{configMapRef: {name: c}}]")],
        &format!("{place}: `envFrom` {on}"),
    );
    check_problem(
        &[("workingDir: deep", "volumeMounts: [{name: v, mountPath: /v}]")],
        &format!("{place}: `volumeMounts` {on}"),
    );
    check_problem(
        &[(
            "            containers:",
            "            initContainers: [{name: i}]\n            containers:",
        )],
        &format!("{place}: `initContainers` {on}"),
    );
}

#[test]
fn one_container_is_run() {
    check_problem(
        &[("            - name: tool", "            - name: other\n            - name: tool")],
        "runtime.custom.apply.kubernetesConfig.inlined: the Job has 2 containers; one is run",
    );
    let problems = super::super::check(
        &configs(&with_job(&changed(
            JOB,
            &[("command: [run, '{{.Params.x}}']", ""), ("args: [--quick, 5]", "")],
        ))),
        &Options::default(),
        None,
    );
    assert!(lines(&problems)[0].contains("there is neither `command` nor `args`"), "{problems:?}");
}

/// The command when the Job is in a file chosen by a template.
fn check_file(name: &str, job: &str, expected: Result<&str, &str>) {
    let local = "{kubernetesConfig: {type: KUBERNETES, local: {path: jobs, subPath: \
                 '{{.Builtins.ReleaseChannel.Name}}.yaml'}}}";
    let text =
        changed(SMALL, &[("{taskConfig: {program: {cmd: [apply, '{{.Params.x}}']}}}", local)]);
    let configs = configs_with(&text, &[(name, &job.replace("\n      ", "\n"))]);
    let found = compiled_with(&configs, &Options::default(), "staging", "")
        .map(|it| it.commands.apply.argv.join(" "))
        .map_err(|it| lines(&it).join("\n"));
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{name}");
}

#[test]
fn bad_input_job_file_with_two_objects() {
    let place = "runtime.custom.apply.kubernetesConfig.local";
    let rule =
        "a command's Kubernetes file must hold exactly one batch/v1 Job and nothing else; found";
    check_file("jobs/staging.yaml", JOB, Ok("run fallback --quick 5"));
    let two = format!("{JOB}---\napiVersion: v1\nkind: ConfigMap\n");
    check_file(
        "jobs/staging.yaml",
        &two,
        Err(&format!("{place}: {rule} batch/v1 Job, v1 ConfigMap")),
    );
    check_file("jobs/production.yaml", JOB, Err(&format!("{place}: {rule} nothing")));
    let wrong = changed(JOB, &[("[run, '{{.Params.x}}']", "[run, '{{.Params.y}}']")]);
    check_file(
        "jobs/staging.yaml",
        &wrong,
        Err(&format!("{place}: undefined name `{{{{.Params.y}}}}` (`jobs/staging.yaml`, line 11)")),
    );
}
