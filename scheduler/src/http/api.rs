//! The routes, one resource a file. A handler extracts, calls one function, returns.

mod applications;
mod configs;
mod events;
mod files;
mod instances;
mod jobs;
mod logs;
mod open;
mod overview;
mod releases;
mod runtimes;
mod secrets;
mod services;
mod tokens;
mod uploads;
mod whoami;

use super::openapi::Routes;

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
        configs::routes,
        secrets::routes,
        tokens::routes,
        whoami::routes,
        uploads::routes,
    ];
    families.into_iter().fold(Routes::new(), |routes, family| family(routes))
}
