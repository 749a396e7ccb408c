//! Numbers of a definition: what a template comes to is a text (`desiredCount:
//! "{{.Params.count}}"`), where ECS wants a number, and a number in YAML is one (`cpu: 256`), where
//! ECS wants a text. What it would refuse is refused here, before anything is registered. Pure.
//! Called by `definition`.

use serde_json::{Map, Value};

/// Most of a count, seconds or shares. Source: `Integer` of the API is a signed one of 32 bits.
const MOST: u64 = i32::MAX as u64;
/// The highest port.
const PORT: u64 = u16::MAX as u64;

/// Fields that are numbers, by the fields that lead to them, and the highest; none may be below 0.
/// Through a list it is about each item. Source: the input shapes of `CreateService`,
/// `UpdateService` and `RegisterTaskDefinition`; what is left out nobody has for a parameter.
const NUMBERS: &[(&[&str], u64)] = &[
    (&["desiredCount"], MOST),
    (&["healthCheckGracePeriodSeconds"], MOST),
    (&["deploymentConfiguration", "maximumPercent"], MOST),
    (&["deploymentConfiguration", "minimumHealthyPercent"], 100),
    (&["capacityProviderStrategy", "weight"], 1_000),
    (&["capacityProviderStrategy", "base"], 100_000),
    (&["loadBalancers", "containerPort"], PORT),
    (&["ephemeralStorage", "sizeInGiB"], MOST),
    (&["containerDefinitions", "cpu"], MOST),
    (&["containerDefinitions", "memory"], MOST),
    (&["containerDefinitions", "memoryReservation"], MOST),
    (&["containerDefinitions", "portMappings", "containerPort"], PORT),
    (&["containerDefinitions", "portMappings", "hostPort"], PORT),
    (&["containerDefinitions", "startTimeout"], MOST),
    (&["containerDefinitions", "stopTimeout"], MOST),
];

/// Fields of a task definition that are texts of digits, or of a number with its unit (`1 vCPU`,
/// `.5 GB`).
const TEXTS: &[&str] = &["cpu", "memory"];

/// Makes numbers of the fields that ECS wants as such, and texts of those that it wants as texts.
///
/// # Errors
/// The path of the first that is none, or that ECS takes from nobody, and why.
pub(super) fn read(definition: &mut Map<String, Value>) -> Result<(), String> {
    for (path, most) in NUMBERS {
        let [first, rest @ ..] = path else { continue };
        if let Some(value) = definition.get_mut(*first) {
            read_at(value, rest, *most, (*first).to_owned())?;
        }
    }
    for field in TEXTS {
        match definition.get_mut(*field) {
            Some(value @ Value::Number(_)) => {
                *value = whole(value, MOST, field)?.to_string().into()
            }
            Some(Value::String(text)) if text.trim().parse::<f64>().is_ok() => {
                whole(&text.trim().into(), MOST, field)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_at(value: &mut Value, path: &[&str], most: u64, at: String) -> Result<(), String> {
    match (value, path) {
        (Value::Array(items), _) => {
            for (index, item) in items.iter_mut().enumerate() {
                read_at(item, path, most, format!("{at}[{index}]"))?;
            }
        }
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(value) = fields.get_mut(*first) {
                read_at(value, rest, most, format!("{at}.{first}"))?;
            }
        }
        (value @ (Value::String(_) | Value::Number(_)), []) => {
            *value = whole(value, most, &at)?.into();
        }
        // Of another type it is the CLI's to refuse, and `null` is nothing.
        _ => {}
    }
    Ok(())
}

/// A whole number from 0 on.
fn whole(value: &Value, most: u64, at: &str) -> Result<u64, String> {
    let number = match value {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Value::String(_) => None,
        value => value.as_u64(),
    };
    number
        .filter(|number| *number <= most)
        .ok_or_else(|| format!("`{at}` is {value}, and must be a whole number from 0 to {most}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_ecs_wants_as_a_number_becomes_one_and_nothing_else() {
        let Value::Object(mut definition) = json!({
            "desiredCount": "3", "cpu": 256, "memory": "1 GB", "family": "7", "loadBalancers": [],
            "deploymentConfiguration": {"maximumPercent": 200, "minimumHealthyPercent": "0"},
            "containerDefinitions": [
                {"name": "1", "cpu": "64", "memory": null, "environment": [{"value": "8080"}],
                    "portMappings": [{"containerPort": "8080"}, "80"]},
                "none",
            ],
        }) else {
            unreachable!("it is an object")
        };
        read(&mut definition).unwrap();
        assert_eq!(
            Value::Object(definition),
            json!({
                "desiredCount": 3, "cpu": "256", "memory": "1 GB", "family": "7",
                "loadBalancers": [],
                "deploymentConfiguration": {"maximumPercent": 200, "minimumHealthyPercent": 0},
                "containerDefinitions": [
                    {"name": "1", "cpu": 64, "memory": null, "environment": [{"value": "8080"}],
                        "portMappings": [{"containerPort": 8080}, "80"]},
                    "none",
                ],
            })
        );
    }
    #[test]
    fn what_ecs_would_refuse_is_named_by_its_path() {
        let digits = "12345678901234567890123";
        for odd in ["-1", "1e3", "1.5", digits, "\"-1\"", "\"1e3\"", "\"\"", "2147483648"] {
            for (document, path) in [
                ("{\"desiredCount\": ODD}", "desiredCount"),
                ("{\"containerDefinitions\": [{}, {\"cpu\": ODD}]}", "containerDefinitions[1].cpu"),
                (
                    "{\"containerDefinitions\": [{\"portMappings\": [{\"hostPort\": ODD}]}]}",
                    "containerDefinitions[0].portMappings[0].hostPort",
                ),
                ("{\"cpu\": ODD}", "cpu"),
            ] {
                if (odd, path) == ("\"\"", "cpu") {
                    continue;
                }
                let mut definition = serde_json::from_str(&document.replace("ODD", odd)).unwrap();
                let why = read(&mut definition).unwrap_err();
                assert!(why.starts_with(&format!("`{path}` is ")), "{odd}: {why}");
                assert!(why.contains("must be a whole number from 0 to "), "{why}");
            }
        }
        let mut port = serde_json::from_str("{\"loadBalancers\": [{\"containerPort\": 65536}]}");
        let why = read(port.as_mut().unwrap()).unwrap_err();
        assert!(why.ends_with("from 0 to 65535"), "{why}");
    }
}
