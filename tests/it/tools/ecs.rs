//! `awsEcs`, by the real `aws` CLI.

use std::collections::BTreeSet;

use fakes::clients;
use fakes::ecs::{EcsServer, End};
use serde_json::json;

use super::*;

mod killed;
mod troubles;

/// What the service runs, of the version that is released.
const TASK: &str = r#"
    taskDefinition:
      inlined: |
        {"family": "web", "containerDefinitions": [
          {"name": "app", "image": "registry.example.com/web:{{.Params.tag}}", "essential": true}]}
"#;

/// A runtime, an application with one channel, a service with two tasks. `more`: what the channel
/// says beside its runtime.
fn documents(more: &str) -> String {
    format!(
        r#"
runtime:
  name: ecs
  awsEcs:
    region: eu-central-1
    ecsCluster: prod
    pollInterval: 1s
    steadyStatePollInterval: 1s
---
application:
  name: app
  releaseChannels:
  - name: production
    runtimes: [{{runtime: ecs}}]
{more}
---
service:
  name: web
  application: app
  parameters: [{{name: tag, required: true, string: {{}}}}]
  awsEcs:
{TASK}
    serviceDefinition:
      inlined: '{{"desiredCount": 2}}'
    ecsServiceNameOverride: shop-web
"#
    )
}

/// The name of the service in ECS.
const NAME: &str = "shop-web";

/// A cloud, and a daemon whose jobs find it.
pub(super) struct Amazon {
    pub(super) server: EcsServer,
    pub(super) scheduler: Scheduler,
}

/// What the CLI has to know to find the server, and nobody else.
fn environment(url: &str) -> Vec<(&str, &str)> {
    let own = [("AWS_ACCESS_KEY_ID", "AKIAOWN"), ("AWS_SECRET_ACCESS_KEY", "own-secret")];
    [&own[..], &clients::of_ecs(url)].concat()
}

impl Amazon {
    /// `None`, counted as skipped, without the tool.
    pub(super) fn start(test: &str) -> Option<Self> {
        if !is_there("aws", test) {
            return None;
        }
        let amazon = Self { server: EcsServer::start(), scheduler: Scheduler::stopped() };
        Some(amazon.running())
    }

    fn running(mut self) -> Self {
        let variables = environment(&self.server.url);
        self.scheduler.run(&Start { variables: &variables, ..Start::default() });
        self
    }

    fn web(&self) -> Followed<'_> {
        Followed { scheduler: &self.scheduler, service: "web", channel: "production" }
    }

    /// How often an action was called so far.
    fn count(&self, action: &str) -> usize {
        self.server.world().calls.iter().filter(|call| call.action == action).count()
    }

    /// What was asked for so far: task definitions, services, changes of services. The CLI asks
    /// again for a service when it has waited too long for an answer; that is the same token.
    fn made(&self) -> [usize; 3] {
        let tokens: BTreeSet<String> = {
            let world = self.server.world();
            let creations = world.calls.iter().filter(|call| call.action == "ecs:CreateService");
            creations.map(|call| call.body["clientToken"].to_string()).collect()
        };
        let [registered, updated] =
            ["ecs:RegisterTaskDefinition", "ecs:UpdateService"].map(|action| self.count(action));
        [registered, tokens.len(), updated]
    }

    /// Somebody changes the service, and it settles.
    fn changed_by_hand(&self, fields: &Value) {
        let mut world = self.server.world();
        let mut change = fields.clone();
        change["service"] = NAME.into();
        world.update(&change).expect("ECS does that");
        world.look(NAME);
        world.look(NAME);
    }
}

#[test]
fn an_ecs_service_converges_and_what_others_do_to_it_is_asked_about_and_repaired() {
    let Some(amazon) = Amazon::start("an_ecs_service_converges") else { return };
    let web = amazon.web();
    amazon
        .scheduler
        .apply(&documents("    preconditions: [{manualApproval: {everyAction: true}}]"));
    let version = web.push("1");
    web.becomes("WAITING_MANUAL_APPROVAL");
    assert_eq!(amazon.made(), [0, 0, 0], "nothing is made before the approval");
    web.is_asked_and_approves();
    let converged = web.arrives(&version);
    assert_eq!(amazon.made(), [1, 1, 0]);
    let page = "https://eu-central-1.console.aws.amazon.com/ecs/v2/clusters/prod/services/shop-web";
    assert!(link(&converged, "AWS console").starts_with(page), "{converged:#}");
    web.info("console", page);
    web.info("task definition", &format!("web:1 (version {version})"));
    // How many run it tells of when it was asked last, which is right after the apply.
    web.info("tasks", "of 2 run");

    // A task definition of somebody else's.
    let foreign = json!({"family": "fix", "containerDefinitions": [{"name": "app", "image": "x"}]});
    amazon.server.world().register(&foreign);
    amazon.changed_by_hand(&json!({"taskDefinition": "fix:1"}));
    let asked = web.is_asked_and_approves();
    let what = format!("ECS `{NAME}` runs an unknown version instead of {version}: ");
    assert!(asked["message"].to_string().contains(&what), "{asked:#}");
    assert!(asked["message"].to_string().contains("tasks of fix:1 run"), "{asked:#}");
    web.arrives(&version);
    assert_eq!(amazon.made(), [1, 1, 1], "the own revision serves again");

    // Another number of tasks.
    amazon.changed_by_hand(&json!({"desiredCount": 5}));
    web.becomes("WAITING_MANUAL_APPROVAL");
    let cause = web.cause("WORK_FOUND");
    let what = "was changed behind pvn's back: not as defined: desiredCount: 2 wanted, 5 found";
    assert!(cause["message"].to_string().contains(what), "{cause:#}");
    let seen = web.jobs("fetch").iter().any(|job| job["endedAt"] == cause["since"]);
    assert!(seen, "since the fetch that has found it: {cause:#}");
    web.is_asked_and_approves();
    web.arrives(&version);
    assert_eq!(amazon.server.world().services[NAME]["desiredCount"], 2);

    // None at all.
    amazon.server.world().delete(NAME);
    let asked = web.is_asked_and_approves();
    let what = format!("there are no objects yet that run {version}");
    assert!(asked["message"].to_string().contains(&what), "{asked:#}");
    web.arrives(&version);
    assert_eq!(amazon.made(), [1, 2, 2]);
}

#[test]
fn what_ecs_gives_up_is_failed_with_its_reason_by_the_next_poll() {
    let Some(amazon) = Amazon::start("what_ecs_gives_up_is_failed") else { return };
    let web = amazon.web();
    amazon.scheduler.apply(&documents(""));
    web.arrives(&web.push("1"));

    amazon.server.world().end = End::RollsBack;
    let broken = web.push("broken");
    let failed = web.becomes("FAILED");
    assert_eq!(failed["reason"], "RUNTIME_OBJECT_FAILED", "{failed:#}");
    let message = failed["message"].to_string();
    let why = format!("ECS rolled web:2 ({broken}) back: ECS deployment circuit breaker: tasks");
    assert!(message.contains(&why), "{failed:#}");
    let applied = web.applies()[0]["endedAt"].as_str().expect("it has ended").to_owned();
    let told = failed["since"].as_str().expect("a time").to_owned();
    // The fake shows the end of a roll-out with the second look; getInfo looks too.
    let since = web.jobs("fetch").into_iter().filter(|job| {
        let of = |field: &str| job[field].as_str().unwrap_or_default().to_owned();
        of("startedAt") >= applied && of("endedAt") <= told
    });
    assert!((1..=2).contains(&since.count()), "{:#?}", web.jobs("fetch"));
    assert!(web.cause("WORK_FOUND")["message"].to_string().contains(&why));
    let exit = amazon.scheduler.pvnctl(["services", "wait", "web", "--app", "app"]).status;
    assert_eq!(exit.code(), Some(2), "nobody waits for it");
    // It stays so when ECS has forgotten the deployment, and nothing is deployed again.
    web.says(&["deployment failed: tasks failed to start"]);
    assert_eq!((web.now()["status"].as_str(), amazon.made()), (Some("FAILED"), [2, 1, 1]));

    amazon.server.world().end = End::Completes;
    web.arrives(&web.push("3"));
    amazon.server.world().end = End::Fails;
    web.push("4");
    let failed = web.becomes("FAILED");
    assert_eq!(failed["reason"], "RUNTIME_OBJECT_FAILED", "{failed:#}");
    let message = failed["message"].to_string();
    assert!(message.contains("circuit breaker: tasks failed to start"), "{failed:#}");
    assert!(message.contains("3 tasks failed"), "{failed:#}");
}

#[test]
fn what_a_channel_says_of_an_ecs_service_wins_field_by_field() {
    let Some(amazon) = Amazon::start("what_a_channel_says_of_an_ecs_service") else { return };
    let staging = "  - {name: staging, runtimes: [{runtime: ecs}]}";
    let of_production = r#"
  perReleaseChannel:
  - releaseChannel: production
    awsEcs:
      serviceDefinition: {inlined: '{"desiredCount": 4}'}
      ecsServiceNameOverride: "{{.Builtins.ReleaseChannel.Name}}-web"
"#;
    amazon.scheduler.apply(&(documents(staging) + of_production));
    let production = amazon.web();
    let staging = Followed { channel: "staging", ..amazon.web() };
    let version = production.push("1");
    production.arrives(&version);
    staging.arrives(&version);
    let count = |name: &str| amazon.server.world().services[name]["desiredCount"].clone();
    assert_eq!((count(NAME), count("production-web")), (json!(2), json!(4)));
    assert_eq!(amazon.made(), [2, 2, 0], "a revision for each");
    let owners: Vec<_> = {
        let world = amazon.server.world();
        world.revisions.iter().map(|(_, tags)| tags["pvn:id"].clone()).collect()
    };
    assert_ne!(owners[0], owners[1], "which says whose it is");

    amazon.server.world().delete("production-web");
    wait::until("it to be made anew", || (amazon.count("ecs:CreateService") == 3).then_some(()));
    production.arrives(&version);
    assert_eq!(amazon.made(), [2, 3, 0], "the other one is left alone");
}
