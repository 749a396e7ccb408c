//! A walk through every state in which an instance can wait: each says what would end it.

use super::*;

type Story = (&'static str, &'static str, fn() -> Scenario);

/// Every state in which an instance can wait, with the code of what would move it.
const STORIES: &[Story] = &[
    ("no fetch has answered yet", "STARTS_NOW", || Scenario::new(exit_code())),
    ("there is no release", "NO_RELEASE", Scenario::without_release),
    ("no longer wanted", "DELETED", || told(exit_code(), |it| drop(it.send(Event::Deleted)))),
    ("all is as desired", "CONVERGED", || told(exit_code(), |it| drop(it.run(Fetch, 0)))),
    ("a fetch is starting", "JOB_STARTING", || told(exit_code(), |it| drop(it.start(Fetch)))),
    ("a job cannot start", "JOB_WAITS", || {
        told(exit_code(), |it| {
            let job = it.start(Fetch).job;
            it.waits(job, "ErrImagePull: no such image");
        })
    }),
    ("a fetch failed", "FETCH_DUE", || told(exit_code(), |it| drop(it.run(Fetch, 1)))),
    ("an apply runs", "JOB_RUNNING", || {
        told(exit_code(), |it| {
            it.run(Fetch, 2);
            let job = it.start(Apply).job;
            it.begins(job);
        })
    }),
    ("an apply is being stopped", "JOB_STOPPING", || {
        told(apply_only(), |it| {
            let job = it.start(Apply).job;
            it.send(Event::Cancel { job, who: "ann".to_owned() });
        })
    }),
    ("not seen for three fetches", "FETCH_DUE", || {
        told(exit_code(), |it| {
            it.run(Fetch, 0);
            for second in [400, 500, 600] {
                it.until(second).run(Fetch, 1);
            }
        })
    }),
    ("a schedule without an instant left", "NO_FETCH_DUE", || {
        let mut desired = exit_code();
        poll_of(&mut desired).cadence =
            Cadence::Cron(Schedule::parse("0 0 0 1 1 * 2020", None).unwrap());
        told(desired, |it| drop(it.run(Fetch, 1)))
    }),
    ("somebody leaves its drift as it is", "DRIFT_ACKNOWLEDGED", || {
        told(exit_code(), |it| {
            it.run(Fetch, 0);
            let drift = BlobId::of(b"drift");
            let seen = FetchResult { output: Some(drift), ..FetchResult::default() };
            it.until(400).run_with(Fetch, 2, seen);
            let (who, at, until) = ("ann".to_owned(), it.now, it.now.plus_ms(60_000));
            let by = DriftAcknowledgement { who, at, until, reason: None };
            it.send(Event::Acknowledge { fingerprint: drift, by });
        })
    }),
    ("in the grace period", "GRACE_PERIOD", || {
        told(exit_code(), |it| {
            it.run(Fetch, 2);
            it.run(Apply, 0);
            it.run(Fetch, 2);
        })
    }),
    ("after an apply, before the fetch", "STARTS_NOW", || {
        told(exit_code(), |it| {
            it.run(Fetch, 2);
            it.run(Apply, 0);
        })
    }),
    ("an apply failed", "GRACE_PERIOD", || {
        told(exit_code(), |it| {
            it.run(Fetch, 2);
            it.run(Apply, 1);
        })
    }),
    ("an apply failed and nothing looks", "WAITS_FOR_PERSON", || {
        told(apply_only(), |it| drop(it.run(Apply, 1)))
    }),
    ("a retryable end", "BACK_OFF", || told(apply_only(), |it| drop(it.run(Apply, 75)))),
    ("never started", "BACK_OFF", || {
        told(apply_only(), |it| {
            let job = it.start(Apply).job;
            it.ends(
                job,
                Outcome::NotStarted { why: "no process slots".to_owned(), surroundings: true },
            );
        })
    }),
    ("an unknown end", "GRACE_PERIOD", || {
        told(exit_code(), |it| {
            it.run(Fetch, 2);
            let job = it.start(Apply).job;
            it.ends(job, Outcome::Unknown { why: "its node is gone".to_owned(), gone: true });
        })
    }),
    ("an unknown end and nothing looks", "WAITS_FOR_PERSON", || {
        told(apply_only(), |it| {
            let job = it.start(Apply).job;
            it.ends(job, Outcome::Unknown { why: "its node is gone".to_owned(), gone: true });
        })
    }),
    ("cancelled", "WAITS_FOR_PERSON", || {
        told(apply_only(), |it| {
            let job = it.start(Apply).job;
            it.send(Event::Cancel { job, who: "ann".to_owned() });
            it.ends(job, Outcome::Cancelled { gone: true });
        })
    }),
    ("stopped and perhaps not gone", "WAITS_FOR_PERSON", || {
        told(exit_code(), |it| {
            it.run(Fetch, 2);
            let job = it.start(Apply).job;
            it.ends(job, Outcome::Cancelled { gone: false });
            it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
            it.run(Fetch, 2);
        })
    }),
    ("a channel is not stable", "UPSTREAM_UNSTABLE", || {
        told(Desired { gates: vec![stable(&["staging"])], ..exit_code() }, |it| {
            drop(it.run(Fetch, 2))
        })
    }),
    ("people are asked", "APPROVAL_PENDING", || told(before_apply(), |it| drop(it.run(Fetch, 2)))),
    ("people said no", "WAITS_FOR_PERSON", || {
        told(before_apply(), |it| {
            it.run(Fetch, 2);
            it.reject("ann");
        })
    }),
    ("outside the window", "WINDOW_SHUT", || {
        let mut desired = apply_only();
        desired.apply.window = Some(Window {
            opens: Schedule::parse("0 0 0 * * *", None).unwrap(),
            duration: Duration::from_secs(1),
        });
        Scenario::new(desired)
    }),
    ("ready outside the window, which somebody has lifted", "WINDOW_LIFTED", || {
        let mut desired = exit_code();
        desired.apply.window = Some(Window {
            opens: Schedule::parse("0 0 0 * * *", None).unwrap(),
            duration: Duration::from_secs(60),
        });
        told(desired, |it| {
            it.run(Fetch, 2);
            let (who, reason) = ("ann".to_owned(), "an incident".to_owned());
            let (at, until) = (it.now, it.now.plus_ms(60_000));
            it.send(Event::LiftWindow(Box::new(WindowLift { who, at, until, reason })));
        })
    }),
    ("a window that never opens again", "WINDOW_SHUT", || {
        let mut desired = apply_only();
        desired.apply.window = Some(Window {
            opens: Schedule::parse("0 0 0 1 1 * 2020", None).unwrap(),
            duration: Duration::from_secs(1),
        });
        Scenario::new(desired)
    }),
    ("ready inside the window", "STARTS_NOW", || {
        let mut desired = apply_only();
        desired.apply.window = Some(Window {
            opens: Schedule::parse("0 0 0 * * *", None).unwrap(),
            duration: Duration::from_secs(86_399),
        });
        Scenario::new(desired)
    }),
    ("ready for a place", "STARTS_NOW", || Scenario::new(apply_only())),
    ("paused", "PAUSED", || {
        told(exit_code(), |it| drop(it.send(Event::Pause { who: "ann".to_owned(), reason: None })))
    }),
    ("only looking", "OBSERVER", || {
        told(exit_code(), |it| {
            it.send(Event::Observe(true));
            it.run(Fetch, 2);
        })
    }),
    ("observed only", "OBSERVER", || {
        told(exit_code(), |it| {
            it.send(Event::ObserveOnly { who: "ann".to_owned(), reason: None });
            it.run(Fetch, 2);
        })
    }),
    ("an object is on its way", "FETCH_DUE", || {
        told(structured(), |it| drop(it.run_with(Fetch, 0, object(ObjectStatus::Pending))))
    }),
    ("an object failed", "FETCH_DUE", || {
        told(structured(), |it| drop(it.run_with(Fetch, 0, object(ObjectStatus::Failed))))
    }),
    ("stuck", "STUCK", || {
        told(Desired { progress_deadline: Some(Duration::from_secs(1)), ..exit_code() }, |it| {
            it.run(Fetch, 1);
            it.until(2);
        })
    }),
];

fn told(desired: Desired, tell: fn(&mut Scenario)) -> Scenario {
    let mut it = Scenario::new(desired);
    tell(&mut it);
    it
}

#[test]
fn rule_18_explain_gives_a_way_out_of_every_waiting_state() {
    for (story, code, make) in STORIES {
        let it = make();
        let mut lanes = ConcurrencyLimiter::new(limits(10, None), Timestamp::from_millis(START_MS));
        lanes.update(it.state(), ALONE);
        let told = explain(
            it.state(),
            &lanes,
            it.now,
            Surroundings { name: &|_| "web/staging".to_owned(), ..Surroundings::default() },
        );
        assert!(
            told.causes.iter().any(|cause| cause.code.as_str() == *code),
            "{story}: no {code} in {told:#?}"
        );
        assert!(
            told.causes.iter().all(|cause| !cause.message.is_empty()) && !told.message.is_empty(),
            "{story}"
        );
        let way_out = told.causes.iter().any(|cause| {
            cause.until.is_some()
                || ["ends", "pvnctl", "config", "STARTS"]
                    .iter()
                    .any(|word| cause.message.contains(word) || cause.code.as_str().contains(word))
        });
        assert!(way_out || !told.next.is_empty(), "{story}: no way out in {told:#?}");
        assert!(told.next.is_sorted_by_key(|next| next.at), "{story}: soonest first");
    }
}

/// The walk above is complete: every situation that the engine knows has a story. `SITUATIONS`
/// follows from a match without a wildcard, so a new one does not compile before it has a name, and
/// then fails here until it has a story.
#[test]
fn rule_18_the_stories_cover_every_situation() {
    let reached: std::collections::BTreeSet<&str> =
        STORIES.iter().map(|(_, _, make)| situation(make().state())).collect();
    // People are asked in the very step that finds out that they have to be, so no instance is left
    // in it.
    let passed_through = "ask";
    for name in SITUATIONS {
        assert_eq!(reached.contains(name), *name != passed_through, "stories that end in `{name}`");
    }
}

/// A reason that can be reached has a story.
#[test]
fn rule_18_the_stories_cover_every_reason() {
    let reached: std::collections::BTreeSet<Reason> =
        STORIES.iter().filter_map(|(_, _, make)| make().state().standing().reason).collect();
    let elsewhere =
        [Reason::ConcurrencyLimitExceeded, Reason::VersionMismatch, Reason::VersionDirty];
    for reason in Reason::ALL.iter().filter(|reason| !elsewhere.contains(reason)) {
        assert!(reached.contains(reason), "no story ends in {reason}");
    }
}
