//! How goals are judged, given services as the API tells them.

use schema::id::{ChannelId, ServiceId};
use schema::time::Timestamp;
use serde_json::json;

use super::*;

fn service(version: Option<&str>, channels: &[(&str, Status, Option<&str>)]) -> Service {
    let channels = channels
        .iter()
        .map(|(channel, status, desired)| {
            serde_json::from_value(json!({
                "channel": channel, "channelId": ChannelId::from_bytes([1; 16]), "runtime": "vm", "status": status, "reason": null, "message": "",
                "desiredVersion": desired, "since": Timestamp::from_millis(0), "objects": [], "info": [], "approvals": [], "paused": false, "observer": false,
            }))
            .unwrap()
        })
        .collect();
    Service {
        id: ServiceId::from_bytes([1; 16]),
        name: "web".parse().unwrap(),
        application: "shop".parse().unwrap(),
        version: version.map(str::to_owned),
        channels,
    }
}

fn check(channels: Option<&[&str]>, service: &Service, expected: &GoalVerdict) {
    let channels = channels.map(|names| names.iter().map(ToString::to_string).collect());
    assert_eq!((Goal { channels, ..Goal::of_service("shop", "web") }).judge(service), *expected);
}

fn failed(channels: &[&str]) -> GoalVerdict {
    GoalVerdict::Failed(
        channels
            .iter()
            .map(|channel| FailedIn { channel: (*channel).to_owned(), taken_back: None })
            .collect(),
    )
}

fn taken_back(channel: &str, words: &str) -> GoalVerdict {
    GoalVerdict::Failed(vec![FailedIn {
        channel: channel.to_owned(),
        taken_back: Some(words.to_owned()),
    }])
}

fn never(why: &str) -> GoalVerdict {
    GoalVerdict::Never(why.to_owned())
}

#[test]
fn all_channels_with_a_release_must_converge() {
    use Status::{Converged, Converging, Failed};
    let v = Some("web-1");
    check(None, &service(v, &[("a", Converged, v), ("b", Converged, v)]), &GoalVerdict::Converged);
    check(None, &service(v, &[("a", Converged, v), ("b", Converging, v)]), &GoalVerdict::Waiting);
    check(None, &service(v, &[("a", Converging, v), ("b", Failed, v)]), &failed(&["b"]));
    check(
        None,
        &service(v, &[("a", Converged, v), ("never-released", Converging, None)]),
        &GoalVerdict::Converged,
    );
    check(
        Some(&["a"]),
        &service(v, &[("a", Converged, v), ("b", Failed, v)]),
        &GoalVerdict::Converged,
    );
}

#[test]
fn what_was_seen_before_the_commands_changed_is_not_the_end() {
    let mut service = service(Some("web-1"), &[("a", Status::Converged, Some("web-1"))]);
    service.channels[0].outdated = true;
    check(None, &service, &GoalVerdict::Waiting);
    service.channels[0].status = Status::Failed;
    check(None, &service, &GoalVerdict::Waiting);
    service.channels[0].reason = Some(Reason::Cancelled);
    check(None, &service, &failed(&["a"]));
}

#[test]
fn a_channel_that_the_config_has_again_is_not_converged_before_somebody_releases_there() {
    let v = Some("web-1");
    let one = service(v, &[("a", Status::Converged, v), ("back", Status::Deleted, v)]);
    let GoalVerdict::Never(why) = Goal::of_service("shop", "web").judge(&one) else {
        panic!("nothing is deployed in `back`")
    };
    assert!(
        why.starts_with("shop/web in back is DELETED")
            && why.contains("services push web --app shop --channels back"),
        "{why}"
    );
    check(Some(&["back"]), &one, &GoalVerdict::Never(why));
    check(Some(&["a"]), &one, &GoalVerdict::Converged);
    let never_released =
        service(v, &[("a", Status::Converged, v), ("back", Status::Deleted, None)]);
    check(None, &never_released, &GoalVerdict::Converged);
    check(
        None,
        &service(v, &[]),
        &never("shop/web has no channel with a release any more: a config took them away"),
    );
}

#[test]
fn what_can_never_come_is_said_at_once() {
    check(
        None,
        &service(None, &[]),
        &never("shop/web has no release; make one with `pvnctl services push web --app shop`"),
    );
    let one = service(Some("web-1"), &[("a", Status::Converged, Some("web-1"))]);
    check(Some(&["b"]), &one, &never("shop/web has no channel `b`; it has a"));
}

#[test]
fn what_was_taken_back_has_failed_whatever_it_went_back_to_stands_at() {
    let mut one = service(
        Some("web-1"),
        &[("a", Status::Converged, Some("web-1")), ("b", Status::Converged, Some("web-1"))],
    );
    one.channels[0].taken_back_version = Some("web-2".to_owned());
    for status in [Status::Converged, Status::Converging, Status::Failed] {
        one.channels[0].status = status;
        check(None, &one, &taken_back("a", "web-2 was taken back to web-1"));
    }
    check(Some(&["b"]), &one, &GoalVerdict::Converged);
}

// ---- of a release ----

fn release(number: u8) -> ReleaseId {
    ReleaseId::from_bytes([number; 16])
}

/// The release of this number, `web-N`, in these channels.
fn of_release(number: u8, channels: &[&str]) -> Goal {
    let mut goal = Goal::of_made("shop", "web", release(number), &format!("web-{number}"));
    goal.pursued.as_mut().unwrap().channels =
        Some(channels.iter().map(|name| name.parse().unwrap()).collect());
    goal
}

/// A service whose channels pursue the releases of these numbers.
fn pursuing(channels: &[(&str, Status, u8)]) -> Service {
    let versions: Vec<String> =
        channels.iter().map(|(_, _, number)| format!("web-{number}")).collect();
    let shown: Vec<_> = channels
        .iter()
        .zip(&versions)
        .map(|((name, status, _), version)| (*name, *status, Some(version.as_str())))
        .collect();
    let mut service = service(Some("web-9"), &shown);
    for (instance, (_, _, number)) in service.channels.iter_mut().zip(channels) {
        instance.release = Some(release(*number));
    }
    service
}

#[test]
fn a_release_is_judged_in_its_own_channels_whatever_goes_to_others() {
    use Status::{Converged, Converging, Failed};
    let goal = of_release(1, &["eu"]);
    for (status, expected) in [
        (Converged, GoalVerdict::Converged),
        (Converging, GoalVerdict::Waiting),
        (Failed, failed(&["eu"])),
    ] {
        assert_eq!(goal.judge(&pursuing(&[("eu", status, 1), ("us", Failed, 2)])), expected);
    }
    // Of the same version, and another release.
    let mut service = pursuing(&[("eu", Converged, 3), ("prod", Failed, 1)]);
    service.channels[0].desired_version = Some("web-1".to_owned());
    let back = Goal {
        pursued: Some(Pursued {
            version: "web-1".to_owned(),
            ..of_release(3, &["eu"]).pursued.unwrap()
        }),
        ..goal
    };
    assert_eq!(back.judge(&service), GoalVerdict::Converged);
}

#[test]
fn a_release_whose_place_another_took_in_a_channel_never_comes() {
    let goal = of_release(1, &["eu", "us"]);
    let replaced = pursuing(&[("eu", Status::Converging, 1), ("us", Status::Converged, 2)]);
    assert_eq!(goal.judge(&replaced), never("web-1 was replaced by web-2 in us"));
    let also_failed = pursuing(&[("eu", Status::Failed, 1), ("us", Status::Converged, 2)]);
    assert_eq!(goal.judge(&also_failed), failed(&["eu"]));
    let mut same_version = pursuing(&[("eu", Status::Converged, 1), ("us", Status::Converged, 2)]);
    same_version.channels[1].desired_version = Some("web-1".to_owned());
    assert_eq!(goal.judge(&same_version), never("web-1 was replaced by web-1 in us"));
}

#[test]
fn a_release_that_was_taken_back_has_failed_and_one_of_before_says_nothing_about_it() {
    let mut service = pursuing(&[("eu", Status::Converging, 3)]);
    service.channels[0].desired_version = Some("web-1".to_owned());
    service.channels[0].taken_back_version = Some("web-2".to_owned());
    assert_eq!(
        of_release(2, &["eu"]).judge(&service),
        taken_back("eu", "web-2 was taken back to web-1")
    );
    assert_eq!(of_release(4, &["eu"]).judge(&service), never("web-4 was replaced by web-1 in eu"));
}

#[test]
fn a_release_is_waited_for_where_nobody_knows_yet() {
    let service = pursuing(&[("eu", Status::Converged, 1)]);
    assert_eq!(
        Goal::of_made("shop", "web", release(1), "web-1").judge(&service),
        GoalVerdict::Waiting,
        "where it goes"
    );
    let mut of_before = service;
    of_before.channels[0].release = None;
    assert_eq!(
        of_release(1, &["eu"]).judge(&of_before),
        GoalVerdict::Converged,
        "a server that tells the version alone"
    );
    of_before.channels[0].desired_version = Some("web-0".to_owned());
    assert_eq!(of_release(1, &["eu"]).judge(&of_before), GoalVerdict::Waiting);
}

#[test]
fn one_that_stands_still_has_failed_whatever_it_pursued() {
    assert_eq!(
        of_release(2, &["eu"]).judge(&pursuing(&[("eu", Status::Broken, 1)])),
        failed(&["eu"])
    );
}

#[test]
fn channels_that_a_config_took_away_are_known_from_the_release_or_from_the_look_before() {
    let (both, one) = (
        pursuing(&[("eu", Status::Converged, 1), ("us", Status::Converging, 1)]),
        pursuing(&[("eu", Status::Converged, 1)]),
    );
    let goal = of_release(1, &["eu", "us"]);
    let us = BTreeSet::from(["us".to_owned()]);
    assert_eq!(goal.gone(None, &one), us);
    assert_eq!(goal.gone(Some(&both), &both), BTreeSet::new());
    assert_eq!(goal.judge(&one), GoalVerdict::Converged);
    assert_eq!(
        goal.judge(&pursuing(&[])),
        never("shop/web has no channel with a release any more: a config took them away")
    );
    let all = Goal::of_service("shop", "web");
    assert_eq!((all.gone(None, &one), all.gone(Some(&both), &one)), (BTreeSet::new(), us));
    // Who names a channel wants that one.
    let named = Goal { channels: Some(vec!["us".to_owned()]), ..goal };
    assert_eq!(named.judge(&one), never("shop/web has no channel `us`; it has eu"));
}
