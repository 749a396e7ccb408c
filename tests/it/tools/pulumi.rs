//! `pulumiRunner`, by a replay of what `pulumi` does.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use fakes::pulumi::{LOCK, PROGRAM, drift, settled};
use tests::programs;

use super::*;

const DOCUMENTS: &str = r#"
runtime:
  name: pulumi
  pulumiRunner:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    pollInterval: 1s
    steadyStatePollInterval: 1s
    fetchRetryPolicy: {baseInterval: 1s, maxInterval: 1s}
    applyRetryPolicy: {baseInterval: 1s, maxInterval: 1s}
---
application:
  name: app
  releaseChannels: [{name: production, runtimes: [{runtime: pulumi}]}]
---
service:
  name: queues
  application: app
  parameters: [{name: tag, required: true, string: {}}]
  pulumi: {path: queues, stack: dev}
  env: {GREETING: {value: "{{.Params.tag}}"}}
"#;

/// What `up` prints of a resource that fails.
const FAILED: &str = "
Diagnostics:
  a:b:Cmd (web):
    error: quota exceeded
";

/// A stack that somebody has changed, and a daemon whose jobs find the replay.
struct Stack {
    scheduler: Scheduler,
}

impl Stack {
    fn start() -> Self {
        let mut stack = Self { scheduler: Scheduler::stopped() };
        for directory in ["bin", "world", "queues"] {
            std::fs::create_dir(stack.path(directory)).expect("a directory can be made");
        }
        let program = stack.path("bin/pulumi");
        std::fs::write(&program, PROGRAM).expect("a file can be written");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, executable).expect("a mode can be set");
        stack.drifts();
        stack.says("settled", settled().to_string());
        stack.says("outputs", r#"{"url": "https://queues.test"}"#);
        stack.says("history", "[]");
        stack.run();
        stack.scheduler.apply(DOCUMENTS);
        stack
    }

    fn run(&mut self) {
        self.with_start(|scheduler, start| scheduler.run(start));
    }

    /// Does something that starts the daemon.
    fn with_start(&mut self, act: impl FnOnce(&mut Scheduler, &Start<'_>)) {
        let path = programs::path_after(&self.path("bin"));
        let world = self.path("world");
        let environment = vec![("PATH", path.as_os_str()), ("WORLD", world.as_os_str())];
        act(&mut self.scheduler, &Start { environment, ..Start::default() });
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scheduler.home().join(name)
    }

    fn says(&self, name: &str, text: impl AsRef<[u8]>) {
        // In one step, as a fetch may read it meanwhile.
        let (next, file) = (self.path("next"), self.path("world").join(name));
        std::fs::write(&next, text).expect("a file can be written");
        std::fs::rename(next, file).expect("a file can be moved");
    }

    fn drifts(&self) {
        self.says("preview", drift().to_string());
    }

    fn forgets(&self, name: &str) {
        std::fs::remove_file(self.path("world").join(name)).expect("it was there");
    }

    fn has(&self, name: &str) -> bool {
        self.path("world").join(name).exists()
    }

    /// The versions of the updates that were carried out.
    fn ups(&self) -> Vec<String> {
        let ups = std::fs::read_to_string(self.path("world/ups")).unwrap_or_default();
        ups.lines().map(str::to_owned).collect()
    }

    fn queues(&self) -> Followed<'_> {
        Followed { scheduler: &self.scheduler, service: "queues", channel: "production" }
    }
}

#[test]
fn a_stack_of_pulumi_is_previewed_asked_about_brought_up_and_repaired() {
    let stack = Stack::start();
    let queues = stack.queues();
    let version = queues.push("1");
    let asked = queues.becomes("WAITING_MANUAL_APPROVAL");
    let shown = asked["approvals"][0]["explanation"].as_str().expect("the preview is shown");
    assert!(shown.starts_with("Preview: 1 to update, 1 unchanged\n"), "{shown}");
    assert!(shown.contains("update   a:b:Cmd web: zone"), "what differs: {shown}");
    assert_eq!(stack.ups(), Vec::<String>::new(), "nothing is done before the approval");
    queues.is_asked_and_approves();
    queues.arrives(&version);
    assert_eq!(stack.ups(), [version.as_str()]);
    queues.info("output url", "https://queues.test");

    stack.drifts();
    let asked = queues.becomes("WAITING_MANUAL_APPROVAL");
    assert!(asked["message"].to_string().contains("1 to update"), "{asked:#}");
    let cause = queues.cause("WORK_FOUND");
    let seen = queues.jobs("fetch").iter().any(|job| job["endedAt"] == cause["since"]);
    assert!(seen, "since the fetch that has found it: {cause:#}");
    assert_eq!(stack.ups().len(), 1, "nothing is done before the approval");
    queues.is_asked_and_approves();
    queues.arrives(&version);
    assert_eq!(stack.ups(), [version.as_str(), version.as_str()]);
}

#[test]
fn an_update_of_pulumi_that_fails_is_told_and_a_lock_is_waited_for() {
    let stack = Stack::start();
    let queues = stack.queues();
    stack.says("up-fails", FAILED);
    let version = queues.push("1");
    queues.is_asked_and_approves();
    let failed = queues.becomes("FAILED");
    assert_eq!(failed["reason"], "APPLY_FAILED", "{failed:#}");
    assert!(failed["message"].to_string().contains("quota exceeded"), "{failed:#}");

    stack.forgets("up-fails");
    stack.says("lock", LOCK);
    queues.decide("retry", &[]);
    queues.is_asked_and_approves();
    let locked = queues.says(&["locked", "root@vm (pid 4711)", "next attempt after"]);
    assert_eq!(locked["status"], "CONVERGING", "{locked:#}");
    stack.forgets("lock");
    queues.arrives(&version);
    assert_eq!(stack.ups(), [version]);

    // No stack: said of what was converged, and then of what nobody can see.
    let gone = "error: no stack named 'dev' found";
    stack.says("preview-ends-with", "6");
    stack.says("preview", gone);
    let seen = queues.says(&["as last seen"]);
    assert_eq!(seen["reason"], "FETCH_FAILED", "{seen:#}");
    stack.forgets("preview-ends-with");
    stack.says("preview", settled().to_string());
    queues.comes_to("seen again", |at| at["status"] == "CONVERGED" && at["reason"].is_null());
    assert_eq!(stack.ups().len(), 1);
}

#[test]
fn p4_p5_a_daemon_killed_in_an_update_of_pulumi_updates_once() {
    let mut stack = Stack::start();
    let mut dice = Dice::new(3);
    let mut versions = Vec::new();
    for (round, moment) in ["before", "after", "before", "after"].into_iter().enumerate() {
        stack.drifts();
        stack.says(moment, "");
        versions.push(stack.queues().push(&round.to_string()));
        stack.queues().is_asked_and_approves();
        let at = format!("at-{moment}");
        wait::until("the update to be there", || stack.has(&at).then_some(()));
        stack.scheduler.kill();
        let goes_on_alone = dice.percent(50);
        if goes_on_alone {
            stack.forgets(moment);
        }
        stack.run();
        if !goes_on_alone {
            stack.forgets(moment);
        }
        stack.forgets(&at);
        stack.queues().arrives(&versions[round]);
        assert_eq!(stack.ups(), versions);
        assert_eq!(stack.queues().applies().len(), round + 1);
    }
}
