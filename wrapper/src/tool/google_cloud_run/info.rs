//! What people look for of a service. Called by `google_cloud_run`. Pure.

use schema::output::{GetInfoOutput, Info};
use serde_json::Value;

use super::live::{LiveService, condition_text};
use super::object::console;

/// What getInfo prints; of a service that is not there, that.
pub(super) fn output(
    live: Option<&LiveService>,
    name: &str,
    project: &str,
    region: &str,
) -> GetInfoOutput {
    let mut outputs = Vec::new();
    let mut add = |name: &str, text: String| {
        if !text.is_empty() {
            outputs.push(Info { name: name.to_owned(), text });
        }
    };
    let Some(live) = live else {
        add("service", format!("there is no service `{name}` in {region} of {project}"));
        return GetInfoOutput { outputs };
    };
    add("url", live.text("/status/url").to_owned());
    add("latest ready revision", live.text("/status/latestReadyRevisionName").to_owned());
    let traffic: Vec<String> = live
        .serving()
        .iter()
        .map(|(revision, percent)| format!("{percent} % to {revision}"))
        .collect();
    add("traffic", traffic.join(", "));
    add("image", images(live).join(", "));
    for condition in live.conditions() {
        let since = condition["lastTransitionTime"].as_str();
        let since = since.map(|since| format!(", since {since}")).unwrap_or_default();
        let kind = condition["type"].as_str().unwrap_or_default();
        add(&format!("condition {kind}"), format!("{}{since}", condition_text(condition)));
    }
    add("console", console(name, "metrics", (project, region)));
    GetInfoOutput { outputs }
}

/// Those of all containers.
fn images(live: &LiveService) -> Vec<&str> {
    let containers = live.service().pointer("/spec/template/spec/containers");
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    containers.filter_map(|container| container["image"].as_str()).collect()
}
