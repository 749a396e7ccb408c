//! Runtimes, applications, channels, services: what exists, by id and by name.

use std::collections::BTreeMap;

use schema::api::{
    Application, ApplicationSummary, Page, ReleaseChannel, Runtime, RuntimeConnection,
};
use schema::id::{
    ApplicationId, ApplicationName, ChannelId, ChannelName, RuntimeId, RuntimeName, ServiceId,
    ServiceName,
};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::QueryBuilder;

use super::row::{count, get, instant, instant_or_null, json, named, readable, small, word};
use super::{Db, PageRequest, Result, Row, Store};

mod write;

pub(super) use write::{
    delete_runtime, put_applications, put_channels, put_runtimes, put_services,
};

#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeRow {
    pub id: RuntimeId,
    pub name: RuntimeName,
    /// `custom`, `local`, `fake`, `kubernetes`.
    pub kind: String,
    /// What lists show.
    pub summary: RuntimeSummary,
    /// The version of its document; 0 for the built-in one.
    pub config_version: u64,
    /// When it was first given.
    pub created_at: Timestamp,
}

/// What lists show of a runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeSummary {
    /// Its labels, with the automatic ones.
    pub labels: BTreeMap<String, String>,
    /// Where its jobs run, for a custom one.
    pub proxy_runtime: Option<RuntimeName>,
    /// Applies at a time.
    pub max_concurrency: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationRow {
    pub id: ApplicationId,
    pub name: ApplicationName,
    /// The version of its document.
    pub config_version: u64,
    /// When it was first given.
    pub created_at: Timestamp,
    /// When a person deleted it.
    pub deleted_at: Option<Timestamp>,
}

/// A release channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelRow {
    pub id: ChannelId,
    /// The application that it belongs to.
    pub application: ApplicationId,
    pub name: ChannelName,
    /// Order in the config, from 0.
    pub position: u32,
    /// What lists show.
    pub summary: ChannelSummary,
    /// When it was taken out of the config.
    pub deleted_at: Option<Timestamp>,
}

/// What lists show of a channel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelSummary {
    /// The group that made it.
    pub group: Option<String>,
    pub runtimes: Vec<RuntimeConnection>,
    /// Its preconditions, as the config says them.
    pub preconditions: Vec<serde_json::Value>,
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServiceRow {
    pub id: ServiceId,
    /// The application that it belongs to.
    pub application: ApplicationId,
    pub name: ServiceName,
    /// The version of its document.
    pub config_version: u64,
    /// The number of its newest release; 0 before the first.
    pub release_count: u64,
    /// When it was first given.
    pub created_at: Timestamp,
    /// When a person deleted it.
    pub deleted_at: Option<Timestamp>,
}

/// What tells the rows of each of these tables apart.
const KEYS: &[&str] = &["id", "name"];

fn read_runtime(row: &Row) -> Result<RuntimeRow> {
    named("runtimes", KEYS, row, runtime_columns(row))
}

fn runtime_columns(row: &Row) -> Result<RuntimeRow> {
    Ok(RuntimeRow {
        id: word(row, "id")?,
        name: word(row, "name")?,
        kind: get(row, "kind")?,
        summary: json(row, "summary")?,
        config_version: count(row, "config_version")?,
        created_at: instant(row, "created_at")?,
    })
}

fn read_application(row: &Row) -> Result<ApplicationRow> {
    named("applications", KEYS, row, application_columns(row))
}

fn application_columns(row: &Row) -> Result<ApplicationRow> {
    Ok(ApplicationRow {
        id: word(row, "id")?,
        name: word(row, "name")?,
        config_version: count(row, "config_version")?,
        created_at: instant(row, "created_at")?,
        deleted_at: instant_or_null(row, "deleted_at")?,
    })
}

fn read_channel(row: &Row) -> Result<ChannelRow> {
    named("channels", KEYS, row, channel_columns(row))
}

fn channel_columns(row: &Row) -> Result<ChannelRow> {
    Ok(ChannelRow {
        id: word(row, "id")?,
        application: word(row, "application_id")?,
        name: word(row, "name")?,
        position: small(row, "position")?,
        summary: json(row, "summary")?,
        deleted_at: instant_or_null(row, "deleted_at")?,
    })
}

fn read_service(row: &Row) -> Result<ServiceRow> {
    named("services", KEYS, row, service_columns(row))
}

fn service_columns(row: &Row) -> Result<ServiceRow> {
    Ok(ServiceRow {
        id: word(row, "id")?,
        application: word(row, "application_id")?,
        name: word(row, "name")?,
        config_version: count(row, "config_version")?,
        release_count: count(row, "release_count")?,
        created_at: instant(row, "created_at")?,
        deleted_at: instant_or_null(row, "deleted_at")?,
    })
}

/// The automatic label that is put in where a row is shown: the row of something new is made before
/// it has an id to name.
const ID_LABEL: &str = "@id";

const RUNTIME: &str = "SELECT r.*, (SELECT COUNT(*) FROM instances AS i WHERE i.runtime = r.name) \
                       AS instances FROM runtimes AS r";

fn shown_runtime(row: &Row) -> Result<Runtime> {
    let instances = count(row, "instances")?;
    let RuntimeRow {
        id,
        name,
        kind,
        summary: RuntimeSummary { mut labels, proxy_runtime, max_concurrency },
        ..
    } = read_runtime(row)?;
    labels.insert(ID_LABEL.to_owned(), id.to_string());
    Ok(Runtime { id, name, kind, labels, proxy_runtime, max_concurrency, instances })
}

impl Store {
    /// Whether there is a runtime of this name, whatever else its row says.
    pub async fn has_runtime(&self, name: &str) -> Result<bool> {
        let found: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM runtimes WHERE name = $1")
            .bind(name)
            .fetch_one(&self.read)
            .await?;
        Ok(found > 0)
    }

    /// The runtime of this name or id.
    pub async fn find_runtime(&self, name_or_id: &str) -> Result<Option<RuntimeRow>> {
        let row = sqlx::query("SELECT * FROM runtimes WHERE name = $1 OR id = $1")
            .bind(name_or_id)
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(read_runtime).transpose()
    }

    /// Every runtime with its id, as far as rows can be read, without a look at what runs on it.
    pub async fn runtime_ids(&self) -> Result<Vec<(RuntimeName, RuntimeId)>> {
        let rows = sqlx::query("SELECT name, id FROM runtimes").fetch_all(&self.read).await?;
        Ok(readable(rows, |row| Ok((word(row, "name")?, word(row, "id")?)))?.0)
    }

    /// The application of this name or id, unless it was deleted.
    pub async fn find_application(&self, name_or_id: &str) -> Result<Option<ApplicationRow>> {
        Ok(self.known_application(name_or_id).await?.filter(|row| row.deleted_at.is_none()))
    }

    /// The application that has this name or id, or had it.
    pub async fn known_application(&self, name_or_id: &str) -> Result<Option<ApplicationRow>> {
        let row = sqlx::query("SELECT * FROM applications WHERE name = $1 OR id = $1")
            .bind(name_or_id)
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(read_application).transpose()
    }

    /// The channel of this name or id in an application, unless it was deleted.
    pub async fn find_channel(
        &self,
        application: ApplicationId,
        name_or_id: &str,
    ) -> Result<Option<ChannelRow>> {
        let known = self.known_channel(application, name_or_id).await?;
        Ok(known.filter(|row| row.deleted_at.is_none()))
    }

    /// The channel that has this name or id in an application, or had it.
    pub async fn known_channel(
        &self,
        application: ApplicationId,
        name_or_id: &str,
    ) -> Result<Option<ChannelRow>> {
        let row = sqlx::query(
            "SELECT * FROM channels WHERE application_id = $1 AND (name = $2 OR id = $2)",
        )
        .bind(application.to_string())
        .bind(name_or_id)
        .fetch_optional(&self.read)
        .await?;
        row.as_ref().map(read_channel).transpose()
    }

    /// Every channel that an application has or had, in the order of its config.
    pub async fn channels(&self, application: ApplicationId) -> Result<Vec<ChannelRow>> {
        let rows =
            sqlx::query("SELECT * FROM channels WHERE application_id = $1 ORDER BY position, name")
                .bind(application.to_string())
                .fetch_all(&self.read)
                .await?;
        rows.iter().map(read_channel).collect()
    }

    /// Every service that an application has or had.
    pub async fn service_rows(
        &self,
        application: ApplicationId,
    ) -> Result<BTreeMap<ServiceName, ServiceRow>> {
        let rows = sqlx::query("SELECT * FROM services WHERE application_id = $1")
            .bind(application.to_string())
            .fetch_all(&self.read)
            .await?;
        rows.iter()
            .map(|row| read_service(row).map(|service| (service.name.clone(), service)))
            .collect()
    }

    /// The service of this name or id in an application, unless it was deleted.
    pub async fn find_service(
        &self,
        application: ApplicationId,
        name_or_id: &str,
    ) -> Result<Option<ServiceRow>> {
        let known = self.known_service(application, name_or_id).await?;
        Ok(known.filter(|row| row.deleted_at.is_none()))
    }

    /// The service that has this name or id in an application, or had it.
    pub async fn known_service(
        &self,
        application: ApplicationId,
        name_or_id: &str,
    ) -> Result<Option<ServiceRow>> {
        let row = sqlx::query(
            "SELECT * FROM services WHERE application_id = $1 AND (name = $2 OR id = $2)",
        )
        .bind(application.to_string())
        .bind(name_or_id)
        .fetch_optional(&self.read)
        .await?;
        row.as_ref().map(read_service).transpose()
    }

    /// Runtimes by name.
    pub async fn runtimes(&self, page: &PageRequest) -> Result<Page<Runtime>> {
        let total: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM runtimes").fetch_one(&self.read).await?;
        let mut query = QueryBuilder::<Db>::new(RUNTIME);
        query.push(" WHERE r.name > ").push_bind(page.cursor.clone().unwrap_or_default());
        query.push(" ORDER BY r.name LIMIT ").push_bind(page.rows());
        let rows = query.build().fetch_all(&self.read).await?;
        page.page(rows, total, |row| get(row, "name"), shown_runtime)
    }

    pub async fn runtime(&self, name_or_id: &str) -> Result<Option<Runtime>> {
        let mut query = QueryBuilder::<Db>::new(RUNTIME);
        query.push(" WHERE r.name = ").push_bind(name_or_id.to_owned());
        query.push(" OR r.id = ").push_bind(name_or_id.to_owned());
        query.build().fetch_optional(&self.read).await?.as_ref().map(shown_runtime).transpose()
    }

    /// Applications by name.
    pub async fn applications(&self, page: &PageRequest) -> Result<Page<ApplicationSummary>> {
        let total: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM applications WHERE deleted_at IS NULL")
                .fetch_one(&self.read)
                .await?;
        let rows = sqlx::query(
            "SELECT a.*, (SELECT COUNT(*) FROM services AS s WHERE s.application_id = a.id AND \
             s.deleted_at IS NULL) AS services FROM applications AS a
             WHERE a.deleted_at IS NULL AND a.name > $1 ORDER BY a.name LIMIT $2",
        )
        .bind(page.cursor.as_deref().unwrap_or(""))
        .bind(page.rows())
        .fetch_all(&self.read)
        .await?;
        let mut channels: BTreeMap<String, Vec<ChannelName>> = BTreeMap::new();
        if !rows.is_empty() {
            let mut query = QueryBuilder::<Db>::new(
                "SELECT application_id, name FROM channels WHERE deleted_at IS NULL AND \
                 application_id IN (",
            );
            let mut list = query.separated(", ");
            for row in &rows {
                list.push_bind(get::<String>(row, "id").unwrap_or_default());
            }
            query.push(") ORDER BY position, name");
            for row in query.build().fetch_all(&self.read).await? {
                // One that cannot be read is told with the application that it belongs to.
                let Ok(name) = word(&row, "name") else { continue };
                channels.entry(get(&row, "application_id")?).or_default().push(name);
            }
        }
        let shown = |row: &Row| {
            let ApplicationRow { id, name, .. } = read_application(row)?;
            let release_channels = channels.remove(&id.to_string()).unwrap_or_default();
            Ok(ApplicationSummary { id, name, release_channels, services: count(row, "services")? })
        };
        page.page(rows, total, |row| get(row, "name"), shown)
    }

    /// One application with its channels and services.
    pub async fn application(&self, name_or_id: &str) -> Result<Option<Application>> {
        let Some(application) = self.find_application(name_or_id).await? else { return Ok(None) };
        let release_channels = self
            .channels(application.id)
            .await?
            .into_iter()
            .filter(|channel| channel.deleted_at.is_none())
            .map(
                |ChannelRow {
                     id,
                     name,
                     summary: ChannelSummary { group, runtimes, preconditions, mut labels },
                     ..
                 }| {
                    labels.insert(ID_LABEL.to_owned(), id.to_string());
                    ReleaseChannel { id, name, group, runtimes, preconditions, labels }
                },
            )
            .collect();
        let services = sqlx::query(
            "SELECT name FROM services WHERE application_id = $1 AND deleted_at IS NULL ORDER BY \
             name",
        )
        .bind(application.id.to_string())
        .fetch_all(&self.read)
        .await?;
        let services = services.iter().map(|row| word(row, "name")).collect::<Result<_>>()?;
        Ok(Some(Application {
            id: application.id,
            name: application.name,
            release_channels,
            services,
        }))
    }
}
