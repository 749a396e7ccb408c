//! `/applications/{application}/services/{service}/deploy`: a release by a form that is made from
//! the parameters.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use config::{ParameterDefinition, ParameterKind};
use pages::frame::NavEntry;
use pages::{DeployField, DeployForm, FieldKind};
use schema::api::{PushRequest, Pushed, Service};
use schema::id::ServiceId;
use serde::Deserialize;

use super::door::FormBody;
use super::{frame, on_to, page};
use crate::http::Api;
use crate::http::access::{Deployer, Viewer};
use crate::http::api::find_service;
use crate::http::error::{Error, Result};
use crate::http::extract::PathParams;
use crate::store::{DocumentKind, MASK, PageRequest, ReleaseFilter, StoredDocumentKey, TokenRow};

pub(super) fn routes() -> Router<Api> {
    let path = "/applications/{application}/services/{service}/deploy";
    Router::new().route(path, get(form).post(release))
}

#[derive(Deserialize)]
struct Which {
    application: String,
    service: String,
}

async fn form(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Deploy", NavEntry::Services).await?;
    let service = find_service(&api, &which.application, &which.service).await?;
    frame.title = format!("Deploy {}", service.name);
    let fields = fields(&api, &service).await?;
    page(pages::deploy(&frame, &DeployForm { service, fields, chosen: Vec::new(), preview: None }))
}

/// The parameters of the config in force, with the values of the newest release.
async fn fields(api: &Api, service: &Service) -> Result<Vec<DeployField>> {
    let key = StoredDocumentKey {
        kind: DocumentKind::Service,
        application: service.application.to_string(),
        name: service.name.to_string(),
    };
    let stored = api.store.document(&key).await?;
    let read = stored.and_then(|stored| config::read_source(stored.source).ok().flatten());
    let parameters = match read.as_ref().map(config::Document::body) {
        Some(config::Body::Service(document)) => document.parameters.clone(),
        _ => Vec::new(),
    };
    let last = last_values(api, service.id).await?;
    Ok(parameters.iter().map(|one| field(one, &last)).collect())
}

async fn last_values(api: &Api, service: ServiceId) -> Result<BTreeMap<String, String>> {
    let filter = ReleaseFilter { service: Some(service), ..ReleaseFilter::default() };
    let newest = PageRequest { cursor: None, limit: Some(1) };
    let newest = api.store.releases(&filter, &newest).await?.items.into_iter().next();
    Ok(newest.map(|release| release.params).unwrap_or_default())
}

fn field(parameter: &ParameterDefinition, last: &BTreeMap<String, String>) -> DeployField {
    let (kind, takes, default) = match &parameter.kind {
        ParameterKind::String(string) => {
            (FieldKind::Line, "text".to_owned(), string.default_value.clone())
        }
        ParameterKind::Int(int) => {
            let default = int.default_value.map(|number| number.to_string());
            (FieldKind::Number, "a whole number".to_owned(), default)
        }
        ParameterKind::DockerImage(image) => {
            let repository = image.image_registry_info.as_ref();
            let repository = repository.map(|info| format!(" of {}", info.image_repository));
            let takes = format!("a tag{}", repository.unwrap_or_default());
            (FieldKind::Line, takes, image.default_tag.clone())
        }
        ParameterKind::Secret(_) => (FieldKind::Hidden, "a secret of one line".to_owned(), None),
        ParameterKind::Commit(commit) => {
            (FieldKind::Line, format!("a commit of {}", commit.repository), None)
        }
        ParameterKind::Blob(blob) => {
            (FieldKind::Text, "the content of a file".to_owned(), blob.default_value.clone())
        }
    };
    let found = last.get(&parameter.name);
    // A browser takes the line ends out of a field of one line.
    let has_lines = |text: Option<&String>| text.is_some_and(|text| text.contains(['\n', '\r']));
    let kind = match kind {
        FieldKind::Line if has_lines(found) || has_lines(default.as_ref()) => FieldKind::Text,
        kind => kind,
    };
    DeployField {
        name: parameter.name.clone(),
        description: parameter.description.clone(),
        required: parameter.required,
        kind,
        takes,
        last: found.filter(|value| *value != MASK).cloned().unwrap_or_default(),
        has_last: found.is_some(),
        default,
    }
}

/// Whether whoever may not change all channels has chosen some: none would mean all.
///
/// # Errors
/// That none was.
pub(super) fn has_chosen(form: &[(String, String)]) -> Result<()> {
    let is_to_choose = form.iter().any(|(name, _)| name == "chosen");
    if is_to_choose && !form.iter().any(|(name, _)| name.starts_with("c.")) {
        return Err(Error::bad_request(
            "no channel is chosen, which means all of them, and your token may not change all of \
             them; choose one at least",
        ));
    }
    Ok(())
}

/// What the form says, as the API's request: a field that is as it was says nothing, so that
/// channels keep values of their own.
fn request(form: Vec<(String, String)>, last: &BTreeMap<String, String>) -> PushRequest {
    let mut request = PushRequest::default();
    for (name, value) in form {
        let value = unix_lines(&value);
        if let Some(parameter) = name.strip_prefix("p.") {
            let is_as_it_was = last.get(parameter).is_some_and(|last| unix_lines(last) == value);
            if !value.is_empty() && !is_as_it_was {
                request.params.insert(parameter.to_owned(), value);
            }
        } else if let Some(channel) = name.strip_prefix("c.") {
            request.channels.get_or_insert_default().push(channel.to_owned());
        } else if name == "preview" {
            request.dry_run = true;
        }
    }
    request
}

/// A text with the ends of its lines as a program here writes them: a browser sends each as CR LF,
/// whatever it was.
fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The form again as somebody has filled it in, with what that would change. Secrets are not sent
/// back.
async fn preview(
    api: &Api,
    token: &TokenRow,
    service: Service,
    request: &PushRequest,
    previewed: Pushed,
) -> Result<Response> {
    let mut frame = frame(api, token, "Deploy", NavEntry::Services).await?;
    frame.title = format!("Deploy {}", service.name);
    let mut fields = fields(api, &service).await?;
    for field in fields.iter_mut().filter(|field| field.kind != FieldKind::Hidden) {
        if let Some(value) = request.params.get(&field.name) {
            field.last.clone_from(value);
        }
    }
    let chosen = request.channels.clone().unwrap_or_default();
    page(pages::deploy(&frame, &DeployForm { service, fields, chosen, preview: Some(previewed) }))
}

async fn release(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Deployer(caller): Deployer,
    PathParams(which): PathParams<Which>,
    FormBody(form): FormBody<Vec<(String, String)>>,
) -> Result<Response> {
    has_chosen(&form)?;
    let service = find_service(&api, &which.application, &which.service).await?;
    let request = request(form, &last_values(&api, service.id).await?);
    let Which { application, service: name } = which;
    let pushed = api.driver.push(application, name, request.clone(), caller).await?;
    if request.dry_run {
        return preview(&api, &token, service, &request, pushed).await;
    }
    Ok(on_to(&format!("/releases/{}", pushed.release)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_as_it_was_or_empty_says_nothing() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let last = BTreeMap::from([
            pair("image", "v1"),
            pair("lines", "a\nb"),
            pair("foreign", "\r\na\r\nb\rc\n"),
        ]);
        let form = vec![
            pair("p.image", "v1"),
            pair("p.lines", "a\r\nb"),
            pair("p.foreign", "\r\na\r\nb\r\nc\r\n"),
            pair("p.key", ""),
            pair("p.replicas", "3"),
            pair("other", "x"),
        ];
        let said = request(form, &last);
        assert_eq!(said.params, BTreeMap::from([pair("replicas", "3")]));
        assert_eq!(said.channels, None, "all of them");
        let said = request(vec![pair("c.eu", "on"), pair("c.us", "on")], &last);
        assert_eq!(said.channels, Some(vec!["eu".to_owned(), "us".to_owned()]));
    }

    #[test]
    fn whoever_may_not_change_all_channels_chooses_some() {
        let form = |names: &[&str]| -> Vec<(String, String)> {
            names.iter().map(|name| ((*name).to_owned(), "on".to_owned())).collect()
        };
        assert!(has_chosen(&form(&["p.size"])).is_ok(), "all of them");
        assert!(has_chosen(&form(&["chosen", "c.eu"])).is_ok());
        assert!(has_chosen(&form(&["chosen", "p.size"])).is_err());
    }
}
