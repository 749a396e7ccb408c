//! `pvnctl completion`: prints a completion script.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use super::Cli;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl completion bash > ~/.local/share/bash-completion/completions/pvnctl
  pvnctl completion zsh  > \"${fpath[1]}/_pvnctl\"
  pvnctl completion fish > ~/.config/fish/completions/pvnctl.fish";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell: bash, zsh or fish
    #[arg(value_enum, hide_possible_values = true)]
    pub shell: TestedShell,
}

/// The shells that we test.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum TestedShell {
    /// GNU Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// fish.
    Fish,
}

/// Prints the script.
///
/// # Errors
/// [`Failure::Output`] when nobody takes it.
pub fn perform(arguments: &Arguments, console: &mut Console) -> Result<(), Failure> {
    let shell = match arguments.shell {
        TestedShell::Bash => Shell::Bash,
        TestedShell::Zsh => Shell::Zsh,
        TestedShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "pvnctl", &mut script);
    console.data_bytes(&script)
}
