//! The client of the scheduler: reads config files, speaks HTTP, prints for people and for
//! programs. The binary `pvnctl` is [`main`] alone; `pvn-scheduler dev` uses [`client`], [`wait`]
//! and [`diagnostics`] like any other user.
//!
//! Data goes to stdout, talk to stderr, `-o json` is stable, and a closed pipe is no error.

pub mod address;
pub mod args;
pub mod client;
pub mod command;
pub mod completing;
pub mod console;
pub mod contexts;
pub mod diagnostics;
pub mod diff;
pub mod discover;
pub mod failure;
pub mod files;
pub mod keyboard;
pub mod live;
pub mod named;
pub mod output_name;
pub mod short;
pub mod table;
pub mod typed;
pub mod under_way;
pub mod wait;
pub mod when;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompleteEnv;

use crate::args::{without_empty_variables, without_variables};
use crate::command::{Cli, grouped};
use crate::console::Console;
use crate::failure::Failure;

/// The whole program: reads the arguments (the first is the program's name), does what they say,
/// and returns the exit code: 0 done, 1 an error, and for everything that waits 2 failed and 3
/// timeout.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == completing::REFRESH) {
        completing::refresh();
        return 0;
    }
    // A shell that completes says so in a variable, and this prints what it wants and ends.
    CompleteEnv::with_factory(Cli::command).bin("pvnctl").complete();
    let mut console = Console::of_process();
    run(arguments, &mut console)
}

/// [`main`] on a console of the caller's choice; tests give one that remembers.
pub fn run(arguments: impl IntoIterator<Item = OsString>, console: &mut Console) -> u8 {
    let command = grouped(Cli::command()).color(console.clap_colour());
    let parsed = parsed(command, arguments.into_iter().collect());
    let ended = match parsed {
        Ok(cli) => perform(cli, console),
        Err(error) => refuse_arguments(&error, console),
    };
    match ended.and_then(|()| console.flush()) {
        Ok(()) => 0,
        Err(failure) => {
            let code = failure.exit_code();
            // When even stderr is closed there is nobody left to tell.
            let _ = console.report(&failure);
            code
        }
    }
}

fn parsed(command: clap::Command, arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let read = |command: clap::Command| {
        let matches = command.try_get_matches_from(&arguments)?;
        Cli::from_arg_matches(&matches)
    };
    let variables = |name: &std::ffi::OsStr| std::env::var_os(name);
    read(without_empty_variables(command.clone(), variables)).map_err(|error| {
        let is_of_typed = |of: &clap::Error| of.kind() == error.kind() && error.use_stderr();
        read(without_variables(command)).err().filter(is_of_typed).unwrap_or(error)
    })
}

/// `--help` and `--version` are data and end with 0. A wrong argument ends with 1: 2 means "failed"
/// to those who wait.
fn refuse_arguments(error: &clap::Error, console: &mut Console) -> Result<(), Failure> {
    if error.use_stderr() {
        let text = error.render();
        console.talk(&if console.colours_stderr() {
            text.ansi().to_string()
        } else {
            text.to_string()
        })?;
        Err(Failure::Ended(1))
    } else {
        let text = error.render();
        console.data(&if console.colours_stdout() {
            text.ansi().to_string()
        } else {
            text.to_string()
        })
    }
}

fn perform(cli: Cli, console: &mut Console) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
            Failure::user(format!("cannot start the program's event loop: {error}"))
        })?;
    let ended = runtime.block_on(command::perform(cli, console));
    // A read of stdin that nobody waits for any more must not hold the program back.
    runtime.shutdown_background();
    ended
}
