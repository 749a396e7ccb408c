//! Writes the rows of instances.

use schema::status::Reason;
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::super::row::pieces;
use super::super::{Connection, Db, Result, StoreError};
use super::InstanceRow;

pub(in crate::store) async fn put(
    connection: &mut Connection,
    instances: &[InstanceRow],
) -> Result<()> {
    for piece in pieces(instances) {
        let done = QueryBuilder::<Db>::new(
            "INSERT INTO instances (id, service_id, channel_id, runtime, state, revision, \
             release_id, desired_version, status, reason, message, since, next_wake) ",
        )
        .push_values(piece, |mut row, instance| {
            row.push_bind(instance.id.to_string())
                .push_bind(instance.service.to_string())
                .push_bind(instance.channel.to_string())
                .push_bind(instance.runtime.to_string())
                .push_bind(instance.state.clone())
                .push_bind(instance.revision)
                .push_bind(instance.release.map(|id| id.to_string()))
                .push_bind(instance.desired_version.clone())
                .push_bind(instance.status.as_str())
                .push_bind(instance.reason.map(Reason::as_str))
                .push_bind(instance.message.clone())
                .push_bind(instance.since.as_millis())
                .push_bind(instance.next_wake.map(Timestamp::as_millis));
        })
        .push(
            " ON CONFLICT (id) DO UPDATE SET runtime = excluded.runtime, state = excluded.state, \
             revision = excluded.revision, release_id = excluded.release_id, desired_version = \
             excluded.desired_version, status = excluded.status, reason = excluded.reason, \
             message = excluded.message, since = excluded.since, next_wake = excluded.next_wake \
             WHERE instances.revision = excluded.revision - 1",
        )
        .build()
        .execute(&mut *connection)
        .await?;
        let written = done.rows_affected();
        if written != piece.len() as u64 {
            let names: Vec<_> = piece
                .iter()
                .map(|instance| format!("{} at {}", instance.id, instance.revision - 1))
                .collect();
            return Err(StoreError::Conflict(format!(
                "{written} of {} instances are at the revision that they were changed from ({}): \
                 another program writes this database",
                piece.len(),
                names.join(", ")
            )));
        }
    }
    Ok(())
}
