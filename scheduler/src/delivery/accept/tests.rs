//! What is accepted, and what is made of the rest.

use schema::id::JobId;
use schema::report::OutputFile;

use super::super::growing::Appended;
use super::super::staging::JobTerms;
use super::*;

fn world() -> (tempfile::TempDir, Staging, Blobs) {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    let order = JobTerms {
        job: JobId::derive(&[b"x"]),
        attempt: 1,
        expires_at: None,
        inputs: Vec::new(),
        expect: None,
        ends_with_its_container: false,
    };
    std::fs::create_dir(directory.path().join("uploads")).unwrap();
    let (staging, _) = Staging::make(directory.path().join("uploads/x"), order).unwrap();
    (directory, staging, blobs)
}

#[test]
fn what_became_a_blob_is_never_changed_by_a_late_piece() {
    let (_directory, mut staging, blobs) = world();
    staging.append(Stream::Stdout, 0, b"out").unwrap();
    let report = Box::new(Report { stdout_bytes: 3, ..Report::default() });
    let ReportVerdict::Accepted(kept) =
        judge(&mut staging, report, ReportedJob::default(), &blobs).unwrap()
    else {
        panic!("all is here")
    };
    assert_eq!(staging.append(Stream::Stdout, 3, b" and more").unwrap(), None);
    assert_eq!(
        staging.append(Stream::Stdout, 0, b"OUT").unwrap(),
        Some(Appended::Next(3)),
        "nothing new"
    );
    assert_eq!(blobs.read(kept.stdout_blob_id.unwrap(), 0, 100).unwrap().unwrap(), b"out");
}

#[test]
fn a_report_without_digests_is_measured_by_its_sizes() {
    let (_directory, mut staging, blobs) = world();
    staging.append(Stream::Stdout, 0, b"out").unwrap();
    let report = |stdout_bytes| Box::new(Report { stdout_bytes, ..Report::default() });
    let wanted =
        |stdout| ReportVerdict::Wanted(Wanted { stdout: Some(stdout), ..Wanted::default() });
    assert_eq!(judge(&mut staging, report(4), ReportedJob::default(), &blobs).unwrap(), wanted(3));
    assert_eq!(
        judge(&mut staging, report(2), ReportedJob::default(), &blobs).unwrap(),
        wanted(0),
        "more came than there is"
    );
    staging.append(Stream::Stdout, 0, b"ou").unwrap();
    let ReportVerdict::Accepted(kept) =
        judge(&mut staging, report(2), ReportedJob::default(), &blobs).unwrap()
    else {
        panic!("all is here")
    };
    assert_eq!((kept.stdout_blob_id, kept.stderr_blob_id), (Some(BlobId::of(b"ou")), None));
}

#[test]
fn rule_13_a_report_of_what_had_ended_before_its_time_was_over_is_none_of_a_timeout() {
    for (over_time, expected) in
        [(None, false), (Some(6_000), false), (Some(5_000), true), (Some(4_000), true)]
    {
        let (_directory, mut staging, blobs) = world();
        let report = Report {
            start_timestamp_ns: "4000000000".to_owned(),
            duration_ns: "1000000000".to_owned(),
            ..Report::default()
        };
        let asked = ReportedJob {
            over_time: over_time.map(Timestamp::from_millis),
            ..ReportedJob::default()
        };
        let ReportVerdict::Accepted(kept) =
            judge(&mut staging, Box::new(report), asked, &blobs).unwrap()
        else {
            panic!("all is here")
        };
        assert_eq!(kept.timed_out, expected, "{over_time:?}");
    }
}

/// As a wrapper leaves it that was told to expect nothing: one that is older, or that a script
/// called with flags of its own.
#[test]
fn structured_output_that_a_report_carries_unchecked_is_checked_here() {
    let (kind, right, wrong) = (StructuredKind::Fetch, r#"{"objects": []}"#, r#"{"objects": 7}"#);
    let kept = |expect, exit_code, printed: &str| {
        let (_directory, mut staging, blobs) = world();
        let report = Report {
            exit_code: Some(exit_code),
            stdout_bytes: printed.len() as u64,
            stdout_inline: Some(STANDARD.encode(printed)),
            ..Report::default()
        };
        let asked = ReportedJob { expect, ..ReportedJob::default() };
        let ReportVerdict::Accepted(kept) =
            judge(&mut staging, Box::new(report), asked, &blobs).unwrap()
        else {
            panic!("all is here")
        };
        kept.structured
    };
    let checked = kept(Some(kind), 0, right).expect("it was checked");
    assert_eq!((checked.kind, checked.errors.len()), (kind, 0));
    assert_eq!(checked.value.unwrap()["objects"], serde_json::json!([]));
    for (printed, part) in [(wrong, "objects"), ("hello", "not JSON")] {
        let refused = kept(Some(kind), 0, printed).expect("it was checked");
        assert!(
            refused.value.is_none()
                && refused.errors.iter().any(|why| format!("{why:?}").contains(part)),
            "{printed}: {refused:?}"
        );
    }
    assert_eq!(kept(None, 0, right), None, "nobody asked for a document");
    assert_eq!(kept(Some(kind), 1, right), None, "what failed printed none");
}

#[test]
fn a_blob_of_somebody_else_is_not_taken_for_what_the_job_sent() {
    let (_directory, mut staging, blobs) = world();
    let theirs = blobs.put(b"their secret", Keep::Lazy).unwrap();
    let report = Report { stdout_bytes: 12, stdout_blob_id: Some(theirs), ..Report::default() };
    let verdict = judge(&mut staging, Box::new(report), ReportedJob::default(), &blobs).unwrap();
    assert_eq!(verdict, ReportVerdict::Wanted(Wanted { stdout: Some(0), ..Wanted::default() }));
}

#[test]
fn a_stream_that_is_longer_than_what_is_kept_is_told_so() {
    let (_directory, mut staging, blobs) = world();
    let report = Report {
        stdout_bytes: STREAM_LIMIT_BYTES + 1,
        stdout_blob_id: Some(BlobId::of(b"long")),
        ..Report::default()
    };
    // As if the limit was reached: a sparse file needs no room.
    staging.append(Stream::Stdout, 0, b"x").unwrap();
    std::fs::File::options()
        .write(true)
        .open(staging.stream(Stream::Stdout).path())
        .unwrap()
        .set_len(STREAM_LIMIT_BYTES)
        .unwrap();
    let path = staging.stream(Stream::Stdout).path().to_owned();
    *staging.stream(Stream::Stdout) = GrowingFile::open(path).unwrap();
    assert_eq!(
        staging.append(Stream::Stdout, STREAM_LIMIT_BYTES, b"x").unwrap(),
        Some(Appended::Full(STREAM_LIMIT_BYTES))
    );
    let mut unhashed = report.clone();
    unhashed.stdout_blob_id = None;
    assert!(
        matches!(judge(&mut staging, Box::new(unhashed), ReportedJob::default(), &blobs).unwrap(), ReportVerdict::TooMuch(why) if why.contains("--max-output"))
    );
}

#[test]
fn what_a_marked_line_names_is_kept_as_far_as_it_came() {
    let (_directory, mut staging, blobs) = world();
    staging.append(Stream::Stdout, 0, b"whole").unwrap();
    staging.append(Stream::Stderr, 0, b"ha").unwrap();
    let came = staging.append_file("plan", 0, 4, b"plan").unwrap();
    assert_eq!(came, super::super::FileTaken::Complete(BlobId::of(b"plan")));
    let file = |name: &str, content: &[u8]| OutputFile {
        name: name.to_owned(),
        content_blob_id: Some(BlobId::of(content)),
        error: None,
    };
    let mut report = Report {
        stdout_blob_id: Some(BlobId::of(b"whole")),
        stderr_blob_id: Some(BlobId::of(b"half")),
        files: vec![file("plan", b"plan"), file("log", b"log")],
        ..Report::default()
    };
    salvage_streams(&mut staging, &mut report, &blobs).unwrap();
    salvage_files(&mut staging, &mut report, &blobs).unwrap();
    assert_eq!(
        (report.stdout_blob_id, report.stderr_blob_id),
        (Some(BlobId::of(b"whole")), Some(BlobId::of(b"ha")))
    );
    assert!(report.output_incomplete);
    assert!(
        blobs.has(BlobId::of(b"whole"))
            && blobs.has(BlobId::of(b"ha"))
            && blobs.has(BlobId::of(b"plan"))
    );
    assert_eq!(
        (report.files[0].content_blob_id, report.files[1].content_blob_id),
        (Some(BlobId::of(b"plan")), None)
    );
    assert!(report.files[1].error.as_ref().unwrap().contains("never uploaded"));
}

#[test]
fn the_same_report_is_known_however_its_streams_travelled() {
    let kept = Report {
        exit_code: Some(1),
        stdout_blob_id: Some(BlobId::of(b"out")),
        ..Report::default()
    };
    let inline = Report {
        exit_code: Some(1),
        stdout_inline: Some(STANDARD.encode("out")),
        ..Report::default()
    };
    let unnamed = Report { exit_code: Some(1), ..Report::default() };
    for same in [&kept, &inline, &unnamed] {
        assert!(is_same(&kept, same), "{same:?}");
    }
    let failed = |why: &str| Report { bad_output: Some(why.to_owned()), ..kept.clone() };
    assert!(is_same(&failed("no file ***.tf"), &failed("no file hunter22.tf")), "masked here");
    assert!(!is_same(&failed("no file ***.tf"), &failed("no plan hunter22.tf")));
    let other = Report { stdout_inline: Some(STANDARD.encode("OUT")), ..inline };
    for different in [
        Report { exit_code: Some(2), ..kept.clone() },
        other,
        Report { stdout_blob_id: Some(BlobId::of(b"x")), ..kept.clone() },
    ] {
        assert!(!is_same(&kept, &different), "{different:?}");
    }
}
