//! From what people type, a name or an id, to rows; what is not there is a 404 that says how to
//! find what is.

use std::fmt::Display;

use schema::api::{Job, Release};
use schema::id::{ApplicationName, ChannelName, JobId, ReleaseId, ServiceName};

use super::Api;
use super::error::{Error, Result};
use crate::store::{ALIKE_LIMIT, ApplicationRow, ChannelRow, ServiceRow};

/// Filters by application, service and channel, resolved.
#[derive(Debug, Default)]
pub(super) struct FilterScope {
    pub(super) application: Option<ApplicationRow>,
    pub(super) service: Option<ServiceRow>,
    pub(super) channel: Option<ChannelRow>,
}

impl FilterScope {
    /// Their names, which log entries carry.
    pub(super) fn names(
        &self,
    ) -> (Option<ApplicationName>, Option<ServiceName>, Option<ChannelName>) {
        (
            self.application.as_ref().map(|row| row.name.clone()),
            self.service.as_ref().map(|row| row.name.clone()),
            self.channel.as_ref().map(|row| row.name.clone()),
        )
    }
}

/// The application of this name or id.
pub(super) async fn application(api: &Api, name: &str) -> Result<ApplicationRow> {
    api.store.find_application(name).await?.ok_or_else(|| no_application(name))
}

pub(super) fn no_application(name: &str) -> Error {
    Error::not_found(format!(
        "there is no application `{name}`; `pvnctl applications list` shows those there are"
    ))
}

pub(super) fn no_service(application: &str, name: &str) -> Error {
    Error::not_found(format!(
        "there is no service `{name}` in application `{application}`; `pvnctl services list --app \
         {application}` shows those there are"
    ))
}

pub(super) fn no_channel(application: &str, name: &str) -> Error {
    Error::not_found(format!(
        "there is no release channel `{name}` in application `{application}`; `pvnctl \
         applications get {application}` shows those there are"
    ))
}

/// A job id, as the path has it: whole, as jobs themselves know theirs.
pub(super) fn job_id(text: &str) -> Result<JobId> {
    text.parse().map_err(|_| no_job(text))
}

pub(super) fn no_job(id: &str) -> Error {
    Error::not_found(format!("there is no job `{id}`; `pvnctl jobs list` shows those there are"))
}

/// The job whose id this is, or begins so: `job-44b5ba11`, or the digits alone.
pub(super) async fn job(api: &Api, text: &str) -> Result<JobId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let prefix = id_prefix(JobId::PREFIX, text).ok_or_else(|| no_job(text))?;
    let found = api.store.jobs_beginning(&prefix).await?;
    let mut candidates = Vec::new();
    for id in &found {
        // Where it is clear, nothing has to be said of it.
        let job = if found.len() > 1 { api.store.job(*id).await.ok().flatten() } else { None };
        let of = |job: Job| {
            format!("{} of {}/{}@{}", job.kind, job.application, job.service, job.channel)
        };
        candidates.push((*id, job.map(of)));
    }
    only_one("job", text, candidates)?.ok_or_else(|| no_job(text))
}

/// The same for a release.
pub(super) async fn release(api: &Api, text: &str) -> Result<ReleaseId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let prefix = id_prefix(ReleaseId::PREFIX, text).ok_or_else(|| no_release(text))?;
    let found = api.store.releases_beginning(&prefix).await?;
    let mut candidates = Vec::new();
    for id in &found {
        let made = if found.len() > 1 { api.store.release(*id).await.ok().flatten() } else { None };
        let of =
            |made: Release| format!("{} of {}/{}", made.version, made.application, made.service);
        candidates.push((*id, made.map(of)));
    }
    only_one("release", text, candidates)?.ok_or_else(|| no_release(text))
}

pub(super) fn no_release(id: &str) -> Error {
    Error::not_found(format!(
        "there is no release `{id}`; `pvnctl releases list` shows those there are"
    ))
}

/// How the ids begin that people may mean by this; `None` where it is no beginning of one.
fn id_prefix(kind: &str, text: &str) -> Option<String> {
    let digits = text.strip_prefix(kind).unwrap_or(text);
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (!digits.is_empty() && digits.len() < 32 && digits.bytes().all(is_digit))
        .then(|| format!("{kind}{digits}"))
}

/// What is meant, where that is clear; else the candidates, to choose from: each with what it is
/// of, where that can be read.
fn only_one<T: Copy + Display>(
    what: &str,
    text: &str,
    found: Vec<(T, Option<String>)>,
) -> Result<Option<T>> {
    let [(first, _), _, ..] = found[..] else { return Ok(found.first().map(|(id, _)| *id)) };
    let shown = usize::try_from(ALIKE_LIMIT).unwrap_or(found.len());
    let mut ids: Vec<String> = found
        .iter()
        .take(shown)
        .map(|(id, of)| match of {
            Some(of) => format!("`{id}` ({of})"),
            None => format!("`{id}`"),
        })
        .collect();
    if found.len() > shown {
        ids.push("more".to_owned());
    }
    let last = ids.pop().unwrap_or_else(|| format!("`{first}`"));
    Err(Error::bad_request(format!(
        "`{text}` is the beginning of more than one {what} id: {} and {last}; give more of its \
         digits",
        ids.join(", ")
    )))
}

/// The rows behind filters of what was, also of what is deleted by now. A service or channel is
/// looked up in the application, so it needs one.
pub(super) async fn scope(
    api: &Api,
    app: Option<&str>,
    service: Option<&str>,
    channel: Option<&str>,
) -> Result<FilterScope> {
    let Some(app) = app else {
        return match service.map(|_| "service").or(channel.map(|_| "channel")) {
            Some(filter) => Err(Error::bad_request(format!(
                "the filter `{filter}` needs the filter `application` beside it, because names \
                 repeat between applications"
            ))),
            None => Ok(FilterScope::default()),
        };
    };
    let row = api.store.known_application(app).await?.ok_or_else(|| no_application(app))?;
    let service = match service {
        Some(name) => Some(
            api.store.known_service(row.id, name).await?.ok_or_else(|| no_service(app, name))?,
        ),
        None => None,
    };
    let channel = match channel {
        Some(name) => Some(
            api.store.known_channel(row.id, name).await?.ok_or_else(|| no_channel(app, name))?,
        ),
        None => None,
    };
    Ok(FilterScope { application: Some(row), service, channel })
}
