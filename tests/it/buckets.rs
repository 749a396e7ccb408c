//! The examples that keep static files in a bucket, through the real daemon: the real command-line
//! tools against a server of buckets on this machine.

mod gcs;
mod s3;

use std::ffi::OsStr;
use std::process::Command;

use serde_json::Value;
use tests::example::Example;

/// The bucket of the examples.
const BUCKET: &str = "example-assets";

/// What is in it once it has the site.
const ALL: [&str; 3] = ["public/about.html", "public/assets/site.css", "public/index.html"];

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

/// Gives the first page of the site here another text, in a file that is older than any object:
/// time says that nothing is to be done.
fn writes_as_if_long_ago(example: &Example, text: &str) {
    let file = example.directory().join("site/index.html");
    std::fs::write(&file, text).expect("a file can be written");
    let opened = std::fs::File::options().write(true).open(&file).expect("it is there");
    opened.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a file can be that old");
}

/// Fetches where there is no site here, and where there is nothing in it: a build that left nothing
/// is no reason to delete the site.
fn tells_a_site_that_is_gone_or_empty(example: &Example) {
    example.refresh();
    is_told(example, "there is no directory site");
    std::fs::create_dir(example.directory().join("site")).expect("a directory can be made");
    example.refresh();
    is_told(example, "site is empty");
}
