//! One bad row, or one broken invariant, stops one instance: visibly, and never the daemon.

use pvn_scheduler::driver::{Ask, Refusal};
use schema::status::{JobKind, Status};

use super::round::tidy_world;
use super::{Rig, TWO_CHANNELS, caller, target};

/// What is done to the state of `staging`, as SQL over its column.
const DAMAGES: &[(&str, &str)] = &[
    ("not even JSON", "'{\"instance\": 1'"),
    ("not a text of ours", "'[]'"),
    ("of another version", "json_set(state, '$.format', 99)"),
    ("a field that cannot be", "json_set(state, '$.seen_at', 'never')"),
    ("what must not be", "json_set(state, '$.wants.apply', '2026-07-01T10:00:00.000Z', '$.paused', json('true'))"),
];

fn damage(how: &str) -> String {
    format!("UPDATE instances SET state = {how} WHERE channel_id = (SELECT id FROM channels WHERE name = 'staging')")
}

/// Staging is broken, and says so everywhere; production goes on.
async fn check_broken(rig: &Rig, name: &str) {
    let what = format!("{name}: staging to be BROKEN");
    let look = async || {
        let lines = rig.handle.broken();
        (lines.len() == 1 && rig.instance("staging").await.status == Status::Broken).then_some(lines)
    };
    let broken = rig.until(&what, look).await;
    assert!(broken[0].starts_with("app/web in staging: "), "{name}: {broken:?}");
    let explained = rig.handle.explain(target("staging")).await.unwrap();
    assert_eq!(explained.status, Status::Broken, "{name}");
    assert!(explained.causes.iter().any(|cause| cause.message.contains("pvnctl services retry")), "{name}: {explained:?}");
    let refused = rig.handle.ask(target("staging"), Ask::Pause, caller("eve")).await.unwrap_err();
    assert!(matches!(&refused, Refusal::Conflict(why) if why.contains("BROKEN")), "{name}: {refused}");
    // The other one still does what it is asked.
    rig.handle.ask(target("production"), Ask::Pause, caller("eve")).await.unwrap();
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
        assert!(rig.runner.seen.lock().unwrap().iter().all(|spec| super::round::variable(spec, "PVN_RELEASE_CHANNEL") != "staging"));

        // It is still so after another restart, and then somebody starts it anew.
        let rig = rig.restart(tidy_world()).await;
        check_broken(&rig, name).await;
        rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
        if rig.instance("staging").await.status == Status::Paused {
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
        assert_eq!(first, Some(JobKind::Fetch), "{name}: nothing is applied before fetch has looked");
        assert!(rig.handle.broken().is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_a_broken_invariant_stops_one_instance() {
    let rig = Rig::start(tidy_world()).await;
    rig.request(TWO_CHANNELS, true).await.unwrap();
    rig.until_status("production", Status::Converged).await;
    // The count of its jobs is at its end: the next one panics in a build with checks, as ours here is.
    let rig = rig
        .edited(
            &damage("json_set(state, '$.jobs', 18446744073709551615)").replace("18446744073709551615", "json('18446744073709551615')"),
            tidy_world(),
        )
        .await;
    rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
    check_broken(&rig, "panic in a step").await;
    rig.handle.ask(target("staging"), Ask::Retry, caller("eve")).await.unwrap();
    rig.until_status("staging", Status::Converged).await;
}
