//! The form that goes back to an earlier version, with what that changes.

use std::collections::BTreeSet;

use askama::Template;
use schema::api::{Release, Service};
use schema::id::ChannelName;

use crate::frame::Frame;
use crate::links::service_path;
use crate::{Rendered, render};

/// What the form shows.
#[derive(Debug)]
pub struct RollbackForm {
    pub service: Service,
    /// What there is now.
    pub newest: Option<Release>,
    /// Earlier releases, newest first, each version once.
    pub earlier: Vec<Release>,
    /// The version that is compared.
    pub version: String,
}

#[derive(Template)]
#[template(path = "rollback.html")]
struct RollbackView<'a> {
    frame: &'a Frame,
    shown: &'a RollbackForm,
    path: String,
}

/// A parameter's name, with its values now and then.
type ChangedValue<'a> = (&'a String, Option<&'a String>, Option<&'a String>);

impl RollbackView<'_> {
    /// Whoever goes back chooses channels anew.
    fn is_checked(&self, _: &ChannelName) -> bool {
        false
    }

    fn is_chosen(&self, one: &Release) -> bool {
        self.shown.version == one.version
    }

    fn chosen(&self) -> Option<&Release> {
        self.shown.earlier.iter().find(|one| self.is_chosen(one))
    }

    fn changed<'b>(&'b self, to: &'b Release) -> Vec<ChangedValue<'b>> {
        let now = self.shown.newest.as_ref().map(|newest| &newest.params);
        let names: BTreeSet<_> =
            now.into_iter().chain([&to.params]).flat_map(|one| one.keys()).collect();
        let values = names
            .into_iter()
            .map(|name| (name, now.and_then(|params| params.get(name)), to.params.get(name)));
        values.filter(|(_, now, then)| now != then).collect()
    }

    fn is_other_config(&self, to: &Release) -> bool {
        let now = self.shown.newest.as_ref().and_then(|newest| newest.config_version);
        now != to.config_version
    }
}

/// The form that goes back to an earlier version.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn rollback(frame: &Frame, shown: &RollbackForm) -> Rendered {
    let path = service_path(&shown.service.application, &shown.service.name);
    render(&RollbackView { frame, shown, path })
}
