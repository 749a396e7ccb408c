//! Somebody answers in the scheduler's place: a welcome page, an ingress without a backend, a login
//! page, a proxy. What they say is no answer: nothing is thrown away for it, and the request is
//! made again.

use std::time::Duration;

use schema::spool::Stream;
use schema::wire::PROBLEM_CONTENT_TYPE as PROBLEM;

use crate::deliver::{check, resume, shell};
use crate::run::until;
use crate::scheduler::{Do, JOB, Reply, Request, Scheduler};

/// What answers without being a scheduler.
fn nobodies() -> Vec<(&'static str, Reply)> {
    let page = |status, kind: &str, body: &str| Reply {
        body: body.into(),
        ..Reply::empty(status).with("Content-Type", kind)
    };
    vec![
        ("a welcome page", page(200, "text/html", "<h1>Welcome to nginx!</h1>")),
        ("a page of JSON", page(200, "application/json", "{\"status\":\"ok\"}")),
        ("an empty success", Reply::empty(200)),
        ("success without a word", Reply::empty(204)),
        ("created, whatever", page(201, "application/json", "{}")),
        (
            "an ingress without a backend",
            page(404, "text/plain; charset=utf-8", "default backend - 404"),
        ),
        ("a page that is not found", page(404, "text/html", "<h1>404</h1>")),
        (
            "a gateway that has no route",
            page(404, PROBLEM, r#"{"type":"about:blank","title":"Not Found","status":404}"#),
        ),
        (
            "a gateway that takes no large bodies",
            page(413, PROBLEM, r#"{"type":"about:blank","status":413}"#),
        ),
        ("gone", page(410, "text/html", "<h1>410</h1>")),
        ("a conflict of somebody else", page(409, "text/html", "<h1>409</h1>")),
        (
            "a conflict that nobody can read",
            page(409, PROBLEM, r#"{"type":"/problems/conflict","wanted":{"stdout":-1}}"#),
        ),
        ("an ingress that takes no large bodies", page(413, "text/html", "<h1>413</h1>")),
        ("a login page", Reply::empty(302).with("Location", "http://127.0.0.1:1/login")),
        ("a proxy", page(503, "text/html", "<h1>no healthy upstream</h1>")),
    ]
}

/// The first requests of each kind are answered by somebody else.
fn behind(
    reply: Reply,
    times: usize,
    of: impl Fn(&Request) -> bool + Send + Sync + 'static,
) -> Scheduler {
    Scheduler::start().with(move |request, number| match number < times && of(request) {
        true => Do::Answer(Reply {
            status: reply.status,
            headers: reply.headers.clone(),
            body: reply.body.clone(),
            framing: reply.framing,
        }),
        false => Do::Usual,
    })
}

/// Each of them, at the same time: what takes time is waiting.
fn with_each(test: impl Fn(&'static str, Reply) + Send + Sync) {
    std::thread::scope(|scope| {
        let test = &test;
        let all: Vec<_> = nobodies()
            .into_iter()
            .map(|(name, reply)| (name, scope.spawn(move || test(name, reply))))
            .collect();
        for (name, thread) in all {
            assert!(thread.join().is_ok(), "{name}");
        }
    });
}

#[test]
fn p8_no_answer_of_anybody_else_ends_a_delivery() {
    with_each(|_, reply| {
        let scheduler = behind(reply, 2, |_| true);
        let script = "echo first; echo plan > out; until [ -e go ]; do sleep 0.01; done; echo \
                      second; echo err >&2";
        let running = shell(&scheduler, &["--out", "plan=out"], script).spawn();
        scheduler.until_arrived(Stream::Stdout, "first\n");
        std::fs::write(running.path("go"), "").unwrap();
        let run = running.wait();
        assert_eq!(run.code, 0);
        check(&scheduler, &run);
        assert_eq!(scheduler.bytes(Stream::Stdout), b"first\nsecond\n");
        assert_eq!(scheduler.state().files.len(), 1);
    });
}

#[test]
fn inputs_are_those_of_the_scheduler_and_no_page_of_anybody_else() {
    with_each(|_, reply| {
        let scheduler = behind(reply, 2, |request| request.method == "GET");
        scheduler.state().inputs.insert("fetch:plan".to_owned(), b"the plan".to_vec());
        let run = shell(&scheduler, &["--in", "tf.plan=fetch:plan"], "cat tf.plan").run();
        assert_eq!((run.code, run.text().as_str()), (0, "the plan"), "{}", run.stderr);
        check(&scheduler, &run);
    });
}

#[test]
fn p8_what_was_left_is_kept_until_the_scheduler_itself_has_it() {
    with_each(|_, reply| {
        let scheduler = behind(reply, usize::MAX, |_| true);
        let run = shell(&scheduler, &["--deliver-for", "1s"], "echo out").run();
        assert_eq!(run.code, 0);
        let spool = run.path("pvn").join(JOB);
        assert!(
            run.stderr.contains("pvn-wrapper resume") && spool.join("report.json").exists(),
            "{}",
            run.stderr
        );
        let status =
            resume(&scheduler, &spool).env("PVN_DELIVERY_TIMEOUT", "500ms").status().unwrap();
        assert_eq!(status.code(), Some(125));
        assert!(spool.join("report.json").exists());
        let scheduler = scheduler.with(|_, _| Do::Usual);
        assert_eq!(resume(&scheduler, &spool).status().unwrap().code(), Some(0));
        check(&scheduler, &run);
    });
}

#[test]
fn a_heartbeat_that_somebody_else_answers_neither_stops_the_command_nor_ends_the_delivery() {
    with_each(|_, reply| {
        let scheduler = behind(reply, 1, |request| request.path.ends_with("/heartbeat"));
        let running =
            shell(&scheduler, &[], "echo first; until [ -e go ]; do sleep 0.05; done; echo second")
                .spawn();
        until("there were two heartbeats", || {
            std::thread::park_timeout(Duration::from_millis(20));
            (scheduler.count("POST /heartbeat") >= 2).then_some(())
        });
        std::fs::write(running.path("go"), "").unwrap();
        let run = running.wait();
        assert_eq!((run.code, run.report.signal.as_deref()), (0, None));
        check(&scheduler, &run);
    });
}

/// Signs of life get through, and nothing else: who hears them would wait for a report that lies in
/// the log.
#[test]
fn a_wrapper_whose_report_went_into_the_log_sends_no_more_signs_of_life() {
    let scheduler = Scheduler::start().with(|request, _| match request.method.as_str() {
        "PUT" | "PATCH" | "HEAD" => Do::Answer(Reply {
            body: "<h1>405</h1>".into(),
            ..Reply::empty(405).with("Content-Type", "text/html")
        }),
        _ => Do::Usual,
    });
    let run = shell(&scheduler, &["--deliver-for", "40s"], "echo out; sleep 1").run();
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("pvn-wrapper-report"), "{}", run.stderr);
    let beats = scheduler.count("POST /heartbeat");
    assert!((1..=5).contains(&beats), "{beats} in 40 s, of which the line came after 11");
}
