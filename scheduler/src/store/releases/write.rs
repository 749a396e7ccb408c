//! Rows of releases, written: whole ones, and how they stand in their channels.

use schema::id::{BlobId, ChannelId, ReleaseId};
use schema::status::Status;
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::super::row::{pieces, to_json};
use super::super::{Connection, Db, Result};
use super::{ReleaseChannelRow, ReleaseRow};
use crate::compile::Commands;

pub(in crate::store) async fn insert(
    connection: &mut Connection,
    releases: &[&ReleaseRow],
) -> Result<()> {
    for piece in pieces(releases) {
        QueryBuilder::<Db>::new(
            "INSERT INTO releases (id, service_id, seq, number, version, params, created_at, \
             created_by, rolled_back_to, service_version) ",
        )
        .push_values(piece, |mut row, release| {
            row.push_bind(release.id.to_string())
                .push_bind(release.service.to_string())
                .push_bind(release.seq)
                .push_bind(release.number.cast_signed())
                .push_bind(release.version.clone())
                .push_bind(to_json(&release.params))
                .push_bind(release.created_at.as_millis())
                .push_bind(release.created_by.clone())
                .push_bind(release.rolled_back_to.map(|id| id.to_string()))
                .push_bind(release.service_version.cast_signed());
        })
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn put_channels(
    connection: &mut Connection,
    rows: &[ReleaseChannelRow],
) -> Result<()> {
    for piece in pieces(rows) {
        QueryBuilder::<Db>::new(
            "INSERT INTO release_channels (release_id, channel_id, status, compiled, desired, \
             converged_at) ",
        )
        .push_values(piece, |mut row, channel| {
            row.push_bind(channel.release.to_string())
                .push_bind(channel.channel.to_string())
                .push_bind(channel.status.as_str())
                .push_bind(channel.compiled.to_string())
                .push_bind(to_json(&channel.desired))
                .push_bind(channel.converged_at.map(Timestamp::as_millis));
        })
        .push(
            " ON CONFLICT (release_id, channel_id) DO UPDATE SET compiled = excluded.compiled, \
             desired = excluded.desired",
        )
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn put_compiled(
    connection: &mut Connection,
    compiled: &[(BlobId, &Commands)],
) -> Result<()> {
    for piece in pieces(compiled) {
        QueryBuilder::<Db>::new("INSERT INTO compiled (digest, body) ")
            .push_values(piece, |mut row, (digest, commands)| {
                row.push_bind(digest.to_string()).push_bind(to_json(commands));
            })
            .push(" ON CONFLICT (digest) DO NOTHING")
            .build()
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// How a release stands in a channel from now on.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct StatusChange {
    release: ReleaseId,
    channel: ChannelId,
    status: Status,
    /// When it was first converged, if it was.
    converged_at: Option<Timestamp>,
}

impl StatusChange {
    pub(in crate::store) fn new(
        release: ReleaseId,
        channel: ChannelId,
        status: Status,
        at: Timestamp,
    ) -> Self {
        Self { release, channel, status, converged_at: (status == Status::Converged).then_some(at) }
    }

    /// This one and a later one in one.
    pub(in crate::store) fn then(&self, later: Self) -> Self {
        Self { converged_at: self.converged_at.or(later.converged_at), ..later }
    }
}

/// Writes whether somebody rejected a release in a channel.
pub(in crate::store) async fn set_refused(
    connection: &mut Connection,
    release: ReleaseId,
    channel: ChannelId,
    refused: bool,
) -> Result<()> {
    sqlx::query(
        "UPDATE release_channels SET refused = $1 WHERE release_id = $2 AND channel_id = $3",
    )
    .bind(i64::from(refused))
    .bind(release.to_string())
    .bind(channel.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes how instances stand into their releases; `converged_at` keeps the first instant.
pub(in crate::store) async fn set_statuses(
    connection: &mut Connection,
    changes: &[StatusChange],
) -> Result<()> {
    for piece in pieces(changes) {
        QueryBuilder::<Db>::new("WITH changes (release_id, channel_id, status, converged_at) AS (")
            .push_values(piece, |mut row, change| {
                row.push_bind(change.release.to_string())
                    .push_bind(change.channel.to_string())
                    .push_bind(change.status.as_str())
                    .push_bind(change.converged_at.map(Timestamp::as_millis));
            })
            .push(
                ") UPDATE release_channels SET status = changes.status, converged_at = \
                 COALESCE(release_channels.converged_at, changes.converged_at) FROM changes WHERE \
                 release_channels.release_id = changes.release_id AND release_channels.channel_id \
                 = changes.channel_id",
            )
            .build()
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
