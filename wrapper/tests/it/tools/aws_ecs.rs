//! `pvn-wrapper aws-ecs` with the real `aws` CLI against a small ECS of the test's own.

use std::process::Command;

use fakes::clients;
use fakes::ecs::{CLUSTER, EcsServer, End, Wrong};
use schema::output::{FetchOutput, GetInfoOutput, ObjectStatus, RuntimeObject};
use serde_json::{Value, json};

use crate::run::{Run, Wrapper};
use crate::skipped;

mod check;
mod refused;

/// A service of pvn, and the cloud in which it is to run.
struct Ecs {
    server: EcsServer,
    task_definition: Value,
    service_definition: Option<Value>,
    /// More arguments of each call.
    more: Vec<&'static str>,
    cluster: &'static str,
}

impl Ecs {
    /// `None`, counted as skipped, without the tool.
    fn start(test: &str) -> Option<Self> {
        let aws = Command::new("aws").arg("--version").output();
        if !aws.is_ok_and(|output| output.status.success()) {
            skipped(test, "aws is not on PATH");
            return None;
        }
        Some(Self {
            server: EcsServer::start(),
            task_definition: json!({"family": "web", "containerDefinitions": [{
                "name": "app", "image": "web:1", "essential": true,
                "environment": [{"name": "GREETING", "value": "grüß dich"}],
                "logConfiguration": {
                    "logDriver": "awslogs", "options": {"awslogs-group": "/ecs/web"}
                },
            }]}),
            service_definition: Some(json!({
                "desiredCount": 2,
                "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-a"]}},
                "loadBalancers": [
                    {"targetGroupArn": "arn:tg/web", "containerName": "app", "containerPort": 80}
                ],
            })),
            more: Vec::new(),
            cluster: CLUSTER,
        })
    }

    fn step(&self, step: &str, version: &str) -> Run {
        self.job(step, version).run()
    }

    /// A step, as a job of this version runs it.
    fn job(&self, step: &str, version: &str) -> Wrapper {
        let task_definition = self.task_definition.to_string();
        let service_definition = self.service_definition.as_ref().map(Value::to_string);
        let mut command = vec!["pvn-wrapper", "aws-ecs", step, "--cluster", self.cluster];
        command.extend(["--region", "eu-central-1", "--task-definition", &task_definition]);
        if let Some(definition) = &service_definition {
            command.extend(["--service-definition", definition]);
        }
        command.extend(&self.more);
        let expect = match step {
            "fetch" => &["--expect", "fetch"][..],
            "info" => &["--expect", "get-info"],
            _ => &[],
        };
        let environment = [
            ("PVN_SERVICE", "web"),
            ("PVN_SERVICE_ID", "srv-1"),
            ("PVN_RELEASE_CHANNEL", "production"),
            ("PVN_RELEASE_CHANNEL_ID", "chn-1"),
            ("PVN_SERVICE_VERSION", version),
            ("AWS_ACCESS_KEY_ID", "AKIAOWN"),
            ("AWS_SECRET_ACCESS_KEY", "own-secret"),
            ("AWS_MAX_ATTEMPTS", "1"),
            // What a person has set for the own terminal must not matter.
            ("AWS_DEFAULT_OUTPUT", "text"),
        ];
        let wrapper = Wrapper::new(expect, &command);
        let all = environment.into_iter().chain(clients::of_ecs(&self.server.url));
        all.fold(wrapper, |job, (key, value)| job.env(key, value))
    }

    fn fetch_all(&self, version: &str) -> Vec<RuntimeObject> {
        let run = self.step("fetch", version);
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_slice::<FetchOutput>(&run.stdout).unwrap().objects
    }

    fn fetch(&self, version: &str) -> RuntimeObject {
        let mut objects = self.fetch_all(version);
        assert_eq!(objects.len(), 1, "{objects:#?}");
        objects.remove(0)
    }

    #[track_caller]
    fn apply(&self, version: &str) -> String {
        let run = self.step("apply", version);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.text()
    }

    /// Applies a version that settles while nobody looks: each look is a second of a processor.
    #[track_caller]
    fn deploy(&self, version: &str) {
        self.apply(version);
        let mut world = self.server.world();
        world.look(NAME);
        world.look(NAME);
    }

    /// Looks until its roll-out has come to an end.
    #[track_caller]
    fn ended(&self, version: &str) -> RuntimeObject {
        let mut seen = (0..6).map(|_| self.fetch(version));
        seen.find(|object| object.status != ObjectStatus::Pending).unwrap()
    }

    #[track_caller]
    fn settle(&self, version: &str) {
        let last = self.ended(version);
        assert_eq!(
            (last.status, active(&last)),
            (ObjectStatus::Succeeded, (version, false)),
            "{last:#?}"
        );
    }

    fn set(&self, field: &str, value: Value) {
        let mut world = self.server.world();
        world.services.get_mut(NAME).unwrap()[field] = value;
    }

    fn goes_wrong(&self, operation: &'static str, wrong: Wrong) {
        self.server.world().wrong.push((operation, wrong));
    }

    /// How many revisions and services there are.
    fn made(&self) -> (usize, usize) {
        let world = self.server.world();
        (world.revisions.len(), world.services.len())
    }
}

/// What the service is called without a name of its own.
const NAME: &str = "web-production";

/// The version that is active, and whether it drifted.
fn active(object: &RuntimeObject) -> (&str, bool) {
    let active: Vec<_> = object.versions.iter().filter(|version| version.active).collect();
    assert_eq!(active.len(), 1, "{object:#?}");
    (&active[0].version, active[0].drifted)
}

/// The last line of standard error, which people are shown.
fn last_line(run: &Run) -> &str {
    run.stderr.lines().last().unwrap_or_default()
}

#[test]
fn a_version_is_made_rolled_out_and_replaced_with_what_the_policy_allows() {
    let Some(mut ecs) = Ecs::start("a_version_is_made_rolled_out_and_replaced") else { return };
    assert_eq!(ecs.fetch_all("v1"), [], "nothing is there, and that is no error");
    let log = ecs.apply("v1");
    assert!(log.contains("registered web:1 for v1\ncreated the service web-production"), "{log}");
    let began = ecs.fetch("v1");
    assert_eq!((began.name.as_str(), began.object_type.as_str()), (NAME, "ECS"));
    assert_eq!((began.status, active(&began)), (ObjectStatus::Pending, ("v1", false)));
    let version = &began.versions[0];
    assert_eq!(
        (version.replicas, version.available_replicas, version.target_replicas),
        (Some(2), Some(0), Some(2))
    );
    ecs.settle("v1");
    let again = ecs.apply("v1");
    assert!(again.contains("web:1 is registered already"), "{again}");
    assert!(again.contains("is as it should be"), "{again}");
    assert_eq!(ecs.made(), (1, 1));

    // The same content as another version: whose it is says the revision, so it needs its own.
    ecs.task_definition["tags"] = json!([{"key": "team", "value": "shop"}]);
    assert_eq!(active(&ecs.fetch("v2")).0, "v1");
    let log = ecs.apply("v2");
    assert!(log.contains("web:1 becomes web:2"), "{log}");
    let both = ecs.fetch("v2");
    let versions: Vec<_> =
        both.versions.iter().map(|at| (at.version.as_str(), at.active)).collect();
    assert_eq!(versions, [("v2", true), ("v1", false)]);
    ecs.settle("v2");
    let tags = ecs.server.world().revisions[1].1.clone();
    let tags: Vec<_> = tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(tags[0], ("pvn:deployment", "ecs-svc/2"));
    assert_eq!((tags[2], tags[3]), (("pvn:id", "srv-1/chn-1"), ("pvn:version", "v2")));
    assert_eq!(tags[4], ("team", "shop"));
    let settled = ecs.fetch("v2");
    assert_eq!(settled.debug_events.len(), 2, "{settled:#?}");
    let links: Vec<&str> = settled.external_links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["AWS console", "logs of app"]);

    // Back: what was registered for it serves again.
    ecs.task_definition.as_object_mut().unwrap().remove("tags");
    ecs.deploy("v1");
    assert_eq!(ecs.made(), (2, 1));
    check_info(&ecs);
    check_policy(&ecs);
}

fn check_info(ecs: &Ecs) {
    let info = ecs.step("info", "v1");
    let info: GetInfoOutput = serde_json::from_slice(&info.stdout).unwrap();
    let text: Vec<String> =
        info.outputs.iter().map(|info| format!("{}: {}", info.name, info.text)).collect();
    let arn = "arn:aws:ecs:eu-central-1:123456789012:service/prod/web-production";
    let page = "https://eu-central-1.console.aws.amazon.com/ecs/v2/clusters/prod/services/\
                web-production/health?region=eu-central-1";
    assert_eq!(
        text[..6],
        [
            "cluster: prod".to_owned(),
            format!("service: {arn}"),
            "task definition: web:1 (version v1)".to_owned(),
            "tasks: 2 of 2 run".to_owned(),
            "load balancer: arn:tg/web to app:80".to_owned(),
            format!("console: {page}"),
        ]
    );
}

/// All that was called is what the documented policy allows, and no less.
fn check_policy(ecs: &Ecs) {
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/aws-ecs.md");
    let policy = std::fs::read_to_string(policy).unwrap();
    let mut allowed: Vec<&str> =
        policy.split('"').filter(|word| word.starts_with("ecs:") && !word.contains(' ')).collect();
    let mut called = ecs.server.actions();
    allowed.sort_unstable();
    called.sort_unstable();
    called.dedup();
    assert_eq!(called, allowed);
}

#[test]
fn a_roll_back_of_ecs_is_told_and_not_deployed_again() {
    let Some(mut ecs) = Ecs::start("a_roll_back_of_ecs_is_told") else { return };
    ecs.deploy("v1");
    ecs.task_definition["containerDefinitions"][0]["image"] = "web:broken".into();
    ecs.server.world().end = End::RollsBack;
    ecs.apply("v2");
    let last = ecs.ended("v2");
    assert_eq!((last.status, active(&last)), (ObjectStatus::Failed, ("v1", false)), "{last:#?}");
    assert!(last.message.starts_with("ECS rolled web:2 (v2) back: ECS deployment circuit breaker"));
    // Then ECS has forgotten the deployment, but for the event.
    let mut seen = (0..6).map(|_| ecs.fetch("v2"));
    let by_event = "(deployment ecs-svc/2) deployment failed";
    let last = seen.find(|object| object.message.contains(by_event)).unwrap();
    assert_eq!((last.status, active(&last)), (ObjectStatus::Failed, ("v1", false)), "{last:#?}");
    let versions: Vec<_> = last.versions.iter().map(|at| at.version.as_str()).collect();
    assert_eq!(versions, ["v1", "v2"], "what failed is not forgotten by us");
    ecs.server.actions();
    let run = ecs.step("apply", "v2");
    assert_eq!(run.code, 1);
    assert!(last_line(&run).contains("ECS rolled web:2 (v2) back: "), "{}", run.stderr);
    let called = ecs.server.actions();
    assert!(!called.iter().any(|action| action == "ecs:UpdateService"), "{called:?}");
    // The next version is not held up by it.
    ecs.task_definition["containerDefinitions"][0]["image"] = "web:3".into();
    ecs.server.world().end = End::Completes;
    ecs.deploy("v3");
}

#[test]
fn a_roll_out_that_fails_and_stays_is_failed() {
    let Some(ecs) = Ecs::start("a_roll_out_that_fails_and_stays_is_failed") else { return };
    ecs.server.world().end = End::Fails;
    ecs.apply("v1");
    let last = ecs.ended("v1");
    assert_eq!((last.status, active(&last)), (ObjectStatus::Failed, ("v1", false)), "{last:#?}");
    assert!(last.message.contains("circuit breaker: tasks failed to start"), "{}", last.message);
    // Whoever has it applied again by hand means it.
    ecs.server.world().end = End::Completes;
    let log = ecs.apply("v1");
    assert!(log.contains("its deployment failed and is begun anew"), "{log}");
    ecs.settle("v1");
}

#[test]
fn what_somebody_changes_is_drift_and_is_put_back() {
    let Some(mut ecs) = Ecs::start("what_somebody_changes_is_drift") else { return };
    ecs.deploy("v1");
    let network = json!({"awsvpcConfiguration": {"subnets": ["subnet-b"]}});
    ecs.set("networkConfiguration", network);
    ecs.set("desiredCount", 5.into());
    ecs.set("enableExecuteCommand", true.into());
    let seen = ecs.fetch("v1");
    assert_eq!(active(&seen), ("v1", true));
    assert_eq!(
        seen.message,
        "not as defined: desiredCount: 2 wanted, 5 found, \
         networkConfiguration.awsvpcConfiguration.subnets: [\"subnet-a\"] wanted, [\"subnet-b\"] \
         found; 2 of 2 tasks of web:1 run"
    );
    ecs.apply("v1");
    assert_eq!(ecs.made(), (1, 1), "the revision is fine");
    ecs.settle("v1");
    // Without a number the count is the autoscaler's.
    ecs.service_definition.as_mut().unwrap()["desiredCount"] = Value::Null;
    ecs.set("desiredCount", 7.into());
    assert_eq!(active(&ecs.fetch("v1")), ("v1", false));

    // A revision by hand with the tags of ours, as the console makes them, and one without.
    let mut copy = ecs.server.world().revisions[0].clone();
    copy.0["taskDefinitionArn"] = "arn:aws:ecs:eu-central-1:1:task-definition/web:2".into();
    copy.0["containerDefinitions"][0]["image"] = "web:hotfix".into();
    ecs.server.world().revisions.push(copy.clone());
    let use_it = |arn: &Value| {
        let mut world = ecs.server.world();
        let service = world.services.get_mut(NAME).unwrap();
        service["taskDefinition"] = arn.clone();
        service["deployments"][0]["taskDefinition"] = arn.clone();
    };
    use_it(&copy.0["taskDefinitionArn"]);
    let seen = ecs.fetch("v1");
    assert_eq!(active(&seen), ("v1", true));
    assert!(seen.message.contains("web:2: image of the container app"), "{}", seen.message);
    let log = ecs.apply("v1");
    assert!(log.contains("web:2 becomes web:1"), "{log}");
    ecs.server.world().revisions[1].1.clear();
    use_it(&copy.0["taskDefinitionArn"]);
    assert_eq!(active(&ecs.fetch("v1")).0, "");

    // What no update can change is told, once all else is done.
    ecs.service_definition.as_mut().unwrap()["launchType"] = "FARGATE".into();
    let run = ecs.step("apply", "v1");
    assert_eq!(run.code, 1);
    let why = "ECS cannot change this in a service that is there: launchType: \"FARGATE\" wanted, \
               nothing found; delete the service";
    assert!(last_line(&run).contains(why), "{}", run.stderr);
    assert_eq!(active(&ecs.fetch("v1")), ("v1", true));
}

#[test]
fn a_service_of_somebody_else_gets_its_task_definition_only() {
    let Some(mut ecs) = Ecs::start("a_service_of_somebody_else") else { return };
    ecs.more = vec!["--update-task-definition-only", "--service-name", "theirs"];
    for step in ["fetch", "apply"] {
        let run = ecs.step(step, "v1");
        assert_eq!(run.code, 1, "{}", run.stderr);
        let why = "there is no service `theirs` in the cluster `prod`, and with";
        assert!(last_line(&run).contains(why), "{}", run.stderr);
    }
    assert_eq!(ecs.made(), (0, 0));
    ecs.more = vec!["--service-name", "theirs"];
    ecs.apply("v0");
    ecs.server.world().services.get_mut("theirs").unwrap()["desiredCount"] = 9.into();
    ecs.more = vec!["--update-task-definition-only", "--service-name", "theirs"];
    assert_eq!(active(&ecs.fetch("v1")), ("v0", false));
    ecs.apply("v1");
    let world = ecs.server.world();
    let update = world.calls.iter().find(|call| call.action == "ecs:UpdateService").unwrap();
    let fields: Vec<&String> = update.body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["cluster", "service", "taskDefinition"]);
}
