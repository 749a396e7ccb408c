//! The wrapper's side of a local job's spool directory.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use schema::id::BlobId;
use schema::report::Report;
use schema::spool::{CLAIM, Claim, FILES, INPUTS, REPORT};

use crate::run::until;

fn job(directory: &Path, command: &[&str]) -> Command {
    let mut wrapper = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
    wrapper.args(["exec", "--job"]).arg(directory).arg("--").args(command).current_dir(directory);
    wrapper.env("PVN_JOB_DIR", directory).stdin(Stdio::null());
    wrapper
}

fn report(directory: &Path) -> Report {
    serde_json::from_slice(&std::fs::read(directory.join(REPORT)).unwrap()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_job_is_claimed_before_its_command_runs_and_reported_when_it_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        job(directory.path(), &["sh", "-c", &format!("cat {CLAIM}; exit 3")]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let claim: Claim = serde_json::from_slice(&output.stdout).unwrap();
    assert!(matches!(claim, Claim::Wrapper { .. }));
    assert_eq!(report(directory.path()).exit_code, Some(3));
    let mut left: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, [CLAIM, REPORT], "a small job makes two files");
}

#[test]
fn p1_of_many_wrappers_of_one_job_one_starts_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let mut wrappers: Vec<_> = (0..8)
        .map(|_| {
            job(directory.path(), &["sh", "-c", "echo x >> ran"])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let codes: Vec<_> =
        wrappers.iter_mut().map(|wrapper| wrapper.wait().unwrap().code().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 125).count(), 7, "{codes:?}");
    assert_eq!(std::fs::read_to_string(directory.path().join("ran")).unwrap(), "x\n");
}

#[test]
fn p1_a_job_that_the_daemon_claimed_runs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(CLAIM), serde_json::to_vec(&Claim::Scheduler).unwrap())
        .unwrap();
    let output = job(directory.path(), &["touch", "ran"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(said(&output).contains("was claimed before"), "{}", said(&output));
    assert!(!directory.path().join("ran").exists() && !directory.path().join(REPORT).exists());
}

#[test]
fn a_job_without_directory_runs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let output = job(directory.path(), &["true"])
        .args(["ignored"])
        .env("PVN_JOB_DIR", "x")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let missing = directory.path().join("missing");
    let output = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"))
        .args(["exec", "--job"])
        .arg(&missing)
        .args(["--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        said(&output).contains("failed to claim the job") && said(&output).contains("missing"),
        "{}",
        said(&output)
    );
}

#[test]
fn p6_a_job_is_in_a_session_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let output = job(directory.path(), &["sh", "-c", "ps -o sid= -p $$ | tr -d ' '; echo $PPID"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (session, wrapper) = text.trim().split_once('\n').unwrap();
    assert_eq!(session, wrapper);
}

#[test]
fn a_refused_command_is_reported_too() {
    let directory = tempfile::tempdir().unwrap();
    let output = job(directory.path(), &["no-such-command"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(report(directory.path()).exec_error.unwrap().contains("no-such-command"));
}

#[test]
fn wrong_arguments_are_reported_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut wrapper = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
    let output = wrapper
        .args(["exec", "--job"])
        .arg(directory.path())
        .args(["--nonsense", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(report(directory.path()).exec_error.unwrap().contains("--nonsense"));
}

#[test]
fn output_can_be_read_along() {
    let directory = tempfile::tempdir().unwrap();
    let mut running =
        job(directory.path(), &["sh", "-c", "echo hello; until [ -e go ]; do sleep 0.01; done"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
    let stdout = directory.path().join("stdout");
    until("the stream is there", || {
        std::fs::read_to_string(&stdout).ok().filter(|text| text == "hello\n")
    });
    std::fs::write(directory.path().join("go"), "").unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(0));
}

#[test]
fn the_claim_is_locked_as_long_as_the_wrapper_lives() {
    let directory = tempfile::tempdir().unwrap();
    let mut running =
        job(directory.path(), &["sh", "-c", "echo x > ready; exec sleep 60"]).spawn().unwrap();
    until("the command runs", || std::fs::read_to_string(directory.path().join("ready")).ok());
    let locked = || {
        let claim = std::fs::File::open(directory.path().join(CLAIM)).unwrap();
        claim.try_lock_shared().is_err()
    };
    assert!(locked());
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(!locked(), "the command does not hold it");
    assert!(!directory.path().join(REPORT).exists());
    let Claim::Wrapper { pid, .. } =
        serde_json::from_slice(&std::fs::read(directory.path().join(CLAIM)).unwrap()).unwrap()
    else {
        panic!("claimed by a daemon")
    };
    assert_eq!(pid, running.id().cast_signed());
    // The command itself was orphaned; the daemon finds it by its environment, this test by its
    // session.
    let ended = Command::new("pkill").args(["-KILL", "-s", &pid.to_string()]).status().unwrap();
    assert!(ended.success());
}

#[test]
fn the_sooner_of_two_timeouts_holds() {
    for (flag, other) in
        [("--timeout=50ms", "--job-timeout=1h"), ("--timeout=1h", "--job-timeout=50ms")]
    {
        let directory = tempfile::tempdir().unwrap();
        let mut wrapper = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
        let status = wrapper
            .args(["exec", "--job"])
            .arg(directory.path())
            .args([other, flag, "--", "sleep", "60"])
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(143));
        assert!(report(directory.path()).timed_out);
    }
}

#[test]
fn a_flag_given_twice_is_the_later_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut wrapper = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
    let status = wrapper
        .args(["exec", "--job"])
        .arg(directory.path())
        .args([
            "--success-exit-codes=0",
            "--out",
            "a=missing",
            "--success-exit-codes=3",
            "--leave-running",
            "--leave-running",
            "--",
            "true",
        ])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(report(directory.path()).files.len(), 1);
}

/// A directory with `inputs/REF`: bytes, or a link to another of them.
fn with_inputs(inputs: &[(&str, Result<&str, &str>)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join(INPUTS);
    std::fs::create_dir(&place).unwrap();
    for (name, what) in inputs {
        match what {
            Ok(bytes) => std::fs::write(place.join(name), bytes).unwrap(),
            Err(link) => std::os::unix::fs::symlink(link, place.join(name)).unwrap(),
        }
    }
    directory
}

#[test]
fn p2_a_local_jobs_plan_that_is_not_the_one_that_was_decided_on_is_not_applied() {
    let [plan, other] =
        ["the plan", "another"].map(|bytes| BlobId::of(bytes.as_bytes()).to_string());
    let check = |inputs: &[(&str, Result<&str, &str>)],
                 reference: &str,
                 variables: &[(&str, &str)],
                 said: &[&str]| {
        // As the job's own command, and within it.
        for is_nested in [false, true] {
            let directory = with_inputs(inputs);
            let mut wrapper = if is_nested {
                let mut nested = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
                nested
                    .arg("exec")
                    .current_dir(directory.path())
                    .env("PVN_JOB_DIR", directory.path())
                    .stdin(Stdio::null());
                nested
            } else {
                let mut own = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
                own.args(["exec", "--job"])
                    .arg(directory.path())
                    .current_dir(directory.path())
                    .stdin(Stdio::null());
                own
            };
            wrapper.args([
                "--in",
                &format!("tf.plan={reference}"),
                "--",
                "sh",
                "-c",
                "cat tf.plan; echo > ran",
            ]);
            let output = wrapper.envs(variables.iter().copied()).output().unwrap();
            let why = format!(
                "{}{}",
                self::said(&output),
                if is_nested {
                    String::new()
                } else {
                    format!("{:?}", report(directory.path()).exec_error)
                }
            );
            let ran = directory.path().join("ran").exists();
            if said.is_empty() {
                assert_eq!(
                    (output.status.code(), output.stdout.as_slice(), ran),
                    (Some(0), &b"the plan"[..], true),
                    "{why}"
                );
            } else {
                assert_eq!(
                    (output.status.code(), ran, directory.path().join("tf.plan").exists()),
                    (Some(125), false, false),
                    "{why}"
                );
                assert!(
                    said.iter().all(|word| why.contains(word)),
                    "not all of {said:?} in: {why}"
                );
            }
        }
    };
    let variable = "PVN_FETCH_PLAN_BLOB_ID";
    let linked = |bytes| [("fetch:plan", Err(plan.as_str())), (plan.as_str(), Ok(bytes))];
    let alone = |bytes| [("fetch:plan", Ok(bytes))];
    check(&linked("the plan"), "fetch:plan", &[(variable, &plan)], &[]);
    check(&linked("the plan"), "fetch:plan", &[], &[]);
    check(&linked("the plan"), &plan, &[(variable, &other)], &[]);
    // As a daemon of before hands it over.
    check(&alone("the plan"), "fetch:plan", &[(variable, &plan)], &[]);
    check(&alone("the plan"), "fetch:plan", &[], &[]);
    for cut in ["the p", "", "another"] {
        let arrived = BlobId::of(cut.as_bytes()).to_string();
        check(&linked(cut), "fetch:plan", &[(variable, &plan)], &[&plan, &arrived]);
        check(&linked(cut), "fetch:plan", &[], &[&plan, &arrived]);
        check(&linked(cut), &plan, &[], &[&plan, &arrived]);
        check(&alone(cut), "fetch:plan", &[(variable, &plan)], &[variable, &plan, &arrived]);
    }
    check(
        &linked("the plan"),
        "fetch:plan",
        &[(variable, &other)],
        &[variable, &plan, &other, "unset"],
    );
    check(&linked("the plan"), "fetch:plan", &[(variable, "the plan")], &[variable, "no blob id"]);
    // Inherited together with another job's id: it is that one's.
    check(
        &linked("the plan"),
        "fetch:plan",
        &[(variable, &other), ("PVN_JOB_ID", "job-0123456789abcdef0123456789abcdef")],
        &[],
    );
}

#[test]
fn an_explanation_of_a_wrapper_within_the_command_is_masked_with_what_only_the_outer_one_knows() {
    let wrapper = env!("CARGO_BIN_EXE_pvn-wrapper");
    let text = "echo '- hunter2-before + hunter2-now'";
    let inner = "--out plan-explanation=x --out plan=p -- sh -c";
    let script =
        format!("{wrapper} exec {inner} \"{text} | tee x >p\"; env | grep HIDDEN_0=; true");
    let directory = tempfile::tempdir().unwrap();
    let mut outer = job(directory.path(), &["sh", "-c", &script]);
    outer
        .env("PVN_SECRET_KEYS", "A,PVN_HIDDEN_0")
        .env("A", "hunter2-now")
        .env("PVN_HIDDEN_0", "hunter2-before");
    let output = outer.output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let left =
        |name: &str| std::fs::read_to_string(directory.path().join(FILES).join(name)).unwrap();
    assert_eq!(left("plan-explanation"), "- *** + ***\n");
    assert_eq!(left("plan"), "- hunter2-before + hunter2-now\n", "it is for the command alone");
    assert_eq!(
        std::fs::read_dir(directory.path().join(FILES)).unwrap().count(),
        2,
        "nothing else is left"
    );
}

#[test]
fn an_explanation_of_a_wrapper_within_the_command_that_cannot_be_masked_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!("mkdir -p {FILES}; mkfifo {FILES}/plan-explanation");
    let mut outer = job(directory.path(), &["sh", "-c", &script]);
    let output = outer
        .env("PVN_SECRET_KEYS", "PVN_HIDDEN_0")
        .env("PVN_HIDDEN_0", "hunter2-before")
        .output()
        .unwrap();
    assert!(output.status.success() && said(&output).contains("is left out"), "{output:?}");
    assert!(!directory.path().join(FILES).join("plan-explanation").exists());
}
