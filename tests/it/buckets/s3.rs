//! S3, with the real `aws` and moto in the place of Amazon.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use fakes::turnstile::Moment;
use tests::example::Example;
use tests::listener::Listener;
use tests::skip;

use super::hand::Hand;
use super::relay::{Relay, client};
use super::{
    ALL, BUCKET, Else, asks_again_when_an_object_is_another_one_than_was_shown,
    does_only_what_was_shown, does_what_was_shown_whatever_changes_meanwhile, is_told,
    takes_odd_names_as_they_are, tells_a_site_that_is_gone_or_empty, told, writes_as_if_long_ago,
};

/// A server of buckets.
struct Store {
    listener: Listener,
}

impl Store {
    /// One with the bucket of the example in it, or none and the test counts as skipped.
    fn start(test: &str) -> Option<Self> {
        if skip::tool("aws").is_none() || skip::tool("moto_server").is_none() {
            skip::skipped(test, "there is no `aws` or no `moto_server`");
            return None;
        }
        let mut server = Command::new("moto_server");
        server.args(["-H", "127.0.0.1", "-p", "0"]);
        Some(Self { listener: Listener::start(&mut server) })
    }

    /// What the CLI needs to know of it, and nothing that this machine or its owner has.
    fn variables(&self) -> [(&'static str, &OsStr); 9] {
        [
            ("AWS_ENDPOINT_URL", self.listener.url.as_ref()),
            ("AWS_ACCESS_KEY_ID", "x".as_ref()),
            ("AWS_SECRET_ACCESS_KEY", "x".as_ref()),
            ("AWS_EC2_METADATA_DISABLED", "true".as_ref()),
            ("AWS_CONFIG_FILE", "/dev/null".as_ref()),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null".as_ref()),
            ("AWS_REGION", "eu-central-1".as_ref()),
            ("AWS_DEFAULT_REGION", "eu-central-1".as_ref()),
            ("AWS_MAX_ATTEMPTS", "2".as_ref()),
        ]
    }

    /// What somebody does by hand. Returns what it prints.
    fn aws(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("aws");
        command.args(arguments).envs(self.variables()).stdin(Stdio::null());
        let output = command.output().expect("aws can be started");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Puts an object there past pvn.
    fn put(&self, example: &Example, key: &str, content: &str) {
        let file = example.directory().join("by-hand");
        std::fs::write(&file, content).expect("a file can be written");
        let file = file.to_str().expect("the path is UTF-8");
        self.aws(&["s3", "cp", file, &format!("s3://{BUCKET}/{key}")]);
    }

    /// The content of an object.
    fn get(&self, key: &str) -> String {
        self.aws(&["s3", "cp", &format!("s3://{BUCKET}/{key}"), "-"])
    }

    /// All keys below the prefix of the channel.
    fn keys(&self) -> Vec<String> {
        let query = ["--query", "Contents[].Key", "--output", "text"];
        let list = ["s3api", "list-objects-v2", "--bucket", BUCKET, "--prefix", "public/"];
        let keys = self.aws(&[&list[..], &query].concat());
        keys.split_whitespace().map(str::to_owned).collect()
    }
}

#[test]
fn a_site_on_s3_is_uploaded_and_repaired_whoever_changed_what_and_where() {
    let test = "a_site_on_s3_is_uploaded_and_repaired_whoever_changed_what_and_where";
    let Some(store) = Store::start(test) else { return };
    store.aws(&["s3", "mb", &format!("s3://{BUCKET}")]);
    let example = Example::of("bucket-s3", &store.variables(), &[]);
    example.converges_after(1);
    assert_eq!(store.keys(), ALL);
    let shown = example.explanation();
    assert!(shown.starts_with("3 to upload, 0 to delete in s3://example-assets/public\n"));
    assert!(shown.contains("\nupload assets/site.css: is not in the bucket\n"), "{shown}");
    let [site, console] = told(&example, ["site", "console"]);
    assert_eq!(site, "https://example-assets.s3.eu-central-1.amazonaws.com/public/index.html");
    assert!(console.ends_with("/buckets/example-assets?region=eu-central-1&prefix=public/"));

    // In the bucket: another text of the same length, one deleted, one that nobody here knows.
    let page = store.get(ALL[2]);
    store.put(&example, ALL[2], &page.replace("here", "hera"));
    store.aws(&["s3", "rm", &format!("s3://{BUCKET}/{}", ALL[0])]);
    store.put(&example, "public/not ours.txt", "foreign");
    example.refresh();
    example.converges_after(2);
    let shown = example.explanation();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], "2 to upload, 1 to delete in s3://example-assets/public", "{shown}");
    assert_eq!(
        lines[2..],
        [
            "upload about.html: is not in the bucket",
            "upload index.html: was changed in the bucket",
            "delete not ours.txt: it is not one of the files",
        ],
        "{shown}"
    );
    assert_eq!((store.keys(), store.get(ALL[2])), (ALL.map(str::to_owned).to_vec(), page.clone()));

    // Here: another text of the same length in a file that is older than the object. Size and time
    // say that nothing is to be done.
    writes_as_if_long_ago(&example, &page.replace("here", "hier"));
    example.refresh();
    example.converges_after(3);
    assert!(example.explanation().contains("\nupload index.html: is another one here\n"));
    assert_eq!(store.get(ALL[2]), page.replace("here", "hier"));

    // A record that is gone makes nobody believe anything.
    store.aws(&["s3", "rm", &format!("s3://{BUCKET}/.pvn/public")]);
    example.refresh();
    example.converges_after(4);
    let shown = example.explanation();
    assert!(shown.contains("about.html: is not the one that was uploaded from here"), "{shown}");
}

#[test]
fn what_keeps_a_site_from_s3_is_told_in_the_words_of_the_tool() {
    let test = "what_keeps_a_site_from_s3_is_told_in_the_words_of_the_tool";
    let Some(store) = Store::start(test) else { return };
    let example = Example::of("bucket-s3", &store.variables(), &[]);
    is_told(&example, "(NoSuchBucket)");
    assert_eq!(example.jobs("apply").len(), 0, "nothing is applied unseen");

    std::fs::rename(example.directory().join("site"), example.directory().join("site.old"))
        .expect("a directory can be renamed");
    store.aws(&["s3", "mb", &format!("s3://{BUCKET}")]);
    does_only_what_was_shown(&example, BUCKET, &store.variables());
    let other = ["s3api", "list-objects-v2", "--bucket", BUCKET, "--prefix", "other/"];
    assert!(!store.aws(&other).contains("Key"), "nothing was uploaded");
    tells_a_site_that_is_gone_or_empty(&example);
}

#[test]
fn without_credentials_nothing_is_done_to_s3() {
    let test = "without_credentials_nothing_is_done_to_s3";
    let Some(store) = Store::start(test) else { return };
    let mut variables = store.variables();
    variables[1].1 = "".as_ref();
    variables[2].1 = "".as_ref();
    let example = Example::of("bucket-s3", &variables, &[]);
    is_told(&example, "Unable to locate credentials");
    assert_eq!(example.jobs("apply").len(), 0, "nothing is applied unseen");
}

/// The example by hand behind a relay, its bucket, and who else is there. None, and the test counts
/// as skipped, without the tools.
fn by_hand(test: &str) -> Option<(Store, Relay, Hand, Else)> {
    let store = Store::start(test)?;
    store.aws(&["s3", "mb", &format!("s3://{BUCKET}")]);
    let relay = Relay::start(store.listener.url.clone(), |_, _| None);
    let mut variables = store.variables();
    variables[0].1 = relay.url.as_ref();
    let hand = Hand::of("bucket-s3", &variables);
    let (to, from) = (store.listener.url.clone(), store.listener.url.clone());
    let url = move |at: &str, key: &str| {
        let mut url = reqwest::Url::parse(at).expect("an address");
        url.path_segments_mut().expect("it has a path").push(BUCKET).extend(key.split('/'));
        url
    };
    let others = Else {
        put: Arc::new(move |key, content| {
            let put = client().put(url(&to, key)).header("authorization", "AWS x:y");
            let answer = put.body(content.to_owned()).send().expect("it answers");
            assert!(answer.status().is_success(), "{answer:?}");
        }),
        get: Arc::new(move |key| {
            let get = client().get(url(&from, key)).header("authorization", "AWS x:y");
            let answer = get.send().expect("it answers");
            answer.status().is_success().then(|| answer.text().expect("text"))
        }),
    };
    Some((store, relay, hand, others))
}

#[test]
fn apply_does_to_s3_what_was_shown_whatever_changes_meanwhile() {
    let test = "apply_does_to_s3_what_was_shown_whatever_changes_meanwhile";
    let Some((_store, relay, hand, others)) = by_hand(test) else { return };
    does_what_was_shown_whatever_changes_meanwhile(&hand, &relay, &others);
    // Also at the very moment: the bucket is told which objects are meant.
    let deletes = relay.deletes();
    assert!(!deletes.is_empty());
    for delete in deletes {
        assert_eq!(delete.matches("<Key>").count(), delete.matches("<ETag>").count(), "{delete}");
    }
}

#[test]
fn apply_to_s3_asks_again_when_an_object_is_another_one_than_was_shown() {
    let test = "apply_to_s3_asks_again_when_an_object_is_another_one_than_was_shown";
    let Some((_store, _relay, hand, others)) = by_hand(test) else { return };
    asks_again_when_an_object_is_another_one_than_was_shown(&hand, &others);
}

#[test]
fn an_object_on_s3_that_somebody_puts_over_an_upload_is_not_taken_for_it() {
    let test = "an_object_on_s3_that_somebody_puts_over_an_upload_is_not_taken_for_it";
    let Some((_store, relay, hand, others)) = by_hand(test) else { return };
    hand.converges();
    for size in [1 << 10, 9 << 20] {
        // The bigger one goes in parts, so its ETag says nothing of its content.
        let content = "x".repeat(size);
        hand.write("index.html", &content);
        assert_eq!(hand.fetch().0, Some(2));
        let somebody = others.clone();
        relay.meanwhile(Moment::After, move || {
            (somebody.put)("public/about.html", "defaced");
        });
        let (code, said) = hand.apply();
        assert_eq!(code, Some(0), "{said}");
        let (code, shown) = hand.fetch();
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains("upload about.html: was changed in the bucket"), "{shown}");
        assert!(!shown.contains("index.html"), "it is what was uploaded: {shown}");
        hand.converges();

        hand.write("about.html", format!("another one {size}"));
        assert_eq!(hand.fetch().0, Some(2));
        let somebody = others.clone();
        relay.meanwhile(Moment::After, move || {
            (somebody.put)("public/about.html", "defaced");
        });
        let (code, said) = hand.apply();
        assert_eq!(code, Some(75), "{said}");
        assert!(said.contains("about.html has changed since it was compared"), "{said}");
        hand.converges();
        assert_eq!((others.get)("public/index.html"), Some(content));
    }
}

#[test]
fn odd_names_on_s3_are_taken_as_they_are() {
    let test = "odd_names_on_s3_are_taken_as_they_are";
    let Some((_store, _relay, hand, others)) = by_hand(test) else { return };
    hand.converges();
    // No file here can be called so: it is somebody else's, and goes.
    (others.put)("public/back\\slash\t\"q", "foreign");
    hand.converges();
    assert_eq!((others.get)("public/back\\slash\t\"q"), None);
    takes_odd_names_as_they_are(&hand, &others, &["page#1"]);
}
