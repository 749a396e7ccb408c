//! The key that a database is sealed with: a start without it, or with another one, is refused with
//! words, and no key is ever made beside a database that has one.

use std::path::Path;
use std::process::Command;

use tests::programs;
use tests::scheduler::{Scheduler, Start};

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

fn set_secret(scheduler: &Scheduler, key: &str) {
    let value = scheduler.home().join("value");
    std::fs::write(&value, "hush").expect("a file can be written");
    let mut set = scheduler.client(["secrets", "set", key]);
    set.stdin(std::fs::File::open(&value).expect("it is there"));
    assert!(set.status().expect("pvnctl can be started").success());
}

/// What a command over this data directory says, which is refused.
fn refused(arguments: &[&str]) -> String {
    let output = Command::new(programs::program("pvn-scheduler"))
        .args(arguments)
        .output()
        .expect("the program can be started");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!output.status.success(), "{arguments:?}: {said}");
    said
}

#[test]
fn a_database_is_refused_without_its_key_and_no_other_one_is_made_beside_it() {
    let mut scheduler = Scheduler::start();
    set_secret(&scheduler, "k8");
    scheduler.stop();
    let (data, key) = (scheduler.data(), scheduler.data().join("secret.key"));
    let saved = scheduler.home().join("key.saved");
    std::fs::rename(&key, &saved).expect("a file can be renamed");

    let said = scheduler.is_refused(&Start::default());
    for part in [text(&key), "is not there", "put it back", "backup", "--secret-key-file"] {
        assert!(said.contains(part), "no {part}: {said}");
    }
    let file = scheduler.home().join("backup.tar");
    for arguments in [vec!["prune"], vec!["activate"], vec!["backup", text(&file), "--with-key"]] {
        let said = refused(&[&arguments[..], &["--data-dir", text(&data)]].concat());
        assert!(said.contains(&format!("{} is not there", text(&key))), "{arguments:?}: {said}");
    }
    assert!(!key.exists() && !file.exists(), "nothing is made");

    std::fs::copy(&saved, &key).expect("a file can be copied");
    std::fs::write(&key, "00".repeat(32)).expect("a file can be written");
    let said = scheduler.is_refused(&Start::default());
    assert!(
        said.contains(text(&key))
            && said.contains("another key")
            && said.contains("--secret-key-file"),
        "{said}"
    );
    let said = refused(&["backup", text(&file), "--with-key", "--data-dir", text(&data)]);
    assert!(said.contains("another key") && !file.exists(), "{said}");

    // From another data directory.
    std::fs::remove_file(&key).expect("a file can be removed");
    let mut other = Scheduler::stopped();
    let url = format!("sqlite:{}", data.join("pvn.db").display());
    let said =
        other.is_refused(&Start { arguments: &["--database-url", &url], ..Start::default() });
    assert!(said.contains("is not there") && !other.data().join("secret.key").exists(), "{said}");
    std::fs::copy(data.join("admin-token"), other.data().join("admin-token"))
        .expect("a file can be copied");
    other.run(&Start {
        arguments: &["--database-url", &url, "--secret-key-file", text(&saved)],
        ..Start::default()
    });
    assert!(!other.data().join("secret.key").exists());
    other.stop();

    std::fs::rename(&saved, &key).expect("a file can be renamed");
    scheduler.run(&Start::default());
    set_secret(&scheduler, "k8");
}
