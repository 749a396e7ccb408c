//! The text of a stored config document as people may see it, for the API and the pages.

use super::Api;
use super::error::Result;
use crate::driver::masked_document;
use crate::store::StoredDocument;

/// The text with every secret in it masked, and what is one in the version before or after.
///
/// # Errors
/// When those cannot be read.
pub(super) async fn shown(api: &Api, stored: &StoredDocument) -> Result<String> {
    let mut beside = Vec::new();
    for version in [stored.version.saturating_sub(1), stored.version.saturating_add(1)] {
        let other = api.store.document_version(&stored.key, version).await?;
        beside.extend(other.map(|other| other.source.text));
    }
    Ok(masked_document(&stored.source.text, &beside))
}
