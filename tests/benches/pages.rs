//! The pages of a daemon with 10,000 instances and 1,000,000 past jobs: how long each takes, how
//! large it is, what open pages cost, and how soon a change is on one of them.
//!
//! `cargo bench -p tests --bench pages [-- OPEN_PAGES]`

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use reqwest::header;
use tests::open_page::{OpenPage, allow_many};
use tests::person::Person;
use tests::scale::{self, percentiles, row};
use tests::scheduler::{Scheduler, Start};
use tests::wait::PATIENCE;
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

/// How many of them look at a time: as many as there are cores for it.
const LOOKERS: usize = 4;

/// For how long nothing changes.
const IDLE: Duration = Duration::from_secs(60);

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

/// Pauses and resumes a channel whose page is open: from before the order is sent to the page,
/// asked for because its stream said so, which shows it. Milliseconds.
fn seen(scheduler: &Scheduler, admin: &Person) -> Vec<f64> {
    let mut open = OpenPage::of(admin, "application=app&service=s7");
    // What was committed before it listened.
    wait::until("the page to be told", || open.has_heard(1).then_some(()));
    let mut times = Vec::new();
    for change in 0..CHANGES {
        std::thread::park_timeout(Duration::from_millis(300));
        let heard = open.changes;
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
    order_of(scheduler, SERVICE, order);
}

/// The same of any service.
fn order_of(scheduler: &Scheduler, service: &str, order: &str) {
    let path = format!("/v1{service}/channels/c0/{order}");
    let request = scheduler.http(reqwest::Method::POST, &path).bearer_auth(scheduler.token());
    let request = request.header(header::CONTENT_TYPE, "application/json").body("{}");
    let answer = request.send().expect("the daemon answers");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

/// Where the page of a service is.
fn service_path(number: usize) -> String {
    format!("/applications/app/services/s{number}")
}

/// Pages that are open: each looks when it is told, until it shows what it should.
struct Crowd<'a> {
    person: &'a Person,
    pages: Vec<(OpenPage, String)>,
    /// What a page that has seen the change shows.
    shown: &'a str,
}

impl<'a> Crowd<'a> {
    fn of(person: &'a Person, pages: Vec<(OpenPage, String)>, shown: &'a str) -> Self {
        let mut crowd = Self { person, pages, shown };
        wait::until("every page to be told of what it missed", || {
            let late =
                crowd.pages.iter_mut().filter_map(|(page, _)| (!page.has_heard(1)).then_some(()));
            (late.count() == 0).then_some(())
        });
        crowd
    }

    /// Changes something: the milliseconds until the last page was told, and until the last one
    /// shows it.
    fn sees(&mut self, change: impl FnOnce() + Send) -> [f64; 2] {
        let before: Vec<_> = self.pages.iter().map(|(page, _)| page.changes).collect();
        let (person, shown) = (self.person, self.shown);
        let has_seen: Vec<_> = self.pages.iter().map(|_| AtomicBool::new(false)).collect();
        let start = Instant::now();
        let mut told = 0.0;
        let (send, looks) = mpsc::channel::<(usize, String)>();
        let looks = Mutex::new(looks);
        let (looks, has_seen) = (&looks, &has_seen);
        std::thread::scope(|scope| {
            scope.spawn(change);
            // Dropped at the end, which ends those who look.
            let send = send;
            for _ in 0..LOOKERS {
                scope.spawn(move || {
                    let next = || looks.lock().expect("nobody panics with it").recv();
                    while let Ok((number, path)) = next() {
                        if person.page(&path).contains(shown) {
                            has_seen[number].store(true, Ordering::SeqCst);
                        }
                    }
                });
            }
            let mut known = before.clone();
            while !has_seen.iter().all(|seen| seen.load(Ordering::SeqCst)) {
                assert!(start.elapsed() < PATIENCE, "not every page shows {shown}");
                for (number, (page, path)) in self.pages.iter_mut().enumerate() {
                    page.has_heard(1);
                    if page.changes > known[number] {
                        known[number] = page.changes;
                        send.send((number, path.clone())).expect("somebody looks");
                    }
                }
                if told == 0.0 && known.iter().zip(&before).all(|(known, before)| known > before) {
                    told = milliseconds(start);
                }
                std::thread::park_timeout(Duration::from_millis(2));
            }
        });
        [told, milliseconds(start)]
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// Opens so many pages by one token, and changes something: overviews, which whatever happens
/// concerns, and pages of a service each.
fn many(scheduler: &Scheduler, open: usize) {
    allow_many();
    let person = Person::signed_in(scheduler, &scheduler.token());
    let (own, before) = (|| cpu::seconds(scheduler.pid())[0], cpu::resident_mib(scheduler.pid()));
    let overviews = (0..open).map(|_| (OpenPage::of(&person, ""), "/".to_owned())).collect();
    let mut crowd = Crowd::of(&person, overviews, ">Paused<");
    // Longer than the longest rest that so many take.
    std::thread::park_timeout(Duration::from_secs(6));
    let memory = cpu::resident_mib(scheduler.pid()) - before;
    row(&format!("memory of {open} open pages"), memory, "MiB", "");
    row("memory of an open page", 1024.0 * memory / open as f64, "KiB", "");
    let spent = own();
    std::thread::park_timeout(IDLE);
    row("CPU while nothing changes", 100.0 * (own() - spent) / IDLE.as_secs_f64(), "%", "");
    let spent = own();
    let [told, seen] = crowd.sees(|| set(scheduler, "pause"));
    row("a change, to the last of so many overviews told", told, "ms", "");
    row("the same, to the last that shows it", seen, "ms", "");
    row("CPU of both", (own() - spent) * 1_000.0, "ms", "");
    drop(crowd);
    set(scheduler, "resume");
    let all = |order: &str| {
        for number in 0..open.min(SERVICES) {
            order_of(scheduler, &service_path(number), order);
        }
    };
    let spent = own();
    all("pause");
    row("CPU of a change of so many services, unseen", (own() - spent) * 1_000.0, "ms", "");
    all("resume");
    let page = |number: usize| {
        let query = format!("application=app&service=s{}", number % SERVICES);
        (OpenPage::of(&person, &query), format!("{}?channel=c0", service_path(number % SERVICES)))
    };
    let mut crowd = Crowd::of(&person, (0..open).map(page).collect(), "/resume\"");
    std::thread::park_timeout(Duration::from_secs(6));
    let spent = own();
    let [told, seen] = crowd.sees(|| all("pause"));
    row("the same, each with its page open, to the last told", told, "ms", "");
    row("to the last that shows it", seen, "ms", "");
    row("CPU of all that", (own() - spent) * 1_000.0, "ms", "");
}
