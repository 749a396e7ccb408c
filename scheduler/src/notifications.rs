//! Sends what the driver wrote for people into the outbox. Started by `daemon`; reads and writes
//! the store alone, so that nothing of it holds up the driver.
//!
//! ```text
//!  driver ── one commit ──▶ outbox ──▶ line of each target ──▶ send ──▶ SENT
//!                                        │        ▲              │
//!                                        │        └── put off ◀──┤ not taken
//!                                        └─ too many: digest     └──────▶ DEAD
//! ```
//!
//! What always holds: to a target goes one message at a time, the oldest first; a message that was
//! committed is sent at least once, and the same one again has the same id; a target that hangs
//! costs one place of [`AT_A_TIME`] for as long as an answer may take; addresses and keys are read
//! when they are used and stand in no row, no log and no answer.

mod letter;
mod payload;
mod post;
mod resolve;
mod signature;
mod smtp;
mod turn;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schema::api::NotificationMessage;
use schema::id::{ApplicationName, TargetName};
use schema::notification::NotificationStatus;
use schema::time::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::store::{NotificationLine, PendingNotification, Result, Store};
use post::{HttpPost, Poster};
use resolve::{ResolvedProvider, resolve};
use smtp::Mailer;
use turn::{LineMove, NextTry};

/// Messages that are being sent at a time, each to another target: enough that some targets that
/// hang keep nobody else waiting for long, few enough that they are no load.
const AT_A_TIME: usize = 32;

/// How long to wait after the store could not be read or written.
const STORE_PAUSE_MS: i64 = 5_000;

/// How often the outbox is looked at when nobody says that there is something new.
const LOOK_EVERY_MS: i64 = 60_000;

/// How long what is being sent may take to come to its end when the daemon stops; what does not is
/// sent again after the start.
const STOP_WAIT: Duration = Duration::from_secs(3);

/// Why a message was not taken, for people: no address and no key is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SendFailure {
    /// The target is away, or in trouble; `after` = not before that long.
    Later { why: String, after: Option<Duration> },
    /// The target is there and will not have this message.
    Refused(String),
    /// There is no such target any more.
    Gone(String),
}

impl SendFailure {
    fn later(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), after: None }
    }

    /// The same in other words.
    fn map(self, words: impl Fn(String) -> String) -> Self {
        match self {
            Self::Later { why, after } => Self::Later { why: words(why), after },
            Self::Refused(why) => Self::Refused(words(why)),
            Self::Gone(why) => Self::Gone(words(why)),
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Later { why, .. } | Self::Refused(why) | Self::Gone(why) => why,
        }
    }
}

/// What sends.
#[derive(Debug, Clone)]
pub struct NotificationSender {
    store: Store,
    clock: Clock,
    http: Arc<Poster>,
    mail: Arc<Mailer>,
    /// The scheduler's own address, which pages are below.
    url: Arc<str>,
}

/// A target, by its names.
type Addressee = (ApplicationName, TargetName);

impl NotificationSender {
    /// One that links to pages below this address.
    pub fn new(store: Store, clock: Clock, url: &str) -> Self {
        let url = url.trim_end_matches('/').into();
        let http = Arc::new(Poster::new(post::ANSWER_WITHIN));
        let mail = Arc::new(Mailer::new(smtp::TAKEN_WITHIN));
        Self { store, clock, http, mail, url }
    }

    /// The same that waits for an answer for so long, for tests.
    #[must_use]
    pub fn answered_within(self, within: Duration) -> Self {
        let mail = Arc::new(Mailer::new(within));
        Self { http: Arc::new(Poster::new(within)), mail, ..self }
    }

    /// The same that trusts one more authority (PEM) for mail servers, for tests.
    ///
    /// # Panics
    /// When it is no certificate.
    #[must_use]
    pub fn trusting(self, authority: &str) -> Self {
        let mail = Arc::new(self.mail.trusting(authority.as_bytes()));
        Self { mail, ..self }
    }

    /// Sends what there is and what comes, until `stop`. `written` wakes it.
    pub async fn run(self, mut written: watch::Receiver<u64>, stop: CancellationToken) {
        let mut sending = JoinSet::new();
        let mut busy = BTreeSet::new();
        loop {
            let next = match self.begin(&mut sending, &mut busy).await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(%error, "notifications wait: the outbox cannot be used");
                    self.clock.now().plus_ms(STORE_PAUSE_MS)
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                changed = written.changed() => if changed.is_err() { break },
                Some(done) = sending.join_next(), if !sending.is_empty() => {
                    match done {
                        Ok(addressee) => drop(busy.remove(&addressee)),
                        // A fault of ours: which one it was is not known, so nobody is busy.
                        Err(died) => {
                            tracing::error!(%died, "sending a notification failed");
                            sending.shutdown().await;
                            busy.clear();
                        }
                    }
                }
                () = self.clock.sleep_until(next) => {}
            }
        }
        let rest = async { while sending.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_WAIT, rest).await;
        sending.shutdown().await;
    }

    /// Begins to send what can be sent. When there will be more to do by itself.
    async fn begin(
        &self,
        sending: &mut JoinSet<Addressee>,
        busy: &mut BTreeSet<Addressee>,
    ) -> Result<Timestamp> {
        let mut next = self.clock.now().plus_ms(LOOK_EVERY_MS);
        let (lines, unreadable) = self.store.notification_lines().await?;
        for why in unreadable {
            tracing::error!(why, "a notification cannot be read; its target is told nothing more");
        }
        for line in lines {
            let addressee = (line.head.application.clone(), line.head.target.clone());
            if busy.contains(&addressee) {
                continue;
            }
            if busy.len() >= AT_A_TIME {
                break;
            }
            match self.next_move(&line).await? {
                LineMove::Wait(until) => next = next.min(until),
                LineMove::Digest => {
                    let now = self.clock.now();
                    self.store.digest_notifications(&addressee.0, &addressee.1, now).await?;
                    // Its line is another one now.
                    next = now;
                }
                LineMove::Send => {
                    busy.insert(addressee.clone());
                    let sender = self.clone();
                    sending.spawn(async move {
                        sender.send(line.head).await;
                        addressee
                    });
                }
            }
        }
        Ok(next)
    }

    async fn next_move(&self, line: &NotificationLine) -> Result<LineMove> {
        let now = self.clock.now();
        let PendingNotification { application, target, .. } = &line.head;
        let since = now.plus_ms(-turn::MINUTE_MS);
        let lately = self.store.sent_lately(application, target, since).await?;
        Ok(turn::next_move(line, lately, now))
    }

    /// Sends one message, and notes what became of it.
    async fn send(&self, head: PendingNotification) {
        let id = head.message.data.id;
        let failure = self.hand_over(&head).await.err();
        let now = self.clock.now();
        let noted = match &failure {
            None => self.store.end_notification(id, NotificationStatus::Sent, None, now).await,
            Some(failure) => match turn::after(failure, head.attempts, head.created_at, now) {
                NextTry::At(at) => self.store.put_off_notification(id, failure.why(), at).await,
                NextTry::Dead => {
                    tracing::warn!(
                        application = %head.application, target = %head.target, %id,
                        why = failure.why(),
                        "a notification is given up; `pvnctl notifications resend` sends it again"
                    );
                    let dead = NotificationStatus::Dead;
                    self.store.end_notification(id, dead, Some(failure.why()), now).await
                }
            },
        };
        if let Err(error) = noted {
            // It is sent again, with the same id; not at once, as the next one needs the store too.
            tracing::warn!(%error, %id, "what became of a notification cannot be stored");
            let pause = now.plus_ms(STORE_PAUSE_MS);
            self.clock.sleep_until(pause).await;
        }
    }

    async fn hand_over(&self, head: &PendingNotification) -> std::result::Result<(), SendFailure> {
        let resolved = resolve(&self.store, &head.application, &head.target).await?;
        let message = self.linked(head.message.clone());
        let id = message.data.id.to_string();
        let post = match &resolved.provider {
            ResolvedProvider::Slack { url } => {
                HttpPost { url, headers: Vec::new(), body: payload::slack(&message) }
            }
            ResolvedProvider::Webhook { url, key } => {
                let body = payload::webhook(&message);
                let seconds = self.clock.now().as_millis() / 1_000;
                let headers = signature::headers(&id, seconds, &body, key.as_deref());
                HttpPost { url, headers, body }
            }
            ResolvedProvider::Email(route) => {
                let letter = letter::letter(&message, &route.from, &route.to)
                    .map_err(SendFailure::Refused)?;
                return self.mail.send(route, &letter, resolved.secrets.as_ref()).await;
            }
        };
        self.http.post(&post, resolved.secrets.as_ref()).await
    }

    /// The message with the address of the page that says more.
    fn linked(&self, mut message: NotificationMessage) -> NotificationMessage {
        let data = &mut message.data;
        let path = match (&data.service, &data.channel) {
            (Some(service), Some(channel)) => {
                pages::instance_path(&data.application, service, channel)
            }
            _ => "/".to_owned(),
        };
        data.url = Some(format!("{}{path}", self.url));
        message
    }
}
