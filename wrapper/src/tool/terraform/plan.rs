//! A plan as `show -json` prints it -> what it comes to, and the part of it that may leave the job:
//! what is sensitive is left out, and so is all that says nothing of the changes. Pure. Called by
//! `terraform`.
//!
//! The shapes are those of Terraform's "JSON Output Format", format version 1.

use std::io::{self, Write};

use schema::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The major version of the format.
const FORMAT: &str = "1";

/// What stands where a value was sensitive.
const SENSITIVE: &str = "(sensitive value)";

/// Actions that destroy nothing and let nothing go. All others count as ones that may, those too
/// that nobody knows here.
const DESTROYS_NOTHING: &[&str] = &["no-op", "read", "create", "update"];

/// What changes.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TerraformPlan {
    format_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    terraform_version: Option<String>,
    /// Filled in by [`TerraformPlan::read`].
    #[serde(default)]
    summary: Summary,
    #[serde(default)]
    resource_changes: Vec<ResourceChange>,
    #[serde(default)]
    resource_drift: Vec<ResourceChange>,
    #[serde(default)]
    output_changes: std::collections::BTreeMap<String, PlannedChange>,
}

/// How many resources are changed in which way; a replaced one is destroyed and added.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
struct Summary {
    add: usize,
    change: usize,
    destroy: usize,
    import: usize,
    #[serde(rename = "move")]
    moved: usize,
    /// What terraform lets go of and leaves as it is.
    #[serde(default)]
    forget: usize,
}

#[derive(Debug, Deserialize, Serialize)]
struct ResourceChange {
    address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action_reason: Option<String>,
    change: PlannedChange,
}

#[derive(Debug, Deserialize, Serialize)]
struct PlannedChange {
    actions: Vec<String>,
    #[serde(default)]
    before: Value,
    #[serde(default)]
    after: Value,
    #[serde(default, skip_serializing)]
    before_sensitive: Value,
    #[serde(default, skip_serializing)]
    after_sensitive: Value,
    #[serde(default)]
    after_unknown: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    importing: Option<Value>,
}

impl TerraformPlan {
    /// Reads one, without what is sensitive in it; `Err`: why nothing can be said of it.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        let mut plan: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if plan.format_version.split('.').next() != Some(FORMAT) {
            return Err(format!(
                "its format is version {}, and {FORMAT} is known here",
                plan.format_version
            ));
        }
        let resources = plan.resource_changes.iter_mut().chain(&mut plan.resource_drift);
        for change in
            resources.map(|resource| &mut resource.change).chain(plan.output_changes.values_mut())
        {
            hide(&mut change.before, &change.before_sensitive);
            hide(&mut change.after, &change.after_sensitive);
        }
        // Of what does not change nothing is to be told.
        plan.resource_changes.retain(ResourceChange::is_one);
        plan.output_changes.retain(|_, change| !change.has_none_but("no-op"));
        plan.summary = Summary::of(&plan.resource_changes);
        Ok(plan)
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *to, self)?;
        to.write_all(b"\n")
    }

    /// In one line; `has_changes`: what terraform says of it by its exit code.
    pub(super) fn summary(&self, has_changes: bool) -> String {
        let Summary { add, change, destroy, import, moved, forget } = self.summary;
        let counts = [
            (import, "to import"),
            (add, "to add"),
            (change, "to change"),
            (destroy, "to destroy"),
            (moved, "to move"),
            (forget, "to forget"),
        ];
        let told: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match (told.is_empty(), self.output_changes.len()) {
            (false, _) => format!("Plan: {}", told.join(", ")),
            (true, 0) if !has_changes => "Plan: no changes".to_owned(),
            (true, 0) if self.is_of_state_alone() => {
                "Plan: no resource to change, only what the state says of them".to_owned()
            }
            (true, 0) => "Plan: changes that its JSON does not count".to_owned(),
            (true, 1) => "Plan: 1 output to change, no resource".to_owned(),
            (true, count) => format!("Plan: {count} outputs to change, no resource"),
        }
    }
}

impl TerraformPlan {
    /// What is destroyed, replaced by another or let go, a line each, and what is not known to be
    /// harmless; empty: nothing. An address is one line.
    pub(super) fn destroys(&self, has_changes: bool) -> String {
        let told = self.resource_changes.iter().filter_map(|resource| {
            let actions = &resource.change.actions;
            let does = |action: &str| actions.iter().any(|is| is == action);
            let is_harmless = |action: &String| DESTROYS_NOTHING.contains(&action.as_str());
            if !actions.is_empty() && actions.iter().all(is_harmless) {
                return None;
            }
            let what = match (actions.len(), does("delete"), does("create"), does("forget")) {
                (1, true, ..) => "destroy".to_owned(),
                (1, _, _, true) => "forget".to_owned(),
                (2, true, true, _) => "replace".to_owned(),
                (2, _, true, true) => "replace, and forget the old one of,".to_owned(),
                (0, ..) => "unknown".to_owned(),
                _ => actions.join("+"),
            };
            let line = format!("{what} {}", resource.address);
            Some(line.replace(shown::steers, "\u{fffd}") + "\n")
        });
        let mut told: String = told.collect();
        if has_changes && !self.says_anything() {
            told.push_str("unknown: the plan has changes that its JSON does not list\n");
        }
        told
    }

    /// Whether it lists anything that it may be about.
    fn says_anything(&self) -> bool {
        let lists = [self.resource_changes.is_empty(), self.resource_drift.is_empty()];
        lists.contains(&false) || !self.output_changes.is_empty()
    }

    /// Whether resources stay as they are and the state learns how they are.
    fn is_of_state_alone(&self) -> bool {
        self.resource_changes.is_empty() && !self.resource_drift.is_empty()
    }
}

impl Summary {
    fn of(changes: &[ResourceChange]) -> Self {
        let count = |is: &dyn Fn(&ResourceChange) -> bool| {
            changes.iter().filter(|resource| is(resource)).count()
        };
        let acts = |action: &'static str| {
            count(&|resource| resource.change.actions.iter().any(|is| is == action))
        };
        Self {
            add: acts("create"),
            change: acts("update"),
            destroy: acts("delete"),
            import: count(&|resource| resource.change.importing.is_some()),
            moved: count(&ResourceChange::is_moved),
            forget: acts("forget"),
        }
    }
}

impl ResourceChange {
    fn is_moved(&self) -> bool {
        self.previous_address.as_ref().is_some_and(|previous| *previous != self.address)
    }

    fn is_one(&self) -> bool {
        self.change.actions.is_empty()
            || !self.change.has_none_but("no-op")
            || self.change.importing.is_some()
            || self.is_moved()
    }
}

impl PlannedChange {
    fn has_none_but(&self, action: &str) -> bool {
        self.actions.iter().all(|is| is == action)
    }
}

/// Takes out what is sensitive: `marks` has the shape of the value, with `true` where it, or all
/// below it, is.
fn hide(value: &mut Value, marks: &Value) {
    match (value, marks) {
        (Value::Null, _) => {}
        (value, Value::Bool(true)) => *value = SENSITIVE.into(),
        (Value::Object(fields), Value::Object(marks)) => {
            for (name, mark) in marks {
                if let Some(value) = fields.get_mut(name) {
                    hide(value, mark);
                }
            }
        }
        (Value::Array(items), Value::Array(marks)) => {
            for (value, mark) in items.iter_mut().zip(marks) {
                hide(value, mark);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(changes: &Value) -> TerraformPlan {
        let json = json!({
            "format_version": "1.2",
            "variables": {"password": {"value": "hunter2"}},
            "prior_state": {"values": {"outputs": {"x": {"sensitive": true, "value": "hunter2"}}}},
            "resource_changes": changes,
            "output_changes": {
                "token": {"actions": ["create"], "before": null, "after": "hunter2",
                    "before_sensitive": false, "after_sensitive": true, "after_unknown": false},
                "same": {"actions": ["no-op"], "before": "a", "after": "a"},
            },
        });
        TerraformPlan::read(json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_plan_is_counted_by_what_becomes_of_each_resource() {
        let change = |actions: &[&str]| json!({"address": "a.b", "change": {"actions": actions}});
        let check = |changes: Value, expected: &str| {
            assert_eq!(plan(&changes).summary(true), expected);
        };
        check(json!([change(&["create"]), change(&["create"])]), "Plan: 2 to add");
        check(json!([change(&["delete", "create"])]), "Plan: 1 to add, 1 to destroy");
        check(json!([change(&["update"]), change(&["no-op"])]), "Plan: 1 to change");
        check(
            json!([change(&["no-op"]), change(&["read"])]),
            "Plan: 1 output to change, no resource",
        );
        check(
            json!([
                {"address": "a.c", "previous_address": "a.b", "change": {"actions": ["no-op"]}},
                {"address": "a.d", "change": {"actions": ["no-op"], "importing": {"id": "i"}}},
            ]),
            "Plan: 1 to import, 1 to move",
        );
    }

    #[test]
    fn what_is_destroyed_and_replaced_is_named() {
        let change = |name: &str, actions: &[&str]| json!({"address": format!("a.{name}"), "change": {"actions": actions}});
        let changes = json!([
            change("made", &["create"]),
            change("gone", &["delete"]),
            change("first", &["create", "delete"]),
            change("then", &["delete", "create"]),
            change("left", &["forget"]),
            change("x[\"\u{1b}[2J\"]", &["delete"]),
        ]);
        let told = "destroy a.gone\nreplace a.first\nreplace a.then\nforget a.left\n\
                    destroy a.x[\"\u{fffd}[2J\"]\n";
        assert_eq!(plan(&changes).destroys(true), told);
        let odd = json!([
            change("a", &["create", "forget"]),
            change("b", &["explode"]),
            change("c", &["Delete"]),
            change("d", &[]),
        ]);
        assert_eq!(
            plan(&odd).destroys(true),
            "replace, and forget the old one of, a.a\nexplode a.b\nDelete a.c\nunknown a.d\n"
        );
        assert_eq!(
            plan(&json!([change("made", &["create"]), change("is", &["update"])])).destroys(true),
            ""
        );
    }

    #[test]
    fn what_is_sensitive_does_not_leave_the_job() {
        let plan = plan(&json!([{"address": "a.b", "change": {
            "actions": ["update"],
            "before": {"user": "u", "password": "hunter2", "list": [{"key": "hunter2"}, {"key": "k"}]},
            "after": {"user": "v", "password": "hunter2", "list": [{"key": "hunter2"}, {"key": "k"}]},
            "before_sensitive": {"password": true, "list": [{"key": true}, {}]},
            "after_sensitive": {"password": true, "list": [{"key": true}, {}]},
        }}]));
        let mut written = Vec::new();
        plan.write(&mut written).unwrap();
        let text = String::from_utf8(written).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        let document: Value = serde_json::from_str(&text).unwrap();
        let change = &document["resource_changes"][0]["change"];
        assert_eq!(change["before"]["user"], "u");
        assert_eq!(change["after"]["list"], json!([{"key": SENSITIVE}, {"key": "k"}]));
        assert_eq!(
            document["summary"],
            json!({"add": 0, "change": 1, "destroy": 0, "import": 0, "move": 0, "forget": 0})
        );
    }

    #[test]
    fn what_nobody_understands_is_no_plan_without_changes() {
        let read = |json: Value| TerraformPlan::read(json.to_string().as_bytes());
        let why = read(json!({"format_version": "2.0"})).unwrap_err();
        assert!(why.contains("version 2.0, and 1 is known"), "{why}");
        let empty = read(json!({"format_version": "1.2"})).unwrap();
        assert_eq!(empty.summary(true), "Plan: changes that its JSON does not count");
        assert!(empty.destroys(true).starts_with("unknown: "));
        assert_eq!(
            (empty.summary(false).as_str(), empty.destroys(false).as_str()),
            ("Plan: no changes", "")
        );
        let drift = json!({"format_version": "1.2", "resource_drift": [
            {"address": "a.b", "change": {"actions": ["update"]}}
        ]});
        let drift = read(drift).unwrap();
        assert!(drift.summary(true).contains("only what the state says"));
        assert_eq!(drift.destroys(true), "");
        let forget = json!([{"address": "a.b", "change": {"actions": ["forget"]}}]);
        assert_eq!(plan(&forget).summary(true), "Plan: 1 to forget");
    }
}
