//! Numbers that were written as texts: what a template comes to is a text (`desiredCount:
//! "{{.Params.count}}"`), where ECS wants a number. Pure. Called by `definition`.

use serde_json::{Map, Value};

/// Fields that are numbers, by the fields that lead to them; through a list it is about each item.
/// Source: the input shapes of `CreateService`, `UpdateService` and `RegisterTaskDefinition`; what
/// is left out nobody has for a parameter. The `cpu` and `memory` of a task are texts in ECS too.
const NUMBERS: &[&[&str]] = &[
    &["desiredCount"],
    &["healthCheckGracePeriodSeconds"],
    &["deploymentConfiguration", "maximumPercent"],
    &["deploymentConfiguration", "minimumHealthyPercent"],
    &["capacityProviderStrategy", "weight"],
    &["capacityProviderStrategy", "base"],
    &["loadBalancers", "containerPort"],
    &["ephemeralStorage", "sizeInGiB"],
    &["containerDefinitions", "cpu"],
    &["containerDefinitions", "memory"],
    &["containerDefinitions", "memoryReservation"],
    &["containerDefinitions", "portMappings", "containerPort"],
    &["containerDefinitions", "portMappings", "hostPort"],
    &["containerDefinitions", "startTimeout"],
    &["containerDefinitions", "stopTimeout"],
];

/// Makes numbers of those that are texts of digits; others are ECS's to refuse.
pub(super) fn read(definition: &mut Map<String, Value>) {
    for path in NUMBERS {
        let [first, rest @ ..] = path else { continue };
        if let Some(value) = definition.get_mut(*first) {
            read_at(value, rest);
        }
    }
}

fn read_at(value: &mut Value, path: &[&str]) {
    match (value, path) {
        (Value::Array(items), _) => items.iter_mut().for_each(|item| read_at(item, path)),
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(value) = fields.get_mut(*first) {
                read_at(value, rest);
            }
        }
        (value, []) => {
            if let Some(number) = value.as_str().and_then(|text| text.parse::<u32>().ok()) {
                *value = number.into();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_ecs_wants_as_a_number_becomes_one_and_nothing_else() {
        let Value::Object(mut definition) = json!({
            "desiredCount": "3", "cpu": "256", "family": "7", "loadBalancers": [],
            "deploymentConfiguration": {"maximumPercent": 200, "minimumHealthyPercent": "0"},
            "containerDefinitions": [
                {"name": "1", "cpu": "64", "memory": "many", "environment": [{"value": "8080"}],
                    "portMappings": [{"containerPort": "8080"}, "80"]},
                "none",
            ],
        }) else {
            unreachable!("it is an object")
        };
        read(&mut definition);
        assert_eq!(
            Value::Object(definition),
            json!({
                "desiredCount": 3, "cpu": "256", "family": "7", "loadBalancers": [],
                "deploymentConfiguration": {"maximumPercent": 200, "minimumHealthyPercent": 0},
                "containerDefinitions": [
                    {"name": "1", "cpu": 64, "memory": "many", "environment": [{"value": "8080"}],
                        "portMappings": [{"containerPort": 8080}, "80"]},
                    "none",
                ],
            })
        );
    }
}
