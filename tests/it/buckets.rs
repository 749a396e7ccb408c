//! The examples that keep static files in a bucket, through the real daemon: the real command-line
//! tools against a server of buckets on this machine.

mod gcs;
mod hand;
mod relay;
mod s3;

use std::ffi::OsStr;
use std::process::Command;
use std::sync::Arc;

use fakes::turnstile::Moment;

use serde_json::Value;
use tests::example::Example;

use hand::Hand;
use relay::Relay;

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

/// Puts an object of this name and this content there.
type Put = dyn Fn(&str, &str) + Send + Sync;

/// Reads the object of this name, if there is one.
type Get = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What somebody else does in the bucket, past the relay: puts an object there, or reads one.
#[derive(Clone)]
struct Else {
    put: Arc<Put>,
    get: Arc<Get>,
}

/// While apply uploads, somebody changes the directory and the bucket: of all that nothing is done
/// and nothing is believed, until it was shown.
fn does_what_was_shown_whatever_changes_meanwhile(hand: &Hand, relay: &Relay, others: &Else) {
    hand.converges();
    let about = std::fs::read_to_string(hand.site("about.html")).expect("it can be read");
    hand.write("index.html", "as it was shown");
    (others.put)("public/old.html", "old");
    let (code, shown) = hand.fetch();
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.starts_with("1 to upload, 1 to delete in "), "{shown}");

    let (site, meanwhile) = (hand.site(""), others.clone());
    relay.meanwhile(Moment::Before, move || {
        for (name, content) in [("draft.html", "a draft"), ("index.html", "a later one")] {
            std::fs::write(site.join(name), content).expect("a file can be written");
        }
        (meanwhile.put)("public/theirs.html", "theirs");
        (meanwhile.put)("public/about.html", "defaced");
        (meanwhile.put)("public/old.html", "wanted after all");
    });
    let (code, said) = hand.apply();
    assert!(relay.is_done(), "it was done meanwhile: {said}");
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("public/old.html has changed since it was compared"), "{said}");
    for (name, content) in [
        ("index.html", Some("as it was shown")),
        ("draft.html", None),
        ("theirs.html", Some("theirs")),
        ("about.html", Some("defaced")),
        ("old.html", Some("wanted after all")),
    ] {
        let is = (others.get)(&format!("public/{name}"));
        assert_eq!(is.as_deref(), content, "{name}: {said}");
    }

    let (code, shown) = hand.fetch();
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.starts_with("3 to upload, 2 to delete in "), "{shown}");
    let (code, said) = hand.apply();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(hand.fetch().0, Some(0), "it is done");
    assert_eq!((others.get)("public/about.html"), Some(about), "what was changed is repaired");
    assert_eq!((others.get)("public/old.html"), None);
}

/// What was shown as something to delete has become another one, or to upload over.
fn asks_again_when_an_object_is_another_one_than_was_shown(hand: &Hand, others: &Else) {
    hand.converges();
    for name in ["public/old.html", "public/index.html"] {
        (others.put)(name, "one");
        assert_eq!(hand.fetch().0, Some(2), "{name}");
        (others.put)(name, "another one");
        let (code, said) = hand.apply();
        assert_eq!(code, Some(75), "{said}");
        assert_eq!((others.get)(name).as_deref(), Some("another one"), "nothing was done: {said}");
        hand.converges();
    }
}

/// Names that have a meaning for shells, patterns, addresses and JSON are uploaded as they are, and
/// what is deleted is these and no others.
fn takes_odd_names_as_they_are(hand: &Hand, others: &Else, more: &[&str]) {
    let odd =
        [&["\u{e4} b.html", "a*.html", "[x].html", "q?.txt", "100%.txt", "pct%0Ax", "it's"], more];
    let odd = [&odd.concat()[..], &["a+b&c.txt", "\"q\".txt", "-dash", "{y}", "$z"]].concat();
    let like = ["ab.html", "x.html", "qq.txt"];
    for name in odd.iter().chain(&like) {
        hand.write(name, format!("content of {name}"));
    }
    hand.converges();
    for name in odd.iter().chain(&like) {
        let is = (others.get)(&format!("public/{name}"));
        assert_eq!(is.as_deref(), Some(&*format!("content of {name}")));
    }
    for name in &odd {
        std::fs::remove_file(hand.site(name)).expect("it is there");
    }
    hand.converges();
    for name in &odd {
        assert_eq!((others.get)(&format!("public/{name}")), None, "{name}");
    }
    for name in like {
        assert!((others.get)(&format!("public/{name}")).is_some(), "{name} is there");
    }
}
