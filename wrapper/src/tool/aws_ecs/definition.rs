//! The definitions that a user wrote -> what is wanted of which service, and how that is marked as
//! ours. Called by `aws_ecs`.

use schema::id::BlobId;
use serde_json::{Map, Value, json};

use super::super::Fault;
use super::super::ownership::{Ownership, of_job};
use super::{EcsArguments, given, numbers};
use crate::spawn::Environment;

/// The tag that says whose a task definition is: `SERVICE_ID/CHANNEL_ID`.
pub(super) const ID_TAG: &str = "pvn:id";
/// The tag that says which version of the service it is.
pub(super) const VERSION_TAG: &str = "pvn:version";
/// The tag that has the digest of what it was made of.
pub(super) const DIGEST_TAG: &str = "pvn:digest";
/// The tag that has the id of the deployment that took it into use last.
pub(super) const DEPLOYMENT_TAG: &str = "pvn:deployment";

/// The cluster when nobody names one. Source: the `cluster` of each operation of ECS.
const CLUSTER: &str = "default";

/// Which service it is about.
#[derive(Debug)]
pub(super) struct EcsPlace {
    pub(super) cluster: String,
    pub(super) service: String,
}

/// What is wanted of a service.
#[derive(Debug)]
pub(super) struct EcsTarget {
    pub(super) place: EcsPlace,
    pub(super) family: String,
    /// As the user wrote it, with its family.
    pub(super) task_definition: Value,
    /// As the user wrote it; empty if there is none.
    pub(super) service_definition: Map<String, Value>,
    pub(super) is_task_definition_only: bool,
    pub(super) ownership: Ownership,
    /// Of the task definition.
    pub(super) digest: String,
}

impl EcsPlace {
    pub(super) fn of(arguments: &EcsArguments, environment: &Environment) -> Result<Self, Fault> {
        let definition = service_definition(arguments)?;
        Self::named(arguments, &definition, environment)
    }

    fn named(
        arguments: &EcsArguments,
        definition: &Map<String, Value>,
        environment: &Environment,
    ) -> Result<Self, Fault> {
        let of_definition = |field: &str| definition.get(field).and_then(Value::as_str);
        let cluster = given(arguments.cluster.as_ref()).or_else(|| of_definition("cluster"));
        let named = given(arguments.service_name.as_ref()).or_else(|| of_definition("serviceName"));
        let service = match named {
            Some(name) => name.to_owned(),
            None => {
                let service = of_job(environment, "PVN_SERVICE");
                let channel = of_job(environment, "PVN_RELEASE_CHANNEL");
                service.and_then(|service| Ok(format!("{service}-{}", channel?))).map_err(|_| {
                    Fault::usage(
                        "the service has no name: give it with `--service-name`, or as \
                         `serviceName` of the service definition",
                    )
                })?
            }
        };
        Ok(Self { cluster: cluster.unwrap_or(CLUSTER).to_owned(), service })
    }
}

impl EcsTarget {
    pub(super) fn of(arguments: &EcsArguments, environment: &Environment) -> Result<Self, Fault> {
        let service_definition = service_definition(arguments)?;
        let place = EcsPlace::named(arguments, &service_definition, environment)?;
        let Some(task_definition) = given(arguments.task_definition.as_ref()) else {
            return Err(Fault::usage(
                "there is no task definition: give it with `--task-definition`",
            ));
        };
        let mut task_definition = read(task_definition, "task definition")?;
        let family =
            task_definition.entry("family").or_insert_with(|| place.service.clone().into());
        let Some(family) = family.as_str().map(str::to_owned) else {
            return Err(Fault::failed("the task definition's `family` is no text"));
        };
        let task_definition = Value::Object(task_definition);
        let ownership = Ownership::of(environment)?;
        let digest = digest(&task_definition);
        Ok(Self {
            place,
            family,
            task_definition,
            service_definition,
            is_task_definition_only: arguments.update_task_definition_only,
            ownership,
            digest,
        })
    }

    /// The task definition as it is to be registered: with its own tags and ours.
    pub(super) fn tagged(&self) -> Value {
        let Ownership { id, version } = &self.ownership;
        let ours = [(ID_TAG, id), (VERSION_TAG, version), (DIGEST_TAG, &self.digest)];
        let mut definition = self.task_definition.clone();
        let mut tags = definition["tags"].as_array().cloned().unwrap_or_default();
        tags.retain(|tag| ours.iter().all(|(key, _)| tag["key"] != *key));
        tags.extend(ours.iter().map(|(key, value)| json!({"key": key, "value": value})));
        definition["tags"] = tags.into();
        definition
    }
}

fn service_definition(arguments: &EcsArguments) -> Result<Map<String, Value>, Fault> {
    given(arguments.service_definition.as_ref())
        .map_or_else(|| Ok(Map::new()), |given| read(given, "service definition"))
}

/// Reads a definition: a text that begins like a JSON object is one, any other is a path.
fn read(given: &str, what: &str) -> Result<Map<String, Value>, Fault> {
    let (text, whose) = if given.trim_start().starts_with('{') {
        (given.to_owned(), format!("the {what}"))
    } else {
        let whose = format!("the {what} `{given}`");
        let text = std::fs::read_to_string(given)
            .map_err(|error| Fault::failed(format!("{whose} cannot be read: {error}")))?;
        (text, whose)
    };
    let mut definition = serde_json::from_str(&text)
        .map_err(|error| Fault::failed(format!("{whose} is no JSON object: {error}")))?;
    numbers::read(&mut definition)
        .map_err(|why| Fault::failed(format!("{whose} is nothing for ECS: {why}")))?;
    Ok(definition)
}

/// The same for the same content, in whatever order and form it is written.
fn digest(definition: &Value) -> String {
    let mut sorted = definition.clone();
    sorted.sort_all_objects();
    BlobId::of(sorted.to_string().as_bytes()).to_string()
}

/// JSON that reads the same in every encoding: the CLI takes a file to be in that of its locale.
pub(super) fn ascii(value: &Value) -> String {
    let mut ascii = String::new();
    for c in value.to_string().chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            // Outside of strings JSON has none of these.
            for unit in c.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_has_the_same_digest_however_it_is_written() {
        let of = |text: &str| digest(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"a": 1, "b": {"c": 2, "d": []}}"#), of(r#"{"b":{"d":[],"c":2},"a":1}"#));
        assert_ne!(of(r#"{"a": [1, 2]}"#), of(r#"{"a": [2, 1]}"#));
    }

    #[test]
    fn what_is_not_ascii_is_written_so() {
        let value = json!({"é": "a😀\n"});
        let text = ascii(&value);
        assert_eq!(text, r#"{"\u00e9":"a\ud83d\ude00\n"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_definition_is_a_text_or_the_path_of_one() {
        assert_eq!(read(" {\"a\": 1}", "task definition").unwrap().len(), 1);
        for (given, why) in [
            ("{\"a\": ", "the task definition is no JSON object: EOF"),
            ("/nowhere/a.json", "the task definition `/nowhere/a.json` cannot be read: No such"),
        ] {
            let fault = read(given, "task definition").unwrap_err();
            assert!(fault.why.starts_with(why), "{}", fault.why);
            assert_eq!(fault.code, 1);
        }
    }
}
