//! Spool directories that are left, in use, damaged or full.

use super::*;

fn about() -> SpoolAddress {
    SpoolAddress {
        url: "http://x".into(),
        job: "job-1".into(),
        max_output_bytes: 7,
        start_timestamp_ns: "5".into(),
    }
}

#[test]
fn what_is_left_can_be_taken_over_and_is_removed_with_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spool");
    let mut spool = Spool::make(&path, &about()).unwrap();
    std::fs::write(path.join("mine"), "x").unwrap();
    let output = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(output.path(), "plan").unwrap();
    let (kept, blob) = spool.keep("plan", File::open(output.path()).unwrap()).unwrap();
    assert_eq!(blob, BlobId::of(b"plan"));
    assert_eq!(std::fs::read(kept).unwrap(), b"plan");
    spool.report(&Report { exit_code: Some(3), ..Report::default() }, [false; 2]).unwrap();
    spool.sync().unwrap();
    assert!(matches!(Spool::open(&path), Err(OpenError::Busy(_))));
    drop(spool);
    let (spool, read) = Spool::open(&path).unwrap();
    assert_eq!((read, spool.left_report().unwrap().unwrap().exit_code), (about(), Some(3)));
    spool.remove();
    let left: Vec<_> =
        std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mine"]);
    assert!(matches!(Spool::open(&path), Err(OpenError::Nothing(_))));
}

#[test]
fn a_directory_in_use_is_left_alone_and_one_beside_it_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spool");
    let first = Spool::make(&path, &about()).unwrap();
    let second = Spool::make(&path, &about()).unwrap();
    assert_ne!(first.directory(), second.directory());
    second.remove();
    assert!(path.join(RUN).exists());
}

#[test]
fn what_nobody_delivered_yet_is_kept_and_another_place_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spool");
    let of = |job: &str| SpoolAddress { job: job.into(), ..about() };
    let leave = |job: &str, exit_code| {
        let mut spool = Spool::make(&path, &of(job)).unwrap();
        std::fs::write(spool.stream(Stream::Stdout), "x").unwrap();
        if let Some(code) = exit_code {
            spool
                .report(&Report { exit_code: Some(code), ..Report::default() }, [false; 2])
                .unwrap();
        }
        spool.directory().to_owned()
    };
    // The end is known, of this job or another one, or it is another job's.
    let places = [leave("job-1", Some(3)), leave("job-1", Some(4)), leave("job-2", None)];
    assert_eq!(places, ["spool", "spool.1", "spool.2"].map(|name| directory.path().join(name)));
    for (place, code) in places.iter().zip([Some(3), Some(4), None]) {
        let (spool, _) = Spool::open(place).unwrap();
        assert_eq!(spool.left_report().unwrap().map(|report| report.exit_code.unwrap()), code);
        assert!(spool.stream(Stream::Stdout).exists());
    }
    // A run of the same job whose end nobody saw gives way.
    let again = Spool::make(&places[2], &of("job-2")).unwrap();
    assert_eq!(again.directory(), places[2]);
    assert!(!again.stream(Stream::Stdout).exists());
    again.remove();
    assert!(!Spool::is_free(&path) && Spool::is_free(&places[2]));
}

#[test]
fn places_are_bounded_and_what_was_cut_off_at_its_very_beginning_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spool");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join(LOCK), "").unwrap();
    std::fs::write(path.join(RUN), "{\"url\":").unwrap();
    assert_eq!(Spool::make(&path, &about()).unwrap().directory(), path);
    for place in
        std::iter::once(path.clone()).chain((1..=PLACES_LIMIT).map(|number| beside(&path, number)))
    {
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(CLAIM), "").unwrap();
    }
    assert!(Spool::make(&path, &about()).unwrap_err().to_string().contains("pvn-wrapper resume"));
}

#[test]
fn a_cut_report_says_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::make(directory.path(), &about()).unwrap();
    assert!(spool.left_report().unwrap().is_none());
    std::fs::write(directory.path().join(REPORT), b"{\"exitCode\": 0").unwrap();
    assert!(spool.left_report().unwrap().is_none());
}

#[test]
fn the_directory_of_a_local_job_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(CLAIM), "").unwrap();
    assert!(Spool::open(directory.path()).unwrap_err().to_string().contains("local job"));
}
