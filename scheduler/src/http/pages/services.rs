//! `/services`: the list, narrowed and ordered by its address and paged in the database.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pages::ServicesFilter;
use pages::frame::NavEntry;
use schema::status::Status;
use serde::Deserialize;

use super::{frame, given, page};
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::{Error, Result};
use crate::http::extract::{self, Query};
use crate::http::lookup::application;
use crate::store::{PageRequest, ServiceFilter, ServiceOrder};

/// Services of one page: what stays below 100 kB with twenty channels each.
const ROWS: u32 = 25;

/// Applications to choose from; whoever has more types the name.
const CHOICES: u32 = 200;

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/services", get(services))
}

/// As a form sends it: what says nothing is empty.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedServices {
    name: String,
    application: String,
    channel: String,
    status: String,
    order: String,
    cursor: Option<String>,
}

async fn services(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Query(list): Query<ListedServices>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Services", NavEntry::Services).await?;
    frame.live = Some("/live".to_owned());
    let status: Option<Status> = given(&list.status)
        .map(|text| text.parse().map_err(|error| Error::bad_request(format!("{error}"))))
        .transpose()?;
    let application_id = match given(&list.application) {
        Some(name) => Some(application(&api, name).await?.id),
        None => None,
    };
    let filter = ServiceFilter {
        application: application_id,
        status,
        name: given(&list.name).map(str::to_owned),
        named: None,
        channel: given(&list.channel).map(str::to_owned),
        order: match list.order.as_str() {
            "changed" => ServiceOrder::ChangedLastFirst,
            _ => ServiceOrder::ByName,
        },
    };
    let page_of = extract::page(list.cursor, Some(ROWS))?;
    let found = api.store.services(&filter, &page_of).await?;
    let choices = PageRequest { cursor: None, limit: Some(CHOICES) };
    let choices = api.store.applications(&choices).await?.items;
    let choices: Vec<String> = choices.into_iter().map(|one| one.name.to_string()).collect();
    let shown = ServicesFilter {
        name: list.name,
        application: list.application,
        channel: list.channel,
        status,
        order: list.order,
    };
    page(pages::services(&frame, &shown, &found, &choices))
}
