//! Names and ids are accepted alike, and pages join.

use serde_json::Value;

use super::Service;

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
    assert_eq!(Value::from(names), serde_json::json!(["admin", "approver", "viewer"]));
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
