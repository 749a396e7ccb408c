//! What only a real kubelet shows: a status that lags behind its containers, several tries of one
//! Job, ends by a timeout, the restricted Pod security, containers beside the command's, a Job that
//! somebody suspended.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tests::cluster::{Cluster, Image, TOOLS};
use tests::scheduler::Start;
use tests::{programs, wait};

use crate::cluster_world::{TOOLS_AND_LIBRARIES, UNTIL_GO, World, injected};

/// Runs until it is killed, and heeds TERM.
const FOR_EVER: &str =
    "trap 'exit 143' TERM; echo $PVN_JOB_ID >> ledger; while :; do sleep 0.1; done";

fn namespaced<'a>(world: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--namespace", world]].concat()
}

/// Objects of this kind in the namespace of this world.
fn items(cluster: &Cluster, world: &World<'_>, kind: &str) -> Vec<Value> {
    let namespace = world.namespace();
    let text = cluster.kubectl(&namespaced(&namespace, &["get", kind, "--output", "json"]), "");
    let list: Value = serde_json::from_str(&text).expect("kubectl prints JSON");
    list["items"].as_array().expect("a list has items").clone()
}

/// A Job file of a script like that of [`World::script_in`], changed.
fn changed(script: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut config: Value = serde_json::from_str(script).expect("it is JSON");
    let mut job: Value = serde_json::from_str(config["inlined"].as_str().expect("it is inlined"))
        .expect("it is JSON");
    change(&mut job);
    config["inlined"] = job.to_string().into();
    config.to_string()
}

/// Keeps nodes from telling of the Pods in one namespace, for as long as it is held.
struct Silence<'c> {
    cluster: &'c Cluster,
    name: String,
}

impl<'c> Silence<'c> {
    fn over(cluster: &'c Cluster, namespace: &str) -> Self {
        let name = format!("silence-{namespace}");
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]});
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail", "matchConstraints": {"namespaceSelector": selector, "resourceRules": [rule]},
                "validations": [{"expression": "false", "message": "nobody hears of it"}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        cluster.kubectl(&["create", "-f", "-"], &format!("{policy}\n---\n{binding}"));
        Self { cluster, name }
    }
}

impl Drop for Silence<'_> {
    fn drop(&mut self) {
        // The namespace is this test's alone, so a policy that stays hurts nobody.
        if !std::thread::panicking() {
            let both = "validatingadmissionpolicybinding,validatingadmissionpolicy";
            self.cluster.kubectl(&["delete", both, &self.name], "");
        }
    }
}

#[test]
fn p1_a_pod_that_is_deleted_by_force_while_its_status_lags_behind_its_command_is_no_start_that_failed()
 {
    let test = "p1_a_pod_that_is_deleted_by_force_while_its_status_lags_behind_its_command_is_no_start_that_failed";
    let Some(cluster) = Cluster::get(test) else { return };
    let world = World::new(&cluster, "lags");
    let namespace = world.namespace();
    cluster.kubectl(&["create", "namespace", &namespace], "");
    let silence = Silence::over(&cluster, &namespace);
    // A policy is heeded some moments after it is there.
    let nowhere = json!({"nodeSelector": {"pvn.test/there": "nowhere"}, "containers": [{"name": "c", "image": TOOLS}]});
    let probe =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": nowhere});
    wait::until("a service account for Pods", || {
        let there = items(&cluster, &world, "serviceaccounts");
        (!there.is_empty()).then_some(())
    });
    cluster.kubectl(&namespaced(&namespace, &["create", "-f", "-"]), &probe.to_string());
    wait::until("the policy to be heeded", || {
        let patch = r#"{"status": {"message": "heard"}}"#;
        let script = namespaced(
            &namespace,
            &[
                "patch",
                "pod",
                "probe",
                "--subresource",
                "status",
                "--type",
                "merge",
                "--patch",
                patch,
            ],
        );
        cluster
            .try_kubectl(&script)
            .is_err_and(|said| said.contains("nobody hears of it"))
            .then_some(())
    });
    cluster.kubectl(
        &namespaced(&namespace, &["delete", "pod", "probe", "--grace-period", "0", "--force"]),
        "",
    );

    // Without a fetch: in a silent namespace none would be seen to end.
    world.release(
        &json!({}),
        &format!("    apply: {{kubernetesConfig: {}}}", world.script(UNTIL_GO)),
    );
    let ledger = world.shared().join("ledger");
    wait::until("the apply to run", || ledger.exists().then_some(()));
    let pod = items(&cluster, &world, "pods").remove(0);
    assert_eq!(pod["status"]["phase"], "Pending", "its node is not heard: {pod:#}");
    let name = pod["metadata"]["name"].as_str().expect("it has a name");
    cluster.kubectl(
        &namespaced(&namespace, &["delete", "pod", name, "--grace-period", "0", "--force"]),
        "",
    );
    drop(silence);

    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    let message = channel["message"].as_str().expect("it has a message");
    assert!(message.contains("may still run"), "{channel:#}");
    assert_eq!(
        world.ended("apply")["status"],
        "UNKNOWN",
        "it is no start that failed, which would be tried again"
    );
    assert_eq!(world.jobs("apply").len(), 1, "it is not run again by itself");
    world.check_ran(1);
}

#[test]
fn p1_a_job_file_with_several_tries_and_a_wrapper_within_is_one_job() {
    let Some(cluster) =
        Cluster::get("p1_a_job_file_with_several_tries_and_a_wrapper_within_is_one_job")
    else {
        return;
    };
    const WITHIN: &str = "pvn.test/tries:1";
    cluster.import(
        &Image::with_tools(WITHIN).program("pvn-wrapper", &programs::program("pvn-wrapper")),
    );
    let world = World::new(&cluster, "tries");
    let script =
        world.script_in(WITHIN, "echo $PVN_JOB_ID >> ledger; echo try; [ $(wc -l < ledger) = 2 ]");
    let apply = changed(&script, |job| {
        job["spec"]["backoffLimit"] = 2.into();
        let command = &mut job["spec"]["template"]["spec"]["containers"][0]["command"];
        let inner = command.as_array().expect("it is a list").clone();
        *command = [vec!["/pvn-wrapper".into(), "exec".into(), "--".into()], inner].concat().into();
    });
    world.release(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    let jobs = world.jobs("apply");
    assert_eq!((jobs.len(), &jobs[0]["status"]), (1, &json!("SUCCEEDED")), "{jobs:#?}");
    let ledger = std::fs::read_to_string(world.shared().join("ledger")).expect("it ran");
    let id = jobs[0]["id"].as_str().expect("a job has an id");
    assert_eq!(ledger.lines().collect::<Vec<_>>(), [id, id], "two tries of one job");
    world.check_created_once();
}

/// Milliseconds between two instants as the API shows them.
fn between_ms(job: &Value, from: &str, to: &str) -> i64 {
    let at = |field: &str| {
        job[field]
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
            .unwrap_or_else(|| panic!("{field}: {job:#}"))
    };
    at(to).as_millisecond() - at(from).as_millisecond()
}

#[test]
fn p3_the_timeout_of_a_command_without_a_wrapper_ends_it() {
    let Some(cluster) = Cluster::get("p3_the_timeout_of_a_command_without_a_wrapper_ends_it")
    else {
        return;
    };
    let world = World::new(&cluster, "timeout");
    // Long enough that it runs before, also on a busy machine.
    world.release(
        &json!({}),
        &format!("    apply: {{timeout: 40s, kubernetesConfig: {}}}", world.script(FOR_EVER)),
    );
    let job = world.ended("apply");
    let job = world.scheduler.json(&["jobs", "get", job["id"].as_str().expect("a job has an id")]);
    assert_eq!(job["status"], "FAILED", "{job:#}");
    assert!(job["message"].as_str().is_some_and(|said| said.contains("timeout")), "{job:#}");
    // Nodes tell whole seconds.
    assert!(between_ms(&job, "createdAt", "endedAt") > 39_000, "{job:#}");
    let is_over =
        |pod: &Value| ["Failed", "Succeeded"].iter().any(|phase| pod["status"]["phase"] == *phase);
    wait::until("its Pod to be over", || {
        items(&cluster, &world, "pods").iter().all(is_over).then_some(())
    });
    world.check_ran(1);
}

#[test]
fn p3_a_pod_that_fits_nowhere_is_given_up_at_the_timeout_counted_from_its_job() {
    let Some(cluster) =
        Cluster::get("p3_a_pod_that_fits_nowhere_is_given_up_at_the_timeout_counted_from_its_job")
    else {
        return;
    };
    let world = World::new(&cluster, "nowhere");
    let apply = changed(&world.script(FOR_EVER), |job| {
        job["spec"]["template"]["spec"]["nodeSelector"] = json!({"pvn.test/there": "nowhere"});
    });
    world.release(&json!({}), &format!("    apply: {{timeout: 20s, kubernetesConfig: {apply}}}"));
    let job = wait::until_within(wait::PATIENCE * 2, "the first apply to end", || {
        world.jobs("apply").into_iter().last().filter(|job| !job["endedAt"].is_null())
    });
    let job = world.scheduler.json(&["jobs", "get", job["id"].as_str().expect("a job has an id")]);
    assert!(
        job["message"]
            .as_str()
            .is_some_and(|said| said.contains("did not start in time: Unschedulable")),
        "{job:#}"
    );
    assert!(job["startedAt"].is_null(), "{job:#}");
    assert!(between_ms(&job, "createdAt", "endedAt") >= 20_000, "{job:#}");
    wait::until("its Job to be gone", || {
        (!world.jobs_there().contains(job["id"].as_str().expect("a job has an id"))).then_some(())
    });
    assert!(!world.shared().join("ledger").exists(), "it never ran");
}

#[test]
fn commands_run_under_restricted_pod_security_with_and_without_an_injected_wrapper() {
    let Some(cluster) = Cluster::get(
        "commands_run_under_restricted_pod_security_with_and_without_an_injected_wrapper",
    ) else {
        return;
    };
    for (image, settings, has_streams) in
        [(TOOLS, json!({}), false), (TOOLS_AND_LIBRARIES, injected(&cluster), true)]
    {
        let world = World::new(&cluster, "restricted");
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.namespace(), "labels": labels}});
        cluster.kubectl(&["create", "-f", "-"], &namespace.to_string());
        let context = json!({
            "runAsNonRoot": true, "runAsUser": 1000, "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        });
        let program = json!({"image": image, "entrypoint": ["sh", "-c", "id -u; echo aside >&2"]});
        let task = |context: Option<&Value>| {
            let mut task = json!({"program": program});
            task.as_object_mut()
                .expect("it is one")
                .extend(context.map(|context| ("securityContext".to_owned(), context.clone())));
            format!("    apply: {{timeout: 120s, taskConfig: {task}}}")
        };
        world.release(&settings, &task(Some(&context)));
        world.scheduler.channel_becomes("s", "c", "CONVERGED");
        let (stdout, stderr) = world.log(&world.ended("apply"));
        assert!(stdout.contains("1000"), "{image}: {stdout} {stderr}");
        assert_eq!(stderr == "aside\n", has_streams, "{image}: {stdout} {stderr}");

        // The namespace is as strict as it says.
        world.release(&settings, &task(None));
        let refused = wait::until("the policy's words", || {
            let told = world.scheduler.json(&[
                "services",
                "explain",
                "s",
                "--app",
                "app",
                "--channel",
                "c",
            ]);
            told["causes"].as_array()?.iter().find(|cause| cause["code"] == "JOB_WAITS").cloned()
        });
        assert!(
            refused["message"].as_str().is_some_and(|said| said.contains("restricted")),
            "{image}: {refused:#}"
        );
    }
}

#[test]
fn p7_containers_beside_the_command_that_never_end_are_ended_once_its_end_is_stored() {
    let Some(cluster) = Cluster::get(
        "p7_containers_beside_the_command_that_never_end_are_ended_once_its_end_is_stored",
    ) else {
        return;
    };
    let beside = json!({"name": "beside", "image": TOOLS, "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]});
    for is_native in [true, false] {
        let world = World::new(&cluster, "sidecar");
        let apply = changed(&world.script("echo $PVN_JOB_ID >> ledger"), |job| {
            let pod = &mut job["spec"]["template"]["spec"];
            let mut beside = beside.clone();
            if is_native {
                beside["restartPolicy"] = "Always".into();
                pod["initContainers"] = json!([beside]);
            } else {
                pod["containers"].as_array_mut().expect("it is a list").push(beside);
            }
        });
        world.release(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
        world.scheduler.channel_becomes("s", "c", "CONVERGED");
        let apply = world.ended("apply");
        assert_eq!(
            (&apply["status"], &apply["exitCode"]),
            (&json!("SUCCEEDED"), &json!(0)),
            "native: {is_native}"
        );
        let job = wait::until_within(wait::PATIENCE * 2, "its Job to be over", || {
            let job = items(&cluster, &world, "jobs").remove(0);
            let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is_over = |condition: &Value| {
                ["Complete", "Failed"].iter().any(|end| condition["type"] == *end)
            };
            conditions.iter().any(is_over).then_some(job)
        });
        assert!(job["status"]["active"].is_null(), "native: {is_native}: no Pod is left: {job:#}");
        world.check_ran(1);
    }
}

#[test]
fn p1_a_job_that_somebody_suspended_while_the_scheduler_was_away_is_unknown_and_not_run_again() {
    let test = "p1_a_job_that_somebody_suspended_while_the_scheduler_was_away_is_unknown_and_not_run_again";
    let Some(cluster) = Cluster::get(test) else { return };
    let mut world = World::new(&cluster, "suspended");
    world.release(
        &json!({}),
        &format!(
            "    apply: {{kubernetesConfig: {}}}",
            world.script(&format!("trap 'exit 0' TERM; {UNTIL_GO}"))
        ),
    );
    world.runs();
    world.scheduler.kill();
    let namespace = world.namespace();
    let name = items(&cluster, &world, "jobs").remove(0)["metadata"]["name"]
        .as_str()
        .expect("it has a name")
        .to_owned();
    cluster.kubectl(
        &namespaced(
            &namespace,
            &[
                "patch",
                "job",
                &name,
                "--type",
                "merge",
                "--patch",
                r#"{"spec": {"suspend": true}}"#,
            ],
        ),
        "",
    );
    wait::until("its Pod to be gone", || items(&cluster, &world, "pods").is_empty().then_some(()));

    world.scheduler.run(&Start::default());
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert!(
        channel["message"].as_str().is_some_and(|said| said.contains("somebody suspended its Job")),
        "{channel:#}"
    );
    assert_eq!(world.ended("apply")["status"], "UNKNOWN");
    wait::until("its Job to be gone, so that nobody resumes it", || {
        items(&cluster, &world, "jobs").is_empty().then_some(())
    });
    world.goes_again();
}
