//! What is wanted -> a task definition that is registered and a service that uses it. Everything is
//! looked for before it is made, so that an answer that was lost does no harm at the next try.
//! Called by `aws_ecs`.

use std::io::Write;
use std::path::Path;

use schema::id::BlobId;
use schema::shown::shell_word;
use serde_json::{Map, Value};

use super::super::Fault;
use super::cli::{Aws, INPUT};
use super::definition::{DEPLOYMENT_TAG, EcsTarget, ascii};
use super::differ::{self, Difference, FIXED, UNSEEN};
use super::fetch;
use super::revision::{self, Revisions};
use super::service::{self, is_going, is_gone, primary, short, text};
use crate::writer::say;

/// What a new service starts with when its definition says nothing. ECS takes none without it.
const DESIRED_COUNT: i64 = 1;

/// How long the token of a service may be. Source: `clientToken` of CreateService.
const TOKEN_LENGTH: usize = 36;

/// What of a service definition is said in another way, or never needs saying again.
const OURS: &[&str] = &["cluster", "serviceName", "taskDefinition", "clientToken", "propagateTags"];

/// Registers, creates or updates, and does not wait.
pub(super) fn run(aws: &mut Aws, target: &EcsTarget, within: &Path) -> Result<u8, Fault> {
    let found = service::describe(aws, &target.place)?;
    let gone = found.as_ref().filter(|service| is_gone(service));
    let service = found.as_ref().filter(|service| !is_gone(service));
    let known = match service {
        None if target.is_task_definition_only => return Err(fetch::missing(target)),
        None => Revisions::new(),
        Some(service) if is_going(service) => {
            return Err(Fault::again(format!(
                "the service `{}` is being deleted (DRAINING); it is made anew when its last task \
                 has stopped",
                target.place.service
            )));
        }
        Some(service) => revision::of_deployments(aws, service, None)?,
    };
    let mut apply = Apply { aws, target, within };
    let (arn, tagged) = apply.registered(service, known)?;
    let (after, fixed) = match service {
        Some(service) => apply.update(service, &arn)?,
        None => (apply.create(gone, &arn)?, Vec::new()),
    };
    apply.remember(&after, &arn, &tagged);
    if fixed.is_empty() {
        return Ok(0);
    }
    let words: Vec<&str> = fixed.iter().map(|difference| difference.words.as_str()).collect();
    Err(Fault::failed(format!(
        "ECS cannot change this in a service that is there: {}; delete the service, or take it out \
         of the service definition; all else is done",
        words.join(", ")
    )))
}

struct Apply<'a> {
    aws: &'a mut Aws,
    target: &'a EcsTarget,
    within: &'a Path,
}

/// For whoever reads the log of the job.
fn tell(what: &str) {
    // Nobody may read it.
    let _ = writeln!(std::io::stdout(), "{what}");
}

impl Apply<'_> {
    /// The ARN of what is wanted, registered if it is not yet, and which deployment it remembers.
    fn registered(
        &mut self,
        service: Option<&Value>,
        known: Revisions,
    ) -> Result<(String, String), Fault> {
        let version = &self.target.ownership.version;
        if let Some(revision) = revision::find(self.aws, self.target, known)? {
            let name = short(revision.arn());
            if let Some(why) = service.and_then(|service| revision.rolled_back(service)) {
                let place = &self.target.place;
                return Err(Fault::failed(format!(
                    "ECS rolled {name} ({version}) back: {why}; it is not deployed again by \
                     itself: release a version that starts, or run `aws ecs update-service \
                     --cluster {} --service {} --task-definition {name}`",
                    shell_word(&place.cluster),
                    shell_word(&place.service)
                )));
            }
            tell(&format!("{name} is registered already for {version}"));
            return Ok((revision.arn().to_owned(), revision.tag(DEPLOYMENT_TAG).to_owned()));
        }
        let file = self.write("task-definition.json", &self.target.tagged())?;
        let answer = self.aws.ecs_once("register-task-definition", &[INPUT, &file])?;
        let arn = text(&answer["taskDefinition"], "taskDefinitionArn");
        if arn.is_empty() {
            return Err(Fault::failed("`aws ecs register-task-definition` named no ARN"));
        }
        tell(&format!("registered {} for {version}", short(arn)));
        Ok((arn.to_owned(), String::new()))
    }

    /// Makes the service.
    fn create(&mut self, gone: Option<&Value>, arn: &str) -> Result<Value, Fault> {
        let place = &self.target.place;
        let mut definition = self.target.service_definition.clone();
        definition.retain(|field, _| !OURS.contains(&field.as_str()));
        let is_daemon = definition.get("schedulingStrategy").is_some_and(|at| at == "DAEMON");
        if definition.get("desiredCount").is_none_or(Value::is_null) && !is_daemon {
            definition.insert("desiredCount".to_owned(), DESIRED_COUNT.into());
        }
        // The same while it is the same try; another one for a service that comes after a deleted.
        let gone = gone.map_or(&Value::Null, |service| &service["createdAt"]);
        let what = format!(
            "{}\n{}\n{}\n{arn}\n{gone}",
            self.target.ownership.id, place.cluster, place.service
        );
        let token = &BlobId::of(what.as_bytes()).hex()[..TOKEN_LENGTH];
        let file = self.write("service.json", &Value::Object(definition))?;
        let arguments = [
            ["--cluster", &place.cluster],
            ["--service-name", &place.service],
            ["--task-definition", arn],
            ["--propagate-tags", "TASK_DEFINITION"],
            ["--client-token", token],
            [INPUT, &file],
        ];
        let mut answer = self.aws.ecs("create-service", arguments.as_flattened())?;
        tell(&format!("created the service {} with {}", place.service, short(arn)));
        Ok(answer["service"].take())
    }

    /// Changes what is not as it is wanted, and returns the service with what cannot be changed.
    fn update(&mut self, service: &Value, arn: &str) -> Result<(Value, Vec<Difference>), Fault> {
        let target = self.target;
        let place = &target.place;
        let mut arguments = vec![
            "--cluster",
            &place.cluster,
            "--service",
            &place.service,
            "--task-definition",
            arn,
        ];
        let has_it = text(service, "taskDefinition") == arn;
        let mut changed = Vec::new();
        if !has_it {
            let before = short(text(service, "taskDefinition"));
            // Another deployment controller keeps it elsewhere.
            let before = if before.is_empty() { "no task definition" } else { before };
            changed.push(format!("{before} becomes {}", short(arn)));
        }
        let file;
        let (mut fields, mut fixed) = (Map::new(), Vec::new());
        if !target.is_task_definition_only {
            (fields, fixed) = self.changes(service, &mut changed);
            if text(service, "propagateTags") != "TASK_DEFINITION" {
                changed.push("tasks get the tags of their task definition".to_owned());
            }
            arguments.extend(["--propagate-tags", "TASK_DEFINITION"]);
        }
        // Where there is work that none can do, this would be done again with each try.
        let is_failed = primary(service).is_some_and(|at| text(at, "rolloutState") == "FAILED");
        let begins_anew = has_it && is_failed && fixed.is_empty();
        if begins_anew {
            changed.push("its deployment failed and is begun anew".to_owned());
        }
        if changed.is_empty() {
            tell(&format!("the service {} is as it should be", place.service));
            return Ok((service.clone(), fixed));
        }
        if begins_anew || fields.contains_key("capacityProviderStrategy") {
            // ECS refuses the other capacity without it.
            arguments.push("--force-new-deployment");
        }
        if !fields.is_empty() {
            file = self.write("service.json", &Value::Object(fields))?;
            arguments.extend([INPUT, &file]);
        }
        let mut answer = self.aws.ecs("update-service", &arguments)?;
        tell(&format!("updated the service {}: {}", place.service, changed.join(", ")));
        Ok((answer["service"].take(), fixed))
    }

    /// What an update has to name, told in words too, and what none can change.
    fn changes(
        &self,
        service: &Value,
        changed: &mut Vec<String>,
    ) -> (Map<String, Value>, Vec<Difference>) {
        let definition = &self.target.service_definition;
        let differences = differ::of_service(definition, service);
        let (fixed, open): (Vec<_>, Vec<_>) =
            differences.into_iter().partition(|at| FIXED.contains(&at.field.as_str()));
        changed.extend(open.iter().map(|difference| difference.words.clone()));
        let is_named = |field: &str| {
            UNSEEN.contains(&field) || open.iter().any(|difference| difference.field == field)
        };
        let fields = definition.iter().filter(|(field, value)| is_named(field) && !value.is_null());
        (fields.map(|(field, value)| (field.clone(), value.clone())).collect(), fixed)
    }

    /// Marks the task definition with the deployment that took it into use, by which a roll-back is
    /// known for as long as ECS keeps its events. What is lost without it is only that.
    fn remember(&mut self, service: &Value, arn: &str, remembered: &str) {
        let Some(primary) = primary(service).filter(|at| text(at, "taskDefinition") == arn) else {
            return;
        };
        let id = text(primary, "id");
        if id.is_empty() || id == remembered {
            return;
        }
        let tag = format!("key={DEPLOYMENT_TAG},value={id}");
        if let Err(fault) = self.aws.ecs("tag-resource", &["--resource-arn", arn, "--tags", &tag]) {
            say(&format!("{}; a roll-back is told only while ECS lists it", fault.why));
        }
    }

    /// Puts a document where the CLI reads it, and says so in the CLI's words.
    fn write(&self, name: &str, document: &Value) -> Result<String, Fault> {
        let path = self.within.join(name);
        std::fs::write(&path, ascii(document)).map_err(|error| {
            Fault::failed(format!(
                "cannot write {}: {error}; where the root is read-only, mount a volume and name \
                 its path in TMPDIR",
                path.display()
            ))
        })?;
        Ok(format!("file://{}", path.display()))
    }
}
