//! The web pages, as pure functions: from the answers of the API to HTML. No IO, no clock. Called
//! by the scheduler's `http`, which asks the same functions that serve the API, so that a page
//! never says anything else than `pvnctl` does.
//!
//! What always holds: what comes from people, commands and configs is text and never markup;
//! nothing is asked of another host; without script everything can be read and every form sent.

pub mod ansi;
mod approvals;
pub mod assets;
mod configs;
mod deploy;
mod door;
pub mod frame;
mod jobs;
mod links;
mod markup;
mod offers;
mod overview;
mod records;
mod rollback;
mod runtime;
mod service;
mod services;
mod together;

use askama::Template;

pub use approvals::{OpenQuestion, approvals};
pub use configs::{DocumentDetails, DocumentPlace, DocumentRow, configs, document};
pub use deploy::{DeployField, DeployForm, FieldKind, deploy};
pub use door::{problem, sign_in};
pub use jobs::{JobsFilter, PrintedOutput, job, jobs};
pub use links::{instance_path, service_path};
pub use overview::{ComingUp, Overview, overview};
pub use records::{AuditFilter, audit, release, releases, runtimes};
pub use rollback::{RollbackForm, rollback};
pub use runtime::{RunningPlace, RuntimeDetails, runtime};
pub use service::{ServiceDetails, most_urgent, service};
pub use services::{ServicesFilter, services};
pub use together::StreamMerge;

/// A page, or why the template failed, which is a fault of ours.
pub type Rendered = Result<String, askama::Error>;

fn render(view: &impl Template) -> Rendered {
    view.render()
}
