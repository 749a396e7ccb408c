//! Task definitions that somebody takes out of use by hand.

use serde_json::{Value, json};

use super::{Answer, World};

impl World {
    /// `deregister-task-definition`, or `delete-task-definitions`, which needs that before: what
    /// runs goes on, and nothing new may begin with it.
    pub fn retire(&mut self, named: &str, status: &str) {
        let at = self.revision(named).unwrap();
        self.revisions[at].0["status"] = status.into();
    }

    /// Those of a family that are in use, the newest first, as a list without `--status` has them.
    pub(super) fn active(&self, family: &Value) -> Value {
        let definitions = self.revisions.iter().rev().map(|(definition, _)| definition);
        let active = definitions.filter(|at| at["family"] == *family && at["status"] == "ACTIVE");
        let arns: Vec<&Value> = active.map(|at| &at["taskDefinitionArn"]).collect();
        json!({"taskDefinitionArns": arns})
    }

    /// Refuses a service that would begin anything with one that is not.
    pub(super) fn usable(&self, body: &Value) -> Answer {
        if let Some(named) = body["taskDefinition"].as_str()
            && self.revisions[self.revision(named)?].0["status"] != "ACTIVE"
        {
            return Err(("ClientException", "TaskDefinition is inactive".to_owned()));
        }
        Ok(Value::Null)
    }
}
