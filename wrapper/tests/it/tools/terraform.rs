//! `pvn-wrapper terraform` around the real `terraform` (or OpenTofu), with its built-in provider.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use schema::id::BlobId;

use super::{finds, found};
use crate::run::{Run, Wrapper, until, write_program};
use crate::skipped;

mod provisioners;
mod surroundings;
mod unsaved;
mod variables;

/// One resource that is replaced when `made.txt` is not there, and takes as long as `slow` says.
const CONFIG: &str = r#"
terraform {
  backend "local" {}
}

variable "slow" { default = "0" }

variable "password" {
  default   = "hunter2-in-a-variable"
  sensitive = true
}

resource "terraform_data" "made" {
  input            = var.password
  triggers_replace = fileexists("made.txt") ? file("made.txt") : uuid()
  provisioner "local-exec" {
    command = "printf %s '${self.triggers_replace}' > made.txt; sleep ${var.slow}"
  }
}

output "password" {
  value     = var.password
  sensitive = true
}

output "address" {
  value = "https://example.com/"
}
"#;

/// A directory with the configuration, and where jobs of one service instance work on it.
struct World {
    terraform: &'static str,
    directory: tempfile::TempDir,
}

impl World {
    /// `None`, counted as skipped, without the tool.
    fn new(test: &str) -> Option<Self> {
        let Some(terraform) = crate::terraform::terraform() else {
            skipped(test, "neither terraform nor tofu is on PATH");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("main.tf"), CONFIG).unwrap();
        std::fs::create_dir(directory.path().join("own")).unwrap();
        Some(Self { terraform, directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `pvn-wrapper exec -- /pvn-wrapper terraform …`, as a job of the scheduler.
    fn wrapper(&self, arguments: &[&str]) -> Wrapper {
        let mut wrapper = Wrapper::new(&[], &[&["/pvn-wrapper", "terraform"], arguments].concat())
            .with_default_signals();
        wrapper.command.current_dir(self.directory.path());
        wrapper
            .env("PVN_JOB_ID", "job-0123456789abcdef0123456789abcdef")
            .env("PVN_INSTANCE_DIR", self.path("own"))
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.wrapper(arguments).run()
    }

    /// The apply of the plan that is there, which a fetch handed over.
    fn apply(&self) -> Wrapper {
        self.with_plan("own", self.wrapper(&["apply"]))
    }

    /// The same for a job of the service instance with this directory.
    fn with_plan(&self, own: &str, apply: Wrapper) -> Wrapper {
        let plan = std::fs::read(self.path(own).join("terraform-plan/plan")).unwrap();
        let blob = BlobId::of(&plan).to_string();
        let job = self.path(own).join("job");
        std::fs::create_dir_all(job.join("inputs")).unwrap();
        std::fs::write(job.join("inputs").join(&blob), plan).unwrap();
        let _ = std::fs::remove_file(job.join("inputs/fetch:plan"));
        std::os::unix::fs::symlink(&blob, job.join("inputs/fetch:plan")).unwrap();
        apply.env("PVN_JOB_DIR", job).env("PVN_FETCH_PLAN_BLOB_ID", blob)
    }

    /// The program itself, by hand.
    fn by_hand(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.terraform);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("TF_DATA_DIR", self.path("own/terraform-plan/data"))
            .env("CHECKPOINT_DISABLE", "1")
            .stdout(std::process::Stdio::null());
        command
    }
}

/// The names of the outputs that were handed over.
fn handed_over(run: &Run) -> Vec<&str> {
    let there = run.report.files.iter().filter(|file| file.content_blob_id.is_some());
    there.map(|file| file.name.as_str()).collect()
}

/// What the wrapper said last: what the scheduler shows.
fn reason(run: &Run) -> &str {
    run.stderr.lines().last().unwrap_or_default()
}

#[test]
fn a_plan_says_by_its_code_whether_there_is_work_and_apply_runs_that_plan() {
    let Some(world) = World::new("a_plan_says_by_its_code_whether_there_is_work") else { return };
    let run = world.run(&["plan"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert_eq!(handed_over(&run), ["plan", "plan-explanation", "plan-json", "plan-destroys"]);
    let text = std::fs::read_to_string(world.path("own/terraform-plan/plan.txt")).unwrap();
    assert!(text.starts_with("Plan: 1 to add\n") && text.contains("terraform_data.made"), "{text}");
    let json = std::fs::read_to_string(world.path("own/terraform-plan/plan.json")).unwrap();
    assert!(json.contains("terraform_data.made") && !json.contains("hunter2"), "{json}");
    let destroys =
        || std::fs::read_to_string(world.path("own/terraform-plan/destroys.txt")).unwrap();
    assert_eq!(destroys(), "");
    assert!(
        run.stderr.contains("+ terraform plan -detailed-exitcode") || world.terraform == "tofu"
    );

    let applied = world.apply().run();
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_eq!(world.run(&["plan"]).code, 0);
    std::fs::remove_file(world.path("made.txt")).unwrap();
    let drift = world.run(&["plan"]);
    assert_eq!(drift.code, 2, "{}", drift.stderr);
    let text = std::fs::read_to_string(world.path("own/terraform-plan/plan.txt")).unwrap();
    let replaced = "replace terraform_data.made\n";
    assert!(text.starts_with(&format!("Plan: 1 to add, 1 to destroy\n\n{replaced}\n")), "{text}");
    assert_eq!(destroys(), replaced);
    assert!(!world.path(".terraform").exists(), "jobs keep their data in a place of their own");
}

#[test]
fn info_shows_outputs_that_are_not_sensitive_and_which_state_it_is() {
    let Some(world) = World::new("info_shows_outputs_that_are_not_sensitive") else { return };
    let said = |run: &Run| {
        assert_eq!(run.code, 0, "{}", run.stderr);
        String::from_utf8(run.stdout.clone()).unwrap()
    };
    assert_eq!(said(&world.run(&["info"])), r#"{"outputs":[{"name":"state","text":"none yet"}]}"#);
    world.run(&["plan"]);
    world.apply().run();
    let info = said(&world.run(&["info"]));
    assert!(info.contains(r#"{"name":"output address","text":"https://example.com/"}"#), "{info}");
    assert!(info.contains(r#"{"name":"output password","text":"(sensitive)"}"#), "{info}");
    assert!(info.contains(", 1 resource, written by "), "{info}");
}

#[test]
fn a_plan_of_a_state_that_has_moved_on_is_not_applied_and_may_be_made_again() {
    let Some(world) = World::new("a_plan_of_a_state_that_has_moved_on") else { return };
    world.run(&["plan"]);
    assert!(world.by_hand(&["apply", "-auto-approve"]).status().unwrap().success());
    let run = world.apply().run();
    assert_eq!(run.code, 75, "{}", run.stderr);
    assert!(reason(&run).starts_with("pvn-wrapper: the plan is stale: "), "{}", reason(&run));
    // Another lineage: somebody began the state anew.
    world.run(&["plan"]);
    std::fs::remove_file(world.path("terraform.tfstate")).unwrap();
    assert!(world.by_hand(&["apply", "-auto-approve"]).status().unwrap().success());
    let run = world.apply().run();
    assert_eq!(run.code, 75, "{}", run.stderr);
}

/// An apply by hand that holds the lock of the state.
fn holding(world: &World) -> Child {
    world.run(&["plan"]);
    let mut apply = world.by_hand(&["apply", "-auto-approve"]);
    let child = apply.env("TF_VAR_slow", "30").spawn().unwrap();
    until("the resource is being made", || world.path("made.txt").exists().then_some(()));
    child
}

#[test]
fn a_lock_is_told_with_its_owner_and_may_pass() {
    let Some(world) = World::new("a_lock_is_told_with_its_owner_and_may_pass") else { return };
    let mut holder = holding(&world);
    let run = world.run(&["plan"]);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(run.code, 75, "{}", run.stderr);
    let reason = reason(&run);
    assert!(
        reason.starts_with("pvn-wrapper: the state is locked by ")
            && reason.contains("(OperationTypeApply) since 2")
            && reason.contains("force-unlock "),
        "{reason}"
    );
}

#[test]
fn a_stop_is_the_tools_to_end_by() {
    let Some(world) = World::new("a_stop_is_the_tools_to_end_by") else { return };
    world.run(&["plan"]);
    let slow = world.run(&["plan", "--pre-run", "export TF_VAR_slow=30"]);
    assert_eq!(slow.code, 2, "{}", slow.stderr);
    let running = world.apply().spawn();
    until("the resource is being made", || world.path("made.txt").exists().then_some(()));
    running.signal(15);
    let run = running.wait();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(said.contains("Interrupt received."), "{said}{}", run.stderr);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(reason(&run).contains("was asked to stop, and did"), "{}", reason(&run));
    let held = Path::new(".terraform.tfstate.lock.info");
    assert!(!world.directory.path().join(held).exists(), "the lock is free");
}

#[test]
fn an_apply_ends_well_when_the_wrapper_around_it_is_killed() {
    let Some(world) = World::new("an_apply_ends_well_when_the_wrapper_around_it_is_killed") else {
        return;
    };
    let slow = world.run(&["plan", "--pre-run", "export TF_VAR_slow=2"]);
    assert_eq!(slow.code, 2, "{}", slow.stderr);
    let running = world.apply().spawn();
    until("the resource is being made", || world.path("made.txt").exists().then_some(()));
    running.signal(9);
    // It prints the end of what it makes before it saves the state.
    let lock = world.path(".terraform.tfstate.lock.info");
    until("terraform to have ended", || (!lock.exists()).then_some(()));
    let state = std::fs::read_to_string(world.path("terraform.tfstate")).unwrap_or_default();
    assert!(state.contains("\"name\": \"made\""), "what was made is in no state: {state}");
}

#[test]
fn an_apply_ends_well_when_the_process_that_calls_it_is_killed() {
    let Some(world) = World::new("an_apply_ends_well_when_the_process_that_calls_it_is_killed")
    else {
        return;
    };
    // Longer than the drain and what a left-over that was asked to end has.
    let slow = world.run(&["plan", "--pre-run", "export TF_VAR_slow=8"]);
    assert_eq!(slow.code, 2, "{}", slow.stderr);
    let running = world.apply().spawn();
    until("the resource is being made", || world.path("made.txt").exists().then_some(()));
    running.kill_command();
    let run = running.wait();
    let state = std::fs::read_to_string(world.path("terraform.tfstate")).unwrap_or_default();
    assert!(state.contains("\"name\": \"made\""), "what was made is in no state: {state}");
    assert!(!world.path(".terraform.tfstate.lock.info").exists(), "the lock is free");
    assert_eq!(run.report.signal.as_deref(), Some("SIGKILL"));
}

#[test]
fn what_runs_first_has_the_last_word_on_the_environment_and_its_failure_is_no_work() {
    let Some(world) = World::new("what_runs_first_has_the_last_word") else { return };
    let run = world.run(&["plan", "--pre-run", "cd elsewhere", "--pre-run", "true"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    std::fs::create_dir(world.path("elsewhere")).unwrap();
    std::fs::rename(world.path("main.tf"), world.path("elsewhere/main.tf")).unwrap();
    let run = world.run(&["plan", "--pre-run", "cd elsewhere"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    for (command, words) in [
        ("exit 2", "`preRun` failed with exit code 2"),
        ("if", "`preRun` failed with exit code 2"),
        ("exit 0", "`preRun` ended before the tool was run"),
    ] {
        let run = world.run(&["plan", "--pre-run", command]);
        assert_eq!(run.code, 1, "{command}: {}", run.stderr);
        assert!(reason(&run).contains(words), "{command}: {}", reason(&run));
        assert!(handed_over(&run).is_empty(), "{command}");
    }
}

#[test]
fn a_failure_is_told_in_a_sentence() {
    let Some(world) = World::new("a_failure_is_told_in_a_sentence") else { return };
    std::fs::write(world.path("main.tf"), "resource \"x\" {").unwrap();
    let run = world.run(&["plan"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(reason(&run).contains("init` failed with exit code 1: Error: "), "{}", reason(&run));
    std::fs::create_dir(world.path("bin")).unwrap();
    // That starts the wrapper.
    std::os::unix::fs::symlink("/usr/bin/env", world.path("bin/env")).unwrap();
    let run = world.wrapper(&["plan"]).env("PATH", world.path("bin")).run();
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(reason(&run).contains("neither `terraform` nor `tofu`"), "{}", reason(&run));
    let run = world.run(&["plan", "--init-args", "-backend-config='open"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(reason(&run).contains("a quote is not closed"), "{}", reason(&run));
    let output = world.wrapper(&["plan", "--nonsense"]).command.output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", String::from_utf8_lossy(&output.stderr));
    let run = world.run(&["apply"]);
    assert_eq!(run.code, 125, "without a plan nothing is applied: {}", run.stderr);
}

/// Where only this program is `terraform`, if any.
fn with_program(world: &World, script: Option<&str>) -> Wrapper {
    let bin = world.path("other");
    std::fs::create_dir_all(&bin).unwrap();
    for name in ["env", "sh"] {
        // That starts the wrapper.
        let _ = std::os::unix::fs::symlink(format!("/usr/bin/{name}"), bin.join(name));
    }
    if let Some(script) = script {
        write_program(&bin.join("terraform"), script.as_bytes(), 0o755);
    }
    world.wrapper(&["check"]).env("PATH", bin)
}

#[test]
fn a_check_tries_program_backend_and_state_and_leaves_nothing() {
    let Some(world) = World::new("a_check_tries_program_backend_and_state") else { return };
    let run = world.run(&["check"]);
    let (short, findings) = found(&run);
    assert_eq!(short, "tool ., target ., target .", "{findings:#?}");
    assert!(findings[0].message.starts_with(&format!("`{}` is 1.", world.terraform)));
    assert_eq!(findings[2].message, "the state can be read: none yet");
    assert!(run.stderr.contains(&format!("+ {} version -json\n", world.terraform)));
    assert!(run.stderr.contains(" init -input=false -no-color -reconfigure\n"), "{}", run.stderr);
    let left: Vec<_> = std::fs::read_dir(world.path("own")).unwrap().collect();
    assert!(left.is_empty() && !world.path(".terraform").exists(), "{left:?}");

    world.run(&["plan"]);
    assert_eq!(world.apply().run().code, 0);
    let run = world.run(&["check"]);
    let (_, findings) = found(&run);
    assert!(findings[2].message.contains(": serial "), "{findings:#?}");
    assert!(!run.stderr.contains("hunter2") && !run.text().contains("hunter2"));
}

#[test]
fn a_check_tells_what_is_missing_one_thing_at_a_time() {
    let Some(world) = World::new("a_check_tells_what_is_missing_one_thing_at_a_time") else {
        return;
    };
    let missing = with_program(&world, None).run();
    finds(&missing, "tool FAILED, target -", "neither `terraform` nor `tofu` was found");
    let old = "#!/bin/sh\necho '{\"terraform_version\":\"0.15.5\"}'\n";
    let old = with_program(&world, Some(old)).run();
    finds(&old, "tool FAILED, target -", "`terraform` is 0.15.5, which is too old");
    let older = with_program(&world, Some("#!/bin/sh\necho Terraform v0.11\n")).run();
    finds(
        &older,
        "tool FAILED, target -",
        "`terraform version` says `Terraform v0.11` and no JSON, so it is too old",
    );

    std::fs::create_dir(world.path("empty")).unwrap();
    let run = world.run(&["check", "--pre-run", "cd empty"]);
    let empty = format!("there is no configuration in {}", world.path("empty").display());
    finds(&run, "tool ., target FAILED", &empty);
    let run = world.run(&["check", "--pre-run", "exit 3"]);
    assert_eq!((run.code, run.text().as_str()), (1, ""), "{}", run.stderr);
    assert!(reason(&run).contains("`preRun` failed with exit code 3"), "{}", reason(&run));

    let main = std::fs::read_to_string(world.path("main.tf")).unwrap();
    let elsewhere = "backend \"http\" { address = \"http://127.0.0.1:1/state\" }";
    let other = main.replace("backend \"local\" {}", elsewhere);
    std::fs::write(world.path("main.tf"), other).unwrap();
    let quick = ["check", "--init-args", "-backend-config=retry_max=0"];
    finds(&world.run(&quick), "tool ., target FAILED", "the backend that keeps the state cannot");
    std::fs::write(world.path("main.tf"), main.replace("local", "nowhere")).unwrap();
    finds(
        &world.run(&["check"]),
        "tool ., target FAILED",
        "init` failed with exit code 1: Error: ",
    );
}
