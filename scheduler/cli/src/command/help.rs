//! The list of commands in `pvnctl --help`, by what people want to do.

use clap::Command;
use clap::builder::StyledStr;

use super::STYLES;

/// Every command that is shown, in groups.
const GROUPS: &[(&str, &[&str])] = &[
    ("See", &["status", "get", "describe", "explain", "logs", "history", "events"]),
    ("Release", &["apply", "diff", "validate", "push", "wait", "rollback"]),
    (
        "Decide and steer",
        &[
            "approve",
            "reject",
            "retry",
            "refresh",
            "pause",
            "observe",
            "resume",
            "acknowledge",
            "open-window",
            "run",
            "cancel",
        ],
    ),
    (
        "By noun",
        &[
            "services",
            "jobs",
            "releases",
            "applications",
            "runtimes",
            "configs",
            "notifications",
            "secrets",
            "auth",
        ],
    ),
    (
        "Other",
        &["init", "contract-test", "login", "contexts", "completion", "reference", "version"],
    ),
];

/// The command with its help in groups.
pub fn grouped(command: Command) -> Command {
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or_default();
    let (title, name) = (STYLES.get_header(), STYLES.get_literal());
    let mut text = String::new();
    for (group, commands) in GROUPS {
        text += &format!("{title}{group}:{title:#}\n");
        for known in commands.iter().filter_map(|wanted| command.find_subcommand(wanted)) {
            let about = known.get_about().map(StyledStr::to_string).unwrap_or_default();
            let called = known.get_name();
            let aliases: Vec<_> = known.get_visible_aliases().collect();
            let also = match aliases.as_slice() {
                [] => String::new(),
                aliases => format!(" [{}]", aliases.join(", ")),
            };
            text += &format!("  {name}{called:width$}{name:#}  {about}{also}\n");
        }
        text.push('\n');
    }
    let options = format!("{title}Options:{title:#}\n{{options}}{{after-help}}");
    let usage = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    command.help_template(format!("{usage}{text}{options}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::command::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let mut known: Vec<_> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        let mut shown: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().map(ToString::to_string))
            .collect();
        known.sort_unstable();
        shown.sort_unstable();
        assert_eq!(shown, known);
    }
}
