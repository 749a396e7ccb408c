//! What somebody in the cluster made of a Job: whether it may run the command more often than its
//! file says, or is paused. Admission webhooks fill in and change the fields of every Job, and
//! people patch them. Pure. Called by the job's task.

use k8s_openapi::api::batch::v1::Job;

/// Where a Job may run more than it was made for, the field that says so and its value.
/// `tries_again`: its own file has several tries, so that their number may be any.
pub(super) fn runs_more(job: &Job, tries_again: bool) -> Option<String> {
    let spec = job.spec.as_ref()?;
    let not_one = |field: &str, count: Option<i32>| {
        count.filter(|count| *count != 1).map(|count| format!("`{field}` is {count}"))
    };
    let at_once = not_one("completions", spec.completions)
        .or_else(|| not_one("parallelism", spec.parallelism));
    let tries = || {
        let is_given =
            |field: &str, is_there: bool| is_there.then(|| format!("`{field}` is given"));
        let limit = spec
            .backoff_limit
            .filter(|limit| *limit != 0)
            .map(|limit| format!("`backoffLimit` is {limit}"));
        let policy = spec.template.spec.as_ref().and_then(|pod| pod.restart_policy.as_deref());
        let policy = policy
            .filter(|policy| *policy != "Never")
            .map(|policy| format!("`restartPolicy` is {policy}"));
        let mode = spec.completion_mode.as_deref().filter(|mode| *mode != "NonIndexed");
        let mode = mode.map(|mode| format!("`completionMode` is {mode}"));
        limit
            .or(policy)
            .or(mode)
            .or_else(|| is_given("podFailurePolicy", spec.pod_failure_policy.is_some()))
            .or_else(|| is_given("successPolicy", spec.success_policy.is_some()))
            .or_else(|| is_given("backoffLimitPerIndex", spec.backoff_limit_per_index.is_some()))
            .or_else(|| is_given("maxFailedIndexes", spec.max_failed_indexes.is_some()))
    };
    at_once.or_else(|| if tries_again { None } else { tries() })
}

/// Why a Job that the cluster made otherwise than it was asked is not let go, for people.
pub(super) fn refusal(what: &str) -> String {
    format!(
        "the cluster changed its Job: {what}, which was not asked for, so that Kubernetes may run \
         the command again by itself. An admission webhook or a policy does that; have it leave \
         Jobs with the label `pvn.dev/job` alone, or, for tries of its own, give the service a \
         Job file that asks for them"
    )
}

/// Whether a Job makes no Pod at present and would make one again when somebody resumes it.
pub(super) fn is_paused(job: &Job) -> bool {
    job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true) || spec.parallelism == Some(0))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(spec: Value) -> Job {
        let mut all = json!({"template": {"spec": {"containers": [], "restartPolicy": "Never"}}});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({"spec": all})).unwrap()
    }

    #[test]
    fn what_runs_the_command_once_is_told_from_what_may_run_it_again() {
        let defaults = json!({"backoffLimit": 0, "completions": 1, "parallelism": 1, "completionMode": "NonIndexed", "podReplacementPolicy": "Failed"});
        for plain in [
            json!({}),
            defaults,
            json!({"activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 1, "suspend": true}),
        ] {
            assert_eq!(runs_more(&job(plain), false), None);
        }
        let on_failure =
            json!({"template": {"spec": {"containers": [], "restartPolicy": "OnFailure"}}});
        for (spec, what) in [
            (json!({"backoffLimit": 2}), "`backoffLimit` is 2"),
            (on_failure, "`restartPolicy` is OnFailure"),
            (json!({"podFailurePolicy": {"rules": []}}), "`podFailurePolicy` is given"),
            (
                json!({"completionMode": "Indexed", "maxFailedIndexes": 1}),
                "`completionMode` is Indexed",
            ),
        ] {
            assert_eq!(runs_more(&job(spec.clone()), false).as_deref(), Some(what));
            assert_eq!(runs_more(&job(spec), true), None, "asked for");
        }
        for (spec, what) in [
            (json!({"completions": 2}), "`completions` is 2"),
            (json!({"parallelism": 3}), "`parallelism` is 3"),
        ] {
            assert_eq!(runs_more(&job(spec), true).as_deref(), Some(what));
        }
    }

    #[test]
    fn a_job_without_any_pod_at_a_time_is_paused_as_a_suspended_one() {
        assert!(
            is_paused(&job(json!({"suspend": true}))) && is_paused(&job(json!({"parallelism": 0})))
        );
        assert!(!is_paused(&job(json!({"suspend": false, "parallelism": 1}))));
    }
}
