//! Numbers of a definition: what a template comes to is a text (`desiredCount:
//! "{{.Params.count}}"`), where ECS wants a number, and a number in YAML is one (`cpu: 256`), where
//! ECS wants a text. What it would refuse is refused here, before anything is registered. Pure.
//! Called by `definition`.

use serde_json::{Map, Value};

/// Most of a count, seconds or shares. Source: `Integer` of the API is a signed one of 32 bits.
const MOST: i64 = i32::MAX as i64;
/// The highest port.
const PORT: i64 = u16::MAX as i64;
/// Minutes of a day.
const DAY: i64 = 24 * 60;

/// Fields that are whole numbers, by the fields that lead to them, the lowest and the highest.
/// Through a list it is about each item. Source: all members of type `integer` in the input shapes
/// of `CreateService`, `UpdateService` and `RegisterTaskDefinition` of botocore 1.43.11, with the
/// limits that it or their documentation names as valid. The limits of a process (`ulimits`) may be
/// -1, which is none.
const NUMBERS: &[(&str, i64, i64)] = &[
    ("desiredCount", 0, MOST),
    ("healthCheckGracePeriodSeconds", 0, MOST),
    ("capacityProviderStrategy.weight", 0, 1_000),
    ("capacityProviderStrategy.base", 0, 100_000),
    ("deploymentConfiguration.maximumPercent", 0, MOST),
    ("deploymentConfiguration.minimumHealthyPercent", 0, 100),
    ("deploymentConfiguration.bakeTimeInMinutes", 0, MOST),
    ("deploymentConfiguration.lifecycleHooks.timeoutConfiguration.timeoutInMinutes", 1, 20_160),
    ("deploymentConfiguration.linearConfiguration.stepBakeTimeInMinutes", 0, DAY),
    ("deploymentConfiguration.canaryConfiguration.canaryBakeTimeInMinutes", 0, DAY),
    ("loadBalancers.containerPort", 0, PORT),
    ("serviceRegistries.port", 0, PORT),
    ("serviceRegistries.containerPort", 0, PORT),
    ("serviceConnectConfiguration.services.clientAliases.port", 0, PORT),
    ("serviceConnectConfiguration.services.ingressPortOverride", 0, PORT),
    ("serviceConnectConfiguration.services.timeout.idleTimeoutSeconds", 0, MOST),
    ("serviceConnectConfiguration.services.timeout.perRequestTimeoutSeconds", 0, MOST),
    ("volumeConfigurations.managedEBSVolume.sizeInGiB", 0, MOST),
    ("volumeConfigurations.managedEBSVolume.volumeInitializationRate", 0, MOST),
    ("volumeConfigurations.managedEBSVolume.iops", 0, MOST),
    ("volumeConfigurations.managedEBSVolume.throughput", 0, MOST),
    ("ephemeralStorage.sizeInGiB", 0, MOST),
    ("volumes.efsVolumeConfiguration.transitEncryptionPort", 0, PORT),
    ("volumes.s3filesVolumeConfiguration.transitEncryptionPort", 0, PORT),
    ("containerDefinitions.cpu", 0, MOST),
    ("containerDefinitions.memory", 0, MOST),
    ("containerDefinitions.memoryReservation", 0, MOST),
    ("containerDefinitions.portMappings.containerPort", 0, PORT),
    ("containerDefinitions.portMappings.hostPort", 0, PORT),
    ("containerDefinitions.restartPolicy.ignoredExitCodes", 0, MOST),
    ("containerDefinitions.restartPolicy.restartAttemptPeriod", 60, 1_800),
    ("containerDefinitions.linuxParameters.sharedMemorySize", 0, MOST),
    ("containerDefinitions.linuxParameters.tmpfs.size", 0, MOST),
    ("containerDefinitions.linuxParameters.maxSwap", 0, MOST),
    ("containerDefinitions.linuxParameters.swappiness", 0, 100),
    ("containerDefinitions.startTimeout", 0, MOST),
    ("containerDefinitions.stopTimeout", 0, MOST),
    ("containerDefinitions.ulimits.softLimit", -1, MOST),
    ("containerDefinitions.ulimits.hardLimit", -1, MOST),
    ("containerDefinitions.healthCheck.interval", 5, 300),
    ("containerDefinitions.healthCheck.timeout", 2, 60),
    ("containerDefinitions.healthCheck.retries", 1, 10),
    ("containerDefinitions.healthCheck.startPeriod", 0, 300),
];

/// Fields that are a share of the traffic, with the least of it; the most is all. Source: the
/// members of type `double` there, valid in steps of 0.1.
const PERCENTS: &[(&str, f64)] = &[
    ("deploymentConfiguration.linearConfiguration.stepPercent", 3.0),
    ("deploymentConfiguration.canaryConfiguration.canaryPercent", 0.1),
];
const ALL_PERCENT: f64 = 100.0;

/// Fields of a task definition that are texts of digits, or of a number with its unit (`1 vCPU`,
/// `.5 GB`).
const TEXTS: &[&str] = &["cpu", "memory"];

/// Makes numbers of the fields that ECS wants as such, and texts of those that it wants as texts.
///
/// # Errors
/// The path of the first that is none, or that ECS takes from nobody, and why.
pub(super) fn read(definition: &mut Map<String, Value>) -> Result<(), String> {
    for (path, least, most) in NUMBERS {
        each(definition, path, &mut |value, at| {
            *value = whole(value, [*least, *most], at)?.into();
            Ok(())
        })?;
    }
    for (path, least) in PERCENTS {
        each(definition, path, &mut |value, at| {
            *value = percent(value, *least, at)?;
            Ok(())
        })?;
    }
    for field in TEXTS {
        match definition.get_mut(*field) {
            Some(value @ Value::Number(_)) => {
                *value = whole(value, [0, MOST], field)?.to_string().into()
            }
            Some(Value::String(text)) if text.trim().parse::<f64>().is_ok() => {
                whole(&text.trim().into(), [0, MOST], field)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What is done with a value, and where that stands.
type ReadNumber<'a> = &'a mut dyn FnMut(&mut Value, &str) -> Result<(), String>;

/// Does it with each value that the fields of `path` lead to.
fn each(
    definition: &mut Map<String, Value>,
    path: &str,
    read: ReadNumber<'_>,
) -> Result<(), String> {
    let path: Vec<&str> = path.split('.').collect();
    match definition.get_mut(path[0]) {
        Some(value) => read_at(value, &path[1..], path[0].to_owned(), read),
        None => Ok(()),
    }
}

fn read_at(
    value: &mut Value,
    path: &[&str],
    at: String,
    read: ReadNumber<'_>,
) -> Result<(), String> {
    match (value, path) {
        (Value::Array(items), _) => {
            for (index, item) in items.iter_mut().enumerate() {
                read_at(item, path, format!("{at}[{index}]"), read)?;
            }
        }
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(value) = fields.get_mut(*first) {
                read_at(value, rest, format!("{at}.{first}"), read)?;
            }
        }
        (value @ (Value::String(_) | Value::Number(_)), []) => read(value, &at)?,
        // Of another type it is the CLI's to refuse, and `null` is nothing.
        _ => {}
    }
    Ok(())
}

/// A whole number between these two.
fn whole(value: &Value, [least, most]: [i64; 2], at: &str) -> Result<i64, String> {
    let number = match value {
        Value::String(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        }
        value => value.as_i64(),
    };
    number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        format!("`{at}` is {value}, and must be a whole number from {least} to {most}")
    })
}

/// A share in percent; a number stays as it is written.
fn percent(value: &Value, least: f64, at: &str) -> Result<Value, String> {
    let read = match value {
        Value::String(text) => {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let number: Option<f64> = text.parse().ok().filter(|_| is_number);
            number.map(Value::from)
        }
        value => Some(value.clone()),
    };
    let is_one = |value: &Value| value.as_f64().is_some_and(|n| (least..=ALL_PERCENT).contains(&n));
    read.filter(is_one).ok_or_else(|| {
        format!("`{at}` is {value}, and must be a number from {least} to {ALL_PERCENT}")
    })
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

    /// A document in which nothing but this stands, below all that leads to it.
    fn with(path: &str, value: Value) -> Map<String, Value> {
        let lists = [
            "capacityProviderStrategy",
            "clientAliases",
            "containerDefinitions",
            "ignoredExitCodes",
            "lifecycleHooks",
            "loadBalancers",
            "portMappings",
            "serviceRegistries",
            "services",
            "tmpfs",
            "ulimits",
            "volumeConfigurations",
            "volumes",
        ];
        let below = path.rsplit('.').fold(value, |value, field| {
            let value = if lists.contains(&field) { json!([value]) } else { value };
            json!({field: value})
        });
        below.as_object().unwrap().clone()
    }

    #[test]
    fn each_number_of_the_api_is_one_whether_written_as_such_or_in_digits() {
        for (path, least, most) in NUMBERS {
            for number in [least, most] {
                let mut definition = with(path, number.to_string().into());
                read(&mut definition).unwrap();
                assert_eq!(definition, with(path, (*number).into()), "{path}");
                read(&mut definition).unwrap();
                assert_eq!(definition, with(path, (*number).into()), "{path}");
            }
            for number in [least - 1, most + 1] {
                for value in [Value::from(number), Value::from(number.to_string())] {
                    let why = read(&mut with(path, value)).unwrap_err();
                    let field = path.rsplit('.').next().unwrap();
                    assert!(why.contains(field), "{why}");
                    assert!(why.ends_with(&format!("from {least} to {most}")), "{why}");
                }
            }
        }
        for (path, _) in PERCENTS {
            let mut definition = with(path, "12.5".into());
            read(&mut definition).unwrap();
            assert_eq!(definition, with(path, 12.5.into()));
            for odd in ["", ".", "-1", "1e1", "101", "inf", "NaN", "0"] {
                let why = read(&mut with(path, odd.into())).unwrap_err();
                assert!(why.starts_with(&format!("`{path}` is ")), "{odd}: {why}");
            }
        }
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
