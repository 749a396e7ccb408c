//! Many messages in a short time are one.

use schema::notification::NotificationStatus;

use super::server::{Answer, Server};
use super::{Sending, webhook};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_are_one_message_that_counts_them() {
    let server = Server::answering([]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    let names: Vec<String> = (0..30).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    sending.tell("hook", &names).await;
    sending.until_sent(1).await;
    let received = server.received();
    assert_eq!(received.len(), 1);
    let json = received[0].json();
    assert_eq!(json["type"], "DIGEST");
    assert_eq!(json["data"]["counts"], serde_json::json!({"FAILED": 30}));
    assert_eq!(json["data"]["lines"].as_array().unwrap().len(), 20);
    assert_eq!(json["data"]["lines"][0], "shop/s0@production failed");
    let all = sending.all().await;
    let digest = all.last().unwrap().id;
    assert!(
        all[..30].iter().all(|one| {
            one.status == NotificationStatus::Digested && one.digest == Some(digest)
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_ten_in_a_minute_the_next_ones_wait_for_it_to_pass_and_are_one() {
    let server = Server::answering([]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    for count in 1..=10 {
        sending.tell("hook", &["a"]).await;
        sending.until_sent(count).await;
    }
    sending.tell("hook", &["b", "c"]).await;
    sending.tell("hook", &["d"]).await;
    sending.clock.advance_ms(59_000);
    sending.until("waiting", |all| all.len() == 13).await;
    assert_eq!(server.received().len(), 10);
    sending.clock.advance_ms(1_000);
    sending.until("arriving", |_| server.received().len() == 13).await;
    let rest: Vec<_> = server.received().split_off(10);
    let told: u64 =
        rest.iter().map(|one| one.json()["data"]["counts"]["FAILED"].as_u64().unwrap_or(1)).sum();
    assert_eq!((rest.len(), told), (3, 3), "the minute is over, and three are not many");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_piles_up_for_a_target_that_is_away_stays_few() {
    let server = Server::answering([Answer::Says("503 Away", "", "")]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.tell("hook", &["first"]).await;
    sending.until_failed(1).await;
    for _ in 0..2 {
        sending.tell("hook", &["x"; 110]).await;
        let is_pending = |status: &NotificationStatus| *status == NotificationStatus::Pending;
        sending
            .until("becoming one", |all| {
                all.iter().filter(|one| is_pending(&one.status)).count() == 2
            })
            .await;
    }
    sending.clock.advance_ms(5_000);
    sending.until_sent(2).await;
    let received = server.received();
    assert_eq!(received[1].id(), received[0].id());
    assert_eq!(received[2].json()["data"]["counts"]["FAILED"], 220);
}
