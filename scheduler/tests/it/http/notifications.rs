//! The list of messages to people, and sending them again.

use axum::http::StatusCode;
use pvn_scheduler::store::{Commit, NewNotification};
use schema::api::{NotificationData, NotificationMessage};
use schema::id::NotificationId;
use schema::notification::{NotificationKind, NotificationStatus};

use super::{Service, request};
use crate::store::at;

fn message(target: &str, number: u8) -> NewNotification {
    let data = NotificationData {
        service: Some("web".parse().unwrap()),
        channel: Some("staging".parse().unwrap()),
        text: format!("number {number}"),
        ..NotificationData::of(NotificationId::from_bytes([number; 16]), "app".parse().unwrap())
    };
    let message = NotificationMessage { kind: NotificationKind::Failed, timestamp: at(1), data };
    NewNotification { target: target.parse().unwrap(), message }
}

/// With five messages, of which the first is sent and the second given up.
async fn with_messages() -> Service {
    let service = Service::start().await;
    let notifications: Vec<_> =
        (1..=5).map(|number| message(if number == 5 { "log" } else { "chat" }, number)).collect();
    let commit = Commit { notifications: notifications.clone(), ..Commit::default() };
    let store = &service.rig.store;
    store.commit(&commit).await.unwrap();
    let id = |index: usize| notifications[index].message.data.id;
    store.end_notification(id(0), NotificationStatus::Sent, None, at(2)).await.unwrap();
    store.end_notification(id(1), NotificationStatus::Dead, Some("away"), at(3)).await.unwrap();
    service
}

#[tokio::test]
async fn messages_are_listed_newest_first_by_the_page_and_filtered() {
    let service = with_messages().await;
    let texts = async |query: &str| -> Vec<String> {
        let page = service.get(&format!("/v1/notifications{query}")).await.json();
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("?limit=2").await, ["number 5", "number 4"]);
    let page = service.get("/v1/notifications?limit=2").await.json();
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(page["total"], 5);
    assert_eq!(texts(&format!("?limit=2&cursor={cursor}")).await, ["number 3", "number 2"]);
    assert_eq!(texts("?status=DEAD").await, ["number 2"]);
    assert_eq!(texts("?application=app&target=log").await, ["number 5"]);
    assert_eq!(service.get("/v1/notifications?application=none").await.status, 404);
    assert_eq!(service.get("/v1/notifications?status=LOST").await.status, 400);
    let dead = &service.get("/v1/notifications?status=DEAD").await.json()["items"][0];
    assert_eq!((dead["error"].as_str(), &dead["attempts"]), (Some("away"), &1.into()));
    let metrics = String::from_utf8(service.get("/metrics").await.body).unwrap();
    assert!(metrics.contains("pvn_notifications{status=\"DEAD\"} 1\n"), "{metrics}");
    assert!(metrics.contains("pvn_notifications{status=\"PENDING\"} 3\n"), "{metrics}");
}

#[tokio::test]
async fn a_message_is_sent_again_by_hand_and_the_audit_knows_by_whom() {
    let service = with_messages().await;
    let resend = async |number: u8| {
        let id = NotificationId::from_bytes([number; 16]);
        let path = format!("/v1/notifications/{id}/resend");
        service.ask(request("POST", &path, Some("admin"), axum::body::Body::empty())).await
    };
    let answer = resend(2).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        (&answer.json()["status"], &answer.json()["attempts"]),
        (&"PENDING".into(), &0.into())
    );
    let twice = resend(2).await;
    assert_eq!(twice.status, StatusCode::CONFLICT);
    assert!(twice.detail().contains("is on its way"));
    assert_eq!(resend(9).await.status, StatusCode::NOT_FOUND);
    let log = service.get("/v1/events?kind=notification.resent").await.json();
    let entry = &log["items"][0];
    assert_eq!((&entry["actor"], &entry["application"]), (&"admin".into(), &"app".into()));
    assert_eq!(entry["message"], "admin has a notification sent to `chat` again: number 2");
}
