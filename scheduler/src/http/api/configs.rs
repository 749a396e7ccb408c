//! `/v1/configs`: config files on their way in.

use axum::Json;
use axum::extract::State;
use schema::api::{ConfigsRequest, ConfigsResult};

use crate::http::Api;
use crate::http::access::Admin;
use crate::http::error::{Error, Result};
use crate::http::extract::LargeBody;
use crate::http::limits::CONFIG_FILE_BYTES;
use crate::http::openapi::{RouteDescription, Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "With `dryRun` nothing is stored. At most 64 MiB, and 8 MiB a file.";
    routes.post(
        "/v1/configs",
        apply,
        RouteDescription {
            description,
            ..about(
                "applyConfigs",
                "configs",
                "Check, compare and store config files, all or nothing",
            )
        },
    )
}

async fn apply(
    State(api): State<Api>,
    Admin(caller): Admin,
    LargeBody(request): LargeBody<ConfigsRequest>,
) -> Result<Json<ConfigsResult>> {
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
