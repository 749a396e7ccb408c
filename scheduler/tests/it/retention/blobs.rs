//! What is kept of outputs, and that a blob goes with the last that names it.

use super::*;

#[tokio::test]
async fn twenty_seven_polls_of_four_megabytes_are_four_megabytes() {
    let mut rig = Rig::open().await;
    let value = serde_json::json!({"objects": (0..40_000).map(|number| format!("{number:0100}")).collect::<Vec<_>>()});
    let structured =
        Structured { kind: StructuredKind::Fetch, value: Some(value.clone()), errors: Vec::new() };
    let mut jobs = Vec::new();
    for _ in 0..27 {
        let job = rig.job(
            JobKind::Fetch,
            0,
            Report { structured: Some(structured.clone()), ..Report::default() },
        );
        rig.commit(vec![job.clone()]).await;
        jobs.push(job);
    }
    rig.pass().await;
    let bytes = std::fs::metadata(rig.fresh.dir.path().join("pvn.db")).unwrap().len();
    assert!(bytes < 6 << 20, "{bytes} bytes");
    for job in [&jobs[0], &jobs[26]] {
        let read = rig.fresh.store.job_row(job.id).await.unwrap().unwrap();
        assert_eq!(
            read.report.unwrap().structured.unwrap().value.as_ref(),
            Some(&value),
            "it reads back whole"
        );
        assert_eq!(
            rig.fresh.store.job(job.id).await.unwrap().unwrap().report.unwrap().structured,
            Some(structured.clone())
        );
    }
    // Written again, as a note does it, it stays.
    let again = rig.fresh.store.job_row(jobs[0].id).await.unwrap().unwrap();
    rig.commit(vec![again]).await;
    let read = rig.fresh.store.job_row(jobs[0].id).await.unwrap().unwrap();
    assert_eq!(read.report.unwrap().structured.unwrap().value, Some(value));
}

#[tokio::test]
async fn a_document_goes_with_the_last_job_that_printed_it_and_its_room_is_given_back() {
    let mut rig = Rig::open().await;
    for number in 0..100 {
        let value = serde_json::json!({"objects": vec![format!("{number:0100}"); 1000]});
        let structured =
            Structured { kind: StructuredKind::Fetch, value: Some(value), errors: Vec::new() };
        let job = rig.job(
            JobKind::Fetch,
            100 - number,
            Report { structured: Some(structured), ..Report::default() },
        );
        rig.commit(vec![job]).await;
    }
    let size = || std::fs::metadata(rig.fresh.dir.path().join("pvn.db")).unwrap().len();
    rig.fresh.store.checkpoint().await.unwrap();
    let before = size();
    rig.pass().await;
    assert!(
        size() + (3 << 20) < before,
        "{} of {before} bytes: 50 documents of 100 KB went",
        size()
    );
}

#[tokio::test]
async fn output_goes_after_a_month_and_that_of_applies_after_a_year() {
    let mut rig = Rig::open().await;
    let [look, apply, shared, last] =
        ["look", "apply", "shared", "last"].map(|text| rig.blob(text));
    let jobs = vec![
        rig.job(JobKind::Fetch, 0, printed(look)),
        rig.job(JobKind::Apply, 0, printed(apply)),
        rig.job(JobKind::Fetch, 0, printed(shared)),
        rig.job(JobKind::Apply, 0, printed(shared)),
        rig.job(JobKind::Fetch, 0, printed(last)),
        rig.job(JobKind::Apply, 0, Report::default()),
    ];
    rig.commit(jobs).await;
    let there = || [look, apply, shared, last].map(|blob| rig.blobs.has(blob));
    rig.clock.advance_ms(29 * DAY_MS);
    rig.pass().await;
    assert_eq!(there(), [true; 4]);
    rig.clock.advance_ms(2 * DAY_MS);
    rig.pass().await;
    assert_eq!(
        there(),
        [false, true, true, true],
        "an apply printed the third, and the last success is kept"
    );
    rig.clock.advance_ms(335 * DAY_MS);
    rig.pass().await;
    assert_eq!(there(), [false, false, false, true]);
}

#[tokio::test]
async fn a_blob_that_nobody_names_goes_and_one_of_a_commit_under_way_does_not() {
    let mut rig = Rig::open().await;
    let lost = rig.blob("of a commit that never came");
    let used = rig.blob("printed again and again");
    let poll = rig.job(JobKind::Fetch, 0, printed(used));
    let newest = rig.job(JobKind::Fetch, 0, Report::default());
    rig.commit(vec![poll, newest]).await;
    rig.pass().await;
    assert!(rig.blobs.has(lost) && rig.blobs.has(used), "it may be needed yet");
    rig.clock.advance_ms(8 * DAY_MS);
    rig.pass().await;
    assert!(!rig.blobs.has(lost) && rig.blobs.has(used));

    // Long after its job, another one prints the same: put, and not committed yet when the pass
    // comes by.
    rig.clock.set(today().plus_ms(31 * DAY_MS));
    let path = rig.blobs.path(used);
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let set = |at| std::fs::File::open(&path).unwrap().set_modified(at).unwrap();
    set(long_ago);
    assert_eq!(rig.blob("printed again and again"), used);
    let mut retention = rig.retention();
    retention.grace = Duration::from_secs(40 * 24 * 3600);
    retention.pass().await.unwrap();
    assert!(rig.blobs.has(used), "it was put within the grace");
    set(long_ago);
    retention.pass().await.unwrap();
    assert!(!rig.blobs.has(used));
}

#[tokio::test]
async fn blobs_of_before_are_noted_before_any_is_taken_for_lost() {
    let mut rig = Rig::open().await;
    let blob = rig.blob("of a job of an older pvn");
    let job = rig.job(JobKind::Fetch, 0, printed(blob));
    rig.commit(vec![job]).await;
    rig.fresh.store.remove_blobs(&[blob], today().plus_ms(DAY_MS)).await.unwrap();
    // Another success, so that it is not kept as the last one.
    let newest = rig.job(JobKind::Fetch, 0, Report::default());
    rig.commit(vec![newest]).await;
    rig.clock.advance_ms(10 * DAY_MS);
    rig.pass().await;
    assert!(rig.blobs.has(blob));
    rig.clock.advance_ms(30 * DAY_MS);
    rig.pass().await;
    assert!(!rig.blobs.has(blob), "then it is treated as all others");
}
