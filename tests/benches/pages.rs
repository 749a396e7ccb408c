//! The pages of a daemon with 10,000 instances and 1,000,000 past jobs: how long each takes, how
//! large it is, what open pages cost, and how soon a change is on one of them.
//!
//! `cargo bench -p tests --bench pages [-- OPEN_PAGES]`

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::header;
use tests::person::Person;
use tests::scale::{self, percentiles, row};
use tests::scheduler::{Scheduler, Start};
use tests::{cpu, wait};

const SERVICES: usize = 1_000;
const CHANNELS: usize = 10;
const PAST_JOBS: u64 = 1_000_000;

/// How often each page is asked for, one request after another.
const LOOKS: usize = 100;

/// Changes that are looked for on an open page.
const CHANGES: usize = 50;

/// Pages that are open at once, where nothing else is asked for.
const OPEN_PAGES: usize = 1_000;

/// The service whose pages are asked for and which changes.
const SERVICE: &str = "/applications/app/services/s7";

fn main() {
    let open = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let mut scheduler = scale::converged(SERVICES, CHANNELS);
    scheduler.stop();
    scale::make_up_past(&scheduler, PAST_JOBS);
    scheduler.spawn(&Start::default());
    wait::until("the daemon to be ready", || {
        scheduler.get("/readyz").filter(|(status, _)| *status == 200)
    });
    let admin = Person::signed_in(&scheduler, &scheduler.token());

    println!("{:<44}{:>10} {:>10} {:>10}", "page", "median ms", "p99 ms", "bytes");
    for path in paths(&scheduler) {
        let (times, bytes): (Vec<_>, Vec<_>) = (0..LOOKS).map(|_| timed(&admin, &path)).unzip();
        let [median, p99] = percentiles(times);
        let bytes = bytes.iter().max().expect("it was asked for");
        println!("{path:<44}{median:>10.1} {p99:>10.1} {bytes:>10}");
    }
    let [median, p99] = percentiles(seen(&scheduler, &admin));
    row("a change to the page that shows it, median", median, "ms", "");
    row("a change to the page that shows it, p99", p99, "ms", "under 300");
    many(&scheduler, open.unwrap_or(OPEN_PAGES));
}

/// Every page of `docs/pages.md`, and the later pages of those that have some.
fn paths(scheduler: &Scheduler) -> Vec<String> {
    let job = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s7"])[0]["id"].clone();
    let release = &scheduler.json(&["releases", "list", "--app", "app", "--service", "s7"])[0];
    let id = |value: &serde_json::Value| value.as_str().expect("it has an id").to_owned();
    let mut paths: Vec<_> = [
        "/",
        "/services",
        "/services?name=s99",
        "/services?application=app&channel=c3",
        "/services?status=FAILED",
        "/jobs",
        "/approvals",
        "/releases",
        "/runtimes",
        "/runtimes/world",
        "/configs",
        "/configs/document?kind=application&name=app",
        "/configs/document?kind=service&application=app&name=s7",
        "/audit",
        "/audit?all=yes",
        "/sign-in",
    ]
    .map(str::to_owned)
    .into();
    paths.extend(["", "?channel=c9", "/deploy", "/rollback"].map(|of| format!("{SERVICE}{of}")));
    paths.push(format!("/jobs/{}", id(&job)));
    paths.push(format!("/releases/{}", id(&release["release"])));
    paths
}

/// Milliseconds until a page is here, and its bytes.
fn timed(person: &Person, path: &str) -> (f64, usize) {
    let start = Instant::now();
    let page = person.page(path);
    (start.elapsed().as_secs_f64() * 1_000.0, page.len())
}

/// A page that is open and listens.
struct OpenPage {
    connection: TcpStream,
    heard: String,
}

impl OpenPage {
    /// Opens the stream of a page, of one service or of everything.
    fn of(person: &Person, query: &str) -> Self {
        let host = person.url().trim_start_matches("http://");
        let mut connection = TcpStream::connect(host).expect("the daemon takes connections");
        let request = format!(
            "GET /live?{query} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\nAccept: \
             text/event-stream\r\n\r\n",
            person.cookie()
        );
        connection.write_all(request.as_bytes()).expect("the daemon reads");
        connection.set_nonblocking(true).expect("a connection can be looked at");
        Self { connection, heard: String::new() }
    }

    /// Whether it has heard of this many changes.
    fn has_heard(&mut self, changes: usize) -> bool {
        let mut piece = [0; 4096];
        loop {
            match self.connection.read(&mut piece) {
                Ok(0) => panic!("the stream ended: {}", self.heard),
                Ok(bytes) => self.heard += &String::from_utf8_lossy(&piece[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the stream broke: {error}"),
            }
        }
        assert!(
            self.heard.is_empty() || self.heard.starts_with("HTTP/1.1 200"),
            "the stream was refused: {}",
            self.heard
        );
        self.heard.matches("event: change").count() >= changes
    }
}

/// Pauses and resumes a channel whose page is open: from before the order is sent to the page,
/// asked for because its stream said so, which shows it. Milliseconds.
fn seen(scheduler: &Scheduler, admin: &Person) -> Vec<f64> {
    let mut open = OpenPage::of(admin, "application=app&service=s7");
    // What was committed before it listened.
    wait::until("the page to be told", || open.has_heard(1).then_some(()));
    let mut times = Vec::new();
    for change in 0..CHANGES {
        std::thread::park_timeout(Duration::from_millis(300));
        let heard = open.heard.matches("event: change").count();
        let (order, shown) = [("pause", "/resume\""), ("resume", "/pause\"")][change % 2];
        let start = Instant::now();
        set(scheduler, order);
        while !open.has_heard(heard + 1) {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let page = admin.page(&format!("{SERVICE}?channel=c0"));
        assert!(page.contains(shown), "the page shows what it was told of");
        times.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    times
}

/// Pauses or resumes the channel that changes, by the API.
fn set(scheduler: &Scheduler, order: &str) {
    let path = format!("/v1{SERVICE}/channels/c0/{order}");
    let request = scheduler.http(reqwest::Method::POST, &path).bearer_auth(scheduler.token());
    let request = request.header(header::CONTENT_TYPE, "application/json").body("{}");
    let answer = request.send().expect("the daemon answers");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

/// Opens so many overviews, each of which concerns whatever happens, and changes something.
fn many(scheduler: &Scheduler, open: usize) {
    let made = scheduler.json(&["auth", "token", "create", "others", "--role", "viewer"]);
    let token = made["token"].as_str().expect("a new token is told");
    let people = [scheduler.token(), token.to_owned()];
    let people = people.map(|token| Person::signed_in(scheduler, &token));
    let before = cpu::resident_mib(scheduler.pid());
    let mut pages: Vec<_> = (0..open).map(|number| OpenPage::of(&people[number % 2], "")).collect();
    let told = |pages: &mut [OpenPage], changes: usize| {
        wait::until("every page to be told", || {
            let late = pages.iter_mut().filter_map(|page| (!page.has_heard(changes)).then_some(()));
            (late.count() == 0).then_some(())
        });
    };
    told(&mut pages, 1);
    // Longer than the longest rest that so many take.
    std::thread::park_timeout(Duration::from_secs(6));
    let memory = cpu::resident_mib(scheduler.pid()) - before;
    row(&format!("memory of {open} open pages"), memory, "MiB", "");
    row("memory of an open page", 1024.0 * memory / open as f64, "KiB", "");
    let [spent, _] = cpu::seconds(scheduler.pid());
    let start = Instant::now();
    set(scheduler, "pause");
    told(&mut pages, 2);
    row("a change to the last of them told", start.elapsed().as_secs_f64() * 1_000.0, "ms", "");
    let spent = cpu::seconds(scheduler.pid())[0] - spent;
    row("CPU of telling all of them", spent * 1_000.0, "ms", "");
}
