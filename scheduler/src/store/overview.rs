//! How everything stands at a glance, from a few small queries: `status` is asked for once a second
//! by whoever watches.

use schema::api::{Instance, OverviewInstance, OverviewJob};
use schema::id::{ApplicationId, InstanceId, ServiceId};
use schema::status::{ApprovalStatus, JobKind, Status};
use sqlx::QueryBuilder;

use super::instances::{shown_or_broken, unreadable_name};
use super::row::{instant, instant_or_null, small, word};
use super::{Db, Result, Row, Store};

/// What wants to be seen, first what a person can end. CONVERGED instances come only where all have
/// room.
const WANTED: [Status; 6] = [
    Status::WaitingManualApproval,
    Status::Broken,
    Status::Failed,
    Status::Converging,
    Status::WaitingPreconditions,
    Status::Paused,
];

/// Jobs of an instance from whose lengths the usual one is taken: enough that one slow run does not
/// matter.
const LENGTHS: i64 = 5;

impl Store {
    /// The instances that want to be seen, at most `limit`, and the others too where `all`.
    pub async fn at_a_glance(
        &self,
        application: Option<ApplicationId>,
        service: Option<ServiceId>,
        all: bool,
        limit: usize,
    ) -> Result<Vec<OverviewInstance>> {
        let mut found = Vec::new();
        let rest = [Status::Converged, Status::Replaced, Status::Deleted];
        let statuses = WANTED.iter().chain(rest.iter().filter(|_| all));
        for status in statuses {
            let left = limit.saturating_sub(found.len());
            if left == 0 {
                break;
            }
            let mut query = QueryBuilder::<Db>::new(
                "SELECT i.id, i.service_id, i.channel_id, c.name AS channel, i.runtime, i.state, \
                 i.revision, i.status, i.message, i.since, i.desired_version, i.release_id, \
                 s.name AS service, a.name AS application",
            );
            push_from(&mut query, application);
            if let Some(service) = service {
                query.push(" AND s.id = ").push_bind(service.to_string());
            }
            query.push(" AND i.status = ").push_bind(status.as_str());
            query.push(" ORDER BY a.name, s.name, c.position, c.name LIMIT ");
            query.push_bind(i64::try_from(left).unwrap_or(i64::MAX));
            let rows = query.build().fetch_all(&self.lists).await?;
            for row in &rows {
                found.push(self.glance(row).await?);
            }
        }
        Ok(found)
    }

    async fn glance(&self, row: &Row) -> Result<OverviewInstance> {
        let Instance {
            channel,
            status,
            reason,
            message,
            desired_version,
            since,
            next_action_at,
            observed,
            approvals,
            ..
        } = shown_or_broken(row);
        let approvals = approvals
            .into_iter()
            .filter(|approval| approval.status == ApprovalStatus::Pending)
            .map(|approval| schema::api::Approval { explanation: None, ..approval })
            .collect();
        let instance = word(row, "id").unwrap_or(InstanceId::from_bytes([0; 16]));
        Ok(OverviewInstance {
            application: word(row, "application").unwrap_or_else(|_| unreadable_name()),
            service: word(row, "service").unwrap_or_else(|_| unreadable_name()),
            channel,
            status,
            reason,
            message,
            desired_version,
            since,
            next_action_at,
            observed,
            approvals,
            job: self.under_way(instance).await?,
        })
    }

    /// The newest fetch or apply of an instance that has not ended.
    async fn under_way(&self, instance: InstanceId) -> Result<Option<OverviewJob>> {
        let row = sqlx::query(
            "SELECT id, kind, status, attempt, started_at FROM jobs WHERE instance_id = $1 AND \
             ended_at IS NULL AND kind <> $2 ORDER BY seq DESC LIMIT 1",
        )
        .bind(instance.to_string())
        .bind(JobKind::GetInfo.as_str())
        .fetch_optional(&self.lists)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let kind: JobKind = word(&row, "kind")?;
        Ok(Some(OverviewJob {
            id: word(&row, "id")?,
            kind,
            status: word(&row, "status")?,
            attempt: small(&row, "attempt")?,
            started_at: instant_or_null(&row, "started_at")?,
            usual_ms: self.usual_ms(instance, kind).await?,
            last_line: None,
        }))
    }

    /// How long jobs of this kind take there, milliseconds.
    async fn usual_ms(&self, instance: InstanceId, kind: JobKind) -> Result<Option<u64>> {
        let rows = sqlx::query(
            "SELECT started_at, ended_at FROM jobs WHERE instance_id = $1 AND kind = $2 AND \
             status = 'SUCCEEDED' AND started_at IS NOT NULL ORDER BY seq DESC LIMIT $3",
        )
        .bind(instance.to_string())
        .bind(kind.as_str())
        .bind(LENGTHS)
        .fetch_all(&self.lists)
        .await?;
        let length = |row: &Row| -> Result<u64> {
            let ended = instant(row, "ended_at")?;
            Ok(u64::try_from(ended.since_ms(instant(row, "started_at")?)).unwrap_or(0))
        };
        let mut lengths: Vec<u64> = rows.iter().filter_map(|row| length(row).ok()).collect();
        lengths.sort_unstable();
        Ok(lengths.get(lengths.len() / 2).copied())
    }
}

/// Instances with their names, of one application or of all, without those whose channel
/// or service is gone.
fn push_from(query: &mut QueryBuilder<Db>, application: Option<ApplicationId>) {
    query.push(
        " FROM instances AS i LEFT JOIN channels AS c ON c.id = i.channel_id LEFT JOIN services \
         AS s ON s.id = i.service_id LEFT JOIN applications AS a ON a.id = s.application_id WHERE \
         c.deleted_at IS NULL AND s.deleted_at IS NULL",
    );
    if let Some(application) = application {
        query.push(" AND s.application_id = ").push_bind(application.to_string());
    }
}
