//! What is to be sent: the lines of messages, one for each target, their heads, and what became of
//! them. Called by `notifications`.

use std::collections::BTreeMap;

use schema::api::{NotificationData, NotificationMessage};
use schema::id::{ApplicationName, NotificationId, TargetName};
use schema::notification::{NotificationKind, NotificationStatus};
use schema::time::Timestamp;

use super::super::row::{count, get, instant, json, named, readable, small, word};
use super::super::{Connection, Result, Row, Store};
use super::NewNotification;

/// Most lines of a digest that say what one of its messages does: what a screen holds.
const DIGEST_LINES: usize = 20;

/// The messages that wait for one target, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct NotificationLine {
    /// How many wait.
    pub pending: u64,
    /// How many of them nobody has tried to send.
    pub untried: u64,
    /// The first one.
    pub head: PendingNotification,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingNotification {
    pub application: ApplicationName,
    pub target: TargetName,
    pub message: NotificationMessage,
    /// How often sending it failed.
    pub attempts: u32,
    /// When it was decided, or asked for again.
    pub created_at: Timestamp,
    pub next_attempt_at: Timestamp,
}

/// What was sent to a target in the last while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SentLately {
    pub count: u64,
    /// When the first of them was sent.
    pub first: Option<Timestamp>,
}

fn read(row: &Row) -> Result<NotificationLine> {
    let columns = || {
        Ok(NotificationLine {
            pending: count(row, "pending")?,
            untried: count(row, "untried")?,
            head: PendingNotification {
                application: word(row, "application")?,
                target: word(row, "target")?,
                message: json(row, "message")?,
                attempts: small(row, "attempts")?,
                created_at: instant(row, "created_at")?,
                next_attempt_at: instant(row, "next_attempt_at")?,
            },
        })
    };
    named("notifications", &["seq", "id"], row, columns())
}

impl Store {
    /// The line of each target for which messages wait. Those whose head cannot be read are told
    /// apart.
    pub async fn notification_lines(&self) -> Result<(Vec<NotificationLine>, Vec<String>)> {
        let rows = sqlx::query(
            "SELECT n.*, l.pending, l.untried FROM (SELECT MIN(seq) AS head, COUNT(*) AS pending, \
             SUM(CASE WHEN attempts = 0 THEN 1 ELSE 0 END) AS untried FROM notifications WHERE \
             status = 'PENDING' GROUP BY application, target) AS l JOIN notifications AS n ON \
             n.seq = l.head ORDER BY n.seq",
        )
        .fetch_all(&self.read)
        .await?;
        readable(&rows, |row| read(row))
    }

    /// How many messages were sent to a target since then.
    pub async fn sent_lately(
        &self,
        application: &ApplicationName,
        target: &TargetName,
        since: Timestamp,
    ) -> Result<SentLately> {
        let row = sqlx::query(
            "SELECT COUNT(*) AS count, MIN(ended_at) AS first FROM notifications WHERE status = \
             'SENT' AND application = $1 AND target = $2 AND ended_at > $3",
        )
        .bind(application.to_string())
        .bind(target.to_string())
        .bind(since.as_millis())
        .fetch_one(&self.read)
        .await?;
        let first: Option<i64> = get(&row, "first")?;
        Ok(SentLately { count: count(&row, "count")?, first: first.map(Timestamp::from_millis) })
    }

    /// A message was sent, or is given up (`why`).
    pub async fn end_notification(
        &self,
        id: NotificationId,
        status: NotificationStatus,
        why: Option<&str>,
        at: Timestamp,
    ) -> Result<()> {
        self.change(async |to| {
            sqlx::query(
                "UPDATE notifications SET status = $2, attempts = attempts + $3, error = \
                 COALESCE($4, error), ended_at = $5 WHERE id = $1 AND status = 'PENDING'",
            )
            .bind(id.to_string())
            .bind(status.as_str())
            .bind(i64::from(why.is_some()))
            .bind(why)
            .bind(at.as_millis())
            .execute(to)
            .await?;
            Ok(())
        })
        .await
    }

    /// Sending a message failed; it is tried again then.
    pub async fn put_off_notification(
        &self,
        id: NotificationId,
        why: &str,
        next_attempt_at: Timestamp,
    ) -> Result<()> {
        self.change(async |to| {
            sqlx::query(
                "UPDATE notifications SET attempts = attempts + 1, error = $2, next_attempt_at = \
                 $3 WHERE id = $1 AND status = 'PENDING'",
            )
            .bind(id.to_string())
            .bind(why)
            .bind(next_attempt_at.as_millis())
            .execute(to)
            .await?;
            Ok(())
        })
        .await
    }

    /// Makes one message of all that wait for a target and that nobody has tried to send; nothing
    /// of less than two.
    pub async fn digest_notifications(
        &self,
        application: &ApplicationName,
        target: &TargetName,
        at: Timestamp,
    ) -> Result<()> {
        self.change(async |to| {
            let Some(digest) = digest(to, application, target, at).await? else { return Ok(()) };
            sqlx::query(
                "UPDATE notifications SET status = 'DIGESTED', digest = $3, ended_at = $4 WHERE \
                 status = 'PENDING' AND application = $1 AND target = $2 AND attempts = 0",
            )
            .bind(application.to_string())
            .bind(target.to_string())
            .bind(digest.data.id.to_string())
            .bind(at.as_millis())
            .execute(&mut *to)
            .await?;
            super::insert(to, &[NewNotification { target: target.clone(), message: digest }]).await
        })
        .await
    }

    /// Removes messages that ended before then, at most `limit`; how many went. The newest stays,
    /// as the next one's number follows from it.
    pub async fn remove_notifications(&self, before: Timestamp, limit: u32) -> Result<u64> {
        self.change(async |to| {
            let done = sqlx::query(
                "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications WHERE \
                 ended_at < $1 AND seq < (SELECT MAX(seq) FROM notifications) LIMIT $2)",
            )
            .bind(before.as_millis())
            .bind(i64::from(limit))
            .execute(to)
            .await?;
            Ok(done.rows_affected())
        })
        .await
    }
}

/// What says how many of what kind wait, and what some of them say: questions first, then the
/// oldest.
async fn digest(
    to: &mut Connection,
    application: &ApplicationName,
    target: &TargetName,
    at: Timestamp,
) -> Result<Option<NotificationMessage>> {
    let rows = sqlx::query(
        "SELECT kind, COUNT(*) AS count, MAX(seq) AS last FROM notifications WHERE status = \
         'PENDING' AND application = $1 AND target = $2 AND attempts = 0 GROUP BY kind",
    )
    .bind(application.to_string())
    .bind(target.to_string())
    .fetch_all(&mut *to)
    .await?;
    let mut counts: BTreeMap<NotificationKind, u64> = BTreeMap::new();
    let (mut all, mut last) = (0, 0);
    for row in &rows {
        let here = count(row, "count")?;
        counts.insert(word(row, "kind")?, here);
        (all, last) = (all + here, last.max(get::<i64>(row, "last")?));
    }
    if all < 2 {
        return Ok(None);
    }
    let mut lines = Vec::new();
    if counts.remove(&NotificationKind::Digest).is_some() {
        // One that was not sent goes into this one.
        for earlier in some(to, application, target, "kind = 'DIGEST'").await? {
            for (kind, more) in earlier.data.counts {
                *counts.entry(kind).or_default() += more;
            }
            lines.extend(earlier.data.lines);
        }
    }
    for which in ["kind = 'APPROVAL_ASKED'", "kind NOT IN ('APPROVAL_ASKED', 'DIGEST')"] {
        let messages = some(to, application, target, which).await?;
        lines.extend(messages.iter().map(|message| line(&message.data)));
    }
    lines.truncate(DIGEST_LINES);
    let told: u64 = counts.values().sum();
    let id = [application.as_str().as_bytes(), target.as_str().as_bytes(), &last.to_le_bytes()];
    let millis = at.as_millis().to_le_bytes();
    Ok(Some(NotificationMessage {
        kind: NotificationKind::Digest,
        timestamp: at,
        data: NotificationData {
            text: format!("{application}: {told} messages in a short time"),
            why: counted(&counts),
            counts,
            lines,
            ..NotificationData::of(
                NotificationId::derive(&[b"digest", id[0], id[1], id[2], &millis]),
                application.clone(),
            )
        },
    }))
}

/// A message of a digest on one line.
fn line(data: &NotificationData) -> String {
    match &data.plan {
        Some(plan) => format!("{}: {plan}", data.text),
        None => data.text.clone(),
    }
}

/// `3 FAILED, 1 APPROVAL_ASKED`.
fn counted(counts: &BTreeMap<NotificationKind, u64>) -> String {
    let each: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    each.join(", ")
}

/// The oldest untried messages of a line that are so, as many as a digest shows.
async fn some(
    to: &mut Connection,
    application: &ApplicationName,
    target: &TargetName,
    which: &'static str,
) -> Result<Vec<NotificationMessage>> {
    let query = format!(
        "SELECT seq, message FROM notifications WHERE status = 'PENDING' AND application = $1 AND \
         target = $2 AND attempts = 0 AND {which} ORDER BY seq LIMIT {DIGEST_LINES}"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(application.to_string())
        .bind(target.to_string())
        .fetch_all(to)
        .await?;
    Ok(readable(&rows, |row| named("notifications", &["seq"], row, json(row, "message")))?.0)
}
