//! Mail over SMTP: what a server is sent, and what is done when it says no.

use schema::notification::NotificationStatus;

use super::mail_server::{Fault, MailServer};
use super::{NOW, Sending};
use crate::store::at;

/// A target `mail` for these addresses at this server, with more about the server.
fn email(server: &MailServer, to: &str, more: &str) -> String {
    format!(
        "  - name: mail\n    email: {{to: [{to}], from: pvn@example.com, server: {{host: \
         127.0.0.1, port: {}, {more}}}}}\n",
        server.address.port()
    )
}

const LOGIN: &str = "tls: NONE, user: {value: pvn}, password: {rawSecret: hunter2-hunter2}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_taken_once_in_order_by_a_server_that_knows_the_user() {
    let server = MailServer::with([]).await;
    let mut sending = Sending::to(&email(&server, "ann@h, bob@h", LOGIN)).await;
    sending.tell("mail", &["a", "b"]).await;
    sending.until_sent(2).await;
    let mails = server.mails();
    let subjects: Vec<_> = mails.iter().map(|mail| mail.header("Subject")).collect();
    assert_eq!(subjects, ["FAILED shop/a@production failed", "FAILED shop/b@production failed"]);
    assert_eq!(mails[0].to, ["ann@h", "bob@h"]);
    let id = "<ntf-01010101010101010101010101010101@example.com>";
    assert_eq!(mails[0].header("Message-ID"), id);
    let page = "https://pvn.test/applications/shop/services/a?channel=3Dproduction";
    let text = mails[0].text.replace("=\n", "");
    assert!(text.contains(page) || text.contains(&page.replace("=3D", "=")), "{text}");
    // PLAIN: nobody, the user, the password.
    let login = "AUTH PLAIN AHB2bgBodW50ZXIyLWh1bnRlcjI=".to_owned();
    assert!(server.commands().contains(&login), "{:?}", server.commands());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_not_said_to_a_server_without_tls() {
    let server = MailServer::with([]).await;
    let login = LOGIN.replace("tls: NONE, ", "");
    let mut sending = Sending::to(&email(&server, "ann@h", &login)).await;
    sending.tell("mail", &["a"]).await;
    let error = sending.until_failed(1).await.error.unwrap();
    assert!(error.starts_with("it does not offer STARTTLS"), "{error}");
    assert!(!server.commands().iter().any(|line| line.starts_with("AUTH")));
    assert_eq!(server.mails(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_that_is_not_taken_is_sent_again_first_with_its_id() {
    let server = MailServer::with([
        ("AUTH", Fault::Says("535 not hunter2-hunter2")),
        ("MAIL", Fault::Says("451 later")),
        ("RCPT", Fault::Says("450 grey")),
        ("DATA", Fault::Hangs),
        (".", Fault::Closes),
    ])
    .await;
    let mut sending = Sending::to(&email(&server, "ann@h", LOGIN)).await;
    sending.tell("mail", &["a", "b"]).await;
    let mut now = NOW;
    let story: [(&str, i64); 5] = [
        ("it does not let `user` in: 535 not ", 5_000),
        ("it does not take `from`: 451 later", 10_000),
        ("it takes nothing for any address of `to`: 450 grey", 20_000),
        ("it did not take it within 500ms", 40_000),
        ("it does not take the message: ", 80_000),
    ];
    for (attempt, (why, pause)) in (1..).zip(story) {
        let failed = sending.until_failed(attempt).await;
        let error = failed.error.unwrap();
        assert!(error.starts_with(why) && error.len() < 300, "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        assert_eq!(failed.next_attempt_at, Some(at(now + pause)), "{why}");
        sending.clock.advance_ms(pause);
        now += pause;
    }
    sending.until_sent(2).await;
    let mails = server.mails();
    let ids: Vec<_> = mails.iter().map(|mail| mail.header("Message-ID").to_owned()).collect();
    // It was taken before the connection ended, so it comes twice, and can be told by its id.
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_refused_keeps_nobody_else_from_being_told() {
    let server = MailServer::with([("RCPT", Fault::Says("550 gone"))]).await;
    let mut sending = Sending::to(&email(&server, "ann@h, bob@h", LOGIN)).await;
    sending.tell("mail", &["a"]).await;
    sending.until_sent(1).await;
    assert_eq!(server.mails()[0].to, ["bob@h"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_that_nobody_may_have_is_given_up_soon_and_the_next_goes_out() {
    let server = MailServer::with([("RCPT", Fault::Says("550 gone")); 3]).await;
    let mut sending = Sending::to(&email(&server, "ann@h", LOGIN)).await;
    sending.tell("mail", &["a", "b"]).await;
    for (attempts, pause) in [(1, 5_000), (2, 10_000)] {
        sending.until_failed(attempts).await;
        sending.clock.advance_ms(pause);
    }
    sending.until_sent(1).await;
    assert_eq!(sending.statuses().await, [NotificationStatus::Dead, NotificationStatus::Sent]);
    let dead = sending.all().await.remove(0);
    let why = "it takes nothing for any address of `to`: 550 gone";
    assert_eq!(dead.error.as_deref(), Some(why));
}
