//! Every version of every config document as it was given. Sealed, because a document may hold raw
//! secrets.

use std::collections::BTreeMap;
use std::fmt;

use config::DocumentSource;
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::row::{count, get, named, pieces, word};
use super::{Connection, Db, Result, Row, Store, StoreError};

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// `runtime`.
    Runtime,
    /// `application`.
    Application,
    /// `service`.
    Service,
}

impl DocumentKind {
    /// The kind of this word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Runtime, Self::Application, Self::Service]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }

    /// The word, as the document's top-level key has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Application => "application",
            Self::Service => "service",
        }
    }
}

/// What names a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredDocumentKey {
    pub kind: DocumentKind,
    /// The application of a service, else empty.
    pub application: String,
    pub name: String,
}

/// `service shop/web`, `runtime tf`.
impl fmt::Display for StoredDocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, application, name } = self;
        write!(f, "{} ", kind.as_str())?;
        if *kind == DocumentKind::Service {
            write!(f, "{application}/")?;
        }
        f.write_str(name)
    }
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    /// What names it.
    pub key: StoredDocumentKey,
    /// From 1.
    pub version: u64,
    /// Of its meaning, so that a changed comment is no new version.
    pub digest: String,
    /// As it was given.
    pub source: DocumentSource,
    /// When.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
}

pub(super) fn purpose(key: &StoredDocumentKey, version: u64) -> String {
    format!("{} document `{}/{}` version {version}", key.kind.as_str(), key.application, key.name)
}

/// The newest version of each document is the one in force, unless the document was deleted.
const IN_FORCE: &str = "SELECT * FROM documents AS d WHERE kind = $1 AND application = $2 AND ($3 \
                        = '' OR name = $3) AND deleted_at IS NULL
    AND version = (SELECT MAX(version) FROM documents AS n WHERE n.kind = d.kind AND n.application \
                        = d.application AND n.name = d.name)
    ORDER BY name";

impl Store {
    fn read_document(&self, kind: DocumentKind, row: &Row) -> Result<StoredDocument> {
        named(
            "documents",
            &["kind", "application", "name", "version"],
            row,
            self.document_columns(kind, row),
        )
    }

    fn document_columns(&self, kind: DocumentKind, row: &Row) -> Result<StoredDocument> {
        let key = StoredDocumentKey {
            kind,
            application: get(row, "application")?,
            name: get(row, "name")?,
        };
        let version = count(row, "version")?;
        let source = self.unseal(&purpose(&key, version), get(row, "source")?)?;
        Ok(StoredDocument {
            key,
            version,
            digest: word(row, "digest")?,
            source,
            created_at: super::row::instant(row, "created_at")?,
            created_by: get(row, "created_by")?,
        })
    }

    /// The document in force under this name.
    pub async fn document(&self, key: &StoredDocumentKey) -> Result<Option<StoredDocument>> {
        let row = sqlx::query(IN_FORCE)
            .bind(key.kind.as_str())
            .bind(&key.application)
            .bind(&key.name)
            .fetch_optional(&self.read)
            .await?;
        row.map(|row| self.read_document(key.kind, &row)).transpose()
    }

    /// A certain version of a document.
    pub async fn document_version(
        &self,
        key: &StoredDocumentKey,
        version: u64,
    ) -> Result<Option<StoredDocument>> {
        let row = sqlx::query(
            "SELECT * FROM documents WHERE kind = $1 AND application = $2 AND name = $3 AND \
             version = $4",
        )
        .bind(key.kind.as_str())
        .bind(&key.application)
        .bind(&key.name)
        .bind(version.cast_signed())
        .fetch_optional(&self.read)
        .await?;
        row.map(|row| self.read_document(key.kind, &row)).transpose()
    }

    /// The documents of a kind in force; of services, those of one application. With `names` only
    /// those with these names.
    pub async fn documents(
        &self,
        kind: DocumentKind,
        application: &str,
        names: Option<&[&str]>,
    ) -> Result<Vec<StoredDocument>> {
        let Some(names) = names else {
            let rows = sqlx::query(IN_FORCE)
                .bind(kind.as_str())
                .bind(application)
                .bind("")
                .fetch_all(&self.read)
                .await?;
            return rows.iter().map(|row| self.read_document(kind, row)).collect();
        };
        let mut documents = Vec::with_capacity(names.len());
        for piece in pieces(names) {
            let mut query = QueryBuilder::<Db>::new("SELECT * FROM documents AS d WHERE kind = ");
            query
                .push_bind(kind.as_str())
                .push(" AND application = ")
                .push_bind(application.to_owned())
                .push(" AND name IN (");
            let mut list = query.separated(", ");
            for name in piece {
                list.push_bind((*name).to_owned());
            }
            query.push(
                ") AND deleted_at IS NULL AND version = (SELECT MAX(version) FROM documents AS n \
                 WHERE n.kind = d.kind AND n.application = d.application AND n.name = d.name)",
            );
            for row in query.build().fetch_all(&self.read).await? {
                documents.push(self.read_document(kind, &row)?);
            }
        }
        Ok(documents)
    }

    /// The newest versions of documents that were deleted, by their keys: of one that comes back
    /// the versions go on from there.
    pub async fn deleted_documents(&self) -> Result<BTreeMap<StoredDocumentKey, u64>> {
        let rows = sqlx::query(
            "SELECT d.kind, d.application, d.name, d.version FROM documents AS d WHERE \
             d.deleted_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM documents AS n WHERE n.kind = \
             d.kind AND n.application = d.application AND n.name = d.name AND n.version > \
             d.version)",
        )
        .fetch_all(&self.read)
        .await?;
        rows.iter().map(|row| Ok((key_columns(row)?, count(row, "version")?))).collect()
    }

    /// The source of a document, sealed.
    pub(super) fn sealed_document(&self, document: &StoredDocument) -> String {
        self.seal(&purpose(&document.key, document.version), &document.source)
    }
}

/// A document's key, of a row that names its kind.
pub(super) fn key_columns(row: &Row) -> Result<StoredDocumentKey> {
    let kind: String = get(row, "kind")?;
    let kind = DocumentKind::of(&kind)
        .ok_or_else(|| StoreError::Corrupt(format!("`{kind}` is no kind of document")))?;
    Ok(StoredDocumentKey { kind, application: get(row, "application")?, name: get(row, "name")? })
}

/// Takes a document out of force: its newest version says since when and by whom.
pub(super) async fn delete(
    connection: &mut Connection,
    key: &StoredDocumentKey,
    at: Timestamp,
    by: &str,
) -> Result<()> {
    sqlx::query(
        "UPDATE documents SET deleted_at = $4, deleted_by = $5 WHERE kind = $1 AND application = \
         $2 AND name = $3 AND version = (SELECT MAX(n.version) FROM documents AS n WHERE n.kind = \
         $1 AND n.application = $2 AND n.name = $3)",
    )
    .bind(key.kind.as_str())
    .bind(&key.application)
    .bind(&key.name)
    .bind(at.as_millis())
    .bind(by)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn insert(
    connection: &mut Connection,
    documents: &[&StoredDocument],
    sealed: impl Fn(&StoredDocument) -> String,
) -> Result<()> {
    for piece in pieces(documents) {
        QueryBuilder::<Db>::new(
            "INSERT INTO documents (kind, application, name, version, digest, source, created_at, \
             created_by) ",
        )
        .push_values(piece, |mut row, document| {
            row.push_bind(document.key.kind.as_str())
                .push_bind(document.key.application.clone())
                .push_bind(document.key.name.clone())
                .push_bind(document.version.cast_signed())
                .push_bind(document.digest.clone())
                .push_bind(sealed(document))
                .push_bind(document.created_at.as_millis())
                .push_bind(document.created_by.clone());
        })
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
