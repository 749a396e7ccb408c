//! A service as `describe-services` has it, and how to get at what is in it. Called by all others
//! here.

use schema::time::Timestamp;
use serde_json::{Value, json};

use super::super::Fault;
use super::super::answers::SharedAnswers;
use super::cli::Aws;
use super::definition::EcsPlace;

/// How many services `describe-services` tells of at once. Source: its reference.
const AT_ONCE: usize = 10;

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
    found(aws.ecs("describe-services", &arguments)?, place)
}

/// The same, as another job of the scheduler was told of late, where that will do.
pub(super) fn describe_shared(
    aws: &mut Aws,
    place: &EcsPlace,
    answers: Option<&SharedAnswers>,
) -> Result<Option<Value>, Fault> {
    let Some(answers) = answers else { return describe(aws, place) };
    let answer = answers.of(&place.service, AT_ONCE - 1, |names| {
        let mut arguments = vec!["--cluster", &place.cluster, "--services"];
        arguments.extend(names.iter().map(String::as_str));
        let answer = aws.ecs("describe-services", &arguments)?;
        Ok(match names {
            [name] => vec![(name.clone(), answer)],
            _ => of_each(&answer),
        })
    })?;
    match answer {
        Some(answer) => found(answer, place),
        None => describe(aws, place),
    }
}

/// An answer of several services as one of each.
fn of_each(answer: &Value) -> Vec<(String, Value)> {
    let services = list(answer, "services")
        .iter()
        .map(|service| (text(service, "serviceName").to_owned(), json!({"services": [service]})));
    let failures = list(answer, "failures")
        .iter()
        .map(|failure| (short(text(failure, "arn")).to_owned(), json!({"failures": [failure]})));
    services.chain(failures).collect()
}

/// The service that was asked for in an answer about it alone.
fn found(mut answer: Value, place: &EcsPlace) -> Result<Option<Value>, Fault> {
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
