//! The pages in process: the door, who may do what, what is shown of hostile data, and that every
//! link leads somewhere.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use pvn_scheduler::clock::Clock;
use pvn_scheduler::store::{Change, Commit};

use super::{Answer, Service, request};
use crate::store::at;

const HOST: &str = "127.0.0.1:7780";

/// A request of a browser's page of ours.
pub(super) fn browser(method: &str, path: &str, cookie: &str, body: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", HOST)
        .header("sec-fetch-site", "same-origin")
        .header("cookie", cookie)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.to_owned().into())
        .unwrap()
}

impl Answer {
    pub(super) fn html(&self) -> String {
        assert!(self.headers["content-type"].to_str().unwrap().starts_with("text/html"));
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// What the browser is to keep, as it sends it back.
    fn cookie(&self) -> String {
        let set = self.headers["set-cookie"].to_str().unwrap();
        set.split(';').next().unwrap().to_owned()
    }
}

impl Service {
    pub(super) async fn sign_in(&self, token: &str) -> String {
        let form = format!("token={token}&to=%2Fservices");
        let answer = self.ask(browser("POST", "/sign-in", "", &form)).await;
        assert_eq!(
            answer.status,
            StatusCode::SEE_OTHER,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        assert_eq!(answer.headers["location"], "/services");
        answer.cookie()
    }

    pub(super) async fn open(&self, path: &str, cookie: &str) -> Answer {
        self.ask(browser("GET", path, cookie, "")).await
    }

    /// Of a job of a release that is made for it.
    async fn page_of_a_job(&self) -> String {
        self.push().await;
        let jobs = self.get("/v1/jobs").await.json();
        let id = jobs["items"][0]["id"].as_str().unwrap();
        let cookie = self.sign_in("viewer").await;
        self.open(&format!("/jobs/{id}"), &cookie).await.html()
    }

    async fn push(&self) {
        let pushed = self.post("/v1/applications/app/services/web/push", "{}").await;
        assert_eq!(pushed.status, StatusCode::OK, "{}", String::from_utf8_lossy(&pushed.body));
    }
}

#[tokio::test]
async fn a_page_is_for_whoever_has_signed_in_and_a_session_opens_no_api() {
    let service = Service::start().await;
    for path in ["/", "/services", "/live", "/applications/app/services/web", "/jobs", "/nothing"] {
        let answer = service.open(path, "").await;
        let is_page = path != "/nothing";
        let expected = if is_page { StatusCode::UNAUTHORIZED } else { StatusCode::NOT_FOUND };
        assert_eq!(answer.status, expected, "{path}");
        assert!(!is_page || answer.html().contains("name=\"token\""), "{path}");
    }
    // A token in a header is no session, and a session no token.
    let answer = service.ask(request("GET", "/services", Some("admin"), Body::empty())).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let cookie = service.sign_in("viewer").await;
    assert_eq!(service.open("/services", &cookie).await.status, StatusCode::OK);
    assert_eq!(service.open("/v1/services", &cookie).await.status, StatusCode::UNAUTHORIZED);
    let wrong = service.ask(browser("POST", "/sign-in", "", "token=nobody")).await;
    assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    assert!(!wrong.headers.contains_key("set-cookie") && wrong.html().contains("is not one of"));
}

#[tokio::test]
async fn a_session_ends_with_its_person_and_with_its_token() {
    let service = Service::start().await;
    let (first, second) = (service.sign_in("viewer").await, service.sign_in("viewer").await);
    let out = service.ask(browser("POST", "/sign-out", &first, "")).await;
    assert_eq!(out.status, StatusCode::SEE_OTHER);
    assert_eq!(service.open("/", &first).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(service.open("/", &second).await.status, StatusCode::OK);
    let revoked = Change::TokenRevoked { name: "viewer".to_owned(), at: at(2) };
    service
        .rig
        .store
        .commit(&Commit { changes: vec![revoked], ..Commit::default() })
        .await
        .unwrap();
    assert_eq!(service.open("/", &second).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_link_of_the_daemon_signs_in_once() {
    let service = Service::start().await;
    let now = Clock::System.now();
    let path =
        format!("/sign-in/once?code={}&to=//evil.example", service.sessions.link("admin", now));
    let answer = service.open(&path, "").await;
    assert_eq!(
        (answer.status, &answer.headers["location"]),
        (StatusCode::SEE_OTHER, &"/".parse().unwrap())
    );
    assert_eq!(service.open("/", &answer.cookie()).await.status, StatusCode::OK);
    let again = service.open(&path, "").await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
    assert!(!again.headers.contains_key("set-cookie") && again.html().contains("used already"));
}

#[tokio::test]
async fn what_is_done_needs_a_page_of_ours() {
    let service = Service::start().await;
    service.push().await;
    let path = "/applications/app/services/web/channels/staging/pause";
    let cookie = service.sign_in("admin").await;
    for site in ["cross-site", "same-site", "none"] {
        let mut foreign = browser("POST", path, &cookie, "");
        foreign.headers_mut().insert("sec-fetch-site", site.parse().unwrap());
        assert_eq!(service.ask(foreign).await.status, StatusCode::FORBIDDEN, "{site}");
    }
    let shown = service.get("/v1/applications/app/services/web/channels/staging").await;
    assert_eq!(shown.json()["paused"], false, "{}", shown.json());
    let done = service.ask(browser("POST", path, &cookie, "")).await;
    assert_eq!(done.headers["location"], "/applications/app/services/web?channel=staging");
    let shown = service.get("/v1/applications/app/services/web/channels/staging").await;
    assert_eq!(shown.json()["paused"], true);
}

/// Whoever comes by a link of others is let in at the second try, for which the browser sends its
/// cookie.
#[tokio::test]
async fn a_link_in_a_chat_leads_to_the_page() {
    let service = Service::start().await;
    let mut linked = browser("GET", "/services?name=we", "", "");
    linked.headers_mut().insert("sec-fetch-site", "cross-site".parse().unwrap());
    let answer = service.ask(linked).await;
    assert_eq!(answer.headers["refresh"], "0; url=/services?name=we");
}

fn links(html: &str) -> BTreeSet<String> {
    let unescaped = |text: &str| text.replace("&amp;", "&").replace("&#38;", "&");
    html.split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|link| link.starts_with('/'))
        .map(unescaped)
        .collect()
}

#[tokio::test]
async fn every_link_of_every_page_leads_somewhere_and_all_pages_say_what_they_may_load() {
    let service = Service::start().await;
    service.push().await;
    let cookie = service.sign_in("admin").await;
    let (mut seen, mut left) = (BTreeSet::new(), vec!["/".to_owned()]);
    while let Some(path) = left.pop() {
        if !seen.insert(path.clone()) || seen.len() > 200 {
            continue;
        }
        let answer = service.open(&path, &cookie).await;
        assert_eq!(
            answer.status,
            StatusCode::OK,
            "{path}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        if path.starts_with("/assets/") {
            assert!(answer.headers["cache-control"].to_str().unwrap().contains("immutable"));
            continue;
        }
        if path.contains("/output/") {
            assert!(
                answer.headers["content-security-policy"].to_str().unwrap().contains("sandbox")
            );
            continue;
        }
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}: {policy}");
        let html = answer.html();
        assert!(html.len() < 100_000, "{path} has {} bytes", html.len());
        assert!(!html.contains(" style=") && !html.contains("<script>"), "{path}");
        left.extend(links(&html));
    }
    for part in ["/jobs/job-", "/releases/rel-", "/runtimes", "/audit", "/approvals", "?channel="] {
        assert!(seen.iter().any(|path| path.contains(part)), "no page of {part}: {seen:?}");
    }
}

#[tokio::test]
async fn hostile_output_is_text_on_the_page_of_its_job() {
    const PRINTED: &[u8] =
        b"<script>alert(1)</script>\x1b[31mred\x1b[0m\n</pre><img src=x onerror=alert(1)>\xff\n";
    let service = Service::printing(|range| {
        let from = usize::try_from(range.offset).unwrap().min(PRINTED.len());
        Ok(PRINTED[from..].iter().copied().take(range.limit).collect())
    })
    .await;
    service.push().await;
    let jobs = service.get("/v1/jobs").await.json();
    let id = jobs["items"][0]["id"].as_str().unwrap().to_owned();
    let cookie = service.sign_in("viewer").await;
    let html = service.open(&format!("/jobs/{id}"), &cookie).await.html();
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;<span class=\"a31\">red</span>"));
    assert!(html.contains("&lt;/pre&gt;&lt;img src=x onerror=alert(1)&gt;\u{fffd}"));
    assert!(!html.contains("<img") && !html.contains("<script>"));
    let file = service.open(&format!("/jobs/{id}/output/stdout"), &cookie).await;
    assert_eq!(file.body, PRINTED, "all of it, as it is");
    assert!(file.headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
}

/// Of a long output the page has the end, and says how much it leaves out.
#[tokio::test]
async fn a_long_output_is_shown_from_its_end() {
    const LENGTH: u64 = 200 << 20;
    let service = Service::printing(|range| {
        let end = range.offset.saturating_add(range.limit as u64).min(LENGTH);
        let line =
            |at: u64| if at % 100 == 99 { b'\n' } else { b'a' + u8::try_from(at % 26).unwrap() };
        Ok((range.offset..end.max(range.offset)).map(line).collect())
    })
    .await;
    let html = service.page_of_a_job().await;
    let left_out = (LENGTH - (256 << 10)).next_multiple_of(100);
    assert!(
        html.contains(&format!("The first {left_out} bytes of stdout are left out")),
        "{}",
        &html[..2000]
    );
    assert!(html.len() < 1_000_000 && html.matches("class=\"l o\"").count() > 2000);
}

/// One line can be longer than all that a page shows: the end of it is shown.
#[tokio::test]
async fn the_end_of_a_line_without_end_is_shown() {
    const LENGTH: u64 = 4_000_000;
    let service = Service::printing(|range| {
        let end = range.offset.saturating_add(range.limit as u64).min(LENGTH);
        let byte = |at: u64| if at == LENGTH - 1 { b'\n' } else { b'a' };
        Ok((range.offset..end.max(range.offset)).map(byte).collect())
    })
    .await;
    let html = service.page_of_a_job().await;
    assert!(html.matches('a').count() >= (256 << 10) - 1, "{}", html.len());
    assert!(!html.contains("Nothing was printed"));
    let left_out = LENGTH - (256 << 10);
    assert!(html.contains(&format!("The first {left_out} bytes of stdout are left out")));
}

#[tokio::test]
async fn an_arrow_leads_to_a_channel_only_from_one_that_it_waits_for() {
    let service = Service::start().await;
    service.push().await;
    let told = service.get("/v1/applications/app/services/web").await.json();
    let upstream = |at: usize| told["channels"][at]["upstream"].clone();
    assert_eq!(
        (upstream(0), upstream(1)),
        (serde_json::Value::Null, serde_json::json!(["staging"]))
    );
    let cookie = service.sign_in("viewer").await;
    let html = service.open("/applications/app/services/web", &cookie).await.html();
    assert!(html.contains("id=\"channel-staging\">"), "{html}");
    assert!(html.contains("id=\"channel-production\" class=\"after\">"), "{html}");
}

#[tokio::test]
async fn what_a_form_was_sent_to_leads_back_to_its_page() {
    let service = Service::start().await;
    service.push().await;
    let cookie = service.sign_in("admin").await;
    let page = "/applications/app/services/web?channel=staging";
    for verb in ["approve", "reject", "retry", "resume", "acknowledge"] {
        let path = format!("/applications/app/services/web/channels/staging/{verb}");
        let again = service.open(&path, &cookie).await;
        assert_eq!(again.status, StatusCode::SEE_OTHER, "{verb}");
        assert_eq!(again.headers["location"], page, "{verb}");
    }
    let path = "/applications/app/services/web/channels/staging/approve";
    let stale = service.ask(browser("POST", path, &cookie, "approval=apr-0&plan_digest=")).await;
    assert_eq!(stale.status, StatusCode::CONFLICT);
    let html = stale.html();
    assert!(html.contains(&format!("<a class=\"button\" href=\"{page}\">Back</a>")), "{html}");
}

#[tokio::test]
async fn services_are_narrowed_ordered_and_paged_by_the_address() {
    let service = Service::start().await;
    service.push().await;
    let cookie = service.sign_in("viewer").await;
    let shows = async |query: &str| {
        let answer = service.open(&format!("/services?{query}"), &cookie).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}");
        answer.html().contains("href=\"/applications/app/services/web\"")
    };
    for query in [
        "",
        "name=we&application=app&status=&channel=staging",
        "order=changed",
        "channel=production",
    ] {
        assert!(shows(query).await, "{query}");
    }
    for query in ["name=x", "channel=elsewhere", "status=BROKEN", "channel=staging&status=BROKEN"] {
        assert!(!shows(query).await, "{query}");
    }
    for query in ["status=NONSENSE", "order=changed&cursor=x", "application=nobody"] {
        let answer = service.open(&format!("/services?{query}"), &cookie).await;
        assert!(answer.status.is_client_error(), "{query}: {}", answer.status);
        answer.html();
    }
}

#[tokio::test]
async fn the_deploy_form_shows_what_it_would_change_and_releases_nothing() {
    let service = Service::start().await;
    service.push().await;
    let cookie = service.sign_in("admin").await;
    let path = "/applications/app/services/web/deploy";
    let form = "p.size=%3Cb%3Ehuge&c.staging=on&preview=yes";
    let shown = service.ask(browser("POST", path, &cookie, form)).await;
    assert_eq!(shown.status, StatusCode::OK);
    let html = shown.html();
    assert!(html.contains("What would change with <span class=\"mono\">web-2</span>"), "{html}");
    assert!(html.contains("&#60;b&#62;huge") && !html.contains("<b>huge"), "{html}");
    assert!(html.contains("name=\"c.staging\" checked"), "what was chosen stays chosen: {html}");
    assert!(!html.contains("name=\"c.production\" checked"), "{html}");
    let now = service.get("/v1/applications/app/services/web").await.json();
    assert_eq!(now["version"], "web-1", "nothing was released");
}
