//! The outbox: messages to people who did not ask, written in the transaction that commits what
//! they tell of, sent by `notifications` afterwards. What was told last of what is not well.

mod list;
mod outbox;

use std::collections::HashMap;

use schema::api::NotificationMessage;
use schema::id::{ApplicationName, ChannelName, NotificationId, ServiceName, TargetName};
use schema::notification::{NotificationEvent, NotificationStatus};
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::row::{get, named, pieces, readable, to_json, word};
use super::{Connection, Db, Result, Row, Store, StoreError};

pub use list::NotificationFilter;
pub use outbox::{NotificationLine, PendingNotification, SentLately};

/// A message to write.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNotification {
    pub target: TargetName,
    pub message: NotificationMessage,
}

/// A service in a channel, by its names.
pub type NotifiedPlace = (ApplicationName, ServiceName, ChannelName);

/// What was told last of something that is not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldLast {
    pub event: NotificationEvent,
    /// The version that it was told of; empty where the next time is news whatever it tells.
    pub version: String,
}

impl Store {
    /// What was told last, of everything that is not well. A row that cannot be read is left out:
    /// something is told once more.
    pub async fn told_last(&self) -> Result<HashMap<NotifiedPlace, ToldLast>> {
        let rows = sqlx::query("SELECT * FROM notified").fetch_all(&self.read).await?;
        let read = |row: &Row| {
            let columns = || {
                Ok((
                    (word(row, "application")?, word(row, "service")?, word(row, "channel")?),
                    ToldLast { event: word(row, "event")?, version: get(row, "version")? },
                ))
            };
            named("notified", &["application", "service", "channel"], row, columns())
        };
        Ok(readable(&rows, |row| read(row))?.0.into_iter().collect())
    }
}

/// Above every number that is ever reached; what is above it is damage.
const SEQ_LIMIT: i64 = 1 << 60;

/// Writes messages behind all that are there, in their order.
pub(super) async fn insert(
    connection: &mut Connection,
    messages: &[NewNotification],
) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    // One damaged number keeps no later message from being written.
    let mut seq: i64 = sqlx::query_scalar(
        "SELECT COALESCE(MAX(seq), 0) FROM notifications WHERE typeof(seq) = 'integer' AND seq >= \
         0 AND seq < $1",
    )
    .bind(SEQ_LIMIT)
    .fetch_one(&mut *connection)
    .await?;
    for piece in pieces(messages) {
        QueryBuilder::<Db>::new(
            "INSERT INTO notifications (seq, id, application, target, service, channel, kind, \
             status, message, attempts, created_at, next_attempt_at) ",
        )
        .push_values(piece, |mut row, new| {
            let NewNotification { target, message } = new;
            let data = &message.data;
            seq += 1;
            row.push_bind(seq)
                .push_bind(data.id.to_string())
                .push_bind(data.application.to_string())
                .push_bind(target.to_string())
                .push_bind(data.service.as_ref().map(ToString::to_string))
                .push_bind(data.channel.as_ref().map(ToString::to_string))
                .push_bind(message.kind.as_str())
                .push_bind(NotificationStatus::Pending.as_str())
                .push_bind(to_json(message))
                .push_bind(0_i64)
                .push_bind(message.timestamp.as_millis())
                .push_bind(message.timestamp.as_millis());
        })
        // The same event is told to a target once, whatever was restored in between.
        .push(" ON CONFLICT (id) DO NOTHING")
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Keeps what was told last; `None` where it is well.
pub(super) async fn note_told(
    connection: &mut Connection,
    told: &[(NotifiedPlace, Option<ToldLast>)],
) -> Result<()> {
    for ((application, service, channel), last) in told {
        let query = match last {
            Some(_) => sqlx::query(
                "INSERT INTO notified (application, service, channel, event, version) VALUES ($1, \
                 $2, $3, $4, $5) ON CONFLICT (application, service, channel) DO UPDATE SET event \
                 = excluded.event, version = excluded.version",
            ),
            None => sqlx::query(
                "DELETE FROM notified WHERE application = $1 AND service = $2 AND channel = $3",
            ),
        };
        let query =
            query.bind(application.to_string()).bind(service.to_string()).bind(channel.to_string());
        let query = match last {
            Some(ToldLast { event, version }) => query.bind(event.as_str()).bind(version.clone()),
            None => query,
        };
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Has a message sent again, from the first attempt on.
pub(super) async fn resend(
    connection: &mut Connection,
    id: NotificationId,
    at: Timestamp,
) -> Result<()> {
    let done = sqlx::query(
        "UPDATE notifications SET status = $2, attempts = 0, error = NULL, digest = NULL, \
         created_at = $3, next_attempt_at = $3, ended_at = NULL WHERE id = $1 AND status <> $2",
    )
    .bind(id.to_string())
    .bind(NotificationStatus::Pending.as_str())
    .bind(at.as_millis())
    .execute(connection)
    .await?;
    if done.rows_affected() == 0 {
        return Err(StoreError::Conflict(format!("{id} is on its way already, or not there")));
    }
    Ok(())
}
