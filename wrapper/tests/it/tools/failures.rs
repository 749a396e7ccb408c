//! Failures that each tool may have, told by programs that stand in for the tools: one that cannot
//! be run, one that says what nobody knows, one that is killed.

use std::path::{Path, PathBuf};

use super::finds;
use crate::run::{Run, Wrapper, write_program};

/// A service of Cloud Run.
const SERVICE: &str = r#"{"apiVersion":"serving.knative.dev/v1","kind":"Service",
    "metadata":{"name":"web"},"spec":{"template":{}}}"#;

/// Each tool: the program that it calls, and arguments of the wrapper behind the step.
const TOOLS: &[(&str, &str, &str, &[&str])] = &[
    ("terraform", "terraform", "plan", &[]),
    ("pulumi", "pulumi", "preview", &["--stack", "dev"]),
    ("aws", "aws-ecs", "fetch", &["--service-name", "web", "--task-definition", "{}"]),
    (
        "gcloud",
        "google-cloud-run",
        "fetch",
        &["--project", "p", "--region", "r", "--service-spec", SERVICE],
    ),
];

/// A place in which nothing but a shell and what stands in can be called.
struct StandIns {
    directory: tempfile::TempDir,
}

impl StandIns {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["env", "sh", "sleep"] {
            let program = directory.path().join(name);
            std::os::unix::fs::symlink(format!("/usr/bin/{name}"), program).unwrap();
        }
        Self { directory }
    }

    fn path(&self, program: &str) -> PathBuf {
        self.directory.path().join(program)
    }

    /// Puts a script in a tool's place.
    fn is(&self, program: &str, script: &str, mode: u32) {
        write_program(&self.path(program), script.as_bytes(), mode);
    }

    /// A step of a tool, or its own `check`.
    fn run(&self, tool: &str, step: &str, more: &[&str]) -> Run {
        self.job(tool, step, more).run()
    }

    fn job(&self, tool: &str, step: &str, more: &[&str]) -> Wrapper {
        let command = [&["pvn-wrapper", tool, step], more].concat();
        let wrapper = Wrapper::new(&[], &command).env("PATH", self.directory.path());
        let environment = [
            ("PVN_SERVICE_ID", "srv-1"),
            ("PVN_RELEASE_CHANNEL_ID", "chn-1"),
            ("PVN_SERVICE_VERSION", "web-1"),
        ];
        environment.iter().fold(wrapper, |job, (key, value)| job.env(key, value))
    }
}

/// The last line of standard error, which people are shown.
fn reason(run: &Run) -> &str {
    run.stderr.lines().last().unwrap_or_default()
}

/// That each tool, with this script in its place, fails with these words.
#[track_caller]
fn fails(script: &str, mode: u32, words: impl Fn(&Path) -> Vec<String>) {
    for (program, tool, step, more) in TOOLS {
        let world = StandIns::new();
        world.is(program, script, mode);
        let run = world.run(tool, step, more);
        assert_eq!(run.code, 1, "{tool}: {}", run.stderr);
        for words in words(&world.path(program)) {
            assert!(reason(&run).contains(&words), "{tool}: {words:?} is not in {}", reason(&run));
        }
    }
}

#[test]
fn a_program_that_cannot_be_run_is_named_with_what_it_lacks() {
    fails("#!/bin/sh\n", 0o644, |path| {
        vec![format!("{} is not executable", path.display()), "chmod +x ".to_owned()]
    });
    fails("#!/nowhere/python3\n", 0o755, |path| {
        vec![format!("the interpreter `/nowhere/python3` of `{}` was not found", path.display())]
    });
    for (program, tool, _, more) in TOOLS {
        let world = StandIns::new();
        world.is(program, "#!/bin/sh\n", 0o644);
        let run = world.run(tool, "check", more);
        let rest = if *tool == "terraform" { "" } else { "credentials -, " };
        let words = format!("{} is not executable", world.path(program).display());
        finds(&run, &format!("tool FAILED, {rest}target -"), &words);
    }
}

#[test]
fn a_program_that_is_killed_is_told_by_the_signal() {
    let words = |words: &'static str| move |_: &Path| vec![words.to_owned()];
    fails("#!/bin/sh\nkill -9 $$\n", 0o755, words("` was killed by SIGKILL: "));
    fails("#!/bin/sh\nkill -SEGV $$\n", 0o755, words("` was killed by SIGSEGV"));
    // As where a program is a script around another.
    fails("#!/bin/sh\nsh -c 'kill -9 $$'\nexit $?\n", 0o755, words("is killed by SIGKILL: "));
    for (program, tool, step, more) in TOOLS {
        let world = StandIns::new();
        world.is(program, "#!/bin/sh\n", 0o755);
        let more = [more, &["--pre-run", "sh -c 'kill -9 $$'"][..]].concat();
        let run = world.run(tool, step, &more);
        assert_eq!(run.code, 1, "{tool}: {}", run.stderr);
        assert!(reason(&run).contains("`preRun` failed with exit code 137, as where"), "{tool}");
    }
}

/// A script that says this on standard error, and fails.
fn says(text: &str) -> String {
    format!("#!/bin/sh\necho '{text}' >&2\nexit 1\n")
}

#[test]
fn words_that_nobody_knows_are_told_all_the_same() {
    let usage = "Usage: it [options]\n\n  -a  means all of it\n".repeat(200);
    for more in ["", &format!("\n{usage}")] {
        let said = says(&format!("flag provided but not defined: -json{more}"));
        fails(&said, 0o755, |_| {
            vec!["failed with exit code 1: ".to_owned(), "not defined: -json".to_owned()]
        });
    }
    for (program, tool, step, more) in TOOLS {
        let world = StandIns::new();
        world.is(program, &says(&"word ".repeat(10_000)), 0o755);
        let run = world.run(tool, step, more);
        let letters = reason(&run).chars().count();
        assert!((100..500).contains(&letters), "{tool}: {letters}: {}", reason(&run));
    }
    let world = StandIns::new();
    world.is("terraform", "#!/bin/sh\necho Terraform v0.11.14\n", 0o755);
    let run = world.run("terraform", "check", &[]);
    finds(&run, "tool FAILED, target -", "`terraform version` says `Terraform v0.11.14`");
}

#[test]
fn what_is_no_answer_is_not_taken_for_a_service_that_has_no_versions() {
    let (.., more) = TOOLS.iter().find(|(program, ..)| *program == "gcloud").unwrap();
    let other = r#"{"kind": "Service", "metadata": {"name": "other"}}"#;
    for answer in ["null", "[]", "{}", "true", other] {
        for step in ["fetch", "apply", "info"] {
            let world = StandIns::new();
            world.is("gcloud", &format!("#!/bin/sh\necho '{answer}'\n"), 0o755);
            let run = world.run("google-cloud-run", step, more);
            assert_eq!(run.code, 1, "{step} of {answer}: {}", run.stderr);
            assert!(reason(&run).contains("printed something else than `web`"), "{}", reason(&run));
        }
    }
}

#[test]
fn a_reason_holds_the_cause_that_stands_in_a_later_line() {
    for (tool, said) in [
        (
            "terraform",
            "Warning: Old\n\nError: Failed to save state\n\nError saving state: write\n/state: no \
             space left on device\n\nError: Another\n",
        ),
        // A failure that is known, and its cause.
        (
            "terraform",
            "Error: Error acquiring the state lock\n\nError message: could not write lock info:\n\
             write /state.lock.info: no space left on device\n\nTerraform acquires a state lock\n",
        ),
        (
            "terraform",
            "╷\n│ Error: Failed to query available provider packages\n│\n│ Could not retrieve: no \
             space left on device\n╵\n╷\n│ Error: Another\n╵\n",
        ),
        ("pulumi", "warning: old\nerror: could not save the stack:\n  no space left on device\n"),
        ("pulumi", "error: connection refused by it\nbecause of: no space left on device\n"),
        (
            "aws",
            "\nAn error occurred (ClientException) when calling the X operation: Bad:\n* no space \
             left on device\n",
        ),
        (
            "gcloud",
            "WARNING: old\nERROR: (gcloud.run.services.list) Failed to parse value in protobuf \
             [Service]:\n  - @type: x\n  Service.spec: no space left on device\n\nIf you would \
             like: Another\n",
        ),
    ] {
        let world = StandIns::new();
        world.is(tool, &says(said), 0o755);
        let (_, command, step, more) = TOOLS.iter().find(|(program, ..)| *program == tool).unwrap();
        let run = world.run(command, step, more);
        let reason = reason(&run);
        assert!(reason.contains("no space left on device"), "{said}: {reason}");
        for other in ["Another", "old", "Old", "@type"] {
            assert!(!reason.contains(other), "{reason}");
        }
        assert!(reason.chars().count() < 450, "{reason}");
    }
}

#[test]
fn a_check_tries_to_write_where_jobs_write() {
    let test = "a_check_tries_to_write_where_jobs_write";
    if let Some(why) = crate::kernel::no_namespaces() {
        return crate::skipped(test, &format!("no namespaces here: {why}"));
    }
    let full = "head -c 2000000 /dev/zero >\"$OWN\"/fill 2>/dev/null";
    for (state, why) in [(full, "No space left"), ("mount -o remount,ro \"$OWN\"", "Read-only")] {
        for (program, tool, _, more) in TOOLS {
            let world = StandIns::new();
            world.is(program, "#!/bin/sh\n", 0o755);
            let own = tempfile::tempdir().unwrap();
            let script = format!(
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin; mount -t tmpfs -o size=1m none \"$OWN\" && \
                 {{ {state}; PATH=$TOOLS exec \"$0\" \"$@\"; }}"
            );
            let job = world.job(tool, "check", more).env("PVN_INSTANCE_DIR", own.path());
            let job = job.env("OWN", own.path()).env("TOOLS", world.directory.path());
            let run = job.through("/usr/bin/unshare", ["-m", "/bin/sh", "-c", &script]).run();
            finds(&run, "directory FAILED", "no file can be written in ");
            let (_, findings) = super::found(&run);
            assert!(findings[0].message.contains(why), "{tool}: {findings:?}");
        }
    }
}
