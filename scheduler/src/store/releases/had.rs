//! Where releases went and how far they came in each channel.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::{ChannelId, ReleaseId, ServiceId};
use schema::status::{JobKind, JobStatus};

use super::super::row::{count, get, instant_or_null, named, word, word_or_null};
use super::super::{Result, Row, Store};

/// Most releases of a channel that going back looks at: those of years.
const WENT_LIMIT: i64 = 10_000;

/// One release that went to a channel, as far as going back needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Went {
    pub id: ReleaseId,
    /// Its number; a channel gets them in their order.
    pub number: u64,
    /// Its version, which is that of an earlier one when it goes back.
    pub version: String,
    /// Whether it was ever converged there.
    pub converged: bool,
    /// Whether somebody rejected it there last.
    pub refused: bool,
    /// To which release it goes back.
    pub back_to: Option<ReleaseId>,
}

impl Store {
    /// The newest releases that went to a channel, in the order of their numbers.
    pub async fn went_to(&self, service: ServiceId, channel: ChannelId) -> Result<Vec<Went>> {
        let rows = sqlx::query(
            "SELECT r.id, r.number, r.version, r.rolled_back_to, rc.converged_at, rc.refused FROM \
             releases AS r
             JOIN release_channels AS rc ON rc.release_id = r.id
             WHERE r.service_id = $1 AND rc.channel_id = $2 ORDER BY r.number DESC LIMIT $3",
        )
        .bind(service.to_string())
        .bind(channel.to_string())
        .bind(WENT_LIMIT)
        .fetch_all(&self.read)
        .await?;
        let read = |row: &Row| {
            Ok(Went {
                id: word(row, "id")?,
                number: count(row, "number")?,
                version: get(row, "version")?,
                converged: instant_or_null(row, "converged_at")?.is_some(),
                refused: count(row, "refused")? > 0,
                back_to: word_or_null(row, "rolled_back_to")?,
            })
        };
        rows.iter().rev().map(|row| named("releases", &["id"], row, read(row))).collect()
    }

    /// What began in each channel of a service: the releases that were themselves converged there,
    /// or applied, or may have been. An apply that is handed over and not over yet counts:
    /// every gate let it through. A release that goes back to what the channel once
    /// had, and that was only asked for, does not. (`CROSS JOIN` keeps SQLite from reading the
    /// applies of all services first.)
    pub async fn begun(
        &self,
        service: ServiceId,
    ) -> Result<BTreeMap<ChannelId, BTreeSet<ReleaseId>>> {
        let rows = sqlx::query(
            "SELECT rc.channel_id, rc.release_id FROM releases AS r JOIN release_channels AS rc \
             ON rc.release_id = r.id
             WHERE r.service_id = $1 AND rc.converged_at IS NOT NULL
             UNION SELECT i.channel_id, j.release_id FROM instances AS i CROSS JOIN jobs AS j
             WHERE i.service_id = $1 AND j.instance_id = i.id AND j.kind = $2 AND j.once = 0 AND \
             (j.started_at IS NOT NULL OR j.ended_at IS NULL OR j.status = $3)",
        )
        .bind(service.to_string())
        .bind(JobKind::Apply.as_str())
        .bind(JobStatus::Unknown.as_str())
        .fetch_all(&self.read)
        .await?;
        let mut begun: BTreeMap<ChannelId, BTreeSet<ReleaseId>> = BTreeMap::new();
        for row in &rows {
            begun.entry(word(row, "channel_id")?).or_default().insert(word(row, "release_id")?);
        }
        Ok(begun)
    }

    /// The channels in which a service was ever converged at this version.
    pub async fn converged_at(
        &self,
        service: ServiceId,
        version: &str,
    ) -> Result<BTreeSet<ChannelId>> {
        let rows = sqlx::query(
            "SELECT DISTINCT rc.channel_id FROM release_channels AS rc JOIN releases AS r ON r.id \
             = rc.release_id
             WHERE r.service_id = $1 AND r.version = $2 AND rc.converged_at IS NOT NULL",
        )
        .bind(service.to_string())
        .bind(version)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(|row| word(row, "channel_id")).collect()
    }

    /// The channels to which any release of a service of this version went.
    pub async fn channels_of_version(
        &self,
        service: ServiceId,
        version: &str,
    ) -> Result<BTreeSet<ChannelId>> {
        let rows = sqlx::query(
            "SELECT DISTINCT rc.channel_id FROM release_channels AS rc JOIN releases AS r ON r.id \
             = rc.release_id
             WHERE r.service_id = $1 AND r.version = $2",
        )
        .bind(service.to_string())
        .bind(version)
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(|row| word(row, "channel_id")).collect()
    }
}
