//! Backups and databases that are not what they should be.

use std::ops::Range;

use super::*;

/// Where the bytes of a part of a backup are. Source of the layout: tar(5), "ustar".
fn part(backup: &[u8], name: &str) -> Range<usize> {
    let of_name = |header: &[u8]| {
        header.starts_with(name.as_bytes())
            && header[name.len()] == 0
            && &header[257..262] == b"ustar"
    };
    let header = (0..backup.len())
        .step_by(512)
        .find(|at| of_name(&backup[*at..*at + 512]))
        .expect("the part is in the backup");
    let size =
        std::str::from_utf8(&backup[header + 124..header + 135]).expect("a size is octal digits");
    let size =
        usize::from_str_radix(size.trim_matches(['\0', ' ']), 8).expect("a size is octal digits");
    header + 512..header + 512 + size
}

/// Sees that a backup of these bytes, with its key, is refused with these words, and that nothing
/// is made of it.
fn is_refused(backup: &[u8], words: &[&str]) {
    let home = tempfile::tempdir().expect("a directory can be made");
    let (file, data) = (home.path().join("damaged.tar"), home.path().join("data"));
    std::fs::write(&file, backup).expect("a file can be written");
    let refused = program(&["restore", text(&file), "--data-dir", text(&data)]);
    assert!(
        !refused.status.success() && words.iter().all(|word| said(&refused).contains(word)),
        "not {words:?}: {}",
        said(&refused)
    );
    assert!(!data.exists(), "nothing is left of what failed");
}

#[test]
fn a_backup_that_was_damaged_is_refused_with_what_is_damaged() {
    let (_scheduler, file) = backed_up();
    let whole = std::fs::read(&file).expect("it can be read");
    let database = part(&whole, "pvn.db");
    let words = ["its database `pvn.db` is damaged", "restore another backup"];
    let mut pages = whole.clone();
    pages[database.start + 4096..database.end].fill(0);
    is_refused(&pages, &words);
    // One bit in a text: a sound database that says something else.
    let mut bit = whole.clone();
    let at = whole[database.clone()]
        .windows(11)
        .position(|bytes| bytes == b"\"CONVERGED\"")
        .expect("the state is in it");
    bit[database.start + at + 1] ^= 1;
    is_refused(&bit, &words);
    let mut key = whole.clone();
    key[part(&whole, "secret.key").start] ^= 1;
    is_refused(&key, &["its key `secret.key` is damaged", "--secret-key-file"]);
}

/// What a pvn before this one would have written: it did not know the digests.
fn without_digests(backup: &[u8]) -> Vec<u8> {
    let mut old = backup.to_vec();
    let manifest = part(backup, "manifest.json");
    let name = b"\"digests\"";
    if let Some(at) = backup[manifest.clone()].windows(name.len()).position(|bytes| bytes == name) {
        old[manifest.start + at + 1] = b'x';
    }
    old
}

#[test]
fn a_backup_without_digests_is_restored_unless_its_database_is_malformed() {
    let (_scheduler, file) = backed_up();
    let old = without_digests(&std::fs::read(&file).expect("it can be read"));
    let database = part(&old, "pvn.db");
    for damaged in [database.start + 4096..database.end, database.start..database.start + 4096] {
        let mut pages = old.clone();
        pages[damaged].fill(0);
        is_refused(&pages, &["its database `pvn.db` is damaged", "restore another backup"]);
    }
    std::fs::write(&file, old).expect("a file can be written");
    let copy = Scheduler::stopped();
    done(&["restore", text(&file), "--data-dir", text(&copy.data())]);
}

#[test]
fn a_backup_that_is_cut_off_is_refused_wherever_it_was_cut() {
    let (_scheduler, file) = backed_up();
    let whole = std::fs::read(&file).expect("it can be read");
    let (database, key) = (part(&whole, "pvn.db"), part(&whole, "secret.key"));
    // Within the database, the key and a blob; between two parts; and within what ends the file.
    for length in [
        database.start + 5000,
        key.start + 3,
        key.start + 512,
        key.start + 1024,
        key.start + 1100,
        whole.len() - 1024,
        whole.len() - 512,
    ] {
        is_refused(&whole[..length], &["cut off", "another backup"]);
    }
}

#[test]
fn a_damaged_database_is_told_by_backup_and_gives_no_file() {
    let scheduler = converged();
    let database = scheduler.data().join("pvn.db");
    let mut bytes = std::fs::read(&database).expect("it can be read");
    bytes[4096..].fill(0);
    std::fs::write(&database, bytes).expect("a file can be written");
    let file = scheduler.home().join("backup.tar");
    let refused = program(&["backup", text(&file), "--data-dir", text(&scheduler.data())]);
    let told = said(&refused);
    assert!(
        !refused.status.success()
            && told.contains("is damaged")
            && told.contains("restore an earlier backup"),
        "{told}"
    );
    assert!(told.contains(text(&database)) && !file.exists(), "{told}");
}

#[test]
fn what_is_no_backup_is_refused_and_leaves_nothing() {
    let home = tempfile::tempdir().expect("a directory can be made");
    let data = home.path().join("data");
    let file = home.path().join("file");
    for (bytes, word) in [
        (b"a shopping list".to_vec(), "no backup"),
        (Vec::new(), "no backup"),
        (vec![0; 4096], "no backup"),
    ] {
        std::fs::write(&file, bytes).expect("a file can be written");
        let refused = program(&["restore", text(&file), "--data-dir", text(&data)]);
        assert!(!refused.status.success() && said(&refused).contains(word), "{}", said(&refused));
        assert!(!data.exists());
    }
    let refused =
        program(&["backup", text(&home.path().join("new.tar")), "--data-dir", text(&data)]);
    assert!(
        !refused.status.success() && said(&refused).contains("no database"),
        "{}",
        said(&refused)
    );
    std::fs::create_dir_all(data.join(".pvn-restore-x")).expect("a directory can be made");
    let refused = program(&["restore", text(&file), "--data-dir", text(&data)]);
    assert!(
        !refused.status.success() && said(&refused).contains("interrupted"),
        "{}",
        said(&refused)
    );
    let refused = program(&["serve", "--listen", "127.0.0.1:0", "--data-dir", text(&data)]);
    assert!(
        !refused.status.success() && said(&refused).contains("interrupted"),
        "{}",
        said(&refused)
    );
    assert!(
        !data.join("pvn.db").exists() && !data.join("secret.key").exists(),
        "nothing is begun there"
    );
}
