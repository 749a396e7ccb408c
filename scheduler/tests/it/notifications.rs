//! The outbox over a real database and real servers that do what the test says.

mod decided;
mod email;
mod faults;
mod flood;
mod kept;
mod mail_server;
mod mail_tls;
mod server;

use std::collections::BTreeMap;
use std::time::Duration;

use pvn_scheduler::clock::{Clock, Manual};
use pvn_scheduler::notifications::NotificationSender;
use pvn_scheduler::store::{
    Change, Commit, DocumentKind, NewNotification, NotificationFilter, PageRequest, Store,
    StoredDocument, StoredDocumentKey,
};
use schema::api::{Notification, NotificationData, NotificationMessage};
use schema::id::NotificationId;
use schema::notification::{NotificationKind, NotificationStatus};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::store::{Fresh, at};
use crate::wait;

/// Longest wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The instant at which the clock of these tests stands.
const NOW: i64 = 1_000_000_000;

/// A sender over a database of its own, by a clock that stands still.
struct Sending {
    fresh: Fresh,
    clock: Manual,
    wake: watch::Sender<u64>,
    task: Option<AbortOnDropHandle<()>>,
    messages: u8,
    /// How long an answer may take.
    within: Duration,
    /// An authority that is trusted for mail servers.
    authority: Option<String>,
}

impl Sending {
    /// One whose application `shop` has these targets.
    async fn to(targets: &str) -> Self {
        Self::answered_within(Duration::from_millis(500), targets, None).await
    }

    /// The same that waits for so long, and trusts this authority for mail servers.
    async fn answered_within(within: Duration, targets: &str, authority: Option<&str>) -> Self {
        let fresh = Fresh::open().await;
        let (clock, wake) = (Manual::starting_at(at(NOW)), watch::Sender::new(0));
        let authority = authority.map(str::to_owned);
        let mut sending = Self { fresh, clock, wake, task: None, messages: 0, within, authority };
        sending.configure(targets, 1).await;
        sending.start();
        sending
    }

    async fn configure(&self, targets: &str, version: u64) {
        let text = format!(
            "application:\n  name: shop\n  releaseChannels: [{{name: production, runtimes: \
             [{{runtime: local}}]}}]\n  notifications:\n{targets}"
        );
        let source = config::DocumentSource {
            file: "shop.pvn.yaml".into(),
            first_line: 1,
            text,
            attachments: BTreeMap::new(),
        };
        let document = StoredDocument {
            key: StoredDocumentKey {
                kind: DocumentKind::Application,
                application: String::new(),
                name: "shop".into(),
            },
            version,
            digest: version.to_string(),
            source,
            created_at: at(NOW),
            created_by: "root".into(),
        };
        self.commit(Commit {
            changes: vec![Change::Document(Box::new(document))],
            ..Commit::default()
        })
        .await;
    }

    fn store(&self) -> &Store {
        &self.fresh.store
    }

    fn start(&mut self) {
        let clock = Clock::Manual(self.clock.clone());
        let sender = NotificationSender::new(self.store().clone(), clock, "https://pvn.test/")
            .answered_within(self.within);
        let sender = match &self.authority {
            Some(authority) => sender.trusting(authority),
            None => sender,
        };
        let run = sender.run(self.wake.subscribe(), CancellationToken::new());
        self.task = Some(AbortOnDropHandle::new(tokio::spawn(run)));
    }

    /// Kills it as a crash would.
    async fn kill(&mut self) {
        let task = self.task.take().unwrap();
        task.abort();
        let _ = task.await;
    }

    async fn commit(&self, commit: Commit) {
        self.store().commit(&commit).await.unwrap();
        self.wake.send_modify(|count| *count += 1);
    }

    /// Writes messages about these services, as the driver does.
    async fn tell(&mut self, target: &str, services: &[&str]) {
        let mut notifications = Vec::new();
        for service in services {
            self.messages += 1;
            notifications.push(message(target, service, self.messages));
        }
        self.commit(Commit { notifications, ..Commit::default() }).await;
    }

    /// All messages, oldest first.
    async fn all(&self) -> Vec<Notification> {
        let page = PageRequest { limit: Some(1_000), ..PageRequest::default() };
        let mut items =
            self.store().notifications(&NotificationFilter::default(), &page).await.unwrap().items;
        items.reverse();
        items
    }

    async fn statuses(&self) -> Vec<NotificationStatus> {
        self.all().await.iter().map(|message| message.status).collect()
    }

    async fn until(&self, what: &str, mut so: impl FnMut(&[Notification]) -> bool) {
        let look = async || so(&self.all().await).then_some(());
        if wait::until(PATIENCE, look).await.is_none() {
            panic!("{what} did not happen: {:#?}", self.all().await);
        }
    }

    async fn until_sent(&self, count: usize) {
        let is_sent = |message: &Notification| message.status == NotificationStatus::Sent;
        self.until("being sent", |all| all.iter().filter(|one| is_sent(one)).count() == count)
            .await;
    }

    /// Waits until sending the first message has failed so often.
    async fn until_failed(&self, attempts: u32) -> Notification {
        self.until("failing", |all| all[0].attempts == attempts).await;
        self.all().await.remove(0)
    }
}

fn message(target: &str, service: &str, number: u8) -> NewNotification {
    let data = NotificationData {
        service: Some(service.parse().unwrap()),
        channel: Some("production".parse().unwrap()),
        text: format!("shop/{service}@production failed"),
        why: "the apply ended with 1".into(),
        ..NotificationData::of(NotificationId::from_bytes([number; 16]), "shop".parse().unwrap())
    };
    let message = NotificationMessage { kind: NotificationKind::Failed, timestamp: at(NOW), data };
    NewNotification { target: target.parse().unwrap(), message }
}

/// A target that is a webhook of this server.
fn webhook(name: &str, server: &server::Server) -> String {
    format!("  - {{name: {name}, webhook: {{url: {{value: \"http://{}/in\"}}}}}}\n", server.address)
}
