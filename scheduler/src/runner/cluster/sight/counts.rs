//! What a Job's own books say of Pods that are not there. Pure. Called by `sight` and the job's task.
//!
//! A Pod that is gone is in them: it is let go only once it was counted. What the counts are worth differs. "Succeeded" is the word of
//! a Pod's node. "Failed" is not: a Job that has failed or reached its deadline counts whatever it deletes at once, while it still runs.

use k8s_openapi::api::batch::v1::{Job, JobStatus};

/// Whether a Job ever had a Pod.
pub(in super::super) fn had_pods(job: &Job) -> bool {
    let Some(status) = &job.status else { return false };
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let uncounted = uncounted.is_some_and(|pods| [&pods.failed, &pods.succeeded].into_iter().flatten().any(|pods| !pods.is_empty()));
    uncounted || has_any([status.active, status.succeeded, status.failed, status.terminating])
}

/// Whether a Job is complete and all Pods that it counts ended well, so that their nodes have said of each that it has ended.
pub(in super::super) fn is_complete_alone(job: &Job) -> bool {
    let Some(status) = &job.status else { return false };
    let is_complete = status.conditions.iter().flatten().any(|condition| condition.type_ == "Complete" && condition.status == "True");
    is_complete && has_any([status.succeeded]) && !may_have_others(status)
}

/// Whether it counts Pods of which no node has said that they ended well.
fn may_have_others(status: &JobStatus) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref().and_then(|pods| pods.failed.as_ref());
    uncounted.is_some_and(|pods| !pods.is_empty()) || has_any([status.active, status.failed, status.terminating])
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
        assert!(is_complete_alone(&job("Complete", json!({"succeeded": 1, "failed": 0, "ready": 0}))));
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
}
