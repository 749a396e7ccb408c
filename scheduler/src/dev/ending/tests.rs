//! How a run ends, given what was told and services as the API tells them.

use schema::time::Timestamp;
use serde_json::{Value, json};

use super::*;

fn entry(seq: u64, channel: &str, data: Value) -> LogEntry {
    LogEntry {
        seq,
        at: Timestamp::from_millis(0),
        kind: "instance.status".to_owned(),
        actor: None,
        origin: None,
        application: Some("shop".parse().unwrap()),
        service: Some("web".parse().unwrap()),
        channel: Some(channel.parse().unwrap()),
        message: String::new(),
        data,
    }
}

/// `web` of `shop` with these channels.
fn service(channels: &[(&str, Status)]) -> Service {
    let channels: Vec<_> = channels
        .iter()
        .map(|(channel, status)| {
            json!({
                "channel": channel, "channelId": "rch-00000000000000000000000000000001",
                "runtime": "vm", "status": status, "reason": null, "message": "m",
                "desiredVersion": "web-1", "since": "2026-01-01T00:00:00.000Z", "objects": [],
                "info": [], "approvals": [], "paused": false, "observer": false,
            })
        })
        .collect();
    serde_json::from_value(json!({
        "id": "svc-00000000000000000000000000000001", "name": "web", "application": "shop",
        "version": "web-1", "channels": channels,
    }))
    .unwrap()
}

fn check(told: &[LogEntry], channels: &[(&str, Status)], failed: &[&str], waiting: &[&str]) {
    let mut failures = FailuresTold::after(10);
    for entry in told {
        failures.keep(entry);
    }
    let mut standings = Standings::default();
    standings.add(&[Goal::of_service("shop", "web")], &service(channels), &failures).unwrap();
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    assert_eq!(standings, Standings { failed: owned(failed), waiting: owned(waiting) });
}

#[test]
fn what_was_told_as_failed_has_failed_whatever_a_look_sees() {
    use Status::{Converged, Converging, Failed};
    let told = [entry(11, "a", json!({"from": "CONVERGING", "to": "FAILED"}))];
    check(&told, &[("a", Failed)], &["shop/web in a"], &[]);
    check(&told, &[("a", Converged)], &["shop/web in a (CONVERGED since)"], &[]);
    check(
        &told,
        &[("a", Converging), ("b", Failed)],
        &["shop/web in b, a (CONVERGING since)"],
        &[],
    );
    check(&[], &[("a", Converging)], &[], &["shop/web in a is CONVERGING: m"]);
}

#[test]
fn what_is_not_of_this_run_or_of_other_commands_has_not_failed() {
    let converged = [("a", Status::Converged)];
    check(&[entry(10, "a", json!({"to": "FAILED"}))], &converged, &[], &[]);
    check(&[entry(11, "a", json!({"to": "CONVERGED"}))], &converged, &[], &[]);
    check(&[entry(11, "gone", json!({"to": "FAILED"}))], &converged, &[], &[]);
    let other_commands = json!({"to": "FAILED", "reason": "APPLY_FAILED", "outdated": "true"});
    check(&[entry(11, "a", other_commands)], &converged, &[], &[]);
    let by_a_person = json!({"to": "FAILED", "reason": "CANCELLED", "outdated": "true"});
    check(&[entry(11, "a", by_a_person)], &converged, &["shop/web in a (CONVERGED since)"], &[]);
}
