//! Pieces of streams and files, in whatever order and cut wherever.

use axum::body::Body;
use axum::http::StatusCode;
use futures::stream;
use schema::id::BlobId;
use serde_json::json;

use super::{World, offset, report};

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_is_answered_with_the_next_byte_wanted_and_repeats_are_ignored() {
    let world = World::start().await;
    let job = world.fetch().await;
    for (at, bytes, status, next) in [
        (0, "hello", 204, 5),
        (0, "HELLO", 204, 5),
        (3, "LO world", 204, 11),
        (12, "!", 409, 11),
        (11, "", 204, 11),
        (11, "!", 204, 12),
    ] {
        let answer = job.patch("stdout", at, bytes).await;
        assert_eq!((answer.status.as_u16(), offset(&answer)), (status, Some(next)), "{at} {bytes}");
        let answer = job.send("HEAD", "streams/stdout", "").await;
        assert_eq!((answer.status, offset(&answer)), (StatusCode::NO_CONTENT, Some(next)));
    }
    assert_eq!(offset(&job.send("HEAD", "streams/stderr", "").await), Some(0));
    let gap = job.patch("stderr", 1, "x").await;
    assert!(gap.detail().contains("go on from offset 0"), "{}", gap.detail());
    job.accepted(&report(json!({"stdoutBytes": 12, "stdoutBlobId": BlobId::of(b"hello world!")})))
        .await;
    assert_eq!(
        world.blob(world.job(job.job).await.report.unwrap().stdout_blob_id),
        b"hello world!"
    );
    world.until("nothing being kept twice", async || (world.staged() == 0).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simple_client_may_call_its_bytes_what_its_tools_do() {
    let world = World::start().await;
    let job = world.fetch().await;
    for (kind, status) in [
        (None, 204),
        (Some("application/octet-stream"), 204),
        (Some("application/x-www-form-urlencoded"), 204),
        (Some("application/partial-upload; charset=x"), 204),
        (Some("application/json"), 415),
        (Some("multipart/form-data; boundary=x"), 415),
    ] {
        let mut request = job.request("PATCH", "streams/stdout").header("upload-offset", "0");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let answer = job.ask(request.body("x".into()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{kind:?}");
    }
    for wrong in ["", "-1", "+1", "1.0", "x", "99999999999999999999"] {
        let request = job.request("PATCH", "streams/stdout").header("upload-offset", wrong);
        assert_eq!(
            job.ask(request.body("x".into()).unwrap()).await.status,
            StatusCode::BAD_REQUEST,
            "{wrong:?}"
        );
    }
    assert!(
        job.send("PATCH", "streams/stdout", "x")
            .await
            .detail()
            .contains("Upload-Offset is missing")
    );
    assert_eq!(job.patch("stdin", 0, "x").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_body_over_the_limit_is_413_and_what_is_held_stays() {
    let world = World::start().await;
    let job = world.fetch().await;
    job.patch("stdout", 0, "held").await;
    let long = || Body::from(vec![b'x'; 8 * MIB + 1]);
    let unannounced = || {
        Body::from_stream(stream::iter(
            (0..9).map(|_| Ok::<_, std::convert::Infallible>(vec![b'x'; MIB])),
        ))
    };
    let answer = job.patch("stdout", 4, long()).await;
    assert_eq!((answer.status, offset(&answer)), (StatusCode::PAYLOAD_TOO_LARGE, None));
    assert!(answer.detail().contains("8388609"), "{}", answer.detail());
    assert_eq!(job.patch("stderr", 0, unannounced()).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(job.send("PUT", "files/plan", long()).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        job.send("PUT", "files/plan", unannounced()).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(
        job.send("PUT", "report", Body::from(vec![b' '; 9 * MIB + 1])).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(
        job.patch("stdout", 4, Body::from(vec![b'x'; 8 * MIB])).await.status,
        StatusCode::NO_CONTENT,
        "8 MiB are not too much"
    );
    let missing = job
        .report(&report(json!({"files": [{"name": "plan", "contentBlobId": BlobId::of(b"")}]})))
        .await;
    assert_eq!(missing.json()["wanted"]["files"], json!(["plan"]), "half a file is no file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_leaves_what_came_of_a_stream_and_nothing_of_a_file() {
    let world = World::start().await;
    let job = world.fetch().await;
    let broken = || {
        let pieces = [Ok(vec![b'x'; 3 * MIB / 2]), Err(std::io::Error::other("connection reset"))];
        Body::from_stream(stream::iter(pieces))
    };
    assert_eq!(job.patch("stdout", 0, broken()).await.status, StatusCode::REQUEST_TIMEOUT);
    assert_eq!(offset(&job.send("HEAD", "streams/stdout", "").await), Some(3 * MIB as u64 / 2));
    assert_eq!(job.send("PUT", "files/plan", broken()).await.status, StatusCode::REQUEST_TIMEOUT);
    let answer = job
        .report(&report(
            json!({"files": [{"name": "plan", "contentBlobId": BlobId::of(&[b'x'; 3 * MIB / 2])}]}),
        ))
        .await;
    assert_eq!(answer.json()["wanted"]["files"], json!(["plan"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_file_comes_whole_or_in_pieces() {
    let world = World::start().await;
    let job = world.fetch().await;
    let whole = job.send("PUT", "files/plan", "the plan").await;
    assert_eq!(
        (whole.status, whole.json()),
        (StatusCode::CREATED, json!({"blobId": BlobId::of(b"the plan")}))
    );
    let again = job.send("PUT", "files/plan", "another plan").await;
    assert_eq!(again.json(), json!({"blobId": BlobId::of(b"another plan")}), "the last one counts");
    for (at, bytes, status, next) in [
        (0, "01234", 204, Some(5)),
        (0, "01234", 204, Some(5)),
        (7, "789", 409, Some(5)),
        (5, "56789", 201, None),
        (5, "56789", 201, None),
    ] {
        let answer = job.file("large", at, 10, bytes).await;
        assert_eq!((answer.status.as_u16(), offset(&answer)), (status, next), "{at} {bytes}");
        if status == 201 {
            assert_eq!(answer.json(), json!({"blobId": BlobId::of(b"0123456789")}));
        }
    }
    assert_eq!(job.file("empty", 0, 0, "").await.json(), json!({"blobId": BlobId::of(b"")}));
    assert_eq!(job.file("small", 0, 2, "123").await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(job.send("PUT", "files/.hidden", "x").await.status, StatusCode::NOT_FOUND);
    assert_eq!(job.send("PUT", "files/a%2Fb", "x").await.status, StatusCode::NOT_FOUND);
    let named =
        |name: &str, content: &[u8]| json!({"name": name, "contentBlobId": BlobId::of(content)});
    let files = json!([named("plan", b"another plan"), named("large", b"0123456789"), named("empty", b""), {"name": "no", "error": "no such file"}]);
    job.accepted(&report(json!({"files": files}))).await;
    let kept = world.job(job.job).await.report.unwrap().files;
    assert_eq!(serde_json::to_value(&kept).unwrap(), files);
    assert_eq!(world.blob(kept[1].content_blob_id), b"0123456789");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_files_is_bounded() {
    let world = World::start().await;
    let job = world.fetch().await;
    for number in 0..pvn_scheduler::delivery::FILES_LIMIT {
        assert_eq!(
            job.send("PUT", &format!("files/f{number}"), "x").await.status,
            StatusCode::CREATED
        );
    }
    let answer = job.send("PUT", "files/more", "x").await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.detail().contains("`more` is one more"), "{}", answer.detail());
    assert_eq!(job.file("large", 0, 5 << 30, "x").await.status, StatusCode::PAYLOAD_TOO_LARGE);
}
