//! Lists of what there is and of what happened: releases, runtimes, the audit.

use askama::Template;
use schema::api::{LogEntry, Page, Release, Runtime};

use crate::frame::Frame;
use crate::links::{query, service_path};
use crate::{Rendered, render};

#[derive(Template)]
#[template(path = "releases.html")]
struct ReleasesView<'a> {
    frame: &'a Frame,
    application: &'a str,
    service: &'a str,
    list: &'a Page<Release>,
    next: Option<String>,
}

/// A page of the list of releases; empty texts narrow nothing.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn releases(frame: &Frame, application: &str, service: &str, list: &Page<Release>) -> Rendered {
    let next = list.next_cursor.as_deref().map(|cursor| {
        let pairs = [("application", application), ("service", service), ("cursor", cursor)];
        query("/releases", &pairs)
    });
    render(&ReleasesView { frame, application, service, list, next })
}

#[derive(Template)]
#[template(path = "release.html")]
struct ReleaseView<'a> {
    frame: &'a Frame,
    release: &'a Release,
    service_path: String,
}

/// The page of a release.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn release(frame: &Frame, release: &Release) -> Rendered {
    let service_path = service_path(&release.application, &release.service);
    render(&ReleaseView { frame, release, service_path })
}

#[derive(Template)]
#[template(path = "runtimes.html")]
struct RuntimesView<'a> {
    frame: &'a Frame,
    list: &'a Page<Runtime>,
    next: Option<String>,
}

/// A page of the list of runtimes.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn runtimes(frame: &Frame, list: &Page<Runtime>) -> Rendered {
    let next = list.next_cursor.as_deref().map(|cursor| query("/runtimes", &[("cursor", cursor)]));
    render(&RuntimesView { frame, list, next })
}

/// What the audit is narrowed to, as its address says; empty texts mean nothing.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub application: String,
    pub service: String,
    pub kind: String,
    /// Nothing: what people did. Else everything.
    pub all: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditView<'a> {
    frame: &'a Frame,
    filter: &'a AuditFilter,
    entries: &'a [LogEntry],
    next: Option<String>,
}

/// A page of what happened.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn audit(frame: &Frame, filter: &AuditFilter, list: &Page<LogEntry>) -> Rendered {
    let next = list.next_cursor.as_deref().map(|cursor| {
        let pairs = [
            ("application", filter.application.as_str()),
            ("service", &filter.service),
            ("kind", &filter.kind),
            ("all", &filter.all),
            ("cursor", cursor),
        ];
        query("/audit", &pairs)
    });
    render(&AuditView { frame, filter, entries: &list.items, next })
}
