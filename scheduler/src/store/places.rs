//! Who has the places of a runtime, and who waits for one.

use schema::api::InstanceSummary;
use schema::id::{ApplicationName, ChannelName, JobId, RuntimeName, ServiceName};
use schema::status::{JobKind, Reason};
use schema::time::Timestamp;

use super::row::{instant, instant_or_null, named, readable, word};
use super::standing::{STANDING, shown};
use super::{Result, Row, Store};

/// A job that has a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceHolder {
    pub job: JobId,
    pub kind: JobKind,
    pub application: ApplicationName,
    pub service: ServiceName,
    pub channel: ChannelName,
    /// Since when it runs, or was decided.
    pub since: Timestamp,
}

fn holder(row: &Row) -> Result<PlaceHolder> {
    let columns = || {
        Ok(PlaceHolder {
            job: word(row, "id")?,
            kind: word(row, "kind")?,
            application: word(row, "application")?,
            service: word(row, "service")?,
            channel: word(row, "channel")?,
            since: instant_or_null(row, "started_at")?.unwrap_or(instant(row, "created_at")?),
        })
    };
    named("jobs", &["id"], row, columns())
}

impl Store {
    /// The jobs of a runtime that are under way, those that began first before, at most `limit`.
    pub async fn place_holders(
        &self,
        runtime: &RuntimeName,
        limit: u32,
    ) -> Result<Vec<PlaceHolder>> {
        let rows = sqlx::query(
            "SELECT j.id, j.kind, j.created_at, j.started_at, a.name AS application, s.name AS \
             service, c.name AS channel FROM jobs AS j JOIN services AS s ON s.id = j.service_id \
             JOIN applications AS a ON a.id = s.application_id JOIN channels AS c ON c.id = \
             j.channel_id WHERE j.ended_at IS NULL AND j.runtime = $1 ORDER BY j.seq LIMIT $2",
        )
        .bind(runtime.as_str())
        .bind(i64::from(limit))
        .fetch_all(&self.lists)
        .await?;
        Ok(readable(rows, holder)?.0)
    }

    /// The instances that wait for a place of a runtime, those that wait longest before, at most
    /// `limit`.
    pub async fn place_waiters(
        &self,
        runtime: &RuntimeName,
        limit: u32,
    ) -> Result<Vec<InstanceSummary>> {
        let mut query = sqlx::QueryBuilder::<super::Db>::new(STANDING);
        query.push(" AND i.runtime = ").push_bind(runtime.to_string());
        query.push(" AND i.reason = ").push_bind(Reason::ConcurrencyLimitExceeded.as_str());
        query.push(" ORDER BY i.since, i.id LIMIT ").push_bind(i64::from(limit));
        let rows = query.build().fetch_all(&self.lists).await?;
        Ok(readable(rows, shown)?.0)
    }
}
