//! `/applications/{application}/services/{service}/rollback`: back to an earlier version, by a form
//! that shows what that changes.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pages::RollbackForm;
use pages::frame::NavEntry;
use schema::api::{Release, RollbackRequest, Service};
use serde::Deserialize;

use super::deploy::has_chosen;
use super::door::FormBody;
use super::{frame, given, on_to, page};
use crate::http::Api;
use crate::http::access::{Deployer, Viewer};
use crate::http::api::find_service;
use crate::http::error::Result;
use crate::http::extract::{PathParams, Query};
use crate::store::{PageRequest, ReleaseFilter};

/// Releases among which earlier versions are offered: nobody goes back further by a form.
const RELEASES: u32 = 50;

pub(super) fn routes() -> Router<Api> {
    let path = "/applications/{application}/services/{service}/rollback";
    Router::new().route(path, get(form).post(go_back))
}

#[derive(Deserialize)]
struct Which {
    application: String,
    service: String,
}

#[derive(Deserialize)]
struct ComparedVersion {
    #[serde(default)]
    version: String,
}

async fn form(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
    Query(asked): Query<ComparedVersion>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Roll back", NavEntry::Services).await?;
    let service = find_service(&api, &which.application, &which.service).await?;
    frame.title = format!("Roll back {}", service.name);
    let (newest, earlier) = releases(&api, &service).await?;
    let first = earlier.first().map(|one| one.version.clone()).unwrap_or_default();
    let version = given(&asked.version).map_or(first, str::to_owned);
    page(pages::rollback(&frame, &RollbackForm { service, newest, earlier, version }))
}

/// The newest release, and earlier ones of other versions, each version once.
async fn releases(api: &Api, service: &Service) -> Result<(Option<Release>, Vec<Release>)> {
    let filter = ReleaseFilter { service: Some(service.id), ..ReleaseFilter::default() };
    let some = PageRequest { cursor: None, limit: Some(RELEASES) };
    let mut all = api.store.releases(&filter, &some).await?.items.into_iter();
    let newest = all.next();
    let mut seen: BTreeSet<String> = newest.iter().map(|one| one.version.clone()).collect();
    let earlier = all.filter(|one| seen.insert(one.version.clone())).collect();
    Ok((newest, earlier))
}

async fn go_back(
    State(api): State<Api>,
    Deployer(caller): Deployer,
    PathParams(which): PathParams<Which>,
    FormBody(form): FormBody<Vec<(String, String)>>,
) -> Result<Response> {
    has_chosen(&form)?;
    let request = request(form);
    let pushed = api.driver.rollback(which.application, which.service, request, caller).await?;
    Ok(on_to(&format!("/releases/{}", pushed.release)))
}

/// What the form says, as the API's request.
fn request(form: Vec<(String, String)>) -> RollbackRequest {
    let mut request = RollbackRequest::default();
    for (name, value) in form {
        if let Some(channel) = name.strip_prefix("c.") {
            request.channels.get_or_insert_default().push(channel.to_owned());
        } else if name == "version" {
            request.version = given(&value).map(str::to_owned);
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_goes_back_in_the_channels_that_were_chosen_or_in_all() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let said = request(vec![pair("version", "web-1")]);
        assert_eq!((said.version.as_deref(), said.channels), (Some("web-1"), None));
        let said = request(vec![pair("version", ""), pair("c.eu", "on"), pair("other", "x")]);
        assert_eq!((said.version, said.channels), (None, Some(vec!["eu".to_owned()])));
    }
}
