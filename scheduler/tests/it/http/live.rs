//! What an open page hears: that something was committed, be it in the log or not, and what a job
//! prints, with both streams in the order in which they came.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use futures::StreamExt;
use pvn_scheduler::http::OutputRange;
use pvn_scheduler::store::{JobFilter, PageRequest};
use schema::spool::{Stream, order_record};
use schema::status::JobStatus;

use super::Service;
use super::pages::browser;
use super::streams::with_job;
use crate::driver::Rig;

/// Longest wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// The next event of a stream.
async fn event(body: &mut axum::body::BodyDataStream) -> String {
    let next = tokio::time::timeout(PATIENCE, body.next()).await.expect("it is told in time");
    String::from_utf8(next.expect("the stream goes on").unwrap().to_vec()).unwrap()
}

fn body_of(answer: Response<Body>) -> axum::body::BodyDataStream {
    answer.into_body().into_data_stream()
}

/// Whoever looks only when told sees that jobs begin to run, which no entry of the log tells.
#[tokio::test]
async fn what_no_entry_of_the_log_tells_is_told_to_whoever_follows() {
    let rig = Rig::start(|_| None).await;
    rig.apply(crate::driver::TWO_CHANNELS).await.unwrap();
    let web = ("app".parse().unwrap(), "web".parse().unwrap());
    let mut follower = rig.handle.revisions().follow(Some(web));
    rig.push(&[]).await.unwrap();
    let some = PageRequest { cursor: None, limit: Some(50) };
    let all_run = async {
        loop {
            follower.changed().await.expect("the daemon runs");
            let jobs = rig.store.jobs(&JobFilter::default(), &some).await.unwrap().items;
            if !jobs.is_empty() && jobs.iter().all(|job| job.status != JobStatus::Pending) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, all_run).await.expect("each commit is told");
}

#[tokio::test]
async fn a_page_that_missed_something_is_told_at_once_and_the_others_when_it_happens() {
    let service = Service::start().await;
    let cookie = service.sign_in("viewer").await;
    let path = |after: u64| format!("/live?application=app&service=web&after={after}");
    let newest = service.rig.handle.revisions().newest();
    let mut behind = body_of(service.send(browser("GET", &path(newest - 1), &cookie, "")).await);
    let told = event(&mut behind).await;
    assert!(told.contains("event: change") && told.contains(&format!("id: {newest}")), "{told}");
    let mut abreast = body_of(service.send(browser("GET", &path(newest), &cookie, "")).await);
    let pushed = service.post("/v1/applications/app/services/web/push", "{}").await;
    assert_eq!(pushed.status, 200);
    let told = event(&mut abreast).await;
    assert!(told.contains("event: change") && !told.contains(&format!("id: {newest}")), "{told}");
}

/// By default, and with one token: a team shares one often. There is a bound all the same, and
/// room for others.
#[tokio::test]
async fn a_thousand_open_pages_of_one_token_follow() {
    let service = Service::start().await;
    let cookie = service.sign_in("viewer").await;
    let mut pages = Vec::new();
    let refused = loop {
        let answer = service.send(browser("GET", "/live", &cookie, "")).await;
        if answer.status() != StatusCode::OK {
            break answer.status();
        }
        pages.push(body_of(answer));
        assert!(pages.len() < 10_000, "there is no bound");
    };
    assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
    assert!(pages.len() >= 1000, "{} pages follow", pages.len());
    // The one too many is read all the same, and others have room.
    assert_eq!(service.open("/", &cookie).await.status, StatusCode::OK);
    let other = service.sign_in("admin").await;
    let answer = service.send(browser("GET", "/live", &other, "")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    pages.pop();
    let answer = service.send(browser("GET", "/live", &cookie, "")).await;
    assert_eq!(answer.status(), StatusCode::OK, "one that is closed makes room");
}

/// `a`, `x` on stderr, `b`.
fn three_lines(piece: &OutputRange) -> std::io::Result<Vec<u8>> {
    let whole = if piece.stream == Stream::Stdout { "a\nb\n" } else { "<x>\n" };
    let from = usize::try_from(piece.offset).unwrap().min(whole.len());
    Ok(whole.bytes().skip(from).take(piece.limit).collect())
}

fn their_order() -> Vec<u8> {
    let mut order = Vec::new();
    for (stream, length) in [(Stream::Stdout, 2), (Stream::Stderr, 4), (Stream::Stdout, 2)] {
        order_record(stream, length, &mut order);
    }
    order
}

const IN_ORDER: &str = "<span class=\"l o\" id=\"o1\">a</span><span class=\"l e\" id=\"e1\">&lt;x&gt;\
                        </span><span class=\"l o\" id=\"o2\">b</span>";

#[tokio::test]
async fn both_streams_stand_in_the_order_in_which_they_came() {
    let service = Service::printing_in_order(three_lines, their_order()).await;
    let page = with_job(&service, JobStatus::Succeeded).await;
    let page = page.replace("/v1", "").replace("/logs", "");
    let cookie = service.sign_in("viewer").await;
    assert!(service.open(&page, &cookie).await.html().contains(IN_ORDER));
    // From the beginning, and from the middle of it.
    let whole = service.open(&format!("{page}/live?o=1&e=1"), &cookie).await;
    let whole = String::from_utf8(whole.body).unwrap();
    assert!(whole.contains(&serde_json::to_string(IN_ORDER).unwrap()), "{whole}");
    assert!(whole.contains("id: 4,4,3,2") && whole.contains("event: end"), "{whole}");
    let rest = service.open(&format!("{page}/live?stdout=2&stderr=0&o=2&e=1"), &cookie).await;
    let rest = String::from_utf8(rest.body).unwrap();
    let last = IN_ORDER.split_once("</span>").unwrap().1;
    assert!(rest.contains(&serde_json::to_string(last).unwrap()), "{rest}");
}

#[tokio::test]
async fn without_an_order_stdout_stands_first_and_the_page_says_so() {
    let service = Service::printing(three_lines).await;
    let page = with_job(&service, JobStatus::Succeeded).await;
    let page = page.replace("/v1", "").replace("/logs", "");
    let cookie = service.sign_in("viewer").await;
    let html = service.open(&page, &cookie).await.html();
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}: {html}"));
    assert!(at("id=\"o2\"") < at("id=\"e1\""));
    assert!(html.contains("in which order"));
}
