//! Where a job runs is decided with it and stands in its row; a row of before that was kept is
//! found all the same.

use schema::id::JobId;
use schema::status::{JobKind, JobStatus};
use schema::target::JobTarget;

use super::{Rig, TWO_CHANNELS, caller, target};

/// The same on a cluster.
fn on_a_cluster() -> String {
    let jobs = TWO_CHANNELS
        .replace("{name: look,", "{name: look, image: x,")
        .replace("{name: do,", "{name: do, image: x,");
    let jobs = jobs.replace("proxyRuntime: {runtime: local}", "proxyRuntime: {runtime: k8s}");
    format!("runtime: {{name: k8s, kubernetes: {{kubeconfig: /nowhere}}}}\n---{jobs}")
}

/// The first fetch of staging, which never ends by itself.
async fn fetch(rig: &Rig) -> JobId {
    let running = async || {
        let jobs = rig.store.jobs(&Default::default(), &Default::default()).await.unwrap().items;
        let runs = |job: &schema::api::Job| {
            job.status == JobStatus::Running && job.channel.as_str() == "staging"
        };
        jobs.into_iter().find(runs).map(|job| job.id)
    };
    rig.until("a fetch that runs", running).await
}

async fn stored(rig: &Rig, job: JobId) -> Option<JobTarget> {
    let row = rig.store.job_row(job).await.unwrap().unwrap();
    assert_eq!(rig.store.placed_job(job).await.unwrap(), row.placed());
    row.target
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jobs_row_says_where_it_runs() {
    for (config, expected) in [
        (TWO_CHANNELS.to_owned(), JobTarget::Local),
        (on_a_cluster(), JobTarget::Cluster("k8s".parse().unwrap())),
    ] {
        let rig = Rig::start(|_| None).await;
        rig.request(&config, true).await.unwrap();
        let job = fetch(&rig).await;
        assert_eq!(stored(&rig, job).await.as_ref(), Some(&expected));
        let dry =
            rig.handle.run_once(target("staging"), JobKind::Fetch, caller("eve")).await.unwrap();
        assert_eq!(stored(&rig, dry).await, Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p6_a_job_of_a_row_without_a_target_is_taken_up_and_stopped() {
    let rig = Rig::start(|_| None).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    let job = fetch(&rig).await;
    let rig = rig.edited("UPDATE jobs SET target = NULL", |_| None).await;
    assert_eq!(stored(&rig, job).await, None);
    assert!(
        rig.runner.seen.lock().unwrap().iter().all(|spec| spec.job != job),
        "it runs, so it is not started again"
    );
    rig.handle.cancel_job(job, caller("eve")).await.unwrap();
    let over = async || rig.store.job_row(job).await.unwrap().filter(|row| row.ended_at.is_some());
    assert_eq!(rig.until("its end", over).await.status, JobStatus::Cancelled);
}
