//! Releases, what each means for its channels, and the compiled commands that they name.

use std::collections::BTreeMap;

use engine::desired::Desired;
use schema::api::{ChannelStatus, Page, Release};
use schema::id::{ApplicationId, BlobId, ChannelId, ChannelName, ReleaseId, ServiceId};
use schema::status::Status;
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::instances::unreadable_name;
use super::row::{
    count, get, instant, instant_or_null, json, named, number, readable, word, word_or_null,
};
use super::{Db, PageRequest, Result, Row, Store};
use crate::compile::{Commands, StoredValue, Values};

mod had;
mod write;

pub use had::Went;

pub(super) use write::{
    StatusChange, insert, put_channels, put_compiled, set_refused, set_statuses,
};

/// What stands for a secret wherever people look.
pub const MASK: &str = "***";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRow {
    pub id: ReleaseId,
    pub service: ServiceId,
    /// Order over all services.
    pub seq: i64,
    /// Order within the service, from 1.
    pub number: u64,
    pub version: String,
    /// The parameter values that it was given, carried over ones included.
    pub params: Values,
    /// The version of the service's document that it was made with.
    pub service_version: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// The release whose values and version it took over.
    pub rolled_back_to: Option<ReleaseId>,
}

/// A value as people may see it.
pub fn shown_value(value: &StoredValue) -> String {
    match value {
        StoredValue::Text(text) => text.clone(),
        StoredValue::Secret(_) => MASK.to_owned(),
        StoredValue::Default => "(default)".to_owned(),
    }
}

/// The values as people may see them, those of one channel as `channel:name`.
fn shown_params(values: &Values) -> BTreeMap<String, String> {
    let shown = shown_value;
    let all = values.all.iter().map(|(name, value)| (name.clone(), shown(value)));
    let own = values.per_channel.iter();
    let per_channel = own.flat_map(|(channel, values)| {
        values.iter().map(move |(name, value)| (format!("{channel}:{name}"), shown(value)))
    });
    all.chain(per_channel).collect()
}

/// A release in one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseChannelRow {
    pub release: ReleaseId,
    pub channel: ChannelId,
    /// How the release stands there.
    pub status: Status,
    /// The rendered commands.
    pub compiled: BlobId,
    /// What the instance should be.
    pub desired: Desired,
    /// When it was first converged there.
    pub converged_at: Option<Timestamp>,
    /// Whether somebody rejected it there, and nobody has asked anew.
    pub refused: bool,
}

/// Which releases are wanted; `None` means any.
#[derive(Debug, Clone, Default)]
pub struct ReleaseFilter {
    /// Of this application.
    pub application: Option<ApplicationId>,
    /// Of this service.
    pub service: Option<ServiceId>,
    /// That went to this channel.
    pub channel: Option<ChannelId>,
}

/// How a release stands over all its channels: the worst that stands anywhere and needs somebody,
/// else the furthest from done.
pub fn over_all(channels: &[ChannelStatus]) -> Status {
    const WORST_FIRST: [Status; 9] = [
        Status::Broken,
        Status::Failed,
        Status::WaitingManualApproval,
        Status::WaitingPreconditions,
        Status::Paused,
        Status::Converging,
        Status::Replaced,
        Status::Converged,
        Status::Deleted,
    ];
    WORST_FIRST
        .into_iter()
        .find(|status| channels.iter().any(|channel| channel.status == *status))
        .unwrap_or(Status::Converged)
}

fn narrow(query: &mut QueryBuilder<Db>, filter: &ReleaseFilter) {
    query.push(" WHERE 1 = 1");
    if let Some(service) = filter.service {
        query.push(" AND r.service_id = ").push_bind(service.to_string());
    } else if let Some(application) = filter.application {
        query
            .push(" AND r.service_id IN (SELECT id FROM services WHERE application_id = ")
            .push_bind(application.to_string())
            .push(")");
    }
    if let Some(channel) = filter.channel {
        query
            .push(
                " AND EXISTS (SELECT 1 FROM release_channels AS c WHERE c.release_id = r.id AND \
                 c.channel_id = ",
            )
            .push_bind(channel.to_string())
            .push(")");
    }
}

fn read_release(row: &Row) -> Result<ReleaseRow> {
    named("releases", KEYS, row, release_columns(row))
}

/// What tells releases apart.
const KEYS: &[&str] = &["id", "seq"];

fn release_columns(row: &Row) -> Result<ReleaseRow> {
    Ok(ReleaseRow {
        id: word(row, "id")?,
        service: word(row, "service_id")?,
        seq: number(row, "seq")?,
        number: count(row, "number")?,
        version: get(row, "version")?,
        params: json(row, "params")?,
        service_version: count(row, "service_version")?,
        created_at: instant(row, "created_at")?,
        created_by: get(row, "created_by")?,
        rolled_back_to: word_or_null(row, "rolled_back_to")?,
    })
}

fn read_channel(row: &Row) -> Result<(ChannelName, ReleaseChannelRow)> {
    let channel = ReleaseChannelRow {
        release: word(row, "release_id")?,
        channel: word(row, "channel_id")?,
        status: word(row, "status")?,
        compiled: word(row, "compiled")?,
        desired: json(row, "desired")?,
        converged_at: instant_or_null(row, "converged_at")?,
        refused: count(row, "refused")? > 0,
    };
    Ok((word(row, "name")?, channel))
}

/// A release as people see it; its channels are taken out of `channels`.
fn shown(row: &Row, channels: &mut BTreeMap<String, Vec<ChannelStatus>>) -> Result<Release> {
    let release = read_release(row)?;
    let channels = channels.remove(&release.id.to_string()).unwrap_or_default();
    Ok(Release {
        release: release.id,
        version: release.version,
        application: named("releases", KEYS, row, word(row, "application"))?,
        service: named("releases", KEYS, row, word(row, "service"))?,
        status: over_all(&channels),
        created_at: release.created_at,
        by: release.created_by,
        channels,
        params: shown_params(&release.params),
        config_version: Some(release.service_version),
    })
}

impl Store {
    /// How these releases stand in their channels, by their ids. A channel whose row cannot be read
    /// has no name to show.
    async fn channels_of(&self, releases: &[Row]) -> Result<BTreeMap<String, Vec<ChannelStatus>>> {
        let mut channels: BTreeMap<String, Vec<ChannelStatus>> = BTreeMap::new();
        if releases.is_empty() {
            return Ok(channels);
        }
        let mut query = QueryBuilder::<Db>::new(
            "SELECT rc.release_id, rc.status, c.name FROM release_channels AS rc LEFT JOIN \
             channels AS c ON c.id = rc.channel_id WHERE rc.release_id IN (",
        );
        let mut list = query.separated(", ");
        for row in releases {
            list.push_bind(get::<String>(row, "id").unwrap_or_default());
        }
        query.push(") ORDER BY c.position, c.name");
        for row in query.build().fetch_all(&self.lists).await? {
            let channel = word(&row, "name").unwrap_or_else(|_| unreadable_name());
            let status = ChannelStatus {
                channel,
                status: word(&row, "status").unwrap_or(Status::Broken),
                version: None,
            };
            channels.entry(get(&row, "release_id")?).or_default().push(status);
        }
        Ok(channels)
    }

    /// Releases, newest first.
    pub async fn releases(
        &self,
        filter: &ReleaseFilter,
        page: &PageRequest,
    ) -> Result<Page<Release>> {
        let mut query = QueryBuilder::<Db>::new("SELECT COUNT(*) FROM releases AS r");
        narrow(&mut query, filter);
        let total: i64 = query.build_query_scalar().fetch_one(&self.lists).await?;
        let mut query = QueryBuilder::<Db>::new(SHOWN);
        narrow(&mut query, filter);
        if let Some(before) = page.number()? {
            query.push(" AND r.seq < ").push_bind(before);
        }
        query.push(" ORDER BY r.seq DESC LIMIT ").push_bind(page.rows());
        let rows = query.build().fetch_all(&self.lists).await?;
        let mut channels = self.channels_of(&rows).await?;
        page.page(
            rows,
            total,
            |row| Ok(get::<i64>(row, "seq")?.to_string()),
            |row| shown(row, &mut channels),
        )
    }

    /// One release as people see it, by id.
    pub async fn release(&self, id: ReleaseId) -> Result<Option<Release>> {
        let mut query = QueryBuilder::<Db>::new(SHOWN);
        query.push(" WHERE r.id = ").push_bind(id.to_string());
        let rows = query.build().fetch_all(&self.read).await?;
        let mut channels = self.channels_of(&rows).await?;
        rows.first().map(|row| shown(row, &mut channels)).transpose()
    }

    /// One release as it is stored.
    pub async fn release_row(&self, id: ReleaseId) -> Result<Option<ReleaseRow>> {
        let row = sqlx::query("SELECT * FROM releases WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(read_release).transpose()
    }

    /// The newest release of a service that has this version. All of them have the same values and
    /// the same service's config.
    pub async fn release_of_version(
        &self,
        service: ServiceId,
        version: &str,
    ) -> Result<Option<ReleaseRow>> {
        let row = sqlx::query(
            "SELECT * FROM releases WHERE service_id = $1 AND version = $2 ORDER BY number DESC \
             LIMIT 1",
        )
        .bind(service.to_string())
        .bind(version)
        .fetch_optional(&self.read)
        .await?;
        row.as_ref().map(read_release).transpose()
    }

    /// The newest release of a service.
    pub async fn newest_release(&self, service: ServiceId) -> Result<Option<ReleaseRow>> {
        let row = sqlx::query(
            "SELECT * FROM releases WHERE service_id = $1 ORDER BY number DESC LIMIT 1",
        )
        .bind(service.to_string())
        .fetch_optional(&self.read)
        .await?;
        row.as_ref().map(read_release).transpose()
    }

    /// A service's newest release that is no rollback.
    pub async fn newest_order(&self, service: ServiceId) -> Result<Option<ReleaseRow>> {
        let row = sqlx::query(
            "SELECT * FROM releases WHERE service_id = $1 AND rolled_back_to IS NULL ORDER BY \
             number DESC LIMIT 1",
        )
        .bind(service.to_string())
        .fetch_optional(&self.read)
        .await?;
        row.as_ref().map(read_release).transpose()
    }

    /// The newest release of each service of an application that has one, as far as it can be read.
    pub async fn newest_releases(&self, application: ApplicationId) -> Result<Vec<ReleaseRow>> {
        let rows = sqlx::query(
            "SELECT r.* FROM services AS s JOIN releases AS r ON r.service_id = s.id AND r.number \
             = s.release_count WHERE s.application_id = $1",
        )
        .bind(application.to_string())
        .fetch_all(&self.read)
        .await?;
        Ok(readable(rows.iter(), |row| read_release(row))?.0)
    }

    /// Whether a version of a service is taken.
    pub async fn version_exists(&self, service: ServiceId, version: &str) -> Result<bool> {
        let found: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM releases WHERE service_id = $1 AND version = $2",
        )
        .bind(service.to_string())
        .bind(version)
        .fetch_one(&self.read)
        .await?;
        Ok(found > 0)
    }

    /// What a release means for its channels, with their names.
    pub async fn release_channels(
        &self,
        release: ReleaseId,
    ) -> Result<Vec<(ChannelName, ReleaseChannelRow)>> {
        let rows = sqlx::query(
            "SELECT rc.*, c.name FROM release_channels AS rc JOIN channels AS c ON c.id = \
             rc.channel_id WHERE rc.release_id = $1",
        )
        .bind(release.to_string())
        .fetch_all(&self.read)
        .await?;
        rows.iter()
            .map(|row| {
                named("release_channels", &["release_id", "channel_id"], row, read_channel(row))
            })
            .collect()
    }

    /// The digest of the commands that a release has for a channel.
    pub async fn compiled_for(
        &self,
        release: ReleaseId,
        channel: ChannelId,
    ) -> Result<Option<BlobId>> {
        let row = sqlx::query(
            "SELECT compiled FROM release_channels WHERE release_id = $1 AND channel_id = $2",
        )
        .bind(release.to_string())
        .bind(channel.to_string())
        .fetch_optional(&self.read)
        .await?;
        row.as_ref().map(|row| word(row, "compiled")).transpose()
    }

    /// Rendered commands by their digest.
    pub async fn compiled(&self, digest: BlobId) -> Result<Option<Commands>> {
        let row = sqlx::query("SELECT body FROM compiled WHERE digest = $1")
            .bind(digest.to_string())
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(|row| json(row, "body")).transpose()
    }
}

const SHOWN: &str = "SELECT r.*, a.name AS application, s.name AS service FROM releases AS r
    LEFT JOIN services AS s ON s.id = r.service_id LEFT JOIN applications AS a ON a.id = \
                     s.application_id";
