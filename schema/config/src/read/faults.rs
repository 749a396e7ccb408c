//! What the schema finds wrong with a document, in the words of a config file and at the place that
//! people look for. Called by `read`.

use std::collections::HashSet;

use schema::check::{Notation, Problem, ValueFault, cut};
use serde_json::Value;

use super::place;
use crate::diagnostic::{Diagnostic, NamedText};
use crate::yaml::{NodeKind, YamlNode};

pub(super) fn schema_problems(
    found: Vec<Problem>,
    tree: &YamlNode,
    shared: &NamedText,
) -> Vec<Diagnostic> {
    let has_unknown: HashSet<String> = found
        .iter()
        .filter(|problem| matches!(problem.fault, ValueFault::Unknown { .. }))
        .filter_map(|problem| problem.pointer.rsplit_once('/').map(|(parent, _)| parent.to_owned()))
        .collect();
    // Where a field is unknown, it is probably the one that is missing; its own message says what
    // was meant.
    let told = |problem: &Problem| match &problem.fault {
        ValueFault::Rule(rule) => {
            !(rule.ends_with("none is given") && has_unknown.contains(&problem.pointer))
        }
        _ => true,
    };
    let diagnose = |problem: Problem| {
        let (message, help) = fault_words(&unquoted(problem.clone()), tree);
        let mut diagnostic = place(tree, shared, &problem.pointer, message);
        // An unknown field, or a key that is no key, is wrong itself, whatever its value.
        if let (_, Some(entry), true) = tree.nearest(&problem.pointer)
            && (matches!(problem.fault, ValueFault::Unknown { .. }) || is_about_key(&problem))
        {
            diagnostic.span = Some(entry.key_span.clone());
        }
        diagnostic.help = help;
        diagnostic
    };
    found.into_iter().filter(told).map(diagnose).collect()
}

/// The problem without the value, where that is or may be meant for a secret.
fn unquoted(mut problem: Problem) -> Problem {
    let is_secret =
        problem.pointer.to_ascii_lowercase().split('/').any(|name| name.contains("secret"));
    if let ValueFault::Type { found, .. } | ValueFault::Word { found, .. } = &mut problem.fault
        && is_secret
        && !matches!(found, Value::Array(_) | Value::Object(_) | Value::Null)
    {
        *found = "***".into();
    }
    problem
}

fn is_about_key(problem: &Problem) -> bool {
    matches!(&problem.fault, ValueFault::Rule(rule) if rule.contains("is not the key of"))
}

/// The field of a task that stands straight under a command, as some published snippets have it.
fn wants_task_config(problem: &Problem) -> Option<&str> {
    match &problem.fault {
        ValueFault::Unknown { field, known } if known.iter().any(|known| known == "taskConfig") => {
            let is_of_task = matches!(
                field.as_str(),
                "program" | "volumes" | "ttl" | "retryConfig" | "retry_config" | "leaveRunning"
            );
            is_of_task.then_some(field.as_str())
        }
        _ => None,
    }
}

fn fault_words(problem: &Problem, tree: &YamlNode) -> (String, Option<String>) {
    if let Some(field) = wants_task_config(problem) {
        let help = format!("`taskConfig` is missing around it: write `taskConfig: {{{field}: …}}`");
        return (format!("unknown field `{field}`"), Some(help));
    }
    if let ValueFault::Unknown { field, known } = &problem.fault
        && problem.pointer.matches('/').count() == 1
        && matches!(field.as_str(), "protection" | "releaseChannel" | "release_channel")
    {
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        return (
            format!("not supported yet: documents of kind `{field}`"),
            Some(format!("known here: {}", known.join(", "))),
        );
    }
    let (message, help) = problem.fault.words(Notation::Yaml);
    if let ValueFault::Type { expected, found: Value::String(text) } = &problem.fault {
        let (node, _, _) = tree.nearest(&problem.pointer);
        let is_quoted = matches!(node.kind, NodeKind::Scalar { plain: false, .. });
        if expected == "boolean" && is_quoted {
            return (
                format!("expected `true` or `false`, found the text \"{}\"", cut(text)),
                Some("leave the quotes out".to_owned()),
            );
        }
        if expected == "integer"
            && text.contains("{{")
            && problem.pointer.contains("/parameterValues/")
        {
            let help = format!(
                "a template is a text: write `string: \"{}\"`; what it comes to must then be a \
                 whole number",
                cut(text)
            );
            return (message, Some(help));
        }
        return (message, help.or_else(|| example(expected, &problem.pointer).map(str::to_owned)));
    }
    if let ValueFault::Type { expected, found: Value::Bool(_) | Value::Null } = &problem.fault {
        return (message, help.or_else(|| example(expected, &problem.pointer).map(str::to_owned)));
    }
    (message, help)
}

/// How to write what is often written as a text alone.
fn example(expected: &str, pointer: &str) -> Option<&'static str> {
    let mut segments = pointer.rsplit('/');
    let (last, parent) = (segments.next()?, segments.next().unwrap_or_default());
    match (expected, parent, last) {
        ("object", "env" | "defaultEnv" | "default_env", _) => Some("write `{value: …}` around it"),
        ("object", "runtimes", _) | ("object", _, "proxyRuntime" | "proxy_runtime") => {
            Some("write `{runtime: …}` around it")
        }
        (
            "object",
            "releaseChannels"
            | "release_channels"
            | "parameters"
            | "releaseChannelGroups"
            | "release_channel_groups",
            _,
        ) => Some("write `{name: …}` around it"),
        ("object", "perReleaseChannel" | "per_release_channel", _) => {
            Some("write `{releaseChannel: …}` around it")
        }
        ("object", _, "releaseChannelStable" | "release_channel_stable") => {
            Some("write `{releaseChannel: …}` around it")
        }
        ("object", _, "manualApproval" | "manual_approval") => {
            Some("write `{name: …}`, the name is what people see, or `{}` without one")
        }
        ("object", _, "sharedManualApproval" | "shared_manual_approval") => {
            Some("write `{name: …}`, the name that the channels share")
        }
        ("array", _, "cmd" | "entrypoint") => Some(
            "write each word as an item of a list, or `[sh, -c, \"…\"]` around a line for the \
             shell",
        ),
        _ => None,
    }
}
