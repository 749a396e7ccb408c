//! A runtime of a kind that is built in as the `custom` one that it is made to, for whoever wants
//! to go on from there by hand.

use serde_json::Value;

use crate::{Runtime, RuntimeKind};

/// What stands for a secret, which nothing shows again.
pub(crate) const EJECTED_SECRET: &str = "(write the secret here again)";

/// Fields whose `false` says no more than their absence.
const SWITCHES: [&str; 5] = [
    "leaveRunning",
    "readOnly",
    "required",
    "requireApprovalBeforeApply",
    "requireApprovalForDestroy",
];

impl Runtime {
    /// The document as `custom`, in its JSON form, without secrets and without what is not said.
    /// `None` when its commands are nobody's but the writer's, or it has none.
    pub fn ejected(&self) -> Option<Value> {
        let commands = self.role().commands.filter(|commands| !commands.is_as_written())?;
        let custom = Self {
            name: self.name.clone(),
            labels: self.labels.clone(),
            kind: RuntimeKind::Custom(Box::new(commands.custom().clone())),
        };
        let mut document = serde_json::to_value(&custom).expect("a document can be written");
        tidy(&mut document);
        Some(serde_json::json!({"runtime": document}))
    }
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // Of a variable that is no secret it is absent, and one may have it for a name.
            if let Some(secret) = fields.get_mut("rawSecret").filter(|is| is.is_string()) {
                *secret = EJECTED_SECRET.into();
            }
            fields.retain(|name, value| {
                let says_nothing = value.is_null()
                    || value.as_array().is_some_and(Vec::is_empty)
                    || *value == Value::Bool(false) && SWITCHES.contains(&name.as_str());
                !says_nothing
            });
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
