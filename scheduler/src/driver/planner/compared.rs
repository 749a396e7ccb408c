//! Which commands are other ones than before, and in what, for people. Called by `preview`.

use std::collections::BTreeSet;

use crate::compile::{Command, Commands};

/// The commands that differ: `apply (arguments, env REGION)`, `fetch (new)`.
pub(super) fn compared(before: &Commands, after: &Commands) -> Vec<String> {
    let pairs = [
        ("fetch", before.fetch.as_ref(), after.fetch.as_ref()),
        ("apply", Some(&before.apply), Some(&after.apply)),
        ("getInfo", before.get_info.as_ref(), after.get_info.as_ref()),
    ];
    let mut told: Vec<String> = pairs
        .into_iter()
        .filter_map(|(name, before, after)| {
            let parts = match (before, after) {
                (None, None) => return None,
                (None, Some(_)) => "new".to_owned(),
                (Some(_), None) => "gone".to_owned(),
                (Some(before), Some(after)) => differences(before, after)?,
            };
            Some(format!("{name} ({parts})"))
        })
        .collect();
    if before.place != after.place {
        told.push("where they run".to_owned());
    }
    told
}

fn differences(before: &Command, after: &Command) -> Option<String> {
    if before == after {
        return None;
    }
    let mut parts: Vec<String> = Vec::new();
    if before.argv != after.argv {
        parts.push("arguments".to_owned());
    }
    let only_in = |one: &Command, other: &Command| -> Vec<String> {
        let is_missing = |variable: &&_| !other.env.contains(variable);
        one.env.iter().filter(is_missing).map(|variable| variable.key.clone()).collect()
    };
    let names: BTreeSet<String> =
        only_in(before, after).into_iter().chain(only_in(after, before)).collect();
    parts.extend(names.into_iter().map(|name| format!("env {name}")));
    if before.working_directory != after.working_directory {
        parts.push("directory".to_owned());
    }
    if before.job != after.job {
        parts.push("Job".to_owned());
    }
    if parts.is_empty() {
        parts.push("options".to_owned());
    }
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::RunTarget;

    #[test]
    fn commands_are_compared_part_by_part() {
        let place = RunTarget::Local { root: None, clean_env: false };
        let apply = Command::new("apply", &["deploy", "a"]);
        let before = Commands { place, fetch: None, apply: apply.clone(), get_info: None };
        assert_eq!(compared(&before, &before), Vec::<String>::new());
        let after = Commands {
            fetch: Some(Command::new("fetch", &["look"])),
            apply: Command { leave_running: true, ..apply.clone() },
            ..before.clone()
        };
        assert_eq!(compared(&before, &after), ["fetch (new)", "apply (options)"]);
        assert_eq!(compared(&after, &before), ["fetch (gone)", "apply (options)"]);
        let elsewhere = Commands {
            place: RunTarget::Local { root: Some("there".to_owned()), clean_env: false },
            apply: Command {
                argv: vec!["deploy".to_owned()],
                working_directory: Some("x".to_owned()),
                ..apply
            },
            ..before.clone()
        };
        assert_eq!(
            compared(&before, &elsewhere),
            ["apply (arguments, directory)", "where they run"]
        );
    }
}
