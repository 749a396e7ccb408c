//! One bad row, or one broken invariant, stops one instance: visibly, and never the daemon.

use pvn_scheduler::driver::{Ask, Refusal};
use pvn_scheduler::runner::{End, JobSpec, RunnerEvent};
use pvn_scheduler::store::{JobFilter, PageRequest};
use schema::cause::CauseCode;
use schema::status::{JobKind, Status};

use super::round::tidy_world;
use super::{Rig, TWO_CHANNELS, caller, target};

/// What is done to the state of `staging`, as SQL over its column.
const DAMAGES: &[(&str, &str)] = &[
    ("not even JSON", "'{\"instance\": 1'"),
    ("not a text of ours", "'[]'"),
    ("of another version", "json_set(state, '$.format', 99)"),
    ("a field that cannot be", "json_set(state, '$.seen_at', 'never')"),
    (
        "what must not be",
        "json_set(state, '$.wants.apply', '2026-07-01T10:00:00.000Z', '$.paused', json('true'))",
    ),
];

fn damage(how: &str) -> String {
    format!(
        "UPDATE instances SET state = {how} WHERE channel_id = (SELECT id FROM channels WHERE \
         name = 'staging')"
    )
}

/// Staging is broken, and says so everywhere; production goes on.
async fn check_broken(rig: &Rig, name: &str) {
    let what = format!("{name}: staging to be BROKEN");
    let look = async || {
        let lines = rig.handle.broken();
        (lines.len() == 1 && rig.instance("staging").await.status == Status::Broken)
            .then_some(lines)
    };
    let broken = rig.until(&what, look).await;
    assert!(broken[0].starts_with("app/web in staging: "), "{name}: {broken:?}");
    let explained = rig.handle.explain(target("staging")).await.unwrap();
    assert_eq!(explained.status, Status::Broken, "{name}");
    assert!(
        explained.causes.iter().any(|cause| cause.message.contains("pvnctl services retry")),
        "{name}: {explained:?}"
    );
    let refused = rig
        .handle
        .ask(target("staging"), Ask::Pause(Default::default()), caller("eve"))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, Refusal::Conflict(why) if why.contains("BROKEN")),
        "{name}: {refused}"
    );
    // The other one still does what it is asked.
    rig.handle
        .ask(target("production"), Ask::Pause(Default::default()), caller("eve"))
        .await
        .unwrap();
    rig.until_status("production", Status::Paused).await;
    rig.handle.ask(target("production"), Ask::Resume, caller("eve")).await.unwrap();
    rig.until_status("production", Status::Converged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_one_bad_row_stops_one_instance_and_a_person_starts_it_anew() {
    for (name, how) in DAMAGES {
        let rig = Rig::start(tidy_world()).await;
        rig.request(TWO_CHANNELS, true).await.unwrap();
        rig.until_status("production", Status::Converged).await;
        let rig = rig.edited(&damage(how), tidy_world()).await;
        check_broken(&rig, name).await;
        assert!(
            rig.runner
                .seen
                .lock()
                .unwrap()
                .iter()
                .all(|spec| super::round::variable(spec, "PVN_RELEASE_CHANNEL") != "staging")
        );

        // It is still so after another restart, and then somebody starts it anew.
        let rig = rig.restart(tidy_world()).await;
        check_broken(&rig, name).await;
        rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
        let anew = rig.instance("staging").await;
        if anew.status == Status::Paused {
            // Of the last one the row could be read so far, and a person had paused it.
            let by_a_person = anew.message.starts_with("paused by a person");
            assert_eq!(by_a_person, *name == "what must not be", "{name}: {}", anew.message);
            assert!(
                by_a_person || anew.message.starts_with("paused, because nobody knows any more"),
                "{name}: {}",
                anew.message
            );
            rig.handle.ask(target("staging"), Ask::Resume, caller("eve")).await.unwrap();
        }
        let mended = rig.until_status("staging", Status::Converged).await;
        assert_eq!(mended.desired_version.as_deref(), Some("web-1"), "{name}");
        let first = rig
            .runner
            .seen
            .lock()
            .unwrap()
            .iter()
            .find(|spec| super::round::variable(spec, "PVN_RELEASE_CHANNEL") == "staging")
            .map(|spec| spec.kind);
        assert_eq!(
            first,
            Some(JobKind::Fetch),
            "{name}: nothing is applied before fetch has looked"
        );
        assert!(rig.handle.broken().is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_broken_invariant_stops_one_instance() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    // The count of its jobs is at its end: the next one panics in a build with checks, as ours here
    // is.
    let rig = rig
        .edited(
            &damage("json_set(state, '$.jobs', 18446744073709551615)")
                .replace("18446744073709551615", "json('18446744073709551615')"),
            tidy_world(),
        )
        .await;
    rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
    check_broken(&rig, "panic in a step").await;
    rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
}

/// Both channels at once, one apply at a time.
fn one_at_a_time() -> String {
    let alone = TWO_CHANNELS.replace("    apply:\n", "    apply:\n      maxConcurrency: 1\n");
    alone.replace("    preconditions:\n    - releaseChannelStable: {releaseChannel: staging}\n", "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_08_what_may_run_of_an_instance_that_cannot_be_read_keeps_its_place_in_the_runtime() {
    let unreadable_job = "UPDATE jobs SET kind = 'xx' WHERE ended_at IS NULL AND kind = 'apply'";
    let unreadable_state =
        |channel: &str, how: &str| damage(how).replace("'staging'", &format!("'{channel}'"));
    let never = "json_set(state, '$.seen_at', 'never')";
    for (name, given_up) in [
        ("its job", false),
        ("its state", true),
        ("its state, as it was written before", true),
        ("both", false),
    ] {
        let play = || |spec: &JobSpec| (spec.kind != JobKind::Apply).then_some(2);
        let rig = Rig::start(play()).await;
        rig.request(&one_at_a_time(), true).await.unwrap();
        let runs = || {
            rig.runner.seen.lock().unwrap().iter().find(|spec| spec.kind == JobKind::Apply).cloned()
        };
        let apply = rig.until("an apply to run", async || runs()).await;
        let first = super::round::variable(&apply, "PVN_RELEASE_CHANNEL");
        let second = if first == "staging" { "production" } else { "staging" };
        rig.until("the apply to be known to run", async || {
            let row = rig.store.job_row(apply.job).await.unwrap()?;
            row.started_at.map(drop)
        })
        .await;
        if given_up {
            let end = End::Unknown { why: "it was lost".to_owned(), report: None };
            rig.runner.tell(RunnerEvent::Ended { job: apply.job, end, gone: false });
            let is_told = |message: &str| message.contains("may still run");
            rig.until("the apply to be given up", async || {
                is_told(&rig.instance(&first).await.message).then_some(())
            })
            .await;
        }
        let waits = async |rig: &Rig| {
            let told = rig.handle.explain(target(second)).await.unwrap();
            told.causes
                .iter()
                .any(|cause| {
                    cause.code == CauseCode::LimitFull
                        && cause.message.contains(&apply.job.to_string())
                })
                .then_some(())
        };
        rig.until(&format!("{name}: {second} to wait"), async || waits(&rig).await).await;
        let sql = match name {
            "its job" => unreadable_job.to_owned(),
            "its state" => unreadable_state(&first, never),
            "both" => format!("{unreadable_job}; {}", unreadable_state(&first, never)),
            _ => unreadable_state(&first, &format!("json_remove({never}, '$.unsettled_in')")),
        };
        let rig = rig.edited(&sql, play()).await;
        rig.until(&format!("{name}: {first} to be broken"), async || {
            (rig.handle.broken().len() == 1).then_some(())
        })
        .await;
        rig.until(&format!("{name}: {second} to wait still"), async || waits(&rig).await).await;
        assert_eq!(rig.runner.applies(), 0, "{name}");
        // Also once a person has it begin anew.
        rig.handle.ask(target(&first), Ask::Retry, caller("eve")).await.unwrap();
        rig.until(&format!("{name}: {second} to wait after that"), async || waits(&rig).await)
            .await;
        assert_eq!(rig.runner.applies(), 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_08_a_fetch_whose_row_cannot_be_read_takes_no_place_of_an_apply() {
    let play = |spec: &JobSpec| {
        (super::round::variable(spec, "PVN_RELEASE_CHANNEL") != "staging").then_some(1)
    };
    let rig = Rig::start(play).await;
    rig.request(&one_at_a_time(), true).await.unwrap();
    let fetch = async || {
        rig.store
            .jobs(&JobFilter::default(), &PageRequest::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .find(|job| job.started_at.is_some() && job.ended_at.is_none())
    };
    rig.until("a fetch to run", fetch).await;
    let sql = "UPDATE jobs SET attempt = 'xx' WHERE ended_at IS NULL AND kind = 'fetch'
               AND channel_id = (SELECT id FROM channels WHERE name = 'staging')";
    let rig = rig
        .edited(sql, |spec: &JobSpec| Some(if spec.kind == JobKind::Apply { 0 } else { 2 }))
        .await;
    rig.until("one to be broken", async || (rig.handle.broken().len() == 1).then_some(())).await;
    rig.until("the other to apply", async || (rig.runner.applies() > 0).then_some(())).await;
}
