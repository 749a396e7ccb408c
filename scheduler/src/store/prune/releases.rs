//! Old releases, and the versions of documents that none of what is left came from.

use schema::id::{BlobId, ReleaseId};
use schema::time::Timestamp;
use sqlx::{QueryBuilder, Row as _};

use super::super::row::{LARGEST, word};
use super::super::step::RowsStep;
use super::super::{Db, Named, Result, Store};
use super::{ids, texts};

impl Store {
    /// Releases from before `cutoff` that are not among the newest `keep` of their service, that no
    /// instance pursues, and that are not the last that converged in a channel; with numbers
    /// above `after`.
    pub async fn old_releases(
        &self,
        cutoff: Timestamp,
        keep: u32,
        after: i64,
        limit: u32,
    ) -> Result<RowsStep<ReleaseId>> {
        let rows = sqlx::query(
            "SELECT r.seq, r.id FROM releases AS r
             WHERE r.seq > $1 AND r.seq <= $5 AND r.created_at < $2 AND r.number <= (SELECT \
             beyond.number FROM releases AS beyond
                 WHERE beyond.service_id = r.service_id ORDER BY beyond.number DESC LIMIT 1 OFFSET \
             $3)
             AND NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.service_id = r.service_id AND \
             i.release_id = r.id)
             AND NOT EXISTS (SELECT 1 FROM release_channels AS c WHERE c.release_id = r.id AND \
             c.converged_at IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM releases AS nr JOIN release_channels AS n ON \
             n.release_id = nr.id
                     WHERE nr.service_id = r.service_id AND nr.number > r.number AND n.channel_id \
             = c.channel_id AND n.converged_at IS NOT NULL))
             ORDER BY r.seq LIMIT $4",
        )
        .bind(after)
        .bind(cutoff.as_millis())
        .bind(i64::from(keep))
        .bind(i64::from(limit))
        .bind(LARGEST)
        .fetch_all(&self.read)
        .await?;
        RowsStep::read("releases", &rows, |row| word(row, "id"))
    }

    /// Removes releases, and the commands and versions of documents that nothing names any more.
    pub async fn remove_releases(&self, releases: &[ReleaseId], named: &Named) -> Result<()> {
        self.change(async |to| {
            let mut query = QueryBuilder::<Db>::new(
                "SELECT DISTINCT compiled FROM release_channels WHERE release_id IN (",
            );
            ids(&mut query, releases);
            let compiled = texts(query.build().fetch_all(&mut *to).await?);
            for table in ["release_channels WHERE release_id", "releases WHERE id"] {
                let mut query = QueryBuilder::<Db>::new(format!("DELETE FROM {table} IN ("));
                ids(&mut query, releases);
                query.build().execute(&mut *to).await?;
            }
            for digest in compiled {
                if digest.parse().is_ok_and(|digest: BlobId| named.blobs.contains(&digest)) {
                    continue;
                }
                sqlx::query(
                    "DELETE FROM compiled WHERE digest = $1 AND NOT EXISTS (SELECT 1 FROM \
                     release_channels WHERE compiled = $1)",
                )
                .bind(digest)
                .execute(&mut *to)
                .await?;
            }
            Ok(())
        })
        .await
    }

    /// Removes versions of documents from before `cutoff` that are not among the newest `keep`, and
    /// that no release was made with; at most `limit`. Returns how many went.
    pub async fn remove_old_documents(
        &self,
        cutoff: Timestamp,
        keep: u32,
        limit: u32,
    ) -> Result<u64> {
        self.change(async |to| {
            let rows = sqlx::query(
                "SELECT d.rowid FROM documents AS d WHERE d.created_at < $1
                 AND d.version <= (SELECT MAX(n.version) FROM documents AS n WHERE n.kind = d.kind \
                 AND n.application = d.application AND n.name = d.name) - $2
                 AND (d.kind <> 'service' OR NOT EXISTS (SELECT 1 FROM applications AS a JOIN \
                 services AS s ON s.application_id = a.id
                     JOIN releases AS r ON r.service_id = s.id WHERE a.name = d.application AND \
                 s.name = d.name AND r.service_version = d.version))
                 LIMIT $3",
            )
            .bind(cutoff.as_millis())
            .bind(i64::from(keep))
            .bind(i64::from(limit))
            .fetch_all(&mut *to)
            .await?;
            for row in &rows {
                sqlx::query("DELETE FROM documents WHERE rowid = $1")
                    .bind(row.try_get::<i64, _>(0)?)
                    .execute(&mut *to)
                    .await?;
            }
            Ok(rows.len() as u64)
        })
        .await
    }
}
