//! What a release would change, and what would hold it up, before it is made.

use serde_json::json;

use crate::run;
use crate::server::{Server, json as answer};

#[test]
fn a_dry_run_of_a_push_says_what_comes_next_and_what_holds_it_up() {
    let hold = |code: &str, message: &str| {
        json!({
            "code": code, "message": message, "since": null, "until": null
        })
    };
    let paused = "paused by ann (freeze): neither fetch nor apply starts until `pvnctl services \
                  resume`";
    let window = "waits until the apply window opens at 2026-07-06T07:00:00.000Z (Mon 2026-07-06 \
                  09:00 in Europe/Berlin)";
    let channel = |name: &str, more: serde_json::Value| {
        let mut channel = json!({
            "channel": name, "runtime": "vm", "before": "web-1", "params": [], "waitsFor": [],
            "next": "fetch looks at once, and apply follows if there is work"
        });
        channel.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        channel
    };
    let pushed = json!({
        "release": format!("rel-{}", "7".repeat(32)), "version": "web-2", "preview": [
            channel("dev", json!({"before": null})),
            channel("staging", json!({})),
            channel("eu", json!({
                "params": [{"name": "image", "before": "v1", "after": "v2", "keptFrom": "web-3"}],
                "commands": ["apply (arguments, env REGION)"],
                "next": "nothing: it stays paused by ann (freeze)",
                "waitsFor": [paused, window],
                "heldUpBy": [hold("PAUSED", paused), hold("WINDOW_SHUT", window)]
            })),
        ]
    });
    let path = "POST /v1/applications/shop/services/web/push";
    let server = Server::answering([answer(path, 200, pushed)]);
    let ran = run(&server, &["push", "shop/web", "--dry-run"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<_> = ran.stdout.lines().collect();
    let [head, dev, staging, eu] = lines[..] else { panic!("{}", ran.stdout) };
    assert!(head.ends_with("HELD UP BY"), "{head}");
    assert!(dev.contains("nothing  web-2  the first release "), "{dev}");
    assert!(staging.contains("nothing but the version "), "{staging}");
    assert!(staging.ends_with("fetch looks at once, and apply follows if there is work"));
    for said in [
        "image: v1 -> v2 (as in web-3), by config: apply (arguments, env REGION)  nothing: it \
         stays paused by ann (freeze) ",
        " paused by ann (freeze): neither fetch nor apply starts until `pvnctl services resume`; \
         waits until the apply window opens at ",
    ] {
        assert!(eu.contains(said), "{eu}");
    }
    let ran = run(&server, &["push", "shop/web", "--dry-run", "-o", "json"]);
    let printed: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(printed["preview"][2]["heldUpBy"][1]["code"], "WINDOW_SHUT");
}
