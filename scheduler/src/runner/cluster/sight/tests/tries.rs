//! Jobs that Kubernetes runs more than once.

use super::*;

#[test]
fn several_tries_are_over_when_somebody_suspends_their_job() {
    let several = SightSubject { tries_again: true, ..ONCE };
    let suspended = |mark: bool, since: &str| -> Job {
        let annotations = if mark {
            json!({crate::runner::cluster::let_go::LET_GO_MARK: "true"})
        } else {
            json!({})
        };
        let condition = json!({"type": "Suspended", "status": "True", "lastTransitionTime": since});
        let job = json!({"metadata": {"annotations": annotations}, "spec": {"suspend": true, "template": {}}, "status": {"conditions": [condition]}});
        serde_json::from_value(job).unwrap()
    };
    let with = |job: Job, code: i32| {
        let mut sight = Sight { job: Some(job), ..of(ended(code, "Error", "")) };
        sight.pod.as_mut().unwrap().metadata.creation_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        line(&look(&sight, several))
    };
    let over = "gone, unknown: somebody suspended its Job, which makes no more tries";
    assert_eq!(with(suspended(true, "2026-01-01T00:00:00Z"), 1), over);
    assert_eq!(
        with(suspended(false, "2026-01-01T00:00:01Z"), 1),
        over,
        "one that its own file suspends, and somebody else let go"
    );
    assert_eq!(
        with(suspended(false, "2026-01-01T00:00:00Z"), 1),
        "waits",
        "the Job as it was before it was let go"
    );
}

#[test]
fn a_job_with_several_tries_says_itself_when_it_is_over() {
    let several = SightSubject { tries_again: true, ..ONCE };
    let failed = || of(ended(1, "Error", ""));
    assert_eq!(line(&look(&failed(), several)), "waits");
    let over = Sight { job: Some(job("Failed", "BackoffLimitExceeded")), ..failed() };
    assert_eq!(line(&look(&over, several)), "gone, exit 1");
    // It was to be started again when its Job gave up.
    let mut again = container(json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    again["containerStatuses"][0]["lastState"] =
        json!({"terminated": {"exitCode": 4, "reason": "Error"}});
    assert!(line(&look(&of(again.clone()), several)).starts_with("waits"));
    let over = Sight { job: Some(job("Failed", "BackoffLimitExceeded")), ..of(again) };
    assert_eq!(line(&look(&over, several)), "gone, exit 4");
}

/// A Pod of `restartPolicy: OnFailure` whose container was restarted so often and is being deleted
/// at this second; what ends last is cut after three seconds, and a whole try of 9 ended after two.
fn restarted(times: i32, asked_s: i64, condition: &str, condition_s: i64) -> Sight {
    let at = |seconds: i64| format!("2026-01-01T00:00:{seconds:02}Z");
    let mut status =
        container(json!({"terminated": {"exitCode": 0, "startedAt": at(2), "finishedAt": at(3)}}));
    status["containerStatuses"][0]["restartCount"] = times.into();
    status["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 9, "reason": "Error", "startedAt": at(0), "finishedAt": at(2)}});
    let pod = json!({
        "metadata": {"name": "p", "deletionTimestamp": at(asked_s + 30), "deletionGracePeriodSeconds": 30},
        "spec": {"restartPolicy": "OnFailure", "containers": []}, "status": status,
    });
    let said = |kind: &str, seconds: i64| json!({"type": kind, "status": "True", "reason": condition, "lastTransitionTime": at(seconds)});
    let job = json!({
        "metadata": {"name": "j"}, "spec": {"backoffLimit": 1, "template": {}},
        "status": {"conditions": [said("FailureTarget", condition_s), said("Failed", 20)]},
    });
    Sight {
        job: Some(serde_json::from_value(job).unwrap()),
        pod: Some(serde_json::from_value(pod).unwrap()),
        ..Sight::default()
    }
}

#[test]
fn an_extra_run_that_the_job_itself_cut_is_no_outcome_and_the_last_whole_one_is() {
    let several = SightSubject { tries_again: true, ..ONCE };
    let seen = |sight: Sight| line(&look(&sight, several));
    assert_eq!(seen(restarted(1, 3, "BackoffLimitExceeded", 3)), "gone, exit 9");
    assert_eq!(seen(restarted(2, 3, "BackoffLimitExceeded", 2)), "gone, exit 9");
    let somebody = "gone, unknown: its Pod was deleted while it ran";
    assert_eq!(
        seen(restarted(1, 3, "BackoffLimitExceeded", 4)),
        somebody,
        "its Job gave up because of that"
    );
    assert_eq!(
        seen(restarted(0, 3, "BackoffLimitExceeded", 3)),
        somebody,
        "it was not restarted too often"
    );
    assert_eq!(
        seen(restarted(1, 3, "DeadlineExceeded", 3)),
        "gone, unknown: its Job ended it: DeadlineExceeded"
    );
    let mut never = restarted(1, 3, "BackoffLimitExceeded", 3);
    never.pod.as_mut().unwrap().spec.as_mut().unwrap().restart_policy = Some("Never".to_owned());
    assert_eq!(seen(never), somebody);
}

#[test]
fn a_job_that_is_over_says_nothing_of_a_pod_that_is_not_seen_yet() {
    let overdue = Sight { job: Some(job("Failed", "DeadlineExceeded")), ..Sight::default() };
    check(overdue, "gone, never, surroundings: DeadlineExceeded: says why");
    let mut complete = job("Complete", "CompletionsReached");
    complete.status.as_mut().unwrap().succeeded = Some(1);
    check(Sight { job: Some(complete.clone()), ..Sight::default() }, "waits");
    check(Sight { job: Some(complete), ..of(json!({"phase": "Pending"})) }, "waits");
}

#[test]
fn a_job_fails_also_before_it_says_so_when_its_deadline_has_passed_as_its_pod_is_asked_to_end() {
    let is = |job: Value, asked: &str| {
        let job: Job = serde_json::from_value(job).unwrap();
        let pod =
            json!({"metadata": {"deletionTimestamp": asked, "deletionGracePeriodSeconds": 0}});
        is_failing(&job, &serde_json::from_value(pod).unwrap())
    };
    let limited = json!({"spec": {"activeDeadlineSeconds": 5, "template": {}}, "status": {"startTime": "2026-01-01T00:00:00Z"}});
    assert!(is(limited.clone(), "2026-01-01T00:00:05Z"));
    assert!(!is(limited, "2026-01-01T00:00:04Z"), "somebody deleted its Pod");
    assert!(!is(
        json!({"spec": {"template": {}}, "status": {"startTime": "2026-01-01T00:00:00Z"}}),
        "2026-01-01T00:00:05Z"
    ));
    let target = json!({"status": {"conditions": [{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}]}});
    assert!(is(target, "2026-01-01T00:00:04Z"));
    let largest = json!({"spec": {"activeDeadlineSeconds": i64::MAX, "template": {}}, "status": {"startTime": "2026-01-01T00:00:00Z"}});
    assert!(!is(largest, "2026-01-01T00:00:04Z"));
}
