//! What is kept: over a kill, and of secrets nothing.

use schema::notification::NotificationStatus;

use super::server::{Answer, Server};
use super::{Sending, webhook};
use pvn_scheduler::store::{Change, Commit};

use crate::store::at;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_before_a_kill_is_sent_after_it() {
    let server = Server::answering([]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.kill().await;
    sending.tell("hook", &["a"]).await;
    assert_eq!(sending.statuses().await, [NotificationStatus::Pending]);
    sending.start();
    sending.until_sent(1).await;
    assert_eq!(server.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_and_not_noted_comes_again_with_the_same_id() {
    // It has the message, and its answer does not come before the kill.
    let server = Server::answering([Answer::Hangs]).await;
    let mut sending = Sending::to(&webhook("hook", &server)).await;
    sending.tell("hook", &["a"]).await;
    sending.until("arriving", |_| server.received().len() == 1).await;
    sending.kill().await;
    sending.start();
    sending.until_sent(1).await;
    let received = server.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].id(), received[1].id());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_address_counts_from_the_next_attempt_on() {
    let (old, new) = (
        Server::answering([Answer::Says("404 No", "", "no_team")]).await,
        Server::answering([]).await,
    );
    let mut sending = Sending::to(&webhook("hook", &old)).await;
    sending.tell("hook", &["a"]).await;
    sending.until_failed(1).await;
    sending.configure(&webhook("hook", &new), 2).await;
    sending.clock.advance_ms(5_000);
    sending.until_sent(1).await;
    assert_eq!(new.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_in_nothing_that_is_kept_or_shown() {
    // It says again what it was asked, as some servers do.
    let says = Answer::Says("404 No", "", "no such hook: /services/T0SECRET/B0SECRET");
    let server = Server::answering([says]).await;
    let target = "  - {name: chat, slack: {url: {secret: {key: slack-url}}}}\n";
    let mut sending = Sending::to(target).await;
    sending.tell("chat", &["a"]).await;
    let failed = sending.until_failed(1).await;
    assert_eq!(
        failed.error.as_deref(),
        Some(
            "secret `slack-url` of `url` does not exist; set it with `pvnctl secrets set slack-url`"
        )
    );
    let url = format!("http://{}/services/T0SECRET/B0SECRET\n", server.address);
    let secret = Change::Secret {
        key: "slack-url".into(),
        version: 1,
        value: url.into_bytes(),
        at: at(1),
        by: "root".into(),
    };
    sending.commit(Commit { changes: vec![secret], ..Commit::default() }).await;
    sending.clock.advance_ms(5_000);
    let failed = sending.until_failed(2).await;
    let error = failed.error.unwrap();
    assert!(error.starts_with("it answered 404 Not Found: no such hook"), "{error}");
    sending.clock.advance_ms(10_000);
    sending.until_sent(1).await;
    assert_eq!(server.received()[1].path, "/services/T0SECRET/B0SECRET");
    let text = server.received()[1].json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("🔴 *shop/a@production failed*\nthe apply ended with 1\n"), "{text}");
    sending.store().checkpoint().await.unwrap();
    let shown = serde_json::to_string(&sending.all().await).unwrap();
    assert!(!error.contains("0SECRET") && !shown.contains("0SECRET"), "{error} {shown}");
    for file in std::fs::read_dir(sending.fresh.dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"0SECRET"), "the database holds a secret");
    }
}
