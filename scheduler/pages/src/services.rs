//! The list of services.

use askama::Template;
use schema::api::{Page, ServiceSummary};
use schema::status::Status;

use crate::frame::Frame;
use crate::links::{Linked, query};
use crate::{Rendered, render};

/// What the list is narrowed to and how it is ordered, as its address says; empty texts mean
/// nothing.
#[derive(Debug, Clone, Default)]
pub struct ServicesFilter {
    pub name: String,
    pub application: String,
    pub channel: String,
    pub status: Option<Status>,
    /// Nothing, or `changed`.
    pub order: String,
}

impl ServicesFilter {
    fn is_narrowed(&self) -> bool {
        self.status.is_some()
            || [&self.name, &self.application, &self.channel].iter().any(|text| !text.is_empty())
    }

    fn is_status(&self, status: &Status) -> bool {
        self.status == Some(*status)
    }

    fn next(&self, cursor: &str) -> String {
        let status = self.status.map_or("", Status::as_str);
        let pairs = [
            ("name", self.name.as_str()),
            ("application", &self.application),
            ("channel", &self.channel),
            ("status", status),
            ("order", &self.order),
            ("cursor", cursor),
        ];
        query("/services", &pairs)
    }
}

#[derive(Template)]
#[template(path = "services.html")]
struct ServicesView<'a> {
    frame: &'a Frame,
    filter: &'a ServicesFilter,
    list: &'a Page<ServiceSummary>,
    /// Those that can be chosen.
    applications: &'a [String],
    next: Option<String>,
}

/// A page of the list. `applications`: names to choose from.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn services(
    frame: &Frame,
    filter: &ServicesFilter,
    list: &Page<ServiceSummary>,
    applications: &[String],
) -> Rendered {
    let next = list.next_cursor.as_deref().map(|cursor| filter.next(cursor));
    render(&ServicesView { frame, filter, list, applications, next })
}
