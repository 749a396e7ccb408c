//! Services that a file named and names no more: files take nothing away, so what was renamed goes
//! on under its old name too. Called by `configs`.

use std::collections::{BTreeMap, BTreeSet};

use config::Body;
use schema::api::{ConfigsRequest, Diagnostic};
use schema::id::ApplicationName;

use super::super::Refusal;
use super::configs::{PlannedApplication, SubmittedDocument};
use super::deletions::Deletions;
use super::{Planner, warning};
use crate::store::DocumentKind;

/// Most services that are named. Source: a screen of a terminal.
const NAMED_LIMIT: usize = 10;

impl Planner {
    /// Warns of each service that goes on although the file that it came from is among these and
    /// has it no more, where a new service of its application may have taken its place.
    pub(super) async fn warn_of_what_stays(
        &self,
        request: &ConfigsRequest,
        given: &[SubmittedDocument],
        applied: &BTreeMap<ApplicationName, PlannedApplication>,
        deletions: &Deletions,
    ) -> Result<Vec<Diagnostic>, Refusal> {
        let files: BTreeSet<&str> = request.files.iter().map(|file| file.path.as_str()).collect();
        let services = || {
            given.iter().filter_map(|given| match given.document.body() {
                Body::Service(service) => Some((given, service)),
                Body::Runtime(_) | Body::Application(_) => None,
            })
        };
        let mut warnings = Vec::new();
        for (application, of) in applied {
            let new: Vec<_> = services()
                .filter(|(given, service)| given.is_new() && service.application == *application)
                .map(|(_, service)| format!("`{}`", service.name))
                .collect();
            if new.is_empty() {
                continue;
            }
            let is_given = |name: &str| {
                services().any(|(_, service)| {
                    service.application == *application && service.name.as_str() == name
                })
            };
            let stored =
                self.store.documents(DocumentKind::Service, application.as_str(), None).await?;
            let dropped = stored.iter().filter(|stored| {
                files.contains(stored.source.file.as_str()) && !is_given(&stored.key.name)
            });
            let stays = dropped.filter(|stored| !deletions.has(&stored.key));
            for stored in stays.take(NAMED_LIMIT) {
                let (name, file) = (&stored.key.name, &stored.source.file);
                let Some(row) = self.store.find_service(of.row.id, name).await? else { continue };
                if self.store.pursued(row.id).await?.is_empty() {
                    continue;
                }
                let message = format!(
                    "{file} has no service `{name}` of application `{application}` any more, and \
                     it goes on as it was released: files take nothing away without `--prune`"
                );
                let help = format!(
                    "where it has another name now (new here: {}), both run their commands from \
                     the next release on, and undo each other where they are for the same thing; \
                     `pvnctl services delete {application}/{name}` ends it",
                    new.join(", ")
                );
                warnings.push(warning(format!("{application}/{name}"), message, help));
            }
        }
        Ok(warnings)
    }
}
