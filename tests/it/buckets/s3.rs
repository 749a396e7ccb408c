//! S3, with the real `aws` and moto in the place of Amazon.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use tests::example::Example;
use tests::listener::Listener;
use tests::skip;

use super::{
    ALL, BUCKET, does_only_what_was_shown, is_told, tells_a_site_that_is_gone_or_empty, told,
    writes_as_if_long_ago,
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
