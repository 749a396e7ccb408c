//! The list of messages, for people, and how many there are.

use std::collections::BTreeMap;

use schema::api::{Notification, NotificationMessage, Page};
use schema::id::{ApplicationName, NotificationId, TargetName};
use schema::notification::NotificationStatus;
use sqlx::QueryBuilder;

use super::super::row::{
    count, get, instant, instant_or_null, json, named, small, word, word_or_null,
};
use super::super::{Db, PageRequest, Result, Row, Store};

/// Which messages are wanted; `None` means any.
#[derive(Debug, Clone, Default)]
pub struct NotificationFilter {
    /// Of this application.
    pub application: Option<ApplicationName>,
    /// For this target.
    pub target: Option<TargetName>,
    /// In this status.
    pub status: Option<NotificationStatus>,
}

fn narrow(query: &mut QueryBuilder<Db>, filter: &NotificationFilter) {
    query.push(" WHERE 1 = 1");
    if let Some(application) = &filter.application {
        query.push(" AND application = ").push_bind(application.to_string());
    }
    if let Some(target) = &filter.target {
        query.push(" AND target = ").push_bind(target.to_string());
    }
    if let Some(status) = filter.status {
        query.push(" AND status = ").push_bind(status.as_str());
    }
}

fn read(row: &Row) -> Result<Notification> {
    let columns = || {
        let message: NotificationMessage = json(row, "message")?;
        let status: NotificationStatus = word(row, "status")?;
        let is_pending = status == NotificationStatus::Pending;
        Ok(Notification {
            id: word(row, "id")?,
            kind: word(row, "kind")?,
            status,
            application: word(row, "application")?,
            target: word(row, "target")?,
            service: word_or_null(row, "service")?,
            channel: word_or_null(row, "channel")?,
            text: message.data.text,
            why: message.data.why,
            attempts: small(row, "attempts")?,
            error: get(row, "error")?,
            digest: word_or_null(row, "digest")?,
            created_at: instant(row, "created_at")?,
            next_attempt_at: is_pending.then(|| instant(row, "next_attempt_at")).transpose()?,
            ended_at: instant_or_null(row, "ended_at")?,
        })
    };
    named("notifications", &["seq", "id"], row, columns())
}

impl Store {
    /// Messages, newest first; counted up to [`COUNT_LIMIT`](super::super::COUNT_LIMIT).
    pub async fn notifications(
        &self,
        filter: &NotificationFilter,
        page: &PageRequest,
    ) -> Result<Page<Notification>> {
        self.newest_first("notifications", page, |query| narrow(query, filter), read).await
    }

    /// One message.
    pub async fn notification(&self, id: NotificationId) -> Result<Option<Notification>> {
        let row = sqlx::query("SELECT * FROM notifications WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(read).transpose()
    }

    /// How many messages are kept in each status, by the name of the metric.
    #[expect(
        clippy::cast_precision_loss,
        reason = "Prometheus counts in floating point; beyond 2^53 nobody reads the last digit"
    )]
    pub async fn notification_metrics(&self) -> Result<BTreeMap<String, f64>> {
        let name = |status: &str| format!("pvn_notifications{{status=\"{status}\"}}");
        let mut numbers: BTreeMap<String, f64> =
            NotificationStatus::ALL.iter().map(|status| (name(status.as_str()), 0.0)).collect();
        let rows =
            sqlx::query("SELECT status, COUNT(*) AS count FROM notifications GROUP BY status")
                .fetch_all(&self.lists)
                .await?;
        for row in &rows {
            // What no program of ours wrote is told by the list.
            if let Ok(status) = word::<NotificationStatus>(row, "status") {
                numbers.insert(name(status.as_str()), count(row, "count")? as f64);
            }
        }
        Ok(numbers)
    }
}
