//! Where the time of one job goes: when the API server first showed each step of its Job and Pod.

use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tests::cluster::Cluster;
use tokio::sync::oneshot;

use super::run;

/// Time between two looks at the API server.
const LOOK: Duration = Duration::from_millis(10);

/// Prints the steps of the one job that `submit` runs in this namespace; it returns the job's own
/// time, seconds.
pub(crate) fn print(name: &str, cluster: &Cluster, namespace: &str, submit: impl FnOnce() -> f64) {
    let (done, is_done) = oneshot::channel();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (taken, start, seen) = std::thread::scope(|scope| {
        let looking = scope.spawn(move || run(look(cluster, namespace, ready, is_done)));
        is_ready.recv().expect("the API server answers");
        let start = Instant::now();
        let taken = submit();
        // It may have seen all and be over.
        let _over = done.send(());
        (taken, start, looking.join().expect("the API server answers"))
    });
    println!("one job, {name}: {taken:.2} s");
    for (step, at) in seen {
        println!("  {step:<44}{:>8.2} s", at.saturating_duration_since(start).as_secs_f64());
    }
}

/// When each step of what is new in the namespace was seen first, in that order. Ends some time
/// after the job does, so that steps that nobody waited for are seen too.
async fn look(
    cluster: &Cluster,
    namespace: &str,
    ready: std::sync::mpsc::Sender<()>,
    mut is_done: oneshot::Receiver<()>,
) -> Vec<(&'static str, Instant)> {
    let client = cluster.client().await;
    let (jobs, pods): (Api<Job>, Api<Pod>) =
        (Api::namespaced(client.clone(), namespace), Api::namespaced(client, namespace));
    let name = |metadata: &kube::api::ObjectMeta| metadata.uid.clone().unwrap_or_default();
    let mut old: Vec<String> = Vec::new();
    let mut seen: Vec<(&str, Instant)> = Vec::new();
    let mut ready = Some(ready);
    let mut turns = tokio::time::interval(LOOK);
    let mut job_is_complete = false;
    let mut is_over = false;
    while !(is_over && job_is_complete) {
        turns.tick().await;
        let found = (jobs.list(&Default::default()).await, pods.list(&Default::default()).await);
        let (Ok(jobs), Ok(pods)) = found else { panic!("the API server does not answer") };
        if let Some(ready) = ready.take() {
            old.extend(
                jobs.iter()
                    .map(|job| name(&job.metadata))
                    .chain(pods.iter().map(|pod| name(&pod.metadata))),
            );
            let _gone = ready.send(());
        }
        let mut steps = Vec::new();
        for job in jobs.iter().filter(|job| !old.contains(&name(&job.metadata))) {
            steps.extend(job_steps(job));
        }
        for pod in pods.iter().filter(|pod| !old.contains(&name(&pod.metadata))) {
            steps.extend(pod_steps(pod));
        }
        let now = Instant::now();
        for step in steps {
            job_is_complete |= step == JOB_IS_COMPLETE;
            if !seen.iter().any(|(before, _)| *before == step) {
                seen.push((step, now));
            }
        }
        is_over |= is_done.try_recv() != Err(oneshot::error::TryRecvError::Empty);
    }
    seen
}

const JOB_IS_COMPLETE: &str = "the Job is complete";

fn job_steps(job: &Job) -> Vec<&'static str> {
    let is_suspended = job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true);
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_complete = conditions
        .into_iter()
        .any(|condition| condition.type_ == "Complete" && condition.status == "True");
    [("the Job is made", true), ("the Job may run", !is_suspended), (JOB_IS_COMPLETE, is_complete)]
        .into_iter()
        .filter_map(|(step, is_so)| is_so.then_some(step))
        .collect()
}

fn pod_steps(pod: &Pod) -> Vec<&'static str> {
    let has_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let Some(status) = &pod.status else { return vec!["the Pod is made"] };
    let first = |statuses: &Option<Vec<k8s_openapi::api::core::v1::ContainerStatus>>| {
        statuses.as_ref().and_then(|all| all.first()?.state.clone()).unwrap_or_default()
    };
    let (init, command) =
        (first(&status.init_container_statuses), first(&status.container_statuses));
    [
        ("the Pod is made", true),
        ("the Pod has a node", has_node),
        ("the init container has ended", init.terminated.is_some()),
        ("the command runs", command.running.is_some()),
        ("the command has ended", command.terminated.is_some()),
        ("the Pod has ended", matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))),
    ]
    .into_iter()
    .filter_map(|(step, is_so)| is_so.then_some(step))
    .collect()
}
