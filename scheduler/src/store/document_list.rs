//! Which config documents there are and which versions of each, without what they say.

use schema::api::Page;
use schema::time::Timestamp;

use super::documents::{StoredDocumentKey, key_columns};
use super::row::{count, get, instant, named};
use super::{PageRequest, Result, Row, Store};

/// A version of a document, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentVersion {
    pub key: StoredDocumentKey,
    /// From 1.
    pub version: u64,
    pub created_at: Timestamp,
    pub created_by: String,
}

fn shown(row: &Row) -> Result<DocumentVersion> {
    let columns = || {
        Ok(DocumentVersion {
            key: key_columns(row)?,
            version: count(row, "version")?,
            created_at: instant(row, "created_at")?,
            created_by: get(row, "created_by")?,
        })
    };
    named("documents", &["kind", "application", "name", "version"], row, columns())
}

impl Store {
    /// The documents in force with this in their name, or all where it is empty: by kind,
    /// application and name.
    pub async fn documents_in_force(
        &self,
        name: &str,
        page: &PageRequest,
    ) -> Result<Page<DocumentVersion>> {
        // Names hold none of the three characters that mean something in a pattern.
        let literal = name.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let like = format!("%{literal}%");
        let total: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM documents AS d WHERE d.name LIKE $1 ESCAPE '\\' AND d.deleted_at \
             IS NULL AND NOT EXISTS \
             (SELECT 1 FROM documents AS n WHERE n.kind = d.kind AND n.application = \
             d.application AND n.name = d.name AND n.version > d.version)",
        )
        .bind(&like)
        .fetch_one(&self.lists)
        .await?;
        let after = page.cursor.as_deref().unwrap_or_default();
        let mut parts = after.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let rows = sqlx::query(
            "SELECT d.kind, d.application, d.name, d.version, d.created_at, d.created_by FROM \
             documents AS d WHERE (d.kind, d.application, d.name) > ($1, $2, $3) AND d.name LIKE \
             $4 ESCAPE '\\' AND d.deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM documents AS n \
             WHERE n.kind = d.kind AND n.application = d.application AND n.name = d.name AND \
             n.version > d.version) ORDER BY d.kind, d.application, d.name LIMIT $5",
        )
        .bind(part())
        .bind(part())
        .bind(part())
        .bind(&like)
        .bind(page.rows())
        .fetch_all(&self.lists)
        .await?;
        let place = |row: &Row| {
            let part = |name| get::<String>(row, name);
            Ok(format!("{} {} {}", part("kind")?, part("application")?, part("name")?))
        };
        page.page(rows, total, place, shown)
    }

    /// The newest versions of a document, at most `limit`, newest first.
    pub async fn document_versions(
        &self,
        key: &StoredDocumentKey,
        limit: u32,
    ) -> Result<Vec<DocumentVersion>> {
        let rows = sqlx::query(
            "SELECT kind, application, name, version, created_at, created_by FROM documents WHERE \
             kind = $1 AND application = $2 AND name = $3 ORDER BY version DESC LIMIT $4",
        )
        .bind(key.kind.as_str())
        .bind(&key.application)
        .bind(&key.name)
        .bind(i64::from(limit))
        .fetch_all(&self.lists)
        .await?;
        rows.iter().map(shown).collect()
    }
}
