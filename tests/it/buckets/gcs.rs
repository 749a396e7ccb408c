//! Google Cloud Storage, with the real `gcloud` and fake-gcs-server in the place of Google.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::sync::Arc;

use fakes::http::{Reply, Request};
use serde_json::{Value, json};
use tests::example::Example;
use tests::listener::Listener;
use tests::{port, skip};

use super::hand::Hand;
use super::relay::{Relay, client};
use super::{
    ALL, BUCKET, Else, asks_again_when_an_object_is_another_one_than_was_shown,
    does_only_what_was_shown, does_what_was_shown_whatever_changes_meanwhile, is_told,
    takes_odd_names_as_they_are, tells_a_site_that_is_gone_or_empty, told, writes_as_if_long_ago,
};

/// A server of buckets, with what this machine's gcloud may keep of its own.
struct Store {
    listener: Listener,
    relay: Relay,
    home: tempfile::TempDir,
    url: String,
    endpoint: OsString,
}

impl Store {
    /// One without any bucket, or none and the test counts as skipped.
    fn start(test: &str) -> Option<Self> {
        if skip::tool("gcloud").is_none() || skip::tool("fake-gcs-server").is_none() {
            skip::skipped(test, "there is no `gcloud` or no `fake-gcs-server`");
            return None;
        }
        let port = port::free("127.0.0.1").to_string();
        let mut server = Command::new("fake-gcs-server");
        server.args([
            "-scheme",
            "http",
            "-backend",
            "memory",
            "-host",
            "127.0.0.1",
            "-port",
            &port,
        ]);
        let listener = Listener::start(&mut server);
        let relay = Relay::start(listener.url.clone(), as_google_does);
        let url = relay.url.clone();
        let endpoint = OsString::from(format!("{url}/storage/v1/"));
        let home = tempfile::tempdir().expect("a directory can be made");
        Some(Self { listener, relay, home, url, endpoint })
    }

    /// Makes the bucket of the example.
    fn make_bucket(&self) {
        let bucket = json!({ "name": BUCKET });
        let url = format!("{}/storage/v1/b?project=p", self.url);
        let made = client().post(url).body(bucket.to_string()).send().expect("it answers");
        assert!(made.status().is_success(), "{made:?}");
    }

    /// What gcloud needs to know of it, and nothing that this machine or its owner has.
    fn variables(&self) -> [(&'static str, &OsStr); 6] {
        [
            ("CLOUDSDK_CONFIG", self.home.path().as_ref()),
            ("CLOUDSDK_CORE_PROJECT", "p".as_ref()),
            ("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true".as_ref()),
            ("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "1".as_ref()),
            ("CLOUDSDK_CORE_DISABLE_FILE_LOGGING", "1".as_ref()),
            ("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", &self.endpoint),
        ]
    }

    /// What somebody does by hand. Returns what it prints.
    fn gcloud(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("gcloud");
        command.arg("storage").args(arguments).envs(self.variables()).stdin(Stdio::null());
        let output = command.output().expect("gcloud can be started");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Puts an object there past pvn.
    fn put(&self, name: &str, content: &str) {
        let file = self.home.path().join("by-hand");
        std::fs::write(&file, content).expect("a file can be written");
        let file = file.to_str().expect("the path is UTF-8");
        self.gcloud(&["cp", file, &format!("gs://{BUCKET}/{name}")]);
    }

    /// The content of an object.
    fn get(&self, name: &str) -> String {
        let name = name.replace('/', "%2F");
        let url = format!("{}/storage/v1/b/{BUCKET}/o/{name}?alt=media", self.url);
        client().get(url).send().and_then(|answer| answer.text()).expect("it answers")
    }

    /// The names of all objects.
    fn names(&self) -> Vec<String> {
        let url = format!("{}/storage/v1/b/{BUCKET}/o", self.url);
        let text = client().get(url).send().and_then(|answer| answer.text()).expect("it answers");
        let list: Value = serde_json::from_str(&text).expect("it answers JSON");
        let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        items.iter().map(|item| item["name"].as_str().expect("a text").to_owned()).collect()
    }
}

/// The server here answers a DELETE with `null`, of which gcloud makes an error, where Google
/// answers with nothing; and takes no notice of `ifGenerationMatch`.
fn as_google_does(to: &str, request: &Request) -> Option<Reply> {
    if request.method != "DELETE" {
        return None;
    }
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let wanted = query.split('&').find_map(|term| term.strip_prefix("ifGenerationMatch="));
    let found = client().get(format!("{to}{path}")).send().ok()?;
    if !found.status().is_success() {
        return Some(failure(404, "No such object"));
    }
    let object: Value = serde_json::from_str(&found.text().ok()?).ok()?;
    if wanted.is_some_and(|wanted| object["generation"] != wanted) {
        let words = "At least one of the pre-conditions you specified did not hold.";
        return Some(failure(412, words));
    }
    let answer = client().delete(format!("{to}{}", request.path)).send().ok()?;
    assert!(answer.status().is_success(), "{answer:?}");
    Some(Reply::empty(204))
}

fn failure(code: u16, message: &str) -> Reply {
    Reply::json(code, &json!({"error": {"code": code, "message": message}}))
}

#[test]
fn a_site_on_cloud_storage_is_uploaded_and_repaired_whoever_changed_what_and_where() {
    let test = "a_site_on_cloud_storage_is_uploaded_and_repaired_whoever_changed_what_and_where";
    let Some(store) = Store::start(test) else { return };
    store.make_bucket();
    let example = Example::of("bucket-gcs", &store.variables(), &[]);
    example.converges_after(1);
    assert_eq!(store.names(), ALL);
    let shown = example.explanation();
    assert!(shown.starts_with("3 to upload, 0 to delete in gs://example-assets/public\n"));
    assert!(shown.contains("\nupload assets/site.css: is not in the bucket\n"), "{shown}");
    let [site, console] = told(&example, ["site", "console"]);
    assert_eq!(site, "https://storage.googleapis.com/example-assets/public/index.html");
    assert_eq!(console, "https://console.cloud.google.com/storage/browser/example-assets/public");

    // In the bucket: another text of the same length, one deleted, one that nobody here knows.
    let page = store.get(ALL[2]);
    store.put(ALL[2], &page.replace("here", "hera"));
    let about = format!("{}/storage/v1/b/{BUCKET}/o/public%2Fabout.html", store.url);
    client().delete(about).send().expect("it answers");
    store.put("public/not ours.txt", "foreign");
    example.refresh();
    example.converges_after(2);
    let shown = example.explanation();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], "2 to upload, 1 to delete in gs://example-assets/public", "{shown}");
    assert_eq!(
        lines[2..],
        [
            "upload about.html: is not in the bucket",
            "upload index.html: is not the same in the bucket",
            "delete not ours.txt: it is not one of the files",
        ],
        "{shown}"
    );
    assert_eq!((store.names(), store.get(ALL[2])), (ALL.map(str::to_owned).to_vec(), page.clone()));

    // Here: another text of the same length in a file that is as old as time.
    writes_as_if_long_ago(&example, &page.replace("here", "hier"));
    example.refresh();
    example.converges_after(3);
    assert_eq!(store.get(ALL[2]), page.replace("here", "hier"));
}

#[test]
fn what_keeps_a_site_from_cloud_storage_is_told_in_the_words_of_the_tool() {
    let test = "what_keeps_a_site_from_cloud_storage_is_told_in_the_words_of_the_tool";
    let Some(store) = Store::start(test) else { return };
    let example = Example::of("bucket-gcs", &store.variables(), &[]);
    is_told(&example, "gs://example-assets not found: 404");
    assert_eq!(example.jobs("apply").len(), 0, "nothing is applied unseen");

    std::fs::rename(example.directory().join("site"), example.directory().join("site.old"))
        .expect("a directory can be renamed");
    store.make_bucket();
    does_only_what_was_shown(&example, BUCKET, &store.variables());
    assert!(!store.names().iter().any(|name| name.starts_with("other/")), "nothing was uploaded");
    tells_a_site_that_is_gone_or_empty(&example);
}

#[test]
fn without_credentials_nothing_is_done_to_cloud_storage() {
    let test = "without_credentials_nothing_is_done_to_cloud_storage";
    let Some(store) = Store::start(test) else { return };
    let mut variables = store.variables();
    variables[2].1 = "false".as_ref();
    let example = Example::of("bucket-gcs", &variables, &[]);
    is_told(&example, "You do not currently have an active account selected");
    assert_eq!(example.jobs("apply").len(), 0, "nothing is applied unseen");
}

/// The example by hand, its bucket, and who else is there. None, and the test counts as skipped,
/// without the tools.
fn by_hand(test: &str) -> Option<(Store, Hand, Else)> {
    let store = Store::start(test)?;
    store.make_bucket();
    let hand = Hand::of("bucket-gcs", &store.variables());
    let (to, from) = (store.listener.url.clone(), store.listener.url.clone());
    let others = Else {
        put: Arc::new(move |name, content| {
            let url = format!("{to}/upload/storage/v1/b/{BUCKET}/o");
            let put = client().post(url).query(&[("uploadType", "media"), ("name", name)]);
            let answer = put.body(content.to_owned()).send().expect("it answers");
            assert!(answer.status().is_success(), "{answer:?}");
        }),
        get: Arc::new(move |name| {
            let mut url = reqwest::Url::parse(&from).expect("an address");
            url.path_segments_mut()
                .expect("it has a path")
                .extend(["storage", "v1", "b", BUCKET, "o", name]);
            url.query_pairs_mut().append_pair("alt", "media");
            let answer = client().get(url).send().expect("it answers");
            answer.status().is_success().then(|| answer.text().expect("text"))
        }),
    };
    Some((store, hand, others))
}

#[test]
fn apply_does_to_cloud_storage_what_was_shown_whatever_changes_meanwhile() {
    let test = "apply_does_to_cloud_storage_what_was_shown_whatever_changes_meanwhile";
    let Some((store, hand, others)) = by_hand(test) else { return };
    does_what_was_shown_whatever_changes_meanwhile(&hand, &store.relay, &others);
    let deletes = store.relay.deletes();
    assert!(!deletes.is_empty());
    for delete in deletes {
        assert!(delete.contains("ifGenerationMatch="), "{delete}");
    }
}

#[test]
fn apply_to_cloud_storage_asks_again_when_an_object_is_another_one_than_was_shown() {
    let test = "apply_to_cloud_storage_asks_again_when_an_object_is_another_one_than_was_shown";
    let Some((_store, hand, others)) = by_hand(test) else { return };
    asks_again_when_an_object_is_another_one_than_was_shown(&hand, &others);
}

#[test]
fn odd_names_on_cloud_storage_are_taken_as_they_are_or_refused() {
    let test = "odd_names_on_cloud_storage_are_taken_as_they_are_or_refused";
    let Some((_store, hand, others)) = by_hand(test) else { return };
    hand.converges();
    takes_odd_names_as_they_are(&hand, &others, &[]);

    // gcloud would make `page` of it, here and there.
    hand.write("page#1", "x");
    let (code, said) = hand.fetch();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("page#1") && said.contains("rename these"), "{said}");
    std::fs::remove_file(hand.site("page#1")).expect("it is there");
    (others.put)("public/page", "somebody's");
    (others.put)("public/page#1", "x");
    let (code, said) = hand.fetch();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("page#1") && said.contains("by hand: gcloud cannot"), "{said}");
}
