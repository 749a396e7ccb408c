//! What pages offer, and what is refused: with every role and with every kind of limit the one is
//! the opposite of the other.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use schema::access::TokenRights;
use schema::status::{Role, Status};
use serde_json::Value;

use super::pages::browser;
use super::rights::{FORMS, filled};
use super::token_limits::limited;
use super::{Service, token_with};

/// A service with something to do for everybody: an apply that runs in `staging`, an approval of
/// its own in `qa`, one that `production` and `eu` share, a window that is shut in `night`. Nobody
/// ends a question alone.
const CONFIG: &str = r#"
runtime:
  name: hand
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {name: do, entrypoint: [do]}}
---
runtime:
  name: guarded
  custom:
    proxyRuntime: {runtime: local}
    apply:
      window: {schedule: "0 0 9 1 1 * 2020", duration: 1h}
      taskConfig: {program: {name: do, entrypoint: [do]}}
---
runtime: {name: idle, fake: {}}
---
application:
  name: app
  releaseChannels:
  - name: staging
    runtimes: [{runtime: hand}]
  - name: qa
    runtimes: [{runtime: hand}]
    preconditions: [{manualApproval: {name: tested, minApprovers: 9}}]
  - name: production
    runtimes: [{runtime: hand}]
    preconditions: [{sharedManualApproval: {name: launch, minApprovers: 9}}]
  - name: eu
    runtimes: [{runtime: hand}]
    preconditions: [{sharedManualApproval: {name: launch, minApprovers: 9}}]
  - name: night
    runtimes: [{runtime: guarded}]
---
service: {name: web, application: app}
"#;

const CHANNELS: [&str; 5] = ["staging", "qa", "production", "eu", "night"];

/// The service, released twice, and its job that runs.
async fn waiting() -> (Service, String) {
    let service = Service::hanging().await;
    service.rig.apply(CONFIG).await.unwrap();
    for _ in 0..2 {
        let pushed = service.post("/v1/applications/app/services/web/push", "{}").await;
        assert_eq!(pushed.status, StatusCode::OK, "{}", String::from_utf8_lossy(&pushed.body));
    }
    for channel in ["qa", "production", "eu"] {
        service.rig.until_status(channel, Status::WaitingManualApproval).await;
    }
    service.rig.until_status("night", Status::WaitingPreconditions).await;
    let path = "/v1/jobs?application=app&channel=staging&kind=apply&status=RUNNING";
    let job = service
        .rig
        .until("an apply in staging", async || {
            let found = service.get(path).await.json();
            found["items"][0]["id"].as_str().map(str::to_owned)
        })
        .await;
    (service, job)
}

fn values<'a>(channel: &'a str, job: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("application", "app"),
        ("service", "web"),
        ("channel", channel),
        ("runtime", "idle"),
        ("job", job),
    ]
}

/// Where the forms of a page are sent to that change something, and what is chosen in each.
fn forms(html: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for form in html.split("<form ").skip(1) {
        let form = form.split("</form>").next().unwrap();
        if !form.split('>').next().unwrap().contains("method=\"post\"") {
            continue;
        }
        let checked = form.split("name=\"c.").skip(1).filter_map(|rest| {
            let (name, rest) = rest.split_once('"')?;
            let is_chosen = rest.split('>').next()?.contains(" checked");
            is_chosen.then(|| format!("c.{name}=on"))
        });
        let must_choose = form.contains("name=\"chosen\"").then(|| "chosen=yes".to_owned());
        let chosen: Vec<String> = checked.chain(must_choose).collect();
        let paths = form.split("action=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        found.extend(paths.map(|path| (path.to_owned(), chosen.join("&"))));
    }
    found.remove("/sign-out");
    found
}

/// All pages with forms, as they are for somebody.
async fn shown(service: &Service, cookie: &str, job: &str) -> BTreeMap<String, String> {
    let of_service = "/applications/app/services/web";
    let mut paths: Vec<String> =
        CHANNELS.map(|channel| format!("{of_service}?channel={channel}")).into();
    paths.extend(["/deploy", "/rollback"].map(|last| format!("{of_service}{last}")));
    paths.extend([format!("/jobs/{job}"), "/runtimes/idle".into(), "/approvals".into()]);
    let mut pages = BTreeMap::new();
    for path in paths {
        let answer = service.open(&path, cookie).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        pages.insert(path, answer.html());
    }
    pages
}

/// What pages offer to somebody as things are, and while all channels are paused. Where something
/// is left out that others are offered, the page says why.
async fn offered(service: &Service, cookie: &str, job: &str) -> BTreeMap<String, String> {
    let admin = service.sign_in("admin").await;
    let mut all = BTreeMap::new();
    for does in ["pause", "resume"] {
        let own = shown(service, cookie, job).await;
        for (path, html) in shown(service, &admin, job).await {
            let found = forms(&own[&path]);
            let is_all = forms(&html).keys().all(|form| found.contains_key(form));
            assert_eq!(is_all, !own[&path].contains("data-why-not"), "{path}: {}", own[&path]);
            all.extend(found);
        }
        for channel in CHANNELS {
            let path = format!("/v1/applications/app/services/web/channels/{channel}/{does}");
            assert_eq!(service.post(&path, "{}").await.status, StatusCode::OK);
        }
    }
    all
}

/// What a form would send, with what is asked in the channel now.
async fn body(service: &Service, form: &str, channel: &str, chosen: &str) -> String {
    let path = format!("/v1/applications/app/services/web/channels/{channel}");
    let approvals = service.get(&path).await.json()["approvals"].clone();
    let pending = approvals.as_array().unwrap().iter().find(|one| one["status"] == "PENDING");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (id, digest) =
        pending.map(|one| (text(&one["id"]), text(&one["planDigest"]))).unwrap_or_default();
    match form.rsplit('/').next().unwrap() {
        "approve" | "reject" => format!("approval={id}&plan_digest={digest}"),
        "deploy" => format!("preview=yes&{chosen}"),
        "rollback" => format!("version=web-1&{chosen}"),
        "open-window" => "version=web-2&reason=down&for_seconds=900".to_owned(),
        "acknowledge" => "end=yes".to_owned(),
        _ => String::new(),
    }
}

/// Tries every form in every channel as somebody, and holds what comes back against what they were
/// offered.
async fn tried(name: &str, rights: Option<TokenRights>) {
    let (service, job) = waiting().await;
    if let Some(rights) = rights {
        service.add(vec![token_with(name, rights)]).await;
    }
    let (admin, own) = (service.sign_in("admin").await, service.sign_in(name).await);
    let there_are = offered(&service, &admin, &job).await;
    let offers = offered(&service, &own, &job).await;
    let mut seen = BTreeSet::new();
    for (form, _) in FORMS {
        for channel in CHANNELS {
            let path = filled(form, &values(channel, &job));
            if !seen.insert(path.clone()) {
                continue;
            }
            let chosen = offers.get(&path).map_or("", String::as_str);
            let body = body(&service, form, channel, chosen).await;
            let answer = service.ask(browser("POST", &path, &own, &body)).await;
            let is_refused = answer.status == StatusCode::FORBIDDEN;
            let is_offered = offers.contains_key(&path);
            let told = format!("{path} as {name}: {}, offered: {is_offered}", answer.status);
            assert!(!(is_refused && is_offered), "{told}");
            assert!(is_refused || is_offered || !there_are.contains_key(&path), "{told}");
        }
        let is_there =
            CHANNELS.iter().any(|one| there_are.contains_key(&filled(form, &values(one, &job))));
        // Drift takes a fetch that says what it found: a test with the real daemon has one.
        assert!(is_there || form.ends_with("/acknowledge"), "{form} is on no page");
    }
}

#[tokio::test]
async fn what_a_page_offers_is_not_refused_and_what_is_refused_is_not_offered_by_role() {
    for role in Role::ALL {
        tried(role.as_str(), None).await;
    }
}

#[tokio::test]
async fn what_a_page_offers_is_not_refused_and_what_is_refused_is_not_offered_by_limit() {
    let limits: [(&[&str], &[&str]); 7] = [
        (&["app"], &[]),
        (&["elsewhere"], &[]),
        (&[], &["production"]),
        (&["app"], &["production", "eu"]),
        (&["app"], &["staging", "night"]),
        (&[], &["qa", "eu"]),
        (&[], &["nowhere"]),
    ];
    for (applications, channels) in limits {
        tried("limited", Some(limited(applications, channels))).await;
    }
}

#[tokio::test]
async fn what_reaches_beyond_the_limits_of_a_token_says_who_decides() {
    let (service, _) = waiting().await;
    service.add(vec![token_with("ann", limited(&[], &["production", "qa"]))]).await;
    let cookie = service.sign_in("ann").await;
    let why = "It is decided for web@eu and web@production together, by whoever may change all of \
               them. Your token may change only channels production and qa of every application";
    let page = "/applications/app/services/web?channel=production";
    for path in [page, "/approvals"] {
        let html = service.open(path, &cookie).await.html();
        assert!(html.contains(why) && html.contains("Counts in eu and production."), "{html}");
    }
    let own = service.open("/applications/app/services/web?channel=qa", &cookie).await.html();
    assert!(own.contains("/channels/qa/approve\"") && !own.contains("Counts in"), "{own}");
}

#[tokio::test]
async fn whoever_has_said_yes_is_offered_to_take_it_back_alone() {
    let (service, _) = waiting().await;
    let cookie = service.sign_in("approver").await;
    let body = body(&service, "approve", "qa", "").await;
    let path = "/applications/app/services/web/channels/qa";
    let page = "/applications/app/services/web?channel=qa";
    let before = service.open(page, &cookie).await.html();
    assert!(before.contains(">Approve</button>"), "{before}");
    let said = service.ask(browser("POST", &format!("{path}/approve"), &cookie, &body)).await;
    assert_eq!(said.status, StatusCode::SEE_OTHER);
    let html = service.open(page, &cookie).await.html();
    assert!(html.contains("tested: 1 of 9"), "the gate counts: {html}");
    assert!(html.contains("You have said yes") && !html.contains(">Approve</button>"), "{html}");
    let said = service.ask(browser("POST", &format!("{path}/reject"), &cookie, &body)).await;
    assert_eq!(said.status, StatusCode::SEE_OTHER);
    service.rig.until_status("qa", Status::Failed).await;
}
