//! Service instances: the engine's state, and beside it what lists show and filter by.

use std::collections::BTreeMap;

use engine::desired::Desired;
use engine::state::State;
use futures::TryStreamExt;
use schema::api::{ChannelStatus, Instance, Page, Service, ServiceSummary};
use schema::id::{ApplicationId, ApplicationName, ChannelId, ChannelName, InstanceId, ReleaseId, RuntimeName, ServiceId, ServiceName};
use schema::status::{Reason, Status};
use schema::time::Timestamp;
use sqlx::{QueryBuilder, Row as _};

use super::row::{json, pieces, word, word_or_null};
use super::{Connection, Db, PageRequest, Result, Row, Store, StoreError};

/// An instance as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceRow {
    /// Its id.
    pub id: InstanceId,
    /// Its service.
    pub service: ServiceId,
    /// Its channel.
    pub channel: ChannelId,
    /// The runtime that serves it.
    pub runtime: RuntimeName,
    /// JSON of [`State`].
    pub state: String,
    /// Commits so far, this one included; the row must be at one less, or absent.
    pub revision: i64,
    /// The release that it pursues.
    pub release: Option<ReleaseId>,
    /// Its version.
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
    /// Its application.
    pub application: (ApplicationId, ApplicationName),
    /// Its service.
    pub service: (ServiceId, ServiceName),
    /// Its channel.
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
    /// Whether its channel is gone.
    pub gone: bool,
}

/// Which services are wanted; `None` means any.
#[derive(Debug, Clone, Default)]
pub struct ServiceFilter {
    /// Of this application.
    pub application: Option<ApplicationId>,
    /// With an instance in this status.
    pub status: Option<Status>,
    /// With this in its name.
    pub name: Option<String>,
}

/// The instance as people see it.
pub fn shown(channel: (ChannelId, ChannelName), runtime: RuntimeName, state: &State) -> Instance {
    let standing = state.standing();
    Instance {
        channel: channel.1,
        channel_id: channel.0,
        runtime,
        status: standing.status,
        reason: standing.reason,
        message: standing.message.clone(),
        desired_version: state.desired().map(|desired| desired.version.clone()),
        converged_version: state.converged().map(|converged| converged.version.clone()),
        since: standing.since,
        next_action_at: standing.next_action_at,
        last_fetch_at: state.last_fetch_at(),
        objects: state.objects().to_vec(),
        info: state.info().to_vec(),
        approvals: engine::view::approvals(state),
        paused: state.is_paused(),
        observer: state.is_observer(),
    }
}

/// One that stands still, as people see it: what is known of it, and why it stands still.
fn broken(channel: (ChannelId, ChannelName), row: &Row, state: Option<State>) -> Result<Instance> {
    let runtime = word(row, "runtime")?;
    let since = Timestamp::from_millis(row.try_get("since")?);
    let is_told = row.try_get::<&str, _>("status")? == Status::Broken.as_str();
    let message = if is_told { row.try_get("message")? } else { "its row cannot be read".to_owned() };
    let known = state.unwrap_or_else(|| State::new(InstanceId::from_bytes([0; 16]), since));
    let desired_version = row.try_get("desired_version")?;
    Ok(Instance {
        status: Status::Broken,
        reason: None,
        message,
        since,
        next_action_at: None,
        desired_version,
        ..shown(channel, runtime, &known)
    })
}

fn read_loaded(row: &Row) -> Result<LoadedInstance> {
    let state: Result<State> = json(row, "state");
    Ok(LoadedInstance {
        application: (word(row, "application_id")?, word(row, "application")?),
        service: (word(row, "service_id")?, word(row, "service")?),
        channel: (word(row, "channel_id")?, word(row, "channel")?),
        runtime: word(row, "runtime")?,
        // Kept beside only where it is of use.
        stored: if state.is_err() { row.try_get::<String, _>("state").unwrap_or_default() } else { String::new() },
        state: state.map_err(|error| error.to_string()),
        revision: row.try_get("revision")?,
        is_broken: row.try_get::<&str, _>("status")? == Status::Broken.as_str(),
        gone: row.try_get::<Option<i64>, _>("gone_at")?.is_some(),
    })
}

fn narrow(query: &mut QueryBuilder<Db>, filter: &ServiceFilter) {
    query.push(" WHERE 1 = 1");
    if let Some(application) = filter.application {
        query.push(" AND s.application_id = ").push_bind(application.to_string());
    }
    if let Some(status) = filter.status {
        query
            .push(" AND EXISTS (SELECT 1 FROM instances AS i WHERE i.service_id = s.id AND i.status = ")
            .push_bind(status.as_str())
            .push(")");
    }
    if let Some(name) = &filter.name {
        // Names hold none of the three characters that mean something in a pattern.
        let literal = name.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        query.push(" AND s.name LIKE ").push_bind(format!("%{literal}%")).push(" ESCAPE '\\'");
    }
}

impl Store {
    /// Every instance with its state, for the driver's start. Rows are read one by one, so only states are held.
    pub async fn load_instances(&self) -> Result<Vec<LoadedInstance>> {
        let mut rows = sqlx::query(
            "SELECT i.service_id, i.channel_id, i.runtime, i.state, i.revision, i.status, c.deleted_at AS gone_at, s.name AS service, c.name AS channel, a.id AS application_id,
                    a.name AS application
             FROM instances AS i JOIN services AS s ON s.id = i.service_id JOIN channels AS c ON c.id = i.channel_id
             JOIN applications AS a ON a.id = s.application_id",
        )
        .fetch(&self.read);
        let mut loaded = Vec::new();
        while let Some(row) = rows.try_next().await? {
            loaded.push(read_loaded(&row)?);
        }
        Ok(loaded)
    }

    /// Services by application and name, with how their channels stand.
    pub async fn services(&self, filter: &ServiceFilter, page: &PageRequest) -> Result<Page<ServiceSummary>> {
        let mut query = QueryBuilder::<Db>::new("SELECT COUNT(*) FROM services AS s");
        narrow(&mut query, filter);
        let total: i64 = query.build_query_scalar().fetch_one(&self.lists).await?;

        let mut query = QueryBuilder::<Db>::new(
            "SELECT s.id, s.name, a.name AS application, (SELECT version FROM releases AS r WHERE r.service_id = s.id AND r.number = s.release_count) AS version
             FROM applications AS a JOIN services AS s ON s.application_id = a.id",
        );
        narrow(&mut query, filter);
        if let Some(cursor) = &page.cursor {
            let (application, service) = cursor
                .split_once('/')
                .ok_or_else(|| StoreError::Invalid(format!("cursor `{cursor}` is not one that a page of this list gave out")))?;
            query.push(" AND (a.name, s.name) > (").push_bind(application.to_owned()).push(", ").push_bind(service.to_owned()).push(")");
        }
        query.push(" ORDER BY a.name, s.name LIMIT ").push_bind(page.rows());
        let rows = query.build().fetch_all(&self.lists).await?;

        let mut channels: BTreeMap<String, Vec<ChannelStatus>> = BTreeMap::new();
        if !rows.is_empty() {
            let mut query = QueryBuilder::<Db>::new(
                "SELECT i.service_id, i.status, c.name FROM instances AS i JOIN channels AS c ON c.id = i.channel_id WHERE i.service_id IN (",
            );
            let mut list = query.separated(", ");
            for row in &rows {
                list.push_bind(row.try_get::<String, _>("id")?);
            }
            query.push(") AND c.deleted_at IS NULL ORDER BY c.position, c.name");
            for row in query.build().fetch_all(&self.lists).await? {
                let status = ChannelStatus { channel: word(&row, "name")?, status: word(&row, "status")? };
                channels.entry(row.try_get("service_id")?).or_default().push(status);
            }
        }
        let rows: Vec<ServiceSummary> = rows
            .iter()
            .map(|row| {
                Ok(ServiceSummary {
                    id: word(row, "id")?,
                    name: word(row, "name")?,
                    application: word(row, "application")?,
                    version: row.try_get("version")?,
                    channels: channels.remove(row.try_get::<&str, _>("id")?).unwrap_or_default(),
                })
            })
            .collect::<Result<_>>()?;
        Ok(page.page(rows, total.unsigned_abs(), |service| format!("{}/{}", service.application, service.name), |service| service))
    }

    /// One service with everything about its channels; application and service by name or id.
    pub async fn service(&self, application: &str, service: &str) -> Result<Option<Service>> {
        let Some(application) = self.find_application(application).await? else { return Ok(None) };
        let Some(service) = self.find_service(application.id, service).await? else { return Ok(None) };
        let version: Option<String> = sqlx::query_scalar("SELECT version FROM releases WHERE service_id = $1 AND number = $2")
            .bind(service.id.to_string())
            .bind(service.release_count.cast_signed())
            .fetch_optional(&self.read)
            .await?;
        let rows = sqlx::query(
            "SELECT i.channel_id, c.name AS channel, i.runtime, i.state, i.status, i.message, i.since, i.desired_version FROM instances AS i JOIN channels AS c ON c.id = i.channel_id
             WHERE i.service_id = $1 AND c.deleted_at IS NULL ORDER BY c.position, c.name",
        )
        .bind(service.id.to_string())
        .fetch_all(&self.read)
        .await?;
        let channels = rows
            .iter()
            .map(|row| {
                let channel = (word(row, "channel_id")?, word(row, "channel")?);
                let state: Result<State> = json(row, "state");
                let is_broken = row.try_get::<&str, _>("status")? == Status::Broken.as_str();
                match state {
                    Ok(state) if !is_broken => Ok(shown(channel, word(row, "runtime")?, &state)),
                    state => broken(channel, row, state.ok()),
                }
            })
            .collect::<Result<_>>()?;
        Ok(Some(Service { id: service.id, name: service.name, application: application.name, version, channels }))
    }

    /// What an instance was last made to be, apart from its state.
    pub async fn desired(&self, instance: InstanceId) -> Result<Option<Box<Desired>>> {
        let row = sqlx::query(
            "SELECT rc.desired FROM instances AS i JOIN release_channels AS rc ON rc.release_id = i.release_id AND rc.channel_id = i.channel_id
             WHERE i.id = $1",
        )
        .bind(instance.to_string())
        .fetch_optional(&self.read)
        .await?;
        Ok(row.as_ref().and_then(|row| json(row, "desired").ok()))
    }

    /// The engine's state of one instance.
    pub async fn state(&self, instance: InstanceId) -> Result<Option<State>> {
        let row = sqlx::query("SELECT state FROM instances WHERE id = $1").bind(instance.to_string()).fetch_optional(&self.read).await?;
        row.as_ref().map(|row| json(row, "state")).transpose()
    }

    /// Services whose instances a runtime serves, as (application, service).
    pub async fn services_on(&self, runtime: &RuntimeName) -> Result<Vec<(ApplicationName, ServiceName)>> {
        let rows = sqlx::query(
            "SELECT DISTINCT a.name AS application, s.name AS service FROM instances AS i JOIN services AS s ON s.id = i.service_id
             JOIN applications AS a ON a.id = s.application_id WHERE i.runtime = $1 ORDER BY a.name, s.name",
        )
        .bind(runtime.as_str())
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(|row| Ok((word(row, "application")?, word(row, "service")?))).collect()
    }

    /// The release that each instance of a service pursues now.
    pub async fn pursued(&self, service: ServiceId) -> Result<Vec<(ChannelId, ReleaseId)>> {
        let rows = sqlx::query("SELECT channel_id, release_id FROM instances WHERE service_id = $1 AND release_id IS NOT NULL")
            .bind(service.to_string())
            .fetch_all(&self.read)
            .await?;
        let pursued = rows.iter().map(|row| Ok((word(row, "channel_id")?, word_or_null(row, "release_id")?)));
        pursued.filter_map(|pair: Result<(_, Option<_>)>| pair.map(|(channel, release)| Some((channel, release?))).transpose()).collect()
    }
}

pub(super) async fn put(connection: &mut Connection, instances: &[InstanceRow]) -> Result<()> {
    for piece in pieces(instances) {
        let done = QueryBuilder::<Db>::new(
            "INSERT INTO instances (id, service_id, channel_id, runtime, state, revision, release_id, desired_version, status, reason, message, \
             since, next_wake) ",
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
            " ON CONFLICT (id) DO UPDATE SET runtime = excluded.runtime, state = excluded.state, revision = excluded.revision, \
             release_id = excluded.release_id, desired_version = excluded.desired_version, status = excluded.status, reason = excluded.reason, \
             message = excluded.message, since = excluded.since, next_wake = excluded.next_wake WHERE instances.revision = excluded.revision - 1",
        )
        .build()
        .execute(&mut *connection)
        .await?;
        let written = done.rows_affected();
        if written != piece.len() as u64 {
            let names: Vec<_> = piece.iter().map(|instance| format!("{} at {}", instance.id, instance.revision - 1)).collect();
            return Err(StoreError::Conflict(format!(
                "{written} of {} instances are at the revision that they were changed from ({}): another program writes this database",
                piece.len(),
                names.join(", ")
            )));
        }
    }
    Ok(())
}
