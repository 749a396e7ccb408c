//! Servers that fail, and what is done about it: tried again, in order, with an end.

use schema::notification::NotificationStatus;
use sha2::{Digest, Sha256};

use super::server::{Answer, OK, Server};
use super::{NOW, Sending, webhook};
use crate::store::at;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_well_server_is_sent_comes_once_and_in_order() {
    let server = Server::answering([]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.tell("hook", &["a", "b"]).await;
    sending.tell("hook", &["c"]).await;
    sending.until_sent(3).await;
    let received = server.received();
    let services: Vec<_> =
        received.iter().map(|one| one.json()["data"]["service"].clone()).collect();
    assert_eq!(services, ["a", "b", "c"]);
    let first = &received[0];
    assert_eq!((first.path.as_str(), first.id()), ("/in", "ntf-01010101010101010101010101010101"));
    assert_eq!(first.headers["webhook-timestamp"], (NOW / 1_000).to_string());
    assert!(!first.headers.contains_key("webhook-signature"), "there is no key");
    let json = first.json();
    assert_eq!(json["type"], "FAILED");
    assert_eq!(
        json["data"]["url"],
        "https://pvn.test/applications/shop/services/a?channel=production"
    );
}

/// HMAC-SHA256 as RFC 2104 has it, by hand: another way than the one that is tested.
fn hmac_by_hand(key: &[u8], text: &str) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_signs_what_is_sent() {
    use base64::Engine;
    let server = Server::answering([]).await;
    let key = [42_u8; 32];
    let engine = base64::engine::general_purpose::STANDARD;
    let target = format!(
        "  - name: hook\n    webhook: {{url: {{value: \"http://{}\"}}, signingKey: {{rawSecret: \
         whsec_{}}}}}\n",
        server.address,
        engine.encode(key)
    );
    let mut sending = Sending::to(&target).await;
    sending.tell("hook", &["a"]).await;
    sending.until_sent(1).await;
    let received = server.received().remove(0);
    let signed =
        format!("{}.{}.{}", received.id(), received.headers["webhook-timestamp"], received.body);
    let expected = format!("v1,{}", engine.encode(hmac_by_hand(&key, &signed)));
    assert_eq!(received.headers["webhook-signature"], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_taken_is_sent_again_first_with_its_id_and_growing_pauses() {
    let server = Server::answering([
        Answer::Says("500 Oh", "", "database away"),
        Answer::Closes,
        Answer::Says("429 Slow", "Retry-After: 120\r\n", ""),
        Answer::Says("301 Moved", "Location: http://127.0.0.1:1/\r\n", ""),
        Answer::Hangs,
        Answer::Endless,
    ])
    .await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.tell("hook", &["a", "b"]).await;
    let mut now = NOW;
    let story: [(&str, i64); 6] = [
        ("it answered 500 Internal Server Error: database away", 5_000),
        ("it cannot be reached", 10_000),
        ("it answered 429", 120_000),
        ("it answered 301 Moved Permanently, which leads elsewhere and is not followed", 40_000),
        ("it did not answer within 500ms", 80_000),
        ("it answered 500", 160_000),
    ];
    for (attempt, (why, pause)) in (1..).zip(story) {
        let failed = sending.until_failed(attempt).await;
        let error = failed.error.unwrap();
        assert!(error.starts_with(why) && error.len() < 300, "{error}");
        assert_eq!(failed.next_attempt_at, Some(at(now + pause)), "{why}");
        sending.clock.advance_ms(pause - 1);
        sending.wake.send_modify(|count| *count += 1);
        assert_eq!(server.received().len(), usize::try_from(attempt).unwrap(), "not before");
        sending.clock.advance_ms(1);
        now += pause;
    }
    sending.until_sent(2).await;
    let received = server.received();
    assert_eq!(received.len(), 8);
    assert!(received[..7].iter().all(|one| one.id() == received[0].id()), "the first comes first");
    assert_eq!(received[7].json()["data"]["service"], "b");
    assert_ne!(received[7].id(), received[0].id());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_hangs_keeps_no_other_waiting() {
    let hanging = Server::answering([Answer::Hangs]).await;
    let well = Server::answering([]).await;
    let targets = webhook("hanging", &hanging) + &webhook("well", &well);
    let mut sending = Sending::to(&targets).await;
    sending.tell("hanging", &["a"]).await;
    sending.until_failed(0).await;
    sending.tell("well", &["b"]).await;
    sending.until_sent(1).await;
    assert_eq!(well.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_target_will_not_have_is_given_up_and_sent_again_by_hand() {
    let bad = || Answer::Says("400 Bad Request", "", "no text");
    let server = Server::answering([bad(), bad(), bad(), OK]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.tell("hook", &["a", "b"]).await;
    for pause in [5_000, 10_000] {
        let attempts = if pause == 5_000 { 1 } else { 2 };
        sending.until_failed(attempts).await;
        sending.clock.advance_ms(pause);
    }
    // The next one is not kept from its target by it.
    sending.until_sent(1).await;
    assert_eq!(sending.statuses().await, [NotificationStatus::Dead, NotificationStatus::Sent]);
    let dead = sending.all().await.remove(0);
    assert_eq!(
        (dead.attempts, dead.error.as_deref()),
        (3, Some("it answered 400 Bad Request: no text"))
    );
    let resent = pvn_scheduler::store::Change::NotificationResent { id: dead.id, at: at(NOW) };
    sending
        .commit(pvn_scheduler::store::Commit { changes: vec![resent], ..Default::default() })
        .await;
    sending.until_sent(2).await;
    assert_eq!(server.received().last().unwrap().id(), dead.id.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_sent_for_days_is_dead_and_says_why() {
    let server = Server::answering(vec![Answer::Says("503 Away", "", ""); 72]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.tell("hook", &["a"]).await;
    // A clock that is set on by a week takes no try from it.
    sending.until_failed(1).await;
    sending.clock.advance_ms(7 * 86_400_000);
    for attempts in 2..72 {
        sending.until_failed(attempts).await;
        sending.clock.advance_ms(3_600_000);
    }
    sending.until("dying", |all| all[0].status == NotificationStatus::Dead).await;
    assert_eq!(server.received().len(), 72);
    let dead = sending.all().await.remove(0);
    assert_eq!(dead.error.as_deref(), Some("it answered 503 Service Unavailable"));
    assert!(dead.ended_at.is_some() && dead.next_attempt_at.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_not_in_the_config_any_more_is_told_nothing() {
    let server = Server::answering([Answer::Says("410 Gone", "", "")]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.tell("hook", &["a"]).await;
    sending.tell("other", &["b"]).await;
    sending
        .until("dying", |all| all.iter().all(|one| one.status == NotificationStatus::Dead))
        .await;
    let errors: Vec<_> = sending.all().await.into_iter().filter_map(|one| one.error).collect();
    assert_eq!(
        errors,
        [
            "it answered 410 Gone",
            "the config of application `shop` names no target `other` any more"
        ]
    );
    assert_eq!(server.received().len(), 1);
}
