//! What a job needs, tried: the program, its credentials, the cluster. Called by `aws_ecs`.

use schema::status::CheckKind;

use super::super::Fault;
use super::super::findings::ToolFindings;
use super::cli::Aws;
use super::definition::EcsPlace;
use super::error;
use super::service;
use super::service::{count, is_gone, list, text};

const ASKED: &[CheckKind] = &[CheckKind::Tool, CheckKind::Credentials, CheckKind::Target];

const PROGRAM: &str = "put the aws CLI, version 1 or 2, into the runtime's `image`, or on the PATH \
                       of the machine where the job runs";
const CREDENTIALS: &str = "give the job credentials that are valid: `credentials` of the runtime, \
                           a role of its Pod (`serviceAccount`) or of its machine, or variables in \
                           `env`; a role that it assumes has to trust whoever they are";
const PLACE: &str = "see that `region` of the runtime is one that exists, and that the place where \
                     the job runs reaches its addresses (network, proxy, a private endpoint)";
const CLUSTER: &str = "see that `ecsCluster` and `region` of the runtime are right and that the \
                       credentials are those of that account; a policy of theirs has to allow \
                       `ecs:DescribeServices`";
const STATUS: &str = "make the cluster, with `aws ecs create-cluster`, or name another one in \
                      `ecsCluster` of the runtime";

/// Tries all, and prints what was found; `assume` takes on the role that calls are made by.
pub(super) fn run(
    aws: &mut Aws,
    place: &EcsPlace,
    assume: &dyn Fn(&mut Aws) -> Result<(), Fault>,
) -> Result<u8, Fault> {
    let mut findings = ToolFindings::of(ASKED);
    let found = aws.version().map(|version| format!("`aws` is {version}"));
    if !findings.tried(CheckKind::Tool, found, PROGRAM, aws.is_stopped())? {
        return findings.print();
    }
    let found = assume(aws).and_then(|()| aws.who()).map(|arn| format!("they are of {arn}"));
    // Nothing is known of the credentials then.
    if let (Err(fault), false) = (&found, aws.is_stopped())
        && error::is_of_place(fault)
    {
        findings.failed(CheckKind::Target, fault.why.clone(), PLACE);
        return findings.print();
    }
    if !findings.tried(CheckKind::Credentials, found, CREDENTIALS, aws.is_stopped())? {
        return findings.print();
    }
    // What each fetch asks comes first: whether the cluster may be described concerns nobody else.
    let found = service::describe(aws, place).map(|found| {
        let is_there = found.is_some_and(|service| !is_gone(&service));
        let EcsPlace { cluster, service } = place;
        let not = if is_there { "is there" } else { "is not there yet" };
        format!("the cluster `{cluster}` answers; its service `{service}` {not}")
    });
    if !findings.tried(CheckKind::Target, found, CLUSTER, aws.is_stopped())? {
        return findings.print();
    }
    cluster(aws, &place.cluster, &mut findings)?;
    findings.print()
}

/// Whether the cluster can run anything.
fn cluster(aws: &mut Aws, name: &str, findings: &mut ToolFindings) -> Result<(), Fault> {
    let answer = match aws.ecs("describe-clusters", &["--clusters", name]) {
        Ok(answer) => answer,
        Err(fault) if aws.is_stopped() => return Err(fault),
        // No job calls that.
        Err(fault) => {
            findings.skipped(CheckKind::Target, format!("no job needs this: {}", fault.why));
            return Ok(());
        }
    };
    let Some(cluster) = list(&answer, "clusters").first() else {
        findings.failed(CheckKind::Target, format!("there is no cluster `{name}`"), STATUS);
        return Ok(());
    };
    let status = text(cluster, "status");
    if status != "ACTIVE" {
        let why = format!("the cluster `{name}` is {status}, and starts no task");
        findings.failed(CheckKind::Target, why, STATUS);
        return Ok(());
    }
    let services = count(cluster, "activeServicesCount");
    let tasks = count(cluster, "runningTasksCount");
    findings.ok(
        CheckKind::Target,
        format!("the cluster `{name}` is ACTIVE; services: {services}, running tasks: {tasks}"),
    );
    Ok(())
}
