//! `pvnctl reference`: every command as man pages, and as one document. Both are made of what
//! `--help` prints, so that there is one text to keep.

use std::path::{Path, PathBuf};

use clap::{CommandFactory, Subcommand};

use super::{Cli, grouped};
use crate::console::Console;
use crate::failure::Failure;

/// Columns of the document's texts: those of a narrow window beside a page's margin.
const WIDTH: usize = 80;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a man page for each command into a directory
    Man {
        /// Where to, such as ~/.local/share/man/man1
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Print all commands with their options as Markdown
    Markdown,
}

/// Does it.
///
/// # Errors
/// A directory that cannot be written to.
pub fn perform(command: &Command, console: &mut Console) -> Result<(), Failure> {
    match command {
        Command::Markdown => console.data(&markdown()),
        Command::Man { dir } => {
            let written = man(dir).map_err(|error| {
                Failure::with_next(
                    format!("cannot write man pages to {}: {error}", dir.display()),
                    "name a directory that you may write to",
                )
            })?;
            console.say(&format!("wrote {written} pages to {}", dir.display()))
        }
    }
}

/// One page a command; how many.
fn man(dir: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(dir)?;
    let pages = leaves(Cli::command().disable_help_subcommand(true), String::new());
    for (name, command) in &pages {
        let page = clap_mangen::Man::new(command.clone().name(name.replace(' ', "-")));
        let mut text = Vec::new();
        page.render(&mut text)?;
        std::fs::write(dir.join(format!("{}.1", name.replace(' ', "-"))), text)?;
    }
    Ok(pages.len())
}

/// The document.
pub fn markdown() -> String {
    let mut text = "# Commands of pvnctl\n\nMade by `pvnctl reference markdown` of what `--help` \
                    prints. [pvnctl.md](pvnctl.md) says how they behave.\n"
        .to_owned();
    for (name, command) in leaves(Cli::command(), String::new()) {
        let is_top = !name.contains(' ');
        // What is set where this is made is nobody else's.
        let command = command.term_width(WIDTH).color(clap::ColorChoice::Never);
        let command = command.mut_args(|arg| arg.hide_env_values(true));
        let mut command = if is_top { grouped(command) } else { command };
        let help = command.render_help().to_string();
        // Those that every command takes stand once.
        let own = match help.split_once("\nGlobal options:\n") {
            Some((own, rest)) if !is_top => {
                let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
                format!("{}\n\n{after}", own.trim_end())
            }
            _ => help,
        };
        text += &format!("\n## {name}\n\n```text\n{}\n```\n", own.trim_end());
    }
    text
}

/// The command and all below it that are shown, each under its whole name.
fn leaves(command: clap::Command, above: String) -> Vec<(String, clap::Command)> {
    let name = format!("{above}{}{}", if above.is_empty() { "" } else { " " }, command.get_name());
    let below: Vec<_> =
        command.get_subcommands().filter(|one| !one.is_hide_set()).cloned().collect();
    let shown = command.bin_name(name.clone()).disable_help_subcommand(true);
    let mut all = vec![(name.clone(), shown)];
    all.extend(below.into_iter().flat_map(|one| leaves(one, name.clone())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_the_commands_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pvnctl-commands.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == markdown(),
            "docs/pvnctl-commands.md is not what the commands say: `pvnctl reference markdown` \
             makes it"
        );
    }

    #[test]
    fn each_command_has_a_man_page() {
        let dir = tempfile::tempdir().unwrap();
        let written = man(dir.path()).unwrap();
        assert!(written > 40, "{written}");
        let page = std::fs::read_to_string(dir.path().join("pvnctl-services-push.1")).unwrap();
        assert!(page.contains(".TH pvnctl-services-push") && page.contains("param"), "{page}");
    }
}
