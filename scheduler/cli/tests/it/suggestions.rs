//! Every command of `pvnctl` that a message or a page of ours suggests can be typed: the
//! sub-command is there, and it takes the flags that are named.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use pvnctl::command::Cli;

/// Where messages and pages are, below the checkout.
const PLACES: &[&str] = &[
    "README.md",
    "docs",
    "examples",
    "schema/src",
    "scheduler/src",
    "scheduler/cli/src",
    "scheduler/engine/src",
    "wrapper/src",
];

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.for_each(|entry| files(&entry, found));
    } else if path.extension().is_some_and(|end| end == "rs" || end == "md") {
        found.push(path.to_owned());
    }
}

/// The commands in a text: what stands between backticks and begins with `pvnctl`, placeholders
/// filled in.
fn suggested(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for (at, _) in text.match_indices("`pvnctl ") {
        let rest = &text[at + 1..];
        // `pvnctl -o json` and the like name no command.
        if !rest["pvnctl ".len()..].starts_with(|first: char| first.is_ascii_lowercase()) {
            continue;
        }
        // A text of Rust may go on in the next line; one of a page ends where its paragraph does.
        let Some((command, _)) = rest.split_once('`') else { continue };
        let command = command.replace("\\\n", " ");
        if command.len() > 300 || command.contains("\n\n") {
            continue;
        }
        let mut plain = String::new();
        let mut depth = 0;
        for character in command.chars() {
            match character {
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    plain.push('x');
                }
                _ if depth > 0 => {}
                _ => plain.push(character),
            }
        }
        commands.push(plain.split_whitespace().skip(1).map(str::to_owned).collect());
    }
    commands
}

/// What is wrong with a command, if anything is. Arguments may be left out: a sentence names a
/// command more often than it spells it.
fn wrong(words: &[String], cli: &Command) -> Option<String> {
    let (mut command, mut is_named) = (cli.clone(), false);
    for word in words {
        if let Some(flag) = word.strip_prefix("--") {
            let name = flag
                .split_once('=')
                .map_or(flag, |(name, _)| name)
                .trim_end_matches([',', ';', '.']);
            let takes = |command: &Command| {
                let is = |arg: &clap::Arg| {
                    arg.get_long() == Some(name)
                        || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
                };
                command.get_arguments().any(is)
            };
            if !name.is_empty()
                && name != "help"
                && name != "version"
                && !takes(&command)
                && !takes(cli)
            {
                return Some(format!("`{}` takes no --{name}", command.get_name()));
            }
        } else if command.has_subcommands()
            && word.starts_with(|first: char| first.is_ascii_lowercase())
        {
            let Some(next) = command.find_subcommand(word.trim_end_matches(',')) else {
                return Some(format!("`{}` has no sub-command `{word}`", command.get_name()));
            };
            (command, is_named) = (next.clone(), true);
        }
    }
    (!is_named
        && words.iter().any(|word| word.starts_with(|first: char| first.is_ascii_lowercase())))
    .then(|| "no sub-command".to_owned())
}

#[test]
fn every_suggested_command_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cli = Cli::command();
    cli.build();
    let mut found = Vec::new();
    PLACES.iter().for_each(|place| files(&root.join(place), &mut found));
    let (mut problems, mut count) = (Vec::new(), 0);
    for file in found {
        for words in suggested(&std::fs::read_to_string(&file).unwrap()) {
            count += 1;
            problems.extend(
                wrong(&words, &cli)
                    .map(|why| format!("{}: pvnctl {}: {why}", file.display(), words.join(" "))),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 50, "only {count} suggestions were found");
}

#[test]
fn a_flag_that_is_not_there_is_found() {
    let mut cli = Cli::command();
    cli.build();
    for (text, part) in [
        (
            "name one with `pvnctl services rollback {} --app {} --goto VERSION`",
            Some("takes no --goto"),
        ),
        ("see `pvnctl services shwo`", Some("no sub-command `shwo`")),
        ("`pvnctl services rollback {} --app {label} --to VERSION`", None),
    ] {
        let found = suggested(text).iter().find_map(|words| wrong(words, &cli));
        assert_eq!(found.is_some(), part.is_some(), "{found:?}");
        assert!(
            part.is_none_or(|part| found.as_ref().is_some_and(|found| found.contains(part))),
            "{found:?}"
        );
    }
}
