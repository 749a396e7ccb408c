//! `/v1/configs`: config files on their way in, and documents as they are stored.

use axum::Json;
use axum::extract::State;
use schema::api::{ConfigVersion, ConfigsRequest, ConfigsResult, Page, StoredConfig};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::{ConfigSender, Viewer};
use crate::http::config_text;
use crate::http::error::{Error, Result};
use crate::http::extract::{LargeBody, PathParams, Query, page};
use crate::http::limits::CONFIG_FILE_BYTES;
use crate::http::openapi::{RouteDescription, Routes, about};
use crate::store::{DocumentKind, DocumentVersion, StoredDocument, StoredDocumentKey};

/// Versions that are listed with a document.
const VERSIONS: u32 = 50;

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "With `dryRun` nothing is changed. At most 64 MiB, and 8 MiB a file.";
    let masked = "What is secret in the text is masked. Without `version` the one in force.";
    routes
        .get(
            "/v1/configs",
            list,
            about("listConfigs", "configs", "Config documents in force, without their texts"),
        )
        .get(
            "/v1/configs/{kind}/{name}",
            get,
            RouteDescription {
                description: masked,
                ..about("getConfig", "configs", "A config document as it was written")
            },
        )
        .post(
            "/v1/configs",
            apply,
            RouteDescription {
                description,
                ..about(
                    "applyConfigs",
                    "configs",
                    "Check, compare and store config files, or delete documents, all or nothing",
                )
            },
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigsQuery {
    /// Only those with this in their name.
    name: Option<String>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most items, 1 to 1000; 100 when nothing is said.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// `runtime`, `application` or `service`.
    kind: String,
    /// Its name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VersionQuery {
    /// The application of a service.
    application: Option<String>,
    /// Which version; also of a document that was deleted.
    version: Option<u64>,
}

fn shown(version: DocumentVersion) -> ConfigVersion {
    let DocumentVersion { key, version, created_at, created_by } = version;
    let StoredDocumentKey { kind, application, name } = key;
    ConfigVersion {
        kind: kind.as_str().to_owned(),
        name,
        application: application.parse().ok(),
        version,
        created_at,
        created_by,
    }
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(list): Query<ConfigsQuery>,
) -> Result<Json<Page<ConfigVersion>>> {
    let name = list.name.unwrap_or_default();
    let found = api.store.documents_in_force(&name, &page(list.cursor, list.limit)?).await?;
    let Page { items, next_cursor, total, unreadable } = found;
    let items = items.into_iter().map(shown).collect();
    Ok(Json(Page { items, next_cursor, total, unreadable }))
}

async fn get(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
    Query(asked): Query<VersionQuery>,
) -> Result<Json<StoredConfig>> {
    let Which { kind, name } = which;
    let kind = DocumentKind::of(&kind).ok_or_else(|| {
        Error::not_found(format!(
            "`{kind}` is no kind of config document: there are `runtime`, `application` and \
             `service`"
        ))
    })?;
    let application = match (kind, asked.application) {
        (DocumentKind::Service, Some(application)) => application,
        (DocumentKind::Service, None) => {
            return Err(Error::bad_request(
                "a service needs `application` beside its name, because names repeat between \
                 applications"
                    .to_owned(),
            ));
        }
        (DocumentKind::Runtime | DocumentKind::Application, _) => String::new(),
    };
    let key = StoredDocumentKey { kind, application, name };
    let versions = api.store.document_versions(&key, VERSIONS).await?;
    let stored = match asked.version {
        Some(version) => api.store.document_version(&key, version).await?,
        None => api.store.document(&key).await?,
    };
    let stored = stored.ok_or_else(|| not_stored(&key, asked.version, &versions))?;
    let text = config_text::shown(&api, &stored).await?;
    let StoredDocument { key, version, source, created_at, created_by, .. } = stored;
    Ok(Json(StoredConfig {
        config: shown(DocumentVersion { key, version, created_at, created_by }),
        masked: text != source.text,
        text,
        file: source.file,
        attachments: source.attachments.into_keys().collect(),
        versions: versions.into_iter().map(shown).collect(),
    }))
}

/// Nothing of that name, or no such version of it, or one that was deleted.
fn not_stored(key: &StoredDocumentKey, asked: Option<u64>, versions: &[DocumentVersion]) -> Error {
    Error::not_found(match (asked, versions.first()) {
        (_, None) => {
            format!("there is no {key}; `pvnctl configs list` shows the documents there are")
        }
        (Some(version), Some(newest)) => format!(
            "version {version} of {key} is not kept; its newest is {}, and `pvnctl configs get` \
             lists those that are",
            newest.version
        ),
        (None, Some(newest)) => format!(
            "{key} was deleted; what it was last can be read with --version {}",
            newest.version
        ),
    })
}

async fn apply(
    State(api): State<Api>,
    sender: ConfigSender,
    LargeBody(request): LargeBody<ConfigsRequest>,
) -> Result<Json<ConfigsResult>> {
    let caller = sender.caller(request.dry_run)?;
    for file in &request.files {
        let parts = std::iter::once((&file.path, file.text.len()))
            .chain(file.attachments.iter().map(|(path, text)| (path, text.len())));
        for (path, bytes) in parts {
            if bytes > CONFIG_FILE_BYTES {
                return Err(Error::too_large(format!(
                    "the file `{path}` has {bytes} bytes and at most {CONFIG_FILE_BYTES} are \
                     taken; move large content into an image or a bucket"
                )));
            }
        }
    }
    Ok(Json(api.driver.apply_configs(request, caller).await?))
}
