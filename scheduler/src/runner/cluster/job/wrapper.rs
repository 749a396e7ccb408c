//! The wrapper before a container's command, and what brings it there. Called by `job`.

use serde_json::{Map, Value, json};

use super::{WRAPPER, entry, list};
use crate::compile::WRAPPER_DIRECTORY;
use crate::runner::{JobSpec, wrapped};

/// The user that brings the wrapper where none may be root and nobody says which. Source: that of
/// the wrapper's own image.
const WRAPPER_USER: i64 = 65532;

/// Puts the wrapper before the container's command; returns the container that brings it.
pub(super) fn wrap(
    container: &mut Map<String, Value>,
    pod_context: &Value,
    spec: &JobSpec,
    image: &str,
) -> Result<Value, String> {
    let texts = |list: Option<&Value>| -> Vec<String> {
        let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let command = texts(container.get("command"));
    if command.is_empty() {
        return Err("there is no command to put the wrapper before".to_owned());
    }
    let argv = [command, texts(container.get("args"))].concat();
    let program = format!("{WRAPPER_DIRECTORY}/{WRAPPER}");
    container.insert("command".to_owned(), json!([program, "exec"]));
    container.insert("args".to_owned(), wrapped::arguments(spec, &argv).into());
    list(container, "volumeMounts")?
        .push(json!({"name": WRAPPER, "mountPath": WRAPPER_DIRECTORY, "readOnly": true}));
    let mut init = Map::new();
    init.insert("name".to_owned(), WRAPPER.into());
    init.insert("image".to_owned(), image.into());
    init.insert("command".to_owned(), json!([format!("/{WRAPPER}"), "install", WRAPPER_DIRECTORY]));
    init.insert(
        "volumeMounts".to_owned(),
        json!([{"name": WRAPPER, "mountPath": WRAPPER_DIRECTORY}]),
    );
    // What a quota or a policy asks of one container it asks of all; the two never run at the same
    // time.
    for field in ["securityContext", "resources"] {
        if let Some(value) = container.get(field) {
            init.insert(field.to_owned(), value.clone());
        }
    }
    let said = |field: &str| {
        container
            .get("securityContext")
            .and_then(|own| own.get(field))
            .or_else(|| pod_context.get(field))
    };
    if said("runAsNonRoot") == Some(&Value::Bool(true)) && said("runAsUser").is_none() {
        // The command's image has a user of its own; the wrapper's may have none.
        entry(&mut init, "securityContext")?.insert("runAsUser".to_owned(), WRAPPER_USER.into());
    }
    Ok(init.into())
}
