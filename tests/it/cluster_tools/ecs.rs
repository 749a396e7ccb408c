//! ECS by the real `aws` CLI in Pods, which has no keys: a Pod shows the token of its account and
//! is given a role for it, as on EKS.

use fakes::clients;
use fakes::ecs::{Call, EcsServer, End, Wrong};
use fakes::turnstile::Moment;
use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster, Shared};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use super::aws;

/// An image with a shell, `aws` and the wrapper: what a user builds.
const IMAGE: &str = "pvn.test/aws:1";

/// Where the cluster puts the token of a Pod's account.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// The service in ECS.
const NAME: &str = "web-production";

struct World {
    cluster: Shared,
    scheduler: Scheduler,
    ecs: EcsServer,
    runtime: String,
}

impl World {
    /// `None`, counted as skipped, without a cluster or the tool.
    fn new(test: &str) -> Option<Self> {
        let cluster = Cluster::get(test)?;
        cluster.import(&aws::image(IMAGE, test)?);
        let ecs = EcsServer::listening(&format!("{ADDRESS}:0"));
        let mut scheduler = Scheduler::stopped_at(ADDRESS);
        scheduler.run(&Start::default());
        let account = cluster.account();
        let runtime = account.name("ecs");
        let own = [
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pvn"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", TOKEN),
        ];
        let env: String = clients::of_ecs(&ecs.url)
            .iter()
            .chain(&own)
            .map(|(name, value)| format!("      {name}: {{value: '{value}'}}\n"))
            .collect();
        scheduler.apply(&format!(
            r#"runtime: {{name: k8s, kubernetes: {{kubeconfig: {}}}}}
---
runtime:
  name: {runtime}
  awsEcs:
    region: eu-central-1
    ecsCluster: prod
    proxyRuntime: {{runtime: k8s}}
    image: {IMAGE}
    pollInterval: 2s
    steadyStatePollInterval: 2s
    env:
{env}---
application:
  name: app
  releaseChannels:
  - name: production
    runtimes: [{{runtime: {runtime}}}]
    preconditions: [{{manualApproval: {{everyAction: true}}}}]
---
service:
  name: web
  application: app
  parameters: [{{name: tag, required: true, string: {{}}}}]
  awsEcs:
    taskDefinition:
      inlined: |
        {{"family": "web", "containerDefinitions": [
          {{"name": "app", "image": "registry.example.com/web:{{{{.Params.tag}}}}", "essential": true}}]}}
    serviceDefinition: {{inlined: '{{"desiredCount": 2}}'}}
"#,
            account.kubeconfig().display()
        ));
        Some(Self { cluster, scheduler, ecs, runtime })
    }

    fn push(&self, tag: &str) {
        let tag = format!("tag={tag}");
        self.scheduler.ok(&["services", "push", "web", "--app", "app", "--param", &tag]);
    }

    fn becomes(&self, status: &str) -> Value {
        self.scheduler.channel_becomes("web", "production", status)
    }

    /// Approves what is asked, and returns how it was asked.
    fn is_asked_and_approves(&self) -> Value {
        let asked = self.becomes("WAITING_MANUAL_APPROVAL");
        let approve = ["services", "approve", "web", "--app", "app", "--channel", "production"];
        self.scheduler.ok(&[&approve[..], &["--yes"]].concat());
        asked
    }

    /// How often each of these was called so far.
    fn calls(&self, actions: [&str; 3]) -> [usize; 3] {
        let world = self.ecs.world();
        actions.map(|action| world.calls.iter().filter(|call| call.action == action).count())
    }

    /// Task definitions, services, changes of services.
    fn made(&self) -> [usize; 3] {
        self.calls(["ecs:RegisterTaskDefinition", "ecs:CreateService", "ecs:UpdateService"])
    }
}

#[test]
fn ecs_is_kept_by_pods_that_have_no_keys_and_what_it_gives_up_is_told() {
    let test = "ecs_is_kept_by_pods_that_have_no_keys_and_what_it_gives_up_is_told";
    let Some(world) = World::new(test) else { return };
    world.push("1");
    world.is_asked_and_approves();
    world.becomes("CONVERGED");
    assert_eq!(world.made(), [1, 1, 0]);
    world.calls_were_made_as_a_pod_of_the_runtime();

    {
        let mut ecs = world.ecs.world();
        ecs.update(&json!({"service": NAME, "desiredCount": 5})).expect("ECS does that");
        ecs.look(NAME);
        ecs.look(NAME);
    }
    let asked = world.is_asked_and_approves().to_string();
    assert!(asked.contains("desiredCount: 2 wanted, 5 found"), "{asked}");
    world.becomes("CONVERGED");
    assert_eq!(world.ecs.world().services[NAME]["desiredCount"], 2);

    world.ecs.world().end = End::RollsBack;
    world.push("broken");
    world.is_asked_and_approves();
    let failed = world.becomes("FAILED");
    assert_eq!(failed["reason"], "RUNTIME_OBJECT_FAILED", "{failed:#}");
    let message = failed["message"].to_string();
    assert!(message.contains("ECS deployment circuit breaker: tasks"), "{failed:#}");
    assert_eq!(world.made(), [2, 1, 2]);
}

impl World {
    /// Each Pod is given the role for its own token, and calls with what it was given.
    fn calls_were_made_as_a_pod_of_the_runtime(&self) {
        let ecs = self.ecs.world();
        let (own, others): (Vec<&Call>, Vec<&Call>) =
            ecs.calls.iter().partition(|call| call.action.starts_with("ecs:"));
        assert!(own.iter().all(|call| call.key == "ASIAROLE"), "{own:#?}");
        let asked = others.iter().find(|call| call.action == "sts:AssumeRoleWithWebIdentity");
        let form = asked.map(|call| call.body.to_string()).unwrap_or_default();
        let token = form.split(['&', '"']).find_map(|at| at.strip_prefix("WebIdentityToken="));
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token.unwrap_or_default()},
        });
        let create = ["create", "-f", "-", "-o", "jsonpath={.status.user.username}"];
        let whose = self.cluster.kubectl(&create, &review.to_string());
        let account = format!("system:serviceaccount:pvn-proxy-runtime-{}:default", self.runtime);
        assert_eq!(whose, account, "{form}");
    }
}

#[test]
fn p1_ecs_in_a_pod_goes_on_without_the_daemon_and_is_made_once() {
    let test = "p1_ecs_in_a_pod_goes_on_without_the_daemon_and_is_made_once";
    let Some(mut world) = World::new(test) else { return };
    world.ecs.world().wrong.push(("CreateService", Wrong::Waits(Moment::Before)));
    world.push("1");
    world.is_asked_and_approves();
    wait::until("the service to be asked for", || {
        (world.ecs.turnstile.waiting() > 0).then_some(())
    });
    world.scheduler.kill();
    world.ecs.turnstile.open();
    wait::until("the service to be there", || {
        world.ecs.world().services.contains_key(NAME).then_some(())
    });
    world.scheduler.run(&Start::default());
    world.becomes("CONVERGED");
    assert_eq!(world.made(), [1, 1, 0]);
    let applies = world.scheduler.jobs("web", "apply");
    let began = applies.iter().filter(|job| !job["startedAt"].is_null());
    assert_eq!(began.count(), 1, "{applies:#?}");
}
