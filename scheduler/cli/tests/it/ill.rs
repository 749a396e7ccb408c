//! A scheduler that starts nothing at present says so wherever people look at services.

use serde_json::{Value, json};

use crate::run;
use crate::server::{Server, json as answer};

const WHY: &str =
    "nothing new is started since 2026-01-01T00:00:00.000Z: database is locked; reading goes on";

fn server(ready: (u16, Value)) -> Server {
    let service = json!({"id": format!("svc-{}", "0".repeat(32)), "name": "web", "application": "shop", "version": null, "channels": []});
    let explanation = json!({"status": "CONVERGED", "reason": null, "message": "web-1 is as desired", "causes": [], "next": []});
    Server::answering([
        answer("GET /readyz", ready.0, ready.1),
        answer("GET /v1/applications/shop/services/web/channels/eu/explain", 200, explanation),
        answer("GET /v1/applications/shop/services/web", 200, service.clone()),
        answer(
            "GET /v1/services",
            200,
            json!({"items": [service], "nextCursor": null, "total": 1}),
        ),
    ])
}

#[test]
fn what_is_seen_of_services_comes_with_a_note_while_the_scheduler_starts_nothing() {
    let looks: [&[&str]; 3] = [
        &["services", "list"],
        &["services", "get", "web", "--app", "shop"],
        &["services", "explain", "web", "--app", "shop", "--channel", "eu"],
    ];
    let problem = json!({"type": "/problems/unavailable", "title": "Unavailable", "status": 503, "detail": WHY, "problems": []});
    for look in looks {
        for format in ["table", "json"] {
            let words = [look, &["-o", format]].concat();
            let ill = run(&server((503, problem.clone())), &words);
            let note = "note: the scheduler starts nothing at present: since \
                        2026-01-01T00:00:00.000Z: database is locked; reading goes on\n";
            assert_eq!((ill.code, ill.stderr.as_str()), (0, note), "{words:?}");
            let well = run(&server((200, json!({"status": "ok"}))), &words);
            assert_eq!(
                (well.code, well.stderr.as_str(), &well.stdout),
                (0, "", &ill.stdout),
                "{words:?}"
            );
            // A server of before, or a proxy that keeps it to itself, is no reason to say anything.
            let unknown = run(&server((404, json!({}))), &words);
            assert_eq!((unknown.code, unknown.stderr.as_str()), (0, ""), "{words:?}");
        }
    }
}
