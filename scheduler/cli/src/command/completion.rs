//! `pvnctl completion`: prints a completion script. It asks this program at each key press, which
//! knows its own flags and, by `completing`, the names of the scheduler's.

use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl completion bash > ~/.local/share/bash-completion/completions/pvnctl
  pvnctl completion zsh  > \"${fpath[1]}/_pvnctl\"
  pvnctl completion fish > ~/.config/fish/completions/pvnctl.fish

Names of applications, services, channels and runtimes are completed, too. They
are kept in ~/.cache/pvn (XDG_CACHE_HOME) and asked for anew when older than a
minute, behind your back.";

/// The variable by which a shell asks: `clap_complete`'s own.
const VARIABLE: &str = "COMPLETE";

const PROGRAM: &str = "pvnctl";

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
    let shell: &dyn EnvCompleter = match arguments.shell {
        TestedShell::Bash => &Bash,
        TestedShell::Zsh => &Zsh,
        TestedShell::Fish => &Fish,
    };
    let mut script = Vec::new();
    if matches!(arguments.shell, TestedShell::Bash) {
        // Of `shop/web@eu` bash would hand over what stands behind the @ alone.
        script.extend_from_slice(b"COMP_WORDBREAKS=${COMP_WORDBREAKS//@}\n");
    }
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    console.data_bytes(&script)
}
