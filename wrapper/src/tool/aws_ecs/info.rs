//! Where a service is and what runs, for people. Called by `aws_ecs`.

use schema::output::{GetInfoOutput, Info};
use serde_json::Value;

use super::super::answers::SharedAnswers;
use super::super::{Fault, print_document};
use super::cli::Aws;
use super::definition::{EcsPlace, VERSION_TAG};
use super::revision::Revision;
use super::service::{count, is_gone, list, primary, short, text};
use super::{links, service};

/// Prints it as a getInfo does.
pub(super) fn run(
    aws: &mut Aws,
    place: &EcsPlace,
    answers: Option<&SharedAnswers>,
) -> Result<u8, Fault> {
    let found = service::describe_shared(aws, place, answers)?.filter(|service| !is_gone(service));
    let Some(service) = found else {
        let outputs = vec![
            info("cluster", &place.cluster),
            info("service", &format!("{} is not there yet", place.service)),
        ];
        return print_document(&GetInfoOutput { outputs });
    };
    let arn = primary(&service).map_or("", |primary| text(primary, "taskDefinition"));
    let describe = |arn| Revision::describe_shared(aws, arn, answers);
    let revision = Some(arn).filter(|arn| !arn.is_empty()).map(describe).transpose()?;
    print_document(&GetInfoOutput { outputs: outputs(&service, revision.as_ref()) })
}

fn info(name: &str, text: &str) -> Info {
    Info { name: name.to_owned(), text: text.to_owned() }
}

fn outputs(service: &Value, revision: Option<&Revision>) -> Vec<Info> {
    let mut outputs = vec![
        info("cluster", short(text(service, "clusterArn"))),
        info("service", text(service, "serviceArn")),
    ];
    if let Some(revision) = revision {
        let version = revision.tag(VERSION_TAG);
        let of = if version.is_empty() { String::new() } else { format!(" (version {version})") };
        outputs.push(info("task definition", &format!("{}{of}", short(revision.arn()))));
    }
    let pending = match count(service, "pendingCount") {
        0 => String::new(),
        pending => format!(", {pending} pending"),
    };
    let (running, desired) = (count(service, "runningCount"), count(service, "desiredCount"));
    outputs.push(info("tasks", &format!("{running} of {desired} run{pending}")));
    for balancer in list(service, "loadBalancers") {
        let group = match text(balancer, "targetGroupArn") {
            "" => text(balancer, "loadBalancerName"),
            arn => arn,
        };
        let (container, port) = (text(balancer, "containerName"), count(balancer, "containerPort"));
        outputs.push(info("load balancer", &format!("{group} to {container}:{port}")));
    }
    let logs = revision.map_or_else(Vec::new, |at| links::of_logs(service, at.definition()));
    outputs.extend(links::of_service(service).map(|page| info("console", &page)));
    outputs.extend(logs.into_iter().map(|(name, page)| info(&format!("logs of {name}"), &page)));
    outputs
}
