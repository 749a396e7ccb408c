//! A scheduler that is away, slow, or says no.

use std::io::BufRead;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use schema::report::{Report, line};
use schema::spool::Stream;
use schema::wire::REPORT_MARK;

use super::{check, resume, shell};
use crate::run::{SOON, until};
use crate::scheduler::{Do, JOB, Reply, Scheduler, TOKEN};

/// A run that outlives the first moments, so that streams are sent.
const LONG: &str = "echo first; sleep 0.4; echo second; echo err >&2";

#[test]
fn answers_of_503_for_a_minute_are_tried_again() {
    // From the first request on; the test of every day has no such patience.
    let (began, outage) =
        (OnceLock::new(), crate::sized(Duration::from_secs(2), Duration::from_secs(60)));
    let scheduler = Scheduler::start().with(move |_, _| {
        match began.get_or_init(Instant::now).elapsed() < outage {
            true => Do::Answer(Reply::empty(503)),
            false => Do::Usual,
        }
    });
    let run = shell(&scheduler, &[], LONG).run();
    check(&scheduler, &run);
    assert!(run.took >= outage, "{:?}", run.took);
    assert_eq!(scheduler.bytes(Stream::Stdout), b"first\nsecond\n");
}

#[test]
fn a_429_with_retry_after_in_seconds_is_obeyed() {
    obeyed(|| Reply::empty(429).with("Retry-After", 2));
}

#[test]
fn a_429_with_retry_after_as_a_date_is_obeyed() {
    obeyed(|| {
        let date = Reply::empty(429).with("Date", "Fri, 31 Dec 1999 23:59:57 GMT");
        date.with("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT")
    });
}

fn obeyed(reply: impl Fn() -> Reply + Send + Sync + 'static) {
    let scheduler = Scheduler::start().with(move |request, number| match number {
        0 if request.is("PUT", "/report") => Do::Answer(reply()),
        _ => Do::Usual,
    });
    check(&scheduler, &shell(&scheduler, &[], "echo x").run());
    let times: Vec<_> = scheduler
        .state()
        .requests
        .iter()
        .filter(|(name, _)| name == "PUT /report")
        .map(|(_, at)| *at)
        .collect();
    assert_eq!(times.len(), 2);
    assert!(times[1] - times[0] >= Duration::from_secs(2), "{:?}", times[1] - times[0]);
}

#[test]
fn scheduler_gone_until_after_the_end() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let running = shell(&scheduler, &[], &format!("{LONG}; echo ended > ended")).spawn();
    running.until_written("ended");
    let spool = running.path("pvn").join(JOB);
    let report: Report = until("the report is in the spool", || {
        serde_json::from_slice(&std::fs::read(spool.join("report.json")).ok()?).ok()
    });
    assert_eq!(report.exit_code, Some(0));
    scheduler.come_back();
    check(&scheduler, &running.wait());
    assert_eq!(scheduler.bytes(Stream::Stdout), b"first\nsecond\n");
}

#[test]
fn gone_for_good() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let run =
        shell(&scheduler, &["--deliver-for", "1s"], "printf 'no newline' >&2; echo out; exit 4")
            .run();
    assert_eq!(run.code, 4, "a command that ran decides the code");
    let spool = run.path("pvn").join(JOB);
    assert_eq!(line::read(&run.stderr, JOB, TOKEN).expect("a line of its own"), run.report);
    assert!(
        run.stderr.contains(&format!("pvn-wrapper resume {}", spool.display())),
        "{}",
        run.stderr
    );
    assert!(run.took < SOON, "{:?}", run.took);
    assert!(scheduler.state().report.is_none());
    // What it left can be delivered later.
    scheduler.come_back();
    let status = resume(&scheduler, &spool).status().unwrap();
    assert_eq!(status.code(), Some(0));
    check(&scheduler, &run);
}

#[test]
fn a_result_that_was_not_delivered_outlives_the_next_runs_with_its_spool() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let directory = tempfile::tempdir().unwrap();
    let spool = directory.path().join("spool");
    let flags = ["--spool", spool.to_str().unwrap(), "--deliver-for", "300ms"];
    let first = shell(&scheduler, &flags, "head -c 100000 /dev/zero; exit 4").run();
    assert_eq!(first.code, 4);
    // Of the same job, of another one, and one by hand.
    let again = shell(&scheduler, &flags, "echo again").run();
    assert!(
        again.stderr.contains(&format!("pvn-wrapper resume {}`", spool.display())),
        "{}",
        again.stderr
    );
    let other = shell(&scheduler, &flags, "echo other").env("PVN_JOB_ID", "job-other").run();
    let by_hand =
        shell(&scheduler, &flags, "head -c 200000 /dev/zero").env("PVN_API_URL", "").run();
    assert_eq!([again.code, other.code, by_hand.code], [0; 3], "{}", by_hand.stderr);
    for (place, run) in ["spool", "spool.1", "spool.2"].iter().zip([&first, &again, &other]) {
        let text = std::fs::read(directory.path().join(place).join("report.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Report>(&text).unwrap(), run.report, "{place}");
    }
    scheduler.come_back();
    assert_eq!(resume(&scheduler, &spool).status().unwrap().code(), Some(0));
    check(&scheduler, &first);
}

#[test]
fn nobody_listens_at_all() {
    // Bound and never listening, so that nobody else can.
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&socket, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0))
        .unwrap();
    let address =
        std::net::SocketAddrV4::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    let scheduler = Scheduler::start();
    let run = shell(&scheduler, &["--deliver-for", "3s"], "echo x")
        .env("PVN_API_URL", format!("http://{address}"))
        .run();
    assert_eq!((run.code, run.text().as_str()), (0, "x\n"));
    assert!(run.stderr.contains(REPORT_MARK) && run.stderr.contains("refused"), "{}", run.stderr);
}

#[test]
fn when_ten_seconds_of_delivery_have_failed_the_report_goes_out_as_a_line_and_trying_goes_on() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let (mut line, began) = (String::new(), Instant::now());
    let mut running = shell(&scheduler, &[], "echo out").spawn();
    let mut stderr = std::io::BufReader::new(running.child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(began.elapsed() >= Duration::from_secs(9), "{:?}", began.elapsed());
    let report = line::read(&line, JOB, TOKEN).unwrap();
    scheduler.come_back();
    let run = running.wait();
    assert_eq!(run.report, report);
    check(&scheduler, &run);
}

#[test]
fn slow_scheduler_fast_child() {
    // The first piece is not answered before the command has written all and ended, which must
    // therefore not wait for it.
    let directory = tempfile::tempdir().unwrap();
    let [asked, ended] = ["asked", "ended"].map(|name| directory.path().join(name));
    let script = format!(
        "head -c 8000000 /dev/urandom > bytes; echo first; until [ -e {} ]; do sleep 0.01; done; \
         cat bytes; echo > {}",
        asked.display(),
        ended.display()
    );
    let scheduler =
        Scheduler::start().with(move |request, number| match (request.method.as_str(), number) {
            ("PATCH", 0) => {
                std::fs::write(&asked, "").unwrap();
                let deadline = Instant::now() + crate::run::PATIENCE;
                while !ended.exists() {
                    if Instant::now() > deadline {
                        return Do::Answer(Reply::problem(
                            410,
                            "the command waits for the scheduler",
                        ));
                    }
                    std::thread::park_timeout(Duration::from_millis(5));
                }
                Do::Usual
            }
            _ => Do::Usual,
        });
    let run = shell(&scheduler, &[], &script).run();
    check(&scheduler, &run);
    assert!(
        scheduler.bytes(Stream::Stdout)
            == [b"first\n".as_slice(), &std::fs::read(run.path("bytes")).unwrap()].concat()
    );
}

#[test]
fn a_scheduler_that_answers_nothing_does_not_keep_the_wrapper_beyond_its_time() {
    let scheduler = Scheduler::start().with(|_, _| {
        std::thread::park_timeout(Duration::from_secs(60));
        Do::Break
    });
    let run = shell(&scheduler, &["--deliver-for", "1s"], "echo x").run();
    assert_eq!(run.code, 0);
    assert!(
        run.took < SOON && run.stderr.contains("does not answer"),
        "{:?}: {}",
        run.took,
        run.stderr
    );
}

#[test]
fn finished_job_answers_409() {
    for status in [409, 404, 410] {
        let scheduler = Scheduler::start()
            .with(move |_, _| Do::Answer(Reply::problem(status, "the job is over")));
        let running =
            shell(&scheduler, &[], "echo first; until [ -e go ]; do sleep 0.01; done; echo second")
                .spawn();
        scheduler.until_asked("", 1);
        std::fs::write(running.path("go"), "").unwrap();
        let run = running.wait();
        assert_eq!(
            (run.code, run.text().as_str()),
            (0, "first\nsecond\n"),
            "the command does not stop"
        );
        assert!(run.stderr.contains("the job is over"), "{}", run.stderr);
        assert!(!run.stderr.contains(REPORT_MARK));
        // The first answer and at most the one that was on its way beside it.
        assert!(scheduler.state().requests.len() <= 2, "{status}: delivery stops at once");
        assert!(!run.path("pvn").join(JOB).exists());
    }
}

#[test]
fn an_answer_that_got_lost_makes_nothing_twice() {
    let scheduler = Scheduler::start()
        .with(|_, number| if number % 2 == 0 { Do::ActThen(None) } else { Do::Usual });
    check(
        &scheduler,
        &shell(&scheduler, &["--out", "plan=plan"], &format!("{LONG}; echo x > plan")).run(),
    );
    assert_eq!(scheduler.bytes(Stream::Stdout), b"first\nsecond\n");
    let scheduler = Scheduler::start().with(|_, number| {
        if number == 0 { Do::ActThen(Some(Reply::empty(500))) } else { Do::Usual }
    });
    check(&scheduler, &shell(&scheduler, &[], LONG).run());
}

#[test]
fn a_connection_that_breaks_is_gone_on_from_where_the_scheduler_is() {
    let scheduler = Scheduler::start().with(|request, number| match number {
        1 | 3 | 4 if request.method == "PATCH" => Do::Break,
        _ => Do::Usual,
    });
    let run = shell(&scheduler, &[], "head -c 9000000 /dev/urandom | tee bytes").run();
    check(&scheduler, &run);
    assert!(scheduler.count("HEAD /streams/stdout") >= 2);
    assert!(scheduler.bytes(Stream::Stdout) == std::fs::read(run.path("bytes")).unwrap());
}

#[test]
fn a_scheduler_that_lost_what_it_had_gets_it_again() {
    let scheduler = Scheduler::start();
    let running = shell(
        &scheduler,
        &["--out", "plan=plan"],
        "echo first; until [ -e go ]; do sleep 0.01; done; echo second; echo x > plan",
    )
    .spawn();
    scheduler.until_arrived(Stream::Stdout, "first\n");
    scheduler.state().streams = Default::default();
    let scheduler = scheduler.with(|request, number| match number {
        // It says 201 and keeps nothing.
        0 if request.is("PUT", "/files/plan") => Do::Answer(Reply::json(
            201,
            &serde_json::json!({ "blobId": schema::id::BlobId::of(b"x\n") }),
        )),
        _ => Do::Usual,
    });
    std::fs::write(running.path("go"), "").unwrap();
    check(&scheduler, &running.wait());
    assert_eq!(scheduler.bytes(Stream::Stdout), b"first\nsecond\n");
    assert_eq!(scheduler.count("PUT /report"), 2, "refused once");
}

#[test]
fn a_stream_that_rode_in_a_refused_report_is_sent_and_rides_no_more() {
    let scheduler = Scheduler::start().with(|request, number| match number {
        0 if request.is("PUT", "/report") => {
            Do::Answer(Reply::json(409, &serde_json::json!({ "wanted": { "stdout": 0 } })))
        }
        _ => Do::Usual,
    });
    let run = shell(&scheduler, &[], "echo out; echo err >&2").run();
    check(&scheduler, &run);
    assert_eq!(
        (scheduler.count("PATCH /streams/stdout"), scheduler.count("PATCH /streams/stderr")),
        (1, 0)
    );
}

#[test]
fn a_refused_token_is_read_again() {
    let scheduler = Scheduler::start();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "an old token").unwrap();
    let running = shell(&scheduler, &[], LONG).env("PVN_TOKEN_FILE", file.path()).spawn();
    scheduler.until_asked("PATCH /streams/stdout", 1);
    std::fs::write(file.path(), format!("{TOKEN}\n")).unwrap();
    let run = running.wait();
    assert_eq!(run.code, 0);
    check(&scheduler, &run);
}

#[test]
fn a_redirect_is_not_followed() {
    let other = Scheduler::start();
    let to = other.url();
    let scheduler = Scheduler::start().with(move |_, number| match number {
        0 => Do::Answer(Reply::empty(307).with("Location", &to)),
        _ => Do::Usual,
    });
    check(&scheduler, &shell(&scheduler, &[], "echo x").run());
    assert!(other.state().requests.is_empty());
}

#[test]
fn term_while_uploading() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let running = shell(&scheduler, &[], "echo out; echo ended > ended").spawn();
    running.until_written("ended");
    let spool = running.path("pvn").join(JOB);
    until("the report is in the spool", || spool.join("report.json").exists().then_some(()));
    // Neither the first nor the second ends the delivery; the report goes out as a line at once.
    running.signal(15);
    running.signal(15);
    running.signal(2);
    scheduler.come_back();
    let run = running.wait();
    assert_eq!(run.code, 0);
    assert_eq!(run.stderr.matches(REPORT_MARK).count(), 1, "{}", run.stderr);
    check(&scheduler, &run);
}

#[test]
fn a_token_file_that_never_ends_is_not_waited_for() {
    for kind in ["mkfifo token", "mknod token c 1 5"] {
        let scheduler = Scheduler::start();
        let wrapper = shell(&scheduler, &["--deliver-for", "1s"], "echo x")
            .env("PVN_TOKEN", "")
            .env("PVN_TOKEN_FILE", "token");
        let made = std::process::Command::new("sh")
            .args(["-c", kind])
            .current_dir(wrapper.path(""))
            .status()
            .unwrap();
        if !made.success() {
            continue;
        }
        let run = wrapper.run();
        assert_eq!((run.code, run.text().as_str()), (0, "x\n"), "{}", run.stderr);
        assert!(
            run.took < SOON
                && run.stderr.contains(
                    "cannot read the token from token (PVN_TOKEN_FILE): it is no regular file"
                ),
            "{}",
            run.stderr
        );
    }
}
