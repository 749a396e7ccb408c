//! What a new data directory found to be as desired although nothing was applied from it. Versions
//! begin anew there, and a fetch that compares versions takes what another directory released under
//! the same name, as on a fresh checkout, for what is desired now. Called at the end of `dev
//! --until-converged`.

use pvnctl::client::Client;
use pvnctl::failure::Failure;
use schema::api::{Job, Service};
use schema::status::JobKind;

/// One sentence for each channel of a service that is so.
pub(super) async fn unapplied(client: &Client, service: &Service) -> Result<Vec<String>, Failure> {
    let mut told = Vec::new();
    // Only structured output names versions.
    for instance in service.channels.iter().filter(|instance| !instance.objects.is_empty()) {
        let query = [
            ("application", service.application.to_string()),
            ("service", service.name.to_string()),
            ("channel", instance.channel.to_string()),
            ("kind", JobKind::Apply.to_string()),
        ];
        let applies = client.list::<Job>(&["v1", "jobs"], &query, Some(1)).await?;
        if applies.items.is_empty() && applies.unreadable.is_empty() {
            let version = instance.converged_version.as_deref().unwrap_or_default();
            told.push(format!(
                "warning: {}/{} in {} was found at {version}, and nothing was applied from this \
                 new data directory, in which versions begin anew: what another one released as \
                 {version} may be something else. Keep the data directory from run to run \
                 (`--data-dir`), or have `bundleName` name versions by what they hold",
                service.application, service.name, instance.channel
            ));
        }
    }
    Ok(told)
}
