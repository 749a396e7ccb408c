//! Names and ids are accepted alike, and pages join.

use axum::body::Body;
use pvn_scheduler::store::{Commit, JobRow};
use schema::id::{JobId, ReleaseId};
use schema::status::{JobStatus, Role};

use super::{Service, request, streams};

#[tokio::test]
async fn every_id_accepts_id_or_name() {
    let service = Service::start().await;
    let app = service.get("/v1/applications/app").await.json()["id"].as_str().unwrap().to_owned();
    let by_name = service.get("/v1/applications/app/services/web").await.json();
    let id = by_name["id"].as_str().unwrap();
    let channel = by_name["channels"][0]["channelId"].as_str().unwrap();
    for path in [
        format!("/v1/applications/{}/services/web", app),
        format!("/v1/applications/{}/services/{id}", app),
    ] {
        assert_eq!(service.get(&path).await.json(), by_name, "{path}");
    }
    let instance =
        service.get(&format!("/v1/applications/app/services/web/channels/{channel}")).await.json();
    assert_eq!(instance, by_name["channels"][0]);
    let listed = service.get(&format!("/v1/services?application={}", app)).await.json();
    assert_eq!(listed["items"][0]["id"], by_name["id"]);
}

#[tokio::test]
async fn tokens_page_by_page_are_all_of_them_once() {
    let service = Service::start().await;
    let mut names = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = service.get(&format!("/v1/tokens{query}")).await.json();
        names.extend(page["items"].as_array().unwrap().iter().map(|token| token["name"].clone()));
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    // One token of each role.
    let mut roles: Vec<_> = Role::ALL.iter().map(|role| role.as_str()).collect();
    roles.sort_unstable();
    assert_eq!(names, roles);
}

#[tokio::test]
async fn runtimes_and_channels_show_the_automatic_label_id() {
    let service = Service::start().await;
    let application = service.get("/v1/applications/app").await.json();
    let runtimes = service.get("/v1/runtimes").await.json();
    for one in [&application["releaseChannels"], &runtimes["items"]]
        .into_iter()
        .flat_map(|list| list.as_array().unwrap())
    {
        assert_eq!(
            (&one["labels"]["@id"], &one["labels"]["@name"]),
            (&one["id"], &one["name"]),
            "{one}"
        );
    }
}

#[tokio::test]
async fn metrics_say_the_type_of_each_once_before_its_samples() {
    let service = Service::start().await;
    let text = String::from_utf8(service.get("/metrics").await.body).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines.iter().filter(|line| **line == "# TYPE pvn_instances gauge").count(),
        1,
        "{text}"
    );
    let commits = lines.iter().position(|line| line.starts_with("pvn_commits_total ")).unwrap();
    assert_eq!(lines[commits - 1], "# TYPE pvn_commits_total counter", "{text}");
}

/// A service with jobs of these ids, the last byte of each given.
async fn with_jobs(ends: &[u8]) -> Service {
    let service = Service::start().await;
    let one = streams::job(&service, JobStatus::Succeeded).await;
    let jobs = ends.iter().zip(0..).map(|(end, number)| {
        let mut id = [0xab; 16];
        id[15] = *end;
        JobRow { id: JobId::from_bytes(id), seq: one.seq + number, ..one.clone() }
    });
    let commit = Commit { jobs: jobs.collect(), ..Commit::default() };
    service.rig.store.commit(&commit).await.unwrap();
    service
}

#[tokio::test]
async fn an_id_is_found_by_any_beginning_that_names_no_other() {
    let service = with_jobs(&[0x10, 0x2f]).await;
    let head = "ab".repeat(15);
    for typed in [format!("job-{head}1"), format!("{head}2"), format!("job-{head}2f")] {
        let path = format!("/v1/jobs/{typed}");
        let end = if typed.contains(&format!("{head}1")) { "10" } else { "2f" };
        assert_eq!(service.get(&path).await.json()["id"], format!("job-{head}{end}"), "{typed}");
        assert_eq!(service.get(&format!("{path}/logs?stream=stdout")).await.status, 200);
    }
    let answer = service.get("/v1/jobs/abab").await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.detail(),
        format!(
            "`abab` is the beginning of more than one job id: `job-{head}10` (fetch of \
             app/web@staging) and `job-{head}2f` (fetch of app/web@staging); give more of its \
             digits"
        )
    );
    // Of many only some are told.
    let service = with_jobs(&[1, 2, 3, 4, 5, 6, 7]).await;
    let detail = service.get("/v1/jobs/job-ab").await.detail();
    assert!(
        detail.contains("05` (fetch of app/web@staging) and more;") && !detail.contains("06`"),
        "{detail}"
    );
    for none in ["job-abc", "job-", "AB", "job-ab%", "ab_"] {
        assert_eq!(service.get(&format!("/v1/jobs/{none}")).await.status, 404, "{none}");
    }
}

#[tokio::test]
async fn a_release_is_found_by_the_beginning_of_its_id() {
    let service = Service::start().await;
    let path = "/v1/applications/app/services/web/push";
    let made = service.post(path, "{}").await.json();
    let id = made["release"].as_str().unwrap();
    for typed in [&id[..12], &id[4..12], id] {
        let found = service.get(&format!("/v1/releases/{typed}")).await.json();
        assert_eq!(found["release"], id, "{typed}");
    }
    let unknown = ReleaseId::from_bytes([0; 16]);
    assert_eq!(service.get(&format!("/v1/releases/{unknown}")).await.status, 404);
}

#[tokio::test]
async fn services_of_one_name_are_asked_for_over_all_applications() {
    let service = Service::start().await;
    let id = service.get("/v1/applications/app/services/web").await.json()["id"].clone();
    let id = id.as_str().unwrap();
    for (named, count) in [("web", 1), (id, 1), ("we", 0), ("%", 0)] {
        let found = service.get(&format!("/v1/services?named={named}")).await.json();
        assert_eq!(found["total"], count, "{named}: {found}");
    }
}

#[tokio::test]
async fn whoever_asks_who_they_are_is_told_their_own_token() {
    let service = Service::start().await;
    for name in ["viewer", "approver", "admin"] {
        let asked = request("GET", "/v1/whoami", Some(name), Body::empty());
        let told = service.ask(asked).await.json();
        assert_eq!((&told["name"], &told["role"]), (&name.into(), &name.into()), "{told}");
        assert!(told.get("token").is_none(), "a value is shown once only: {told}");
    }
}

#[tokio::test]
async fn releases_are_listed_by_the_channel_that_they_went_to() {
    let service = Service::start().await;
    let path = "/v1/applications/app/services/web/push";
    service.post(path, r#"{"channels": ["staging"]}"#).await;
    service.post(path, "{}").await;
    for (channel, count) in [("staging", 2), ("production", 1)] {
        let path = format!("/v1/releases?application=app&service=web&channel={channel}");
        assert_eq!(service.get(&path).await.json()["total"], count, "{channel}");
    }
}
