//! Where in the console of AWS a person finds a service and its logs. Pure. Called by `fetch` and
//! `info`.

use serde_json::Value;

use super::service::{list, short, text};

/// The parts of an ARN: `arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE`.
fn part(arn: &str, index: usize) -> &str {
    arn.split(':').nth(index).unwrap_or_default()
}

/// The console of a region, for what is in this ARN.
fn console(arn: &str) -> Option<String> {
    let region = Some(part(arn, 3)).filter(|region| !region.is_empty())?;
    Some(match part(arn, 1) {
        "aws-cn" => format!("https://{region}.console.amazonaws.cn"),
        "aws-us-gov" => format!("https://console.amazonaws-us-gov.com/{region}"),
        _ => format!("https://{region}.console.aws.amazon.com"),
    })
}

/// The page of a service.
pub(super) fn of_service(service: &Value) -> Option<String> {
    let arn = text(service, "serviceArn");
    let (cluster, name) = (short(text(service, "clusterArn")), text(service, "serviceName"));
    Some(format!(
        "{}/ecs/v2/clusters/{cluster}/services/{name}/health?region={}",
        console(arn)?,
        part(arn, 3)
    ))
}

/// The pages of the logs that the containers of a task definition write: container, page.
pub(super) fn of_logs(service: &Value, definition: &Value) -> Vec<(String, String)> {
    let arn = text(service, "serviceArn");
    let Some(console) = console(arn) else { return Vec::new() };
    let containers = list(definition, "containerDefinitions").iter().filter_map(|container| {
        let log = &container["logConfiguration"];
        let group = text(&log["options"], "awslogs-group");
        if text(log, "logDriver") != "awslogs" || group.is_empty() {
            return None;
        }
        let region = Some(text(&log["options"], "awslogs-region"));
        let region = region.filter(|region| !region.is_empty()).unwrap_or(part(arn, 3));
        let page = format!(
            "{console}/cloudwatch/home?region={region}#logsV2:log-groups/log-group/{}",
            encoded(group)
        );
        Some((text(container, "name").to_owned(), page))
    });
    containers.collect()
}

/// A name as the console has it behind `#`: escaped twice, with `$` for the second `%`.
fn encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("$25{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_and_its_logs_are_found_in_the_console() {
        let service = json!({
            "serviceArn": "arn:aws:ecs:eu-central-1:1:service/prod/web",
            "clusterArn": "arn:aws:ecs:eu-central-1:1:cluster/prod",
            "serviceName": "web",
        });
        assert_eq!(
            of_service(&service).unwrap(),
            "https://eu-central-1.console.aws.amazon.com/ecs/v2/clusters/prod/services/web/health\
             ?region=eu-central-1"
        );
        let definition = json!({"containerDefinitions": [
            {"name": "app", "logConfiguration": {
                "logDriver": "awslogs", "options": {"awslogs-group": "/ecs/web"}
            }},
            {"name": "side", "logConfiguration": {"logDriver": "splunk"}},
        ]});
        assert_eq!(
            of_logs(&service, &definition),
            [(
                "app".to_owned(),
                "https://eu-central-1.console.aws.amazon.com/cloudwatch/home?region=eu-central-1\
                 #logsV2:log-groups/log-group/$252Fecs$252Fweb"
                    .to_owned()
            )]
        );
        assert_eq!(of_service(&json!({"serviceArn": "web"})), None);
    }
}
