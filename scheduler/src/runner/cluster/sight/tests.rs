//! What Jobs and Pods in all their states mean.

use serde_json::{Value, json};

use super::*;
use crate::runner::End;

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
            if wait.surroundings { " for the surroundings" } else { "" },
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
                    if never.surroundings { ", surroundings" } else { "" },
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
fn what_the_cluster_ended_is_unknown() {
    for (reason, words) in [
        ("PreemptionByScheduler", "its Pod made room for another"),
        ("EvictionByEvictionAPI", "its Pod was evicted"),
        ("DeletionByTaintManager", "its node is lost or was emptied"),
    ] {
        let mut status = ended(143, "Error", "");
        status["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"}]);
        check(of(status), &format!("gone, unknown: {words}: m"));
    }
    let mut status = ended(137, "Error", "");
    status["reason"] = json!("Evicted");
    status["message"] = json!("The node was low on resource: memory");
    check(of(status), "gone, unknown: Evicted: The node was low on resource: memory");
    check(
        of(ended(137, "ContainerStatusUnknown", "m")),
        "gone, unknown: ContainerStatusUnknown: m",
    );
    let deleted = |status| {
        let mut sight = of(status);
        sight.pod.as_mut().unwrap().metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
        sight
    };
    let done = || ended(0, "Completed", "");
    check(deleted(done()), "gone, unknown: its Pod was deleted while it ran");
    check(
        Sight { job_gone: true, ..deleted(done()) },
        "gone, unknown: its Job was deleted while it ran",
    );
    let mut evicted = done();
    evicted["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m"}]);
    check(deleted(evicted), "gone, unknown: its Pod was evicted: m");
}

#[test]
fn what_had_ended_before_the_cluster_took_it_counts() {
    let deleted = |at: &str, grace_s: i64| {
        let mut sight = of(ended(0, "Completed", ""));
        let metadata = &mut sight.pod.as_mut().unwrap().metadata;
        metadata.deletion_timestamp = serde_json::from_value(json!(at)).unwrap();
        metadata.deletion_grace_period_seconds = Some(grace_s);
        sight
    };
    // A deletion is noted with the time at which its grace is over.
    check(deleted("2026-01-01T00:00:31Z", 30), "gone, unknown: its Pod was deleted while it ran");
    check(deleted("2026-01-01T00:00:32Z", 30), "gone, unknown: its Pod was deleted while it ran");
    check(deleted("2026-01-01T00:00:33Z", 30), "gone, unknown: its Pod was deleted while it ran");
    // The clocks of a node and of the books are some seconds apart.
    check(deleted("2026-01-01T00:00:42Z", 30), "gone, unknown: its Pod was deleted while it ran");
    check(deleted("2026-01-01T00:00:43Z", 30), "gone, exit 0");
    // Its node removed it then; when it was asked to end the books do not have any more.
    check(deleted("2026-01-01T00:00:03Z", 0), "gone, unknown: its Pod was deleted while it ran");
    for (at, expected) in [
        ("01", "gone, unknown: its Pod was evicted: m"),
        ("12", "gone, unknown: its Pod was evicted: m"),
        ("13", "gone, exit 0"),
    ] {
        let mut status = ended(0, "Completed", "");
        let at = format!("2026-01-01T00:00:{at}Z");
        status["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m", "lastTransitionTime": at}]);
        check(of(status), expected);
    }
    let by_us = SightSubject { ended_by_us: true, ..ONCE };
    assert_eq!(line(&look(&deleted("2026-01-01T00:00:31Z", 30), by_us)), "gone, exit 0");
}

#[test]
fn p8_when_a_pod_was_first_asked_to_end_is_remembered_past_its_nodes_last_word() {
    for (asked, expected) in [
        ("2026-01-01T00:00:31Z", "gone, unknown: its Pod was deleted while it ran"),
        ("2026-01-01T00:00:45Z", "gone, exit 0"),
    ] {
        let at = |mut pod: Pod, at: &str, grace_s: i64| {
            pod.metadata.uid = Some("u".to_owned());
            pod.metadata.deletion_timestamp = serde_json::from_value(json!(at)).unwrap();
            pod.metadata.deletion_grace_period_seconds = Some(grace_s);
            pod
        };
        let mut sight = Sight::default();
        sight.see(&at(pod(ended(0, "Completed", "")), asked, 30));
        sight.see(&at(pod(ended(0, "Completed", "")), "2026-01-01T00:00:16Z", 0));
        check(sight, expected);
    }
}

#[test]
fn p8_the_first_of_what_ends_a_pod_counts_whatever_follows() {
    let mut status = ended(0, "Completed", "");
    status["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m",
        "lastTransitionTime": "2026-01-01T00:01:00Z"}]);
    check(of(status.clone()), "gone, exit 0");
    let mut both = of(status);
    let metadata = &mut both.pod.as_mut().unwrap().metadata;
    metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:31Z")).unwrap();
    metadata.deletion_grace_period_seconds = Some(30);
    check(both, "gone, unknown: its Pod was evicted: m");
    let mut late = ended(0, "Completed", "");
    (late["phase"], late["reason"], late["message"]) =
        (json!("Failed"), json!("DeadlineExceeded"), json!("m"));
    late["startTime"] = json!("2026-01-01T00:00:00Z");
    let mut late = of(late);
    let pod = late.pod.as_mut().unwrap();
    pod.spec =
        serde_json::from_value(json!({"activeDeadlineSeconds": 20, "containers": []})).unwrap();
    check(late.clone(), "gone, exit 0");
    late.pod.as_mut().unwrap().metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:31Z")).unwrap();
    check(late, "gone, unknown: its Pod ran past its own deadline: DeadlineExceeded: m");
}

#[test]
fn p8_what_ran_in_a_pod_that_had_been_asked_to_end_did_not_end_before_whatever_the_clocks_say() {
    for (minute, on, off) in [
        (1, "gone, unknown: its Pod was deleted while it ran", "gone, exit 0"),
        (2, "gone, exit 0", "gone, exit 0"),
    ] {
        let asked = |status: Value| {
            let mut pod = pod(status);
            pod.metadata.uid = Some("u".to_owned());
            pod.metadata.deletion_timestamp =
                serde_json::from_value(json!(format!("2026-01-01T00:0{minute}:30Z"))).unwrap();
            pod.metadata.deletion_grace_period_seconds = Some(30);
            pod
        };
        let mut sight = Sight::default();
        sight.see(&asked(ended(0, "Completed", "")));
        check(sight, off);
        let mut sight = Sight::default();
        sight.see(&asked(container(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}))));
        sight.see(&asked(ended(0, "Completed", "")));
        check(sight, on);
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
fn a_deadline_of_its_own_file_is_told_as_such() {
    let mut status = ended(0, "Completed", "");
    status["phase"] = json!("Failed");
    status["reason"] = json!("DeadlineExceeded");
    status["message"] = json!("m");
    let words = "gone, unknown: its Pod ran past its own deadline: DeadlineExceeded: m";
    check(of(status.clone()), words);
    status["startTime"] = json!("2026-01-01T00:00:00Z");
    for (limit_s, expected) in [(2, words), (3, "gone, exit 0")] {
        let mut sight = of(status.clone());
        sight.pod.as_mut().unwrap().spec =
            serde_json::from_value(json!({"activeDeadlineSeconds": limit_s, "containers": []}))
                .unwrap();
        check(sight, expected);
    }
    let deleted = |condition: &str, reason: &str| {
        let mut sight =
            Sight { job: Some(job(condition, reason)), ..of(ended(0, "Completed", "")) };
        sight.pod.as_mut().unwrap().metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
        sight
    };
    check(
        deleted("FailureTarget", "DeadlineExceeded"),
        "gone, unknown: its Job ended it: DeadlineExceeded: says why",
    );
    // A Job whose Pod somebody deleted counts that as a try that failed.
    check(
        deleted("Failed", "BackoffLimitExceeded"),
        "gone, unknown: its Pod was deleted while it ran",
    );
    // One that never had a node, and one whose Job says only later why it ended it.
    let waited = |condition| Sight {
        job: Some(job(condition, "DeadlineExceeded")),
        pod_gone: true,
        ..of(json!({"phase": "Pending"}))
    };
    check(
        waited("FailureTarget"),
        "gone, never, surroundings: its Job ended it: DeadlineExceeded: says why",
    );
    let mut late = deleted("Suspended", "JobResumed");
    let of_4_s = json!({"metadata": {"name": "j"}, "spec": {"activeDeadlineSeconds": 4, "template": {}}, "status": {"startTime": "2025-12-31T23:59:57Z"}});
    late.job = serde_json::from_value(of_4_s).unwrap();
    let words = "its Job ended it: DeadlineExceeded: it was active longer than its \
                 `activeDeadlineSeconds` of 4";
    check(late.clone(), &format!("gone, unknown: {words}"));
    late.pod.as_mut().unwrap().metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    check(late, "gone, unknown: its Pod was deleted while it ran");
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
