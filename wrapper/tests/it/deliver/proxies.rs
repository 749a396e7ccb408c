//! Somebody between the wrapper and its scheduler who takes no large bodies, and a scheduler that
//! goes nowhere.

use schema::spool::Stream;

use super::{check, shell};
use crate::run::SOON;
use crate::scheduler::{Do, JOB, Reply, Request, Scheduler};

/// A scheduler behind a proxy that takes no bodies of more than so many bytes, of some requests.
fn behind(limit: usize, of: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Scheduler {
    Scheduler::start().with(move |request, _| match of(request) && request.body.len() > limit {
        true => Do::Answer(Reply {
            body: b"<h1>413</h1>".to_vec(),
            ..Reply::empty(413).with("Content-Type", "text/html")
        }),
        false => Do::Usual,
    })
}

#[test]
fn behind_a_proxy_that_takes_no_large_bodies_smaller_ones_are_sent() {
    let script = "head -c 3000000 /dev/urandom; head -c 300000 /dev/urandom > small; head -c \
                  9000000 /dev/urandom > large";
    for limit in [1 << 20, 100_000] {
        let scheduler = behind(limit, |_| true);
        let run = shell(&scheduler, &["--out", "a=small", "--out", "b=large"], script).run();
        assert_eq!(run.code, 0, "{}", run.stderr);
        check(&scheduler, &run);
        assert_eq!(scheduler.state().files.len(), 2);
        assert_eq!(scheduler.bytes(Stream::Stdout), run.stdout);
    }
}

#[test]
fn streams_ride_in_no_report_that_would_be_too_large_for_a_proxy() {
    let scheduler = behind(70_000, |request| request.is("PUT", "/report"));
    let run =
        shell(&scheduler, &[], "head -c 60000 /dev/urandom; head -c 60000 /dev/urandom >&2").run();
    check(&scheduler, &run);
    assert!(scheduler.state().report.as_ref().unwrap().stdout_inline.is_none());
}

#[test]
fn a_proxy_that_takes_nothing_at_all_is_told_of_and_everything_is_kept() {
    let scheduler = behind(0, |request| request.method == "PUT");
    let run = shell(
        &scheduler,
        &["--deliver-for", "1s", "--out", "plan=out"],
        "head -c 100000 /dev/zero > out",
    )
    .run();
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("413") && run.stderr.contains("raise its limit"), "{}", run.stderr);
    assert!(run.path("pvn").join(JOB).join("report.json").exists() && run.took < SOON);
}

#[test]
fn a_scheduler_that_goes_back_again_and_again_is_asked_with_waits_between() {
    let scheduler = Scheduler::start().with(|request, number| match request.method.as_str() {
        "PATCH" if number % 2 == 1 => Do::Answer(Reply::empty(409).with("Upload-Offset", 0)),
        "PATCH" => Do::Answer(Reply::empty(204).with("Upload-Offset", 1 << 20)),
        _ => Do::Usual,
    });
    let run = shell(&scheduler, &["--deliver-for", "2s"], "head -c 3000000 /dev/zero").run();
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("again and again"), "{}", run.stderr);
    let asked = scheduler.count("PATCH");
    assert!((2..100).contains(&asked), "{asked} times in two seconds");
}
