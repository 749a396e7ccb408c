//! What the cluster ended, or somebody by way of it.

use super::*;

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
