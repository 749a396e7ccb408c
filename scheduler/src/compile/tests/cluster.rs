//! Commands for a Kubernetes cluster: their place, and the Job that a task or a Job file stands
//! for.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

const K8S: &str = "---\nruntime: {name: k8s, kubernetes: {kubeconfig: /etc/k, context: c}}\n";
const INJECTED: &str =
    "---\nruntime: {name: k8s, kubernetes: {wrapper: {inject: true, image: 'w:1'}}}\n";

/// The small documents with the runtime `k8s` as `definition` says, and `apply`.
fn on_cluster(definition: &str, apply: &str) -> String {
    let small = changed(
        SMALL,
        &[
            ("runtime: local", "runtime: k8s"),
            ("{taskConfig: {program: {cmd: [apply, '{{.Params.x}}']}}}", apply),
        ],
    );
    format!("{small}{definition}")
}

fn apply(text: &str) -> Command {
    compiled(text, "staging", "")
        .unwrap_or_else(|problems| panic!("{:?}", lines(&problems)))
        .commands
        .apply
}

fn job(text: &str) -> Value {
    *apply(text).job.unwrap()
}

fn check_problem(definition: &str, apply: &str, expected: &str) {
    let problems =
        super::super::check(&configs(&on_cluster(definition, apply)), &Options::default(), None);
    assert_eq!(lines(&problems), [expected], "{apply}");
}

#[test]
fn jobs_run_in_a_namespace_of_the_runtime_or_in_the_given_one() {
    let task = "{taskConfig: {program: {image: i}}}";
    let place = |text: &str| match compiled(text, "staging", "").unwrap().place {
        RunTarget::Cluster(place) => *place,
        other => panic!("{other:?}"),
    };
    let own = place(&on_cluster(K8S, task));
    assert_eq!((own.namespace.as_str(), own.own_namespace), ("pvn-proxy-runtime-tool", true));
    assert_eq!(
        (own.kubeconfig.as_deref(), own.context.as_deref(), own.wrapper_image),
        (Some("/etc/k"), Some("c"), None)
    );
    let given = changed(
        &on_cluster(K8S, task),
        &[("runtime: k8s}", "runtime: k8s, containerOrchestration: {k8s: {namespace: mine}}}")],
    );
    let given = place(&given);
    assert_eq!((given.namespace.as_str(), given.own_namespace), ("mine", false));
    assert_eq!(
        place(&on_cluster("---\nruntime: {name: k8s}\n", task)).kubeconfig,
        None,
        "a runtime of no kind is a cluster"
    );
}

#[test]
fn a_runtime_is_checked_where_its_jobs_run_and_a_cluster_for_all_that_name_it() {
    let other = "---\nruntime: {name: other, custom: {proxyRuntime: {runtime: k8s}, apply: \
                 {taskConfig: {program: {image: i}}}}}\n";
    let text = format!(
        "{}{other}---\nruntime: {{name: idle, kubernetes: {{}}}}\n",
        on_cluster(K8S, "{taskConfig: {program: {image: i}}}")
    );
    let configs = configs(&text);
    let places = |name: &str| -> Vec<_> {
        let found = cluster_places(&configs, &name.parse().unwrap()).into_iter();
        found
            .map(|place| {
                format!(
                    "{} on {}{}",
                    place.runtime,
                    place.cluster,
                    if place.is_cluster_alone() { ", alone" } else { "" }
                )
            })
            .collect()
    };
    assert_eq!(places("tool"), ["tool on k8s"]);
    assert_eq!(places("k8s"), ["other on k8s", "tool on k8s"]);
    assert_eq!(places("idle"), ["idle on idle, alone"]);
    assert_eq!(places("local"), [""; 0]);
}

#[test]
fn rule_13_what_a_pod_has_to_end_is_known_where_its_job_says_so() {
    let file = |pod: &str| {
        let job = format!(
            "apiVersion: batch/v1\nkind: Job\nspec: {{template: {{spec: {{{pod}containers: \
             [{{name: a, image: i, command: [run]}}]}}}}}}\n"
        );
        format!(
            "{{kubernetesConfig: {{type: KUBERNETES, inlined: {}}}}}",
            serde_json::to_string(&job).unwrap()
        )
    };
    let grace = |apply: &str| {
        compiled(&on_cluster(K8S, apply), "staging", "").unwrap().desired.apply.stop_grace
    };
    assert_eq!(
        grace(&file("terminationGracePeriodSeconds: 300, ")),
        Some(Duration::from_secs(300))
    );
    assert_eq!(
        grace(&file("terminationGracePeriodSeconds: 2147483647, ")),
        Some(Duration::from_secs(2_147_483_647))
    );
    assert_eq!(grace(&file("")), None);
    assert_eq!(grace("{taskConfig: {program: {image: i}}}"), None);
}

#[test]
fn a_task_stands_for_a_job() {
    let task = "{taskConfig: {
      program: {name: tool, imageTag: '{{.Params.x}}', imageRegistryInfo: {containerRegistry: \
                r.test, imageRepository: a/b},
        entrypoint: [run], cmd: ['costs $(5)'], workingDirectory: /w,
        resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}},
      volumes: [{name: s, source: {secret: {secretName: certs}}, mount: {mountPath: /s, readOnly: \
                true}},
                {name: t, source: {ephemeral: {medium: MEMORY}}, mount: {mountPath: /t}}],
      ttl: 90s, k8s: {serviceAccount: runner},
      securityContext: {runAsNonRoot: true, runAsUser: 1000, capabilities: {drop: [ALL]}, \
                seccompProfile: {type: RuntimeDefault}}}}";
    let expected = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "spec": {"ttlSecondsAfterFinished": 90, "template": {"spec": {
            "enableServiceLinks": false,
            "serviceAccountName": "runner",
            "volumes": [{"name": "s", "secret": {"secretName": "certs"}}, {"name": "t", "emptyDir": {"medium": "Memory"}}],
            "containers": [{
                "name": "tool", "image": "r.test/a/b:fallback", "command": ["run"], "args": ["costs $$(5)"], "workingDir": "/w",
                "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 1000, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                },
                "volumeMounts": [{"name": "s", "mountPath": "/s", "readOnly": true}, {"name": "t", "mountPath": "/t", "readOnly": false}],
            }],
        }}},
    });
    assert_eq!(job(&on_cluster(K8S, task)), expected);
}

#[test]
fn a_job_file_is_taken_whole_with_the_values_in_its_strings() {
    let file = "{kubernetesConfig: {type: KUBERNETES, inlined: \"
apiVersion: batch/v1
kind: Job
spec:
  backoffLimit: 2
  template:
    metadata: {annotations: {kubectl.kubernetes.io/default-container: tool}}
    spec:
      containers:
      - {name: side, image: 's:1'}
      - {name: tool, image: 'i:{{.Params.x}}', env: [{name: A, value: '{{.Params.x}}'}, {name: B, \
                valueFrom: {fieldRef: {fieldPath: a}}}]}
\"}}";
    let command = apply(&on_cluster(K8S, &file.replace('\n', "\\n")));
    assert_eq!((command.name.as_str(), command.env.len()), ("tool", 0));
    let job = *command.job.unwrap();
    assert_eq!(job["spec"]["backoffLimit"], 2, "a number stays one");
    let tool = &job["spec"]["template"]["spec"]["containers"][1];
    assert_eq!(tool["image"], "i:fallback");
    assert_eq!(tool["env"][0], json!({"name": "A", "value": "fallback"}));
    assert_eq!(tool["env"][1]["valueFrom"]["fieldRef"]["fieldPath"], "a");
}

#[test]
fn a_secret_of_the_cluster_is_referred_to() {
    let task = "{env: {A: {kubernetesSecret: {secretName: s, key: k}}, B: {rawSecret: x}}, \
                taskConfig: {program: {image: i}}}";
    assert_eq!(env(&apply(&on_cluster(K8S, task))), "A=kubernetes(s/k) B=[x]");
}

#[test]
fn what_a_job_file_takes_from_a_secret_as_a_whole_is_refused_unless_it_is_said_what_is_secret() {
    let file = |of_config: &str, of_container: &str| {
        let container = format!(
            "{{name: c, image: i, envFrom: [{{configMapRef: {{name: m}}}}, {{secretRef: {{name: \
             db}}}}]{of_container}}}"
        );
        let job = format!(
            "{{apiVersion: batch/v1, kind: Job, spec: {{template: {{spec: {{containers: \
             [{container}]}}}}}}}}"
        );
        format!("{{{of_config}kubernetesConfig: {{type: KUBERNETES, inlined: \"{job}\"}}}}")
    };
    let place = "runtime.custom.apply.kubernetesConfig.inlined";
    let expected = "nobody here knows which variables `envFrom` takes from the Secret `db`, so \
                    they cannot be masked in what the command prints";
    check_problem(K8S, &file("", ""), &format!("{place}: {expected}"));
    apply(&on_cluster(K8S, &file("", ", env: [{name: PVN_SECRET_KEYS, value: 'PASSWORD, USER'}]")));
    apply(&on_cluster(K8S, &file("env: {PVN_SECRET_KEYS: {value: PASSWORD}}, ", "")));
    apply(&on_cluster(K8S, &file("", "").replace("secretRef", "configMapRef")));
}

#[test]
fn the_wrappers_own_variables_are_the_users_to_set_where_they_can_be_heeded() {
    let task = "{env: {PVN_SECRET_KEYS: {value: 'A, B'}, PVN_SPOOL_DIR: {value: /spool}, \
                PVN_TOKEN: {value: x}}, taskConfig: {program: {image: i}}}";
    assert_eq!(env(&apply(&on_cluster(K8S, task))), "PVN_SECRET_KEYS=A, B PVN_SPOOL_DIR=/spool");
    let secret = "{env: {PVN_SECRET_KEYS: {rawSecret: x}}, taskConfig: {program: {image: i}}}";
    let expected = "runtime.custom.apply: `PVN_SECRET_KEYS` is a secret; it holds the names of \
                    the variables that are";
    check_problem(K8S, secret, expected);
    let here = changed(
        SMALL,
        &[(
            "{taskConfig: {program: {cmd: [apply, '{{.Params.x}}']}}}",
            "{env: {PVN_SPOOL_DIR: {value: /s}}, taskConfig: {program: {cmd: [a]}}}",
        )],
    );
    let problems = super::super::check(&configs(&here), &Options::default(), None);
    let expected = "runtime.custom.apply: `PVN_SPOOL_DIR` cannot be set on this machine: the \
                    scheduler collects what is there";
    assert_eq!(lines(&problems), [expected]);
}

#[test]
fn what_an_api_server_takes_no_two_of_is_said() {
    let file = |job: &str| {
        format!(
            "{{kubernetesConfig: {{type: KUBERNETES, inlined: \"apiVersion: batch/v1\\nkind: \
             Job\\n{job}\"}}}}"
        )
    };
    let at = "runtime.custom.apply.kubernetesConfig";
    for (twice, what) in [
        (
            "containers: [{name: t, image: i}], initContainers: [{name: t, image: i}]",
            "container is called `t`",
        ),
        (
            "containers: [{name: t, image: i, env: [{name: A, value: x}, {name: A, value: x}]}]",
            "variable is called `A`",
        ),
        (
            "containers: [{name: t, image: i}], volumes: [{name: v, emptyDir: {}}, {name: v, \
             emptyDir: {}}]",
            "volume is called `v`",
        ),
        (
            "containers: [{name: t, image: i, volumeMounts: [{name: a, mountPath: /d}, {name: b, \
             mountPath: /d}]}]",
            "volume is mounted at `/d`",
        ),
    ] {
        let job = file(&format!("spec: {{template: {{spec: {{{twice}}}}}}}"));
        check_problem(K8S, &job, &format!("{at}.inlined: a {what}, as one before it"));
    }
    for (ours, what) in [
        (
            "containers: [{name: t, image: i}], volumes: [{name: pvn-wrapper, emptyDir: {}}]",
            "called `pvn-wrapper`, as one of pvn's own",
        ),
        (
            "containers: [{name: t, image: i}], volumes: [{name: pvn-authorities, emptyDir: {}}]",
            "called `pvn-authorities`, as one of pvn's own",
        ),
        (
            "containers: [{name: t, image: i, volumeMounts: [{name: a, mountPath: //pvn/}]}]",
            "mounted at `//pvn/`, and pvn mounts one at `/pvn`",
        ),
        (
            "containers: [{name: t, image: i, volumeMounts: [{name: a, mountPath: \
             /pvn-authorities/mine}]}]",
            "mounted at `/pvn-authorities/mine`, and pvn mounts one at `/pvn-authorities`",
        ),
    ] {
        let job = file(&format!("spec: {{template: {{spec: {{{ours}}}}}}}"));
        check_problem(K8S, &job, &format!("{at}.inlined: a volume is {what}"));
    }
}

#[test]
fn what_makes_no_sense_on_a_cluster_is_said() {
    let program = "runtime.custom.apply.taskConfig.program";
    check_problem(
        K8S,
        "{taskConfig: {program: {cmd: [a]}}}",
        &format!("{program}: there is no image to run on a Kubernetes runtime"),
    );
    let expected = "runtime.custom.apply.taskConfig.leaveRunning: `leaveRunning` has no meaning \
                    on a Kubernetes runtime: a Pod ends with its command";
    check_problem(K8S, "{taskConfig: {program: {image: i}, leaveRunning: true}}", expected);
    let expected = format!(
        "{program}: there is no `entrypoint`, and the wrapper cannot see what the image would run"
    );
    check_problem(INJECTED, "{taskConfig: {program: {image: i, cmd: [a]}}}", &expected);
    let expected = format!(
        "{program}.name: a container is called `pvn-wrapper`, as the one that brings the wrapper \
         along"
    );
    check_problem(K8S, "{taskConfig: {program: {name: pvn-wrapper, image: i}}}", &expected);
}

#[test]
fn what_a_job_file_cannot_say_on_a_cluster_is_said() {
    let file = |job: &str| {
        format!(
            "{{kubernetesConfig: {{type: KUBERNETES, inlined: \"apiVersion: batch/v1\\nkind: \
             Job\\n{job}\"}}}}"
        )
    };
    let at = "runtime.custom.apply.kubernetesConfig";
    let own = "containers: [{name: t, image: i}]";
    let containers = format!("template: {{spec: {{{own}}}}}");
    check_problem(
        INJECTED,
        &file(&format!("spec: {{{containers}}}")),
        &format!(
            "{at}: there is no `command`, and the wrapper cannot see what the image would run"
        ),
    );
    let check = |job: &str, what: &str| {
        check_problem(K8S, &file(job), &format!("{at}.inlined: {what}"));
    };
    check(
        &format!("spec: {{completions: 2, {containers}}}"),
        "`completions` is not 1: the Job is one run of one command",
    );
    check(
        &format!("spec: {{podReplacementPolicy: TerminatingOrFailed, {containers}}}"),
        "`podReplacementPolicy` is not Failed: the cluster would start a second Pod beside one \
         that has yet to end",
    );
    check(
        &format!("spec: {{managedBy: kueue.x-k8s.io/multikueue, {containers}}}"),
        "`managedBy` is not kubernetes.io/job-controller: what else runs Jobs may run the command \
         twice, or never",
    );
    let taken = format!("{own}, initContainers: [{{name: pvn-wrapper, image: i}}]");
    check(
        &format!("spec: {{template: {{spec: {{{taken}}}}}}}"),
        "a container is called `pvn-wrapper`, as the one that brings the wrapper along",
    );
    check(
        &format!("spec: {{activeDeadlineSeconds: 9223372037, {containers}}}"),
        "`activeDeadlineSeconds` is 9223372037: Kubernetes counts no more than 9223372036, and \
         would end the Job at once",
    );
    for seconds in ["2147483648", "9223372036854775807", "99999999999999999999"] {
        let pod = format!("terminationGracePeriodSeconds: {seconds}, {own}");
        let what = "Kubernetes counts no more than 2147483647, and would leave the command no \
                    time to end at all";
        check(
            &format!("spec: {{template: {{spec: {{{pod}}}}}}}"),
            &format!("`terminationGracePeriodSeconds` is {seconds}: {what}"),
        );
    }
    check(
        &format!("metadata: {{namespace: other}}\\nspec: {{{containers}}}"),
        "the Job runs in namespace `pvn-proxy-runtime-tool`",
    );
}
