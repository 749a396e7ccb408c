//! `pvn-wrapper google-cloud-run`, with the real `gcloud`.

use std::process::Command;

use fakes::clients;
use fakes::cloud_run::{CloudRunServer, Trouble};
use schema::output::{FetchOutput, GetInfoOutput, ObjectStatus, RuntimeObject};
use serde_json::{Value, json};

use super::{finds, found};
use crate::run::{Run, Wrapper};
use crate::skipped;

/// Whose the service is, as its annotations say it.
const OWNER: &str = "svc-1/rc-1";

/// The server, if there is a gcloud for it.
fn server(test: &str) -> Option<CloudRunServer> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join("gcloud").is_file()) {
        return Some(CloudRunServer::start());
    }
    skipped(test, "gcloud is not on PATH");
    None
}

fn spec(image: &str) -> Value {
    json!({
        "apiVersion": "serving.knative.dev/v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "p", "resourceVersion": "old"},
        "spec": {"template": {"spec": {"containers": [{
            "image": image, "resources": {"limits": {"cpu": "1"}}
        }]}}}
    })
}

/// A step for version `version`, as a job has it.
fn step(server: &CloudRunServer, step: &str, version: &str, spec: &Value) -> Wrapper {
    let expected = match step {
        "fetch" => &["--expect", "fetch"][..],
        "info" => &["--expect", "get-info"],
        _ => &[],
    };
    let spec = spec.as_str().map_or_else(|| spec.to_string(), str::to_owned);
    let flags = ["--project", "p", "--region", "us-central1", "--service-spec", &spec];
    let command = [&["pvn-wrapper", "google-cloud-run", step][..], &flags].concat();
    let wrapper = Wrapper::new(expected, &command);
    let config = wrapper.path("gcloud");
    let port = server.address.port().to_string();
    let found = clients::of_cloud_run(&port);
    found
        .into_iter()
        .fold(wrapper, |job, (key, value)| job.env(key, value))
        .env("CLOUDSDK_CONFIG", config)
        .env("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true")
        .env("PVN_SERVICE_ID", "svc-1")
        .env("PVN_RELEASE_CHANNEL_ID", "rc-1")
        .env("PVN_SERVICE_VERSION", version)
}

/// The only object that a fetch sees.
fn fetched(server: &CloudRunServer, version: &str, spec: &Value) -> RuntimeObject {
    let run = step(server, "fetch", version, spec).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mut output: FetchOutput = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(output.objects.len(), 1, "{}", run.text());
    output.objects.remove(0)
}

fn apply(server: &CloudRunServer, version: &str, spec: &Value) -> Run {
    step(server, "apply", version, spec).run()
}

fn applied(server: &CloudRunServer, version: &str, spec: &Value) {
    let run = apply(server, version, spec);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Version, active, drifted.
fn versions(object: &RuntimeObject) -> Vec<(&str, bool, bool)> {
    let versions = object.versions.iter();
    versions.map(|known| (known.version.as_str(), known.active, known.drifted)).collect()
}

fn last_line(run: &Run) -> &str {
    run.stderr.lines().next_back().unwrap_or_default()
}

#[test]
fn a_service_is_made_once_and_followed_until_it_serves() {
    let test = "a_service_is_made_once_and_followed_until_it_serves";
    let Some(server) = server(test) else { return };
    server.state().looks = 2;
    let spec = spec("a:1");
    let run = step(&server, "fetch", "web-1", &spec).run();
    assert_eq!((run.code, run.text().as_str()), (0, r#"{"objects":[]}"#), "{}", run.stderr);
    assert!(last_line(&run).ends_with("there is no service `web` in us-central1 of p"));
    assert_eq!(server.calls(), ["GET services/web", "GET services"]);

    applied(&server, "web-1", &spec);
    assert_eq!(server.calls().last().unwrap(), "POST services", "and nobody waits");

    let object = fetched(&server, "web-1", &spec);
    assert_eq!((object.status, &*object.name), (ObjectStatus::Pending, "web"));
    assert_eq!(versions(&object), [("web-1", false, false)], "not before it has traffic");
    assert_eq!(object.message, "Cloud Run has not looked at generation 1 yet");
    let object = fetched(&server, "web-1", &spec);
    assert_eq!(object.status, ObjectStatus::Pending);
    assert_eq!(object.message, "Ready is Unknown (Deploying): Deploying revision.");

    let object = fetched(&server, "web-1", &spec);
    assert_eq!(object.status, ObjectStatus::Succeeded, "{object:?}");
    assert_eq!(versions(&object), [("web-1", true, false)]);
    assert_eq!(
        object.message,
        "Ready is True; web-00001-abc (version web-1) has 100 % of the traffic"
    );
    assert_eq!(object.debug_events[0].timestamp.to_string(), "2026-01-31T03:00:00.000Z");
    let urls: Vec<&str> = object.external_links.iter().map(|link| link.url.as_str()).collect();
    let console = "https://console.cloud.google.com/run/detail/us-central1/web";
    assert_eq!(
        urls,
        [
            &format!("{console}/metrics?project=p"),
            &format!("{console}/logs?project=p"),
            "https://web-x.a.run.app"
        ]
    );
    assert_eq!(server.calls(), ["GET services/web"; 3], "one call tells all");

    let run = apply(&server, "web-1", &spec);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let why = "nothing to do: `web` is as version web-1 wants it; Ready is True";
    assert!(last_line(&run).ends_with(why), "{}", run.stderr);
    assert_eq!(server.calls(), ["GET services/web"]);

    let run = step(&server, "info", "web-1", &spec).run();
    let infos: GetInfoOutput = serde_json::from_slice(&run.stdout).unwrap();
    let infos: Vec<_> = infos.outputs.into_iter().map(|info| (info.name, info.text)).collect();
    for (name, text) in [
        ("url", "https://web-x.a.run.app"),
        ("latest ready revision", "web-00001-abc"),
        ("traffic", "100 % to web-00001-abc"),
        ("image", "a:1"),
        ("condition Ready", "Ready is True, since 2026-01-31T03:00:00.000000Z"),
        ("console", &format!("{console}/metrics?project=p")),
    ] {
        assert!(infos.contains(&(name.to_owned(), text.to_owned())), "{name} in {infos:?}");
    }
}

#[test]
fn a_failed_roll_out_is_told_and_tried_again_as_another_revision() {
    let test = "a_failed_roll_out_is_told_and_tried_again_as_another_revision";
    let Some(server) = server(test) else { return };
    let (old, new) = (spec("a:1"), spec("a:2"));
    applied(&server, "web-1", &old);
    fetched(&server, "web-1", &old);
    server.state().broken = Some("The container failed to listen on PORT=8080.");
    applied(&server, "web-2", &new);
    server.calls();

    let object = fetched(&server, "web-2", &new);
    assert_eq!(object.status, ObjectStatus::Failed);
    assert_eq!(versions(&object), [("web-1", true, false), ("web-2", false, false)]);
    assert_eq!(
        object.message,
        "Ready is False (HealthCheckContainerError): The container failed to listen on PORT=8080.; \
         web-00001-abc (version web-1) has 100 % of the traffic"
    );
    assert_eq!(server.calls(), ["GET services/web", "GET revisions/web-00001-abc"]);

    // Whatever was missing is there now; the content is the same.
    server.state().broken = None;
    let again = || step(&server, "apply", "web-2", &new).env("PVN_JOB_ID", "job-2").run();
    let run = again();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("it is tried again as a new revision"), "{}", run.stderr);
    assert_eq!(server.state().revisions.len(), 3);
    let object = fetched(&server, "web-2", &new);
    assert_eq!(object.status, ObjectStatus::Succeeded, "{object:?}");
    assert_eq!(versions(&object), [("web-2", true, false)]);
    let run = again();
    assert!(last_line(&run).contains("nothing to do"), "{}", run.stderr);
}

#[test]
fn what_was_changed_by_hand_is_drift_and_what_others_deployed_is_work() {
    let test = "what_was_changed_by_hand_is_drift_and_what_others_deployed_is_work";
    let Some(server) = server(test) else { return };
    let spec = spec("a:1");
    applied(&server, "web-1", &spec);
    server.state().deploy_by_hand("web", "a:9");
    let object = fetched(&server, "web-1", &spec);
    assert_eq!(object.status, ObjectStatus::Succeeded);
    assert_eq!(versions(&object), [("web-1", true, true)]);
    let why = "drift: spec.template.spec.containers[0].image is `a:9`, wanted `a:1`; Ready is True";
    assert!(object.message.starts_with(why), "{}", object.message);

    applied(&server, "web-1", &spec);
    assert_eq!(versions(&fetched(&server, "web-1", &spec)), [("web-1", true, false)]);

    // Somebody else's.
    let mut state = server.state();
    let mut service = state.services["web"].clone();
    let annotations = json!({"prodvana.io/id": "svc-2/rc-2", "prodvana.io/version": "web-1"});
    service["metadata"]["annotations"] = annotations.clone();
    service["spec"]["template"]["metadata"]["annotations"] = annotations;
    state.put(service);
    drop(state);
    let object = fetched(&server, "web-1", &spec);
    assert_eq!(versions(&object), [("", true, false)]);
    assert!(
        object.message.contains("(deployed by another service instance of pvn, svc-2/rc-2)"),
        "{}",
        object.message
    );
    let run = apply(&server, "web-1", &spec);
    assert!(run.stderr.contains("another service instance of pvn (svc-2/rc-2)"), "{}", run.stderr);
    assert_eq!(server.state().services["web"]["metadata"]["annotations"]["prodvana.io/id"], OWNER);
}

#[test]
fn failures_are_told_apart_and_what_may_pass_is_tried_again() {
    let test = "failures_are_told_apart_and_what_may_pass_is_tried_again";
    let Some(server) = server(test) else { return };
    let spec = spec("a:1");
    for (method, trouble, code, why) in [
        (
            "GET",
            Trouble::Refuse(429, "RESOURCE_EXHAUSTED", "Quota exceeded."),
            75,
            "Cloud Run throttles this project",
        ),
        (
            "POST",
            Trouble::Refuse(403, "PERMISSION_DENIED", "Permission 'run.services.create' denied."),
            1,
            "not allowed: grant the account roles/run.developer",
        ),
        (
            "POST",
            Trouble::Refuse(400, "INVALID_ARGUMENT", "no such"),
            1,
            "`gcloud run services replace` failed with exit code 1: INVALID_ARGUMENT: no such",
        ),
        // It has acted; gcloud asks again by itself, and is told that the service is there.
        ("POST", Trouble::LoseAnswer, 75, "or by a try of ours whose answer was lost"),
    ] {
        server.state().troubles.push_back((method, trouble));
        let run = apply(&server, "web-1", &spec);
        assert_eq!(run.code, code, "{}", run.stderr);
        assert!(last_line(&run).contains(why), "{}", run.stderr);
    }
    let run = apply(&server, "web-1", &spec);
    assert!(last_line(&run).contains("nothing to do"), "{}", run.stderr);
    assert_eq!(server.state().revisions.len(), 1, "what was done twice was done once");

    server.state().troubles.push_back(("PUT", Trouble::Overtake("a:8")));
    let run = apply(&server, "web-2", &spec);
    assert_eq!(run.code, 75, "{}", run.stderr);
    applied(&server, "web-2", &spec);
    let service = server.state().services["web"].clone();
    assert_eq!(service["spec"]["template"]["spec"]["containers"][0]["image"], "a:1");

    server.state().token = Some("another");
    let run = step(&server, "fetch", "web-2", &spec).run();
    assert_eq!((run.code, run.text().as_str()), (1, ""), "unknown is not absent");
    assert!(last_line(&run).contains("Cloud Run does not accept the credentials"));
}

#[test]
fn a_key_in_a_variable_is_used_and_nothing_of_it_stays() {
    let test = "a_key_in_a_variable_is_used_and_nothing_of_it_stays";
    let Some(server) = server(test) else { return };
    let Ok(made) = Command::new("openssl").args(["genpkey", "-algorithm", "RSA"]).output() else {
        return skipped(test, "openssl is not on PATH");
    };
    let address = format!("http://{}/token", server.address);
    let key = json!({
        "type": "service_account", "client_email": "pvn@p.iam.gserviceaccount.com",
        "client_id": "1", "private_key_id": "k", "token_uri": address,
        "private_key": String::from_utf8(made.stdout).unwrap()
    });
    server.state().token = Some("key's");
    // Of somebody else, who started the scheduler, say.
    let others = ["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE"];
    let wrapper = step(&server, "fetch", "web-1", &spec("a:1"));
    let other = wrapper.path("other");
    std::fs::write(&other, "another's").unwrap();
    let mut wrapper = others
        .into_iter()
        .fold(wrapper, |wrapper, name| wrapper.env(name, &other))
        .env("CLOUDSDK_AUTH_TOKEN_HOST", &address)
        .env("GOOGLE_SERVICE_ACCOUNT_JSON", key.to_string());
    wrapper.command.env_remove("CLOUDSDK_CONFIG").env_remove("CLOUDSDK_AUTH_DISABLE_CREDENTIALS");
    let instance = wrapper.path("instance");
    let run = wrapper.env("PVN_INSTANCE_DIR", &instance).run();
    assert_eq!((run.code, run.text().as_str()), (0, r#"{"objects":[]}"#), "{}", run.stderr);
    let left = std::fs::read_dir(instance.join("google-cloud-run-fetch")).unwrap();
    assert_eq!(left.count(), 0);

    let run = step(&server, "fetch", "web-1", &spec("a:1"))
        .env("GOOGLE_SERVICE_ACCOUNT_JSON", "/a/path.json")
        .run();
    assert_eq!(run.code, 125);
    assert!(last_line(&run).contains("GOOGLE_SERVICE_ACCOUNT_JSON holds no JSON object"));
}

#[test]
fn what_cannot_be_meant_is_a_usage_error_and_nothing_is_called() {
    let server = CloudRunServer::start();
    let yaml = json!("apiVersion: serving.knative.dev/v1\nkind: Service");
    let run = step(&server, "apply", "web-1", &yaml).run();
    assert_eq!(run.code, 125, "{}", run.stderr);
    assert!(last_line(&run).contains("--service-spec must be JSON, and not YAML"));
    let mut wrapper = step(&server, "apply", "web-1", &spec("a:1"));
    wrapper.command.env_remove("PVN_SERVICE_ID");
    let run = wrapper.run();
    assert_eq!(run.code, 125, "{}", run.stderr);
    assert!(last_line(&run).contains("PVN_SERVICE_ID is not set"));
    assert_eq!(server.calls(), Vec::<String>::new());
}

/// A check with a token that lies in a file, as the place of a job may have it.
fn check(server: &CloudRunServer, token: &str) -> Wrapper {
    let mut wrapper = step(server, "check", "web-1", &spec("a:1"));
    let file = wrapper.path("token");
    std::fs::write(&file, token).unwrap();
    wrapper.command.env_remove("CLOUDSDK_AUTH_DISABLE_CREDENTIALS");
    wrapper.env("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", file)
}

#[test]
fn a_check_tries_program_credentials_and_region_and_shows_no_token() {
    let test = "a_check_tries_program_credentials_and_region_and_shows_no_token";
    let Some(server) = server(test) else { return };
    server.state().token = Some("a-token");
    let run = check(&server, "a-token").run();
    let (short, findings) = found(&run);
    assert_eq!(short, "tool ., credentials ., target .", "{findings:#?}");
    assert!(findings[0].message.starts_with("`gcloud` is "), "{findings:#?}");
    assert_eq!(findings[2].message, "Cloud Run answers for us-central1 of p");
    assert_eq!(server.calls(), ["GET services"]);
    assert!(run.stderr.contains("+ gcloud auth print-access-token\n"), "{}", run.stderr);
    assert!(!run.stderr.contains("a-token") && !run.text().contains("a-token"));
}

#[test]
fn a_check_of_cloud_run_tells_what_is_missing_one_thing_at_a_time() {
    let test = "a_check_of_cloud_run_tells_what_is_missing_one_thing_at_a_time";
    let Some(server) = server(test) else { return };
    server.state().token = Some("a-token");
    let refused = "tool ., credentials ., target FAILED";
    let run = check(&server, "an-old-token").run();
    finds(&run, refused, "Cloud Run does not accept the credentials: they have expired");
    let trouble = Trouble::Refuse(403, "PERMISSION_DENIED", "Permission denied.");
    server.state().troubles.push_back(("GET", trouble));
    finds(&check(&server, "a-token").run(), refused, "not allowed: grant the account roles/run");
    let mut wrapper = check(&server, "a-token");
    wrapper.command.args(["--project", "another"]);
    finds(&wrapper.run(), refused, "not allowed: grant the account roles/run");

    let mut wrapper = check(&server, "a-token");
    wrapper.command.env_remove("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE");
    let run = wrapper.env("CLOUDSDK_CORE_CHECK_GCE_METADATA", "false").run();
    let no_credentials = "tool ., credentials FAILED, target -";
    finds(&run, no_credentials, "gcloud has no credentials");
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/usr/bin/env", bin.path().join("env")).unwrap();
    let run = check(&server, "a-token").env("PATH", bin.path()).run();
    finds(&run, "tool FAILED, credentials -, target -", "`gcloud` was not found");
}

#[test]
fn a_home_that_cannot_be_written_to_is_not_told_as_missing_credentials() {
    let test = "a_home_that_cannot_be_written_to_is_not_told_as_missing_credentials";
    let Some(server) = server(test) else { return };
    // Nobody can make a directory there.
    let mut job = step(&server, "check", "web-1", &spec("a:1")).env("HOME", "/proc/nobody");
    job.command.env_remove("CLOUDSDK_CONFIG").env_remove("CLOUDSDK_AUTH_DISABLE_CREDENTIALS");
    let run = job.run();
    let words = "gcloud cannot keep its configuration below HOME";
    finds(&run, "tool ., credentials FAILED, target -", words);
    assert!(
        found(&run).1[1].remedy.as_ref().unwrap().contains("CLOUDSDK_CONFIG"),
        "{}",
        run.text()
    );
    let mut job = step(&server, "fetch", "web-1", &spec("a:1")).env("HOME", "/proc/nobody");
    job.command.env_remove("CLOUDSDK_CONFIG").env_remove("CLOUDSDK_AUTH_DISABLE_CREDENTIALS");
    let run = job.run();
    assert!(run.code == 1 && last_line(&run).contains(words), "{}", run.stderr);
}
