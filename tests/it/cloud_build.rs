//! The example of Google Cloud Build through the real daemon: the real `gcloud` against a small
//! Cloud Build on this machine.

use std::ffi::{OsStr, OsString};

use fakes::cloud_build::{Builds, CloudBuildServer, Ending};
use serde_json::Value;
use tests::example::Example;
use tests::skip;

const FIRST: &str = "1111111111111111111111111111111111111111";
const SECOND: &str = "2222222222222222222222222222222222222222";

/// The example against a server, both for as long as the test runs.
struct World {
    server: CloudBuildServer,
    example: Example,
    _home: tempfile::TempDir,
}

impl World {
    /// The first commit is released once the server is prepared, and apply waits this long for its
    /// build. None, and the test counts as skipped, without gcloud.
    fn start(test: &str, wait_s: u32, prepare: impl FnOnce(&mut Builds)) -> Option<Self> {
        if skip::tool("gcloud").is_none() {
            skip::skipped(test, "there is no `gcloud`");
            return None;
        }
        let server = CloudBuildServer::start();
        prepare(&mut server.state());
        let home = tempfile::tempdir().expect("a directory can be made");
        let url = OsString::from(format!("http://{}/", server.address));
        let variables: [(&str, &OsStr); 5] = [
            ("CLOUDSDK_CONFIG", home.path().as_ref()),
            ("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true".as_ref()),
            ("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "1".as_ref()),
            ("CLOUDSDK_CORE_DISABLE_FILE_LOGGING", "1".as_ref()),
            ("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBUILD", &url),
        ];
        let values = [&format!("commit={FIRST}"), &format!("wait-seconds={wait_s}")];
        let values = [&values.map(String::as_str)[..], &["poll-seconds=1"]].concat();
        let example = Example::of("cloud-build", &variables, &values);
        Some(Self { server, example, _home: home })
    }

    /// The builds that were started, by the commit of each.
    fn commits(&self) -> Vec<String> {
        let state = self.server.state();
        let commits = state.builds.iter().map(|build| &build["substitutions"]["COMMIT_SHA"]);
        commits.map(|commit| commit.as_str().expect("a text").to_owned()).collect()
    }

    /// Waits until the channel says this of the build.
    fn says(&self, status: &str, message: &str) -> Value {
        let channel = self.example.becomes(&format!("{status}: {message}"), |channel| {
            channel["status"] == status && channel["objects"][0]["message"] == message
        });
        channel["objects"][0].clone()
    }
}

#[test]
fn each_released_commit_is_built_once_and_its_log_is_shown() {
    let test = "each_released_commit_is_built_once_and_its_log_is_shown";
    let Some(world) = World::start(test, 3600, |_| ()) else { return };
    world.example.converges_after(1);
    assert_eq!(world.commits(), [FIRST]);
    let build = world.says("CONVERGED", &format!("build b-1 of {FIRST} succeeded"));
    let log = "https://console.cloud.google.com/cloud-build/builds/b-1?project=1";
    assert_eq!(build["externalLinks"][0]["url"], log, "{build:#}");
    assert_eq!(build["versions"][0]["version"], format!("shop-image-{FIRST}"));
    let apply = &world.example.jobs("apply")[0];
    let said = world.example.log(apply);
    for line in ["build b-1: QUEUED", "build b-1: WORKING", "build b-1: SUCCESS", log] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // The getInfo that ran beside the apply knew of no build yet; another one follows it.
    world.example.becomes("with the links for people", |channel| {
        let info = channel["info"].to_string();
        info.contains(log) && info.contains("/cloud-build/triggers;region=europe-west1/edit/")
    });

    // A commit that somebody else has had built is not built again.
    world.server.state().looks = 0;
    world.server.state().start(SECOND, "release");
    world.example.push(&[&format!("commit={SECOND}")]);
    world.says("CONVERGED", &format!("build b-2 of {SECOND} succeeded"));
    assert_eq!(world.example.jobs("apply").len(), 1);
}

#[test]
fn a_build_that_fails_is_told_with_its_reason_and_not_started_again() {
    let test = "a_build_that_fails_is_told_with_its_reason_and_not_started_again";
    let reason = "step 2: \"make\" ended with 2 | see the log";
    let fails = |builds: &mut Builds| builds.ending = Ending::Fails("FAILURE", reason);
    let Some(world) = World::start(test, 3600, fails) else { return };
    let message = format!("build b-1 of {FIRST} ended with FAILURE: {reason}");
    world.says("FAILED", &message);
    let applies = world.example.jobs("apply");
    assert_eq!(applies[0]["exitCode"], 1, "{applies:#?}");
    assert!(world.example.log(&applies[0]).contains(&message), "{applies:#?}");
    world.example.refresh();
    world.example.refresh();
    world.says("FAILED", &message);
    assert_eq!(world.commits(), [FIRST], "nothing starts what fails again and again");

    // Somebody has it built again, and that is seen.
    world.server.state().ending = Ending::Succeeds;
    world.server.state().start(FIRST, "release");
    world.example.refresh();
    world.says("CONVERGED", &format!("build b-2 of {FIRST} succeeded"));

    // Another commit is another build, here one that takes too long for Cloud Build.
    world.server.state().ending = Ending::Fails("TIMEOUT", "");
    world.example.push(&[&format!("commit={SECOND}")]);
    world.says("FAILED", &format!("build b-3 of {SECOND} ended with TIMEOUT"));
}

#[test]
fn a_build_that_outlasts_the_deadline_of_apply_is_followed_and_not_started_twice() {
    let test = "a_build_that_outlasts_the_deadline_of_apply_is_followed_and_not_started_twice";
    let Some(world) = World::start(test, 1, |builds| builds.ending = Ending::Lasts) else { return };
    world.example.becomes("converging behind its build", |channel| {
        channel["status"] == "CONVERGING"
            && channel["objects"][0]["message"] == format!("build b-1 of {FIRST} is WORKING")
    });
    let applies = world.example.jobs("apply");
    assert_eq!(applies[0]["exitCode"], 75, "{applies:#?}");
    let said = world.example.log(&applies[0]);
    assert!(said.contains(&format!("build b-1 of {FIRST} is still ")), "{said}");
    assert!(said.contains(" after 1 s; its log: https://console"), "{said}");
    assert_eq!(world.commits(), [FIRST]);
}

#[test]
fn who_may_not_start_builds_is_told_so_in_the_words_of_gcloud() {
    let test = "who_may_not_start_builds_is_told_so_in_the_words_of_gcloud";
    let Some(world) = World::start(test, 3600, |builds| builds.is_forbidden = true) else { return };
    world.example.becomes("told that it may not", |channel| {
        let message = channel["message"].as_str().unwrap_or_default();
        channel["reason"] == "FETCH_FAILED" && message.contains("PERMISSION_DENIED")
    });
    assert_eq!((world.commits().len(), world.example.jobs("apply").len()), (0, 0));

    // Half a commit would be built, and its build never be found.
    world.server.state().is_forbidden = false;
    world.example.push(&["commit=1111111"]);
    world.example.becomes("told what a commit is", |channel| {
        let message = channel["message"].as_str().unwrap_or_default();
        message.contains("1111111 is no commit: 40 digits")
    });
    assert_eq!(world.commits().len(), 0);
}
