//! The examples that keep static files in a bucket, through the real daemon: the real command-line
//! tools against a server of buckets on this machine.

mod gcs;
mod s3;

use serde_json::Value;
use tests::example::Example;

/// Waits until the last fetch failed with these words of the tool, and nothing is applied.
fn is_told(example: &Example, words: &str) {
    let so = |channel: &Value| {
        channel["reason"] == "FETCH_FAILED"
            && channel["message"].as_str().is_some_and(|message| message.contains(words))
    };
    example.becomes(&format!("told {words:?}"), so);
    assert_eq!(example.jobs("apply").len(), 0, "nothing is applied unseen");
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
