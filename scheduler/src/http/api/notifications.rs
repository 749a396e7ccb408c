//! `/v1/notifications`: messages to people, and what became of them.

use axum::Json;
use axum::extract::State;
use schema::api::{Notification, Page};
use schema::id::{NotificationId, TargetName};
use schema::notification::NotificationStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::{Operator, Viewer};
use crate::http::error::{Error, Result};
use crate::http::extract::{EmptyBody, JsonBody, PathParams, Query, page};
use crate::http::lookup::scope;
use crate::http::openapi::{RouteDescription, Routes, about};
use crate::store::NotificationFilter;

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "It is sent with the id that it had, from the first attempt on; also one \
                       that was sent, or told in a digest.";
    routes
        .get(
            "/v1/notifications",
            list,
            about("listNotifications", "notifications", "Messages to people, newest first"),
        )
        .post(
            "/v1/notifications/{id}/resend",
            resend,
            RouteDescription {
                description,
                ..about("resendNotification", "notifications", "Send a message again")
            },
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NotificationsQuery {
    /// Only of this application: name or id.
    application: Option<String>,
    /// Only for this target of an application.
    target: Option<TargetName>,
    /// Only in this status.
    status: Option<NotificationStatus>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most items, 1 to 1000; 100 when nothing is said.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The message's id.
    id: String,
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(list): Query<NotificationsQuery>,
) -> Result<Json<Page<Notification>>> {
    let (application, ..) = scope(&api, list.application.as_deref(), None, None).await?.names();
    let filter = NotificationFilter { application, target: list.target, status: list.status };
    let page = page(list.cursor, list.limit)?;
    Ok(Json(api.store.notifications(&filter, &page).await?))
}

async fn resend(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    _: JsonBody<EmptyBody>,
) -> Result<Json<Notification>> {
    let absent = || {
        Error::not_found(format!(
            "there is no notification `{}`; `pvnctl notifications list` shows those there are",
            which.id
        ))
    };
    let id = which.id.parse::<NotificationId>().map_err(|_| absent())?;
    api.driver.resend_notification(id, caller).await?;
    api.store.notification(id).await?.map(Json).ok_or_else(absent)
}
