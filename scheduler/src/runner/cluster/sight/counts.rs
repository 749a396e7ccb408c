//! What a Job's own books say of Pods that are not there. Pure. Called by `sight` and the job's
//! task.
//!
//! A Pod that is gone is in them: it is let go only once it was counted. What the counts are worth
//! differs. "Succeeded" is the word of a Pod's node. "Failed" is not: a Job that has failed or
//! reached its deadline counts whatever it deletes at once, while it still runs.

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use schema::time::Timestamp;

use super::time;

/// Whether a Job ever had a Pod.
pub(in super::super) fn had_pods(job: &Job) -> bool {
    let Some(status) = &job.status else { return false };
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let uncounted = uncounted.is_some_and(|pods| {
        [&pods.failed, &pods.succeeded].into_iter().flatten().any(|pods| !pods.is_empty())
    });
    uncounted || has_any([status.active, status.succeeded, status.failed, status.terminating])
}

/// Whether a Job is complete and all Pods that it counts ended well, so that their nodes have said
/// of each that it has ended.
pub(in super::super) fn is_complete_alone(job: &Job) -> bool {
    let Some(status) = &job.status else { return false };
    let is_complete = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Complete" && condition.status == "True");
    is_complete && has_any([status.succeeded]) && !may_have_others(status)
}

/// Whether a Job makes no other Pod although it is not over in its books: it has counted a Pod that
/// ended and none that has not, and its deadline was over at `now`. Its controller does not call it
/// over where a Pod that it made was deleted before it had seen it, as after an outage of the API
/// server: it expects to see that for 5 minutes, and nothing has it look again after that. Source:
/// `ExpectationsTimeout` of the controllers of Kubernetes 1.34, and how its Job controller observes
/// a new Pod.
pub(in super::super) fn makes_no_more(job: &Job, now: Timestamp) -> bool {
    let Some(status) = &job.status else { return false };
    let deadline_s = job.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let over = status
        .start_time
        .as_ref()
        .map(time)
        .zip(deadline_s)
        .map(|(start, seconds)| start.plus_ms(seconds.saturating_mul(1000)));
    over.is_some_and(|over| over <= now)
        && has_any([status.succeeded, status.failed])
        && !has_any([status.active, status.terminating])
}

/// Whether it counts Pods of which no node has said that they ended well.
fn may_have_others(status: &JobStatus) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref().and_then(|pods| pods.failed.as_ref());
    uncounted.is_some_and(|pods| !pods.is_empty())
        || has_any([status.active, status.failed, status.terminating])
}

fn has_any<const N: usize>(counts: [Option<i32>; N]) -> bool {
    counts.into_iter().flatten().any(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(condition: &str, counts: Value) -> Job {
        let mut status = json!({"conditions": [{"type": condition, "status": "True"}]});
        status.as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
        serde_json::from_value(json!({"status": status})).unwrap()
    }

    #[test]
    fn p1_only_what_is_complete_and_counts_nothing_else_has_ended_by_its_nodes_word() {
        assert!(is_complete_alone(&job(
            "Complete",
            json!({"succeeded": 1, "failed": 0, "ready": 0})
        )));
        for (condition, counts) in [
            ("Failed", json!({"failed": 1})),
            ("Failed", json!({"succeeded": 1})),
            ("Complete", json!({})),
            ("Complete", json!({"succeeded": 1, "failed": 1})),
            ("Complete", json!({"succeeded": 1, "terminating": 1})),
            ("Complete", json!({"succeeded": 1, "active": 1})),
            ("Complete", json!({"succeeded": 1, "uncountedTerminatedPods": {"failed": ["p"]}})),
        ] {
            assert!(!is_complete_alone(&job(condition, counts.clone())), "{condition}, {counts}");
        }
    }

    #[test]
    fn a_job_past_its_deadline_that_counts_nothing_but_ends_makes_no_more() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let job = |deadline: Value, counts: Value| {
            let mut job = json!({"spec": {"template": {}, "activeDeadlineSeconds": deadline}, "status": {"startTime": "2026-01-01T00:00:00Z"}});
            job["status"].as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
            serde_json::from_value::<Job>(job).unwrap()
        };
        let (failed, now) = (json!({"failed": 1, "active": 0}), at("2026-01-01T00:01:00Z"));
        assert!(makes_no_more(&job(json!(1), failed.clone()), now));
        assert!(makes_no_more(&job(json!(60), json!({"succeeded": 1})), now));
        assert!(!makes_no_more(&job(json!(61), failed.clone()), now), "its deadline is to come");
        assert!(!makes_no_more(&job(Value::Null, failed), now), "it has none");
        for counts in [
            json!({}),
            json!({"failed": 0}),
            json!({"failed": 1, "active": 1}),
            json!({"failed": 1, "terminating": 1}),
        ] {
            assert!(!makes_no_more(&job(json!(1), counts.clone()), now), "{counts}");
        }
    }
}
