//! Blobs on a real disk: put, read, damaged, swept.

use super::*;

fn open() -> (tempfile::TempDir, Blobs) {
    let directory = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    (directory, blobs)
}

#[test]
fn what_was_put_is_read_by_its_digest_whole_and_in_parts() {
    let (directory, blobs) = open();
    let file = directory.path().join("file");
    std::fs::write(&file, b"from a file").unwrap();
    for keep in [Keep::Lazy, Keep::Synced] {
        let id = blobs.put(b"hello world", keep).unwrap();
        assert_eq!(id, BlobId::of(b"hello world"));
        assert_eq!(blobs.read(id, 0, 100).unwrap().unwrap(), b"hello world");
        assert_eq!(blobs.read(id, 6, 3).unwrap().unwrap(), b"wor");
        assert_eq!(blobs.read(id, 100, 3).unwrap().unwrap(), b"");
        assert_eq!(blobs.size(id).unwrap(), Some(11));
        let id = blobs.put_file(&file, keep).unwrap();
        assert_eq!(blobs.read(id, 0, 100).unwrap().unwrap(), b"from a file");
        assert!(file.exists(), "the file stays");
        blobs.remove(id).unwrap();
    }
}

#[test]
fn a_blob_that_is_not_what_its_name_says_is_not_handed_over_and_is_put_anew() {
    let (directory, blobs) = open();
    let file = directory.path().join("plan");
    for (damage, keep) in
        [("the pla", Keep::Lazy), ("the pla", Keep::Synced), ("thE plan", Keep::Synced)]
    {
        let id = blobs.put(b"the plan", Keep::Synced).unwrap();
        assert_eq!(blobs.hand_over(id).unwrap(), HandOver::File(blobs.path(id)));
        // Nobody may write to it: the disk did.
        std::fs::remove_file(blobs.path(id)).unwrap();
        std::fs::write(blobs.path(id), damage).unwrap();
        let HandOver::Lost(why) = blobs.hand_over(id).unwrap() else {
            panic!("{damage} passes for the plan")
        };
        assert!(why.contains(&id.to_string()) && why.contains("next fetch"), "{why}");
        std::fs::write(&file, "the plan").unwrap();
        let again = if keep == Keep::Lazy {
            blobs.put(b"the plan", keep)
        } else {
            blobs.put_file(&file, keep)
        };
        assert_eq!(again.unwrap(), id);
        assert_eq!(
            blobs.hand_over(id).unwrap(),
            HandOver::File(blobs.path(id)),
            "{damage}, {keep:?}"
        );
        std::fs::remove_file(&file).unwrap();
    }
    assert_eq!(blobs.hand_over(BlobId::of(b"")).unwrap(), HandOver::Empty);
    let HandOver::Lost(why) = blobs.hand_over(BlobId::of(b"never put")).unwrap() else {
        panic!("it is there")
    };
    assert!(
        why.contains("is gone from the scheduler's disk") && why.contains("next fetch"),
        "{why}"
    );
}

#[test]
fn what_is_no_file_is_no_blob_and_keeps_nobody_waiting() {
    let (_directory, blobs) = open();
    let id = blobs.put(b"the plan", Keep::Synced).unwrap();
    let path = blobs.path(id);
    std::fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let HandOver::Lost(why) = blobs.hand_over(id).unwrap() else {
        panic!("a pipe passes for the plan")
    };
    assert!(why.contains("is no file") && why.contains("next fetch"), "{why}");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(
        matches!(blobs.hand_over(id).unwrap(), HandOver::Lost(_)),
        "a directory passes for the plan"
    );
}

#[test]
fn absent_is_an_answer_and_no_error() {
    let (_directory, blobs) = open();
    let id = BlobId::of(b"never put");
    assert_eq!(blobs.read(id, 0, 1).unwrap(), None);
    assert_eq!(blobs.size(id).unwrap(), None);
    assert!(!blobs.has(id));
    blobs.remove(id).unwrap();
}

#[test]
fn nothing_is_a_blob_that_is_always_there() {
    let (_directory, blobs) = open();
    let id = BlobId::of(b"");
    assert_eq!(blobs.read(id, 0, 1).unwrap(), Some(Vec::new()));
    assert_eq!(blobs.put(b"", Keep::Synced).unwrap(), id);
    assert!(!blobs.path(id).exists());
}

#[test]
fn two_that_put_the_same_at_once_both_succeed() {
    let (directory, blobs) = open();
    let bytes = vec![7; 1 << 20];
    let file = directory.path().join("file");
    std::fs::write(&file, &bytes).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (blobs, bytes, file) = (&blobs, &bytes, &file);
            scope.spawn(move || {
                let id = if worker % 2 == 0 {
                    blobs.put(bytes, Keep::Lazy)
                } else {
                    blobs.put_file(file, Keep::Synced)
                };
                assert_eq!(id.unwrap(), BlobId::of(bytes));
            });
        }
    });
    assert_eq!(blobs.read(BlobId::of(&bytes), 0, bytes.len() + 1).unwrap().unwrap(), bytes);
    assert_eq!(
        std::fs::read_dir(directory.path().join("blobs/new")).unwrap().count(),
        0,
        "nothing unfinished is left"
    );
}

#[test]
fn bad_input_disk_full_stores_nothing_and_says_so() {
    let (_directory, blobs) = open();
    // Taking the directory of unfinished blobs away fails as a full disk does, also for root.
    std::fs::remove_dir(blobs.root.join(UNFINISHED)).unwrap();
    assert!(blobs.put(b"some bytes", Keep::Lazy).is_err());
    assert!(!blobs.has(BlobId::of(b"some bytes")));
}

#[test]
fn what_was_left_unfinished_by_a_crash_is_removed_at_the_next_start() {
    let (directory, blobs) = open();
    blobs.unfinished().unwrap();
    let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
    assert_eq!(std::fs::read_dir(blobs.root.join(UNFINISHED)).unwrap().count(), 0);
}
