//! The published rights on a real cluster: what is missing is told with its remedy before anything
//! is made, and a scheduler that may work in given namespaces only works there. That the rights are
//! enough every other test on the cluster shows.

use serde_json::json;
use tests::cluster::{ADDRESS, Account, Cluster, TOOLS};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// A scheduler with this account, and a service `s` whose apply prints a word in this namespace,
/// else in the runtime's own. Returns the runtime's name.
fn scheduler(account: &Account, namespace: Option<&str>) -> (Scheduler, String) {
    scheduler_that_runs(account, namespace, &["echo", "hello"])
}

/// The same with another apply.
fn scheduler_that_runs(
    account: &Account,
    namespace: Option<&str>,
    command: &[&str],
) -> (Scheduler, String) {
    let mut scheduler = Scheduler::stopped_at(ADDRESS);
    scheduler.run(&Start::default());
    let runtime = format!("r-{}", account.name("rights"));
    let place = namespace.map_or(
        json!({}),
        |namespace| json!({"containerOrchestration": {"k8s": {"namespace": namespace}}}),
    );
    let mut proxy = place;
    proxy["runtime"] = "k8s".into();
    let cluster = json!({"kubeconfig": account.kubeconfig()});
    let apply = json!({"timeout": "60s", "taskConfig": {"program": {"image": TOOLS, "entrypoint": command}}});
    scheduler.apply(&format!(
        "runtime: {{name: k8s, kubernetes: {cluster}}}\n---\nruntime: {{name: {runtime}, custom: \
         {{proxyRuntime: {proxy}, apply: {apply}}}}}\n---\napplication: {{name: app, \
         releaseChannels: [{{name: c, runtimes: [{{runtime: {runtime}}}]}}]}}\n---\nservice: \
         {{name: s, application: app}}\n",
    ));
    (scheduler, runtime)
}

fn push(scheduler: &Scheduler) {
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
}

/// Waits until the newest release FAILED with a message that holds all of these.
fn fails_with(scheduler: &Scheduler, parts: &[&str]) {
    let mut last = json!(null);
    wait::until(&format!("a message with {parts:?}"), || {
        last = scheduler.channel("s", "c");
        let message = last["message"].as_str().unwrap_or_default();
        (last["status"] == "FAILED" && parts.iter().all(|part| message.contains(part)))
            .then_some(())
    });
    assert_eq!(last["reason"], "APPLY_FAILED", "{last:#}");
}

/// Role, verb, resource, and the resource as the message says it.
const ROWS: &[(&str, &str, &str, &str)] = &[
    ("pvn-jobs", "create", "jobs", "jobs.batch"),
    ("pvn-jobs", "patch", "jobs", "jobs.batch"),
    ("pvn-jobs", "watch", "jobs", "jobs.batch"),
    ("pvn-jobs", "list", "pods", "pods"),
    ("pvn-jobs", "deletecollection", "pods", "pods"),
    ("pvn-jobs", "get", "pods/log", "pods/log"),
    ("pvn-jobs", "create", "secrets", "secrets"),
    ("pvn-namespaces", "create", "namespaces", "namespaces"),
];

#[test]
fn a_right_that_is_missing_is_named_with_its_remedy_before_anything_is_made() {
    let Some(cluster) =
        Cluster::get("a_right_that_is_missing_is_named_with_its_remedy_before_anything_is_made")
    else {
        return;
    };
    let account = cluster.new_account(&["cluster-wide"]);
    let (scheduler, runtime) = scheduler(&account, None);
    let namespace = format!("pvn-proxy-runtime-{runtime}");
    for (role, verb, resource, shown) in ROWS {
        let missing = account.without(role, verb, resource);
        push(&scheduler);
        let right = format!("may not `{verb}` {shown} in the namespace `{namespace}`");
        fails_with(&scheduler, &[&right, "give it the rights in images/kubernetes/rights"]);
        drop(missing);
    }
    assert!(cluster.creations(&namespace).is_empty(), "nothing was made");
    // The cluster has them back at once, its API server a moment later.
    for (_, verb, resource, _) in ROWS {
        account.wait_until_it_may(true, verb, resource, "default");
    }
    push(&scheduler);
    scheduler.channel_becomes("s", "c", "CONVERGED");
}

#[test]
fn without_rights_in_all_namespaces_jobs_run_in_a_given_one_only() {
    let Some(cluster) =
        Cluster::get("without_rights_in_all_namespaces_jobs_run_in_a_given_one_only")
    else {
        return;
    };
    let account = cluster.new_account(&[]);
    let given = account.name("given");
    cluster.kubectl(&["create", "namespace", &given], "");

    let (unbound, _) = scheduler(&account, Some(&given));
    push(&unbound);
    let remedy = format!(
        "kubectl create rolebinding pvn-jobs --clusterrole pvn-jobs --serviceaccount pvn:pvn \
         --namespace {given}"
    );
    fails_with(&unbound, &[&format!("in the namespace `{given}`"), &remedy]);
    account.bind(&given);
    push(&unbound);
    unbound.channel_becomes("s", "c", "CONVERGED");

    let (elsewhere, _) = scheduler(&account, None);
    push(&elsewhere);
    fails_with(&elsewhere, &["may not", "or name a namespace in `containerOrchestration`"]);
}

#[test]
fn p7_a_stop_that_the_cluster_refuses_is_told_and_taken_once_the_right_is_back() {
    let Some(cluster) =
        Cluster::get("p7_a_stop_that_the_cluster_refuses_is_told_and_taken_once_the_right_is_back")
    else {
        return;
    };
    let account = cluster.new_account(&["cluster-wide"]);
    let (scheduler, _) = scheduler_that_runs(
        &account,
        None,
        &["sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done"],
    );
    push(&scheduler);
    let job = wait::until("the apply to run", || {
        let jobs =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", "apply"]);
        jobs.as_array()?.iter().find(|job| job["status"] == "RUNNING")?["id"]
            .as_str()
            .map(str::to_owned)
    });
    let missing = account.without("pvn-jobs", "patch", "jobs");
    scheduler.ok(&["jobs", "cancel", &job]);
    wait::until("the refusal to be told", || {
        let message = scheduler.channel("s", "c")["message"].as_str()?.to_owned();
        let parts = [
            "is being stopped",
            "it was not asked to end: stopping its Job: ",
            "cannot patch resource",
            "give the scheduler's account",
        ];
        parts.iter().all(|part| message.contains(part)).then_some(())
    });
    let explained = scheduler.ok(&["services", "explain", "s", "--app", "app", "--channel", "c"]);
    assert!(
        explained.contains("the cluster takes the stop, which is tried again every 5 s"),
        "{explained}"
    );
    drop(missing);
    assert_eq!(scheduler.channel_becomes("s", "c", "FAILED")["reason"], "CANCELLED");
}
