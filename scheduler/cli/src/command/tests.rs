//! What clap makes of what is typed.

use std::ffi::{OsStr, OsString};

use clap::{Arg, CommandFactory};

use super::*;
use crate::args::without_empty_variables;

#[test]
fn the_arguments_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn blanks_beside_the_commas_of_a_list_are_no_part_of_a_name() {
    let typed = ["pvnctl", "services", "push", "web", "--app", "shop", "--channels", "a, b ,c"];
    let cli = Cli::try_parse_from(typed).unwrap();
    assert!(format!("{cli:?}").contains(r#"channels: Some(["a", "b", "c"])"#), "{cli:?}");
}

#[test]
fn a_variable_that_is_empty_is_none() {
    let value: fn(&OsStr) -> Option<OsString> = |name| (name == "PVN_SERVER").then(OsString::new);
    let command = without_empty_variables(Cli::command(), value);
    let variables: Vec<_> = command.get_arguments().filter_map(Arg::get_env).collect();
    assert_eq!(variables, ["PVN_CONTEXT", "PVN_CA_FILE"]);
}
