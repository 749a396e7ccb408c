//! What is told of a service, for each way in which a roll-out can go.

use serde_json::{Map, json};

use super::super::super::ownership::Ownership;
use super::super::definition::EcsPlace;
use super::*;

fn target() -> EcsTarget {
    EcsTarget {
        place: EcsPlace { cluster: "prod".to_owned(), service: "web".to_owned() },
        family: "web".to_owned(),
        task_definition: json!({"family": "web"}),
        service_definition: Map::new(),
        is_task_definition_only: false,
        ownership: Ownership { id: "srv/chn".to_owned(), version: "v2".to_owned() },
        digest: "sha256:2".to_owned(),
    }
}

/// Revision N of ours is of version vN.
fn revision(number: u32, id: &str) -> (String, Revision) {
    let arn = format!("arn:aws:ecs:eu-central-1:1:task-definition/web:{number}");
    let tags = [
        ("pvn:id", id.to_owned()),
        ("pvn:version", format!("v{number}")),
        ("pvn:digest", format!("sha256:{number}")),
        ("pvn:deployment", format!("ecs-svc/{number}")),
    ];
    let answer = json!({
        "taskDefinition": {"taskDefinitionArn": arn, "status": "ACTIVE"},
        "tags": tags.map(|(key, value)| json!({"key": key, "value": value})),
    });
    (arn, Revision::of(answer))
}

/// `PRIMARY 2 COMPLETED 1/2`: the status, the revision, the state, and how many tasks run of how
/// many.
fn deployment(text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    let (running, desired) = words[3].split_once('/').unwrap();
    let number = |text: &str| text.parse::<u32>().unwrap();
    json!({
        "id": format!("ecs-svc/{}", words[1]),
        "status": words[0],
        "taskDefinition": revision(number(words[1]), "").0,
        "rolloutState": if words[2] == "-" { "" } else { words[2] },
        "rolloutStateReason": format!("it is {}", words[2]),
        "runningCount": number(running),
        "pendingCount": number(desired).saturating_sub(number(running)),
        "desiredCount": number(desired),
    })
}

fn service(deployments: &[&str]) -> Value {
    let deployments: Vec<Value> = deployments.iter().map(|text| deployment(text)).collect();
    json!({"status": "ACTIVE", "serviceName": "web", "deployments": deployments, "events": []})
}

fn ours() -> Revisions {
    [revision(1, "srv/chn"), revision(2, "srv/chn")].into()
}

#[test]
fn another_instance_of_pvn_that_deployed_it_is_named() {
    let of_other: Revisions = [revision(1, "srv/other")].into();
    let object = object(&target(), &service(&["PRIMARY 1 COMPLETED 1/1"]), &of_other, None);
    assert!(
        object.message.ends_with("; deployed by another service instance of pvn, srv/other"),
        "{}",
        object.message
    );
}

fn check(service: &Value, status: ObjectStatus, active: &str, message: &str) {
    let target = target();
    let revisions = ours();
    let wanted = &revisions[&revision(2, "").0];
    let rolled_back = wanted.rolled_back(service).map(|why| (short(wanted.arn()).to_owned(), why));
    let object = object(&target, service, &revisions, rolled_back);
    let actives: Vec<&str> = object
        .versions
        .iter()
        .filter(|version| version.active)
        .map(|version| version.version.as_str())
        .collect();
    assert_eq!(
        (object.status, actives.concat().as_str(), object.message.as_str()),
        (status, active, message)
    );
}

#[test]
fn each_state_of_a_roll_out_is_what_it_is() {
    use ObjectStatus::{Failed, Pending, Succeeded};
    check(&service(&["PRIMARY 2 COMPLETED 2/2"]), Succeeded, "v2", "2 of 2 tasks of web:2 run");
    check(&service(&["PRIMARY 2 COMPLETED 0/0"]), Succeeded, "v2", "0 of 0 tasks of web:2 run");
    check(
        &service(&["PRIMARY 2 IN_PROGRESS 1/2", "ACTIVE 1 COMPLETED 2/2"]),
        Pending,
        "v2",
        "1 of 2 tasks of web:2 run: it is IN_PROGRESS",
    );
    check(
        &service(&["PRIMARY 2 FAILED 0/2", "ACTIVE 1 COMPLETED 2/2"]),
        Failed,
        "v2",
        "it is FAILED; 0 of 2 tasks of web:2 run",
    );
    // Behind a Classic Load Balancer.
    check(&service(&["PRIMARY 2 - 2/2"]), Succeeded, "v2", "2 of 2 tasks of web:2 run");
    check(
        &service(&["PRIMARY 2 - 2/2", "ACTIVE 1 - 1/1"]),
        Pending,
        "v2",
        "2 of 2 tasks of web:2 run: it is -",
    );
    let controlled = "no deployment is primary: something else than ECS controls its deployments";
    check(&service(&[]), Pending, "", controlled);
    let mut going = service(&["PRIMARY 2 COMPLETED 2/2"]);
    going["status"] = "DRAINING".into();
    going["runningCount"] = 1.into();
    let message = "the service is being deleted (DRAINING): it is made anew when its last task has \
                   stopped, of 1 that still run";
    check(&going, Pending, "v2", message);
}

#[test]
fn a_roll_back_is_told_while_it_is_listed_and_after() {
    let mut rolling = service(&["PRIMARY 1 IN_PROGRESS 1/2", "ACTIVE 2 FAILED 0/2"]);
    let failed = ObjectStatus::Failed;
    let message = "ECS rolled web:2 (v2) back: it is FAILED; 1 of 2 tasks of web:1 run";
    check(&rolling, failed, "v1", message);
    rolling["deployments"] = json!([deployment("PRIMARY 1 COMPLETED 2/2")]);
    let said = "(service web) (deployment ecs-svc/2) deployment failed: tasks failed to start.";
    rolling["events"] = json!([{"createdAt": 1, "message": "(service web) x"}, {"message": said}]);
    let message = "ECS rolled web:2 (v2) back: (deployment ecs-svc/2) deployment failed: tasks \
                   failed to start; 2 of 2 tasks of web:1 run";
    check(&rolling, failed, "v1", message);
    // Whoever put another one in its place days later did not answer to that.
    rolling["events"] = json!([{"createdAt": 1_000.0, "message": said}]);
    rolling["deployments"][0]["createdAt"] = 900_000.5.into();
    check(&rolling, ObjectStatus::Succeeded, "v1", "2 of 2 tasks of web:1 run");
    rolling["deployments"][0]["createdAt"] = 1_001.5.into();
    check(&rolling, failed, "v1", message);
    // That another failed says nothing of this one.
    let said = "(service web) (deployment ecs-svc/3) deployment failed: tasks failed to start.";
    rolling["events"] = json!([{"message": said}]);
    check(&rolling, ObjectStatus::Succeeded, "v1", "2 of 2 tasks of web:1 run");
}

#[test]
fn a_revision_of_somebody_else_has_no_version() {
    let service = service(&["PRIMARY 2 COMPLETED 2/2"]);
    for id in ["srv/other", ""] {
        let object = object(&target(), &service, &[revision(2, id)].into(), None);
        assert_eq!((object.versions[0].version.as_str(), object.versions[0].active), ("", true));
    }
}

#[test]
fn what_is_not_as_defined_is_named() {
    let mut target = target();
    target.service_definition.insert("desiredCount".to_owned(), 3.into());
    let service = service(&["PRIMARY 2 COMPLETED 2/2"]);
    let told = object(&target, &service, &ours(), None);
    assert!(told.versions[0].drifted);
    assert_eq!(
        told.message,
        "not as defined: desiredCount: 3 wanted, nothing found; 2 of 2 tasks of web:2 run"
    );
    target.is_task_definition_only = true;
    assert!(!object(&target, &service, &ours(), None).versions[0].drifted);
    target.digest = "sha256:other".to_owned();
    let told = object(&target, &service, &ours(), None);
    assert!(told.versions[0].drifted);
    assert!(told.message.contains("web:2: it was made of another definition"), "{}", told.message);
}

#[test]
fn events_have_instants_in_either_form_of_the_cli() {
    let mut service = service(&["PRIMARY 2 IN_PROGRESS 0/2"]);
    service["deployments"][0]["failedTasks"] = 3.into();
    service["events"] = json!([
        {"createdAt": 1_764_300_000.123, "message": "a\nb"},
        {"createdAt": "2025-11-28T03:20:00.123000+00:00", "message": "c"},
        {"createdAt": "yesterday", "message": "d"},
    ]);
    let object = object(&target(), &service, &ours(), None);
    let events: Vec<(String, &str)> = object
        .debug_events
        .iter()
        .map(|event| (event.timestamp.to_string(), event.message.as_str()))
        .collect();
    let at = "2025-11-28T03:20:00.123Z".to_owned();
    assert_eq!(events, [(at.clone(), "a\nb"), (at, "c")]);
    assert_eq!(
        object.message,
        "0 of 2 tasks of web:2 run: it is IN_PROGRESS; 3 tasks failed, last event: a b"
    );
}
