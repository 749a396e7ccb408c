//! Spool directories that nobody looks after: those of jobs that are over go, those of jobs that
//! may still be wanted stay.

use pvn_scheduler::retention::Retention;
use schema::id::JobId;
use schema::report::Report;
use schema::status::JobKind;

use super::{JobRow, Rig};
use crate::local::open_runner;

#[tokio::test]
async fn the_spool_directories_of_jobs_that_are_over_go_and_all_others_stay() {
    let mut rig = Rig::open().await;
    let home = rig.fresh.dir.path().to_owned();
    let (runner, _news) = open_runner(&home, &rig.blobs);
    let over = rig.job(JobKind::Fetch, 0, Report::default());
    let runs =
        JobRow { ended_at: None, report: None, ..rig.job(JobKind::Apply, 0, Report::default()) };
    rig.commit(vec![over.clone(), runs.clone()]).await;
    let unknown = JobId::derive(&[b"of a database that is lost"]);
    let directory = |job: JobId| home.join("spool").join(job.to_string());
    for job in [over.id, runs.id, unknown] {
        std::fs::create_dir_all(directory(job)).unwrap();
        std::fs::write(directory(job).join("stdout"), "a log").unwrap();
    }
    std::fs::create_dir(home.join("spool/of-somebody-else")).unwrap();

    let retention = Retention { spool: Some(runner), ..rig.retention() };
    retention.pass().await.unwrap();
    assert!(!directory(over.id).exists(), "its end is stored");
    assert!(!directory(unknown).exists(), "nobody will ever ask for it");
    assert!(directory(runs.id).join("stdout").exists(), "its end is not stored yet");
    assert!(home.join("spool/of-somebody-else").exists());
    assert!(
        rig.fresh.store.pruned().to_string().contains("2 spool"),
        "{}",
        rig.fresh.store.pruned()
    );
}
