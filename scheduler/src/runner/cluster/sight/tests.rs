//! What Jobs and Pods in all their states mean.

use serde_json::{Value, json};

use super::super::job;
use super::*;
use crate::runner::End;

mod taken;
mod tries;

const ONCE: SightSubject<'_> = SightSubject {
    container: "main",
    tries_again: false,
    deleted: false,
    started: false,
    ended_by_us: false,
    signer: None,
    needs_signature: false,
};

fn pod(status: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
}

fn container(state: Value) -> Value {
    json!({"containerStatuses": [{"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]})
}

fn ended(code: i32, reason: &str, message: &str) -> Value {
    container(json!({"terminated": {
        "exitCode": code, "reason": reason, "message": message, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:02Z",
    }}))
}

/// What is seen, in one line.
fn line(seen: &SightOutcome) -> String {
    match seen {
        SightOutcome::Waiting(None) => "waits".to_owned(),
        SightOutcome::Waiting(Some(wait)) => format!(
            "waits{}: {}",
            if wait.surroundings() { " for the surroundings" } else { "" },
            wait.why
        ),
        SightOutcome::Running { since } => {
            format!("runs since {}", since.map_or_else(String::new, |at| at.to_string()))
        }
        SightOutcome::Over { learned, gone } => {
            let gone = if *gone { "gone" } else { "not gone" };
            if let (Some(taken), (End::Unknown { .. }, _)) =
                (&learned.taken, learned.clone().end(String::new))
            {
                return format!("{gone}, unknown: {}", taken.why);
            }
            match (&learned.never, &learned.lost, &learned.message, &learned.exit) {
                (Some(never), ..) => format!(
                    "{gone}, never{}: {}",
                    if never.cause == NeverCause::Surroundings { ", surroundings" } else { "" },
                    never.why
                ),
                (_, Some(why), ..) => format!("{gone}, unknown: {why}"),
                (_, _, Some(report), _) => format!("{gone}, reported {:?}", report.exit_code),
                (_, _, _, Some(exit)) => format!(
                    "{gone}, exit {}{}",
                    exit.code,
                    if exit.oom_killed { " by OOM" } else { "" }
                ),
                _ => format!("{gone}, nothing"),
            }
        }
    }
}

fn check(sight: Sight, expected: &str) {
    assert_eq!(line(&look(&sight, ONCE)), expected, "{sight:?}");
}

fn of(status: Value) -> Sight {
    Sight { pod: Some(pod(status)), ..Sight::default() }
}

fn job(condition: &str, reason: &str) -> Job {
    let condition =
        json!({"type": condition, "status": "True", "reason": reason, "message": "says why"});
    serde_json::from_value(
        json!({"metadata": {"name": "j"}, "status": {"conditions": [condition]}}),
    )
    .unwrap()
}

#[test]
fn a_pod_that_cannot_start_says_why_in_the_clusters_own_words() {
    check(Sight::default(), "waits");
    check(of(json!({"phase": "Pending"})), "waits");
    check(of(container(json!({"waiting": {"reason": "ContainerCreating"}}))), "waits");
    check(
        of(
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]}),
        ),
        "waits for the surroundings: Unschedulable: 0/1 nodes",
    );
    for reason in
        ["ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "InvalidImageName"]
    {
        check(
            of(container(json!({"waiting": {"reason": reason, "message": "m"}}))),
            &format!("waits: {reason}: m"),
        );
    }
}

#[test]
fn what_the_users_own_init_container_does_is_waited_for_in_words() {
    let with = |name: &str, restarts: Option<&str>| {
        let runs = json!({"name": name, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "restartCount": 0, "ready": false, "image": "i", "imageID": ""});
        let mut sight = of(json!({"phase": "Pending", "initContainerStatuses": [runs]}));
        let spec = json!({"nodeName": "n", "containers": [], "initContainers": [{"name": name, "restartPolicy": restarts}]});
        sight.pod.as_mut().unwrap().spec = Some(serde_json::from_value(spec).unwrap());
        sight
    };
    check(with("migrate", None), "waits: its init container `migrate` runs");
    check(with("proxy", Some("Always")), "waits");
    check(with(job::WRAPPER, None), "waits");
}

#[test]
fn a_command_that_ended_has_its_exit_code() {
    check(
        of(container(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}))),
        "runs since 2026-01-01T00:00:00.000Z",
    );
    check(of(ended(0, "Completed", "")), "gone, exit 0");
    check(of(ended(3, "Error", "")), "gone, exit 3");
    check(of(ended(137, "OOMKilled", "")), "gone, exit 137 by OOM");
    check(
        of(ended(128, "StartError", "exec: \"nope\": not found")),
        "gone, never: StartError: exec: \"nope\": not found",
    );
}

#[test]
fn what_the_wrapper_wrote_down_counts() {
    let report =
        serde_json::to_string(&schema::report::Report { exit_code: Some(7), ..Default::default() })
            .unwrap();
    check(of(ended(65, "Error", &report)), "gone, reported Some(7)");
    let mut evicted = ended(143, "Error", &report);
    evicted["reason"] = json!("Evicted");
    // Whatever it ended with when it was asked to.
    check(of(evicted), "gone, unknown: Evicted");
}

#[test]
fn p8_where_the_message_alone_counts_it_is_one_that_the_jobs_own_wrapper_signed() {
    let job = JobId::derive(&[b"1"]);
    let report = schema::report::Report { exit_code: Some(0), ..Default::default() };
    let message = |signer: Option<(&str, &str)>| {
        String::from_utf8(schema::report::message::write(&report, signer, 4096)).unwrap()
    };
    let by_it = |token| SightSubject { signer: Some((job, token)), needs_signature: true, ..ONCE };
    let told = |message: &str, token| line(&look(&of(ended(137, "Error", message)), by_it(token)));
    let id = job.to_string();
    assert_eq!(told(&message(Some((&id, "t"))), "t"), "gone, reported Some(0)");
    // As a wrapper within the command leaves it, or one of another job.
    assert_eq!(told(&message(None), "t"), "gone, exit 137");
    assert_eq!(told(&message(Some(("job-2", "t"))), "t"), "gone, exit 137");
    assert_eq!(told(&message(Some((&id, ""))), ""), "gone, exit 137");
}

#[test]
fn that_nothing_runs_beside_its_wrapper_is_the_word_of_its_own_wrapper_alone() {
    let (job, id) = (JobId::derive(&[b"1"]), JobId::derive(&[b"1"]).to_string());
    let report = Report { exit_code: Some(0), first_process: true, ..Report::default() };
    for (signer, expected) in
        [(Some((id.as_str(), "t")), true), (Some((id.as_str(), "u")), false), (None, false)]
    {
        let message =
            String::from_utf8(schema::report::message::write(&report, signer, 4096)).unwrap();
        let sight = of(ended(0, "Completed", &message));
        let SightOutcome::Over { learned, .. } =
            look(&sight, SightSubject { signer: Some((job, "t")), ..ONCE })
        else {
            panic!("it has ended")
        };
        assert_eq!(learned.message.unwrap().first_process, expected, "{signer:?}");
    }
}

#[test]
fn an_end_that_a_node_without_power_did_not_see_is_unknown() {
    check(
        of(ended(255, "Unknown", "")),
        "gone, unknown: its node did not see its end: it lost power, say, or its container \
         runtime was restarted",
    );
    check(of(ended(255, "Error", "")), "gone, exit 255");
}

#[test]
fn how_an_earlier_run_ended_is_remembered_when_its_node_forgets_it() {
    let run = |last: Value| {
        let mut status = ended(5, "Error", "");
        status["containerStatuses"][0]["restartCount"] = json!(1);
        status["containerStatuses"][0]["lastState"] = last;
        let mut pod = pod(status);
        pod.metadata.uid = Some("u".to_owned());
        pod
    };
    let last = json!({"terminated": {"exitCode": 7, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}});
    let mut sight = Sight::default();
    sight.see(&run(last));
    sight.see(&run(json!({})));
    let kept = sight
        .pod
        .unwrap()
        .status
        .unwrap()
        .container_statuses
        .unwrap()
        .remove(0)
        .last_state
        .unwrap()
        .terminated
        .unwrap();
    assert_eq!(kept.exit_code, 7);
}

#[test]
fn what_is_gone_never_started_or_nobody_knows() {
    let running = || container(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}));
    // Gone from the books is not gone from its node, which says so itself when it is asked to end a
    // Pod.
    let silent = ", and its node did not say what became of its command, which may still run there";
    check(
        Sight { pod_gone: true, ..of(running()) },
        &format!("not gone, unknown: its Pod was deleted{silent}"),
    );
    let both = Sight { pod_gone: true, job_gone: true, ..of(running()) };
    check(both, &format!("not gone, unknown: its Job and its Pod were deleted{silent}"));
    let pending = || of(json!({"phase": "Pending"}));
    check(
        Sight { pod_gone: true, ..pending() },
        "gone, never, surroundings: its Pod was deleted before it had a node",
    );
    check(
        Sight { pod_gone: true, pod_missed: true, ..pending() },
        &format!("not gone, unknown: its Pod was deleted{silent}"),
    );
    // A status that lags behind the node.
    for late in [
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}),
        json!({"phase": "Pending", "hostIP": "10.0.0.1"}),
        container(json!({"waiting": {"reason": "ContainerCreating"}})),
        container(json!({"waiting": {"reason": "ErrImagePull"}})),
    ] {
        check(
            Sight { pod_gone: true, ..of(late) },
            &format!("not gone, unknown: its Pod was deleted{silent}"),
        );
    }
    let mut bound = Sight { pod_gone: true, ..pending() };
    bound.pod.as_mut().unwrap().spec =
        serde_json::from_value(json!({"nodeName": "node-1", "containers": []})).unwrap();
    check(bound, &format!("not gone, unknown: its Pod was deleted{silent}"));
    let known = SightSubject { started: true, ..ONCE };
    assert!(
        line(&look(&Sight { pod_gone: true, ..pending() }, known)).starts_with("not gone, unknown"),
        "it is known to have run"
    );
    check(
        Sight { job_gone: true, ..Sight::default() },
        "not gone, unknown: its Job was deleted, and nobody saw a Pod of it",
    );
    let by_us = SightSubject { deleted: true, ..ONCE };
    let seen = look(&Sight { job_gone: true, ..Sight::default() }, by_us);
    assert_eq!(line(&seen), "gone, never, surroundings: it was ended before a Pod of it started");
    check(Sight { pod_gone: true, ..of(ended(4, "Error", "")) }, "gone, exit 4");
    let mut unknown = container(
        json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "m"}}),
    );
    check(of(unknown.clone()), "gone, unknown: ContainerStatusUnknown: m");
    let deleted = |status: Value| line(&look(&of(status), by_us));
    assert_eq!(
        deleted(unknown.clone()),
        "gone, never, surroundings: ContainerStatusUnknown: m",
        "it waited, and we took it away"
    );
    unknown["containerStatuses"][0]["containerID"] = json!("containerd://x");
    assert_eq!(deleted(unknown), "gone, unknown: ContainerStatusUnknown: m");
}

#[test]
fn what_failed_before_its_command_ran_never_started_or_nobody_knows() {
    check(
        of(json!({"phase": "Failed", "reason": "OutOfcpu", "message": "m"})),
        "gone, never, surroundings: OutOfcpu: m",
    );
    let refused = json!({"phase": "Failed", "reason": "Evicted", "message": "Pod was rejected: DiskPressure", "startTime": "2026-01-01T00:00:00Z"});
    check(of(refused), "gone, never, surroundings: Evicted: Pod was rejected: DiskPressure");
    // Called failed by somebody who hears nothing of its node.
    let lost =
        json!({"phase": "Failed", "reason": "NodeLost", "message": "m", "hostIP": "10.0.0.1"});
    check(of(lost), "not gone, unknown: NodeLost: m");
    let mut unmade = container(json!({"waiting": {"reason": "PodInitializing"}}));
    unmade["phase"] = json!("Failed");
    check(of(unmade), "gone, never, surroundings: its Pod failed");
}

#[test]
fn what_was_heard_of_runs_although_its_pod_is_still_said_to_wait() {
    let sight = of(json!({"phase": "Pending"}));
    let seen = |started: bool| look(&sight, SightSubject { started, ..ONCE });
    assert_eq!(seen(true), SightOutcome::Running { since: None });
    assert!(matches!(seen(false), SightOutcome::Waiting(_)));
}

#[test]
fn an_init_container_that_a_deletion_ended_has_run() {
    let with = |name: &str, state: Value, restart: Value| -> Option<String> {
        let container = json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let pod = json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30},
            "spec": {"containers": [], "initContainers": [{"name": name, "restartPolicy": restart}]},
            "status": {"initContainerStatuses": [container]},
        });
        init_that_ran(&serde_json::from_value(pod).unwrap()).map(str::to_owned)
    };
    let ended = |at: &str| json!({"terminated": {"exitCode": 0, "startedAt": "2025-12-31T00:00:00Z", "finishedAt": at}});
    let prep = Some("prep".to_owned());
    assert_eq!(with("prep", ended("2026-01-01T00:00:00Z"), json!(null)), prep);
    assert_eq!(with("prep", json!({"running": {}}), json!(null)), prep);
    assert_eq!(
        with("prep", ended("2025-12-31T23:59:59Z"), json!(null)),
        None,
        "it was done, and something else waits"
    );
    assert_eq!(with("prep", json!({"waiting": {"reason": "ErrImagePull"}}), json!(null)), None);
    assert_eq!(
        with("prep", json!({"running": {}}), json!("Always")),
        None,
        "it runs beside the command"
    );
    assert_eq!(with("pvn-wrapper", json!({"running": {}}), json!(null)), None);
}
