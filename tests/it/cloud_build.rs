//! The example of Google Cloud Build through the real daemon: the real `gcloud` against a small
//! Cloud Build on this machine.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use fakes::cloud_build::{Builds, CloudBuildServer, Ending, Loss};
use serde_json::Value;
use tests::example::Example;
use tests::skip;

const FIRST: &str = "1111111111111111111111111111111111111111";
const SECOND: &str = "2222222222222222222222222222222222222222";

/// Nobody waits longer here than a build takes.
const FAST: &[&str] = &["poll-seconds=1", "lost-seconds=4"];

/// What gcloud needs to know of the server at `url`, and nothing that this machine or its owner
/// has.
fn variables<'a>(
    home: &'a Path,
    token: &'a OsStr,
    url: &'a OsStr,
) -> [(&'static str, &'a OsStr); 5] {
    [
        ("CLOUDSDK_CONFIG", home.as_ref()),
        ("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", token),
        ("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "1".as_ref()),
        ("CLOUDSDK_CORE_DISABLE_FILE_LOGGING", "1".as_ref()),
        ("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBUILD", url),
    ]
}

/// The example against a server, both for as long as the test runs.
struct World {
    server: CloudBuildServer,
    example: Example,
    url: OsString,
    home: tempfile::TempDir,
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
        let token = home.path().join("token");
        std::fs::write(&token, "t0ken").expect("a file can be written");
        let values = [&format!("commit={FIRST}"), &format!("wait-seconds={wait_s}")];
        let values = [&values.map(String::as_str)[..], FAST].concat();
        let variables = variables(home.path(), token.as_ref(), &url);
        let example = Example::of("cloud-build", &variables, &values);
        Some(Self { server, example, url, home })
    }

    /// What somebody does by hand, in the words of the README.
    fn runs_as_the_readme_says(&self) {
        let readme = std::fs::read_to_string(self.example.directory().join("README.md"));
        let readme = readme.expect("it can be read");
        let (_, line) = readme.split_once("```sh\ngcloud builds").expect("it says how to");
        let line = format!("gcloud builds{}", line.split("```").next().expect("it has an end"));
        let mut shell = Command::new("sh");
        shell.args(["-euc", &line]).env("COMMIT", FIRST).stdin(Stdio::null());
        let token = self.home.path().join("token");
        shell.envs(variables(self.home.path(), token.as_ref(), &self.url));
        let output = shell.output().expect("a shell can be started");
        assert!(output.status.success(), "{line}: {output:?}");
    }

    /// What was asked of the trigger.
    fn runs(&self) -> usize {
        let state = self.server.state();
        state.calls.iter().filter(|call| call.starts_with("POST")).count()
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
    world.runs_as_the_readme_says();
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

#[test]
fn a_build_whose_start_is_not_confirmed_is_looked_for_and_not_started_twice() {
    let test = "a_build_whose_start_is_not_confirmed_is_looked_for_and_not_started_twice";
    for loss in [Loss::Answer, Loss::Unavailable] {
        let lose = |builds: &mut Builds| builds.losses = vec![loss];
        let Some(world) = World::start(test, 3600, lose) else { return };
        world.says("CONVERGED", &format!("build b-1 of {FIRST} succeeded"));
        assert_eq!((world.commits(), world.runs()), (vec![FIRST.to_owned()], 1), "{loss:?}");
        let said = world.example.log(&world.example.jobs("apply")[0]);
        assert!(said.contains("was started is not known: looks for it"), "{loss:?}: {said}");
    }
}

#[test]
fn a_build_that_is_not_seen_after_its_start_was_not_confirmed_is_asked_for_again() {
    let test = "a_build_that_is_not_seen_after_its_start_was_not_confirmed_is_asked_for_again";
    let lose = |builds: &mut Builds| builds.losses = vec![Loss::Request];
    let Some(world) = World::start(test, 3600, lose) else { return };
    world.says("CONVERGED", &format!("build b-1 of {FIRST} succeeded"));
    assert_eq!((world.commits(), world.runs()), (vec![FIRST.to_owned()], 2));
    let applies = world.example.jobs("apply");
    let first = applies.last().expect("there was an apply");
    assert_eq!(first["exitCode"], 75, "{applies:#?}");
    let said = world.example.log(first);
    assert!(said.contains("was seen in the 4 s after one was asked for; asks again"), "{said}");
}

#[test]
fn a_build_without_a_channel_does_not_count_and_that_is_told() {
    let test = "a_build_without_a_channel_does_not_count_and_that_is_told";
    let by_hand = |builds: &mut Builds| builds.start_without_channel(FIRST);
    let Some(world) = World::start(test, 3600, by_hand) else { return };
    world.says("CONVERGED", &format!("build b-2 of {FIRST} succeeded"));
    let stray = format!("build b-1 of {FIRST} has no _CHANNEL=release and does not count");
    let said = world.example.log(&world.example.jobs("apply")[0]);
    assert!(said.contains(&stray), "{said}");
    let fetches = world.example.jobs("fetch");
    let said = world.example.log(fetches.last().expect("there was a fetch"));
    let stray = "build b-1 of it has no _CHANNEL=release and does not count";
    assert!(said.contains(stray), "{said}");
}
