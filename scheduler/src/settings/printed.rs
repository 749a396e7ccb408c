//! `serve --print-config`: every setting with its value and where that came from. Pure but for the
//! arguments that clap has read.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::handles::HandleNeeds;

/// The setting that the limit of open files may cut.
const CONNECTIONS: &str = "max_connections";

/// Arguments that are no settings.
const NO_SETTINGS: [&str; 3] = ["help", "version", "print_config"];

/// A line for each setting. `command` and `read` are those of `serve`, with what it `needs` and how
/// many files it can have open at `most`.
pub fn printed(command: &Command, read: &ArgMatches, needs: HandleNeeds, most: u64) -> String {
    let rows: Vec<[String; 3]> = command
        .get_arguments()
        .filter(|arg| !NO_SETTINGS.contains(&arg.get_id().as_str()))
        .filter_map(|arg| match arg.get_id().as_str() {
            CONNECTIONS => connections(row(arg, read)?, needs, most),
            _ => row(arg, read),
        })
        .collect();
    let head = ["SETTING", "VALUE", "FROM"].map(str::to_owned);
    let width = |at: usize| {
        std::iter::once(&head).chain(&rows).map(|row| row[at].chars().count()).max().unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    let mut text = String::new();
    for [setting, value, from] in std::iter::once(&head).chain(&rows) {
        text += &format!("{setting:first$}  {value:second$}  {from}\n");
    }
    text
}

/// Connections, as many as there can be: this machine may have the last word.
fn connections([flag, _, from]: [String; 3], needs: HandleNeeds, most: u64) -> Option<[String; 3]> {
    let possible = needs.connections(most);
    let from = match possible < needs.connections {
        true => format!("the hard limit of open files, {most}; {} are wanted", needs.connections),
        false => from,
    };
    Some([flag, possible.to_string(), from])
}

/// One setting; `None` for what has no flag.
fn row(arg: &Arg, read: &ArgMatches) -> Option<[String; 3]> {
    let (flag, id) = (arg.get_long()?, arg.get_id().as_str());
    let given = read.get_raw(id).into_iter().flatten();
    let given: Vec<_> = given.map(|value| value.to_string_lossy().into_owned()).collect();
    let from = match read.value_source(id) {
        Some(ValueSource::CommandLine) => "the command line".to_owned(),
        Some(ValueSource::EnvVariable) => {
            arg.get_env().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        }
        _ => "default".to_owned(),
    };
    // What is not given and has no value of its own is told by the help, in brackets.
    let told = || {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let (_, told) = help.split_once("[default: ")?;
        Some(format!("({})", told.trim_end_matches(']').replace('`', "").replace('\n', " ")))
    };
    let value = match given.is_empty() {
        false => without_password(&given.join(",")),
        true => told().unwrap_or_else(|| "(none)".to_owned()),
    };
    Some([format!("--{flag}"), value, from])
}

/// An address without the password in it: what is printed lands in tickets.
fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:…@{host}{}", &rest[end..])
        }
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;
    use crate::settings::Settings;

    fn lines(arguments: &[&str], most: u64) -> String {
        let command = Settings::augment_args(Command::new("serve"));
        let read = command.clone().get_matches_from(arguments);
        let settings = Settings::from_arg_matches(&read).unwrap();
        printed(&command, &read, settings.handles(), most)
    }

    /// The words of the line of a setting.
    fn line(text: &str, of: &str) -> String {
        let found = text.lines().find(|line| line.split_whitespace().next() == Some(of));
        let found = found.unwrap_or_else(|| panic!("no {of} in {text}"));
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn connections_are_told_as_the_limit_of_open_files_has_them() {
        let told = |arguments: &[&str], most| line(&lines(arguments, most), "--max-connections");
        assert_eq!(told(&["serve"], 524_288), "--max-connections 3072 default");
        let cut = "--max-connections 512 the hard limit of open files, 1024; 3072 are wanted";
        assert_eq!(told(&["serve"], 1024), cut);
        let given = ["serve", "--max-connections", "6000"];
        assert_eq!(told(&given, 524_288), "--max-connections 6000 the command line");
    }

    #[test]
    fn each_setting_is_told_with_where_its_value_came_from() {
        let text = lines(&["serve", "--max-applies", "3", "--data-dir", "d"], 524_288);
        let line = |of: &str| line(&text, of);
        assert_eq!(line("--max-applies"), "--max-applies 3 the command line");
        assert_eq!(line("--listen"), "--listen 127.0.0.1:7780 default");
        assert_eq!(line("--tls-cert"), "--tls-cert (none) default");
        assert_eq!(line("--database-url"), "--database-url (pvn.db in the data directory) default");
        let command = Settings::augment_args(Command::new("serve"));
        assert_eq!(text.lines().count(), command.get_arguments().count() + 1, "{text}");
    }

    #[test]
    fn a_password_in_an_address_is_not_told() {
        for (value, expected) in [
            ("postgres://u:secret@h/db?x=1", "postgres://u:…@h/db?x=1"),
            ("http://h:1/a@b", "http://h:1/a@b"),
            ("sqlite:pvn.db", "sqlite:pvn.db"),
        ] {
            assert_eq!(without_password(value), expected);
        }
    }
}
