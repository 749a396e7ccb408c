//! Service instances over all services by how they stand, for whoever looks at all of them.

use std::collections::BTreeMap;

use schema::api::InstanceSummary;
use schema::id::{ApplicationId, ServiceId};
use schema::status::Status;
use sqlx::QueryBuilder;

use super::row::{count, get, instant, named, readable, word, word_or_null};
use super::{Db, Result, Row, Store};

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandingOrder {
    /// Those that stand so longest.
    LongestFirst,
    /// Those that came to it last.
    NewestFirst,
}

/// Instances that a config has; more conditions can be added.
pub(super) const STANDING: &str = "SELECT i.id, a.name AS application, s.name AS service, \
     c.name AS channel, i.status, i.reason, i.message, i.desired_version, i.since FROM instances \
     AS i JOIN services AS s ON s.id = i.service_id JOIN applications AS a ON a.id = \
     s.application_id JOIN channels AS c ON c.id = i.channel_id WHERE c.deleted_at IS NULL \
     AND s.deleted_at IS NULL";

pub(super) fn shown(row: &Row) -> Result<InstanceSummary> {
    let columns = || {
        Ok(InstanceSummary {
            application: word(row, "application")?,
            service: word(row, "service")?,
            channel: word(row, "channel")?,
            status: word(row, "status")?,
            reason: word_or_null(row, "reason")?,
            message: get(row, "message")?,
            desired_version: get(row, "desired_version")?,
            since: instant(row, "since")?,
        })
    };
    named("instances", &["id"], row, columns())
}

impl Store {
    /// How many instances stand in each status, of one application or of all; those that a config
    /// took away are no more.
    pub async fn status_counts(
        &self,
        application: Option<ApplicationId>,
    ) -> Result<BTreeMap<Status, u64>> {
        self.status_counts_in(application, None).await
    }

    /// The same of one service alone.
    pub async fn status_counts_in(
        &self,
        application: Option<ApplicationId>,
        service: Option<ServiceId>,
    ) -> Result<BTreeMap<Status, u64>> {
        let mut query = QueryBuilder::<Db>::new(
            "SELECT status, COUNT(*) AS count FROM instances WHERE status <> ",
        );
        query.push_bind(Status::Deleted.as_str());
        if let Some(application) = application {
            query
                .push(" AND service_id IN (SELECT id FROM services WHERE application_id = ")
                .push_bind(application.to_string())
                .push(")");
        }
        if let Some(service) = service {
            query.push(" AND service_id = ").push_bind(service.to_string());
        }
        query.push(" GROUP BY status");
        let rows = query.build().fetch_all(&self.lists).await?;
        let mut counts = BTreeMap::new();
        for row in &rows {
            // A status that is none stands still, as everywhere.
            let status = word(row, "status").unwrap_or(Status::Broken);
            *counts.entry(status).or_default() += count(row, "count")?;
        }
        Ok(counts)
    }

    /// How many instances stand so.
    pub async fn count_in(&self, status: Status) -> Result<u64> {
        let row = sqlx::query("SELECT COUNT(*) AS count FROM instances WHERE status = $1")
            .bind(status.as_str())
            .fetch_one(&self.lists)
            .await?;
        count(&row, "count")
    }

    /// Instances in any of these statuses, at most `limit`; those whose rows cannot be read are
    /// left out, and told where they are looked at.
    pub async fn standing(
        &self,
        statuses: &[Status],
        order: StandingOrder,
        limit: u32,
    ) -> Result<Vec<InstanceSummary>> {
        let mut query = QueryBuilder::<Db>::new(STANDING);
        query.push(" AND i.status IN (");
        let mut list = query.separated(", ");
        for status in statuses {
            list.push_bind(status.as_str());
        }
        query.push(match order {
            StandingOrder::LongestFirst => ") ORDER BY i.since, i.id LIMIT ",
            StandingOrder::NewestFirst => ") ORDER BY i.since DESC, i.id LIMIT ",
        });
        let rows = query.push_bind(i64::from(limit)).build().fetch_all(&self.lists).await?;
        Ok(readable(rows, shown)?.0)
    }
}
