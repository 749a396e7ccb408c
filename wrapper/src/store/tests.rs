//! What is kept of a stream, byte for byte.

use super::*;

/// Pushes `total` bytes in pieces of `step`, and compares what is kept with what should be.
fn check(home: Option<&Home>, cap: u64, total: usize, step: usize, kept_limit: u64) {
    let bytes: Vec<u8> = (0..total).map(|i| (i * 31 + i / 256 * 7) as u8).collect();
    let mut store = StreamStore::new(home, Stream::Stdout, cap);
    let now = Instant::now();
    bytes.chunks(step).for_each(|piece| store.push(piece, now));
    let kept = store.finish();
    let expected = if total as u64 <= kept_limit {
        bytes.clone()
    } else {
        let tail = (kept_limit / 2) as usize;
        [&bytes[..kept_limit as usize - tail], &bytes[total - tail..]].concat()
    };
    let what = format!("cap {cap}, total {total}, step {step}");
    assert_eq!(kept.total, total as u64, "{what}");
    assert!(kept.read(u64::MAX - 1).unwrap().unwrap() == expected, "{what}: other bytes");
    assert_eq!(kept.blob, BlobId::of(&expected), "{what}");
    assert_eq!(kept.truncated, total as u64 > cap, "{what}");
    assert_eq!(
        kept.head,
        (total as u64 > kept_limit).then_some(kept_limit - kept_limit / 2),
        "{what}"
    );
    assert_eq!(
        kept.lost,
        (total as u64).min(cap) - (total as u64).min(kept_limit).min(cap),
        "{what}"
    );
    if let KeptBytes::File(path) = kept.place {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn head_and_tail_are_kept_beyond_the_cap() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home {
        directory: Some(LazyDirectory::At(directory.path().join("a/b"))),
        live_after: None,
        live: None,
    };
    for cap in [0, 1, 2, 7, 100, 150_000] {
        for total in [0, 1, 6, 7, 8, 99, 100, 101, 65_536, 65_537, 149_999, 150_001, 400_001] {
            for step in [1_000, 65_536, 70_001] {
                check(Some(&home), cap, total, step, cap);
            }
        }
    }
    check(Some(&home), 100, 1_003, 1, 100);
    // Large enough to be hashed on another thread, to the end and until it is of no use.
    check(Some(&home), 8 << 20, 5_000_001, 70_001, 8 << 20);
    check(Some(&home), 3 << 20, 5_000_001, 70_001, 3 << 20);
}

#[test]
fn without_a_writable_disk_a_bounded_head_and_tail_are_kept_and_the_rest_counted() {
    let nowhere = Home {
        directory: Some(LazyDirectory::At("/proc/nowhere".into())),
        live_after: None,
        live: None,
    };
    for home in [None, Some(&nowhere)] {
        for total in [0, 65_536, 524_288, 524_289, 2_000_000] {
            check(home, 64 << 20, total, 65_536, WITHOUT_FILE_BYTES);
        }
    }
}

/// A stream that has `good` bytes in its file, which takes no more then, and `lost` bytes that come
/// after. Whether it is delivered.
fn broken(good: &[u8], lost: &[u8], is_delivered: bool) -> (tempfile::TempDir, KeptStream) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stdout");
    std::fs::write(&path, good).unwrap();
    let live = is_delivered.then(Arc::default);
    let home = Home {
        directory: Some(LazyDirectory::At(directory.path().into())),
        live_after: None,
        live,
    };
    let mut store = StreamStore::new(Some(&home), Stream::Stdout, 4 << 20);
    // A descriptor that cannot be written, as a full disk would have it.
    store.held = StreamBuffer::File(File::open(&path).unwrap());
    store.path = Some(path);
    store.total = good.len() as u64;
    store.push(lost, Instant::now());
    (directory, store.finish())
}

#[test]
fn a_file_that_takes_no_more_keeps_its_head_and_the_rest_is_counted() {
    for (good, is_delivered) in [(b"good".to_vec(), false), (b"good".repeat(100_000), true)] {
        let (_directory, kept) = broken(&good, b"lost", is_delivered);
        let length = good.len() as u64;
        assert_eq!(
            (kept.total, kept.head, kept.lost, kept.truncated),
            (length + 4, Some(length), 4, false)
        );
        assert!(kept.read(u64::MAX - 1).unwrap().unwrap() == good, "the head is what was good");
        assert_eq!(kept.blob, BlobId::of(&good));
    }
}

#[test]
fn what_is_delivered_keeps_its_tail_in_memory_when_the_file_takes_no_more() {
    let (_directory, kept) = broken(b"good", b"and the reason", true);
    assert_eq!((kept.total, kept.head, kept.lost, kept.kept), (18, None, 0, 18));
    assert_eq!(kept.read(100).unwrap().unwrap(), b"goodand the reason");
    let long = b"0123456789".repeat(100_000);
    let (_directory, kept) = broken(b"good", &long, true);
    let ring = WITHOUT_FILE_BYTES / 2;
    assert_eq!((kept.total, kept.head, kept.kept), (1_000_004, Some(4), ring + 4));
    let expected = [b"good", &long[long.len() - ring as usize..]].concat();
    assert!(kept.read(u64::MAX - 1).unwrap().unwrap() == expected, "head and tail");
    assert_eq!(kept.blob, BlobId::of(&expected));
}

#[test]
fn a_stream_becomes_a_file_when_somebody_may_read_along() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home {
        directory: Some(LazyDirectory::At(directory.path().into())),
        live_after: Some(Duration::from_millis(150)),
        live: None,
    };
    let mut store = StreamStore::new(Some(&home), Stream::Stderr, 1 << 20);
    let now = Instant::now();
    store.push(b"hello", now);
    store.tick(now + Duration::from_millis(149));
    assert!(!directory.path().join("stderr").exists());
    store.tick(store.next().unwrap());
    assert_eq!(std::fs::read(directory.path().join("stderr")).unwrap(), b"hello");
    store.push(b" again", now);
    assert_eq!(std::fs::read(directory.path().join("stderr")).unwrap(), b"hello again");
    assert_eq!(store.next(), None);
}
