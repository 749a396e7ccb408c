//! Service instances: the engine's state, and beside it what lists show and filter by.

use std::collections::BTreeMap;

use engine::desired::Desired;
use engine::state::State;
use futures::TryStreamExt;
use schema::api::{ChannelStatus, Page, Service, ServiceSummary};
use schema::id::{
    ApplicationId, ApplicationName, ChannelId, ChannelName, InstanceId, ReleaseId, RuntimeName,
    ServiceId, ServiceName,
};
use schema::status::{Reason, Status};
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::row::{get, json, named, readable, word, word_or_null};
use super::{Db, PageRequest, Result, Row, Store, Unreadable};

mod list;
mod read;
mod write;

pub(super) use write::put;

pub use list::{ServiceFilter, ServiceOrder};
use list::{cursor_of, narrow, ordered};
pub use read::shown;
pub(super) use read::shown_or_broken;
pub(super) use read::unreadable_name;
use read::{read_loaded, read_revision, tell_where_answers_count};

/// An instance as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceRow {
    pub id: InstanceId,
    pub service: ServiceId,
    pub channel: ChannelId,
    /// The runtime that serves it.
    pub runtime: RuntimeName,
    /// JSON of [`State`].
    pub state: String,
    /// Commits so far, this one included; the row must be at one less, or absent.
    pub revision: i64,
    /// The release that it pursues.
    pub release: Option<ReleaseId>,
    pub desired_version: Option<String>,
    /// How it stands.
    pub status: Status,
    /// Why.
    pub reason: Option<Reason>,
    /// In a sentence.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// When it is due.
    pub next_wake: Option<Timestamp>,
}

/// An instance as it is read at start, with everything that has to be known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedInstance {
    pub application: (ApplicationId, ApplicationName),
    pub service: (ServiceId, ServiceName),
    pub channel: (ChannelId, ChannelName),
    /// The runtime that serves it.
    pub runtime: RuntimeName,
    /// The engine's state, or why it cannot be read.
    pub state: std::result::Result<State, String>,
    /// The state as it is stored, where it cannot be read.
    pub stored: String,
    /// Commits so far.
    pub revision: i64,
    /// Whether the row says that the instance stands still.
    pub is_broken: bool,
    /// Whether its channel, its service or its application is gone.
    pub gone: bool,
    /// What of its row, beside the state, cannot be read.
    pub damage: Option<RowDamage>,
}

/// What keeps an instance from going on although its state may be sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowDamage {
    /// Where, and what is wrong.
    pub why: String,
    /// Whether only a change of the database by hand mends it: nobody knows what to write.
    pub needs_hand: bool,
}

/// A service that is released in a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    pub id: ServiceId,
    pub service: ServiceName,
    /// How it stands there.
    pub status: Status,
    /// The version that it pursues there.
    pub version: String,
}

/// What tells instances apart.
const KEYS: &[&str] = &["id", "service_id", "channel_id"];

impl Store {
    /// Every instance with its state, for the driver's start, and the rows of which nobody can tell
    /// whose they are. Rows are read one by one, so only states are held.
    pub async fn load_instances(&self) -> Result<(Vec<LoadedInstance>, Vec<Unreadable>)> {
        let mut rows = sqlx::query(
            "SELECT i.id, i.service_id, i.channel_id, i.runtime, i.state, i.revision, i.status, \
             c.deleted_at AS \"channels.deleted_at\", s.deleted_at AS \"services.deleted_at\",
                    a.deleted_at AS \"applications.deleted_at\",
                    c.application_id AS \"channels.application_id\",
                    s.name AS \"services.name\", c.name AS \"channels.name\", a.id AS \
             application_id, a.name AS \"applications.name\"
             FROM instances AS i LEFT JOIN services AS s ON s.id = i.service_id LEFT JOIN channels \
             AS c ON c.id = i.channel_id
             LEFT JOIN applications AS a ON a.id = s.application_id",
        )
        .fetch(&self.read);
        let (mut loaded, mut unreadable) = (Vec::new(), Vec::new());
        while let Some(row) = rows.try_next().await? {
            let tell = |row: &Row, why| Unreadable {
                instance: word(row, "id").ok(),
                job: None,
                action: None,
                why,
            };
            let (one, none) = Unreadable::apart(&[row], read_loaded, tell)?;
            loaded.extend(one);
            unreadable.extend(none);
        }
        Ok((loaded, unreadable))
    }

    /// Services by application and name, with how their channels stand.
    pub async fn services(
        &self,
        filter: &ServiceFilter,
        page: &PageRequest,
    ) -> Result<Page<ServiceSummary>> {
        let mut query = QueryBuilder::<Db>::new("SELECT COUNT(*) FROM services AS s");
        narrow(&mut query, filter);
        let total: i64 = query.build_query_scalar().fetch_one(&self.lists).await?;

        let mut query = QueryBuilder::<Db>::new(
            "SELECT s.id, s.name, a.name AS application, (SELECT version FROM releases AS r WHERE \
             r.service_id = s.id AND r.number = s.release_count) AS version, COALESCE((SELECT \
             MAX(i.since) FROM instances AS i WHERE i.service_id = s.id), 0) AS changed
             FROM services AS s LEFT JOIN applications AS a ON a.id = s.application_id",
        );
        narrow(&mut query, filter);
        ordered(&mut query, filter.order, page)?;
        let rows = query.push(" LIMIT ").push_bind(page.rows()).build();
        let rows = rows.fetch_all(&self.lists).await?;

        let mut channels = self.channel_statuses(&rows).await?;
        let shown = |row: &Row| {
            let columns = || {
                Ok(ServiceSummary {
                    id: word(row, "id")?,
                    name: word(row, "name")?,
                    application: word(row, "application")?,
                    version: get(row, "version")?,
                    channels: Vec::new(),
                })
            };
            let summary: ServiceSummary = named("services", &["id", "name"], row, columns())?;
            Ok(ServiceSummary {
                channels: channels.remove(&summary.id.to_string()).unwrap_or_default(),
                ..summary
            })
        };
        page.page(rows, total, |row| cursor_of(row, filter.order), shown)
    }

    /// How these services stand in their channels, by their ids.
    async fn channel_statuses(
        &self,
        services: &[Row],
    ) -> Result<BTreeMap<String, Vec<ChannelStatus>>> {
        let mut channels: BTreeMap<String, Vec<ChannelStatus>> = BTreeMap::new();
        if services.is_empty() {
            return Ok(channels);
        }
        let mut query = QueryBuilder::<Db>::new(
            "SELECT i.id, i.service_id, i.channel_id, i.revision, i.status, i.desired_version, \
             c.name FROM instances AS i LEFT JOIN channels AS c ON c.id = i.channel_id WHERE \
             i.service_id IN (",
        );
        let mut list = query.separated(", ");
        for row in services {
            list.push_bind(get::<String>(row, "id").unwrap_or_default());
        }
        query.push(") AND c.deleted_at IS NULL ORDER BY c.position, c.name");
        // A page of services has as many rows as they have channels: they are read one by one.
        let mut rows = query.build().fetch(&self.lists);
        while let Some(row) = rows.try_next().await? {
            let id = || Ok(InstanceId::of(word(&row, "service_id")?, word(&row, "channel_id")?));
            let sound: Result<i64> = id().and_then(|id| read_revision(&row, id));
            let status = sound.and_then(|_| word(&row, "status")).unwrap_or(Status::Broken);
            let channel = word(&row, "name").ok();
            let status = ChannelStatus {
                status: if channel.is_some() { status } else { Status::Broken },
                channel: channel.unwrap_or_else(unreadable_name),
                version: get(&row, "desired_version").unwrap_or_default(),
            };
            channels.entry(get(&row, "service_id")?).or_default().push(status);
        }
        Ok(channels)
    }

    /// One service with everything about its channels; application and service by name or id.
    pub async fn service(&self, application: &str, service: &str) -> Result<Option<Service>> {
        let Some(application) = self.find_application(application).await? else { return Ok(None) };
        let Some(service) = self.find_service(application.id, service).await? else {
            return Ok(None);
        };
        let version: Option<String> = sqlx::query_scalar(
            "SELECT version FROM releases WHERE service_id = $1 AND number = $2",
        )
        .bind(service.id.to_string())
        .bind(service.release_count.cast_signed())
        .fetch_optional(&self.read)
        .await?;
        let rows = sqlx::query(
            "SELECT i.id, i.service_id, i.channel_id, c.name AS channel, i.runtime, i.state, \
             i.revision, i.status, i.message, i.since,
                    i.desired_version, i.release_id
             FROM instances AS i LEFT JOIN channels AS c ON c.id = i.channel_id
             WHERE i.service_id = $1 AND c.deleted_at IS NULL ORDER BY c.position, c.name",
        )
        .bind(service.id.to_string())
        .fetch_all(&self.read)
        .await?;
        let mut channels: Vec<_> = rows.iter().map(shown_or_broken).collect();
        tell_where_answers_count(&mut channels, &rows);
        Ok(Some(Service {
            id: service.id,
            name: service.name,
            application: application.name,
            version,
            channels,
        }))
    }

    /// What an instance was last made to be, apart from its state.
    pub async fn desired(&self, instance: InstanceId) -> Result<Option<Box<Desired>>> {
        let row = sqlx::query(
            "SELECT rc.desired FROM instances AS i JOIN release_channels AS rc ON rc.release_id = \
             i.release_id AND rc.channel_id = i.channel_id
             WHERE i.id = $1",
        )
        .bind(instance.to_string())
        .fetch_optional(&self.read)
        .await?;
        Ok(row.as_ref().and_then(|row| json(row, "desired").ok()))
    }

    /// The engine's state of one instance.
    pub async fn state(&self, instance: InstanceId) -> Result<Option<State>> {
        let row = sqlx::query("SELECT state FROM instances WHERE id = $1")
            .bind(instance.to_string())
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(|row| json(row, "state")).transpose()
    }

    /// Services with instances that a runtime serves and that are wanted, as (application,
    /// service).
    pub async fn services_on(
        &self,
        runtime: &RuntimeName,
    ) -> Result<Vec<(ApplicationName, ServiceName)>> {
        let rows = sqlx::query(
            "SELECT DISTINCT a.name AS application, s.name AS service FROM instances AS i JOIN \
             services AS s ON s.id = i.service_id
             JOIN applications AS a ON a.id = s.application_id WHERE i.runtime = $1 AND \
             i.status <> $2 ORDER BY a.name, s.name",
        )
        .bind(runtime.as_str())
        .bind(Status::Deleted.as_str())
        .fetch_all(&self.read)
        .await?;
        Ok(readable(rows, |row| Ok((word(row, "application")?, word(row, "service")?)))?.0)
    }

    /// The services that are released in a channel and wanted there, by name.
    pub async fn released_in(&self, channel: ChannelId) -> Result<Vec<Released>> {
        let rows = sqlx::query(
            "SELECT s.id, s.name, i.status, i.desired_version FROM instances AS i JOIN services \
             AS s ON s.id = i.service_id
             WHERE i.channel_id = $1 AND i.desired_version IS NOT NULL AND i.status <> $2 ORDER BY \
             s.name",
        )
        .bind(channel.to_string())
        .bind(Status::Deleted.as_str())
        .fetch_all(&self.read)
        .await?;
        let released = |row: &Row| {
            let status = word(row, "status").unwrap_or(Status::Broken);
            Ok(Released {
                id: word(row, "id")?,
                service: word(row, "name")?,
                status,
                version: get(row, "desired_version")?,
            })
        };
        Ok(readable(rows, released)?.0)
    }

    /// The release that each instance of a service pursues now.
    pub async fn pursued(&self, service: ServiceId) -> Result<Vec<(ChannelId, ReleaseId)>> {
        let rows = sqlx::query(
            "SELECT channel_id, release_id FROM instances WHERE service_id = $1 AND release_id IS \
             NOT NULL",
        )
        .bind(service.to_string())
        .fetch_all(&self.read)
        .await?;
        let pursued =
            rows.iter().map(|row| Ok((word(row, "channel_id")?, word_or_null(row, "release_id")?)));
        pursued
            .filter_map(|pair: Result<(_, Option<_>)>| {
                pair.map(|(channel, release)| Some((channel, release?))).transpose()
            })
            .collect()
    }
}
