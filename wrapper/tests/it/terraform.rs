//! Why asking goes to the root alone, on the tool that the rule was made for: the real `terraform`
//! (or OpenTofu) with a real provider plugin, asked to stop in the middle of an apply.
//!
//! The operation that runs is a `local_file` whose path is a named pipe: it goes on until the test
//! reads the pipe.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{Run, Running, Wrapper, until};
use crate::skipped;

const TERM: i32 = 15;

/// What the running operation writes, when it may.
const CONTENT: &str = "written in the end";

/// Two resources, the second after the first, which takes its time.
const CONFIG: &str = r#"
terraform {
  required_providers {
    local = { source = "registry.terraform.io/hashicorp/local", version = "1.4.0" }
  }
}

resource "local_file" "slow" {
  filename = "pipe"
  content  = "written in the end"
}

resource "local_file" "after" {
  filename = "after.txt"
  content  = local_file.slow.id
}
"#;

/// `terraform apply` under the wrapper, in the middle of the slow operation.
struct Applying {
    terraform: &'static str,
    running: Running,
}

/// The provider plugin that `.ci/run` builds.
fn provider() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("pvn-ci/terraform-provider-local-v1.4.0/terraform-provider-local"))
        .filter(|file| file.is_file())
}

pub(crate) fn terraform() -> Option<&'static str> {
    let runs = |name: &&str| {
        Command::new(name).arg("version").output().is_ok_and(|output| output.status.success())
    };
    ["terraform", "tofu"].into_iter().find(runs)
}

impl Applying {
    /// `None`, counted as skipped, without the tools.
    fn start(test: &str, flags: &[&str]) -> Option<Self> {
        let Some(terraform) = terraform() else {
            skipped(test, "neither terraform nor tofu is on PATH");
            return None;
        };
        let Some(provider) = provider() else {
            skipped(
                test,
                "the plugin `local` is not in the cache: `.ci/run` builds it where there is Go",
            );
            return None;
        };
        let wrapper = Wrapper::new(flags, &[terraform, "apply", "-auto-approve", "-no-color"])
            .with_default_signals();
        let mirror = wrapper.path("mirror");
        let place = mirror.join("registry.terraform.io/hashicorp/local/1.4.0/linux_amd64");
        std::fs::create_dir_all(&place).unwrap();
        std::os::unix::fs::symlink(provider, place.join("terraform-provider-local_v1.4.0"))
            .unwrap();
        let settings = format!(
            "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
            mirror.display()
        );
        std::fs::write(wrapper.path("settings.tfrc"), settings).unwrap();
        std::fs::write(wrapper.path("main.tf"), CONFIG).unwrap();
        let settings = wrapper.path("settings.tfrc");
        let environment = [
            ("TF_CLI_CONFIG_FILE", settings.to_str().unwrap()),
            ("TF_IN_AUTOMATION", "1"),
            ("TF_INPUT", "0"),
            ("CHECKPOINT_DISABLE", "1"),
        ];
        let init = Command::new(terraform)
            .args(["init", "-no-color"])
            .envs(environment)
            .current_dir(wrapper.directory.path())
            .output();
        let init = init.unwrap();
        assert!(
            init.status.success(),
            "{}{}",
            String::from_utf8_lossy(&init.stdout),
            String::from_utf8_lossy(&init.stderr)
        );
        assert!(Command::new("mkfifo").arg(wrapper.path("pipe")).status().unwrap().success());

        let mut wrapper =
            environment.into_iter().fold(wrapper, |wrapper, (key, value)| wrapper.env(key, value));
        let output = std::fs::File::create(wrapper.path("output")).unwrap();
        wrapper.command.stdout(output);
        let applying = Self { terraform, running: wrapper.spawn() };
        applying.until_said("local_file.slow: Creating...");
        Some(applying)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.running.path("output")).unwrap()
    }

    fn until_said(&self, what: &str) {
        until(&format!("terraform says `{what}`"), || self.said().contains(what).then_some(()));
    }

    /// The names of what the state holds.
    fn state(terraform: &str, run: &Run) -> Vec<String> {
        let list = Command::new(terraform)
            .args(["state", "list"])
            .current_dir(run.directory.path())
            .output()
            .unwrap();
        String::from_utf8(list.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

#[test]
fn term_during_a_terraform_apply_ends_the_running_operation_cleanly_and_saves_the_state() {
    let test =
        "term_during_a_terraform_apply_ends_the_running_operation_cleanly_and_saves_the_state";
    let Some(applying) = Applying::start(test, &["--kill-after", "5m"]) else { return };
    applying.running.signal(TERM);
    applying.until_said("Interrupt received.");
    // It was asked and waits for its plugin; only now may the operation end.
    assert_eq!(std::fs::read_to_string(applying.running.path("pipe")).unwrap(), CONTENT);
    let terraform = applying.terraform;
    let run = applying.running.wait();
    let said = std::fs::read_to_string(run.path("output")).unwrap();
    assert!(said.contains("local_file.slow: Creation complete"), "{said}{}", run.stderr);
    assert_eq!(
        (run.code, run.report.signal.as_deref(), run.report.killed_after_grace),
        (1, None, false),
        "{said}{}",
        run.stderr
    );
    assert_eq!(
        Applying::state(terraform, &run),
        ["local_file.slow"],
        "what was done is on record, and nothing else was begun"
    );
    assert!(!run.path("after.txt").exists() && !run.path(".terraform.tfstate.lock.info").exists());
    assert!(run.report.leaked.is_empty(), "{:?}", run.report.leaked);
}

#[test]
fn term_to_the_whole_group_loses_the_operation_which_is_why_it_goes_to_the_root() {
    let test = "term_to_the_whole_group_loses_the_operation_which_is_why_it_goes_to_the_root";
    let Some(applying) = Applying::start(test, &["--kill-after", "5m", "--signal-scope", "group"])
    else {
        return;
    };
    applying.running.signal(TERM);
    let terraform = applying.terraform;
    let run = applying.running.wait();
    // Of a plugin that is gone terraform says "failed to respond" or "cancelled", whichever it
    // hears of first.
    assert!(run.stderr.contains("ApplyResourceChange"), "{}", run.stderr);
    assert_eq!((run.code, Applying::state(terraform, &run)), (1, Vec::new()));
}
