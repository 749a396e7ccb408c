//! A revision of a task definition: whose it is, of which version, and what became of the
//! deployment that took it into use. Called by `fetch`, `apply` and `info`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::super::Fault;
use super::super::answers::SharedAnswers;
use super::super::faults::{self, KnownFault};
use super::cli::Aws;
use super::definition::{DEPLOYMENT_TAG, DIGEST_TAG, EcsTarget, ID_TAG, VERSION_TAG};
use super::differ;
use super::service::{instant, list, primary, text};

/// How many revisions of a family are looked through for one that is ours already. Each costs a
/// call of half a second of CPU; what an answer that was lost has made is the newest, and older
/// ones serve a version that comes back.
const LOOKED_AT: &str = "5";

/// What ECS says in an event of a deployment that did not come to its end, whatever the reason: its
/// list of deployments forgets such a one after some minutes.
const FAILED_DEPLOYMENT: &[KnownFault] = &[KnownFault {
    texts: &["deployment failed"],
    seen: "reported of AWS in 2026, not run here",
    may_pass: false,
    words: "",
}];

/// How long after a deployment has failed ECS may begin the one that takes it back.
const ROLL_BACK_BEGINS: Duration = Duration::from_secs(10 * 60);

/// What `describe-task-definition --include TAGS` answers.
#[derive(Debug)]
pub(super) struct Revision(Value);

/// Those that were described, by their ARN.
pub(super) type Revisions = BTreeMap<String, Revision>;

impl Revision {
    #[cfg(test)]
    pub(super) fn of(answer: Value) -> Self {
        Self(answer)
    }

    pub(super) fn describe(aws: &mut Aws, arn: &str) -> Result<Self, Fault> {
        let arguments = ["--task-definition", arn, "--include", "TAGS"];
        aws.ecs("describe-task-definition", &arguments).map(Self)
    }

    /// The same, as another job of the scheduler was told, where that will do: of a revision
    /// nothing but its tags and whether it is retired ever changes.
    pub(super) fn describe_shared(
        aws: &mut Aws,
        arn: &str,
        answers: Option<&SharedAnswers>,
    ) -> Result<Self, Fault> {
        let Some(answers) = answers else { return Self::describe(aws, arn) };
        answers.lasting(arn, || Self::describe(aws, arn).map(|revision| revision.0)).map(Self)
    }

    pub(super) fn arn(&self) -> &str {
        text(&self.0["taskDefinition"], "taskDefinitionArn")
    }

    pub(super) fn definition(&self) -> &Value {
        &self.0["taskDefinition"]
    }

    pub(super) fn tag(&self, key: &str) -> &str {
        let tag = list(&self.0, "tags").iter().find(|tag| text(tag, "key") == key);
        tag.map_or("", |tag| text(tag, "value"))
    }

    /// The version that it is of; empty when it is not ours.
    pub(super) fn version(&self, target: &EcsTarget) -> &str {
        let is_ours = self.tag(ID_TAG) == target.ownership.id;
        if is_ours { self.tag(VERSION_TAG) } else { "" }
    }

    /// The service instance of pvn that it is of, if that is another one.
    pub(super) fn other_owner(&self, target: &EcsTarget) -> Option<&str> {
        Some(self.tag(ID_TAG)).filter(|id| !id.is_empty() && *id != target.ownership.id)
    }

    /// What of it is not as it is wanted, of one that is of the wanted version.
    pub(super) fn differences(&self, target: &EcsTarget) -> Vec<String> {
        // Whoever makes a revision of ours by hand takes its tags along.
        let mut differences = differ::of_containers(&target.task_definition, self.definition());
        if differences.is_empty() && self.tag(DIGEST_TAG) != target.digest {
            differences.push("it was made of another definition".to_owned());
        }
        differences
    }

    /// Whether it is what is wanted, so that no other has to be registered. ECS takes none for a
    /// service that is INACTIVE, DELETE_IN_PROGRESS, or what else it may come to.
    fn is_wanted(&self, target: &EcsTarget) -> bool {
        text(self.definition(), "status") == "ACTIVE"
            && self.version(target) == target.ownership.version
            && self.differences(target).is_empty()
    }

    /// Why ECS took this revision back out of a service, if it did: it had it as a deployment that
    /// failed, and went back to the one before.
    pub(super) fn rolled_back(&self, service: &Value) -> Option<String> {
        if primary(service).is_some_and(|at| text(at, "taskDefinition") == self.arn()) {
            return None;
        }
        // For some minutes the deployment is still told of itself.
        let listed = list(service, "deployments").iter().find(|deployment| {
            text(deployment, "taskDefinition") == self.arn()
                && text(deployment, "rolloutState") == "FAILED"
        });
        if let Some(deployment) = listed {
            return Some(reason(text(deployment, "rolloutStateReason")));
        }
        let deployment = self.tag(DEPLOYMENT_TAG);
        if deployment.is_empty() {
            return None;
        }
        let of_it = format!("(deployment {deployment})");
        let told = list(service, "events").iter().find(|event| {
            let said = text(event, "message");
            said.contains(&of_it) && is_failure(said) && !is_followed(service, event)
        });
        told.map(|event| reason(text(event, "message")))
    }
}

/// What ECS says, as the middle of a sentence about that service.
fn reason(said: &str) -> String {
    let of_service = said.strip_prefix("(service ").and_then(|rest| rest.split_once(") "));
    of_service.map_or(said, |(_, said)| said).trim_end_matches('.').to_owned()
}

fn is_failure(said: &str) -> bool {
    faults::find(FAILED_DEPLOYMENT, said).is_some()
}

/// Whether what serves now was begun long after an event, and so by somebody else than whoever
/// answered to it.
fn is_followed(service: &Value, event: &Value) -> bool {
    let begun = primary(service).and_then(|primary| instant(primary, "createdAt"));
    match (begun, instant(event, "createdAt")) {
        (Some(begun), Some(event)) => begun.since(event) > ROLL_BACK_BEGINS,
        _ => false,
    }
}

/// Whether anything of a service says that some deployment of it has failed lately, so that it is
/// worth asking whether it was ours.
pub(super) fn has_failed_deployment(service: &Value) -> bool {
    list(service, "deployments").iter().any(|at| text(at, "rolloutState") == "FAILED")
        || list(service, "events").iter().any(|event| is_failure(text(event, "message")))
}

/// The revisions that the deployments of a service use.
pub(super) fn of_deployments(
    aws: &mut Aws,
    service: &Value,
    answers: Option<&SharedAnswers>,
) -> Result<Revisions, Fault> {
    let mut revisions = Revisions::new();
    for deployment in list(service, "deployments") {
        let arn = text(deployment, "taskDefinition");
        if !arn.is_empty() && !revisions.contains_key(arn) {
            let revision = Revision::describe_shared(aws, arn, answers)?;
            revisions.insert(arn.to_owned(), revision);
        }
    }
    Ok(revisions)
}

/// The one that is what is wanted, if there is one: among those that are known, else among the
/// newest of the family.
pub(super) fn find(
    aws: &mut Aws,
    target: &EcsTarget,
    mut known: Revisions,
) -> Result<Option<Revision>, Fault> {
    let wanted = known.iter().find(|(_, revision)| revision.is_wanted(target));
    if let Some(arn) = wanted.map(|(arn, _)| arn.clone()) {
        return Ok(known.remove(&arn));
    }
    let arguments = ["--family-prefix", &target.family, "--sort", "DESC", "--max-items", LOOKED_AT];
    let answer = aws.ecs("list-task-definitions", &arguments)?;
    for arn in list(&answer, "taskDefinitionArns").iter().filter_map(Value::as_str) {
        if known.contains_key(arn) {
            continue;
        }
        let revision = Revision::describe(aws, arn)?;
        if revision.is_wanted(target) {
            return Ok(Some(revision));
        }
    }
    Ok(None)
}
