//! Many services of one cloud: fetches that merely have their turn share calls, and what happens is
//! seen all the same.

use serde_json::Value;
use tests::scheduler::Scheduler;
use tests::wait;

use super::Followed;
use super::cloud_run::Google;
use super::ecs::Amazon;

/// How often each of them is looked at: half of it is long beside a call, also on a busy machine.
const INTERVAL: &str = "20s";

/// So many looks are counted.
const LOOKS: usize = 20;

/// So many others come first: what looks because something happened asks for itself, and whoever is
/// the first to ask has no company yet.
const FIRST_LOOKS: usize = 10;

/// How many fetches and getInfos have ended, of all services.
fn looks(scheduler: &Scheduler) -> usize {
    let jobs = scheduler.json(&["jobs", "list", "--limit", "1000", "--status", "succeeded"]);
    let jobs = jobs.as_array().expect("a list");
    jobs.iter().filter(|job| job["kind"] != "apply").count()
}

/// Waits for so many more looks, and gives how many there were.
fn more_looks(scheduler: &Scheduler, least: usize) -> usize {
    let before = looks(scheduler);
    // Each starts a client of some hundred modules, which takes seconds on a busy machine.
    wait::until_within(wait::PATIENCE * 2, "more looks", || {
        let more = looks(scheduler) - before;
        (more >= least).then_some(more)
    })
}

/// What the fetch that somebody asked for printed.
fn refreshed(followed: &Followed<'_>) -> String {
    let newest = || followed.jobs("fetch").first().map(|job| job["id"].clone());
    let before = newest();
    followed.decide("refresh", &[]);
    let job = wait::until("another fetch", || {
        let ended = |job: &&Value| !job["endedAt"].is_null();
        followed
            .jobs("fetch")
            .first()
            .filter(ended)
            .map(|job| job["id"].clone())
            .filter(|job| Some(job) != before.as_ref())
    });
    let id = job.as_str().expect("a job has an id");
    let output = followed.scheduler.pvnctl(["jobs", "logs", id]);
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// A runtime of ECS with credentials of its own, and the application whose services it runs.
fn ecs_documents(name: &str, key: &str, services: &[String]) -> String {
    let mut documents = format!(
        r#"
runtime:
  name: {name}
  awsEcs:
    region: eu-central-1
    ecsCluster: prod
    pollInterval: {INTERVAL}
    steadyStatePollInterval: {INTERVAL}
    env: {{AWS_ACCESS_KEY_ID: {{value: {key}}}}}
"#
    );
    for service in services {
        documents.push_str(&format!(
            r#"
---
service:
  name: {service}
  application: app
  runtimeConnection: {name}
  awsEcs:
    taskDefinition: {{inlined: '{{"family": "{service}", "containerDefinitions": [
      {{"name": "app", "image": "registry.example.com/web:1", "essential": true}}]}}'}}
    serviceDefinition: {{inlined: '{{"desiredCount": 2}}'}}
    ecsServiceNameOverride: {service}
"#
        ));
    }
    documents
}

#[test]
fn many_ecs_services_share_calls_and_nothing_across_credentials() {
    let test = "many_ecs_services_share_calls_and_nothing_across_credentials";
    let Some(Amazon { server, scheduler }) = Amazon::start(test) else { return };
    let named = |prefix: &str, count: usize| {
        (0..count).map(|number| format!("{prefix}-{number}")).collect::<Vec<_>>()
    };
    let (own, others) = (named("own", 10), named("other", 2));
    let application = "\
---
application:
  name: app
  releaseChannels: [{name: production, runtimes: [{runtime: ecs}, {runtime: elsewhere}]}]
---";
    let documents = [
        ecs_documents("ecs", "AKIAOWN", &own),
        application.to_owned(),
        ecs_documents("elsewhere", "AKIAOTHER", &others),
    ];
    scheduler.apply_and_push(&documents.concat());
    let all = own.iter().chain(&others);
    let of = |service| Followed { scheduler: &scheduler, service, channel: "production" };
    for service in all.clone() {
        of(service).becomes("CONVERGED");
    }

    more_looks(&scheduler, FIRST_LOOKS);
    server.world().calls.clear();
    let looks = more_looks(&scheduler, LOOKS);
    let calls = std::mem::take(&mut server.world().calls);
    let asked = calls.iter().filter(|call| call.action == "ecs:DescribeServices");
    let asked: Vec<_> = asked.map(|call| (&call.key, call.body["services"].to_string())).collect();
    assert!(asked.len() * 2 < looks, "{looks} looks took {asked:#?}");
    let defined = calls.iter().filter(|call| call.action == "ecs:DescribeTaskDefinition").count();
    assert!(defined * 2 < looks, "{looks} looks took {defined} looks at task definitions");
    for (key, names) in asked {
        let foreign = if key == "AKIAOWN" { "other-" } else { "own-" };
        assert!(!names.contains(foreign), "{key} asked for {names}");
    }

    // What happens is seen with the next look, whoever asks for it.
    let registered = server.world().revisions.len();
    let change = serde_json::json!({"service": "own-3", "desiredCount": 5});
    server.world().update(&change).expect("ECS does that");
    let own = of("own-3");
    own.comes_to("repaired", |_| own.applies().len() == 2);
    own.becomes("CONVERGED");
    assert_eq!(server.world().services["own-3"]["desiredCount"], 2);
    assert_eq!(server.world().revisions.len(), registered);

    let log = refreshed(&own);
    assert!(
        log.contains("+ aws ecs describe-services --cluster prod --services own-3 --"),
        "{log}"
    );
    assert!(!log.contains("a job of this scheduler"), "{log}");
}

#[test]
fn many_cloud_run_services_are_looked_at_by_one_list() {
    let test = "many_cloud_run_services_are_looked_at_by_one_list";
    let Some(Google { server, scheduler }) = Google::start(test) else { return };
    let mut documents = format!(
        r#"
runtime:
  name: run
  googleCloudRun:
    project: p
    region: europe-west1
    pollInterval: {INTERVAL}
    steadyStatePollInterval: {INTERVAL}
---
application:
  name: app
  releaseChannels: [{{name: production, runtimes: [{{runtime: run}}]}}]
"#
    );
    let services: Vec<_> = (0..5).map(|number| format!("page-{number}")).collect();
    for service in &services {
        documents.push_str(&format!(
            r#"
---
service:
  name: {service}
  application: app
  googleCloudRun:
    inlined: |
      apiVersion: serving.knative.dev/v1
      kind: Service
      metadata: {{name: {service}}}
      spec: {{template: {{spec: {{containers: [{{image: registry.example.com/page}}]}}}}}}
"#
        ));
    }
    scheduler.apply_and_push(&documents);
    let of = |service| Followed { scheduler: &scheduler, service, channel: "production" };
    for service in &services {
        of(service).becomes("CONVERGED");
    }

    more_looks(&scheduler, FIRST_LOOKS);
    server.calls();
    let looks = more_looks(&scheduler, LOOKS);
    let calls = server.calls();
    assert!(calls.len() * 2 < looks, "{looks} looks took {calls:#?}");
    assert!(calls.contains(&"GET services".to_owned()), "{calls:#?}");

    let page = of("page-2");
    server.state().deploy_by_hand("page-2", "x:hotfix");
    page.comes_to("repaired", |_| page.applies().len() == 2);
    page.becomes("CONVERGED");
    let log = refreshed(&page);
    assert!(log.contains("+ gcloud run services describe page-2 "), "{log}");
}
