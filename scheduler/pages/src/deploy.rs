//! The form that makes a release, from the parameters that a service declares.

use askama::Template;
use schema::api::{Pushed, Service};
use schema::id::ChannelName;

use crate::frame::Frame;
use crate::links::service_path;
use crate::{Rendered, render};

/// How a value is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// One line.
    Line,
    /// A whole number.
    Number,
    /// What nobody beside may read.
    Hidden,
    /// Many lines.
    Text,
}

/// A parameter as the form asks for it.
#[derive(Debug, Clone)]
pub struct DeployField {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
    pub kind: FieldKind,
    /// What it takes, in words.
    pub takes: String,
    /// What the newest release has; empty where it has none, or where it is a secret.
    pub last: String,
    /// Whether the newest release has a value, be it one that is not shown.
    pub has_last: bool,
    /// What is taken where there is none.
    pub default: Option<String>,
}

impl DeployField {
    fn must_be_given(&self) -> bool {
        self.required && !self.has_last && self.default.as_ref().is_none_or(String::is_empty)
    }

    fn input_type(&self) -> &'static str {
        match self.kind {
            FieldKind::Line | FieldKind::Text => "text",
            FieldKind::Number => "number",
            FieldKind::Hidden => "password",
        }
    }

    fn placeholder(&self) -> String {
        match (&self.default, self.kind, self.has_last) {
            (_, FieldKind::Hidden, true) => "as it was".to_owned(),
            (Some(default), _, false) => format!("default: {default}"),
            _ => String::new(),
        }
    }
}

/// What the form shows.
#[derive(Debug)]
pub struct DeployForm {
    pub service: Service,
    pub fields: Vec<DeployField>,
    /// The channels that somebody chose, where the form was sent to see what it would change.
    pub chosen: Vec<String>,
    /// What it would change then.
    pub preview: Option<Pushed>,
}

#[derive(Template)]
#[template(path = "deploy.html")]
struct DeployView<'a> {
    frame: &'a Frame,
    shown: &'a DeployForm,
    path: String,
}

impl DeployView<'_> {
    fn is_checked(&self, channel: &ChannelName) -> bool {
        self.shown.chosen.iter().any(|chosen| chosen == channel.as_str())
    }
}

/// The form that makes a release.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn deploy(frame: &Frame, shown: &DeployForm) -> Rendered {
    let path = service_path(&shown.service.application, &shown.service.name);
    render(&DeployView { frame, shown, path })
}
