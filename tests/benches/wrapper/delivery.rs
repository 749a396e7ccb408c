//! A run that is delivered: how soon a scheduler hears what the command writes, and how long the
//! wrapper stays when the command has ended. The scheduler is the least one: it takes everything at
//! once and keeps nothing.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::{Bench, ms, percentile, row};

/// Runs; each lives for half a second, so that its connection is warm and its streams are live.
const ROUNDS: usize = 20;

/// Says something at once, and later ends; who reads the named pipe learns when.
const SCRIPT: &str = "exec 9>\"$0\"; echo something; exec sleep 0.5";

/// When the first piece of a stream arrived.
type First = Arc<Mutex<Option<Instant>>>;

pub(crate) fn table(bench: &Bench) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let first = First::default();
    let heard = Arc::clone(&first);
    // It ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || serve(stream, &heard));
        }
    });
    let ended = bench.path("ended");
    let made = Command::new("mkfifo").arg(&ended).status().expect("there is a program `mkfifo`");
    assert!(made.success(), "{made}");
    let (mut first_bytes, mut exits) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        *first.lock().expect("nobody panics") = None;
        let mut command = bench.exec();
        command
            .args(["--", "sh", "-c", SCRIPT])
            .arg(&ended)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
            .env("PVN_API_URL", &url)
            .env("PVN_TOKEN", "token")
            .env("PVN_JOB_ID", format!("job-{round}"));
        let start = Instant::now();
        let mut running = command.spawn().expect("it can be started");
        // Opened when the command does, and at its end when it ends.
        let mut pipe = std::fs::File::open(&ended).expect("the command opens it too");
        pipe.read_to_end(&mut Vec::new()).expect("a pipe can be read");
        let end = Instant::now();
        assert!(running.wait().expect("it ends").success());
        exits.push(end.elapsed());
        first_bytes.push(
            first
                .lock()
                .expect("nobody panics")
                .expect("a piece arrived while it ran")
                .saturating_duration_since(start),
        );
    }
    row(
        "first byte at the scheduler, from the start, p50",
        ms(percentile(&mut first_bytes, 0.5)),
        "ms",
        "under 250",
    );
    row("  the slowest of 20", ms(percentile(&mut first_bytes, 1.0)), "ms", "under 250");
    row(
        "from the end of the command to ours, delivered, p50",
        ms(percentile(&mut exits, 0.5)),
        "ms",
        "under 3",
    );
    row("  the slowest of 20", ms(percentile(&mut exits, 1.0)), "ms", "");
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, first: &First) {
    // Latency is what is measured.
    stream.set_nodelay(true).expect("a socket takes the option");
    let mut answers = stream.try_clone().expect("a socket can be cloned");
    let mut requests = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if requests.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut headers = HashMap::new();
        let mut header = String::new();
        while requests.read_line(&mut header).is_ok_and(|_| header.trim() != "") {
            let (name, value) = header.split_once(':').expect("a header has a name");
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            header.clear();
        }
        let number =
            |name: &str| headers.get(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
        let length = number("content-length");
        if requests.read_exact(&mut vec![0; length as usize]).is_err() {
            return;
        }
        let answer = if line.starts_with("PATCH") {
            first.lock().expect("nobody panics").get_or_insert_with(Instant::now);
            format!(
                "HTTP/1.1 204 No Content\r\nUpload-Offset: {}\r\n\r\n",
                number("upload-offset") + length
            )
        } else {
            let body = if line.contains("/report") {
                r#"{"accepted": true}"#
            } else {
                r#"{"cancel": false}"#
            };
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \
                 {}\r\n\r\n{body}",
                body.len()
            )
        };
        if answers.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
