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

/// A value for a placeholder, where it is not any word.
fn filled(word: &str) -> String {
    match word {
        "STATUS" => "FAILED".to_owned(),
        "SERVICE" => "shop/web".to_owned(),
        other => other.to_owned(),
    }
}

/// What of a source a program says: no comments, no tests.
fn spoken(source: &str) -> String {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_command_that_pvnctl_itself_suggests_works_word_for_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&root, &mut found);
    found.retain(|file| !file.ends_with("tests.rs"));
    let (mut problems, mut count) = (Vec::new(), 0);
    for file in found {
        for words in suggested(&spoken(&std::fs::read_to_string(&file).unwrap())) {
            count += 1;
            let words: Vec<String> = words.iter().map(|word| filled(word)).collect();
            let typed = std::iter::once("pvnctl".to_owned()).chain(words.iter().cloned());
            if let Err(error) = Cli::command().try_get_matches_from(typed) {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default();
                problems.push(format!("{}: pvnctl {}: {why}", file.display(), words.join(" ")));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 30, "only {count} suggestions were found");
}

#[test]
fn the_everyday_tasks_work_as_they_are_written_and_are_nowhere_longer_than_elsewhere() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/everyday.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut count = 0;
    for row in page.lines().filter(|line| line.contains("| `pvnctl ")) {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, ours, our_keys, theirs, their_keys] = cells[..] else { panic!("{row}") };
        let (ours, theirs) = (ours.trim_matches('`'), theirs.trim_matches('`'));
        let keys = |typed: &str| typed.chars().count() + "\n".len();
        assert_eq!(our_keys, keys(ours).to_string(), "{row}");
        assert_eq!(their_keys, keys(theirs).to_string(), "{row}");
        assert!(keys(ours) <= keys(theirs), "{row}");
        // What a shell takes for itself.
        let words = ours.split(' ').filter(|word| !word.starts_with('<'));
        if let Err(error) = Cli::command().try_get_matches_from(words) {
            panic!("{row}: {error}");
        }
        count += 1;
    }
    assert_eq!(count, 40);
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
