//! What is told with the time since when it is so, and with the command that is the way out.

use super::*;
use schema::cause::CauseCode;

#[test]
fn a_fetch_that_fails_is_told_with_the_end_of_the_first_that_failed() {
    let mut it = Scenario::new(exit_code());
    let since = |it: &Scenario| {
        let told = explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        );
        told.causes
            .iter()
            .find(|cause| cause.code == CauseCode::FetchFailed)
            .map(|cause| it.seconds(cause.since.unwrap()))
    };
    it.run(Fetch, 0);
    it.until(400).run(Fetch, 1);
    it.until(500).run(Fetch, 1);
    assert_eq!(since(&it), Some(400.0));
    it.until(600).run(Fetch, 0);
    assert_eq!(since(&it), None);
    it.until(1_000).run(Fetch, 1);
    assert_eq!(since(&it), Some(1_000.0));
}

#[test]
fn rule_18_the_way_out_of_an_approval_is_the_command_that_gives_it() {
    let check = |seen: FetchResult, digest: Option<BlobId>| {
        let mut it = Scenario::new(before_apply());
        it.run_with(Fetch, 2, seen);
        let told = explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings { target: "web --app a --channel c", ..Surroundings::default() },
        );
        let cause =
            told.causes.iter().find(|cause| cause.code == CauseCode::ApprovalPending).unwrap();
        let approval = &engine::view::approvals(it.state())[0];
        assert_eq!(approval.plan_digest, digest.map(|digest| digest.to_string()));
        let plan = digest.map_or_else(String::new, |digest| format!(" --plan-digest {digest}"));
        let command = format!(
            "`pvnctl services approve web --app a --channel c --approval {}{plan}`",
            approval.id
        );
        assert!(cause.message.contains(&command), "{}", cause.message);
    };
    check(plan("bytes 1", "one to add"), Some(BlobId::of(b"one to add")));
    // Where it printed nothing, there is nothing that anybody could have looked at.
    check(FetchResult { output: Some(BlobId::of(b"")), ..FetchResult::default() }, None);
    check(FetchResult::default(), None);
}

#[test]
fn rule_18_work_is_told_with_the_time_since_when_whatever_fetch_sees_of_it_each_time() {
    let since = |it: &Scenario, code: &str| {
        let told = explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        );
        told.causes
            .iter()
            .find(|cause| cause.code.as_str() == code)
            .and_then(|cause| cause.since)
            .map(|at| it.seconds(at))
    };
    let mut it = Scenario::new(Desired { gates: vec![stable(&["staging"])], ..exit_code() });
    it.run(Fetch, 0);
    it.until(1_000).run(Fetch, 2);
    it.until(1_100).run_with(Fetch, 2, plan("other", "more"));
    assert_eq!(since(&it, "WORK_FOUND"), Some(1_000.0));
    it.until(1_200).run(Fetch, 0);
    it.until(2_000).run(Fetch, 2);
    assert_eq!(since(&it, "WORK_FOUND"), Some(2_000.0));
    let mut it = Scenario::new(structured());
    it.run_with(Fetch, 0, object(ObjectStatus::Failed));
    it.until(400).run_with(Fetch, 0, object(ObjectStatus::Failed));
    assert_eq!(since(&it, "OBJECT_FAILED"), Some(0.0));
}

#[test]
fn rule_18_a_stop_is_told_with_the_time_since_when() {
    let mut it = Scenario::new(apply_only());
    let job = it.start(Apply).job;
    it.begins(job);
    it.until(600);
    it.send(Event::Cancel { job, who: "ann".to_owned() });
    let told = explain(
        it.state(),
        &ConcurrencyLimiter::new(limits(1, None), it.now),
        it.now,
        Surroundings::default(),
    );
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::JobStopping).unwrap();
    assert_eq!(cause.since, Some(it.now));
}

#[test]
fn rule_18_an_answer_that_may_not_mean_what_it_says_is_told_until_there_is_another() {
    let mut it = Scenario::new(exit_code());
    let doubt = |it: &Scenario| {
        let told = explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        );
        let cause = told
            .causes
            .iter()
            .find(|cause| cause.code == CauseCode::DoubtfulFetch)
            .map(|cause| cause.message.clone());
        assert_eq!(
            cause.as_ref().is_some_and(|doubt| told.message.contains(doubt)),
            cause.is_some(),
            "{told:#?}"
        );
        cause
    };
    it.run_with(
        Fetch,
        0,
        FetchResult { doubt: Some("it printed a document".into()), ..FetchResult::default() },
    );
    assert_eq!(doubt(&it).as_deref(), Some("it printed a document"));
    it.until(1_000);
    it.run(Fetch, 0);
    assert_eq!(doubt(&it), None);
}

#[test]
fn rule_18_the_way_past_a_channel_that_has_another_version_is_a_release_to_both() {
    let mut it = Scenario::new(Desired { gates: vec![stable(&["staging"])], ..exit_code() });
    it.upstream("staging", Some("svc-0"));
    it.run(Fetch, 2);
    let told = explain(
        it.state(),
        &ConcurrencyLimiter::new(limits(1, None), it.now),
        it.now,
        Surroundings {
            target: "web --app a --channel eu",
            together: &|| vec!["staging".parse().unwrap(), "eu".parse().unwrap()],
            ..Surroundings::default()
        },
    );
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::UpstreamUnstable).unwrap();
    assert!(
        cause.message.contains("`pvnctl services push web --app a --channels staging,eu`"),
        "{}",
        cause.message
    );
}

#[test]
fn rule_18_a_job_past_its_timeout_is_told_as_one_that_is_being_stopped() {
    let mut it = Scenario::new(exit_code());
    let job = it.start(Fetch).job;
    it.begins(job);
    let does = |it: &Scenario| {
        let told = explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        );
        told.causes.into_iter().find(|cause| cause.code == CauseCode::JobRunning).unwrap().message
    };
    it.until(599);
    assert!(does(&it).contains("(attempt 1) runs; it is stopped if"), "{}", does(&it));
    it.until(601);
    assert!(
        does(&it).contains(
            "(attempt 1) is past its timeout of 10m and is being stopped where it runs; "
        ),
        "{}",
        does(&it)
    );
}
