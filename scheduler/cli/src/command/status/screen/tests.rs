//! The screen on wide and narrow terminals.

use serde_json::{Value, json};

use super::*;
use crate::typed::Typed;

const DIGITS: &str = "44b5ba1144b5ba1144b5ba1144b5ba11";

fn instance(service: &str, status: &str, message: &str) -> Value {
    json!({
        "application": "shop", "service": service, "channel": "production", "status": status, "reason": null,
        "message": message, "desiredVersion": format!("{service}-3"), "since": "2026-01-01T00:00:00.000Z", "nextActionAt": null,
        "approvals": [], "job": null,
    })
}

fn overview() -> Overview {
    let mut running = instance("api", "CONVERGING", "the apply runs");
    running["job"] = json!({
        "id": format!("job-{DIGITS}"), "kind": "apply", "status": "RUNNING", "attempt": 2, "startedAt": "2026-01-01T00:03:20.000Z",
        "usualMs": 80_000, "lastLine": "module.bucket: still creating, and this is a long line that no narrow terminal holds",
    });
    let mut failed = instance(
        "orders-db",
        "FAILED",
        &format!("job-{DIGITS} ended with 1; `pvnctl services retry` tries it again"),
    );
    failed["reason"] = json!("APPLY_FAILED");
    serde_json::from_value(json!({
        "at": "2026-01-01T00:04:00.000Z",
        "counts": {"WAITING_MANUAL_APPROVAL": 1, "FAILED": 1, "CONVERGING": 1, "CONVERGED": 1200},
        "instances": [instance("web", "WAITING_MANUAL_APPROVAL", "1 to add"), failed, running, instance("old", "CONVERGED", "")],
        "more": 7,
    }))
    .unwrap()
}

fn paper(width: Option<u16>, colour: bool) -> Paper {
    Paper { width, colour, wide: false, typed: Typed::default() }
}

#[test]
fn what_waits_for_a_person_is_on_top_with_the_command_that_answers_it() {
    insta::assert_snapshot!(draw(&overview(), &paper(Some(80), false)), @r"
    1 WAITING_MANUAL_APPROVAL, 1 FAILED, 1 CONVERGING, 1200 CONVERGED

    waiting for you
      shop/web@production  WAITING_MANUAL_APPROVAL  web-3  4m
        1 to add
        pvnctl approve shop/web@production

    failed
      shop/orders-db@production  FAILED  orders-db-3  4m  APPLY_FAILED
        job-44b5ba11 ended with 1; `pvnctl services retry
        shop/orders-db@production` tries it again
        pvnctl explain shop/orders-db@production

    on its way
      shop/api@production  CONVERGING  api-3  4m
        the apply runs
        apply job-44b5ba11 runs for 40s, usually 1m20s, attempt 2
        │ module.bucket: still creating, and this is a long line that no narrow term

    as desired
      shop
        old: production old-3

    and 7 more: --limit, or pvnctl get services --status STATUS
    ");
}

#[test]
fn a_narrow_terminal_breaks_no_address_status_or_command() {
    insta::assert_snapshot!(draw(&overview(), &paper(Some(40), false)), @r"
    1 WAITING_MANUAL_APPROVAL, 1 FAILED,
    1 CONVERGING, 1200 CONVERGED

    waiting for you
      shop/web@production
        WAITING_MANUAL_APPROVAL  web-3  4m
        1 to add
        pvnctl approve shop/web@production

    failed
      shop/orders-db@production  FAILED
        job-44b5ba11 ended with 1; `pvnctl
        services retry…
        pvnctl explain shop/orders-db@production

    on its way
      shop/api@production  CONVERGING  api-3
        the apply runs
        apply job-44b5ba11 runs for 40s,
        usually 1m20s, attempt 2
        │ module.bucket: still creating, and

    as desired
      shop
        old: production old-3

    and 7 more: --limit, or pvnctl get
    services --status STATUS
    ");
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let plain = draw(&overview(), &paper(Some(80), false));
    let coloured = draw(&overview(), &paper(Some(80), true));
    assert!(coloured.contains('\u{1b}'));
    assert_eq!(schema::shown::seen(&coloured), plain);
}

#[test]
fn nothing_at_all_says_how_to_begin() {
    let mut empty = overview();
    (empty.counts, empty.instances, empty.more) = (BTreeMap::new(), Vec::new(), 0);
    assert!(draw(&empty, &paper(None, false)).contains("`pvnctl apply PATH`"));
}
