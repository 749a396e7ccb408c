//! Writes the rows of runtimes, applications, channels and services.

use schema::id::RuntimeName;
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::super::row::{pieces, to_json};
use super::super::{Connection, Db, Result};
use super::{ApplicationRow, ChannelRow, RuntimeRow, ServiceRow};

pub(in crate::store) async fn put_runtimes(
    connection: &mut Connection,
    runtimes: &[&RuntimeRow],
) -> Result<()> {
    for piece in pieces(runtimes) {
        QueryBuilder::<Db>::new(
            "INSERT INTO runtimes (id, name, kind, summary, config_version, created_at) ",
        )
        .push_values(piece, |mut row, runtime| {
            row.push_bind(runtime.id.to_string())
                .push_bind(runtime.name.to_string())
                .push_bind(runtime.kind.clone())
                .push_bind(to_json(&runtime.summary))
                .push_bind(runtime.config_version.cast_signed())
                .push_bind(runtime.created_at.as_millis());
        })
        .push(
            " ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, summary = excluded.summary, \
             config_version = excluded.config_version",
        )
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn put_applications(
    connection: &mut Connection,
    applications: &[&ApplicationRow],
) -> Result<()> {
    for piece in pieces(applications) {
        QueryBuilder::<Db>::new(
            "INSERT INTO applications (id, name, config_version, created_at, deleted_at) ",
        )
        .push_values(piece, |mut row, application| {
            row.push_bind(application.id.to_string())
                .push_bind(application.name.to_string())
                .push_bind(application.config_version.cast_signed())
                .push_bind(application.created_at.as_millis())
                .push_bind(application.deleted_at.map(Timestamp::as_millis));
        })
        .push(
            " ON CONFLICT (id) DO UPDATE SET config_version = excluded.config_version, deleted_at \
             = excluded.deleted_at",
        )
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn put_channels(
    connection: &mut Connection,
    channels: &[&ChannelRow],
) -> Result<()> {
    for piece in pieces(channels) {
        QueryBuilder::<Db>::new(
            "INSERT INTO channels (id, application_id, name, position, summary, deleted_at) ",
        )
        .push_values(piece, |mut row, channel| {
            row.push_bind(channel.id.to_string())
                .push_bind(channel.application.to_string())
                .push_bind(channel.name.to_string())
                .push_bind(i64::from(channel.position))
                .push_bind(to_json(&channel.summary))
                .push_bind(channel.deleted_at.map(Timestamp::as_millis));
        })
        .push(
            " ON CONFLICT (id) DO UPDATE SET position = excluded.position, summary = \
             excluded.summary, deleted_at = excluded.deleted_at",
        )
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn put_services(
    connection: &mut Connection,
    services: &[&ServiceRow],
) -> Result<()> {
    for piece in pieces(services) {
        QueryBuilder::<Db>::new(
            "INSERT INTO services (id, application_id, name, config_version, release_count, \
             created_at, deleted_at) ",
        )
        .push_values(piece, |mut row, service| {
            row.push_bind(service.id.to_string())
                .push_bind(service.application.to_string())
                .push_bind(service.name.to_string())
                .push_bind(service.config_version.cast_signed())
                .push_bind(service.release_count.cast_signed())
                .push_bind(service.created_at.as_millis())
                .push_bind(service.deleted_at.map(Timestamp::as_millis));
        })
        .push(
            " ON CONFLICT (id) DO UPDATE SET config_version = excluded.config_version, \
             release_count = excluded.release_count, deleted_at = excluded.deleted_at",
        )
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Takes a runtime out; what ran on it keeps its name.
pub(in crate::store) async fn delete_runtime(
    connection: &mut Connection,
    name: &RuntimeName,
) -> Result<()> {
    sqlx::query("DELETE FROM runtimes WHERE name = $1")
        .bind(name.as_str())
        .execute(connection)
        .await?;
    Ok(())
}
