//! Jobs' output as bytes and live, and the log live.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{FutureExt, StreamExt};
use pvn_scheduler::clock::Clock;
use pvn_scheduler::http::OutputRange;
use pvn_scheduler::store::{Change, Commit, JobRow, TokenRow};
use schema::api::LogEntry;
use schema::id::{InstanceId, JobId, ReleaseId};
use schema::spool::Stream;
use schema::status::{JobKind, JobStatus, Role};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::{Service, request, token};
use crate::store::at;

pub(super) async fn job(service: &Service, status: JobStatus) -> JobRow {
    let store = &service.rig.store;
    let app = store.find_application("app").await.unwrap().unwrap();
    let channel = store.find_channel(app.id, "staging").await.unwrap().unwrap();
    let service = store.find_service(app.id, "web").await.unwrap().unwrap();
    JobRow {
        id: JobId::from_bytes([7; 16]),
        seq: 1_000_000,
        instance: InstanceId::of(service.id, channel.id),
        service: service.id,
        channel: channel.id,
        release: ReleaseId::from_bytes([1; 16]),
        kind: JobKind::Fetch,
        version: "web-1".to_owned(),
        runtime: "local".parse().unwrap(),
        target: None,
        attempt: 1,
        status,
        exit_code: status.is_final().then_some(0),
        message: String::new(),
        created_at: at(1),
        started_at: Some(at(1)),
        ended_at: status.is_final().then_some(at(2)),
        report: None,
        start: None,
        stop: None,
        once: false,
    }
}

pub(super) async fn with_job(service: &Service, status: JobStatus) -> String {
    let job = job(service, status).await;
    let path = format!("/v1/jobs/{}/logs", job.id);
    service.rig.store.commit(&Commit { jobs: vec![job], ..Commit::default() }).await.unwrap();
    path
}

/// Output that is all there: `stdout` every byte there is, `stderr` a word.
fn all_there(piece: &OutputRange) -> std::io::Result<Vec<u8>> {
    let whole: Vec<u8> = match piece.stream {
        Stream::Stdout => (0..=255).collect(),
        Stream::Stderr => b"word".to_vec(),
    };
    Ok(whole.into_iter().skip(usize::try_from(piece.offset).unwrap()).take(piece.limit).collect())
}

/// Asks for a stream of events.
fn stream_of(path: &str, token: &str, last_id: Option<&str>) -> Request<Body> {
    let mut request = request("GET", path, Some(token), Body::empty());
    request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    if let Some(id) = last_id {
        request.headers_mut().insert("last-event-id", id.parse().unwrap());
    }
    request
}

/// Reads a stream of events to its end.
async fn events(service: &Service, path: &str, last_id: Option<&str>) -> Vec<(String, Value)> {
    let answer = service.ask(stream_of(path, "viewer", last_id)).await;
    assert_eq!(answer.status, StatusCode::OK);
    read_events(&String::from_utf8(answer.body).unwrap())
}

fn read_events(text: &str) -> Vec<(String, Value)> {
    let field = |event: &str, name: &str| {
        event
            .lines()
            .find_map(|line| line.strip_prefix(name).map(|rest| rest.trim_start().to_owned()))
    };
    text.split("\n\n")
        .filter_map(|event| {
            Some((field(event, "event:")?, serde_json::from_str(&field(event, "data:")?).unwrap()))
        })
        .collect()
}

#[tokio::test]
async fn output_comes_as_its_bytes_from_an_offset() {
    let service = Service::printing(all_there).await;
    let path = with_job(&service, JobStatus::Succeeded).await;
    let whole = service.get(&format!("{path}?stream=stdout")).await;
    assert_eq!(whole.body, (0..=255).collect::<Vec<u8>>());
    assert_eq!(whole.headers["content-type"], "application/octet-stream");
    assert_eq!(
        service.get(&format!("{path}?stream=stdout&offset=250&limit=3")).await.body,
        [250, 251, 252]
    );
    assert_eq!(service.get(&format!("{path}?stream=stderr&offset=4")).await.body, b"");
    assert!(service.get(&path).await.detail().starts_with("say which stream: `?stream=stdout`"));
}

#[tokio::test]
async fn live_output_has_both_streams_and_ends_with_the_job() {
    let service = Service::printing(all_there).await;
    let path = with_job(&service, JobStatus::Succeeded).await;
    let seen = events(&service, &format!("{path}?stdoutOffset=254"), None).await;
    let kinds: Vec<_> = seen
        .iter()
        .map(|(kind, data)| (kind.as_str(), data["stream"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(kinds, [("chunk", "stdout"), ("chunk", "stderr"), ("end", "")]);
    assert_eq!(STANDARD.decode(seen[0].1["data"].as_str().unwrap()).unwrap(), [254, 255]);
    assert_eq!(seen[0].1["offset"], 254);
    assert_eq!(seen[2].1, serde_json::json!({"status": "SUCCEEDED", "exitCode": 0}));
    assert_eq!(
        events(&service, &path, Some("256,4")).await.len(),
        1,
        "a browser that comes back gets the rest"
    );
}

#[tokio::test]
async fn live_output_of_a_running_job_goes_on_until_it_ends() {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let output = move |piece: &OutputRange| {
        // A byte more at each look, as if the job printed.
        let length = if piece.stream == Stream::Stdout {
            counted.fetch_add(1, Ordering::SeqCst) / 2
        } else {
            0
        };
        Ok(vec![b'x'; length.min(5).saturating_sub(usize::try_from(piece.offset).unwrap())])
    };
    let service = Service::printing(output).await;
    let path = with_job(&service, JobStatus::Running).await;
    let end = async {
        while looks.load(Ordering::SeqCst) < 12 {
            tokio::task::yield_now().await;
        }
        service
            .rig
            .store
            .commit(&Commit {
                jobs: vec![job(&service, JobStatus::Failed).await],
                ..Commit::default()
            })
            .await
            .unwrap();
        // The loop tells what it commits; it did not commit this.
        let pushed = service.post("/v1/applications/app/services/web/push", "{}").await;
        assert_eq!(pushed.status, StatusCode::OK);
    };
    let (seen, ()) = tokio::join!(events(&service, &path, None), end);
    let bytes: usize = seen
        .iter()
        .filter_map(|(_, data)| data["data"].as_str())
        .map(|data| STANDARD.decode(data).unwrap().len())
        .sum();
    assert_eq!((bytes, &seen.last().unwrap().1["status"]), (5, &"FAILED".into()));
}

fn entry(seq: u64, service: &str) -> LogEntry {
    LogEntry {
        seq,
        at: at(1),
        kind: "instance.status".to_owned(),
        actor: None,
        origin: None,
        application: Some("app".parse().unwrap()),
        service: Some(service.parse().unwrap()),
        channel: None,
        message: format!("entry {seq}"),
        data: Value::Null,
    }
}

#[tokio::test]
async fn the_log_goes_on_after_the_last_event_id() {
    let service = Service::start().await;
    let log = (1..=1200)
        .map(|seq| entry(1000 + seq, if seq % 2 == 0 { "web" } else { "other" }))
        .collect();
    service.rig.store.commit(&Commit { events: log, ..Commit::default() }).await.unwrap();
    let request = stream_of("/v1/events?application=app&service=web", "viewer", Some("1004"));
    let mut pieces = service.send(request).await.into_body().into_data_stream();
    let mut text = String::new();
    while !text.contains("id: 2200\n") {
        text += std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap();
    }
    let seen: Vec<_> =
        read_events(&text).into_iter().map(|(_, data)| data["seq"].as_u64().unwrap()).collect();
    assert_eq!(seen, (1006..=2200).step_by(2).collect::<Vec<_>>());
    service.stop.cancel();
    while pieces.next().await.is_some() {}
}

#[tokio::test]
async fn a_stream_after_an_entry_that_the_log_does_not_have_yet_is_refused() {
    let service = Service::start().await;
    service
        .rig
        .store
        .commit(&Commit { events: vec![entry(1000, "web")], ..Commit::default() })
        .await
        .unwrap();
    for (path, last_id) in [("/v1/events", Some("1001")), ("/v1/events?after=1001", None)] {
        let answer = service.ask(stream_of(path, "viewer", last_id)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert!(
            answer.detail().starts_with("the log has no entry 1001 yet, its newest is 1000: "),
            "{}",
            answer.detail()
        );
    }
}

/// Opens a stream by this token.
async fn open(service: &Service, path: &str, token: &str) -> axum::body::BodyDataStream {
    let answer = service.send(stream_of(path, token, None)).await;
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.into_body().into_data_stream()
}

/// Reads until the stream ends, which a stream does by itself only after its token.
async fn ends(mut stream: axum::body::BodyDataStream) {
    let all = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(std::time::Duration::from_secs(10), all)
        .await
        .expect("the stream ends with its token");
}

#[tokio::test]
async fn one_of_many_is_sick_a_token_that_leaves_streams_open_takes_them_from_no_other() {
    // Half of the connections are streams, three quarters of which are for one token.
    let service = Service::with_connections(64).await;
    let mut streams = Vec::new();
    for _ in 0..24 {
        streams.push(open(&service, "/v1/events", "viewer").await);
    }
    let refused = service.ask(stream_of("/v1/events", "viewer", None)).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        refused.detail().starts_with("24 streams of the token `viewer` are open already"),
        "{}",
        refused.detail()
    );
    for _ in 24..32 {
        streams.push(open(&service, "/v1/events", "admin").await);
    }
    let refused = service.ask(stream_of("/v1/events", "admin", None)).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.detail().starts_with("32 streams are open already"), "{}", refused.detail());
    drop(streams.remove(0));
    streams.push(open(&service, "/v1/events", "viewer").await);
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let service = Service::start().await;
    let path = with_job(&service, JobStatus::Running).await;
    let soon = Clock::System.now().plus_ms(1_500);
    let short = match token("short", Role::Viewer) {
        Change::Token(row) => Change::Token(TokenRow { expires_at: Some(soon), ..row }),
        other => other,
    };
    service.rig.store.commit(&Commit { changes: vec![short], ..Commit::default() }).await.unwrap();
    let (log, output) =
        (open(&service, "/v1/events", "short").await, open(&service, &path, "short").await);
    tokio::join!(ends(log), ends(output));
    let (log, output) =
        (open(&service, "/v1/events", "viewer").await, open(&service, &path, "viewer").await);
    let mut others = open(&service, &path, "approver").await;
    let answer =
        service.ask(request("DELETE", "/v1/tokens/viewer", Some("admin"), Body::empty())).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    tokio::join!(ends(log), ends(output));
    while let Some(piece) = others.next().now_or_never() {
        assert!(piece.is_some(), "another token's stream ended");
    }
    let answer = service.ask(request("GET", "/v1/events", Some("viewer"), Body::empty())).await;
    assert!(answer.detail().contains("the token `viewer` was revoked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_take_nothing_keep_the_database_from_nobody() {
    /// Well above the connections that readers of the database share.
    const READERS: usize = 60;
    let service = Service::printing(|piece: &OutputRange| Ok(vec![b'x'; piece.limit])).await;
    let path = with_job(&service, JobStatus::Running).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(axum::serve(listener, service.router.clone()).into_future());
    let follow = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer\r\nAccept: \
         text/event-stream\r\n\r\n"
    );
    let readers = (0..READERS).map(async |_| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut reader = socket.connect(address).await.unwrap();
        reader.write_all(follow.as_bytes()).await.unwrap();
        reader
    });
    let readers = futures::future::join_all(readers).await;
    // Long enough for what is between them to fill up.
    for _ in 0..10 {
        let services = service.get("/v1/services").await;
        assert_eq!(services.status, StatusCode::OK, "{}", services.detail());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    drop(readers);
    serving.abort();
}
