//! The program `pvnctl`: arguments in, exit code out. Everything else is the library, which
//! `pvn-scheduler dev` uses too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(pvnctl::main(std::env::args_os()))
}
