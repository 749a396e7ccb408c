//! A service as `describe-services` has it, and how to get at what is in it. Called by all others
//! here.

use schema::time::Timestamp;
use serde_json::Value;

use super::super::Fault;
use super::cli::Aws;
use super::definition::EcsPlace;

/// A field that is a text; empty where it is not there.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// A field that is a list; empty where it is not there.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// A field that counts something; 0 where it is not there.
pub(super) fn count(value: &Value, field: &str) -> i64 {
    value[field].as_i64().unwrap_or_default()
}

/// A field that is an instant: seconds since 1970, or a text as version 2 of the CLI has it.
pub(super) fn instant(value: &Value, field: &str) -> Option<Timestamp> {
    match &value[field] {
        Value::String(text) => text.parse().ok(),
        // What no instant can be becomes the nearer end.
        Value::Number(seconds) => seconds
            .as_f64()
            .map(|seconds| Timestamp::from_millis((seconds * 1000.0).round() as i64)),
        _ => None,
    }
}

/// The service, if there is one or has been one lately; whether it still is its status says.
pub(super) fn describe(aws: &mut Aws, place: &EcsPlace) -> Result<Option<Value>, Fault> {
    let arguments = ["--cluster", &place.cluster, "--services", &place.service];
    let mut answer = aws.ecs("describe-services", &arguments)?;
    if let Some(service) = answer["services"].as_array_mut().and_then(Vec::pop) {
        return Ok(Some(service));
    }
    match list(&answer, "failures").first().map(|failure| text(failure, "reason")) {
        Some("MISSING") => Ok(None),
        reason => Err(Fault::failed(format!(
            "ECS tells nothing of the service `{}` of the cluster `{}`: {}",
            place.service,
            place.cluster,
            reason.filter(|reason| !reason.is_empty()).unwrap_or("it gives no reason")
        ))),
    }
}

/// Whether it is deleted, and only remembered.
pub(super) fn is_gone(service: &Value) -> bool {
    text(service, "status") == "INACTIVE"
}

/// Whether it is being deleted: it takes no change and starts no task.
pub(super) fn is_going(service: &Value) -> bool {
    text(service, "status") == "DRAINING"
}

/// The deployment that is meant to serve.
pub(super) fn primary(service: &Value) -> Option<&Value> {
    list(service, "deployments").iter().find(|deployment| text(deployment, "status") == "PRIMARY")
}

/// `web:7` of an ARN, or of what is no ARN.
pub(super) fn short(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}
