//! The cases, each with its commands and what happens after the first release.

use serde_json::{Value, json};

use super::{Case, with};

const NO_MORE: fn() -> Value = || json!({});

/// Is what was released what there is?
const LOOK: &[&str] = &["sh", "-c", "[ \"$(cat state)\" = \"$PVN_SERVICE_VERSION\" ] || exit 2"];

/// Makes it so.
const DO: &[&str] = &["sh", "-c", "echo \"$PVN_SERVICE_VERSION\" > state"];

fn fetch(command: &Value, mode: &str) -> Value {
    let mut fetch =
        json!({"pollInterval": "1s", "steadyStatePollInterval": "2s", "fetchMode": mode});
    fetch
        .as_object_mut()
        .expect("it is one")
        .extend(command.as_object().expect("it is one").clone());
    fetch
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "exit-code",
        custom: |command| json!({"fetch": fetch(&command(LOOK), "EXIT_CODE"), "apply": command(DO), "convergenceGracePeriod": "2s"}),
        service: NO_MORE,
        play: |it| {
            it.becomes("CONVERGED", None);
            assert!(
                it.jobs("fetch")
                    .iter()
                    .any(|job| job["exitCode"] == 2 && job["status"] == "SUCCEEDED"),
                "the first fetch found work"
            );
            it.write("state", "something else");
            it.until("the drift to be repaired", || {
                (it.file("state")?.trim() == "s-1").then_some(())
            });
            it.becomes("CONVERGED", None);
        },
    },
    Case {
        name: "structured",
        custom: |command| {
            let script = r#"[ -e state ] || echo none > state
echo '{"objects": [{"name": "o", "objectType": "T", "status": "SUCCEEDED", "versions": [{"version": "'$(cat state)'", "active": true}]}]}'"#;
            json!({"fetch": fetch(&command(&["sh", "-c", script]), "STRUCTURED_OUTPUT"), "apply": command(DO), "convergenceGracePeriod": "2s"})
        },
        service: NO_MORE,
        play: |it| {
            let channel = it.becomes("CONVERGED", None);
            assert_eq!(
                (&channel["objects"][0]["name"], &channel["objects"][0]["versions"][0]["version"]),
                (&json!("o"), &json!("s-1"))
            );
        },
    },
    Case {
        name: "apply-only",
        custom: |command| json!({"apply": command(&["sh", "-c", r"echo $PVN_JOB_KIND $PVN_ATTEMPT >> runs; printf 'out\000\377 no newline'; printf 'err\r\n' >&2"])}),
        service: NO_MORE,
        play: |it| {
            it.becomes("CONVERGED", None);
            assert_eq!(
                it.log("apply"),
                (b"out\0\xff no newline".to_vec(), b"err\r\n".to_vec()),
                "byte for byte, apart"
            );
            it.push();
            it.until("the second release to be applied", || {
                (it.file("runs")? == "apply 1\napply 1\n").then_some(())
            });
        },
    },
    Case {
        name: "exit-codes",
        custom: |command| json!({"apply": command(&["sh", "-c", "echo no credentials >&2; exit 7"])}),
        service: NO_MORE,
        play: |it| {
            let channel = it.becomes("FAILED", Some("APPLY_FAILED"));
            assert!(
                channel["message"]
                    .as_str()
                    .is_some_and(|said| said.contains("exit code 7: no credentials")),
                "{channel:#}"
            );
            assert_eq!(
                (&it.jobs("apply")[0]["status"], &it.jobs("apply")[0]["exitCode"]),
                (&json!("FAILED"), &json!(7))
            );
        },
    },
    Case {
        name: "retries",
        custom: |command| {
            let apply = command(&[
                "sh",
                "-c",
                r#"echo "$PVN_ATTEMPT" >> attempts; [ "$PVN_ATTEMPT" -ge 3 ] || exit 75"#,
            ]);
            json!({"apply": with(&apply, &json!({"retryableExitCodes": [75], "retryPolicy": {"baseInterval": "0.2s", "maxInterval": "1s"}}))})
        },
        service: NO_MORE,
        play: |it| {
            it.becomes("CONVERGED", None);
            let jobs = it.jobs("apply");
            let told: Vec<_> = jobs
                .iter()
                .map(|job| (job["attempt"].as_u64(), job["exitCode"].as_i64()))
                .collect();
            assert_eq!(
                told,
                [(Some(3), Some(0)), (Some(2), Some(75)), (Some(1), Some(75))],
                "{jobs:#?}"
            );
            assert_eq!(it.file("attempts").expect("the command ran"), "1\n2\n3\n");
        },
    },
    Case {
        name: "plan",
        custom: |command| {
            let plan = "[ \"$(cat state)\" = \"$PVN_SERVICE_VERSION\" ] && exit 0; echo \"plan of \
                        $PVN_SERVICE_VERSION\" > plan.bin; echo '1 to add' > plan.txt; exit 2";
            let look = [
                "pvn-wrapper",
                "exec",
                "--out",
                "plan=plan.bin",
                "--out",
                "plan-explanation=plan.txt",
                "--success-exit-codes",
                "2",
                "--",
                "sh",
                "-c",
                plan,
            ];
            let run = "cat handed.bin handed.txt > ran; echo \"$PVN_SERVICE_VERSION\" > state";
            let inputs =
                ["--in", "handed.bin=fetch:plan", "--in", "handed.txt=fetch:plan-explanation"];
            let apply = [&["pvn-wrapper", "exec"], &inputs[..], &["--", "sh", "-c", run]].concat();
            json!({"fetch": fetch(&command(&look), "EXIT_CODE"), "apply": command(&apply), "requireApprovalBeforeApply": true, "convergenceGracePeriod": "2s"})
        },
        service: NO_MORE,
        play: |it| {
            let waiting = it.becomes("WAITING_MANUAL_APPROVAL", None);
            assert_eq!(
                waiting["approvals"][0]["explanation"].as_str().map(str::trim),
                Some("1 to add"),
                "{waiting:#}"
            );
            assert!(it.jobs("apply").is_empty(), "nothing runs before somebody says yes");
            it.scheduler.ok(&[
                "services",
                "approve",
                "s",
                "--app",
                it.name,
                "--channel",
                "c",
                "--yes",
            ]);
            it.becomes("CONVERGED", None);
            assert_eq!(
                it.file("ran").expect("the apply ran"),
                "plan of s-1\n1 to add\n",
                "what was shown is what ran"
            );
        },
    },
    Case {
        name: "rejected",
        custom: |command| json!({"fetch": fetch(&command(LOOK), "EXIT_CODE"), "apply": command(DO), "requireApprovalBeforeApply": true}),
        service: NO_MORE,
        play: |it| {
            it.becomes("WAITING_MANUAL_APPROVAL", None);
            it.scheduler.ok(&[
                "services",
                "reject",
                "s",
                "--app",
                it.name,
                "--channel",
                "c",
                "--reason",
                "not today",
            ]);
            it.becomes("FAILED", Some("MANUAL_APPROVAL_REJECTED"));
            assert_eq!((it.jobs("apply").len(), it.file("state")), (0, None));
        },
    },
    Case {
        name: "timeout",
        custom: |command| json!({"apply": with(&command(&["sh", "-c", "echo > started; sleep 600"]), &json!({"timeout": "90s"}))}),
        service: NO_MORE,
        play: |it| {
            let channel = it.becomes("FAILED", Some("APPLY_FAILED"));
            assert!(it.file("started").is_some(), "{channel:#}");
            assert!(
                channel["message"].as_str().is_some_and(|said| said.contains("timeout of 1m30s")),
                "{channel:#}"
            );
        },
    },
    Case {
        name: "info",
        custom: |command| {
            let info =
                r#"echo '{"outputs": [{"name": "address", "text": "at '$PVN_SERVICE_VERSION'"}]}'"#;
            json!({"apply": command(DO), "getInfo": with(&command(&["sh", "-c", info]), &json!({"pollInterval": "2s"}))})
        },
        service: NO_MORE,
        play: |it| {
            it.becomes("CONVERGED", None);
            let told = json!([{"name": "address", "text": "at s-1"}]);
            it.until("the info", || (it.channel()["info"] == told).then_some(()));
        },
    },
    Case {
        name: "rollback",
        custom: |command| {
            let script = "[ ! -e broken ] || [ \"$PVN_SERVICE_VERSION\" = s-1 ] || exit 1; echo \
                          \"$PVN_SERVICE_VERSION\" > state";
            json!({"fetch": fetch(&command(LOOK), "EXIT_CODE"), "apply": command(&["sh", "-c", script]), "convergenceGracePeriod": "2s"})
        },
        service: || json!({"progressDeadline": "20s", "autoRollback": {"disabled": false}}),
        play: |it| {
            it.becomes("CONVERGED", None);
            it.write("broken", "");
            it.push();
            it.until("the release that is stuck to be followed by one that goes back", || {
                let channel = it.channel();
                let releases =
                    it.scheduler.json(&["releases", "list", "--app", it.name, "--service", "s"]);
                (channel["status"] == "CONVERGED"
                    && channel["desiredVersion"] == "s-1"
                    && releases.as_array()?.len() == 3)
                    .then_some(())
            });
            assert_eq!(it.file("state").expect("it was applied").trim(), "s-1");
        },
    },
    Case {
        name: "cancel",
        custom: |command| json!({"apply": command(&["sh", "-c", "trap 'echo > stopped; exit 3' TERM; echo > started; while :; do sleep 0.1; done"])}),
        service: NO_MORE,
        play: |it| {
            it.until("the apply to run", || it.file("started"));
            let job = it.jobs("apply").remove(0);
            it.scheduler.ok(&["jobs", "cancel", job["id"].as_str().expect("a job has an id")]);
            it.becomes("FAILED", Some("CANCELLED"));
            assert_eq!(
                (&it.jobs("apply")[0]["status"], it.jobs("apply").len()),
                (&json!("CANCELLED"), 1),
                "and no further attempt"
            );
            assert!(it.file("stopped").is_some(), "it was asked to stop");
        },
    },
    Case {
        name: "environment",
        custom: |command| json!({"apply": command(&["sh", "-c", "env | grep ^PVN_ > seen; echo it is $SECRET"]), "parameters": []}),
        service: || json!({"env": {"SECRET": {"rawSecret": "correct-horse"}}}),
        play: |it| {
            it.becomes("CONVERGED", None);
            let seen = it.file("seen").expect("the command ran");
            let has =
                |line: &str| assert!(seen.lines().any(|seen| seen == line), "no {line} in {seen}");
            has("PVN_SERVICE=s");
            has(&format!("PVN_APPLICATION={}", it.name));
            has("PVN_RELEASE_CHANNEL=c");
            has("PVN_SERVICE_VERSION=s-1");
            has("PVN_JOB_KIND=apply");
            has("PVN_ATTEMPT=1");
            assert!(!seen.contains("PVN_TOKEN"), "the command cannot speak for its job: {seen}");
            let (stdout, _) = it.log("apply");
            let said = String::from_utf8_lossy(&stdout).into_owned();
            assert!(
                said.starts_with("it is ") && !said.contains("correct-horse"),
                "masked: {said}"
            );
        },
    },
];
