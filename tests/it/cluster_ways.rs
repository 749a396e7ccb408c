//! All ways in which a wrapper gets into a Job on a real cluster: structured output is checked and
//! arrives, streams apart.

use serde_json::{Value, json};
use tests::cluster::{Cluster, Image};
use tests::{programs, wait};

use crate::cluster_world::{TOOLS_AND_LIBRARIES, World, injected};

/// What a fetch prints that finds its object as the first release wants it, and one whose document
/// is wrong.
const RIGHT: &str = r#"{"objects": [{"name": "o", "objectType": "T", "status": "SUCCEEDED", "versions": [{"version": "s-1", "active": true}]}]}"#;
const WRONG: &str = r#"{"objects": [{"name": 7}]}"#;

/// Prints the document in the variable as a command would, with something aside.
const PRINT: &str = "echo aside >&2; printf '%s\\n' \"$DOCUMENT\"";

/// The wrapper with its command, and the wrapper alone, as ENTRYPOINT of an image.
const BAKED: &str = "pvn.test/baked:1";
const BEFORE: &str = "pvn.test/before:1";

/// The wrapper in an image that says nothing of it.
const WITHIN: &str = "pvn.test/within:1";

const WRAPPED: &[&str] = &["/pvn-wrapper", "exec", "--"];

fn behind_wrapper() -> Vec<&'static str> {
    [WRAPPED, &["sh", "-c", PRINT]].concat()
}

/// A `taskConfig` of this program, which prints the document.
fn task(mut program: Value, document: &str) -> Value {
    program["env"] = json!({"DOCUMENT": {"value": document}});
    json!({"taskConfig": {"program": program}})
}

/// A Job file whose command is this.
fn job_file(command: &[&str], document: &str) -> Value {
    let container = json!({"name": "do", "image": WITHIN, "command": command, "env": [{"name": "DOCUMENT", "value": document}]});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {"containers": [container]}}}});
    json!({"kubernetesConfig": {"type": "KUBERNETES", "inlined": job.to_string()}})
}

/// A way, and the fetch that takes it with this document.
type Way = (&'static str, fn(&str) -> Value);

const WAYS: &[Way] = &[
    ("baked into the image as ENTRYPOINT", |document| task(json!({"image": BAKED}), document)),
    ("`entrypoint` in the config", |document| {
        task(json!({"image": WITHIN, "entrypoint": behind_wrapper()}), document)
    }),
    ("`cmd` behind an ENTRYPOINT", |document| {
        task(json!({"image": BEFORE, "cmd": ["sh", "-c", PRINT]}), document)
    }),
    ("`command` of a Job file", |document| job_file(&behind_wrapper(), document)),
    ("injected before `entrypoint`", |document| {
        task(json!({"image": TOOLS_AND_LIBRARIES, "entrypoint": ["sh", "-c", PRINT]}), document)
    }),
    ("injected into a Job file", |document| job_file(&["sh", "-c", PRINT], document)),
];

/// How many are tried at the same time.
const LANES: usize = 3;

#[test]
fn structured_output_is_checked_and_arrives_whichever_way_the_wrapper_got_into_the_job() {
    let test =
        "structured_output_is_checked_and_arrives_whichever_way_the_wrapper_got_into_the_job";
    let Some(cluster) = Cluster::get(test) else { return };
    let wrapper = programs::program("pvn-wrapper");
    cluster.import(
        &Image::with_tools(BAKED).program("pvn-wrapper", &wrapper).entrypoint(&behind_wrapper()),
    );
    cluster.import(&Image::with_tools(BEFORE).program("pvn-wrapper", &wrapper).entrypoint(WRAPPED));
    cluster.import(&Image::with_tools(WITHIN).program("pvn-wrapper", &wrapper));
    let inject = injected(&cluster);
    std::thread::scope(|scope| {
        for ways in WAYS.chunks(WAYS.len().div_ceil(LANES)) {
            let (cluster, inject) = (&cluster, &inject);
            scope.spawn(move || ways.iter().for_each(|way| check(cluster, inject, *way)));
        }
    });
}

/// A fetch that takes this way says what is right, and then what is wrong.
fn check(cluster: &Cluster, inject: &Value, (way, fetch): Way) {
    let world = World::new(cluster, "ways");
    let settings = if way.starts_with("injected") { inject.clone() } else { json!({}) };
    let release = |document: &str| {
        let mut fetch = fetch(document);
        fetch["fetchMode"] = "STRUCTURED_OUTPUT".into();
        let apply = json!({"taskConfig": {"program": {"image": TOOLS_AND_LIBRARIES, "entrypoint": ["true"]}}});
        world.release(&settings, &format!("    fetch: {fetch}\n    apply: {apply}"));
    };
    release(RIGHT);
    let channel = world.scheduler.channel_becomes("s", "c", "CONVERGED");
    assert_eq!(channel["objects"][0]["name"], "o", "{way}: {channel:#}");
    let right = world.ended("fetch");
    assert_eq!(
        world.log(&right),
        (format!("{RIGHT}\n"), "aside\n".to_owned()),
        "{way}: its streams"
    );

    release(WRONG);
    let wrong = wait::until(&format!("{way}: a fetch with a wrong document"), || {
        world.jobs("fetch").into_iter().find(|job| job["status"] == "FAILED")
    });
    let wrong =
        world.scheduler.json(&["jobs", "get", wrong["id"].as_str().expect("a job has an id")]);
    let message = wrong["message"].as_str().expect("it has a message");
    assert!(message.contains("structured output is wrong: /objects/0"), "{way}: {wrong:#}");
    assert_eq!(wrong["exitCode"], 0, "{way}: {wrong:#}");
}
