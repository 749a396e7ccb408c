//! The examples that keep static files in a bucket, through the real daemon: the real command-line
//! tools against a server of buckets on this machine.

mod gcs;
mod s3;

use std::ffi::OsStr;
use std::process::Command;

use serde_json::Value;
use tests::example::Example;

/// Waits until the last fetch failed with these words of the tool.
fn is_told(example: &Example, words: &str) {
    let so = |channel: &Value| {
        channel["reason"] == "FETCH_FAILED"
            && channel["message"].as_str().is_some_and(|message| message.contains(words))
    };
    example.becomes(&format!("told {words:?}"), so);
}

/// What getInfo tells people: the outputs of these names.
fn told<const N: usize>(example: &Example, names: [&str; N]) -> [String; N] {
    let channel = example.becomes("with something for people", |channel| {
        channel["info"].as_array().is_some_and(|info| info.len() == N)
    });
    let info = channel["info"].as_array().expect("a list").clone();
    names.map(|name| {
        let found = info.iter().find(|output| output["name"] == name);
        let text = found.and_then(|output| output["text"].as_str());
        text.unwrap_or_else(|| panic!("no {name} in {info:#?}")).to_owned()
    })
}

/// Runs apply of `site.old` where something else was shown to people than what it would do: it does
/// nothing, and has pvn look again.
fn does_only_what_was_shown(example: &Example, bucket: &str, variables: &[(&str, &OsStr)]) {
    let own = tempfile::tempdir().expect("a directory can be made");
    std::fs::write(own.path().join("shown.txt"), "0 to upload, 9 to delete").expect("it is ours");
    let mut apply = Command::new("./apply.sh");
    apply.current_dir(example.directory()).envs(variables.iter().copied());
    apply.env("PVN_INSTANCE_DIR", own.path()).env("PVN_RELEASE_CHANNEL", "other");
    let output =
        apply.env("BUCKET", bucket).env("SITE", "site.old").output().expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(75), "{said}");
    assert!(said.contains("has changed since they were compared"), "{said}");
}
