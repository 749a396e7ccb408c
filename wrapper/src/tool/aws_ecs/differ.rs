//! What a definition says, held against what is there: only what it says counts, and what ECS fills
//! in by itself is no difference. Pure. Called by `fetch`, `apply` and `revision`.
//!
//! What is taken for a difference is repaired by an apply, again and again if ECS writes it in
//! another way than the user does. So whatever ECS is known to rewrite is left out or equal here.

use schema::shown::beginning;
use serde_json::{Map, Value};

use super::service::{list, text};

/// What of a service definition is found in `describe-services`, under the same name.
const COMPARED: &[&str] = &[
    "desiredCount",
    "launchType",
    "capacityProviderStrategy",
    "platformVersion",
    "loadBalancers",
    "serviceRegistries",
    "networkConfiguration",
    "deploymentConfiguration",
    "deploymentController",
    "placementConstraints",
    "placementStrategy",
    "healthCheckGracePeriodSeconds",
    "schedulingStrategy",
    "availabilityZoneRebalancing",
    "enableECSManagedTags",
    "enableExecuteCommand",
];

/// What `update-service` takes and `describe-services` does not show as it was written: it goes
/// along with each update, and no fetch compares it.
pub(super) const UNSEEN: &[&str] =
    &["serviceConnectConfiguration", "volumeConfigurations", "vpcLatticeConfigurations"];

/// What no update can change.
pub(super) const FIXED: &[&str] = &["launchType", "schedulingStrategy"];

/// What of a container only a person changes. The rest ECS fills in.
const OF_CONTAINER: &[&str] = &["image", "command", "entryPoint", "environment", "secrets"];

/// Words that say what is so without them. Source: "CreateService" of the API reference.
const DEFAULTS: &[&str] = &["", "DISABLED", "ECS", "EC2", "LATEST", "NONE", "REPLICA", "ROLLING"];

/// Most bytes of a value in a sentence.
const VALUE_BYTES: usize = 100;

/// A field that is not as its definition says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Its first part: what an update has to name.
    pub(super) field: String,
    /// For people: where, what was wanted, what was found.
    pub(super) words: String,
}

/// What of a service is not as its definition says.
pub(super) fn of_service(definition: &Map<String, Value>, service: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (field, wanted) in definition {
        if !COMPARED.contains(&field.as_str()) {
            continue;
        }
        collect(field.clone(), wanted, &service[field], &mut |path, wanted, found| {
            let value = |value: &Value| beginning(&value.to_string(), VALUE_BYTES);
            let found = if found.is_null() { "nothing".to_owned() } else { value(found) };
            let words = format!("{path}: {} wanted, {found} found", value(wanted));
            differences.push(Difference { field: field.clone(), words });
        });
    }
    differences
}

/// What of a registered task definition is not as the one that is wanted. Names only: values may be
/// secrets.
pub(super) fn of_containers(wanted: &Value, found: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    for container in list(wanted, "containerDefinitions") {
        let name = text(container, "name");
        let there = list(found, "containerDefinitions").iter().find(|at| text(at, "name") == name);
        let Some(there) = there else {
            differences.push(format!("the container {name} is missing"));
            continue;
        };
        let fields =
            OF_CONTAINER.iter().filter(|field| !same(&container[**field], &there[**field]));
        differences.extend(fields.map(|field| format!("{field} of the container {name}")));
    }
    differences
}

/// Names the deepest places in which two values differ.
fn collect(
    path: String,
    wanted: &Value,
    found: &Value,
    tell: &mut impl FnMut(String, &Value, &Value),
) {
    match wanted {
        Value::Object(fields) if found.is_object() => {
            for (field, wanted) in fields {
                collect(format!("{path}.{field}"), wanted, &found[field], tell);
            }
        }
        _ if same(wanted, found) => {}
        _ => tell(path, wanted, found),
    }
}

/// Whether all is so that is wanted. Lists are sets: ECS keeps no order.
fn same(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (_, Value::Null) => is_default(wanted),
        (Value::Null, _) => true,
        (Value::Object(fields), Value::Object(_)) => {
            fields.iter().all(|(field, wanted)| same(wanted, &found[field]))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            let mut left: Vec<&Value> = found.iter().collect();
            wanted.len() == found.len()
                && wanted.iter().all(|wanted| {
                    let at = left.iter().position(|found| same(wanted, found));
                    at.map(|at| left.swap_remove(at)).is_some()
                })
        }
        (Value::String(wanted), Value::String(found)) => same_word(wanted, found),
        (Value::Number(wanted), Value::Number(found)) => wanted.as_f64() == found.as_f64(),
        _ => wanted == found,
    }
}

fn same_word(wanted: &str, found: &str) -> bool {
    wanted == found
        // The fields of placement strategies come back in capitals.
        || (wanted.eq_ignore_ascii_case(found) && !wanted.contains(['/', ':', '.']))
        // Of a platform version the number is told where `LATEST` was asked for.
        || wanted == "LATEST"
        || [wanted, found] == ["host", "instanceId"]
}

/// Whether this is how it is where nobody says anything.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => DEFAULTS.contains(&value.as_str()),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.values().all(is_default),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(definition: Value, service: Value, expected: &[&str]) {
        let definition = definition.as_object().unwrap().clone();
        let words: Vec<String> =
            of_service(&definition, &service).into_iter().map(|at| at.words).collect();
        assert_eq!(words, expected, "{definition:?}");
    }

    #[test]
    fn only_what_the_definition_says_is_compared() {
        let service = json!({
            "desiredCount": 5, "launchType": "FARGATE", "platformVersion": "1.4.0",
            "enableExecuteCommand": true,
            "networkConfiguration": {"awsvpcConfiguration": {
                "subnets": ["subnet-b", "subnet-a"], "securityGroups": [],
                "assignPublicIp": "DISABLED"
            }},
            "deploymentConfiguration": {
                "maximumPercent": 200, "minimumHealthyPercent": 100, "strategy": "ROLLING"
            },
        });
        check(json!({}), service.clone(), &[]);
        check(
            json!({
                "desiredCount": 2, "platformVersion": "LATEST",
                "deploymentConfiguration": {"maximumPercent": 150},
                "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-c"]}},
            }),
            service.clone(),
            &[
                "desiredCount: 2 wanted, 5 found",
                "deploymentConfiguration.maximumPercent: 150 wanted, 200 found",
                "networkConfiguration.awsvpcConfiguration.subnets: [\"subnet-c\"] wanted, \
                 [\"subnet-b\",\"subnet-a\"] found",
            ],
        );
        check(
            json!({
                "serviceName": "web", "taskDefinition": "old", "tags": [{"key": "a"}],
                "desiredCount": null, "enableExecuteCommand": true,
                "networkConfiguration": {"awsvpcConfiguration": {
                    "subnets": ["subnet-a", "subnet-b"]
                }},
                "deploymentConfiguration": {"maximumPercent": 200.0},
            }),
            service,
            &[],
        );
    }

    #[test]
    fn what_ecs_fills_in_or_writes_otherwise_is_no_difference() {
        check(
            json!({
                "enableExecuteCommand": false, "loadBalancers": [], "schedulingStrategy": "REPLICA",
                "deploymentController": {"type": "ECS"}, "healthCheckGracePeriodSeconds": 0,
                "networkConfiguration": {"awsvpcConfiguration": {"assignPublicIp": "DISABLED"}},
                "placementStrategy": [{"type": "binpack", "field": "memory"}],
                "capacityProviderStrategy": [{"capacityProvider": "FARGATE", "base": 0}],
            }),
            json!({
                "placementStrategy": [{"type": "binpack", "field": "MEMORY"}],
                "capacityProviderStrategy": [{"capacityProvider": "FARGATE", "weight": 1}],
            }),
            &[],
        );
        check(
            json!({"loadBalancers": [{"targetGroupArn": "a", "containerPort": 80}]}),
            json!({"loadBalancers": []}),
            &["loadBalancers: [{\"targetGroupArn\":\"a\",\"containerPort\":80}] wanted, [] found"],
        );
        check(
            json!({"launchType": "FARGATE"}),
            json!({}),
            &["launchType: \"FARGATE\" wanted, nothing found"],
        );
    }

    #[test]
    fn a_container_is_compared_without_showing_what_may_be_secret() {
        let of = |image: &str, password: &str| {
            json!({"containerDefinitions": [{
                "name": "app", "image": image, "cpu": 0,
                "environment": [{"name": "PASSWORD", "value": password}],
            }]})
        };
        assert_eq!(of_containers(&of("a:1", "x"), &of("a:1", "x")), Vec::<String>::new());
        assert_eq!(
            of_containers(&of("a:1", "x"), &of("a:2", "hunter2")),
            ["image of the container app", "environment of the container app"]
        );
        assert_eq!(
            of_containers(&of("a:1", "x"), &json!({"containerDefinitions": []})),
            ["the container app is missing"]
        );
    }
}
