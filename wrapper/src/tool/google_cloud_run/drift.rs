//! What of a service is not as it is wanted. Called by `live` and `object`. Pure.
//!
//! What the wanted one names is compared; the rest is the server's to fill in, but for what it
//! never fills in by itself ([`NEVER_BY_DEFAULT`]): a variable that somebody added by hand is drift
//! where the wanted one has no variables.

use serde_json::Value;

/// Fields of a revision that are empty unless somebody filled them.
const NEVER_BY_DEFAULT: &[&str] = &["args", "command", "env", "envFrom", "volumeMounts", "volumes"];

/// Most letters of a value that are told.
const VALUE_LETTERS: usize = 80;

/// A field that is not as it is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpecDifference {
    /// Such as `spec.template.spec.containers[0].image`.
    field: String,
    /// The one that is there, and the one that is wanted, unless they may be secret.
    values: Option<[String; 2]>,
}

impl SpecDifference {
    fn of(field: &str, found: &str, wanted: &str) -> Self {
        Self { field: field.to_owned(), values: Some([found.to_owned(), wanted.to_owned()]) }
    }

    pub(super) fn text(&self) -> String {
        match &self.values {
            Some([found, wanted]) => format!("{} is {found}, wanted {wanted}", self.field),
            None => format!("{} has another value", self.field),
        }
    }
}

/// All that differs, in the order of the wanted one.
pub(super) fn differences(wanted: &Value, found: &Value) -> Vec<SpecDifference> {
    let mut all = Vec::new();
    for (field, pointer) in
        [("metadata.labels", "/metadata/labels"), ("metadata.annotations", "/metadata/annotations")]
    {
        if let Some(wanted) = wanted.pointer(pointer) {
            compare(field, wanted, found.pointer(pointer), &mut all);
        }
    }
    let (wanted, found) = (&wanted["spec"], &found["spec"]);
    for (name, wanted) in wanted.as_object().into_iter().flatten() {
        if name != "traffic" {
            compare(&format!("spec.{name}"), wanted, found.get(name), &mut all);
        }
    }
    compare("spec.traffic", &traffic(wanted), Some(&traffic(found)), &mut all);
    all
}

/// Where traffic goes, as it is said by default: all of it to the latest revision. Without what has
/// a tag alone, which anybody may add.
fn traffic(spec: &Value) -> Value {
    let targets = spec["traffic"].as_array().into_iter().flatten();
    let mut targets: Vec<Value> =
        targets.filter(|target| target["percent"].as_i64().unwrap_or(0) > 0).cloned().collect();
    for target in &mut targets {
        let is_latest = !target["revisionName"].is_string();
        target["latestRevision"] = is_latest.into();
    }
    if targets.is_empty() {
        targets.push(serde_json::json!({"percent": 100, "latestRevision": true}));
    }
    targets.into()
}

fn compare(field: &str, wanted: &Value, found: Option<&Value>, all: &mut Vec<SpecDifference>) {
    let found = found.unwrap_or(&Value::Null);
    match wanted {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, wanted) in fields {
                compare(&format!("{field}.{name}"), wanted, found.get(name), all);
            }
            if !field.starts_with("spec.template.spec") {
                return;
            }
            for name in NEVER_BY_DEFAULT.iter().filter(|name| !fields.contains_key(**name)) {
                let found = found.get(name).unwrap_or(&Value::Null);
                compare(&format!("{field}.{name}"), &Value::Array(Vec::new()), Some(found), all);
            }
        }
        Value::Array(wanted) => compare_lists(field, wanted, found, all),
        // Nothing stands for the server's default, but as the value of a variable.
        Value::Number(number) if number.as_f64() == Some(0.0) => {}
        Value::Bool(false) if found.is_null() => {}
        Value::String(text) if text.is_empty() && (found.is_null() || !is_variable(field)) => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let is_amount = field.contains(".limits.") || field.contains(".requests.");
            let (a, b) = (scalar(wanted), scalar(found));
            if a != b && !(is_amount && amount(&a).is_some() && amount(&a) == amount(&b)) {
                // One that was set by hand may be a secret that nobody told us of.
                let values = (!is_variable(field)).then(|| [shown(found), shown(wanted)]);
                all.push(SpecDifference { field: field.to_owned(), values });
            }
        }
    }
}

fn is_variable(field: &str) -> bool {
    field.contains(".env[")
}

/// Lists whose entries all have a name are compared by it, others entry by entry.
fn compare_lists(field: &str, wanted: &[Value], found: &Value, all: &mut Vec<SpecDifference>) {
    let found = found.as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |value: &Value| value["name"].as_str().map(str::to_owned);
    let names = |list: &[Value]| list.iter().map(name).collect::<Option<Vec<_>>>();
    if let (Some(wanted_names), Some(found_names)) = (names(wanted), names(found))
        && !wanted.is_empty()
    {
        for (name, wanted) in wanted_names.iter().zip(wanted) {
            let field = format!("{field}[{name}]");
            match found_names.iter().position(|other| other == name) {
                Some(at) => compare(&field, wanted, Some(&found[at]), all),
                None => all.push(SpecDifference::of(&field, "absent", "there")),
            }
        }
        for name in found_names.iter().filter(|name| !wanted_names.contains(name)) {
            all.push(SpecDifference::of(&format!("{field}[{name}]"), "there", "absent"));
        }
        return;
    }
    if wanted.len() != found.len() {
        all.push(SpecDifference::of(field, &entries(found), &entries(wanted)));
        return;
    }
    for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
        compare(&format!("{field}[{at}]"), wanted, Some(found), all);
    }
}

/// A list in short; of few names, the names.
fn entries(list: &[Value]) -> String {
    let names: Option<Vec<&str>> = list.iter().map(|value| value["name"].as_str()).collect();
    match (list.len(), names) {
        (0, _) => "empty".to_owned(),
        (1..=3, Some(names)) => format!("`{}`", names.join(", ")),
        (1, None) => "1 entry".to_owned(),
        (count, _) => format!("{count} entries"),
    }
}

/// A value as a text: what is a number here may be a string there.
fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A value, for people.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => return "absent".to_owned(),
        value => scalar(value),
    };
    match text.char_indices().nth(VALUE_LETTERS) {
        Some((at, _)) => format!("`{}…`", &text[..at]),
        None => format!("`{text}`"),
    }
}

/// How much a quantity of Kubernetes is, in thousandths: `500m`, `1`, `512Mi`.
fn amount(text: &str) -> Option<f64> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let thousandths = match unit {
        "m" => 1.0,
        "" => 1e3,
        "k" => 1e6,
        "M" => 1e9,
        "G" => 1e12,
        "Ki" => 1e3 * 1024.0,
        "Mi" => 1e3 * 1024.0 * 1024.0,
        "Gi" => 1e3 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * thousandths)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted() -> Value {
        json!({
            "metadata": {"name": "web", "annotations": {"run.googleapis.com/ingress": "all"}},
            "spec": {"template": {"metadata": null, "spec": {
                "containerConcurrency": 0,
                "serviceAccountName": "",
                "containers": [{
                    "image": "a:2",
                    "env": [{"name": "LOG", "value": "info"}, {"name": "MODE", "value": "x"}],
                    "resources": {"limits": {"cpu": 1, "memory": "0.5Gi"}},
                    "ports": [{"containerPort": 8080}]
                }]
            }}}
        })
    }

    /// The same with what the server adds.
    fn live() -> Value {
        let mut live = wanted();
        live["metadata"]["annotations"]["run.googleapis.com/operation-id"] = "o".into();
        live["metadata"]["labels"] = json!({"cloud.googleapis.com/location": "x"});
        live["spec"]["traffic"] = json!([{"percent": 100, "latestRevision": true}]);
        let template = &mut live["spec"]["template"];
        template["metadata"] = json!({"annotations": {"client.knative.dev/nonce": "n"}});
        template["spec"]["containerConcurrency"] = 80.into();
        template["spec"]["serviceAccountName"] = "1-compute@x".into();
        let container = &mut template["spec"]["containers"][0];
        container["name"] = "web-1".into();
        container["resources"]["limits"] = json!({"cpu": "1000m", "memory": "512Mi"});
        container["ports"][0]["name"] = "http1".into();
        container["env"].as_array_mut().unwrap().reverse();
        container["startupProbe"] = json!({"tcpSocket": {"port": 8080}});
        live
    }

    fn told(pointer: &str, value: Value) -> Vec<String> {
        let mut live = live();
        match live.pointer_mut(pointer) {
            Some(found) => *found = value,
            None => {
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                live.pointer_mut(parent).unwrap()[name] = value;
            }
        }
        differences(&wanted(), &live).iter().map(SpecDifference::text).collect()
    }

    #[test]
    fn what_the_server_fills_in_is_no_drift() {
        let tag = json!([{"percent": 100}, {"tag": "old", "revisionName": "web-1"}]);
        assert_eq!(told("/spec/traffic", tag), Vec::<String>::new());
    }

    #[test]
    fn what_somebody_changed_by_hand_is_told_with_its_field() {
        const CONTAINER: &str = "/spec/template/spec/containers/0";
        let in_container = |name: &str| format!("{CONTAINER}/{name}");
        for (pointer, value, text) in [
            (
                in_container("image"),
                json!("a:9"),
                "spec.template.spec.containers[0].image is `a:9`, wanted `a:2`",
            ),
            (
                in_container("env"),
                json!([{"name": "LOG", "value": "s3cr3t"}, {"name": "MODE", "value": "x"}]),
                "spec.template.spec.containers[0].env[LOG].value has another value",
            ),
            (
                in_container("env"),
                json!([{"name": "LOG", "value": "info"}]),
                "spec.template.spec.containers[0].env[MODE] is absent, wanted there",
            ),
            (
                in_container("args"),
                json!(["--debug"]),
                "spec.template.spec.containers[0].args is 1 entry, wanted empty",
            ),
            (
                in_container("resources/limits/cpu"),
                json!("2"),
                "spec.template.spec.containers[0].resources.limits.cpu is `2`, wanted `1`",
            ),
            (
                "/metadata/annotations/run.googleapis.com~1ingress".to_owned(),
                json!("internal"),
                "metadata.annotations.run.googleapis.com/ingress is `internal`, wanted `all`",
            ),
        ] {
            assert_eq!(told(&pointer, value), [text]);
        }
        assert_eq!(
            told("/spec/traffic", json!([{"percent": 100, "revisionName": "web-1"}])),
            ["spec.traffic[0].latestRevision is `false`, wanted `true`"]
        );
        assert_eq!(
            told(
                "/spec/traffic",
                json!([{"percent": 90, "latestRevision": true},
                       {"percent": 10, "revisionName": "web-1"}])
            ),
            ["spec.traffic is 2 entries, wanted 1 entry"]
        );
    }

    #[test]
    fn amounts_are_compared_as_amounts() {
        assert_eq!(amount("1"), amount("1000m"));
        assert_eq!(amount("0.5Gi"), amount("512Mi"));
        assert_ne!(amount("1G"), amount("1Gi"));
        assert_eq!((amount(""), amount("a"), amount("1x")), (None, None, None));
    }
}
