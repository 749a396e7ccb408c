//! What the driver decided in one go, written in one transaction: all of it or nothing.

use schema::api::LogEntry;
use schema::id::{BlobId, ChannelId, JobId, NotificationId, ReleaseId, RuntimeName};
use schema::log_kind::LogKind;
use schema::status::Status;
use schema::time::Timestamp;
use sqlx::Connection as _;

use super::{
    ApplicationRow, ChannelRow, Connection, Counters, InstanceRow, JobRow, NewNotification,
    NotifiedPlace, PendingAction, ReleaseChannelRow, ReleaseRow, Result, RuntimeRow, ServiceRow,
    Store, StoredDocument, StoredDocumentKey, TokenRow, ToldLast, actions, events, instances, jobs,
    notifications,
};
use crate::compile::Commands;

/// One transaction.
#[derive(Debug, Default)]
pub struct Commit {
    /// Changes of what exists, before everything else. Of two of one row the later counts.
    pub changes: Vec<Change>,
    /// Instances, new and changed.
    pub instances: Vec<InstanceRow>,
    /// Jobs, new and changed.
    pub jobs: Vec<JobRow>,
    /// Actions to perform afterwards.
    pub actions: Vec<PendingAction>,
    /// Actions performed.
    pub performed: Vec<i64>,
    /// Entries of the log.
    pub events: Vec<LogEntry>,
    /// What people are told without asking of what else is in here.
    pub notifications: Vec<NewNotification>,
    /// What was told last of what is not well; `None` where it is well again.
    pub told: Vec<(NotifiedPlace, Option<ToldLast>)>,
}

/// A change of something other than the course of an instance.
#[derive(Debug)]
pub enum Change {
    /// A new version of a document.
    Document(Box<StoredDocument>),
    /// The newest version of a document is in force no more.
    DocumentDeleted {
        key: StoredDocumentKey,
        /// Since when.
        at: Timestamp,
        /// By whom.
        by: String,
    },
    /// A runtime, new or changed.
    Runtime(Box<RuntimeRow>),
    /// A runtime that is no more.
    RuntimeDeleted(RuntimeName),
    /// An application, new or changed or deleted.
    Application(ApplicationRow),
    /// A channel, new or changed or deleted.
    Channel(Box<ChannelRow>),
    /// A service, new or changed or deleted.
    Service(ServiceRow),
    /// Rendered commands.
    Compiled(BlobId, Box<Commands>),
    Release(Box<ReleaseRow>),
    /// What a release means for a channel, new or recompiled.
    ReleaseChannel(Box<ReleaseChannelRow>),
    /// How a release stands in a channel.
    ReleaseStatus {
        release: ReleaseId,
        channel: ChannelId,
        /// How it stands.
        status: Status,
        /// Since when.
        at: Timestamp,
    },
    /// Whether somebody rejected a release in a channel, and nobody has asked anew.
    ReleaseRefused {
        release: ReleaseId,
        channel: ChannelId,
        /// Whether it is.
        refused: bool,
    },
    /// A new version of a secret.
    Secret {
        key: String,
        /// The version's number.
        version: u64,
        /// Its value, sealed on the way in.
        value: Vec<u8>,
        /// When.
        at: Timestamp,
        /// By whom.
        by: String,
    },
    /// No version of this secret is left.
    SecretDeleted(String),
    /// A new token.
    Token(TokenRow),
    /// A token is no longer valid.
    TokenRevoked {
        name: String,
        /// Since when.
        at: Timestamp,
    },
    /// A job whose row cannot be read is over for us.
    JobGivenUp {
        job: JobId,
        /// Since when.
        at: Timestamp,
        /// Why, for people.
        why: String,
    },
    /// A person has a message sent again.
    NotificationResent {
        id: NotificationId,
        /// When.
        at: Timestamp,
    },
    /// A single value.
    Meta(&'static str, String),
}

impl Commit {
    /// Rows that it writes or removes, at most.
    pub fn rows(&self) -> usize {
        self.changes.len()
            + self.instances.len()
            + self.jobs.len()
            + self.actions.len()
            + self.performed.len()
            + self.events.len()
            + self.notifications.len()
            + self.told.len()
    }

    /// Adds what nobody asked for to the log, as its next entry after those that are stored.
    pub fn tell(
        &mut self,
        stored: &Counters,
        at: Timestamp,
        kind: LogKind,
        message: String,
        data: serde_json::Value,
    ) {
        self.events.push(LogEntry {
            seq: stored.event.unsigned_abs() + 1 + self.events.len() as u64,
            at,
            kind: kind.to_string(),
            actor: None,
            origin: None,
            application: None,
            service: None,
            channel: None,
            message,
            data,
        });
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }
}

impl Store {
    /// Writes all of it durably, or nothing.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] when nothing can be written at present,
    /// [`super::StoreError::Conflict`] when a revision is not the one that the change was made
    /// from, or a name is taken; [`super::StoreError::Lost`] when another daemon has the
    /// database by now.
    pub async fn commit(&self, commit: &Commit) -> Result<()> {
        self.check_room()?;
        let mut writer = self.write.acquire().await?;
        let written = self.write(&mut writer, commit).await;
        if written.is_err() {
            // SQLite itself ends the transaction when the disk is full, which the connection does
            // not learn: a new one starts from what is really stored.
            writer.close_on_drop();
        }
        written
    }

    async fn write(&self, writer: &mut Connection, commit: &Commit) -> Result<()> {
        // IMMEDIATE, so that another process's lock is met here and not half-way.
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        if let Some(lease) = &self.lease {
            lease.check(&mut transaction).await?;
        }
        self.write_changes(&mut transaction, &commit.changes).await?;
        instances::put(&mut transaction, &commit.instances).await?;
        jobs::put(&mut transaction, &commit.jobs).await?;
        actions::insert(&mut transaction, &commit.actions).await?;
        actions::delete(&mut transaction, &commit.performed).await?;
        events::insert(&mut transaction, &commit.events).await?;
        notifications::insert(&mut transaction, &commit.notifications).await?;
        notifications::note_told(&mut transaction, &commit.told).await?;
        transaction.commit().await?;
        Ok(())
    }
}
