//! The logs of a job, all of them and as they come.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

#[test]
fn logs_come_byte_for_byte_on_both_streams() {
    let id = format!("job-{}", "a".repeat(32));
    let all: Vec<u8> = (0..=255).collect();
    let logs = |stream: &str, offset: usize, body: &[u8]| {
        bytes(
            &format!("GET /v1/jobs/{id}/logs?stream={stream}&offset={offset}&limit=1048576"),
            "application/octet-stream",
            body,
        )
    };
    let server = Server::answering([
        logs("stdout", 0, &all),
        logs("stdout", 256, b"x"),
        logs("stdout", 257, b""),
        logs("stderr", 0, b"e\xff"),
        logs("stderr", 2, b""),
    ]);
    let ran = run(&server, &["jobs", "logs", &id]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout_bytes, [&all[..], b"x"].concat());
    assert_eq!(ran.stderr_bytes, b"e\xff");
}

#[test]
fn followed_logs_go_on_where_the_connection_broke() {
    let id = format!("job-{}", "a".repeat(32));
    let chunk = |stream: &str, offset: u64, data: &[u8]| {
        format!(
            "event: chunk\ndata: {}\n\n",
            json!({"stream": stream, "offset": offset, "data": STANDARD.encode(data)})
        )
    };
    let first =
        format!("{}{}: alive\n\n", chunk("stdout", 0, b"one\n"), chunk("stderr", 0, b"oops"));
    let second = format!(
        "{}event: end\ndata: {}\n\n",
        chunk("stdout", 4, b"two\n"),
        json!({"status": "SUCCEEDED", "exitCode": 0})
    );
    let stream = |from: (u64, u64), body: &str| {
        bytes(
            &format!("GET /v1/jobs/{id}/logs?stdoutOffset={}&stderrOffset={}", from.0, from.1),
            "text/event-stream",
            body.as_bytes(),
        )
    };
    let server = Server::answering([stream((0, 0), &first), stream((4, 4), &second)]);
    let ran = run(&server, &["jobs", "logs", "-f", &id]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "one\ntwo\n", "oops"));
}

#[test]
fn followed_logs_bear_that_the_first_connection_breaks_and_say_so() {
    let id = format!("job-{}", "a".repeat(32));
    let chunk = json!({"stream": "stdout", "offset": 0, "data": STANDARD.encode(b"one\n")});
    let end = json!({"status": "SUCCEEDED", "exitCode": 0});
    let path = format!("GET /v1/jobs/{id}/logs?stdoutOffset=0&stderrOffset=0");
    let whole = bytes(
        &path,
        "text/event-stream",
        format!("event: chunk\ndata: {chunk}\n\nevent: end\ndata: {end}\n\n").as_bytes(),
    );
    // It hangs up, as one that is just being stopped does, and is there again.
    let server = Server::answering([answer(&path, 0, json!({})).times(1), whole]);
    let ran = run(&server, &["jobs", "logs", "-f", &id]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cannot reach") && ran.stderr.contains("a job that runs goes on"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_is_missing_in_the_middle_of_logs_is_said_on_stderr() {
    let id = format!("job-{}", "a".repeat(32));
    let mut job = job(1);
    job["report"] = json!({
        "exitCode": 0, "stdoutBytes": 1000, "stderrBytes": 1, "stdoutHeadBytes": 4, "truncated": true, "version": "1",
        "startTimestampNs": "0", "durationNs": "0",
    });
    let of = |path: &str, kind, body: &[u8]| {
        bytes(&format!("GET /v1/jobs/{id}/logs?{path}"), kind, body)
    };
    let piece = |stream: &str, offset: usize, body: &[u8]| {
        of(
            &format!("stream={stream}&offset={offset}&limit=1048576"),
            "application/octet-stream",
            body,
        )
    };
    let chunk = json!({"stream": "stdout", "offset": 0, "data": STANDARD.encode(b"headtail")});
    let end = json!({"status": "SUCCEEDED", "exitCode": 0});
    let live = format!("event: chunk\ndata: {chunk}\n\nevent: end\ndata: {end}\n\n");
    let server = Server::answering([
        piece("stdout", 0, b"headtail"),
        piece("stdout", 8, b""),
        piece("stderr", 0, b"e"),
        piece("stderr", 1, b""),
        of("stdoutOffset=0&stderrOffset=0", "text/event-stream", live.as_bytes()),
        answer(&format!("GET /v1/jobs/{id}"), 200, job),
    ]);
    let said = "992 of 1000 bytes of stdout are missing after byte 4: they were not kept\n";
    let check = |more: &[&str], stderr: &str| {
        let ran = run(&server, &[&["jobs", "logs", id.as_str()], more].concat());
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (0, "headtail", stderr),
            "{more:?}"
        );
    };
    check(&[], &format!("e{said}"));
    check(&["-f", "--stream", "stdout"], said);
}
