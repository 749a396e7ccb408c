//! An input is used only when it is whole and the one that was named, whoever named it.

use schema::id::BlobId;

use super::{check, shell};
use crate::run::{Run, SOON};
use crate::scheduler::{Do, Framing, Reply, Scheduler};

const PLAN: &[u8] = b"the whole plan";
const CUT: &[u8] = b"the who";
const VARIABLE: &str = "PVN_FETCH_PLAN_BLOB_ID";
const HEADER: &str = "Pvn-Blob-Id";

/// Runs a command with `fetch:plan`; `answer` says how the request of this number is answered.
/// Returns how often it was asked for.
fn fetched(
    variable: Option<&str>,
    answer: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> (Run, usize) {
    let scheduler = Scheduler::start().with(move |request, number| match request.method.as_str() {
        "GET" => Do::Answer(answer(number)),
        _ => Do::Usual,
    });
    let mut wrapper = shell(&scheduler, &["--in", "tf.plan=fetch:plan"], "cat tf.plan; echo > ran");
    if let Some(variable) = variable {
        wrapper = wrapper.env(VARIABLE, variable);
    }
    let run = wrapper.run();
    check(&scheduler, &run);
    (run, scheduler.count("GET"))
}

fn named(body: &[u8]) -> Reply {
    Reply::input(body).with(HEADER, BlobId::of(PLAN))
}

fn runs((run, _): (Run, usize)) {
    assert_eq!((run.code, run.stdout.as_slice()), (0, PLAN), "{}", run.stderr);
}

/// Nothing ran, and this is said, after so many tries.
fn refuses((run, tries): (Run, usize), expected_tries: usize, said: &[&str]) {
    let why = run.report.exec_error.clone().unwrap_or_default();
    assert_eq!(
        (run.code, run.path("ran").exists(), run.path("tf.plan").exists()),
        (125, false, false),
        "{why}"
    );
    assert!(run.took < SOON, "it was tried for long");
    assert_eq!(tries, expected_tries, "{why}");
    for word in said.iter().chain(&["fetch:plan", "--in tf.plan="]) {
        assert!(why.contains(word), "no `{word}` in: {why}");
    }
}

#[test]
fn p2_a_plan_that_arrives_cut_off_is_never_applied() {
    let (plan, other) = (BlobId::of(PLAN).to_string(), BlobId::of(CUT).to_string());
    // Nobody says what it is to be, and a cut is not seen.
    refuses(
        fetched(None, |_| Reply::input(CUT).framed(Framing::Close)),
        2,
        &["Content-Length", "Pvn-Blob-Id", "proxy"],
    );
    refuses(
        fetched(Some(&plan), |_| Reply::input(CUT).framed(Framing::Close)),
        2,
        &[VARIABLE, &plan, &other],
    );
    refuses(fetched(Some(&plan), |_| Reply::input(CUT)), 2, &[VARIABLE, &plan, &other]);
    refuses(fetched(None, |_| named(CUT).framed(Framing::Close)), 2, &[HEADER, &plan, &other]);
    refuses(fetched(None, |_| named(CUT)), 2, &[HEADER, &plan, &other]);
}

#[test]
fn an_input_that_was_cut_off_is_fetched_again() {
    let plan = BlobId::of(PLAN).to_string();
    for variable in [None, Some(plan.as_str())] {
        let again = |cut: fn() -> Reply| {
            runs(fetched(variable, move |number| if number < 1 { cut() } else { named(PLAN) }))
        };
        again(|| named(CUT).framed(Framing::Close));
        again(|| Reply::input(CUT).framed(Framing::Close));
        // Seen by the length, so that it may happen more often.
        let cut = || named(CUT).framed(Framing::Declared(PLAN.len()));
        runs(fetched(variable, move |number| if number < 3 { cut() } else { named(PLAN) }));
    }
}

#[test]
fn an_input_needs_a_digest_or_a_length() {
    let plan = BlobId::of(PLAN).to_string();
    runs(fetched(None, |_| named(PLAN).framed(Framing::Close)));
    runs(fetched(Some(&plan), |_| Reply::input(PLAN).framed(Framing::Close)));
    // A scheduler of before.
    runs(fetched(None, |_| Reply::input(PLAN)));
    refuses(fetched(None, |_| Reply::input(PLAN).framed(Framing::Close)), 2, &["Content-Length"]);
}

#[test]
fn p2_a_plan_other_than_the_one_that_was_decided_on_is_not_applied() {
    let [plan, other] = [PLAN, CUT].map(|bytes| BlobId::of(bytes).to_string());
    refuses(fetched(Some(&other), |_| named(PLAN)), 2, &[VARIABLE, HEADER, &plan, &other, "unset"]);
    refuses(fetched(Some("sha256:12"), |_| named(PLAN)), 0, &[VARIABLE, "sha256:12", "unset"]);
    runs(fetched(Some(""), |_| named(PLAN)));
    runs(fetched(Some(&plan), |_| named(PLAN)));
}

#[test]
fn the_plans_digest_says_nothing_about_other_inputs() {
    let scheduler = Scheduler::start();
    let blob = BlobId::of(b"blob");
    scheduler.state().inputs.insert("fetch:notes".to_owned(), b"notes ".to_vec());
    scheduler.state().inputs.insert(blob.to_string(), b"blob".to_vec());
    let flags = ["--in", "notes=fetch:notes", "--in", &format!("b={blob}")];
    let run =
        shell(&scheduler, &flags, "cat notes b").env(VARIABLE, BlobId::of(PLAN).to_string()).run();
    assert_eq!((run.code, run.text().as_str()), (0, "notes blob"), "{}", run.stderr);
}

#[test]
fn a_blob_that_is_not_the_one_named_is_refused_without_waiting_for_long() {
    let blob = BlobId::of(PLAN).to_string();
    let scheduler = Scheduler::start();
    scheduler.state().inputs.insert(blob.clone(), CUT.to_vec());
    let run = shell(&scheduler, &["--in", &format!("tf.plan={blob}")], "echo > ran").run();
    let why = run.report.exec_error.clone().unwrap();
    assert!(run.code == 125 && run.took < SOON && !run.path("ran").exists(), "{why}");
    assert!(
        why.contains(HEADER) && why.contains(&blob) && why.contains(&BlobId::of(CUT).to_string()),
        "{why}"
    );
}
