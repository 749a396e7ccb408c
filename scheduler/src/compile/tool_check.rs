//! A fetch by a tool that is built in -> the check of that tool, which has all that the fetch has.
//! Called by `perform`, and by the driver, which asks whether there is one.

use std::path::Path;

use serde_json::Value;

use super::Command;

/// The wrapper, by the name of its program.
const WRAPPER: &str = "pvn-wrapper";

/// The fetch of each tool: the words behind the wrapper's program.
const FETCHES: &[(&str, &str)] = &[
    ("terraform", "plan"),
    ("pulumi", "preview"),
    ("aws-ecs", "fetch"),
    ("google-cloud-run", "fetch"),
];

/// The step that each of them has beside.
const CHECK: &str = "check";

impl Command {
    /// The same with the check of its tool in place of its fetch; `None` where it is no fetch of
    /// one, whoever wrote it.
    pub fn tool_check(&self) -> Option<Self> {
        let mut check = Self { expect: None, leave_running: false, ..self.clone() };
        match &mut check.job {
            None => *step(check.argv.iter_mut().map(|word| (word.clone(), word)))? = CHECK.into(),
            Some(job) => {
                let container = containers(job)?
                    .iter_mut()
                    .find(|container| container["name"] == self.name.as_str())?
                    .as_object_mut()?;
                // Both together are what runs, in whatever order the fields stand.
                let (mut command, mut arguments) = (None, None);
                for (field, value) in container {
                    match field.as_str() {
                        "command" => command = value.as_array_mut(),
                        "args" => arguments = value.as_array_mut(),
                        _ => {}
                    }
                }
                let words = command.into_iter().chain(arguments).flatten();
                let text = |word: &Value| word.as_str().unwrap_or_default().to_owned();
                *step(words.map(|word| (text(word), word)))? = CHECK.into();
            }
        }
        Some(check)
    }

    /// The image that it runs in; `None` on this machine.
    pub fn image(&self) -> Option<&str> {
        let containers = self.job.as_deref()?.pointer("/spec/template/spec/containers")?;
        let mut containers = containers.as_array()?.iter();
        containers.find(|container| container["name"] == self.name.as_str())?["image"].as_str()
    }
}

fn containers(job: &mut Value) -> Option<&mut Vec<Value>> {
    job.pointer_mut("/spec/template/spec/containers")?.as_array_mut()
}

/// The word that says the step, of a command line of the wrapper for a fetch by a tool.
fn step<'a, T>(mut words: impl Iterator<Item = (String, &'a mut T)>) -> Option<&'a mut T> {
    let (program, _) = words.next()?;
    let (tool, _) = words.next()?;
    let (step, word) = words.next()?;
    let is_wrapper = Path::new(&program).file_name().is_some_and(|name| name == WRAPPER);
    (is_wrapper && FETCHES.contains(&(tool.as_str(), step.as_str()))).then_some(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_fetch_of_a_tool_becomes_its_check_and_keeps_all_else() {
        let fetch = Command::new("plan", &["/opt/pvn-wrapper", "terraform", "plan", "--shell=/s"]);
        let check = fetch.tool_check().unwrap();
        assert_eq!(check.argv, ["/opt/pvn-wrapper", "terraform", "check", "--shell=/s"]);
        for argv in [
            &["/pvn-wrapper", "terraform", "apply"][..],
            &["./mine", "terraform", "plan"],
            &["/pvn-wrapper", "exec", "--"],
            &["/pvn-wrapper"],
            &["sh", "-c", "terraform plan"],
        ] {
            assert_eq!(Command::new("c", argv).tool_check(), None, "{argv:?}");
        }
    }

    #[test]
    fn on_a_cluster_it_is_the_main_container_that_checks() {
        let job = |main: &Value| {
            let containers = json!([{"name": "side", "command": ["sleep"], "image": "s"}, main]);
            json!({"spec": {"template": {"spec": {"containers": containers}}}})
        };
        let check = |main: &Value| {
            let job = Some(Box::new(job(main)));
            let command = Command { job, ..Command::new("fetch", &["x"]) };
            assert_eq!(command.image(), Some("aws:2"));
            command.tool_check().map(|check| *check.job.unwrap())
        };
        let words = json!(["/pvn-wrapper", "aws-ecs", "fetch", "--cluster=prod"]);
        let main = json!({"name": "fetch", "image": "aws:2", "command": words});
        let mut expected = main.clone();
        expected["command"][2] = "check".into();
        assert_eq!(check(&main), Some(job(&expected)));

        let main = json!({
            "args": ["aws-ecs", "fetch"], "command": ["/pvn-wrapper"], "name": "fetch",
            "image": "aws:2",
        });
        let mut expected = main.clone();
        expected["args"][1] = "check".into();
        assert_eq!(check(&main), Some(job(&expected)));
        assert_eq!(check(&json!({"name": "fetch", "image": "aws:2", "args": ["x"]})), None);
    }
}
