//! Bodies over their limits are 413, and pages are bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::StatusCode;
use futures::{StreamExt, stream};
use pvn_scheduler::store::{Change, Commit};
use serde_json::json;

use super::{Service, request};
use crate::store::{application, instance, service as row};

const MIB: usize = 1 << 20;

/// A body of so many bytes, in pieces.
fn body(bytes: usize) -> Body {
    let pieces = (0..bytes.div_ceil(MIB))
        .map(move |at| Ok::<_, std::convert::Infallible>(vec![b' '; MIB.min(bytes - at * MIB)]));
    Body::from_stream(stream::iter(pieces))
}

#[tokio::test]
async fn body_over_the_limit_is_413_and_says_the_limit() {
    let service = Service::start().await;
    for (path, limit) in [
        ("/v1/applications/app/services/x/push", MIB),
        ("/v1/tokens", MIB),
        ("/v1/configs", 64 * MIB),
    ] {
        let answer = service.ask(request("POST", path, Some("admin"), body(limit + 1))).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        let detail = answer.detail();
        assert!(
            detail.contains(&(limit + 1).to_string()) && detail.contains(&limit.to_string()),
            "{detail}"
        );
        let answer = service.ask(request("POST", path, Some("admin"), body(limit))).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{path}: blanks are no JSON, and not too long"
        );
    }
}

#[tokio::test]
async fn a_refusal_reads_the_body_to_its_end_and_a_flood_not() {
    let service = Service::start().await;
    let mib = axum::body::Bytes::from(vec![b' '; MIB]);
    for (method, path, token, status) in [
        ("POST", "/v1/configs", None, StatusCode::UNAUTHORIZED),
        ("PUT", "/v1/secrets/x", Some("viewer"), StatusCode::FORBIDDEN),
        ("PUT", "/v1/jobs/x/report", None, StatusCode::UNAUTHORIZED),
        ("POST", "/v1/nothing", Some("admin"), StatusCode::NOT_FOUND),
        ("PUT", "/v1/configs", Some("admin"), StatusCode::METHOD_NOT_ALLOWED),
    ] {
        for (pieces, at_most) in [(3, 3), (100_000, 400)] {
            let read = Arc::new(AtomicUsize::new(0));
            let (piece, count) = (mib.clone(), Arc::clone(&read));
            let body = Body::from_stream(stream::iter(0..pieces).map(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok::<_, std::convert::Infallible>(piece.clone())
            }));
            assert_eq!(
                service.ask(request(method, path, token, body)).await.status,
                status,
                "{method} {path}"
            );
            // The answer does not wait for the rest of the body, which is held until it is read or
            // given up.
            let let_go = async || (Arc::strong_count(&read) == 1).then_some(());
            crate::wait::until(std::time::Duration::from_secs(30), let_go)
                .await
                .expect("the body is let go");
            let read = read.load(Ordering::Relaxed);
            assert!(read >= 3 && read <= at_most, "{method} {path}: {read} of {pieces}");
        }
    }
}

#[tokio::test]
async fn file_over_8_mib_in_configs_is_413_and_names_the_file() {
    let service = Service::start().await;
    let large = "x".repeat(8 * MIB + 1);
    for file in [
        json!({"path": "big.pvn.yaml", "text": large}),
        json!({"path": "a.pvn.yaml", "attachments": {"big.pvn.yaml": large}}),
    ] {
        let answer = service.post("/v1/configs", &json!({"files": [file]}).to_string()).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(
            answer.detail().starts_with("the file `big.pvn.yaml` has 8388609 bytes"),
            "{}",
            answer.detail()
        );
    }
}

#[tokio::test]
async fn a_page_is_bounded_whatever_is_asked() {
    let service = Service::start().await;
    let (app, channel) = application("large");
    let changes =
        vec![Change::Application(app.clone()), Change::Channel(Box::new(channel.clone()))];
    let mut commit = Commit { changes, ..Commit::default() };
    for number in 0..1100 {
        let row = row(&app, &format!("s{number:04}"));
        commit.instances.push(instance(&row, &channel, 1, schema::status::Status::Converged));
        commit.changes.push(Change::Service(row));
    }
    service.rig.store.commit(&commit).await.unwrap();
    for (query, items) in [("", 100), ("?limit=7", 7), ("?limit=100000", 1000)] {
        let page = service.get(&format!("/v1/services{query}")).await.json();
        assert_eq!(page["items"].as_array().unwrap().len(), items, "{query}");
        assert_eq!(page["total"], 1101);
        assert!(page["nextCursor"].is_string());
    }
}
