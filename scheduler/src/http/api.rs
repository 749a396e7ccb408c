//! The routes, one resource a file. A handler extracts, calls one function, returns.

mod applications;
mod configs;
mod events;
mod files;
mod instances;
mod jobs;
mod logs;
mod notifications;
mod open;
mod overview;
mod releases;
mod runtimes;
mod secrets;
mod services;
mod sign_in;
mod tokens;
mod uploads;
mod whoami;

use super::openapi::Routes;

pub(super) use jobs::find as find_job;
pub(super) use logs::{placed, read as read_output};
pub(super) use releases::find as find_release;
pub(super) use runtimes::found as find_runtime;
pub(super) use services::find as find_service;

/// Every route.
pub(super) fn routes() -> Routes {
    let families = [
        open::routes,
        applications::routes,
        services::routes,
        overview::routes,
        instances::routes,
        releases::routes,
        jobs::routes,
        logs::routes,
        files::routes,
        runtimes::routes,
        events::routes,
        notifications::routes,
        configs::routes,
        secrets::routes,
        tokens::routes,
        whoami::routes,
        sign_in::routes,
        uploads::routes,
    ];
    families.into_iter().fold(Routes::new(), |routes, family| family(routes))
}
